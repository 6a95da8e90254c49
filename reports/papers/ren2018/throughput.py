"""Throughput of Ren 2018, Figures 8 to 10, compared with predictions for a K40 and measured times."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.model.launches import time_of
from simtbed.model.time import Estimate
from simtbed.oracles.pairhmm_loop import log10_likelihoods
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS, REN_PAIRS, Timer
from ...requests import first_request
from .. import checks
from ..claims import Claim, Origin, Source, at_least, at_most, counted_by, less_than, more_than, predicted_for
from ..measured import Benchmark, Check, Machine
from ..paper import (
    Chart,
    Row,
    Series,
    Setting,
    Shown,
    Size,
    Table,
    about,
    emulator,
    gpu,
    model,
)
from ..predicted import CAVEAT, Pace, pace
from . import figures
from .figures import cells, counters
from .profiled import K40, bound, floors, launched
from .profiled import PAPER as PRINTED

INTERTASK = ("intertask-naive", *(f"intertask-tile{tile}" for tile in figures.TILES))
INTRATASK = ("intratask-naive", "intratask-tile2", "intratask-warp", "intratask-warps")
FEW = 196
"""Pairs of the sets of Fig. 10: 14 reads by 14 haplotypes are closest to 200."""
LAUNCHED = 50_000
"""Timed pairs of the sets of Fig. 8; 500,000 pairs of its longest set take 9 launches, limited by host memory."""
PREDICTED = (1, 9, 16, 22, 26)
"""Sets of Fig. 10 with predictions at the small size; each launch is emulated completely."""
DATA = "pairhmm/10s.in"
LOOP = "plain loop, float"
LOOP_PAIRS, LOOP_LENGTHS = 4096, (76, 231)
"""Lengths of read and haplotype with the averages and the cells of the "10s" set."""
Sets = Mapping[int, tuple[int, int]]


# ------------------------------------------------------------------ throughput: Figures 8, 9 and 10
def timing_name(variant: str, number: int, pairs: int) -> str:
    """Return the name of the timing of a variant on a synthetic set."""
    return f"{variant}, set {number}, {pairs} pairs"


def benchmarks(setting: Setting) -> Iterator[Benchmark]:
    """Yield the plain loop on a CPU and the kernels of Figures 8 to 10 on a GPU."""
    loop = Check(LOOP, lambda: FAMILY.compare(by_loop(FAMILY.example()), FAMILY.oracle(FAMILY.example())))
    for machine, threads in ((Machine.core, 1), (Machine.cores, current_cores())):
        yield Benchmark(LOOP, machine, partial(_loop, threads), loop)
    plots = (
        (INTRATASK, INTRATASK_SETS, FEW),
        (INTERTASK, INTERTASK_SETS, LAUNCHED),
        (INTRATASK, INTRATASK_SETS, REN_PAIRS),
    )
    for variants, sets, pairs in plots:
        for number, (m, n) in sets.items():
            for variant in variants:
                run = partial(_kernels, variant, pairs, m, n)
                check = checks.on_gpu(FAMILY, variant, FAMILY.example)
                yield Benchmark(timing_name(variant, number, pairs), Machine.gpu, run, check)


def by_loop(problem: Problem, threads: int = 1) -> npt.NDArray[np.float64]:
    """Return the likelihoods of a problem by the compiled loop."""
    qualities = [problem.base_quality, problem.insertion, problem.deletion, problem.continuation]
    return log10_likelihoods(
        problem.bases, qualities, problem.read_offsets, problem.haplotypes, problem.haplotype_offsets, *problem.pairs, threads
    )  # fmt: skip


def _loop(threads: int, repeat: int) -> tuple[list[float], float]:
    """Time the loop on pairs with the average lengths of the "10s" set, after a warm-up run. The time of one core is processor
    time, independent of other work on the machine."""
    clock = time.process_time if threads == 1 else time.perf_counter
    problem = equal_lengths(1, LOOP_PAIRS, *LOOP_LENGTHS)
    by_loop(problem, threads)
    times = []
    for _ in range(repeat):
        start = clock()
        by_loop(problem, threads)
        times.append(1e3 * (clock() - start))
    return times, problem.cells


def _kernels(variant: str, pairs: int, m: int, n: int, repeat: int) -> tuple[list[float], float]:
    problem = equal_lengths(1, pairs, m, n)
    timer = Timer(repeat)
    FAMILY.solve(problem, variant, timer)
    return [timer.milliseconds], problem.cells


def counted_pairs(setting: Setting, variant: str) -> int:
    """Return the number of counted pairs: inter-task variants fill blocks of 128 pairs, others need a tenth."""
    return setting.whole("pairs") if variant in INTERTASK else max(1, setting.whole("pairs") // 16)


def _at_most(setting: Setting, variant: str, m: int, n: int) -> tuple[float, str]:
    """Return the upper bound of GCUPS on a K40, and the limiting resource."""
    pairs = counted_pairs(setting, variant)
    counts = counters(variant, pairs, m, n, setting.engine)
    return 1 / max(floors(counts, cells(pairs, m, n), K40).values()), bound(counts, K40)


Speeds = Mapping[tuple[str, int], float]
"""GCUPS by variant and set."""
SpeedsBy = Mapping[Origin, Speeds]
"""GCUPS by the time model, and on each GPU."""
FULL = 16
"""Maximum of resident blocks per SM of a K40."""
PAIRS_OF_BLOCK = {**dict.fromkeys(INTERTASK, 128), **dict.fromkeys(INTRATASK, 1), "intratask-warps": figures.WARPS * 2}


@cache
def predicted_pace(variant: str, m: int, n: int, engine: EngineName, launched: int | None = None) -> Pace:
    """Predict a K40, with the registers of Tables 2 and 4. launched: blocks of the launch, None if they fill it."""
    registers = next(printed.registers for printed in PRINTED if printed.variant == variant)
    problem = equal_lengths(1, FULL * PAIRS_OF_BLOCK[variant], m, n)
    return pace(first_request(FAMILY, variant, problem), K40, registers, engine, launched)


def _full(setting: Setting, variant: str, m: int, n: int) -> tuple[float, float, float]:
    """Return predicted GCUPS of a fully occupied K40, and their interval."""
    prediction = predicted_pace(variant, m, n, setting.engine)
    cells = PAIRS_OF_BLOCK[variant] * m * n / 1e3
    low, high = prediction.interval
    return cells / prediction.microseconds, cells / high, cells / low


def _throughput(
    setting: Setting,
    variants: Sequence[str],
    sets: Sets,
    pairs: int,
    title: str,
    times: Mapping[tuple[str, int], Estimate] | None = None,
) -> tuple[SpeedsBy, list[Table], list[Chart]]:
    """Return the values by source, the table and the plots. times: of single launches that do not fill the GPU."""
    measured: dict[Origin, dict[tuple[str, int], float]] = defaultdict(dict)
    predicted: dict[tuple[str, int], float] = {}
    ceilings: dict[tuple[str, int], float] = {}
    rows: list[Row] = []
    for number, (m, n) in sets.items():
        for variant in variants:
            ceilings[variant, number], limit = _at_most(setting, variant, m, n)
            row: Row = {
                about("set"): number, about("read"): m, about("haplotype"): n, about("implementation"): variant,
                emulator("GCUPS of a K40 at most"): ceilings[variant, number], emulator("bound by"): limit,
            }  # fmt: skip
            if times is None:
                predicted[variant, number], low, high = _full(setting, variant, m, n)
                row = {
                    **row,
                    model("GCUPS of a K40"): predicted[variant, number],
                    model("from"): low,
                    model("to"): high,
                }
            elif (variant, number) in times:
                time, size = times[variant, number], cells(pairs, m, n) / 1e3
                predicted[variant, number] = size / time.time_us
                row = {
                    **row, model("GCUPS of a K40"): size / time.time_us, model("from"): size / time.high_us,
                    model("to"): size / time.low_us, model("bound by"): time.bound,
                }  # fmt: skip
            name = timing_name(variant, number, pairs)
            for timings in setting.by_machine([name], Machine.gpu):
                timing = timings[name]
                measured[timing.origin][variant, number] = timing.rate / 1e9
                row = {**row, gpu(f"GCUPS, {timing.machine}"): timing.rate / 1e9}
            rows.append(row)
    plots = [
        Chart(what, "data set", "GCUPS", [
            Series(variant, source, [(number, values[variant, number]) for number in sets if (variant, number) in values])
            for variant in variants
        ])
        for what, source, values in (
            (f"{title}: a K40 by the time model", Source.model, predicted),
            *((f"{title}: measured on {origin.device}", Source.gpu, values) for origin, values in measured.items()),
            (f"{title}: at most, by the limiting resource", Source.emulator, ceilings),
        )
        if values
    ]  # fmt: skip
    speeds = {predicted_for(K40): predicted, **measured} if predicted else dict(measured)
    return speeds, [Table(f"{title}, {pairs:,} pairs", rows)], plots


def _largest_ratio(speeds: Speeds, sets: tuple[int, int]) -> float:
    """Return the largest ratio between the throughputs of two sets over the inter-task variants."""
    ratios = [speeds[variant, sets[0]] / speeds[variant, sets[1]] for variant in INTERTASK]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _fraction(
    text: str, question: Callable[[Speeds], tuple[int, int]], speeds: SpeedsBy, need: float = 1.0, main: bool = False
) -> Claim:
    """Return a claim on a fraction (true, total) of comparisons, by each source. need: the smallest fraction."""
    compared = []
    for origin, values in speeds.items():
        true, total = question(values)
        if total:
            compared.append(at_least(origin, f"share of {total} comparisons", true / total, need))
    return Claim(text, compared, main=main)


def _faster(sets: Sets, better: Sequence[str], worse: Sequence[str]) -> Callable[[Speeds], tuple[int, int]]:
    """Return the number of sets and variant pairs with the first variant faster, and the total."""

    def question(speeds: Speeds) -> tuple[int, int]:
        pairs = [
            (b, w, n) for n in sets for b in better for w in worse if (b, n) in speeds and (w, n) in speeds and b != w
        ]
        return sum(speeds[b, n] > speeds[w, n] for b, w, n in pairs), len(pairs)

    return question


def intertask_throughput(setting: Setting) -> Shown:
    """Fig. 8."""
    speeds, shown, plots = _throughput(setting, INTERTASK, INTERTASK_SETS, LAUNCHED, "inter-task implementations")
    pairs = setting.whole("pairs")
    moved = [
        figures.global_bytes(counters(variant, pairs, *INTERTASK_SETS[6], setting.engine)) for variant in INTERTASK
    ]
    steady = (2, 6)
    spreads = [
        (origin, _largest_ratio(values, steady))
        for origin, values in speeds.items()
        if {(variant, number) for variant in INTERTASK for number in steady} <= set(values)
    ]
    claims = [
        _fraction("tile = 6 is the fastest", _faster(INTERTASK_SETS, ["intertask-tile6"], INTERTASK), speeds, main=True),
        _fraction("the naive implementation is the slowest", _faster(INTERTASK_SETS, INTERTASK[1:], INTERTASK[:1]), speeds),
        Claim("a larger tile moves less through global memory",
              [more_than(counted_by(K40), f"ratio of bytes, {first} to {second}", a / b, 1)
               for (first, a), (second, b) in pairwise(zip(INTERTASK, moved, strict=True))]),
        Claim("throughput is comparable when sequences get longer",
              [at_most(origin, "largest ratio of the throughputs of sets 2 and 6", ratio, 1.25) for origin, ratio in spreads]),
    ]  # fmt: skip
    reason = "Traffic falls with the tile as in the paper, and it limits the naive kernel; large tiles differ little."
    return Shown(claims, reason, shown, plots, FIGURES)


def intratask_throughput(setting: Setting) -> Shown:
    """Fig. 9."""
    speeds, shown, plots = _throughput(setting, INTRATASK, INTRATASK_SETS, REN_PAIRS, "intra-task implementations")
    improved, warp = ["intratask-warps"], ["intratask-warp"]
    claims = [
        _fraction("improved warp-based beats warp-based", _faster(INTRATASK_SETS, improved, warp), speeds, main=True),
        _fraction("naive is faster than tile = 2", _faster(INTRATASK_SETS, INTRATASK[:1], INTRATASK[1:2]), speeds),
        _fraction("warp-based: a longer haplotype helps for a fixed read", _by_length(INTRATASK[2:], read=False, grows=True), speeds),
        _fraction("warp-based: a longer read costs for a fixed haplotype", _by_length(INTRATASK[2:], read=True, grows=False), speeds),
        _fraction("naive and tile = 2: a longer haplotype helps", _by_length(INTRATASK[:2], read=False, grows=True), speeds),
        _fraction("naive and tile = 2: a longer read helps", _by_length(INTRATASK[:2], read=True, grows=True), speeds),
    ]  # fmt: skip
    return Shown(
        claims,
        "The fraction of pipeline fill and drain steps falls as the haplotype grows, and small blocks leave slots of the GPU "
        "empty, which distinguishes the four.",
        shown,
        plots,
        FIGURES,
    )


def _by_length(variants: Sequence[str], read: bool, grows: bool) -> Callable[[Speeds], tuple[int, int]]:
    """Count the steps to the next longer read, or else haplotype, at which the throughput grows, or else falls."""
    number_of = {lengths: number for number, lengths in INTRATASK_SETS.items()}
    steps = [(number, number_of.get((m + 32, n) if read else (m, n + 32))) for (m, n), number in number_of.items()]

    def question(speeds: Speeds) -> tuple[int, int]:
        comparisons = [
            (speeds[variant, after] > speeds[variant, number]) == grows
            for number, after in steps
            for variant in variants
            if after and (variant, after) in speeds and (variant, number) in speeds
        ]
        return sum(comparisons), len(comparisons)

    return question


def few_pairs(setting: Setting) -> Shown:
    """Fig. 10."""
    numbers = PREDICTED if setting.size is Size.small else tuple(INTRATASK_SETS)
    times = {(variant, number): _predicted(setting, variant, number) for number in numbers for variant in INTRATASK}
    speeds, shown, plots = _throughput(setting, INTRATASK, INTRATASK_SETS, FEW, "intra-task implementations", times)
    slots = K40.sms * K40.warps_per_sm
    warps = {"intratask-naive": FEW * figures.WARPS, "intratask-warps": FEW}

    def first(values: Speeds) -> tuple[int, int]:
        """Count the sets with the naive variant fastest."""
        common_sets = sorted({number for _, number in values})
        fastest = [max(INTRATASK, key=lambda variant: values.get((variant, n), 0.0)) for n in common_sets]
        return fastest.count(INTRATASK[0]), len(common_sets)

    claims = [
        _fraction("naive is the fastest on most sets", first, speeds, need=0.5, main=True),
        Claim("the improved warp-based implementation has not enough work to fill the GPU", [
            less_than(counted_by(K40), "warps of improved warp-based per slot", warps["intratask-warps"] / slots, 0.5),
            more_than(counted_by(K40), "warps of naive per slot", warps["intratask-naive"] / slots, 0.5),
        ]),
    ]  # fmt: skip
    reason = "200 pairs are a fifth of the resident warps of the GPU, or four fifths with a block per pair."
    return Shown(claims, reason, shown, plots, FIGURES)


def _predicted(setting: Setting, variant: str, number: int) -> Estimate:
    """Predict the time of a set of Fig. 10 on a K40, with the registers of Table 4."""
    registers = next(printed.registers for printed in PRINTED if printed.variant == variant)
    problem = equal_lengths(1, FEW, *INTRATASK_SETS[number])
    (result,) = launched(problem, variant, engine=setting.engine)
    return time_of(result.request, K40, registers=registers)


FIGURES = (
    "The paper prints no numbers of this figure. GCUPS at most: the limit of a K40 at 745 MHz by the "
    "counted traffic and instructions alone; occupancy and latency are not included. " + CAVEAT
)
