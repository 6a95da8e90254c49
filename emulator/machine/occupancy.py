"""Theoretical occupancy: resident blocks of an SM, and the limiting resource."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LaunchError
from ..language.intrinsics import WARP_SIZE
from .device import Device


@dataclass(frozen=True)
class Occupancy:
    """Theoretical occupancy of one SM.

    limiter: the resource that admits no further block, of "warps", "blocks", "registers" and "shared memory"; several are
    joined by ", ". active_blocks is 0 if the device cannot run such a block at all.
    """

    active_blocks: int
    active_warps: int
    max_warps: int
    percent: float
    limiter: str


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(device: Device, threads_per_block: int, registers_per_thread: int, shared_bytes: int) -> Occupancy:
    """CUDA's occupancy rules: registers are given to warps, shared memory to blocks, both in the device's units.

    shared_bytes: static and dynamic together, of one block. Raises LaunchError on a block of no threads and on
    negative sizes. Source: NVIDIA's cuda_occupancy.h, which cuOccupancyMaxActiveBlocksPerMultiprocessor agrees with.
    """
    if threads_per_block < 1 or registers_per_thread < 0 or shared_bytes < 0:
        configuration = f"{threads_per_block} threads, {registers_per_thread} registers, {shared_bytes} shared bytes"
        raise LaunchError(f"occupancy: expected at least 1 thread and no negative size, got {configuration}")
    warps = -(-threads_per_block // WARP_SIZE)
    limits = {
        "warps": device.warps_per_sm // warps if threads_per_block <= device.threads_per_block else 0,
        "blocks": device.blocks_per_sm,
    }
    if registers_per_thread:
        limits["registers"] = _blocks_by_registers(device, warps, registers_per_thread)
    if shared_bytes + device.shared_reserved:
        limits["shared memory"] = _blocks_by_shared(device, shared_bytes)
    blocks = min(limits.values())
    limiter = ", ".join(name for name, limit in limits.items() if limit == blocks)
    active = blocks * warps
    return Occupancy(blocks, active, device.warps_per_sm, 100 * active / device.warps_per_sm, limiter)


def _blocks_by_registers(device: Device, warps: int, registers: int) -> int:
    """Return the blocks by registers. Each warp's registers are in one partition of the SM's; a block is checked as if it filled all
    partitions."""
    unit = device.register_unit * (2 if registers in device.register_unit_doubled else 1)
    per_warp = _round_up(registers * WARP_SIZE, unit)
    per_block = per_warp * _round_up(warps, device.warp_unit)
    if registers > device.registers_per_thread or per_block > device.registers_per_block:
        return 0
    per_partition = device.registers_per_sm // device.warp_unit // per_warp
    return per_partition * device.warp_unit // warps


def _blocks_by_shared(device: Device, size: int) -> int:
    """Return the blocks by shared memory. A block allocates its request, up to the opt-in limit, and the system's
    reserve, in whole units."""
    if size > device.shared_per_block_optin:
        return 0
    allocated = _round_up(size + device.shared_reserved, device.shared_unit)
    return device.shared_per_sm // allocated


MOST_CLUSTERED = 8
"""Blocks of clusters that an SM holds at once."""


def active_clusters(device: Device, active_blocks: int, size: int) -> int:
    """Return the clusters of `size` blocks that a device holds at once. active_blocks: of an SM, without clusters.

    All blocks of a cluster are in one group of SMs, which has at least as many SMs as the cluster has blocks.
    Source: 384 results of cudaOccupancyMaxActiveClusters on an H200.
    """
    blocks = min(active_blocks, MOST_CLUSTERED)
    return sum(sms * blocks // size for sms in device.cluster_sms if sms >= size)
