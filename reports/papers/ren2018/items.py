"""Tables of Ren 2018, compared with the emulator, the time model and measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from simtbed.kernels.pairhmm import FAMILY, REN
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.machine.occupancy import occupancy

from ...explanation import choices
from .. import recorded
from ..claims import (
    PRINTED as TEXT,
)
from ..claims import (
    Claim,
    Comparison,
    Origin,
    counted_by,
    exactly,
    less_than,
    more_than,
    near,
    predicted_for,
    ratio,
)
from ..measured import Machine
from ..paper import (
    Column,
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
from ..predicted import CAVEAT
from . import algorithms, figures
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
    rule, names = counted_by(K40), [row.variant for row in printed]
    agreeing = sum(
        (one.limitation == "memory") == (row[model("bound by")] in MEMORY_BOUND)
        for one, row in zip(printed, rows, strict=True)
    )
    return Shown(
        [
            Claim("global memory bandwidth: 207, 201, 193, 154 and 101 GB/s", _bandwidths(rows), main=True),
            Claim("naive, tile = 2 and tile = 4 are bound by memory bandwidth, the others are not",
                  [exactly(predicted_for(K40), f"implementations of {len(rows)} with the paper's limit", agreeing, len(rows))]),
            Claim("shared memory per block: 2,048 bytes per row of the tile", _same_bytes(rows)),
            Claim("theoretical occupancy", _occupancies(rows)),
            Claim("global memory traffic per cell falls as the tile grows",
                  [more_than(rule, f"ratio of bytes per cell, {first} to {second}", a / b, 1)
                   for (first, a), (second, b) in pairwise(zip(names, moved, strict=True))]),
        ],
        "Shared bytes are the paper's, and its registers give its occupancies by CUDA's rule. The predicted limits and bandwidths are "
        "those of the time model.",
        [Table("Set 6, which the caption calls 8", rows)],
        note=PROFILED,
    )  # fmt: skip


MEMORY_BOUND = ("DRAM", "L2", "L1", "global memory")
"""Bounds of the time model that are bandwidths of global memory."""


def intratask_profile(setting: Setting) -> Shown:
    """Table 4."""
    rows, _ = _profiled(setting, 4)
    shared = {
        str(row[about("implementation")]): float(row[emulator("least ns per cell, shared memory")] or 0) for row in rows
    }
    bandwidth = {str(row[about("implementation")]): float(row[model("bandwidth, GB/s")] or 0) for row in rows}
    order = [one.variant for one in PRINTED if one.table == 4]
    fuller = _ratio_of_occupancies(rows, "intratask-warps", "intratask-warp")
    return Shown(
        [
            Claim("shared memory bandwidth: 2,213, 2,005, 362 and 262 GB/s", _bandwidths(rows), main=True),
            Claim("it falls from naive over tile = 2 and warp-based to improved warp-based",
                  [more_than(predicted_for(K40), f"ratio of bandwidths, {first} to {second}", bandwidth[first] / bandwidth[second], 1)
                   for first, second in pairwise(order)]),
            Claim("tile = 2 needs less of shared memory than naive",
                  [less_than(counted_by(K40), "ratio of shared traffic", shared["intratask-tile2"] / shared["intratask-naive"], 1)]),
            Claim("shared memory per block", _same_bytes(rows)),
            Claim("theoretical occupancy", _occupancies(rows)),
            Claim("improved warp-based occupies the GPU better than warp-based",
                  [more_than(counted_by(K40), "ratio of occupancies with our shared bytes", fuller, 1)]),
        ],
        "The occupancies follow from the paper's registers and shared bytes. Ours have arrays of the longest haplotype, 256 columns. "
        "One copy of three vectors with 500 columns, 6,000 bytes, and 540 bytes explain the 6,540 of warp-based; the paper does not "
        "list the contents.",
        [Table("Set 26", rows)],
        note=f"{PROFILED} {choices(FAMILY, 'intratask-warp')}",
    )  # fmt: skip


PROFILED = "Registers: nvcc 13 for sm_90. Latency and achieved occupancy are not counted by the emulator. " + CAVEAT


def _same_bytes(rows: Sequence[Row]) -> list[Comparison]:
    """Compare the shared bytes of each implementation with the paper's."""
    return [
        exactly(counted_by(K40), f"bytes, {row[about('implementation')]}", _value(row, emulator("shared bytes")),
                _value(row, paper("shared bytes")))
        for row in rows
    ]  # fmt: skip


def _occupancies(rows: Sequence[Row]) -> list[Comparison]:
    """Compare the occupancies by rule, from the registers and bytes of the paper, with the printed ones, to their decimal."""
    by_paper, printed = emulator("occupancy by the paper's registers, %"), paper("occupancy, %")
    return [
        exactly(counted_by(K40), f"occupancy, %, {row[about('implementation')]}", _rounded(_value(row, by_paper)), _value(row, printed))
        for row in rows
    ]  # fmt: skip


def _rounded(percent: float) -> float:
    """Return a percentage with the decimal of the paper, which rounds halves up."""
    return round(percent + 1e-9, 1)


def _bandwidths(rows: Sequence[Row]) -> list[Comparison]:
    """Compare predicted bandwidths with those of the paper's profiler."""
    return [
        near(predicted_for(K40), f"GB/s, {row[about('implementation')]}", _value(row, model("bandwidth, GB/s")),
             _value(row, paper("bandwidth, GB/s")), 0.25)
        for row in rows
    ]  # fmt: skip


def _value(row: Row, column: Column) -> float:
    return float(row[column] or 0)


def _ratio_of_occupancies(rows: Sequence[Row], above: str, below: str) -> float:
    column = emulator("... and our shared bytes, %")
    by_name = {str(row[about("implementation")]): _value(row, column) for row in rows}
    return by_name[above] / by_name[below]


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


PRINTED_SPEEDUPS = (
    ("Intel Xeon AVX, 1 core", 138, 78), ("Intel Xeon, 24 cores", 15, 720), ("improved warp-based", 12.8, 843),
    ("naive intertask", 76.6, 141), ("tile = 8 intertask", 24.9, 433.7),
)  # fmt: skip
"""Table 5: implementation, milliseconds, speedup over Java."""
PAIRS_OF_10S, LONGEST_OF_10S = 3_550, (247, 263)
"""Of the "10s" set."""


def _on_ten_seconds(setting: Setting, variant: str) -> float:
    """Milliseconds of the kernels by the time model: if all pairs had the set's average lengths; where a thread computes a pair,
    of the block of the longest, which all others are done before."""
    if variant in INTERTASK:
        return predicted_pace(variant, *LONGEST_OF_10S, setting.engine, 1).estimate.time_us / 1e3
    launched = -(-PAIRS_OF_10S // PAIRS_OF_BLOCK[variant])
    return launched * predicted_pace(variant, *LOOP_LENGTHS, setting.engine, launched).microseconds / 1e3


def _recorded_times() -> dict[str, dict[str, float]]:
    """Return recorded milliseconds by device and variant."""
    times: dict[str, dict[str, float]] = {}
    for device in recorded.DEVICES:
        by_variant = {
            variant: recorded.milliseconds(f"pairhmm {variant}", DATA, device) for variant in (*INTRATASK, *INTERTASK)
        }
        times[device] = {
            variant: milliseconds for variant, milliseconds in by_variant.items() if milliseconds is not None
        }
    return times


def _runtime_rows(setting: Setting) -> list[Row]:
    """Return the rows of Table 5."""
    loops = {machine: setting.timing(LOOP, machine) for machine in (Machine.core, Machine.cores)}
    core = loops[Machine.core]
    baseline = 1e3 * CELLS_OF_10S / core.rate if core else None
    rows: list[Row] = []
    for name, milliseconds, variant in RUNTIMES:
        row: Row = {
            about("implementation"): name, paper("ms"): milliseconds, paper("speedup over C++"): RUNTIMES[1][1] / milliseconds,
        }  # fmt: skip
        if variant and variant != LOOP:
            row = {**row, model("kernels on a K40, ms"): _on_ten_seconds(setting, variant)}
        for device, times in _recorded_times().items():
            if variant in times:
                row = {**row, gpu(f"{device}, kernels, ms"): times[variant]}
        if variant == LOOP:
            row = {**row, cpu("ms"): baseline}
        rows.append(row)
    for machine, timing in loops.items():
        if timing:
            rows.append({
                about("implementation"): f"{LOOP}, {machine}: {timing.machine}", cpu("ms"): 1e3 * CELLS_OF_10S / timing.rate,
            })  # fmt: skip
    return rows


def _extreme(times: Mapping[str, float], variants: Sequence[str], slowest: bool) -> float | None:
    """Return the longest time of the variants, or else the shortest; None unless all have a time."""
    present = [times[variant] for variant in variants if variant in times]
    if len(present) < len(variants):
        return None
    return max(present) if slowest else min(present)


def ten_seconds(setting: Setting) -> Shown:
    """Table 5."""
    rows = _runtime_rows(setting)
    predicted = {
        variant: _on_ten_seconds(setting, variant) for _, _, variant in RUNTIMES if variant and variant != LOOP
    }

    by_source: dict[Origin, Mapping[str, float]] = {predicted_for(K40): predicted}
    by_source |= {recorded.origin(device): times for device, times in _recorded_times().items()}
    tiles = list(pairwise(INTERTASK))
    slower = [variant for variant in (*INTRATASK, *INTERTASK) if variant != "intratask-warps"]
    return Shown(
        [
            Claim("improved warp-based is the fastest", [
                more_than(origin, f"speedup over {other}", ratio(times.get(other), times.get("intratask-warps")), 1)
                for origin, times in by_source.items() for other in slower], main=True),
            Claim("every intra-task implementation is faster than every inter-task one", [
                more_than(origin, "fastest inter-task over slowest intra-task time", ratio(
                    _extreme(times, INTERTASK, slowest=False), _extreme(times, INTRATASK, slowest=True)), 1)
                for origin, times in by_source.items()]),
            Claim("inter-task: the larger the tile, the faster", [
                more_than(origin, f"speedup of {fast} over {slow}", ratio(times.get(slow), times.get(fast)), 1)
                for origin, times in by_source.items() for slow, fast in tiles]),
            Claim("the speedups of the table are those of its times", [
                near(TEXT, f"speedup of {name} over Java", 10800 / milliseconds, speedup, 0.01)
                for name, milliseconds, speedup in PRINTED_SPEEDUPS]),
        ],
        "3,550 pairs with one thread each do not fill a GPU, which determines the order of the two approaches; the "
        "paper's times include preparation and transfers.",
        [Table('The "10s" set', rows)],
        note="The times of the paper include data set preparation and transfers; ours are of kernels only. Times of the plain "
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
        [Claim("naive intratask is the fastest of the GPU's implementations on chromosome 10 of HCC1954", [],
               main=True, remark="The reads of G15512.HCC1954.1 and GATK 3.7 are not included."),
         Claim("82 % of its chunks have less than 200 pairs, the case of Fig. 10", [], remark="See Figure 10."),
         Claim("naive intratask is 11.73 times as fast as a Power8 core", [near(TEXT, "ratio of T3", 1161 / 99, 11.73, 0.005)])],
        "The chunks that the authors wrote with a modified GATK are not published; GATK HaplotypeCaller is not included.",
        [Table("Chromosome 10", rows)],
    )  # fmt: skip


def headlines(setting: Setting) -> Shown:
    """Abstract: 5.47 times the earlier implementation on the same GPU."""
    times = {variant: milliseconds for _, milliseconds, variant in RUNTIMES if variant}
    best = _on_ten_seconds(setting, "intratask-warps")
    return Shown(
        [
            Claim("5.47 times the earlier implementation on a K40", [], main=True,
                  remark="The implementation of Huang et al. is not included. Its printed 70 ms, with preparation and "
                  f"transfers, are {70 / best:.3g} times the predicted time of our kernels alone."),
            Claim("5.47 is the quotient of the printed times", [
                near(TEXT, "70 ms over 12.8 ms", 70 / times["intratask-warps"], 5.47, 0.005)]),
            Claim("1.17 times Intel Xeon with 24 cores, 843 times Java", [
                near(TEXT, "15 ms over 12.8 ms", 15 / times["intratask-warps"], 1.17, 0.005),
                near(TEXT, "10,800 ms over 12.8 ms", 10800 / times["intratask-warps"], 843, 0.005)]),
            Claim("GATK as a whole is 1.71 times as fast", [], remark="See Table 7."),
        ],
        "The printed times give the headline; the earlier implementation is needed to show it.",
        note=CAVEAT,
    )  # fmt: skip


def whole_program(setting: Setting) -> Shown:
    """Table 7."""
    rows: list[Row] = [
        {about("GATK HC"): name, paper("seconds"): seconds, paper("speedup"): WHOLE[0][1] / seconds}
        for name, seconds in WHOLE
    ]
    return Shown(
        [
            Claim(
                "GATK with the GPU is 1.71 times as fast as the baseline", [], main=True, remark="GATK is not included."
            ),
            Claim(
                "the speedups are those of the printed times",
                [
                    near(TEXT, f"speedup, {name}", WHOLE[0][1] / seconds, printed, 0.005)
                    for (name, seconds), printed in zip(WHOLE[1:], (1.42, 1.71), strict=True)
                ],
            ),
        ],
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
        Item("Algorithm 1", "PFA in the GATK HaplotypeCaller", algorithms.gatk),
        Item("Algorithm 2", "Naive implementation of the inter-task approach", algorithms.naive),
        Item("Headlines", "Claims of the abstract", headlines),
    ),
    benchmarks=benchmarks,
)
