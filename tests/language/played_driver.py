"""A CUDA driver that records its calls: memory, streams, events, launches and graphs, each at once and in order."""

import ctypes
import sys
from typing import Any, Protocol

SUCCESS, ILLEGAL_ADDRESS = 0, 700


class Memory(Protocol):
    """Record of the calls; `at` returns device memory."""

    depth: int
    launches: list[tuple[tuple[int, ...], dict[str, Any]]]
    attributes: list[tuple[Any, int]]
    unloaded: list[bool]
    fails: Any

    def at(self, address: int, size: int) -> memoryview: ...

    def memset(self, period: int, address: int, value: int, count: int, stream: object = None) -> None: ...

    def copy(self, to: int, source: int, size: int, stream: object = None) -> None: ...

    def run(self, values: tuple[int, ...], options: dict[str, Any]) -> None: ...


class PlayedDriver:
    """libcuda. Handles are numbers. calls: names of the calls with their streams, in order. fails_later: whether waits fail."""

    def __init__(self, notes: Memory) -> None:
        self.notes, self.handles = notes, 100
        self.calls: list[tuple[str, int]] = []
        self.graphs: dict[int, list[tuple[tuple[int, ...], dict[str, Any]]]] = {}
        self.edges: list[tuple[int, ...]] = []
        self.fails_later = False
        self.arguments_of_nodes = 3

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: SUCCESS

    def _new(self, reference: Any, *_: Any) -> int:
        self.handles += 1
        reference._obj.value = self.handles
        return SUCCESS

    cuStreamCreate = cuEventCreate = cuModuleLoadData = cuModuleGetFunction = _new

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = b"an illegal memory access was encountered"
        return SUCCESS

    def cuMemcpyHtoDAsync_v2(self, address: Any, source: Any, size: Any, stream: Any) -> int:
        self.calls.append(("in", stream))
        self.notes.at(address, size)[:] = ctypes.string_at(source, size)
        return SUCCESS

    def cuMemcpyDtoHAsync_v2(self, target: Any, address: Any, size: Any, stream: Any) -> int:
        self.calls.append(("out", stream))
        ctypes.memmove(target, bytes(self.notes.at(address, size)), size)
        return SUCCESS

    def cuMemsetD8Async(self, address: Any, word: Any, count: Any, stream: Any) -> int:
        self.notes.memset(1, address, word, count)
        return SUCCESS

    def cuMemsetD16Async(self, address: Any, word: Any, count: Any, stream: Any) -> int:
        self.notes.memset(2, address, word, count)
        return SUCCESS

    def cuMemsetD32Async(self, address: Any, word: Any, count: Any, stream: Any) -> int:
        self.notes.memset(4, address, word, count)
        return SUCCESS

    def cuMemcpyDtoDAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> int:
        self.notes.copy(target, source, size)
        return SUCCESS

    def cuEventElapsedTime(self, result: Any, start: Any, end: Any) -> int:
        result._obj.value = 0.25
        return SUCCESS

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self.calls.append(("record", stream))
        return SUCCESS

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: Any) -> int:
        self.calls.append(("wait", stream))
        return SUCCESS

    def cuEventSynchronize(self, event: Any) -> int:
        return ILLEGAL_ADDRESS if self.notes.fails or self.fails_later else SUCCESS

    cuStreamSynchronize = cuEventQuery = cuEventSynchronize

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        self.notes.attributes.append((attribute, value))
        return SUCCESS

    def cuModuleUnload(self, module: Any) -> int:
        self.notes.unloaded.append(self.notes.depth > 0)
        return SUCCESS

    def cuLaunchKernel(self, function: Any, *sizes: Any) -> int:
        assert self.notes.depth, "launched in no context"
        *numbers, stream, pointers, _ = sizes
        self.calls.append(("launch", stream))
        options = {"grid": tuple(numbers[:3]), "block": tuple(numbers[3:6]), "shared": numbers[6]}
        self.notes.run(_values(pointers), options | {"stream": stream})
        return ILLEGAL_ADDRESS if self.notes.fails else SUCCESS

    def cuPointerGetAttribute(self, result: Any, attribute: int, address: int) -> int:
        result._obj.value = 0
        return SUCCESS

    # graphs
    def cuGraphCreate(self, reference: Any, flags: Any) -> int:
        self._new(reference)
        self.graphs[self.handles] = []
        return SUCCESS

    def cuGraphAddKernelNode(self, node: Any, graph: Any, before: Any, count: Any, parameters: Any) -> int:
        kernel = parameters._obj
        pointers = (ctypes.c_void_p * self.arguments_of_nodes).from_address(kernel.arguments)
        options = {"grid": tuple(kernel.grid), "block": tuple(kernel.block), "shared": kernel.shared}
        values = _values(pointers)
        self.graphs[graph].append((values, options))
        self.edges.append(tuple(before[:count]))
        return self._new(node)

    def cuGraphInstantiateWithFlags(self, reference: Any, graph: Any, flags: Any) -> int:
        reference._obj.value = graph
        return SUCCESS

    def cuGraphLaunch(self, executable: Any, stream: Any) -> int:
        self.calls.append(("graph", stream))
        for values, options in self.graphs[executable]:
            self.notes.run(values, options)
        return SUCCESS


def _values(pointers: Any) -> tuple[int, ...]:
    """Return the arguments of a launch, each of at most 8 bytes, as integers."""
    return tuple(int.from_bytes(ctypes.string_at(pointer, 8), sys.byteorder) for pointer in pointers)
