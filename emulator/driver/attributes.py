"""The attributes of an emulated device: their names in the driver, their numbers, and the properties of the CUDA runtime."""

from typing import Any

from ..machine.device import Device

ROWS: dict[str, tuple[int, str]] = {
    "MAX_THREADS_PER_BLOCK": (1, "maxThreadsPerBlock"), "MAX_BLOCK_DIM_X": (2, ""), "MAX_BLOCK_DIM_Y": (3, ""), "MAX_BLOCK_DIM_Z": (4, ""),
    "MAX_GRID_DIM_X": (5, ""), "MAX_GRID_DIM_Y": (6, ""), "MAX_GRID_DIM_Z": (7, ""),
    "MAX_SHARED_MEMORY_PER_BLOCK": (8, "sharedMemPerBlock"),
    "TOTAL_CONSTANT_MEMORY": (9, "totalConstMem"), "WARP_SIZE": (10, "warpSize"), "MAX_PITCH": (11, "memPitch"),
    "MAX_REGISTERS_PER_BLOCK": (12, "regsPerBlock"), "CLOCK_RATE": (13, "clockRate"), "TEXTURE_ALIGNMENT": (14, "textureAlignment"),
    "GPU_OVERLAP": (15, "deviceOverlap"), "MULTIPROCESSOR_COUNT": (16, "multiProcessorCount"),
    "CAN_MAP_HOST_MEMORY": (19, "canMapHostMemory"),
    "CONCURRENT_KERNELS": (31, "concurrentKernels"), "L2_CACHE_SIZE": (38, "l2CacheSize"),
    "MAX_THREADS_PER_MULTIPROCESSOR": (39, "maxThreadsPerMultiProcessor"), "ASYNC_ENGINE_COUNT": (40, "asyncEngineCount"),
    "UNIFIED_ADDRESSING": (41, "unifiedAddressing"), "TEXTURE_PITCH_ALIGNMENT": (51, "texturePitchAlignment"),
    "COMPUTE_CAPABILITY_MAJOR": (75, "major"), "COMPUTE_CAPABILITY_MINOR": (76, "minor"),
    "STREAM_PRIORITIES_SUPPORTED": (78, "streamPrioritiesSupported"), "GLOBAL_L1_CACHE_SUPPORTED": (79, "globalL1CacheSupported"),
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": (81, "sharedMemPerMultiprocessor"),
    "MAX_REGISTERS_PER_MULTIPROCESSOR": (82, "regsPerMultiprocessor"), "MANAGED_MEMORY": (83, "managedMemory"),
    "CONCURRENT_MANAGED_ACCESS": (89, "concurrentManagedAccess"), "COOPERATIVE_LAUNCH": (95, "cooperativeLaunch"),
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": (97, "sharedMemPerBlockOptin"),
    "MAX_BLOCKS_PER_MULTIPROCESSOR": (106, "maxBlocksPerMultiProcessor"),
    "RESERVED_SHARED_MEMORY_PER_BLOCK": (111, "reservedSharedMemPerBlock"), "MEMORY_POOLS_SUPPORTED": (115, "memoryPoolsSupported"),
    "HOST_REGISTER_SUPPORTED": (99, "hostRegisterSupported"),
    "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM": (91, "canUseHostPointerForRegisteredMem"),
    "COMPUTE_PREEMPTION_SUPPORTED": (90, "computePreemptionSupported"),
}  # fmt: skip
"""Names of CUdevice_attribute without their prefix: number, and member of cudaDeviceProp. Other attributes are 0."""
_NAMES = {number: name for name, (number, _) in ROWS.items()}


def attributes(device: Device) -> dict[str, int]:
    """Return the attributes of a device by name."""
    major, minor = device.compute_capability
    values = {
        **{f"MAX_BLOCK_DIM_{axis}": extent for axis, extent in zip("XYZ", device.block_extents, strict=True)},
        **{f"MAX_GRID_DIM_{axis}": extent for axis, extent in zip("XYZ", device.grid_extents, strict=True)},
        "MAX_THREADS_PER_BLOCK": device.threads_per_block,
        "MAX_SHARED_MEMORY_PER_BLOCK": device.shared_per_block,
        "TOTAL_CONSTANT_MEMORY": 1 << 16,
        "WARP_SIZE": 32,
        "MAX_PITCH": 0x7FFFFFFF,
        "MAX_REGISTERS_PER_BLOCK": device.registers_per_block,
        "CLOCK_RATE": 1000 * device.clock,
        "TEXTURE_ALIGNMENT": 512,
        "TEXTURE_PITCH_ALIGNMENT": 32,
        "MULTIPROCESSOR_COUNT": device.sms,
        "L2_CACHE_SIZE": device.l2,
        "MAX_THREADS_PER_MULTIPROCESSOR": device.threads_per_sm,
        "COMPUTE_CAPABILITY_MAJOR": major,
        "COMPUTE_CAPABILITY_MINOR": minor,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": device.shared_per_sm,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": device.registers_per_sm,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": device.shared_per_block_optin,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": device.blocks_per_sm,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": device.shared_reserved,
    }
    return dict.fromkeys(ROWS, 1) | values  # the others are features that the device has


def attribute(device: Device, number: int) -> int:
    """Return an attribute by its number."""
    return attributes(device).get(_NAMES.get(number, ""), 0)


def properties(device: Device, memory: int) -> dict[str, Any]:
    """Return the members of cudaDeviceProp by name; the others are 0. memory: bytes of global memory."""
    own = {"name": f"simtbed {device.name}".encode(), "totalGlobalMem": memory}
    extents = {"maxThreadsDim": device.block_extents, "maxGridSize": device.grid_extents}
    return own | extents | {ROWS[name][1]: value for name, value in attributes(device).items() if ROWS[name][1]}
