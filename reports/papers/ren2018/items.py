"""Tables of Ren 2018, compared with the emulator, the time model and measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from simtbed.kernels.pairhmm import FAMILY, REN
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.machine.occupancy import occupancy

from ...explanation import choices
from .. import recorded
from ..measured import Machine
from ..paper import (
    Claim,
    Item,
    Paper,
    Parameter,
    Row,
    Setting,
    Shown,
    Table,
    about,
    cpu,
    emulator,
    gpu,
    model,
    paper,
)
from ..predicted import CAVEAT, settled
from . import figures
from .figures import cells
from .profiled import K40, LENGTHS, Printed, bound, by_rule, floors, launched
from .profiled import PAPER as PRINTED
from .throughput import (
    DATA,
    INTERTASK,
    INTRATASK,
    LOOP,
    LOOP_LENGTHS,
    PAIRS_OF_BLOCK,
    benchmarks,
    counted_pairs,
    few_pairs,
    intertask_throughput,
    intratask_throughput,
    predicted_pace,
)


# ------------------------------------------------------------------ Tables 2 and 4
def _profiled(setting: Setting, number: int) -> tuple[list[Row], list[Printed]]:
    printed = [printed_row for printed_row in PRINTED if printed_row.table == number]
    rows: list[Row] = []
    for printed_row in printed:
        pairs = counted_pairs(setting, printed_row.variant)
        (result,) = launched(equal_lengths(1, pairs, *LENGTHS[number]), printed_row.variant, engine=setting.engine)
        least = floors(result.counters, cells(pairs, *LENGTHS[number]), K40)
        ours = recorded.registers(f"pairhmm {printed_row.variant}")
        memory = "global memory" if number == 2 else "shared memory"
        prediction = predicted_pace(printed_row.variant, *LENGTHS[number], setting.engine)
        rows.append({
            about("implementation"): printed_row.variant,
            paper("limited by"): printed_row.limitation,
            emulator("most used"): bound(result.counters, K40),
            model("bound by"): prediction.estimate.bound,
            paper("bandwidth, GB/s"): printed_row.bandwidth,
            model("bandwidth, GB/s"): prediction.dram_bandwidth if number == 2 else prediction.shared_bandwidth,
            emulator(f"least ns per cell, {memory}"): least[memory],
            paper("registers"): printed_row.registers,
            gpu("registers, sm_90"): ours,
            paper("shared bytes"): printed_row.shared,
            emulator("shared bytes"): result.shared_bytes,
            paper("occupancy, %"): printed_row.occupancy,
            emulator("occupancy by the paper's registers, %"): by_rule(printed_row),
            emulator("... and our shared bytes, %"): occupancy(K40, printed_row.block, printed_row.registers, result.shared_bytes).percent,
        })  # fmt: skip
    return rows, printed


def intertask_profile(setting: Setting) -> Shown:
    """Table 2."""
    rows, printed = _profiled(setting, 2)
    moved = [float(row[emulator("least ns per cell, global memory")] or 0) for row in rows]
    memory = [
        (one.limitation == "memory") == (row[emulator("most used")] == "global memory")
        for one, row in zip(printed, rows, strict=True)
    ]
    return Shown(
        [
            Claim("global memory traffic falls as the tile grows", all(a > b for a, b in pairwise(moved)), "counted bytes per cell fall"),
            Claim("shared memory a block: 2,048 bytes a row of the tile", *_same(rows, "shared bytes")),
            Claim("theoretical occupancy", *_close(rows)),
            Claim("global memory bandwidth: 207 GB/s down to 101", *_bandwidths(rows)),
            Claim("naive, tile = 2 and tile = 4 are bound by memory bandwidth, the others are not", all(memory),
                  f"true of {sum(memory)} of {len(memory)} by the most used resource"),
        ],
        "Shared bytes are the paper's, its registers give its occupancies by CUDA's rule, and the counted traffic shows "
        "the memory-bound kernels.",
        [Table("Set 6, which the caption calls 8", rows)],
        note=PROFILED,
    )  # fmt: skip


def intratask_profile(setting: Setting) -> Shown:
    """Table 4."""
    rows, _ = _profiled(setting, 4)
    shared = {
        str(row[about("implementation")]): float(row[emulator("least ns per cell, shared memory")] or 0) for row in rows
    }
    bandwidth = {str(row[about("implementation")]): float(row[model("bandwidth, GB/s")] or 0) for row in rows}
    order = sorted(bandwidth, key=lambda variant: -bandwidth[variant])
    return Shown(
        [
            Claim("the bandwidth of shared memory falls from naive over tile = 2 and warp-based to improved warp-based",
                  order == [one.variant for one in PRINTED if one.table == 4],
                  "time model: " + ", ".join(f"{rate:,.0f} GB/s" for rate in bandwidth.values())),
            Claim("tile = 2 needs less of shared memory than naive", shared["intratask-tile2"] < shared["intratask-naive"],
                  f"{1 - shared['intratask-tile2'] / shared['intratask-naive']:.0%} less per cell"),
            Claim("shared memory a block", *_same(rows, "shared bytes")),
            Claim("theoretical occupancy", *_close(rows)),
            Claim("improved warp-based occupies the GPU better than warp-based", *_fuller(rows)),
        ],
        "The occupancies follow from its registers and shared bytes; ours have arrays of the "
        "longest haplotype, 256 columns: three vectors of a pass's last row and letters are 3,328 bytes of warp-based; with 500 columns "
        "the vectors are 6,000 of its 6,540. The paper does not list the contents.",
        [Table("Set 26", rows)],
        note=f"{PROFILED} {choices(FAMILY, 'intratask-warp')}",
    )  # fmt: skip


PROFILED = (
    "Registers: nvcc 13 for sm_90, from the record of the H200; empty for a variant without a record. Latency and "
    "achieved occupancy are not counted by the emulator. " + CAVEAT
)


def _same(rows: Sequence[Row], name: str) -> tuple[bool, str]:
    same = [row[paper(name)] == row[emulator(name)] for row in rows]
    return all(same), f"the paper's for {sum(same)} of {len(same)}"


def _close(rows: Sequence[Row]) -> tuple[bool, str]:
    """Whether all values agree to the printed decimal."""
    claimed, counted = paper("occupancy, %"), emulator("occupancy by the paper's registers, %")
    near = [abs(float(row[claimed] or 0) - float(row[counted] or 0)) < 0.051 for row in rows]
    return all(near), f"by rule from its registers and shared bytes: the paper's for {sum(near)} of {len(near)}"


def _bandwidths(rows: Sequence[Row]) -> tuple[bool, str]:
    """Whether a value is within a quarter of the profiler's value in the paper."""
    ratios = [float(row[model("bandwidth, GB/s")] or 0) / float(row[paper("bandwidth, GB/s")] or 1) for row in rows]
    near = [4 / 5 <= ratio <= 5 / 4 for ratio in ratios]
    return all(near), f"time model: {min(ratios):.2f} to {max(ratios):.2f} times the paper's"


def _fuller(rows: Sequence[Row]) -> tuple[bool, str]:
    by_name = {
        str(row[about("implementation")]): float(row[emulator("... and our shared bytes, %")] or 0) for row in rows
    }
    warp, warps = by_name["intratask-warp"], by_name["intratask-warps"]
    return warps > warp, f"{warps:.1f} % against {warp:.1f} % with our shared bytes"


# ------------------------------------------------------------------ Tables 5, 6 and 7
RUNTIMES: tuple[tuple[str, float, str], ...] = (
    ("Java on CPU", 10800, ""), ("C++ baseline", 1267, LOOP), ("Intel Xeon AVX, 1 core", 138, ""),
    ("Intel Xeon, 24 cores", 15, ""), ("Altera OpenCL (Arria 10)", 2.8, ""), ("PE ring (Arria 10)", 2.6, ""),
    ("NVIDIA Tesla K40 (Huang et al)", 70, ""), ("naive intratask", 14.2, "intratask-naive"),
    ("tile = 2 intratask", 15.5, "intratask-tile2"), ("warp-based", 20.6, "intratask-warp"),
    ("improved warp-based", 12.8, "intratask-warps"), ("naive intertask", 76.6, "intertask-naive"),
    ("tile = 2 intertask", 45.1, "intertask-tile2"), ("tile = 4 intertask", 29.6, "intertask-tile4"),
    ("tile = 6 intertask", 26.4, "intertask-tile6"), ("tile = 8 intertask", 24.9, "intertask-tile8"),
)  # fmt: skip
"""Table 5: implementation, milliseconds, variant."""
CELLS_OF_10S = 62_380_634
"""Cells of the "10s" set of 3,550 pairs."""


PAIRS_OF_10S, LONGEST_OF_10S = 3_550, (247, 263)
"""Of the "10s" set."""


def _on_ten_seconds(setting: Setting, variant: str) -> float:
    """Milliseconds of the kernels by the time model: if all pairs had the set's average lengths; where a thread computes a pair,
    of the block of the longest, which all others are done before."""
    if variant in INTERTASK:
        return predicted_pace(variant, *LONGEST_OF_10S, setting.engine, 1).estimate.time_us / 1e3
    launched = -(-PAIRS_OF_10S // PAIRS_OF_BLOCK[variant])
    return launched * predicted_pace(variant, *LOOP_LENGTHS, setting.engine, launched).microseconds / 1e3


def _runtime_rows(setting: Setting) -> tuple[list[Row], dict[str, float]]:
    """Return the rows of Table 5, and recorded milliseconds by variant."""
    loops = {machine: setting.timing(LOOP, machine) for machine in (Machine.core, Machine.cores)}
    core = loops[Machine.core]
    baseline = 1e3 * CELLS_OF_10S / core.rate if core else None
    rows: list[Row] = []
    ours: dict[str, float] = {}
    for name, milliseconds, variant in RUNTIMES:
        row: Row = {
            about("implementation"): name, paper("ms"): milliseconds, paper("speedup over C++"): RUNTIMES[1][1] / milliseconds,
        }  # fmt: skip
        if variant and variant != LOOP:
            row = {**row, model("kernels on a K40, ms"): _on_ten_seconds(setting, variant)}
        if variant and variant != LOOP and (time := recorded.milliseconds(f"pairhmm {variant}", DATA)) is not None:
            ours[variant] = time
            row = {**row, gpu("kernels, ms"): time, gpu("speedup over the plain loop"): baseline and baseline / time}
        if variant == LOOP:
            row = {**row, cpu("ms"): baseline}
        rows.append(row)
    for machine, timing in loops.items():
        if timing:
            rows.append({
                about("implementation"): f"{LOOP}, {machine}: {timing.machine}", cpu("ms"): 1e3 * CELLS_OF_10S / timing.rate,
            })  # fmt: skip
    return rows, ours


def ten_seconds(setting: Setting) -> Shown:
    """Table 5."""
    rows, ours = _runtime_rows(setting)
    predicted = {
        variant: _on_ten_seconds(setting, variant) for _, _, variant in RUNTIMES if variant and variant != LOOP
    }

    def separated(times: Mapping[str, float]) -> tuple[bool | None, str]:
        intra, inter = ([times[v] for v in group if v in times] for group in (INTRATASK, INTERTASK))
        whole = len(intra) == len(INTRATASK) and inter
        return (
            (max(intra) < min(inter), f"{max(intra):.2f} ms at most against {min(inter):.2f} ms")
            if whole
            else (None, "")
        )

    def falling(times: Mapping[str, float]) -> tuple[bool | None, str]:
        tiles = [times[v] for v in INTERTASK if v in times]
        return (
            (all(a > b for a, b in pairwise(tiles)), ", ".join(f"{ms:.2f}" for ms in tiles))
            if len(tiles) > 1
            else (None, "")
        )

    def first(times: Mapping[str, float]) -> tuple[bool | None, str]:
        best = min(times, key=lambda v: times[v], default="")
        return (best == "intratask-warps", f"{best} is") if set(INTRATASK) <= set(times) else (None, "")

    return Shown(
        [
            settled("every intra-task implementation is faster than every inter-task one", separated(predicted), separated(ours)),
            settled("inter-task: the larger the tile, the faster", falling(predicted), falling(ours)),
            settled("improved warp-based is the fastest", first(predicted), first(ours)),
        ],
        "3,550 pairs with one thread each do not fill a GPU, which determines the order of the two approaches; the "
        "paper's times include preparation and transfers.",
        [Table('The "10s" set', rows)],
        note="The times of the paper include data set preparation and transfers; ours are of kernels only, on an H200. Times of the plain "
        "loop are computed from its cells per second on a synthetic set; predictions are for pairs of average lengths, "
        f"{LOOP_LENGTHS[0]} and {LOOP_LENGTHS[1]} bases, and with a thread per pair, for the block of the longest pair, "
        f"{LONGEST_OF_10S[0]} and {LONGEST_OF_10S[1]}, which finishes last. {CAVEAT}",
    )  # fmt: skip


def real_data(setting: Setting) -> Shown:
    """Table 6."""
    rows: list[Row] = [
        {
            about("implementation"): name,
            paper("T1, s"): t1,
            paper("T2, s"): t2,
            paper("T3, s"): t3,
            paper("GCUPS"): rate,
        }
        for name, t1, t2, t3, rate in REAL
    ]
    return Shown(
        [Claim("naive intratask is the fastest on chromosome 10 of HCC1954", None, "the reads and GATK 3.7 are not available"),
         Claim("82 % of its chunks have less than 200 pairs, the case of Fig. 10", None, "see Fig. 10")],
        "The data set of the paper is not public, and GATK HaplotypeCaller is not included.",
        [Table("Chromosome 10", rows)],
    )  # fmt: skip


def whole_program(setting: Setting) -> Shown:
    """Table 7."""
    rows: list[Row] = [
        {about("GATK HC"): name, paper("seconds"): seconds, paper("speedup"): WHOLE[0][1] / seconds}
        for name, seconds in WHOLE
    ]
    return Shown(
        [Claim("GATK with the GPU is 1.71 times as fast as the baseline", None, "GATK is not included")],
        "GATK HaplotypeCaller is not included, only the forward algorithm.",
        [Table("Whole runs of GATK HaplotypeCaller", rows)],
    )


REAL = (
    ("naive intratask", 46, 53, 99, 2.60), ("tile = 2 intratask", 47, 53, 100, 2.52), ("warp-based", 81, 51, 132, 1.91),
    ("improved warp-based", 48, 57, 105, 2.40), ("naive intertask", 701, 73, 774, 0.33), ("tile = 2 intertask", 382, 73, 455, 0.56),
    ("tile = 4 intertask", 238, 75, 312, 0.81), ("tile = 6 intertask", 213, 75, 288, 0.88), ("tile = 8 intertask", 217, 73, 290, 0.87),
    ("Power8 single core", None, None, 1161, 0.22), ("Power8 20 cores", None, None, 95, 2.65),
)  # fmt: skip
"""Table 6: T1 on the GPU with transfers, T2 preparation, T3 both."""
WHOLE = (("baseline", 8034.05), ("vector", 5655.96), ("GPU", 4687.08))
"""Table 7, seconds."""

PAPER = Paper(
    name="ren2018",
    title="Pair-HMMs forward algorithm on GPUs (Ren, Bertels, Al-Ars 2018)",
    citation=REN,
    device="K40",
    parameters=(
        Parameter("pairs", 256, 500_000, "pairs of a synthetic set that are counted"),
        Parameter("records", 4, 400, "records of the set of mixed lengths"),
    ),
    items=(
        Item("Figure 1", "CUDA memory hierarchy, and what coalescing saves", figures.memory_hierarchy),
        Item("Figure 2", "Block diagram of the GPU-based GATK HaplotypeCaller", figures.block_diagram),
        Item("Figure 3", "Execution trace of the naive inter-task implementation", figures.naive_trace),
        Item("Figure 4", "Execution trace of the tiled inter-task implementation", figures.tiled_trace),
        Item("Figure 5", "Bases written in an interlaced fashion; pairs sorted by length", figures.interlaced),
        Item("Figure 6", "Execution trace of the naive intra-task implementation", figures.anti_diagonals),
        Item("Figure 7", "Execution trace of the tiled intra-task implementation", figures.two_a_barrier),
        Item("Table 1", "Synthetic data sets of the inter-task implementations", figures.intertask_sets),
        Item("Figure 8", "Throughput of the inter-task implementations", intertask_throughput),
        Item("Table 2", "Profile of the inter-task implementations", intertask_profile),
        Item("Table 3", "Synthetic data sets of the intra-task implementations", figures.intratask_sets),
        Item("Figure 9", "Throughput of the intra-task implementations, 500,000 pairs", intratask_throughput),
        Item("Table 4", "Profile of the intra-task implementations", intratask_profile),
        Item("Figure 10", "Throughput of the intra-task implementations, 200 pairs", few_pairs),
        Item("Table 5", 'Runtimes on the "10s" data set', ten_seconds),
        Item("Table 6", "A real data set", real_data),
        Item("Table 7", "GATK HaplotypeCaller as a whole", whole_program),
    ),
    benchmarks=benchmarks,
)
