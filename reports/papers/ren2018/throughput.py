"""Throughput of Ren 2018, Figures 8 to 10, compared with predictions for a K40 and measured times."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.model.launches import time_of
from simtbed.oracles.pairhmm_loop import log10_likelihoods
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS, REN_PAIRS, Timer
from ...launchers import wall_times
from ...requests import first_request
from .. import checks
from ..claims import Origin, Value, counted_by, predicted_for, quotient
from ..measured import Benchmark, Check, Machine
from ..paper import Chart, Figures, Row, Series, Setting, Size, Table, about, emulator, gpu
from ..predicted import CAVEAT, Pace, pace
from ..values import extreme, predicted, predicted_cells, steps, timed
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
CELLS_OF_10S = 62_380_634
"""Cells of the "10s" set of 3,550 pairs."""
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
    return wall_times(lambda: by_loop(problem, threads), repeat, clock), problem.cells


def _kernels(variant: str, pairs: int, m: int, n: int, repeat: int) -> tuple[list[float], float]:
    problem = equal_lengths(1, pairs, m, n)
    timer = Timer(repeat)
    FAMILY.solve(problem, variant, timer)
    return [timer.milliseconds], problem.cells


def counted_pairs(setting: Setting, variant: str) -> int:
    """Return the number of counted pairs: inter-task variants fill blocks of 128 pairs, others need a tenth."""
    return setting.whole("pairs") if variant in INTERTASK else max(1, setting.whole("pairs") // 16)


def _by_counts(setting: Setting, variant: str, m: int, n: int) -> tuple[float, str]:
    """Return the GCUPS of a K40 by the most used resource, with every access in device memory, and that resource."""
    pairs = counted_pairs(setting, variant)
    counts = counters(variant, pairs, m, n, setting.engine)
    return 1 / max(floors(counts, cells(pairs, m, n), K40).values()), bound(counts, K40)


Speeds = Mapping[tuple[str, int], Value]
"""GCUPS by variant and set, of one origin."""
FULL = 16
"""Maximum of resident blocks per SM of a K40."""
PAIRS_OF_BLOCK = {**dict.fromkeys(INTERTASK, 128), **dict.fromkeys(INTRATASK, 1), "intratask-warps": figures.WARPS * 2}


@cache
def predicted_pace(variant: str, m: int, n: int, engine: EngineName, launched: int | None = None) -> Pace:
    """Predict a K40, with the registers of Tables 2 and 4. launched: blocks of the launch, None if they fill it."""
    registers = next(printed.registers for printed in PRINTED if printed.variant == variant)
    problem = equal_lengths(1, FULL * PAIRS_OF_BLOCK[variant], m, n)
    return pace(first_request(FAMILY, variant, problem), K40, registers, engine, launched)


def _full(setting: Setting, variant: str, m: int, n: int) -> Value:
    """Predict the GCUPS of a fully occupied K40."""
    size = PAIRS_OF_BLOCK[variant] * m * n / 1e3
    return predicted(K40, predicted_pace(variant, m, n, setting.engine), lambda microseconds: size / microseconds)


def _of_launch(setting: Setting, variant: str, number: int) -> Value:
    """Predict the GCUPS of a set of Fig. 10 on a K40, with the registers of Table 4."""
    registers = next(printed.registers for printed in PRINTED if printed.variant == variant)
    problem = equal_lengths(1, FEW, *INTRATASK_SETS[number])
    (result,) = launched(problem, variant, engine=setting.engine)
    time, size = time_of(result.request, K40, registers=registers), problem.cells / 1e3
    return Value(predicted_for(K40), size / time.time_us, "", (size / time.high_us, size / time.low_us))


def _throughput(
    setting: Setting, variants: Sequence[str], sets: Sets, pairs: int, whole: bool = True
) -> tuple[dict[Origin, Speeds], list[Table], list[Chart]]:
    """Return the speeds by origin, the table and the plots. whole: predict a fully occupied GPU, else single launches."""
    speeds: dict[Origin, dict[tuple[str, int], Value]] = defaultdict(dict)
    rows: list[Row] = []
    for number, (m, n) in sets.items():
        for variant in variants:
            ceiling, limit = _by_counts(setting, variant, m, n)
            row: Row = {
                about("set"): number, about("read"): m, about("haplotype"): n, about("implementation"): variant,
                emulator("GCUPS of a K40, all accesses in DRAM"): ceiling, emulator("bound by"): limit,
            }  # fmt: skip
            values = timed(setting, timing_name(variant, number, pairs), Machine.gpu, 1e9)
            row = {**row, **{gpu(f"GCUPS, {value.origin.device}"): value.value for value in values}}
            if whole or setting.size is Size.paper or number in PREDICTED:
                values.append((_full(setting, variant, m, n)) if whole else _of_launch(setting, variant, number))
                row = {**row, **predicted_cells("GCUPS of a K40", values[-1])}
            for value in values:
                speeds[value.origin][variant, number] = value
            rows.append(row)
    plots = [
        Chart(f"Throughput: {origin}", "data set", "GCUPS", [
            Series(variant, origin.source, [(n, values[variant, n].value or 0) for n in sets if (variant, n) in values])
            for variant in variants
        ])
        for origin, values in speeds.items()
    ]  # fmt: skip
    return dict(speeds), [Table(f"{pairs:,} pairs", rows)], plots


def _ratios(speeds: Mapping[Origin, Speeds], better: Sequence[str], worse: Sequence[str]) -> list[Value]:
    """Return the smallest speedup of one of `better` over one of `worse` on a set, by origin."""
    return extreme(
        quotient(value, values[other, number])
        for values in speeds.values()
        for (variant, number), value in values.items()
        for other in worse
        if variant in better and other != variant and (other, number) in values
    )


NOTE = (
    "The paper prints no numbers of this figure. GCUPS with all accesses in DRAM: by counted traffic and instructions. "
    + CAVEAT
)


def intertask(setting: Setting) -> Figures:
    """Figure 8."""
    speeds, tables, plots = _throughput(setting, INTERTASK, INTERTASK_SETS, LAUNCHED)
    pairs = setting.whole("pairs")
    moved = [
        Value(counted_by(K40), figures.global_bytes(counters(variant, pairs, *INTERTASK_SETS[6], setting.engine)))
        for variant in INTERTASK
    ]
    both = [
        quotient(values[variant, order[0]], values[variant, order[1]])
        for values in speeds.values()
        for variant in INTERTASK
        for order in ((2, 6), (6, 2))
        if {(variant, 2), (variant, 6)} <= values.keys()
    ]
    return Figures(
        {
            "tile6": _ratios(speeds, ["intertask-tile6"], INTERTASK),
            "naive": _ratios(speeds, INTERTASK[1:], INTERTASK[:1]),
            "traffic": extreme(steps(moved), least=False),
            "spread": extreme(both, least=False),
        },
        tables,
        plots,
        {"note": NOTE},
    )


def intratask(setting: Setting) -> Figures:
    """Figure 9."""
    speeds, tables, plots = _throughput(setting, INTRATASK, INTRATASK_SETS, REN_PAIRS)
    return Figures(
        {
            "improved": _ratios(speeds, INTRATASK[3:], INTRATASK[2:3]),
            "naive": _ratios(speeds, INTRATASK[:1], INTRATASK[1:2]),
            "warp, haplotype": extreme(_growth(speeds, INTRATASK[2:], read=False)),
            "warp, read": extreme(_growth(speeds, INTRATASK[2:], read=True), least=False),
            "block, haplotype": extreme(_growth(speeds, INTRATASK[:2], read=False)),
            "block, read": extreme(_growth(speeds, INTRATASK[:2], read=True)),
        },
        tables,
        plots,
        {"note": NOTE},
    )


def _growth(speeds: Mapping[Origin, Speeds], variants: Sequence[str], read: bool) -> Iterable[Value]:
    """Yield the quotients of the throughputs at steps to the next longer read, or else haplotype."""
    number_of = {lengths: number for number, lengths in INTRATASK_SETS.items()}
    for values in speeds.values():
        for (m, n), number in number_of.items():
            after = number_of.get((m + 32, n) if read else (m, n + 32), 0)
            for variant in variants:
                if (variant, after) in values and (variant, number) in values:
                    yield quotient(values[variant, after], values[variant, number])


def few_pairs(setting: Setting) -> Figures:
    """Figure 10."""
    speeds, tables, plots = _throughput(setting, INTRATASK, INTRATASK_SETS, FEW, whole=False)
    medians = []
    for values in speeds.values():
        over = [
            min((quotient(values[INTRATASK[0], n], values[other, n]) for other in INTRATASK[1:]), key=_number)
            for n in INTRATASK_SETS
            if all((variant, n) in values for variant in INTRATASK)
        ]
        if over:
            medians.append(sorted(over, key=_number)[(len(over) - 1) // 2])
    slots = K40.sms * K40.warps_per_sm
    return Figures(
        {
            "naive": medians,
            "improved slots": [Value(counted_by(K40), FEW / slots)],
            "naive slots": [Value(counted_by(K40), FEW * figures.WARPS / slots)],
        },
        tables,
        plots,
        {"note": NOTE},
    )


def _number(value: Value) -> float:
    return value.value or 0.0
