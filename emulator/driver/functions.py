"""Functions of the CUDA driver with the calling convention of `cuda.bindings.driver`: a tuple of the result code and the results.

Work is complete when a function returns, so that streams have no queues. Modules, graphs, IPC and virtual memory are missing.
"""

import ctypes
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as bindings

from ..errors import LaunchError
from ..machine.device import Device
from ..machine.occupancy import occupancy
from ..runtime.host_findings import note_read
from ..runtime.memory import memory_of_process
from .attributes import attributes
from .memory import AddressSpace

VERSION = 13000
"""CUDA 13.0, as `cuDriverGetVersion` reports it."""
CONTEXT = 0x51B7BED
"""The handle of the primary context of the device."""
_CODE = bindings.CUresult
_SUCCESS = _CODE.CUDA_SUCCESS
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)

Answer = tuple[Any, ...]


class Driver:
    """The driver of one emulated device. Types and constants are those of `cuda.bindings.driver`."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.memory, self.pinned = AddressSpace(), AddressSpace()
        self._capacity = memory_of_process()
        self._handles = itertools.count(0x1000)
        self._streams: set[int] = set()
        self._events: dict[int, float | None] = {}
        self._untimed: set[int] = set()
        self._thread = threading.local()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cu") and name[2:3].isupper():
            raise LaunchError(f"the driver function {name} is not emulated")
        return getattr(bindings, name)

    def _complete(self, *arguments: Any) -> Answer:
        return (_SUCCESS,)

    cuInit = cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxReset = cuCtxSynchronize = cuProfilerStart = (
        cuProfilerStop
    ) = _complete
    cuStreamSynchronize = cuStreamWaitEvent = cuEventQuery = cuEventSynchronize = _complete
    cuKernelSetCacheConfig = cuKernelSetAttribute = _complete

    # -------------------------------------------------------------- device and contexts

    def cuDriverGetVersion(self) -> Answer:
        return _SUCCESS, VERSION

    def cuDeviceGetCount(self) -> Answer:
        return _SUCCESS, 1

    def cuDeviceGetAttribute(self, attribute: Any, device: Any) -> Answer:
        name = bindings.CUdevice_attribute(attribute).name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        return _SUCCESS, attributes(self.device).get(name, 0)

    def cuDeviceCanAccessPeer(self, device: Any, peer: Any) -> Answer:
        return _SUCCESS, 0

    def cuDevicePrimaryCtxRetain(self, device: Any) -> Answer:
        return _SUCCESS, bindings.CUcontext(CONTEXT)

    @property
    def stack(self) -> list[int]:
        """The contexts of this thread."""
        contexts: list[int] | None = getattr(self._thread, "contexts", None)
        if contexts is None:
            contexts = self._thread.contexts = []
        return contexts

    def cuCtxGetCurrent(self) -> Answer:
        return _SUCCESS, bindings.CUcontext(self.stack[-1] if self.stack else 0)

    def cuCtxSetCurrent(self, context: Any) -> Answer:
        self.stack[-1:] = [int(context)] if int(context) else []
        return (_SUCCESS,)

    def cuCtxCreate(self, *arguments: Any) -> Answer:
        context = next(self._handles)
        self.stack.append(context)
        return _SUCCESS, bindings.CUcontext(context)

    def cuCtxDestroy(self, context: Any) -> Answer:
        if self.stack[-1:] == [int(context)]:
            del self.stack[-1]
        return (_SUCCESS,)

    def cuCtxGetDevice(self) -> Answer:
        if not self.stack:
            return _CODE.CUDA_ERROR_INVALID_CONTEXT, None
        return _SUCCESS, bindings.CUdevice(0)

    def cuCtxPushCurrent(self, context: Any) -> Answer:
        self.stack.append(int(context))
        return (_SUCCESS,)

    def cuCtxPopCurrent(self) -> Answer:
        if not self.stack:
            return _CODE.CUDA_ERROR_INVALID_CONTEXT, None
        return _SUCCESS, bindings.CUcontext(self.stack.pop())

    def cuCtxEnablePeerAccess(self, peer: Any, flags: int) -> Answer:
        return (_CODE.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,)

    # -------------------------------------------------------------- memory
    def cuMemGetInfo(self) -> Answer:
        return _SUCCESS, max(0, self._capacity - self.memory.used), self._capacity

    def cuMemAlloc(self, size: int, flags: int = 0) -> Answer:
        if size <= 0:
            return _CODE.CUDA_ERROR_INVALID_VALUE, None
        if size > self._capacity - self.memory.used:
            return _CODE.CUDA_ERROR_OUT_OF_MEMORY, None
        try:
            return _SUCCESS, bindings.CUdeviceptr(self.memory.allocate(int(size)))
        except MemoryError:
            return _CODE.CUDA_ERROR_OUT_OF_MEMORY, None

    cuMemAllocManaged = cuMemAlloc

    def cuMemFree(self, pointer: Any) -> Answer:
        return (_SUCCESS if self.memory.remove(int(pointer)) else _CODE.CUDA_ERROR_INVALID_VALUE,)

    def cuMemHostAlloc(self, size: int, flags: int) -> Answer:
        try:
            return _SUCCESS, self.pinned.allocate(int(size))
        except MemoryError:
            return _CODE.CUDA_ERROR_OUT_OF_MEMORY, None

    def cuMemFreeHost(self, pointer: Any) -> Answer:
        return (_SUCCESS if self.pinned.remove(int(pointer)) else _CODE.CUDA_ERROR_INVALID_VALUE,)

    def cuMemHostRegister(self, pointer: Any, size: int, flags: int) -> Answer:
        registered = self.pinned.register(int(pointer), int(size))
        return (_SUCCESS if registered else _CODE.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,)

    def cuMemHostUnregister(self, pointer: Any) -> Answer:
        removed = self.pinned.remove(int(pointer))
        return (_SUCCESS if removed else _CODE.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,)

    def cuMemHostGetDevicePointer(self, pointer: Any, flags: int) -> Answer:
        return _SUCCESS, bindings.CUdeviceptr(int(pointer))

    def cuMemGetAddressRange(self, pointer: Any) -> Answer:
        place = self.range_of(int(pointer))
        if place is None:
            return _CODE.CUDA_ERROR_NOT_FOUND, None, None
        return _SUCCESS, bindings.CUdeviceptr(place[0]), place[1]

    def cuPointerGetAttribute(self, attribute: Any, pointer: Any) -> Answer:
        if attribute != bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            raise LaunchError(f"cuPointerGetAttribute: {attribute} is not emulated")
        if self.range_of(int(pointer)) is None:
            return _CODE.CUDA_ERROR_INVALID_VALUE, None
        return _SUCCESS, bindings.CUdeviceptr(int(pointer))

    def range_of(self, address: int) -> tuple[int, int] | None:
        """Return start and size of the memory that contains an address and that a kernel can access."""
        return self.memory.range_of(address) or self.pinned.range_of(address)

    def available(self, address: int) -> int:
        """Return the bytes from an address to the end of its memory; 0 outside of all memory."""
        place = self.range_of(address)
        return 0 if place is None else place[0] + place[1] - address

    def _accessible(self, address: int, size: int) -> bool:
        return self.memory.contains(address, size) or self.pinned.contains(address, size)

    def _move(self, to: Any, source: Any, size: int, *device: Any) -> Answer:
        """Copy bytes. device: the addresses that must be the device's."""
        if not all(self._accessible(int(address), int(size)) for address in device):
            return (_CODE.CUDA_ERROR_INVALID_VALUE,)
        if size:
            ctypes.memmove(int(to), int(source), int(size))
            self.memory.written.write(int(to), int(size), int(source))
        return (_SUCCESS,)

    def cuMemcpyHtoD(self, to: Any, source: Any, size: int, stream: Any = None) -> Answer:
        return self._move(to, source, size, to)

    def cuMemcpyDtoH(self, to: Any, source: Any, size: int, stream: Any = None) -> Answer:
        note_read(self.memory.written, int(source), int(size), "copy_to_host")
        return self._move(to, source, size, source)

    def cuMemcpyDtoD(self, to: Any, source: Any, size: int, stream: Any = None) -> Answer:
        return self._move(to, source, size, to, source)

    cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuMemcpyDtoDAsync = cuMemcpyHtoD, cuMemcpyDtoH, cuMemcpyDtoD

    def cuMemsetD8(self, pointer: Any, value: int, count: int, stream: Any = None) -> Answer:
        if not self._accessible(int(pointer), int(count)) or not 0 <= int(value) < 256:
            return (_CODE.CUDA_ERROR_INVALID_VALUE,)
        if count:
            ctypes.memset(int(pointer), int(value), int(count))
            self.memory.written.write(int(pointer), int(count))
        return (_SUCCESS,)

    cuMemsetD8Async = cuMemsetD8

    # -------------------------------------------------------------- streams and events
    def cuStreamCreate(self, flags: int) -> Answer:
        handle = next(self._handles)
        self._streams.add(handle)
        return _SUCCESS, bindings.CUstream(handle)

    def cuStreamDestroy(self, stream: Any) -> Answer:
        if int(stream) not in self._streams:
            return (_CODE.CUDA_ERROR_INVALID_HANDLE,)
        self._streams.remove(int(stream))
        return (_SUCCESS,)

    def cuStreamAddCallback(self, stream: Any, callback: Any, data: Any, flags: int) -> Answer:
        """Call a function from another thread, as the driver does."""
        function = _Callback(int(callback))
        thread = threading.Thread(target=function, args=(int(stream or 0), int(_SUCCESS), int(data)))
        thread.start()
        thread.join()
        return (_SUCCESS,)

    def cuEventCreate(self, flags: int) -> Answer:
        handle = next(self._handles)
        self._events[handle] = None
        if flags & int(bindings.CUevent_flags.CU_EVENT_DISABLE_TIMING):
            self._untimed.add(handle)
        return _SUCCESS, bindings.CUevent(handle)

    def cuEventDestroy(self, event: Any) -> Answer:
        self._untimed.discard(int(event))
        destroyed = self._events.pop(int(event), 0) != 0
        return (_SUCCESS if destroyed else _CODE.CUDA_ERROR_INVALID_HANDLE,)

    def cuEventRecord(self, event: Any, stream: Any) -> Answer:
        self._events[int(event)] = time.perf_counter()
        return (_SUCCESS,)

    def cuEventElapsedTime(self, start: Any, end: Any) -> Answer:
        """Return the milliseconds of the host between two events."""
        begin, finish = self._events.get(int(start)), self._events.get(int(end))
        if begin is None or finish is None or self._untimed & {int(start), int(end)}:
            return _CODE.CUDA_ERROR_INVALID_HANDLE, None
        return _SUCCESS, 1000 * (finish - begin)

    # -------------------------------------------------------------- kernels
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: Any, block: int, shared: int, flags: int = 0
    ) -> Answer:
        """Return the resident blocks of an SM. function: a kernel's handle, the static shared bytes of its blocks."""
        return _SUCCESS, occupancy(self.device, int(block), 0, int(function) + int(shared)).active_blocks

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = cuOccupancyMaxActiveBlocksPerMultiprocessor


def functions() -> dict[str, Callable[..., Answer]]:
    """Return the emulated functions by name."""
    return {name: function for name, function in vars(Driver).items() if name.startswith("cu")}
