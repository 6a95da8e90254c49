"""Latencies, widths and rates of a GPU's components, one dated row a device, with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from .device_fields import require

KIB = 1024


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


FERMI = Timing(
    schedulers=2,
    issue=50,
    alu=18,
    fp64=18,
    sfu=22,
    shuffle=1,
    vote=18,
    branch=18,
    barrier=30,
    shared=50,
    l1=96,
    l2=371,
    l2_far=371,
    dram=564,
    atomic=564,
    atomic_interval=9.0,
    float_interval=21.6,
    atomic_rate=14.0,
    fetch_rate=8.8,
    request_rate=9.6,
    store_rate=3.6,
    load_rate=4.6,
    lookup_rate=1.0,
    request_interval=2.0,
    miss_interval=1.0,
    line_interval=2.3,
    open_lines=28,
    open_cycles=100,
    queue=8,
    block_interval=4.0,
    warp_interval=10.0,
    l1_size=64 * KIB,
    l1_width=64,
    l2_width=32,
    l2_halves=1,
    l2_slices=12,
    store_interval=3.0,
    l2_bandwidth=230.0,
    dram_share=800,
    dram_row=2.9,
    launch=5000,
    dated="2026-11-22",
    source=(
        "estimates, of the size that Mei and Chu 2017 (arXiv 1509.02308) print of a GTX 560 Ti; none was "
        "measured on this card"
    ),
)
KEPLER = Timing(
    schedulers=4,
    issue=150,
    alu=9,
    fp64=10,
    sfu=18,
    shuffle=24,
    vote=18,
    branch=18,
    barrier=30,
    shared=47,
    l1=198,
    l2=198,
    l2_far=198,
    dram=371,
    atomic=198,
    atomic_interval=1.0,
    float_interval=2.4,
    atomic_rate=16.0,
    fetch_rate=10.0,
    request_rate=11.0,
    store_rate=9.0,
    load_rate=11.5,
    lookup_rate=1.0,
    request_interval=2.0,
    miss_interval=1.0,
    line_interval=2.3,
    open_lines=28,
    open_cycles=100,
    queue=8,
    block_interval=2.0,
    warp_interval=8.0,
    l1_size=64 * KIB,
    l1_width=128,
    l2_width=64,
    l2_halves=1,
    l2_slices=24,
    store_interval=2.2,
    l2_bandwidth=400.0,
    dram_share=800,
    dram_row=2.9,
    launch=4000,
    dated="2026-11-22",
    source=(
        "estimates, of the size that Mei and Chu 2017 (arXiv 1509.02308) print of a GTX 780; alu: Jia et al. "
        "2018 (arXiv 1804.06826)"
    ),
)
VOLTA = Timing(
    schedulers=4,
    issue=100,
    alu=4,
    fp64=8,
    sfu=18,
    shuffle=23,
    vote=12,
    branch=10,
    barrier=20,
    shared=24,
    l1=30,
    l2=215,
    l2_far=215,
    dram=437,
    atomic=215,
    atomic_interval=2.0,
    float_interval=4.8,
    atomic_rate=32.0,
    fetch_rate=20.0,
    request_rate=22.0,
    store_rate=30.0,
    load_rate=38.0,
    lookup_rate=4.0,
    request_interval=2.0,
    miss_interval=1.0,
    line_interval=2.3,
    open_lines=28,
    open_cycles=100,
    queue=8,
    block_interval=1.2,
    warp_interval=7.3,
    l1_size=128 * KIB,
    l1_width=128,
    l2_width=64,
    l2_halves=1,
    l2_slices=64,
    store_interval=2.2,
    l2_bandwidth=2500.0,
    dram_share=900,
    dram_row=2.9,
    launch=2500,
    dated="2026-11-22",
    source=(
        "te42kyfo/gpu-benches and caps-tum/mt4g for l1, l2, dram, shared; alu: Jia et al. 2018 (arXiv "
        "1804.06826); the others are estimates"
    ),
)
TURING = replace(
    VOLTA,
    shared=19,
    l1=32,
    l2=188,
    l2_far=188,
    dram=500,
    atomic=188,
    atomic_rate=16.0,
    fetch_rate=10.0,
    request_rate=11.0,
    store_rate=15.0,
    load_rate=19.0,
    l1_size=96 * KIB,
    l1_width=64,
    l2_slices=32,
    l2_bandwidth=1270.0,
    dram_share=690,
    dated="2026-11-28",
    source=(
        "Jia et al. 2019 (arXiv 1903.07486), of a T4, for shared, l1, l2, l2_bandwidth, dram_share; alu: Jia et al. 2018 "
        "(arXiv 1804.06826); l2_slices and the rates of L2: half of a V100's; dram and the others are estimates"
    ),
)
AMPERE = Timing(
    schedulers=4,
    issue=100,
    alu=4,
    fp64=8,
    sfu=18,
    shuffle=23,
    vote=12,
    branch=10,
    barrier=20,
    shared=23,
    l1=35,
    l2=211,
    l2_far=360,
    dram=560,
    atomic=300,
    atomic_interval=2.0,
    float_interval=4.8,
    atomic_rate=40.0,
    fetch_rate=25.0,
    request_rate=27.5,
    store_rate=60.0,
    load_rate=77.0,
    lookup_rate=4.0,
    request_interval=2.0,
    miss_interval=1.0,
    line_interval=2.3,
    open_lines=28,
    open_cycles=100,
    queue=8,
    block_interval=1.2,
    warp_interval=7.3,
    l1_size=192 * KIB,
    l1_width=128,
    l2_width=64,
    l2_halves=2,
    l2_slices=80,
    store_interval=2.2,
    l2_bandwidth=4700.0,
    dram_share=890,
    dram_row=2.9,
    launch=2300,
    dated="2026-11-22",
    source=(
        "te42kyfo/gpu-benches and caps-tum/mt4g for l1, l2, dram, shared; alu and intervals: arXiv "
        "2503.20481; the others are estimates"
    ),
)
ADA = Timing(
    schedulers=4,
    issue=100,
    alu=4,
    fp64=64,
    sfu=18,
    shuffle=23,
    vote=12,
    branch=10,
    barrier=20,
    shared=30,
    l1=40,
    l2=296,
    l2_far=296,
    dram=636,
    atomic=296,
    atomic_interval=2.0,
    float_interval=4.8,
    atomic_rate=36.0,
    fetch_rate=22.7,
    request_rate=24.7,
    store_rate=36.0,
    load_rate=46.0,
    lookup_rate=4.0,
    request_interval=2.0,
    miss_interval=1.0,
    line_interval=2.3,
    open_lines=28,
    open_cycles=100,
    queue=8,
    block_interval=1.2,
    warp_interval=7.3,
    l1_size=128 * KIB,
    l1_width=128,
    l2_width=64,
    l2_halves=1,
    l2_slices=48,
    store_interval=2.2,
    l2_bandwidth=5000.0,
    dram_share=900,
    dram_row=2.9,
    launch=2300,
    dated="2026-11-22",
    source=(
        "markdewing/AI_kernels, latency, for l1, l2, dram on an RTX 4090; alu and intervals: arXiv "
        "2503.20481, of Ampere; the others are estimates"
    ),
)
GA102 = replace(
    ADA,
    shared=23,
    l1=35,
    l2=215,
    l2_far=215,
    dram=470,
    atomic=215,
    l2_bandwidth=2500.0,
    dated="2026-11-28",
    source=(
        "estimates: l1 and shared as an A100's, l2, l2_bandwidth and dram about a V100's, which has 6 MiB of L2 too, the others as "
        "an RTX 4090's; none was measured on an A10 or RTX 3090; alu and intervals: arXiv 2503.20481"
    ),
)
GH100 = Timing(
    schedulers=4,
    issue=100,
    alu=4,
    fp64=8,
    sfu=19,
    shuffle=24,
    vote=12,
    branch=10,
    barrier=28,
    shared=25,
    l1=36,
    l2=283,
    l2_far=486,
    dram=662,
    atomic=433,
    atomic_interval=1.45,
    float_interval=3.48,
    atomic_rate=51.0,
    fetch_rate=39.5,
    request_rate=38.6,
    store_rate=62.0,
    load_rate=81.8,
    lookup_rate=4.0,
    request_interval=1.07,
    miss_interval=1.0,
    line_interval=2.3,
    open_lines=28,
    open_cycles=100,
    queue=8,
    block_interval=1.2,
    warp_interval=7.3,
    l1_size=256 * KIB,
    l1_width=128,
    l2_width=104,
    l2_halves=2,
    l2_slices=96,
    store_interval=2.2,
    l2_bandwidth=7000.0,
    dram_share=941,
    dram_row=2.9,
    launch=2816,
    dated="2026-11-24",
    source=(
        "measured on an H200 at 1980 MHz (simtbed hardware measure; line_interval, store_interval, l2_slices, dram_row, "
        "open_lines, open_cycles, queue: simtbed hardware times, scattered); estimates: issue, vote, branch, l2_bandwidth; "
        "l1_size and l2_halves: public"
    ),
)
"""Of an H200. On-chip values are an H100's too."""
_SERVED = 44.0 / 51.0
"""L2 throughput of an H100 relative to an H200: atomic operations on sectors of their own, measured on both. The H100 has 50 MiB in 80
slices, the H200 60 MiB in 96."""
HOPPER = replace(
    GH100,
    l2=278,
    l2_slices=80,
    l2_far=475,
    dram=682,
    atomic=427,
    atomic_rate=44.0,
    fetch_rate=round(GH100.fetch_rate * _SERVED, 1),
    request_rate=round(GH100.request_rate * _SERVED, 1),
    store_rate=round(GH100.store_rate * _SERVED, 1),
    load_rate=round(GH100.load_rate * _SERVED, 1),
    l2_bandwidth=round(GH100.l2_bandwidth * _SERVED, -1),
    block_interval=1.21,
    dram_share=920,
    dram_row=2.3,
    launch=3136,
    dated="2026-11-23",
    source=(
        "measured on an H100 SXM5 at 1980 MHz (simtbed hardware measure); estimates, as an H200's: issue, vote, branch, "
        "float_interval, lookup_rate; and less, as its atomic_rate is: l2_bandwidth, fetch_rate, request_rate, store_rate, load_rate, "
        "as simtbed hardware times, scattered confirms, which dram_row is read from; l1_size and l2_halves: public"
    ),
)
BLACKWELL = replace(
    GH100,
    l1=40,
    l2=295,
    l2_far=500,
    dram=860,
    l2_slices=160,
    l2_bandwidth=7850.0,
    dram_share=920,
    dated="2026-11-28",
    source=(
        "markdewing/AI_kernels, latency, for l1, l2, dram on a B200; l2_bandwidth: an H200's by the number of SMs; l2_far, "
        "l2_slices and dram_share: estimates; the others as an H200's; none was measured with simtbed"
    ),
)
