"""The device of the CUDA runtime: its properties, attributes, limits and pools. Settings have no effect on an emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ...machine import device as devices
from ...runtime.observing import overrides
from .arrays import Arrays
from .device_properties import attribute, properties, properties_type
from .queues import INVALID_VALUE, LARGEST_PRIORITY, SUCCESS, store

INVALID_DEVICE, PEER_ACCESS_NOT_ENABLED = 101, 705
VERSION = 12080
_POOL = 0x100
"""Handle of the memory pool."""
_LIMITS = {0: 1024, 1: 1 << 20, 2: 8 << 20}
"""Initial limits of the device: bytes of a stack, of the buffer of `printf`, of the heap of kernels."""


class Devices(Arrays):
    """The emulated device, number 0."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.device = overrides("jit", devices.H200)[1]
        self.limits = dict(_LIMITS)

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

    def cudaDeviceGetMemPool(self, pool: int, device: int) -> int:
        return self.cudaDeviceGetDefaultMemPool(pool, device)

    def cudaDeviceSetMemPool(self, device: int, pool: int | None) -> int:
        return INVALID_DEVICE if device else self.cudaMemPoolTrimTo(pool, 0)

    def cudaMemPoolSetAttribute(self, pool: int | None, attribute: int, value: int) -> int:
        return self.cudaMemPoolTrimTo(pool, 0)

    def cudaMemPoolTrimTo(self, pool: int | None, size: int) -> int:
        return SUCCESS if pool == _POOL else INVALID_VALUE

    def cudaDeviceGetStreamPriorityRange(self, least: int | None, greatest: int | None) -> int:
        for pointer, value in ((least, 0), (greatest, LARGEST_PRIORITY)):
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
