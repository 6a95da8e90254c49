"""Ren 2018, item by item: its figures of throughput and its tables beside ours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from simtbed.kernels.pairhmm import FAMILY, REN
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.machine.occupancy import occupancy
from simtbed.oracles.pairhmm_loop import log10_likelihoods

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS, REN_PAIRS, Timer
from .. import recorded
from ..measured import Machine, Timed
from ..paper import (
    Chart,
    Claim,
    Item,
    Paper,
    Parameter,
    Row,
    Series,
    Setting,
    Shown,
    Source,
    Table,
    about,
    cpu,
    emulator,
    gpu,
    paper,
)
from . import figures
from .figures import cells, counters
from .profiled import K40, LENGTHS, Printed, bound, by_rule, floors, launched
from .profiled import PAPER as PRINTED

INTERTASK = ("intertask-naive", *(f"intertask-tile{tile}" for tile in figures.TILES))
INTRATASK = ("intratask-naive", "intratask-tile2", "intratask-warp", "intratask-warps")
FEW = 200
"""Pairs of the sets of Fig. 10."""
DATA = "pairhmm/10s.in"
LOOP = "plain loop, float"
LOOP_PAIRS, LOOP_LENGTHS = 4096, (76, 231)
"""Read and haplotype of which pairs of the "10s" set have the averages and the cells."""
Sets = Mapping[int, tuple[int, int]]


# ------------------------------------------------------------------ throughput: Figures 8, 9 and 10
def timing_name(variant: str, number: int, pairs: int) -> str:
    """Under which the time of a variant on a synthetic set is recorded."""
    return f"{variant}, set {number}, {pairs} pairs"


def timed(setting: Setting) -> Iterator[Timed]:
    """The kernels of Figures 8, 9 and 10 on a GPU; the plain loop on a CPU."""
    plots = (
        (INTERTASK, INTERTASK_SETS, REN_PAIRS),
        (INTRATASK, INTRATASK_SETS, REN_PAIRS),
        (INTRATASK, INTRATASK_SETS, FEW),
    )
    for variants, sets, pairs in plots:
        for number, (m, n) in sets.items():
            for variant in variants:
                run = partial(_kernels, variant, pairs, m, n)
                yield Timed(timing_name(variant, number, pairs), Machine.gpu, run)

    for machine, threads in ((Machine.core, 1), (Machine.cores, os.cpu_count() or 1)):
        yield Timed(LOOP, machine, partial(_loop, threads))


def by_loop(problem: Problem, threads: int = 1) -> npt.NDArray[np.float64]:
    """The likelihoods of a problem by the plain compiled loop."""
    qualities = [problem.base_quality, problem.insertion, problem.deletion, problem.continuation]
    return log10_likelihoods(
        problem.bases, qualities, problem.read_offsets, problem.haplotypes, problem.haplotype_offsets, *problem.pairs, threads
    )  # fmt: skip


def _loop(threads: int, repeat: int) -> tuple[list[float], float]:
    """On pairs like those of the "10s" set by their averages; the first run compiles and is not timed. One core's time is
    that of the processor, which other work on the machine does not lengthen."""
    clock = time.process_time if threads == 1 else time.perf_counter
    problem = equal_lengths(1, LOOP_PAIRS, *LOOP_LENGTHS)
    by_loop(problem, threads)
    taken = []
    for _ in range(repeat):
        start = clock()
        by_loop(problem, threads)
        taken.append(1e3 * (clock() - start))
    return taken, problem.cells


def _kernels(variant: str, pairs: int, m: int, n: int, repeat: int) -> tuple[list[float], float]:
    problem = equal_lengths(1, pairs, m, n)
    timer = Timer(repeat)
    FAMILY.solve(problem, variant, timer)
    return [timer.milliseconds], problem.cells


def throughput(setting: Setting, variants: Sequence[str], sets: Sets, pairs: int) -> dict[tuple[str, int], float]:
    """GCUPS that were measured, by variant and set."""
    found = {}
    for variant in variants:
        for number in sets:
            if timing := setting.timing(timing_name(variant, number, pairs), Machine.gpu):
                found[variant, number] = timing.rate / 1e9
    return found


def _counted_pairs(setting: Setting, variant: str) -> int:
    """Of which the counters are taken: the inter-task variants fill blocks of 128 pairs, a tenth is enough of others."""
    return setting.whole("pairs") if variant in INTERTASK else max(1, setting.whole("pairs") // 16)


def _at_most(setting: Setting, variant: str, m: int, n: int) -> tuple[float, str]:
    """GCUPS that a K40 could reach if the resource that the variant uses most were all that it needs, and which it is."""
    pairs = _counted_pairs(setting, variant)
    counts = counters(variant, pairs, m, n, setting.engine)
    return 1 / max(floors(counts, cells(pairs, m, n), K40).values()), bound(counts, K40)


def _throughput(
    setting: Setting, variants: Sequence[str], sets: Sets, pairs: int, title: str
) -> tuple[dict[tuple[str, int], float], list[Table], list[Chart]]:
    """What was measured, by variant and set; the table and the plot of what is there."""
    found: dict[tuple[str, int], float] = {}
    ceilings: dict[tuple[str, int], float] = {}
    rows: list[Row] = []
    for number, (m, n) in sets.items():
        for variant in variants:
            ceilings[variant, number], limit = _at_most(setting, variant, m, n)
            row: Row = {
                about("set"): number, about("read"): m, about("haplotype"): n, about("implementation"): variant,
                emulator("GCUPS of a K40 at most"): ceilings[variant, number], emulator("bound by"): limit,
            }  # fmt: skip
            if timing := setting.timing(timing_name(variant, number, pairs), Machine.gpu):
                found[variant, number] = timing.rate / 1e9
                row = {**row, gpu(f"GCUPS, {timing.machine}"): found[variant, number]}
            rows.append(row)
    plots = [
        Chart(what, "data set", "GCUPS", [
            Series(variant, source, [(number, values[variant, number]) for number in sets if (variant, number) in values])
            for variant in variants
        ])
        for what, source, values in (
            (f"{title}: measured", Source.gpu, found), (f"{title}: at most, by what bounds it", Source.emulator, ceilings),
        )
        if values
    ]  # fmt: skip
    return found, [Table(f"{title}, {pairs:,} pairs", rows)], plots


def _on_all_sets(
    text: str, found: Mapping[tuple[str, int], float], sets: Sets, better: Sequence[str], worse: Sequence[str]
) -> Claim:
    """That each of some variants is faster than each of others on every set."""
    if not found:
        return Claim(text, None, "needs times of a GPU")
    pairs = [(b, w, n) for n in sets for b in better for w in worse if (b, n) in found and (w, n) in found and b != w]
    true = sum(found[b, n] > found[w, n] for b, w, n in pairs)
    return Claim(text, true == len(pairs), f"true of {true} of {len(pairs)} comparisons on the GPU")


def intertask_throughput(setting: Setting) -> Shown:
    """Fig. 8."""
    found, shown, plots = _throughput(setting, INTERTASK, INTERTASK_SETS, REN_PAIRS, "inter-task implementations")
    moved = [
        figures.global_bytes(counters(variant, setting.whole("pairs"), *INTERTASK_SETS[6], setting.engine))
        for variant in INTERTASK
    ]
    steady = [_at_most(setting, variant, *INTERTASK_SETS[number])[0] for variant in INTERTASK for number in (2, 6)]
    spread = max(max(a, b) / min(a, b) for a, b in zip(steady[::2], steady[1::2], strict=True))
    claims = [
        _on_all_sets("the naive implementation is the slowest", found, INTERTASK_SETS, INTERTASK[1:], INTERTASK[:1]),
        _on_all_sets("tile = 6 is the fastest", found, INTERTASK_SETS, ["intertask-tile6"], INTERTASK),
        Claim("a larger tile moves less through global memory", all(a > b for a, b in pairwise(moved)),
              f"{moved[0] / moved[-1]:.1f} times less from naive to tile = 8"),
        Claim("throughput is comparable when sequences get longer", spread < 1.5,
              f"what bounds a cell changes by {spread:.2f} times at most from set 2 to set 6"),
    ]  # fmt: skip
    return Shown(claims, _why(found, "Traffic falls with the tile as the paper says"), shown, plots, FIGURES)


def intratask_throughput(setting: Setting) -> Shown:
    """Fig. 9."""
    found, shown, plots = _throughput(setting, INTRATASK, INTRATASK_SETS, REN_PAIRS, "intra-task implementations")
    steps = {
        (m, n): counters("intratask-warps", _counted_pairs(setting, "intratask-warps"), m, n, setting.engine).total("warp_instructions")
        / cells(_counted_pairs(setting, "intratask-warps"), m, n)
        for m, n in INTRATASK_SETS.values()
    }  # fmt: skip
    longer = [steps[m, n] > steps[m, n + 32] for m, n in steps if (m, n + 32) in steps]
    claims = [
        Claim("warp-based: a longer haplotype helps where the read stays", all(longer),
              f"warp instructions a cell fall at {sum(longer)} of {len(longer)} steps of the haplotype's length"),
        _by_length("warp-based: a longer read costs where the haplotype stays", found, INTRATASK[2:], read=True),
        _by_length("naive and tile = 2: longer sequences help", found, INTRATASK[:2], read=False),
        _on_all_sets("improved warp-based is faster than warp-based", found, INTRATASK_SETS, INTRATASK[3:], INTRATASK[2:3]),
        _on_all_sets("naive is faster than tile = 2", found, INTRATASK_SETS, INTRATASK[:1], INTRATASK[1:2]),
    ]  # fmt: skip
    return Shown(
        claims,
        _why(found, "The share of a warp's steps that fill and drain it falls as the haplotype grows"),
        shown,
        plots,
        FIGURES,
    )


def _by_length(text: str, found: Mapping[tuple[str, int], float], variants: Sequence[str], read: bool) -> Claim:
    """read: that throughput falls from a read to the next longer one; else that it grows with the haplotype."""
    if not found:
        return Claim(text, None, "needs times of a GPU")
    number_of = {lengths: number for number, lengths in INTRATASK_SETS.items()}
    told = []
    for (m, n), number in number_of.items():
        after = number_of.get((m + 32, n) if read else (m, n + 32))
        told += [
            (found[variant, after] < found[variant, number]) == read
            for variant in variants
            if after and (variant, after) in found and (variant, number) in found
        ]
    return Claim(text, all(told), f"true of {sum(told)} of {len(told)} steps of length on the GPU")


def few_pairs(setting: Setting) -> Shown:
    """Fig. 10."""
    found, shown, plots = _throughput(setting, INTRATASK, INTRATASK_SETS, FEW, "intra-task implementations")
    slots = K40.sms * K40.warps_per_sm
    warps = {"intratask-naive": FEW * figures.WARPS, "intratask-warps": FEW}
    best = [max(INTRATASK, key=lambda v: found.get((v, number), 0.0)) == INTRATASK[0] for number in INTRATASK_SETS]
    claims = [
        Claim("naive is the fastest on most sets", sum(best) > len(best) / 2 if found else None,
              f"on {sum(best)} of {len(best)} sets on the GPU" if found else "needs times of a GPU"),
        Claim("the improved warp-based implementation has not enough work to fill the GPU",
              warps["intratask-warps"] < slots / 2 < warps["intratask-naive"],
              f"{FEW} pairs are {warps['intratask-warps']} warps for {slots} slots of a K40; naive has {warps['intratask-naive']}"),
    ]  # fmt: skip
    why = _why(
        found, "200 pairs are a fifth of the warps that the card holds, and four fifths if a block computes each"
    )
    return Shown(claims, why, shown, plots, FIGURES)


FIGURES = (
    "The paper prints no numbers of this figure. GCUPS at most: what the counted traffic and instructions would allow a "
    "K40 at 745 MHz whose other resources were free; occupancy and latency are not in it."
)


def _why(found: Mapping[tuple[str, int], float], counted: str) -> str:
    return f"{counted}; who is faster {'was measured on a GPU' if found else 'waits for times of a GPU'}."


# ------------------------------------------------------------------ Tables 2 and 4
def _profiled(setting: Setting, number: int) -> tuple[list[Row], list[Printed]]:
    printed = [one for one in PRINTED if one.table == number]
    rows: list[Row] = []
    for one in printed:
        pairs = _counted_pairs(setting, one.variant)
        (result,) = launched(equal_lengths(1, pairs, *LENGTHS[number]), one.variant, engine=setting.engine)
        least = floors(result.counters, cells(pairs, *LENGTHS[number]), K40)
        ours = recorded.registers(f"pairhmm {one.variant}")
        memory = "global memory" if number == 2 else "shared memory"
        rows.append({
            about("implementation"): one.variant,
            paper("limited by"): one.limitation,
            emulator("most used"): bound(result.counters, K40),
            paper("bandwidth, GB/s"): one.bandwidth,
            emulator(f"least ns a cell, {memory}"): least[memory],
            paper("registers"): one.registers,
            gpu("registers, sm_90"): ours,
            paper("shared bytes"): one.shared,
            emulator("shared bytes"): result.shared_bytes,
            paper("occupancy, %"): one.occupancy,
            emulator("occupancy by the paper's registers, %"): by_rule(one),
            emulator("... and our shared bytes, %"): occupancy(K40, one.block, one.registers, result.shared_bytes).percent,
        })  # fmt: skip
    return rows, printed


def intertask_profile(setting: Setting) -> Shown:
    """Table 2."""
    rows, printed = _profiled(setting, 2)
    moved = [float(row[emulator("least ns a cell, global memory")] or 0) for row in rows]
    memory = [
        (one.limitation == "memory") == (row[emulator("most used")] == "global memory")
        for one, row in zip(printed, rows, strict=True)
    ]
    return Shown(
        [
            Claim("global memory traffic falls as the tile grows", all(a > b for a, b in pairwise(moved)), "counted bytes a cell fall"),
            Claim("shared memory a block: 2,048 bytes a row of the tile", *_same(rows, "shared bytes")),
            Claim("theoretical occupancy", *_close(rows)),
            Claim("naive, tile = 2 and tile = 4 are bound by memory bandwidth, the others are not", all(memory),
                  f"true of {sum(memory)} of {len(memory)} by the resource that is used most"),
        ],
        "Shared bytes are the paper's, its registers give its occupancies by CUDA's rule, and counted traffic says who is "
        "bound by memory.",
        [Table("Set 6, which the caption calls 8", rows)],
        note=PROFILED,
    )  # fmt: skip


def intratask_profile(setting: Setting) -> Shown:
    """Table 4."""
    rows, _ = _profiled(setting, 4)
    shared = {
        str(row[about("implementation")]): float(row[emulator("least ns a cell, shared memory")] or 0) for row in rows
    }
    return Shown(
        [
            Claim("tile = 2 asks less of shared memory than naive", shared["intratask-tile2"] < shared["intratask-naive"],
                  f"{1 - shared['intratask-tile2'] / shared['intratask-naive']:.0%} less a cell"),
            Claim("shared memory a block", *_same(rows, "shared bytes")),
            Claim("theoretical occupancy", *_close(rows)),
            Claim("improved warp-based fills the card better than warp-based", *_fuller(rows)),
        ],
        "The occupancies follow from its registers and shared bytes; two copies of a pass's last row explain 6,144 of the "
        "6,540 bytes of warp-based, and one copy (3,328 in all) does not; what else its kernels hold the paper does not say.",
        [Table("Set 26", rows)],
        note=PROFILED,
    )  # fmt: skip


PROFILED = (
    "Registers: nvcc 13 for sm_90, from the record of the H200; empty where a variant waits for its run. Latency and "
    "achieved occupancy are not counted by the emulator."
)


def _same(rows: Sequence[Row], name: str) -> tuple[bool, str]:
    same = [row[paper(name)] == row[emulator(name)] for row in rows]
    return all(same), f"the paper's for {sum(same)} of {len(same)}"


def _close(rows: Sequence[Row]) -> tuple[bool, str]:
    """The paper prints one decimal."""
    said, found = paper("occupancy, %"), emulator("occupancy by the paper's registers, %")
    near = [abs(float(row[said] or 0) - float(row[found] or 0)) < 0.051 for row in rows]
    return all(near), f"by rule from its registers and shared bytes: the paper's for {sum(near)} of {len(near)}"


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
"""Table 5: what, milliseconds, and what it is here."""
CELLS_OF_10S = 62_380_634
"""Of the "10s" set, 3,550 pairs."""


def ten_seconds(setting: Setting) -> Shown:
    """Table 5."""
    loops = {machine: setting.timing(LOOP, machine) for machine in (Machine.core, Machine.cores)}
    core = loops[Machine.core]
    baseline = 1e3 * CELLS_OF_10S / core.rate if core else None
    rows: list[Row] = []
    ours: dict[str, float] = {}
    for name, milliseconds, here in RUNTIMES:
        row: Row = {
            about("implementation"): name, paper("ms"): milliseconds, paper("speedup over C++"): RUNTIMES[1][1] / milliseconds,
        }  # fmt: skip
        if here and here != LOOP and (found := recorded.milliseconds(f"pairhmm {here}", DATA)) is not None:
            ours[here] = found
            row = {**row, gpu("kernels, ms"): found, gpu("speedup over the plain loop"): baseline and baseline / found}
        if here == LOOP:
            row = {**row, cpu("ms"): baseline}
        rows.append(row)
    for machine, timing in loops.items():
        if timing:
            rows.append({
                about("implementation"): f"{LOOP}, {machine}: {timing.machine}", cpu("ms"): 1e3 * CELLS_OF_10S / timing.rate,
            })  # fmt: skip
    intra, inter = ([ours[v] for v in group if v in ours] for group in (INTRATASK, INTERTASK))
    tiles = [ours[v] for v in INTERTASK if v in ours]
    whole = len(intra) == len(INTRATASK)
    return Shown(
        [
            Claim("every intra-task implementation is faster than every inter-task one",
                  max(intra) < min(inter) if whole and inter else None,
                  f"{max(intra):.2f} ms at most against {min(inter):.2f} ms" if whole and inter else "needs times of a GPU"),
            Claim("inter-task: the larger the tile, the faster", all(a > b for a, b in pairwise(tiles)) if len(tiles) > 1 else None,
                  "from naive to tile = 8, as far as measured: " + ", ".join(f"{ms:.2f}" for ms in tiles)),
            Claim("improved warp-based is the fastest", ours["intratask-warps"] == min(ours.values()) if whole else None,
                  f"{min(ours, key=lambda v: ours[v])} is" if ours else "needs times of a GPU"),
        ],
        "The order of the two approaches is the paper's on another card too; which intra-task form wins is not.",
        [Table('The "10s" set', rows)],
        note="The paper's times hold data set preparation and transfers; ours are of kernels alone, on an H200. Times of the plain "
        "loop are computed from the cells a second that it reaches on a synthetic set.",
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
        [Claim("naive intratask is the fastest on chromosome 10 of HCC1954", None, "the reads and GATK 3.7 are not here"),
         Claim("82 % of its chunks have less than 200 pairs, for which Fig. 10 says so", None, "see Fig. 10")],
        "The data set is not public as the paper used it, and GATK HaplotypeCaller is not part of this.",
        [Table("Chromosome 10", rows)],
    )  # fmt: skip


def whole_program(setting: Setting) -> Shown:
    """Table 7."""
    rows: list[Row] = [
        {about("GATK HC"): name, paper("seconds"): seconds, paper("speedup"): WHOLE[0][1] / seconds}
        for name, seconds in WHOLE
    ]
    return Shown(
        [Claim("GATK with the GPU is 1.71 times as fast as the baseline", None, "GATK is not here")],
        "GATK HaplotypeCaller is not part of this: only the forward algorithm is.",
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
    timed=timed,
)
