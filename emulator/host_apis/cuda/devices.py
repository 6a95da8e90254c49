"""The device of the CUDA runtime: its properties, attributes, limits and pools. Settings have no effect on an emulator."""

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ...driver.attributes import attribute, properties
from ...machine import device as devices
from ...runtime.observing import overrides
from ...runtime.streams import synchronize_host
from .declarations import FOLDER
from .queues import INVALID_VALUE, LARGEST_PRIORITY, SUCCESS, store
from .tensor_maps import TensorMaps

INVALID_DEVICE, PEER_ACCESS_NOT_ENABLED = 101, 705
VERSION = 12080
_POOL = 0x100
"""Handle of the default memory pool."""
_LIMITS = {0: 1024, 1: 1 << 20, 2: 8 << 20}
"""Initial limits of the device: bytes of a stack, of the buffer of `printf`, of the heap of kernels."""


_TYPES: dict[str, Any] = {"char": ctypes.c_char, "int": ctypes.c_int, "size_t": ctypes.c_size_t}


@cache
def properties_type() -> type[ctypes.Structure]:
    """Return the layout of `cudaDeviceProp`, read from the header."""
    text = (FOLDER / "runtime_types.h").read_text(encoding="utf-8")
    body = text.partition("struct cudaDeviceProp {")[2].partition("};")[0]
    fields = []
    for kind, names in re.findall(r"(char|int|size_t) ([^;]*);", body):
        for name, count in re.findall(r"(\w+)(?:\[(\d+)\])?", names):
            fields.append((name, _TYPES[kind] * int(count) if count else _TYPES[kind]))
    return type("cudaDeviceProp", (ctypes.Structure,), {"_fields_": fields})


class Devices(TensorMaps):
    """The emulated device, number 0."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.device = overrides("jit", devices.H200)[1]
        self.limits = dict(_LIMITS)
        self.pools: set[int | None] = {_POOL}

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
        return store(ctypes.c_int, value, attribute(self.device, number))

    def cudaDeviceSetLimit(self, limit: int, value: int) -> int:
        self.limits[limit] = value
        return SUCCESS

    def cudaDeviceGetLimit(self, value: int, limit: int) -> int:
        return store(ctypes.c_size_t, value, self.limits.get(limit, 0))

    def cudaDeviceGetPCIBusId(self, text: int, length: int, device: int) -> int:
        ctypes.memmove(text, b"0000:00:00.0\0"[:length], min(length, 13))
        return INVALID_DEVICE if device else SUCCESS

    def cudaGetDeviceFlags(self, flags: int) -> int:
        return store(ctypes.c_uint, flags, 0)

    def cudaChooseDevice(self, device: int, properties: int) -> int:
        return store(ctypes.c_int, device, 0)

    def cudaDeviceCanAccessPeer(self, result: int, device: int, peer: int) -> int:
        return INVALID_DEVICE if device or peer else store(ctypes.c_int, result, 0)

    def cudaDeviceEnablePeerAccess(self, peer: int, flags: int) -> int:
        return INVALID_DEVICE

    def cudaDeviceDisablePeerAccess(self, peer: int) -> int:
        return INVALID_DEVICE if peer else PEER_ACCESS_NOT_ENABLED

    def cudaDeviceGetDefaultMemPool(self, pool: int, device: int) -> int:
        return INVALID_DEVICE if device else store(ctypes.c_void_p, pool, _POOL)

    cudaDeviceGetMemPool = cudaDeviceGetDefaultMemPool

    def cudaDeviceSetMemPool(self, device: int, pool: int | None) -> int:
        return INVALID_DEVICE if device else self.cudaMemPoolTrimTo(pool)

    def cudaMemPoolTrimTo(self, pool: int | None, *rest: Any) -> int:
        return SUCCESS if pool in self.pools else INVALID_VALUE

    cudaMemPoolSetAttribute = cudaMemPoolSetAccess = cudaMemPoolTrimTo

    def cudaMemPoolCreate(self, pool: int, properties: int) -> int:
        self.pools.add(handle := next(self.handles))
        return store(ctypes.c_void_p, pool, handle)

    def cudaMemPoolDestroy(self, pool: int | None) -> int:
        code = INVALID_VALUE if pool == _POOL else self.cudaMemPoolTrimTo(pool)
        self.pools -= {pool} - {_POOL}
        return code

    def cudaDeviceGetStreamPriorityRange(self, least: int | None, greatest: int | None) -> int:
        for pointer, value in ((least, 0), (greatest, LARGEST_PRIORITY)):
            if pointer:
                store(ctypes.c_int, pointer, value)
        return SUCCESS

    def cudaRuntimeGetVersion(self, version: int) -> int:
        return store(ctypes.c_int, version, VERSION)

    cudaDriverGetVersion = cudaRuntimeGetVersion

    def cudaGetDeviceCount(self, count: int) -> int:
        return store(ctypes.c_int, count, 1)

    def cudaGetDevice(self, device: int) -> int:
        return store(ctypes.c_int, device, 0)

    def cudaSetDevice(self, device: int) -> int:
        return INVALID_DEVICE if device else SUCCESS

    def cudaDeviceSynchronize(self, *rest: Any) -> int:
        synchronize_host()
        return SUCCESS

    cudaThreadSynchronize = cudaProfilerStart = cudaProfilerStop = cudaDeviceSynchronize
    cudaSetDeviceFlags = cudaDeviceSetCacheConfig = cudaDeviceSetSharedMemConfig = cudaDeviceSynchronize

    def cudaDeviceReset(self) -> int:
        for space in (self.memory, self.pinned):
            for start in [start for start in space.starts if start not in self.variables]:
                space.remove(start)
                self.findings.freed(start, self.place)
        return SUCCESS

    cudaThreadExit = cudaDeviceReset
