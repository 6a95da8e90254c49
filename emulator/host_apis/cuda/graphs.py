"""Graphs of the CUDA runtime: nodes with their dependencies, added one by one or captured from streams."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from .kernels import Kernels
from .queues import INVALID_HANDLE, INVALID_VALUE, SUCCESS, store
from .unit import ProgramUnit

CAPTURE_UNSUPPORTED, UPDATE_FAILURE = 900, 910
_TOPOLOGY_CHANGED = 2
_MEMORY_BYTES, _MEMORY_ADDRESS = 32, 40
"""Offsets in cudaMemAllocNodeParams: bytesize, dptr."""
_KERNEL = struct.Struct("P6II4xPP")
"""cudaKernelNodeParams: function, grid, block, bytes of shared memory, arguments, options of the driver."""
_MEMSET = struct.Struct("PNIINN")
"""cudaMemsetParams: address, pitch, value, bytes of an element, width in elements, height."""
_TO_DEVICE = 1
_COPY_BYTES = 160
"""Size of cudaMemcpy3DParms."""
_RECORDED = ("cudaMemcpy", "cudaMemset", "cudaMemPrefetch", "cudaLaunchHostFunc", "cudaGraphLaunch")
"""Functions of a captured stream that run when its graph is launched, as launches of kernels do."""
Work = Callable[[], int]


@dataclass
class Graph:
    """The work of nodes by handle, and the nodes before each one."""

    work: dict[int, Work] = field(default_factory=dict)
    before: dict[int, set[int]] = field(default_factory=dict)

    def copy(self) -> Graph:
        return Graph(dict(self.work), {node: set(before) for node, before in self.before.items()})

    @property
    def shape(self) -> list[set[int]]:
        """For each node in order the numbers of the nodes before it."""
        numbers = {node: number for number, node in enumerate(self.work)}
        return [{numbers[node] for node in self.before[own]} for own in self.work]


class Graphs(Kernels):
    """Graphs, and the capture of streams into them."""

    def __init__(self, units: Sequence[ProgramUnit], report: Callable[[str], None]) -> None:
        super().__init__(units, report)
        self.graphs: dict[int, Graph] = {}
        self.executables: dict[int, Graph] = {}
        self.memory_of_graphs = set[int]()
        self.captures: dict[int, Graph] = {}
        """Graphs by the stream that is captured."""
        self.captured_events: dict[int, Graph] = {}

    def recorded(self, name: str, stream: int, function: Callable[..., int], own: tuple[Any, ...]) -> int | None:
        """Add a call to the graph of its stream, and return its code; None for a call that runs now."""
        graph = self.captures.get(stream)
        if name == "cudaStreamWaitEvent" and own[1] in self.captured_events:
            self.captures[stream] = self.captured_events[own[1]]
            return SUCCESS
        if graph is None:
            return None
        if name == "cudaEventRecord":
            self.captured_events[own[0]] = graph
            return SUCCESS
        if name in ("cudaStreamSynchronize", "cudaStreamQuery"):
            return CAPTURE_UNSUPPORTED
        if name == "cudaFreeAsync":  # a graph that is launched again uses the memory again
            self.findings.freed(own[0], self.place)
            return SUCCESS
        if name == "simtbedLaunch":
            own = self.with_copied_arguments(own)
        elif not name.startswith(_RECORDED):
            return None
        last = next(reversed(graph.work), None)
        self._add(graph, partial(function, *own), set() if last is None else {last})
        return SUCCESS

    def cudaStreamBeginCapture(self, stream: int | None, mode: int) -> int:
        if not stream or stream in self.captures:
            return CAPTURE_UNSUPPORTED
        if not (code := self._stream(stream)):
            self.captures[stream] = Graph()
        return code

    def cudaStreamEndCapture(self, stream: int | None, graph: int) -> int:
        captured = self.captures.get(stream or 0)
        if captured is None:
            return INVALID_VALUE
        self.captures = {own: other for own, other in self.captures.items() if other is not captured}
        self.captured_events = {own: other for own, other in self.captured_events.items() if other is not captured}
        return self._keep(graph, self.graphs, captured)

    def cudaStreamIsCapturing(self, stream: int | None, status: int) -> int:
        return self._stream(stream) or store(ctypes.c_int, status, int((stream or 0) in self.captures))

    def _keep(self, pointer: int, graphs: dict[int, Graph], graph: Graph) -> int:
        """Write a new handle of a graph."""
        graphs[handle := next(self.handles)] = graph
        return store(ctypes.c_void_p, pointer, handle)

    def cudaGraphCreate(self, graph: int, flags: int) -> int:
        return self._keep(graph, self.graphs, Graph())

    def cudaGraphClone(self, clone: int, graph: int | None) -> int:
        own = self.graphs.get(graph or 0)
        return INVALID_VALUE if own is None else self._keep(clone, self.graphs, own.copy())

    def cudaGraphDestroy(self, graph: int | None) -> int:
        return INVALID_VALUE if self.graphs.pop(graph or 0, None) is None else SUCCESS

    def cudaGraphGetNodes(self, graph: int | None, nodes: int | None, count: int) -> int:
        """Write the number of nodes, and with an array their handles."""
        own = self.graphs.get(graph or 0)
        if own is None:
            return INVALID_VALUE
        if nodes:
            space = ctypes.c_size_t.from_address(count).value
            for number, node in enumerate([*own.work][:space]):
                store(ctypes.c_void_p, nodes + 8 * number, node)
        return store(ctypes.c_size_t, count, len(own.work))

    def cudaGraphAddDependencies(self, graph: int | None, first: int, second: int, count: int) -> int:
        own = self.graphs.get(graph or 0)
        pairs = zip(_handles(first, count), _handles(second, count), strict=True)
        for before, after in pairs if own else ():
            if own is None or not {before, after} <= own.work.keys():
                return INVALID_VALUE
            own.before[after].add(before)
        return INVALID_VALUE if own is None else SUCCESS

    def _add(self, graph: Graph, work: Work, before: set[int]) -> int:
        """Add a node, and return its handle."""
        graph.work[node := next(self.handles)] = work
        graph.before[node] = before
        return node

    def _node(self, work: Work, node: int, graph: int | None, before: int | None, count: int) -> int:
        own = self.graphs.get(graph or 0)
        earlier = set(_handles(before, count))
        if own is None or not earlier <= own.work.keys():
            return INVALID_VALUE
        return store(ctypes.c_void_p, node, self._add(own, work, earlier))

    def cudaGraphAddEmptyNode(self, *place: Any) -> int:
        return self._node(lambda: SUCCESS, *place)

    def _launch_of(self, launch: int) -> Work:
        """Return the launch of a cudaKernelNodeParams."""
        function, *extents, shared, arguments, _ = _KERNEL.unpack(ctypes.string_at(launch, _KERNEL.size))
        own = (function, *extents, 1, 1, 1, shared, arguments, 0, 0)
        return partial(self.simtbedLaunch, *self.with_copied_arguments(own))

    def cudaGraphAddKernelNode(self, *call: Any) -> int:
        *place, launch = call
        return self._node(self._launch_of(launch), *place) if launch else INVALID_VALUE

    def cudaGraphExecKernelNodeSetParams(self, executable: int | None, node: int | None, launch: int) -> int:
        own = self.executables.get(executable or 0)
        if own is None or node not in own.work:
            return INVALID_VALUE
        own.work[node] = self._launch_of(launch)
        return SUCCESS

    def cudaGraphAddHostNode(self, *call: Any) -> int:
        *place, parameters = call
        function, data = struct.unpack("PP", ctypes.string_at(parameters, 16))
        return self._node(lambda: self.cudaLaunchHostFunc(None, function, data), *place)

    def cudaGraphAddMemsetNode(self, *call: Any) -> int:
        *place, parameters = call
        start, pitch, value, size, width, height = _MEMSET.unpack(ctypes.string_at(parameters, _MEMSET.size))
        row = (value & (1 << 8 * size) - 1).to_bytes(size, "little") * width
        source = ctypes.create_string_buffer(row, len(row))

        def work() -> int:
            starts = (start + line * pitch for line in range(height))
            codes = (self.cudaMemcpy(own, ctypes.addressof(source), len(row), _TO_DEVICE) for own in starts)
            return next((code for code in codes if code), SUCCESS)

        return self._node(work, *place)

    def cudaGraphAddMemcpyNode(self, *call: Any) -> int:
        *place, parameters = call
        copy = ctypes.create_string_buffer(ctypes.string_at(parameters, _COPY_BYTES), _COPY_BYTES)
        return self._node(lambda: self.cudaMemcpy3D(ctypes.addressof(copy)), *place)

    def cudaGraphAddMemcpyNode1D(self, *call: Any) -> int:
        return self._node(partial(self.cudaMemcpy, *call[4:]), *call[:4])

    def cudaGraphAddMemAllocNode(self, *call: Any) -> int:
        """Add a node whose memory exists from now on: its address is the same in each launch."""
        *place, memory = call
        size = ctypes.c_size_t.from_address(memory + _MEMORY_BYTES).value
        if code := self.cudaMalloc(memory + _MEMORY_ADDRESS, size):
            return code
        self.memory_of_graphs.add(ctypes.c_size_t.from_address(memory + _MEMORY_ADDRESS).value)
        return self._node(lambda: SUCCESS, *place)

    def cudaGraphAddMemFreeNode(self, *call: Any) -> int:
        *place, pointer = call
        return self._node(partial(self.cudaFree, pointer), *place)

    def cudaFree(self, pointer: int | None, *rest: Any) -> int:
        """Free memory. That of a graph remains for its next launch."""
        if pointer not in self.memory_of_graphs:
            return super().cudaFree(pointer, *rest)
        self.findings.freed(pointer, self.place)
        return SUCCESS

    cudaFreeAsync = cudaFree

    def cudaGraphExecUpdate(self, executable: int | None, graph: int | None, result: int) -> int:
        """Replace the work of each node by that of the node of another graph with the same dependencies, in the order of creation."""
        old, new = self.executables.get(executable or 0), self.graphs.get(graph or 0)
        if old is None or new is None:
            return INVALID_VALUE
        is_same = old.shape == new.shape
        if is_same:
            old.work = dict(zip(old.work, new.work.values(), strict=True))
        store(ctypes.c_int, result, 0 if is_same else _TOPOLOGY_CHANGED)
        return SUCCESS if is_same else UPDATE_FAILURE

    def cudaGraphInstantiate(self, executable: int, graph: int | None, flags: int) -> int:
        own = self.graphs.get(graph or 0)
        return INVALID_VALUE if own is None else self._keep(executable, self.executables, own.copy())

    cudaGraphInstantiateWithFlags = cudaGraphInstantiate

    def cudaGraphUpload(self, executable: int | None, stream: int | None) -> int:
        return self._stream(stream) if executable in self.executables else INVALID_VALUE

    def cudaGraphLaunch(self, executable: int | None, stream: int | None) -> int:
        own = self.executables.get(executable or 0)
        if own is None:
            return INVALID_VALUE
        if code := self._stream(stream):
            return code
        streams = self.streams
        self.streams = dict.fromkeys(streams, streams[stream or 0])  # not those of the capture
        try:
            codes = [own.work[node]() for node in TopologicalSorter(own.before).static_order()]
        finally:
            self.streams = streams
        return next((code for code in codes if code), SUCCESS)

    def cudaGraphExecDestroy(self, executable: int | None) -> int:
        return INVALID_HANDLE if self.executables.pop(executable or 0, None) is None else SUCCESS


def _handles(start: int | None, count: int) -> list[int]:
    """Return the handles in an array of the program."""
    return list((ctypes.c_size_t * count).from_address(start)) if start and count else []
