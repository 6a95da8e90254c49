"""Latencies, widths and rates of a GPU's components. `timings.toml` has one dated row a device, with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .device_fields import require, rows


@dataclass(frozen=True)
class Timing:
    """Parameters of the time model of a GPU. Latencies are cycles of the SM's clock, from issue to use by the next instruction.

    schedulers: of an SM, each with warps of its own. issue: instructions that one of them issues in 100 cycles.
    alu, fp64, sfu, shuffle, vote: latencies of instructions. branch: cycles that a warp waits at a jump or a divergent branch.
    barrier: cycles between the last arrival and the next instruction.
    shared: latency of a shared load without conflicts. l1, l2, l2_far, dram: of a load served there; far: from the
    other half of L2. atomic: of an atomic operation that returns a value.
    atomic_interval: cycles of the SM's clock between atomic operations on one address; float_interval: between additions of
    floating point numbers. atomic_rate: atomic operations on distinct sectors a cycle of all of L2; fetch_rate: the
    same, of those that return a value. request_rate: lines a cycle to which L2 accepts stores of one sector;
    store_rate: sectors of whole lines that it accepts.
    load_rate: lines a cycle of which L2 returns one sector.
    lookup_rate: tag lookups of an SM's L1 a cycle.
    request_interval: cycles between requests to global memory of one SM. line_interval: between lines of stores that it sends;
    miss_interval: between lines that its L1 requests from L2.
    open_lines: lines of stores that an SM keeps open, so that the next stores of the same warp to them are sent
    together; open_cycles:
    the time after a store for which a line is open. queue: instructions that a scheduler's queue for the load and
    store unit has room for.
    block_interval: cycles between starts of blocks on the whole GPU. warp_interval: between starts of warps on one SM.
    l1_size: bytes of L1 together with shared memory. l1_width: bytes a cycle that L1 delivers.
    l2_width: bytes a cycle that one SM gets from L2. l2_halves: 2 where an SM reads lines of the other half through its own.
    l2_slices: slices of L2 that each serve one request. store_interval: cycles of a slice for the stores of a warp to a line.
    l2_bandwidth: of all SMs together, GB/s (10^9). dram_share: of the device's bandwidth that a copy gets, in thousandths.
    dram_row: sectors that device memory could move in the time of a row switch.
    launch: nanoseconds of an empty kernel.
    dated: date of the row. source: where its values are published or measured, and which of them are estimates.
    """

    schedulers: int
    issue: int
    alu: int
    fp64: int
    sfu: int
    shuffle: int
    vote: int
    branch: int
    barrier: int
    shared: int
    l1: int
    l2: int
    l2_far: int
    dram: int
    atomic: int
    atomic_interval: float
    float_interval: float
    atomic_rate: float
    fetch_rate: float
    request_rate: float
    store_rate: float
    load_rate: float
    lookup_rate: float
    request_interval: float
    miss_interval: float
    line_interval: float
    open_lines: int
    open_cycles: int
    queue: int
    block_interval: float
    warp_interval: float
    l1_size: int
    l1_width: int
    l2_width: int
    l2_halves: int
    l2_slices: int
    store_interval: float
    l2_bandwidth: float
    dram_share: int
    dram_row: float
    launch: int
    dated: str
    source: str

    def __post_init__(self) -> None:
        hints = {"int": int, "float": float, "str": str}
        for field in fields(self):
            require("timing.", field.name, hints[str(field.type)], getattr(self, field.name))


TIMINGS: dict[str, Timing] = rows("timings.toml", Timing)
"""Rows by the name of a GPU or of its architecture."""
