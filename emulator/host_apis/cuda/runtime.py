"""The functions of the CUDA runtime over host memory. An address of the device is the host's address of the same byte.

A function takes the arguments of its declaration, pointers as numbers, and returns an error code. Work is complete when it returns.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ...cuda_cpp.kernel import CudaKernel
from ...driver.memory import AddressSpace
from ...errors import CompileError, LaunchError, UnavailableError
from ...machine import device as devices
from ...machine.occupancy import occupancy
from ...runtime.memory import memory_of_process
from ...runtime.observing import overrides
from .declarations import runtime_functions
from .device_properties import attribute, properties, properties_type
from .host_findings import HostFindings
from .launches import ForeignMemory, Shape, launch
from .queues import INVALID_VALUE, SUCCESS, Queues, store
from .unit import ProgramUnit

(OUT_OF_MEMORY, INVALID_CONFIGURATION, INVALID_PITCH, INVALID_SYMBOL, INVALID_DIRECTION, INVALID_FUNCTION, INVALID_DEVICE) = (
    2, 9, 12, 13, 21, 98, 101,
)  # fmt: skip
ILLEGAL_ADDRESS, ALREADY_REGISTERED, NOT_REGISTERED = 700, 712, 713
_QUERIES = ("cudaGetLastError", "cudaPeekAtLastError")
_TO_DEVICE, _TO_HOST = (1, 3), (2, 3)
"""Kinds of copies to and from the device."""
MAX_KIND = 4
PITCH = 512
"""Bytes: alignment of the rows of `cudaMallocPitch`."""
VERSION = 12080


class Runtime(Queues):
    """The runtime of one program. units: its kernels by source. report: prints a line on stderr."""

    def __init__(self, units: Sequence[ProgramUnit], report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.units = units
        self.device = overrides("jit", devices.H200)[1]
        self.memory, self.pinned = AddressSpace(), AddressSpace()
        self.capacity = memory_of_process()
        self.kernels: dict[int, CudaKernel | None] = {}
        self.variables: dict[int, int] = {}  # sizes by address
        self.thread = threading.local()
        self.findings = HostFindings(report)
        self.sticky = SUCCESS
        """The error of a launch that makes all later calls fail."""
        self.unread: tuple[str, str] | None = None
        """Place and text of an error of a launch that the program has not read."""

    def implementations(self) -> dict[str, Callable[..., int]]:
        """Return a function for each entry of the table: arguments, then file and line of the call."""
        return {function.name: self._guarded(function.name) for function in runtime_functions()}

    def _guarded(self, name: str) -> Callable[..., int]:
        """Return a function that keeps its error code for `cudaGetLastError`, and ends the program after an exception."""
        function = getattr(self, name)

        def call(*arguments: Any) -> int:
            *own, file, line = arguments
            self.thread.place = file, line
            try:
                code = int(function(*own) or SUCCESS) or self.sticky
            except BaseException as error:  # it has no caller in Python
                self.end(error)
            if code and name not in _QUERIES:
                self.thread.last = code
            return code

        return call

    @property
    def place(self) -> str:
        """File and line of the current call, for a message."""
        file, line = self.thread.place
        return f"{ctypes.string_at(file).decode(errors='replace')}:{line}" if file else "unknown"

    def end(self, error: BaseException) -> None:
        """End the program: what was asked could not run."""
        flush_host_output()
        texts = str(error) if isinstance(error, CompileError | LaunchError | UnavailableError) else repr(error)
        self.report(f"simtbed: {self.place}: {texts}" if isinstance(error, LaunchError) else f"simtbed: {texts}")
        _flush()
        os._exit(3)

    # -------------------------------------------------------------- memory
    def cudaMalloc(self, pointer: int, size: int) -> int:
        if not pointer:
            return INVALID_VALUE
        return self._allocate(self.memory, pointer, size)

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
        return self.cudaMalloc(pointer, size) if size else INVALID_VALUE

    def cudaMallocHost(self, pointer: int, size: int, flags: int) -> int:
        return self._allocate(self.pinned, pointer, size) if pointer else INVALID_VALUE

    def cudaMallocAsync(self, pointer: int, size: int, stream: Any) -> int:
        return self.cudaMalloc(pointer, size)

    def cudaHostAlloc(self, pointer: int, size: int, flags: int) -> int:
        return self.cudaMallocHost(pointer, size, flags)

    def cudaMallocPitch(self, pointer: int, pitch: int, width: int, height: int) -> int:
        row = -(-width // PITCH) * PITCH
        return self.cudaMalloc(pointer, row * height) or store(ctypes.c_size_t, pitch, row)

    def cudaFreeAsync(self, pointer: int | None, stream: Any) -> int:
        return self.cudaFree(pointer)

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

    def cudaFree(self, pointer: int | None) -> int:
        return self._free(self.memory, pointer)

    def cudaFreeHost(self, pointer: int | None) -> int:
        return self._free(self.pinned, pointer)

    def _free(self, space: AddressSpace, pointer: int | None) -> int:
        if not pointer:
            return SUCCESS
        if not space.remove(pointer):
            reason = self.findings.explain(pointer, 0, space.range_of(pointer), "double free")
            self.findings.add(self.place, f"no allocation begins at this address: {reason}")
            return INVALID_VALUE
        self.findings.freed(pointer, self.place)
        return SUCCESS

    def range_of(self, address: int) -> tuple[int, int] | None:
        """Return start and size of the memory that contains an address and that a kernel can access."""
        return self.memory.range_of(address) or self.pinned.range_of(address)

    def accessible(self, address: int | None, size: int) -> bool:
        """Return whether a kernel can access all these bytes."""
        return address is not None and (self.memory.contains(address, size) or self.pinned.contains(address, size))

    def cudaMemcpy(self, to: int | None, source: int | None, size: int, kind: int) -> int:
        if not 0 <= kind <= MAX_KIND:
            return INVALID_DIRECTION
        if not size:
            return SUCCESS
        if not to or not source:
            return INVALID_VALUE
        for address, is_device in ((to, kind in _TO_DEVICE), (source, kind in _TO_HOST)):
            if not self.accessible(address, size) and (is_device or self.range_of(address)):
                return self._refused("a copy", address, size)
        ctypes.memmove(to, source, size)
        return SUCCESS

    def _refused(self, what: str, address: int, size: int) -> int:
        """Add the finding of an access outside of allocations, and return its code."""
        self.findings.add(self.place, f"{what}: {self.findings.explain(address, size, self.range_of(address))}")
        return INVALID_VALUE

    def cudaMemcpyAsync(self, to: int | None, source: int | None, size: int, kind: int, stream: Any) -> int:
        return self.cudaMemcpy(to, source, size, kind)

    def cudaMemset(self, pointer: int | None, value: int, size: int) -> int:
        if not size:
            return SUCCESS
        if pointer is None or not self.accessible(pointer, size):
            return self._refused("a memset", pointer or 0, size)
        ctypes.memset(pointer, value & 0xFF, size)
        return SUCCESS

    def cudaMemcpy2D(
        self, to: int | None, pitch: int, source: int | None, step: int, width: int, height: int, kind: int
    ) -> int:
        if width > pitch or width > step:
            return INVALID_PITCH
        rows = range(height if to and source else 0)
        codes = (self.cudaMemcpy((to or 0) + row * pitch, (source or 0) + row * step, width, kind) for row in rows)
        return next((code for code in codes if code), SUCCESS if to and source else INVALID_VALUE)

    def cudaMemcpy2DAsync(self, *arguments: Any) -> int:
        return self.cudaMemcpy2D(*arguments[:-1])

    def cudaMemsetAsync(self, pointer: int | None, value: int, size: int, stream: Any) -> int:
        return self.cudaMemset(pointer, value, size)

    def cudaMemset2D(self, pointer: int | None, pitch: int, value: int, width: int, height: int) -> int:
        if not pointer:
            return INVALID_VALUE
        codes = (self.cudaMemset(pointer + row * pitch, value, width) for row in range(height))
        return next((code for code in codes if code), SUCCESS)

    def cudaMemPrefetchAsync(self, pointer: int | None, size: int, device: int, stream: Any) -> int:
        return SUCCESS if self.accessible(pointer, size) else INVALID_VALUE

    def cudaMemAdvise(self, pointer: int | None, size: int, advice: int, device: int) -> int:
        return SUCCESS if self.accessible(pointer, size) else INVALID_VALUE

    # -------------------------------------------------------------- variables
    def simtbedRegisterVariable(self, unit: int, shadow: int, symbol: int, size: int) -> None:
        """Make the host's shadow of a variable its memory, with the initial contents."""
        owner = self.units[int(ctypes.string_at(unit))]
        contents = owner.initial_bytes(ctypes.string_at(symbol).decode(), size)
        ctypes.memmove(shadow, contents, size)
        self.variables[shadow] = size
        owner.addresses[ctypes.string_at(symbol).decode()] = shadow
        self.memory.register(shadow, size)

    def cudaMemcpyToSymbol(self, symbol: int, source: int | None, size: int, offset: int, kind: int) -> int:
        if symbol not in self.variables:
            return INVALID_SYMBOL
        return self.cudaMemcpy(symbol + offset, source, size, kind)

    def cudaMemcpyFromSymbol(self, to: int | None, symbol: int, size: int, offset: int, kind: int) -> int:
        if symbol not in self.variables:
            return INVALID_SYMBOL
        return self.cudaMemcpy(to, symbol + offset, size, kind)

    def cudaMemcpyToSymbolAsync(self, *arguments: Any) -> int:
        return self.cudaMemcpyToSymbol(*arguments[:-1])

    def cudaMemcpyFromSymbolAsync(self, *arguments: Any) -> int:
        return self.cudaMemcpyFromSymbol(*arguments[:-1])

    def cudaGetSymbolAddress(self, pointer: int, symbol: int) -> int:
        return store(ctypes.c_void_p, pointer, symbol) if symbol in self.variables else INVALID_SYMBOL

    def cudaGetSymbolSize(self, size: int, symbol: int) -> int:
        return store(ctypes.c_size_t, size, self.variables[symbol]) if symbol in self.variables else INVALID_SYMBOL

    # -------------------------------------------------------------- device
    def cudaGetDeviceProperties(self, pointer: int | None, device: int) -> int:
        if device or not pointer:
            return INVALID_DEVICE if device else INVALID_VALUE
        kind = properties_type()
        target = kind()
        for name, value in properties(self.device, self.capacity).items():
            if isinstance(value, tuple):
                getattr(target, name)[:] = value
            else:
                setattr(target, name, value)
        ctypes.memmove(pointer, ctypes.addressof(target), ctypes.sizeof(kind))
        return SUCCESS

    def cudaDeviceGetAttribute(self, value: int, number: int, device: int) -> int:
        if device:
            return INVALID_DEVICE
        return store(ctypes.c_int, value, attribute(self.device, self.capacity, number))

    def cudaSetDeviceFlags(self, flags: int) -> int:
        return SUCCESS

    def cudaThreadSynchronize(self) -> int:
        return SUCCESS

    def cudaThreadExit(self) -> int:
        return self.cudaDeviceReset()

    def cudaDeviceSetCacheConfig(self, config: int) -> int:
        return SUCCESS

    def cudaDeviceSetSharedMemConfig(self, config: int) -> int:
        return SUCCESS

    def cudaDeviceSetLimit(self, limit: int, value: int) -> int:
        return SUCCESS

    def cudaDeviceGetStreamPriorityRange(self, least: int | None, greatest: int | None) -> int:
        for pointer, value in ((least, 0), (greatest, -5)):
            if pointer:
                store(ctypes.c_int, pointer, value)
        return SUCCESS

    def cudaRuntimeGetVersion(self, version: int) -> int:
        return store(ctypes.c_int, version, VERSION)

    def cudaDriverGetVersion(self, version: int) -> int:
        return store(ctypes.c_int, version, VERSION)

    def cudaProfilerStart(self) -> int:
        return SUCCESS

    def cudaProfilerStop(self) -> int:
        return SUCCESS

    def cudaGetDeviceCount(self, count: int) -> int:
        return store(ctypes.c_int, count, 1)

    def cudaGetDevice(self, device: int) -> int:
        return store(ctypes.c_int, device, 0)

    def cudaSetDevice(self, device: int) -> int:
        return INVALID_DEVICE if device else SUCCESS

    def cudaDeviceSynchronize(self) -> int:
        return SUCCESS

    def cudaDeviceReset(self) -> int:
        for space in (self.memory, self.pinned):
            for start in [start for start in space.starts if start not in self.variables]:
                space.remove(start)
                self.findings.freed(start, self.place)
        return SUCCESS

    def cudaGetLastError(self) -> int:
        code = self.cudaPeekAtLastError()
        self.thread.last = SUCCESS
        return code

    def cudaPeekAtLastError(self) -> int:
        self.unread = None
        return int(getattr(self.thread, "last", SUCCESS))

    # -------------------------------------------------------------- kernels
    def simtbedRegisterKernel(self, unit: int, stub: int, symbol: int) -> None:
        """Register a kernel. unit: address of the number of its source, as text."""
        owner = self.units[int(ctypes.string_at(unit))]
        self.kernels[stub] = owner.kernel(ctypes.string_at(symbol).decode())

    def simtbedLaunch(self, stub: int, *how: int) -> int:
        """Launch a kernel. how: grid and block, bytes of dynamic shared memory, address of the arguments."""
        *extents, shared, arguments, cooperative = how
        grid, block = tuple(extents[:3]), tuple(extents[3:])
        code = self._launched(stub, Shape(grid, block, shared, bool(cooperative)), arguments)
        if code:
            self.unread = self.place, f"error {code} of this launch is not read: call cudaGetLastError()"
        return code

    def _launched(self, stub: int, shape: Shape, arguments: int) -> int:
        """Launch a kernel, and return its code."""
        kernel = self.kernels.get(stub)
        if kernel is None:
            return INVALID_FUNCTION
        if self.sticky:
            return self.sticky
        extents = (*shape.grid, *shape.block)
        limits = zip(extents, (*self.device.grid_extents, *self.device.block_extents), strict=True)
        if not all(0 < extent <= limit for extent, limit in limits):
            return INVALID_CONFIGURATION
        if math.prod(shape.block) > self.device.threads_per_block:
            return INVALID_CONFIGURATION
        if shape.shared > self.device.shared_per_block_optin:
            return INVALID_VALUE
        flush_host_output()
        try:
            launch(kernel, shape, arguments, self.range_of, self.device)
        except ForeignMemory as error:
            reason = self.findings.explain(error.address, 0, None)
            self.findings.add(self.place, f"{kernel.__name__}: {error.parameter} is not memory of the device: {reason}")
            self.sticky = ILLEGAL_ADDRESS
        return self.sticky

    def cudaFuncSetAttribute(self, stub: int, number: int, value: int) -> int:
        return SUCCESS if stub in self.kernels else INVALID_FUNCTION

    def cudaFuncSetCacheConfig(self, stub: int, config: int) -> int:
        return SUCCESS if stub in self.kernels else INVALID_FUNCTION

    def cudaFuncSetSharedMemConfig(self, stub: int, config: int) -> int:
        return SUCCESS if stub in self.kernels else INVALID_FUNCTION

    def cudaOccupancyMaxActiveBlocksPerMultiprocessor(self, blocks: int, stub: int, threads: int, shared: int) -> int:
        if (kernel := self.kernels.get(stub)) is None:
            return INVALID_FUNCTION
        if not 0 < threads <= self.device.threads_per_block:
            return INVALID_VALUE
        return store(ctypes.c_int, blocks, self._active_blocks(kernel, threads, shared))

    def cudaOccupancyMaxPotentialBlockSize(self, grid: int, block: int, stub: int, shared: int, limit: int) -> int:
        """Write the largest block with the most threads of an SM, and the blocks of the device."""
        if (kernel := self.kernels.get(stub)) is None:
            return INVALID_FUNCTION
        largest = min(limit or self.device.threads_per_block, self.device.threads_per_block)
        sizes = range(32, largest + 1, 32) if largest >= 32 else (largest,)
        threads = max(sizes, key=lambda size: (size * self._active_blocks(kernel, size, shared), size))
        blocks = self.device.sms * self._active_blocks(kernel, threads, shared)
        return store(ctypes.c_int, grid, blocks) or store(ctypes.c_int, block, threads)

    def _active_blocks(self, kernel: CudaKernel, threads: int, shared: int) -> int:
        """Return the resident blocks of an SM. No compiler gives the registers: they do not limit it."""
        return occupancy(self.device, threads, 0, kernel.declared_bytes("shared") + shared).active_blocks

    def simtbedEnd(self, status: int) -> None:
        """Write what Python has in its buffers: the process ends without the interpreter's exit. Findings make it fail."""
        if self.unread is not None:
            self.findings.add(*self.unread)
        self.findings.finish()
        _flush()
        if self.findings.count and not status:
            flush_host_output()
            os._exit(1)


def flush_host_output() -> None:
    """Write the buffers of C's streams, so that the output of a kernel follows that of the host."""
    ctypes.CDLL(None).fflush(None)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
