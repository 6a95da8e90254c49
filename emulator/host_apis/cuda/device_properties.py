"""The properties of an emulated device as the CUDA runtime reports them: `cudaDeviceProp` and the attributes of a device."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

from ...machine.device import Device
from .declarations import FOLDER

_TYPES: dict[str, Any] = {"char": ctypes.c_char, "int": ctypes.c_int, "size_t": ctypes.c_size_t}
ATTRIBUTES: dict[int, str | tuple[str, int]] = {
    1: "maxThreadsPerBlock", 2: ("maxThreadsDim", 0), 3: ("maxThreadsDim", 1), 4: ("maxThreadsDim", 2), 5: ("maxGridSize", 0),
    6: ("maxGridSize", 1), 7: ("maxGridSize", 2), 8: "sharedMemPerBlock", 9: "totalConstMem", 10: "warpSize", 12: "regsPerBlock",
    13: "clockRate", 16: "multiProcessorCount", 18: "integrated", 19: "canMapHostMemory", 31: "concurrentKernels", 38: "l2CacheSize",
    39: "maxThreadsPerMultiProcessor", 41: "unifiedAddressing", 75: "major", 76: "minor", 81: "sharedMemPerMultiprocessor",
    82: "regsPerMultiprocessor", 83: "managedMemory", 89: "concurrentManagedAccess", 95: "cooperativeLaunch",
    97: "sharedMemPerBlockOptin", 106: "maxBlocksPerMultiProcessor", 115: "memoryPoolsSupported",
}  # fmt: skip
"""Properties by the number of their attribute."""


@cache
def properties_type() -> type[ctypes.Structure]:
    """Return the layout of `cudaDeviceProp`, read from the header."""
    text = (FOLDER / "runtime_types.h").read_text(encoding="utf-8")
    body = text.partition("struct cudaDeviceProp {")[2].partition("};")[0]
    fields = []
    for type, names in re.findall(r"(char|int|size_t) ([^;]*);", body):
        for name, count in re.findall(r"(\w+)(?:\[(\d+)\])?", names):
            fields.append((name, _TYPES[type] * int(count) if count else _TYPES[type]))
    return type_of("cudaDeviceProp", fields)


def type_of(name: str, fields: list[tuple[str, Any]]) -> type[ctypes.Structure]:
    """Return a structure of ctypes."""
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def properties(device: Device, memory: int) -> dict[str, Any]:
    """Return the properties of a device by name; the others are 0. memory: bytes of global memory."""
    major, minor = device.compute_capability
    return {
        "name": f"simtbed {device.name}".encode(),
        "totalGlobalMem": memory,
        "sharedMemPerBlock": device.shared_per_block,
        "sharedMemPerBlockOptin": device.shared_per_block_optin,
        "sharedMemPerMultiprocessor": device.shared_per_sm,
        "reservedSharedMemPerBlock": device.shared_reserved,
        "regsPerBlock": device.registers_per_block,
        "regsPerMultiprocessor": device.registers_per_sm,
        "warpSize": 32,
        "memPitch": 0x7FFFFFFF,
        "maxThreadsPerBlock": device.threads_per_block,
        "maxThreadsDim": device.block_extents,
        "maxGridSize": device.grid_extents,
        "maxThreadsPerMultiProcessor": device.threads_per_sm,
        "maxBlocksPerMultiProcessor": device.blocks_per_sm,
        "multiProcessorCount": device.sms,
        "clockRate": 1000 * device.clock,
        "totalConstMem": 1 << 16,
        "l2CacheSize": device.l2,
        "major": major,
        "minor": minor,
        "textureAlignment": 512,
        "texturePitchAlignment": 32,
        **dict.fromkeys(
            (
                "canMapHostMemory", "concurrentKernels", "asyncEngineCount", "unifiedAddressing", "managedMemory", "deviceOverlap",
                "concurrentManagedAccess", "cooperativeLaunch", "streamPrioritiesSupported", "globalL1CacheSupported",
            ),
            1,
        ),
    }  # fmt: skip


def attribute(device: Device, memory: int, number: int) -> int:
    """Return an attribute of a device; 0 for one without a property."""
    own = ATTRIBUTES.get(number, "")
    values = properties(device, memory)
    return int(values[own[0]][own[1]] if isinstance(own, tuple) else values.get(own, 0))
