"""Ren 2018's figures of throughput, 8 to 10, beside what the time model says of a K40 and what was measured."""

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
from ..measured import Check, Machine, Timed
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
"""Pairs of the sets of Fig. 10: 14 reads by 14 haplotypes come nearest to its 200."""
LAUNCHED = 50_000
"""Pairs of the sets of Fig. 8 that are timed: 500,000 of its longest are 9 launches, for the memory of the host's layout."""
PREDICTED = (1, 9, 16, 22, 26)
"""Sets of Fig. 10 whose times are predicted where the size is small: a launch is emulated whole."""
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
    """The plain loop on a CPU; the kernels of Figures 10, 8 and 9 on a GPU."""
    loop = Check(LOOP, lambda: FAMILY.compare(by_loop(FAMILY.example()), FAMILY.oracle(FAMILY.example())))
    for machine, threads in ((Machine.core, 1), (Machine.cores, current_cores())):
        yield Timed(LOOP, machine, partial(_loop, threads), loop)
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
                yield Timed(timing_name(variant, number, pairs), Machine.gpu, run, check)


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


def counted_pairs(setting: Setting, variant: str) -> int:
    """Of which the counters are taken: the inter-task variants fill blocks of 128 pairs, a tenth is enough of others."""
    return setting.whole("pairs") if variant in INTERTASK else max(1, setting.whole("pairs") // 16)


def _at_most(setting: Setting, variant: str, m: int, n: int) -> tuple[float, str]:
    """GCUPS that a K40 could reach if the resource that the variant uses most were all that it needs, and which it is."""
    pairs = counted_pairs(setting, variant)
    counts = counters(variant, pairs, m, n, setting.engine)
    return 1 / max(floors(counts, cells(pairs, m, n), K40).values()), bound(counts, K40)


Speeds = Mapping[tuple[str, int], float]
"""GCUPS by variant and set."""
FULL = 16
"""Blocks that an SM of a K40 holds at most."""
PAIRS_OF_BLOCK = {**dict.fromkeys(INTERTASK, 128), **dict.fromkeys(INTRATASK, 1), "intratask-warps": figures.WARPS * 2}


@cache
def predicted_pace(variant: str, m: int, n: int, engine: EngineName, launched: int | None = None) -> Pace:
    """Of a K40, with the registers of the paper's Tables 2 and 4. launched: blocks of the launch, None where they fill it."""
    registers = next(printed.registers for printed in PRINTED if printed.variant == variant)
    problem = equal_lengths(1, FULL * PAIRS_OF_BLOCK[variant], m, n)
    return pace(first_request(FAMILY, variant, problem), K40, registers, engine, launched)


def _full(setting: Setting, variant: str, m: int, n: int) -> tuple[float, float, float]:
    """(GCUPS of a full K40 by the time model, from, to)."""
    found = predicted_pace(variant, m, n, setting.engine)
    cells = PAIRS_OF_BLOCK[variant] * m * n / 1e3
    low, high = found.interval
    return cells / found.microseconds, cells / high, cells / low


def _throughput(
    setting: Setting,
    variants: Sequence[str],
    sets: Sets,
    pairs: int,
    title: str,
    times: Mapping[tuple[str, int], Estimate] | None = None,
) -> tuple[Speeds, Speeds, list[Table], list[Chart]]:
    """(what was measured, what the time model says, the table, the plots of what is there). times: of single launches, where
    the GPU is not full."""
    found: dict[tuple[str, int], float] = {}
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
                one, size = times[variant, number], cells(pairs, m, n) / 1e3
                predicted[variant, number] = size / one.time_us
                row = {
                    **row, model("GCUPS of a K40"): size / one.time_us, model("from"): size / one.high_us,
                    model("to"): size / one.low_us, model("waits most for"): one.bound,
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
            (f"{title}: a K40 by the time model", Source.model, predicted), (f"{title}: measured", Source.gpu, found),
            (f"{title}: at most, by what bounds it", Source.emulator, ceilings),
        )
        if values
    ]  # fmt: skip
    return found, predicted, [Table(f"{title}, {pairs:,} pairs", rows)], plots


def _told(
    question: Callable[[Speeds], tuple[int, int]], predicted: Speeds, found: Speeds, text: str, need: float = 1.0
) -> Claim:
    """A claim that holds where a question's answer, (how often it is true, of how many), is so often true by the time model
    and on the GPU."""

    def one(speeds: Speeds) -> tuple[bool | None, str]:
        true, of = question(speeds) if speeds else (0, 0)
        return (true >= need * of, f"true of {true} of {of}") if of else (None, "")

    return settled(text, one(predicted), one(found))


def _faster(sets: Sets, better: Sequence[str], worse: Sequence[str]) -> Callable[[Speeds], tuple[int, int]]:
    """In how many comparisons of some variants with others, set by set, the first is the faster one."""

    def question(speeds: Speeds) -> tuple[int, int]:
        pairs = [
            (b, w, n) for n in sets for b in better for w in worse if (b, n) in speeds and (w, n) in speeds and b != w
        ]
        return sum(speeds[b, n] > speeds[w, n] for b, w, n in pairs), len(pairs)

    return question


def intertask_throughput(setting: Setting) -> Shown:
    """Fig. 8."""
    found, predicted, shown, plots = _throughput(
        setting, INTERTASK, INTERTASK_SETS, LAUNCHED, "inter-task implementations"
    )
    moved = [
        figures.global_bytes(counters(variant, setting.whole("pairs"), *INTERTASK_SETS[6], setting.engine))
        for variant in INTERTASK
    ]
    steady = [predicted[variant, number] for variant in INTERTASK for number in (2, 6)]
    spread = max(max(a, b) / min(a, b) for a, b in zip(steady[::2], steady[1::2], strict=True))
    claims = [
        _told(_faster(INTERTASK_SETS, INTERTASK[1:], INTERTASK[:1]), predicted, found, "the naive implementation is the slowest"),
        _told(_faster(INTERTASK_SETS, ["intertask-tile6"], INTERTASK), predicted, found, "tile = 6 is the fastest"),
        Claim("a larger tile moves less through global memory", all(a > b for a, b in pairwise(moved)),
              f"{moved[0] / moved[-1]:.1f} times less from naive to tile = 8"),
        Claim("throughput is comparable when sequences get longer", spread < 1.5,
              f"time model: it changes by {spread:.2f} times at most from set 2 to set 6"),
    ]  # fmt: skip
    why = "Traffic falls with the tile as the paper says, and the naive kernel waits for it; which large tile wins is close."
    return Shown(claims, why, shown, plots, FIGURES)


def intratask_throughput(setting: Setting) -> Shown:
    """Fig. 9."""
    found, predicted, shown, plots = _throughput(
        setting, INTRATASK, INTRATASK_SETS, REN_PAIRS, "intra-task implementations"
    )
    steps = {
        (m, n): counters("intratask-warps", counted_pairs(setting, "intratask-warps"), m, n, setting.engine).total("warp_instructions")
        / cells(counted_pairs(setting, "intratask-warps"), m, n)
        for m, n in INTRATASK_SETS.values()
    }  # fmt: skip
    longer = [steps[m, n] > steps[m, n + 32] for m, n in steps if (m, n + 32) in steps]
    claims = [
        Claim("warp-based: a longer haplotype helps where the read stays", all(longer),
              f"warp instructions a cell fall at {sum(longer)} of {len(longer)} steps of the haplotype's length"),
        _told(_by_length(INTRATASK[2:], read=True), predicted, found, "warp-based: a longer read costs where the haplotype stays"),
        _told(_by_length(INTRATASK[:2], read=False), predicted, found, "naive and tile = 2: longer sequences help"),
        _told(_faster(INTRATASK_SETS, INTRATASK[3:], INTRATASK[2:3]), predicted, found, "improved warp-based is faster than warp-based"),
        _told(_faster(INTRATASK_SETS, INTRATASK[:1], INTRATASK[1:2]), predicted, found, "naive is faster than tile = 2"),
    ]  # fmt: skip
    return Shown(
        claims,
        "The share of a warp's steps that fill and drain it falls as the haplotype grows, and small blocks leave slots of the card "
        "empty, which is what sets the four apart.",
        shown,
        plots,
        FIGURES,
    )


def _by_length(variants: Sequence[str], read: bool) -> Callable[[Speeds], tuple[int, int]]:
    """read: at how many steps throughput falls from a read to the next longer one; else at how many it grows with the
    haplotype."""
    number_of = {lengths: number for number, lengths in INTRATASK_SETS.items()}
    steps = [(number, number_of.get((m + 32, n) if read else (m, n + 32))) for (m, n), number in number_of.items()]

    def question(speeds: Speeds) -> tuple[int, int]:
        told = [
            (speeds[variant, after] < speeds[variant, number]) == read
            for number, after in steps
            for variant in variants
            if after and (variant, after) in speeds and (variant, number) in speeds
        ]
        return sum(told), len(told)

    return question


def few_pairs(setting: Setting) -> Shown:
    """Fig. 10."""
    numbers = PREDICTED if setting.size is Size.small else tuple(INTRATASK_SETS)
    times = {(variant, number): _predicted(setting, variant, number) for number in numbers for variant in INTRATASK}
    found, predicted, shown, plots = _throughput(
        setting, INTRATASK, INTRATASK_SETS, FEW, "intra-task implementations", times
    )
    slots = K40.sms * K40.warps_per_sm
    warps = {"intratask-naive": FEW * figures.WARPS, "intratask-warps": FEW}

    def first(speeds: Speeds) -> tuple[int, int]:
        """On how many sets the naive one is the fastest."""
        known = sorted({number for _, number in speeds})
        return sum(max(INTRATASK, key=lambda v: speeds.get((v, n), 0.0)) == INTRATASK[0] for n in known), len(known)

    claims = [
        _told(first, predicted, found, "naive is the fastest on most sets", need=0.5),
        Claim("the improved warp-based implementation has not enough work to fill the GPU",
              warps["intratask-warps"] < slots / 2 < warps["intratask-naive"],
              f"{FEW} pairs are {warps['intratask-warps']} warps for {slots} slots of a K40; naive has {warps['intratask-naive']}"),
    ]  # fmt: skip
    why = "200 pairs are a fifth of the warps that the card holds, and four fifths if a block computes each."
    return Shown(claims, why, shown, plots, FIGURES)


def _predicted(setting: Setting, variant: str, number: int) -> Estimate:
    """The time of a set of Fig. 10 on a K40, with the registers of the paper's Table 4."""
    registers = next(printed.registers for printed in PRINTED if printed.variant == variant)
    problem = equal_lengths(1, FEW, *INTRATASK_SETS[number])
    (result,) = launched(problem, variant, engine=setting.engine)
    return time_of(result.request, K40, registers=registers)


FIGURES = (
    "The paper prints no numbers of this figure. GCUPS at most: what the counted traffic and instructions would allow a "
    "K40 at 745 MHz whose other resources were free; occupancy and latency are not in it. " + CAVEAT
)
