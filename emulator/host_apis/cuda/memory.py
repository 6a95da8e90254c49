"""Memory of the CUDA runtime: allocations, copies and memsets. An address of the device is the host's address of the same byte."""

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from ...cuda_cpp.kernel import WORDS
from ...driver.memory import AddressSpace
from ...runtime.host_findings import HostFindings, span_of
from ...runtime.memory import memory_of_process
from ...runtime.result import in_words
from ...runtime.stream_races import unordered_copy
from ...runtime.streams import begin_launch
from .arena import ArenaSpace
from .queues import INVALID_VALUE, SUCCESS, Queues, store

(OUT_OF_MEMORY, INVALID_PITCH, INVALID_DIRECTION) = 2, 12, 21
ALREADY_REGISTERED, NOT_REGISTERED = 712, 713
_TO_DEVICE, _TO_HOST = (1, 3), (2, 3)
"""Kinds of copies to and from the device."""
MAX_KIND = 4
PITCH = 512
"""Bytes: alignment of the rows of `cudaMallocPitch`."""
_UNREGISTERED, _HOST, _DEVICE, _MANAGED = range(4)
"""cudaMemoryType."""


class Memory(Queues):
    """Allocations of the device, and memory of the host that kernels can access."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.memory, self.pinned = ArenaSpace(), ArenaSpace()
        self.capacity = memory_of_process()
        self.managed: set[int] = set()
        self.variables: dict[int, int] = {}
        """Sizes of variables outside of functions by address."""
        self.findings = HostFindings()

    # rest: the pool and stream of an asynchronous function
    def cudaMalloc(self, pointer: int, size: int, *rest: Any) -> int:
        if not pointer:
            return INVALID_VALUE
        return self._allocate(self.memory, pointer, size)

    cudaMallocAsync = cudaMallocFromPoolAsync = cudaMalloc

    def _allocate(self, space: AddressSpace, pointer: int, size: int) -> int:
        if not size:
            ctypes.c_void_p.from_address(pointer).value = None
            return SUCCESS
        if size > self.capacity - self.memory.used - self.pinned.used:
            return OUT_OF_MEMORY
        try:
            address = space.allocate(size)
        except (MemoryError, ValueError):  # NumPy has a limit of its own
            return OUT_OF_MEMORY
        ctypes.c_void_p.from_address(pointer).value = address
        self.findings.allocated(address, size, self.place)
        return SUCCESS

    def cudaMallocManaged(self, pointer: int, size: int, flags: int) -> int:
        code = self.cudaMalloc(pointer, size) if size else INVALID_VALUE
        if not code:
            self.managed.add(start := ctypes.c_size_t.from_address(pointer).value)
            self.memory.written.written_by_the_host(start)
        return code

    def cudaMallocHost(self, pointer: int, size: int, flags: int) -> int:
        return self._allocate(self.pinned, pointer, size) if pointer else INVALID_VALUE

    cudaHostAlloc = cudaMallocHost

    def cudaMallocPitch(self, pointer: int, pitch: int, width: int, height: int) -> int:
        row = -(-width // PITCH) * PITCH
        return self.cudaMalloc(pointer, row * height) or store(ctypes.c_size_t, pitch, row)

    def cudaHostRegister(self, pointer: int | None, size: int, flags: int) -> int:
        if not pointer or not size:
            return INVALID_VALUE
        return SUCCESS if self.pinned.register(pointer, size) else ALREADY_REGISTERED

    def cudaHostUnregister(self, pointer: int | None) -> int:
        return SUCCESS if pointer and self.pinned.remove(pointer) else NOT_REGISTERED

    def cudaHostGetDevicePointer(self, pointer: int, host: int | None, flags: int) -> int:
        if not host or not self.range_of(host):
            return INVALID_VALUE
        return store(ctypes.c_void_p, pointer, host)

    def cudaMemGetInfo(self, free: int, total: int) -> int:
        rest = max(0, self.capacity - self.memory.used)
        return store(ctypes.c_size_t, free, rest) or store(ctypes.c_size_t, total, self.capacity)

    def cudaFree(self, pointer: int | None, *rest: Any) -> int:
        return self._free(self.memory, pointer)

    cudaFreeAsync = cudaFree

    def cudaFreeHost(self, pointer: int | None) -> int:
        return self._free(self.pinned, pointer)

    def _free(self, space: AddressSpace, pointer: int | None) -> int:
        if not pointer:
            return SUCCESS
        if not space.remove(pointer):
            reason, origin = self.findings.explain(pointer, 0, space.range_of(pointer), "double free")
            self.findings.add("free", self.place, f"no allocation begins at this address: {reason}", origin)
            return INVALID_VALUE
        self.findings.freed(pointer, self.place)
        return SUCCESS

    def range_of(self, address: int) -> tuple[int, int] | None:
        """Return start and size of the memory that contains an address and that a kernel can access."""
        return self.memory.range_of(address) or self.pinned.range_of(address)

    def whole(self, start: int, unit: int) -> int:
        """Return the size of memory as a multiple of a unit: up into the space after an allocation, down in the host's memory."""
        size = (self.range_of(start) or (0, 0))[1]
        rest = size % unit
        return size - rest + unit * bool(rest and start in self.memory.owners)

    def accessible(self, address: int | None, size: int) -> bool:
        """Return whether a kernel can access all these bytes."""
        return address is not None and (self.memory.contains(address, size) or self.pinned.contains(address, size))

    def cudaMemcpy(self, to: int | None, source: int | None, size: int, kind: int, *rest: Any) -> int:
        if not 0 <= kind <= MAX_KIND:
            return INVALID_DIRECTION
        if not size:
            return SUCCESS
        if not to or not source:
            return INVALID_VALUE
        for address, is_device in ((to, kind in _TO_DEVICE), (source, kind in _TO_HOST)):
            if not self.accessible(address, size) and (is_device or self.range_of(address)):
                return self._refused("a copy", address, size)
        if (missing := self.memory.written.unwritten(source, size)) and not self.accessible(to, size):
            _, origin = self.findings.explain(source, size, self.range_of(source))
            self.findings.add_unwritten(self.place, missing, size, related=origin)
        ctypes.memmove(to, source, size)
        self.memory.written.write(to, size, source)
        self._order({to: True, source: False}, size, *rest)
        return SUCCESS

    cudaMemcpyAsync = cudaMemcpy

    def _order(self, addresses: dict[int, bool], size: int, stream: int | None = None) -> None:
        """Order a copy or memset behind the work of its stream, and record its races with the work of others. addresses: whether each
        is written."""
        queue = self.streams.get(stream or 0)
        begin_launch(queue)
        for address, writes in addresses.items() if self.findings.are_recorded else ():
            start, whole = self.memory.range_of(address) or (0, 0)
            if start in self.memory.written.allocations:
                section = slice(address - start, address - start + size)
                memory = self.memory.written.allocations[start]
                races = unordered_copy(memory, whole, section, writes, span_of(self.place), queue)
                for race in in_words(races, WORDS):
                    self.findings.record(race)

    def _refused(self, what: str, address: int, size: int) -> int:
        """Add the finding of an access outside of allocations, and return its code."""
        reason, origin = self.findings.explain(address, size, self.range_of(address))
        self.findings.add("copy", self.place, f"{what}: {reason}", origin)
        return INVALID_VALUE

    def simtbedAccess(self, pointer: int | None, size: int, writes: int) -> int:
        """Check memory that a function of a library reads or writes as a whole."""
        if not size:
            return SUCCESS
        if not self.accessible(pointer, size):
            return self._refused("a library", pointer or 0, size)
        if pointer and writes and (place := self.range_of(pointer)):
            self.memory.written.written_by_the_host(place[0])
        return SUCCESS

    def cudaMemset(self, pointer: int | None, value: int, size: int, *rest: Any) -> int:
        if not size:
            return SUCCESS
        if pointer is None or not self.accessible(pointer, size):
            return self._refused("a memset", pointer or 0, size)
        ctypes.memset(pointer, value & 0xFF, size)
        self.memory.written.write(pointer, size)
        self._order({pointer: True}, size, *rest)
        return SUCCESS

    cudaMemsetAsync = cudaMemset

    def cudaMemcpy2D(
        self, to: int | None, pitch: int, source: int | None, step: int, width: int, height: int, kind: int, *rest: Any
    ) -> int:
        if width > pitch or width > step:
            return INVALID_PITCH
        rows = range(height if to and source else 0)
        codes = (
            self.cudaMemcpy((to or 0) + row * pitch, (source or 0) + row * step, width, kind, *rest) for row in rows
        )
        return next((code for code in codes if code), SUCCESS if to and source else INVALID_VALUE)

    cudaMemcpy2DAsync = cudaMemcpy2D

    def cudaMemset2D(self, pointer: int | None, pitch: int, value: int, width: int, height: int, *rest: Any) -> int:
        if not pointer:
            return INVALID_VALUE
        codes = (self.cudaMemset(pointer + row * pitch, value, width, *rest) for row in range(height))
        return next((code for code in codes if code), SUCCESS)

    cudaMemset2DAsync = cudaMemset2D

    def simtbedMalloc3D(self, pointer: int, extent: int) -> int:
        width, height, depth = struct.unpack("3N", ctypes.string_at(extent, 24))
        return (
            self.cudaMallocPitch(pointer, pointer + 8, width, height * depth)
            or store(ctypes.c_size_t, pointer + 16, width)
            or store(ctypes.c_size_t, pointer + 24, height)
        )

    def simtbedMemset3D(self, pointer: int, value: int, extent: int) -> int:
        start, pitch, _, rows = struct.unpack("P3N", ctypes.string_at(pointer, 32))
        width, height, depth = struct.unpack("3N", ctypes.string_at(extent, 24))
        codes = (self.cudaMemset2D(start + z * pitch * rows, pitch, value, width, height) for z in range(depth))
        return next((code for code in codes if code), SUCCESS)

    def cudaMemcpyPeer(self, to: int | None, device: int, source: int | None, other: int, size: int, *rest: Any) -> int:
        return self.cudaMemcpy(to, source, size, 3, *rest)

    cudaMemcpyPeerAsync = cudaMemcpyPeer

    def cudaHostGetFlags(self, flags: int, pointer: int | None) -> int:
        return store(ctypes.c_uint, flags, 2) if pointer and self.pinned.range_of(pointer) else INVALID_VALUE

    def cudaPointerGetAttributes(self, attributes: int | None, pointer: int | None) -> int:
        """Write the kind of memory, the device, and the addresses on the device and the host."""
        if not attributes or not pointer:
            return INVALID_VALUE
        kind, own = _UNREGISTERED, self.memory.range_of(pointer)
        if own is not None:
            kind = _MANAGED if own[0] in self.managed else _DEVICE
        elif self.pinned.range_of(pointer):
            kind = _HOST
        device = pointer if kind else 0
        host = 0 if kind == _DEVICE else pointer
        ctypes.memmove(attributes, struct.pack("iiPP", kind, -2 if not kind else 0, device, host), 24)
        return SUCCESS

    def cudaStreamAttachMemAsync(self, stream: Any, pointer: int | None, length: int, flags: int) -> int:
        return self._stream(stream) or (SUCCESS if pointer and self.accessible(pointer, length) else INVALID_VALUE)

    def cudaMemPrefetchAsync(self, pointer: int | None, size: int, *rest: Any) -> int:
        return SUCCESS if self.accessible(pointer, size) else INVALID_VALUE

    cudaMemAdvise = cudaMemPrefetchAsync
