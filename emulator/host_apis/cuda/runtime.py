"""The functions of the CUDA runtime over host memory. An address of the device is the host's address of the same byte.

A function takes the arguments of its declaration, pointers as numbers, and returns an error code. Work is complete when it returns.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ...driver.memory import AddressSpace
from ...errors import CompileError, LaunchError, UnavailableError
from ...machine import device as devices
from ...runtime.memory import memory_of_process
from ...runtime.observing import overrides
from .declarations import runtime_functions
from .launches import launch
from .unit import ProgramUnit

(SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, INVALID_DIRECTION, INVALID_FUNCTION, INVALID_DEVICE) = (
    0, 1, 2, 9, 21, 98, 101,
)  # fmt: skip
_QUERIES = ("cudaGetLastError", "cudaPeekAtLastError")
_TO_DEVICE, _TO_HOST = (1, 3), (2, 3)
"""Kinds of copies to and from the device."""
MAX_KIND = 4


class Runtime:
    """The runtime of one program. units: its kernels by source. report: prints a line on stderr."""

    def __init__(self, units: Sequence[ProgramUnit], report: Callable[[str], None]) -> None:
        self.units, self.report = units, report
        self.device = overrides("jit", devices.H200)[1]
        self.memory, self.pinned = AddressSpace(), AddressSpace()
        self.capacity = memory_of_process()
        self.kernels: dict[int, Any] = {}
        self.thread = threading.local()

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
                code = int(function(*own) or SUCCESS)
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
        return SUCCESS

    def cudaMallocManaged(self, pointer: int, size: int, flags: int) -> int:
        return self.cudaMalloc(pointer, size) if size else INVALID_VALUE

    def cudaMallocHost(self, pointer: int, size: int, flags: int) -> int:
        return self._allocate(self.pinned, pointer, size) if pointer else INVALID_VALUE

    def cudaFree(self, pointer: int | None) -> int:
        return SUCCESS if not pointer or self.memory.remove(pointer) else INVALID_VALUE

    def cudaFreeHost(self, pointer: int | None) -> int:
        return SUCCESS if not pointer or self.pinned.remove(pointer) else INVALID_VALUE

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
                return INVALID_VALUE
        ctypes.memmove(to, source, size)
        return SUCCESS

    def cudaMemcpyAsync(self, to: int | None, source: int | None, size: int, kind: int, stream: Any) -> int:
        return self.cudaMemcpy(to, source, size, kind)

    def cudaMemset(self, pointer: int | None, value: int, size: int) -> int:
        if not size:
            return SUCCESS
        if pointer is None or not self.accessible(pointer, size):
            return INVALID_VALUE
        ctypes.memset(pointer, value & 0xFF, size)
        return SUCCESS

    # -------------------------------------------------------------- device
    def cudaGetDeviceCount(self, count: int) -> int:
        return _store(ctypes.c_int, count, 1)

    def cudaGetDevice(self, device: int) -> int:
        return _store(ctypes.c_int, device, 0)

    def cudaSetDevice(self, device: int) -> int:
        return INVALID_DEVICE if device else SUCCESS

    def cudaDeviceSynchronize(self) -> int:
        return SUCCESS

    def cudaDeviceReset(self) -> int:
        for space in (self.memory, self.pinned):
            for start in [*space.starts]:
                space.remove(start)
        return SUCCESS

    def cudaGetLastError(self) -> int:
        code = self.cudaPeekAtLastError()
        self.thread.last = SUCCESS
        return code

    def cudaPeekAtLastError(self) -> int:
        return int(getattr(self.thread, "last", SUCCESS))

    # -------------------------------------------------------------- kernels
    def simtbedRegisterKernel(self, unit: int, stub: int, symbol: int) -> None:
        """Register a kernel. unit: address of the number of its source, as text."""
        owner = self.units[int(ctypes.string_at(unit))]
        self.kernels[stub] = owner.kernel(ctypes.string_at(symbol).decode())

    def simtbedLaunch(self, stub: int, *how: int) -> int:
        """Launch a kernel. how: grid and block, bytes of dynamic shared memory, address of the arguments."""
        *extents, shared, arguments = how
        grid, block = tuple(extents[:3]), tuple(extents[3:])
        kernel = self.kernels.get(stub)
        if kernel is None:
            return INVALID_FUNCTION
        limits = zip((*grid, *block), (*self.device.grid_extents, *self.device.block_extents), strict=True)
        threads = block[0] * block[1] * block[2]
        if not all(0 < extent <= limit for extent, limit in limits) or threads > self.device.threads_per_block:
            return INVALID_CONFIGURATION
        if shared > self.device.shared_per_block_optin:
            return INVALID_VALUE
        flush_host_output()
        launch(kernel, grid, block, shared, arguments, self.range_of, self.device)
        return SUCCESS

    def simtbedEnd(self) -> None:
        """Write what Python has in its buffers: the process ends without the interpreter's exit."""
        _flush()


def _store(type: Any, pointer: int | None, value: Any) -> int:
    """Write a value for the program. Return the code for a null pointer, else success."""
    if not pointer:
        return INVALID_VALUE
    type.from_address(pointer).value = value
    return SUCCESS


def flush_host_output() -> None:
    """Write the buffers of C's streams, so that the output of a kernel follows that of the host."""
    ctypes.CDLL(None).fflush(None)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
