"""Throughput of Ren 2018, Figures 8 to 10, compared with predictions for a K40 and measured times."""

from __future__ import annotations

import time
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
from ..measured import Benchmark, Check, Machine
from ..paper import (
    Chart,
    Claim,
    Row,
    Series,
    Setting,
    Shown,
    Size,
    Source,
    Table,
    about,
    emulator,
    gpu,
    model,
)
from ..predicted import CAVEAT, Pace, pace, settled
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
) -> tuple[Speeds, Speeds, list[Table], list[Chart]]:
    """Return measured values, predictions, the table and the plots. times: of single launches that do not fill the GPU."""
    speeds: dict[tuple[str, int], float] = {}
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
            if timing := setting.timing(timing_name(variant, number, pairs), Machine.gpu):
                speeds[variant, number] = timing.rate / 1e9
                row = {**row, gpu(f"GCUPS, {timing.machine}"): speeds[variant, number]}
            rows.append(row)
    plots = [
        Chart(what, "data set", "GCUPS", [
            Series(variant, source, [(number, values[variant, number]) for number in sets if (variant, number) in values])
            for variant in variants
        ])
        for what, source, values in (
            (f"{title}: a K40 by the time model", Source.model, predicted), (f"{title}: measured", Source.gpu, speeds),
            (f"{title}: at most, by what bounds it", Source.emulator, ceilings),
        )
        if values
    ]  # fmt: skip
    return speeds, predicted, [Table(f"{title}, {pairs:,} pairs", rows)], plots


def _mostly(
    question: Callable[[Speeds], tuple[int, int]], predicted: Speeds, measured: Speeds, text: str, need: float = 1.0
) -> Claim:
    """Return a claim on a fraction (true, total) of comparisons, by the time model and on the GPU."""

    def claim(speeds: Speeds) -> tuple[bool | None, str]:
        true, total = question(speeds) if speeds else (0, 0)
        return (true >= need * total, f"true of {true} of {total}") if total else (None, "")

    return settled(text, claim(predicted), claim(measured))


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
    measured, predicted, shown, plots = _throughput(
        setting, INTERTASK, INTERTASK_SETS, LAUNCHED, "inter-task implementations"
    )
    moved = [
        figures.global_bytes(counters(variant, setting.whole("pairs"), *INTERTASK_SETS[6], setting.engine))
        for variant in INTERTASK
    ]
    steady = [predicted[variant, number] for variant in INTERTASK for number in (2, 6)]
    spread = max(max(a, b) / min(a, b) for a, b in zip(steady[::2], steady[1::2], strict=True))
    claims = [
        _mostly(_faster(INTERTASK_SETS, INTERTASK[1:], INTERTASK[:1]), predicted, measured, "the naive implementation is the slowest"),
        _mostly(_faster(INTERTASK_SETS, ["intertask-tile6"], INTERTASK), predicted, measured, "tile = 6 is the fastest"),
        Claim("a larger tile moves less through global memory", all(a > b for a, b in pairwise(moved)),
              f"{moved[0] / moved[-1]:.1f} times less from naive to tile = 8"),
        Claim("throughput is comparable when sequences get longer", spread < 1.5,
              f"time model: it changes by {spread:.2f} times at most from set 2 to set 6"),
    ]  # fmt: skip
    reason = "Traffic falls with the tile as in the paper, and it limits the naive kernel; large tiles differ little."
    return Shown(claims, reason, shown, plots, FIGURES)


def intratask_throughput(setting: Setting) -> Shown:
    """Fig. 9."""
    measured, predicted, shown, plots = _throughput(
        setting, INTRATASK, INTRATASK_SETS, REN_PAIRS, "intra-task implementations"
    )
    steps = {
        (m, n): counters("intratask-warps", counted_pairs(setting, "intratask-warps"), m, n, setting.engine).total("warp_instructions")
        / cells(counted_pairs(setting, "intratask-warps"), m, n)
        for m, n in INTRATASK_SETS.values()
    }  # fmt: skip
    longer = [steps[m, n] > steps[m, n + 32] for m, n in steps if (m, n + 32) in steps]
    claims = [
        Claim("warp-based: a longer haplotype helps for a fixed read", all(longer),
              f"warp instructions per cell fall at {sum(longer)} of {len(longer)} steps of the haplotype's length"),
        _mostly(_by_length(INTRATASK[2:], read=True), predicted, measured, "warp-based: a longer read costs for a fixed haplotype"),
        _mostly(_by_length(INTRATASK[:2], read=False), predicted, measured, "naive and tile = 2: longer sequences help"),
        _mostly(_faster(INTRATASK_SETS, INTRATASK[3:], INTRATASK[2:3]), predicted, measured, "improved warp-based beats warp-based"),
        _mostly(_faster(INTRATASK_SETS, INTRATASK[:1], INTRATASK[1:2]), predicted, measured, "naive is faster than tile = 2"),
    ]  # fmt: skip
    return Shown(
        claims,
        "The fraction of pipeline fill and drain steps falls as the haplotype grows, and small blocks leave slots of the GPU "
        "empty, which distinguishes the four.",
        shown,
        plots,
        FIGURES,
    )


def _by_length(variants: Sequence[str], read: bool) -> Callable[[Speeds], tuple[int, int]]:
    """Count the steps with falling throughput for the next longer read (read), or with growing throughput for the next longer
    haplotype."""
    number_of = {lengths: number for number, lengths in INTRATASK_SETS.items()}
    steps = [(number, number_of.get((m + 32, n) if read else (m, n + 32))) for (m, n), number in number_of.items()]

    def question(speeds: Speeds) -> tuple[int, int]:
        comparisons = [
            (speeds[variant, after] < speeds[variant, number]) == read
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
    measured, predicted, shown, plots = _throughput(
        setting, INTRATASK, INTRATASK_SETS, FEW, "intra-task implementations", times
    )
    slots = K40.sms * K40.warps_per_sm
    warps = {"intratask-naive": FEW * figures.WARPS, "intratask-warps": FEW}

    def first(speeds: Speeds) -> tuple[int, int]:
        """Count the sets with the naive variant fastest."""
        common_sets = sorted({number for _, number in speeds})
        return sum(max(INTRATASK, key=lambda v: speeds.get((v, n), 0.0)) == INTRATASK[0] for n in common_sets), len(
            common_sets
        )

    claims = [
        _mostly(first, predicted, measured, "naive is the fastest on most sets", need=0.5),
        Claim("the improved warp-based implementation has not enough work to fill the GPU",
              warps["intratask-warps"] < slots / 2 < warps["intratask-naive"],
              f"{FEW} pairs are {warps['intratask-warps']} warps for {slots} slots of a K40; naive has {warps['intratask-naive']}"),
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
