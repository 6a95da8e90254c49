"""Figures 8 to 10 and Tables 2, 4 and 5 of Ren 2018: throughput, profiles and times, counted, predicted and measured."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import numpy.typing as npt
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.machine.occupancy import occupancy
from simtbed.model.launches import time_of
from simtbed.oracles.pairhmm_loop import log10_likelihoods
from simtbed.runtime.cores import current_cores
from simtbed.runtime.registry import EngineName

from ...bench.pairhmm import INTERTASK_SETS, INTRATASK_SETS, REN_PAIRS, Timer
from ...explanation import choices
from ...launchers import wall_times
from ...requests import first_request
from .. import measured, recorded
from ..claims import Origin, Source, Value, counted_by, predicted_for, quotient
from ..definitions import printed
from ..measured import Benchmark, Check, Machine
from ..paper import Chart, Figures, Row, Series, Setting, Size, Table
from ..predicted import Pace, pace
from ..values import K40, extreme, floors, limit, predicted, predicted_cells, ranked, steps, timed
from . import figures
from .figures import cells, counters, launched

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
PROFILES = {row["variant"]: row for row in printed("ren2018")["profiles"]}
"""Rows of Tables 2 and 4 by variant. bandwidth: GB/s, of global memory in Table 2, of shared memory in Table 4."""
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
                check = measured.on_gpu(FAMILY, variant, FAMILY.example)
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


Speeds = Mapping[tuple[str, int], Value]
"""GCUPS by variant and set, of one origin."""
FULL = 16
"""Maximum of resident blocks per SM of a K40."""
PAIRS_OF_BLOCK = {**dict.fromkeys(INTERTASK, 128), **dict.fromkeys(INTRATASK, 1), "intratask-warps": figures.WARPS * 2}


@cache
def predicted_pace(variant: str, m: int, n: int, engine: EngineName, launched: int | None = None) -> Pace:
    """Predict a K40, with the registers of Tables 2 and 4. launched: blocks of the launch, None if they fill it."""
    request = first_request(FAMILY, variant, equal_lengths(1, FULL * PAIRS_OF_BLOCK[variant], m, n))
    return pace(request, K40, PROFILES[variant]["registers"], engine, launched)


def _full(setting: Setting, variant: str, m: int, n: int) -> Value:
    """Predict the GCUPS of a fully occupied K40."""
    size = PAIRS_OF_BLOCK[variant] * m * n / 1e3
    return predicted(K40, predicted_pace(variant, m, n, setting.engine), lambda microseconds: size / microseconds)


def _of_launch(setting: Setting, variant: str, number: int) -> Value:
    """Predict the GCUPS of a set of Fig. 10 on a K40, with the registers of Table 4."""
    lengths = INTRATASK_SETS[number]
    (result,) = launched(variant, FEW, *lengths, setting.engine)
    time = time_of(result.request, K40, registers=PROFILES[variant]["registers"])
    size = cells(FEW, *lengths) / 1e3
    return Value(predicted_for(K40), size / time.time_us, "", (size / time.high_us, size / time.low_us))


def _throughput(
    setting: Setting, variants: Sequence[str], sets: Sets, pairs: int, whole: bool = True
) -> tuple[dict[Origin, Speeds], list[Table], list[Chart]]:
    """Return the speeds by origin, the table and the plots. whole: predict a fully occupied GPU, else single launches."""
    speeds: dict[Origin, dict[tuple[str, int], Value]] = defaultdict(dict)
    rows: list[Row] = []
    for number, (m, n) in sets.items():
        for variant in variants:
            counted = counted_pairs(setting, variant)
            counts = counters(variant, counted, m, n, setting.engine)
            resource, nanoseconds = limit(floors(counts, cells(counted, m, n), K40))
            row: Row = {
                "set": number, "read": m, "haplotype": n, "implementation": variant,
                "emulator: GCUPS of a K40, all accesses in DRAM": 1 / nanoseconds, "emulator: bound by": resource,
            }  # fmt: skip
            values = timed(setting, timing_name(variant, number, pairs), Machine.gpu, 1e9)
            row |= {f"GPU: GCUPS, {value.origin.device}": value.value for value in values}
            if whole or setting.size is Size.paper or number in PREDICTED:
                values.append((_full(setting, variant, m, n)) if whole else _of_launch(setting, variant, number))
                row |= predicted_cells("GCUPS of a K40", values[-1])
            for value in values:
                speeds[value.origin][variant, number] = value
            rows.append(row)
    plots = [
        Chart(f"Throughput: {origin}", "data set", "GCUPS", [
            Series(variant, origin.source, [(n, values[variant, n].amount) for n in sets if (variant, n) in values])
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
    over = [
        min((quotient(values[INTRATASK[0], n], values[other, n]) for other in INTRATASK[1:]), key=lambda value: value.amount)
        for values in speeds.values() for n in INTRATASK_SETS if all((variant, n) in values for variant in INTRATASK)
    ]  # fmt: skip
    slots = K40.sms * K40.warps_per_sm
    return Figures(
        {
            "naive": ranked(over, lambda sets: (sets - 1) // 2),
            "improved slots": [Value(counted_by(K40), FEW / slots)],
            "naive slots": [Value(counted_by(K40), FEW * figures.WARPS / slots)],
        },
        tables,
        plots,
    )


LENGTHS = {2: (144, 144), 4: (128, 256)}
"""Read and haplotype of the set that was profiled: Table 1's sixth (the caption says 8), Table 3's last."""
LIMITS = {"DRAM": "memory", "L2": "memory", "L1": "memory", "latency": "latency"}
"""The paper's names of limits of the time model; all others are "compute"."""
PAIRS_OF_10S, LONGEST_OF_10S = 3_550, (247, 263)
"""Of the "10s" set."""


def _profile(setting: Setting, number: int) -> tuple[list[Row], dict[str, list[Value]]]:
    """Return the rows of a table, and the values by name, in the order of its rows."""
    rows: list[Row] = []
    rule, by_printed = counted_by(K40), Origin(Source.paper, "CUDA's rule for its registers and bytes")
    names = ("bandwidths", "shared", "occupancies", "traffic", "ours", "registers")
    values: dict[str, list[Value]] = {name: [] for name in names}
    most_used = bounds = 0
    memory = "global memory" if number == 2 else "shared memory"
    for variant, row in PROFILES.items():
        if row["table"] != number:
            continue
        pairs = counted_pairs(setting, variant)
        (result,) = launched(variant, pairs, *LENGTHS[number], setting.engine)
        least = floors(result.counters, cells(pairs, *LENGTHS[number]), K40)
        prediction = predicted_pace(variant, *LENGTHS[number], setting.engine)
        bandwidth = prediction.dram_bandwidth if number == 2 else prediction.shared_bandwidth
        moved, bound = bandwidth * prediction.microseconds, prediction.estimate.bound
        most_used += (row["limitation"] == "memory") == (limit(least)[0] == "global memory")
        bounds += row["limitation"] == LIMITS.get(bound, "compute")
        by_rule, ours = (
            occupancy(K40, row["block"], row["registers"], shared).percent
            for shared in (row["shared"], result.shared_bytes)
        )
        registers = recorded.registers(f"pairhmm {variant}")
        values["bandwidths"].append(predicted(K40, prediction, lambda time, moved=moved: moved / time, variant))  # type: ignore[misc]
        values["shared"].append(Value(rule, result.shared_bytes, variant))
        values["occupancies"].append(Value(by_printed, round(by_rule + 1e-9, 1), variant))  # the paper rounds halves up
        values["traffic"].append(Value(rule, least[memory], variant))
        values["ours"].append(Value(rule, ours, variant))
        values["registers"].append(Value(recorded.origin(), registers, variant))
        rows.append({
            "implementation": variant, "paper: limited by": row["limitation"], "emulator: most used": limit(least)[0],
            "time model: bound by": bound, "paper: bandwidth, GB/s": row["bandwidth"],
            **predicted_cells("bandwidth, GB/s", values["bandwidths"][-1]), f"emulator: least ns per cell, {memory}": least[memory],
            "paper: registers": row["registers"], "GPU: registers, sm_90": registers,
            "paper: shared bytes": row["shared"], "emulator: shared bytes": result.shared_bytes,
            "paper: occupancy, %": row["occupancy"], "paper: achieved occupancy, %": row["achieved"],
            "emulator: occupancy by the paper's registers and our bytes, %": ours,
        })  # fmt: skip
    values |= {"limits": [Value(rule, most_used)], "bounds": [Value(predicted_for(K40), bounds)]}
    return rows, {**values, "falls": list(steps(values["bandwidths"]))}


def intertask_profile(setting: Setting) -> Figures:
    """Table 2."""
    rows, values = _profile(setting, 2)
    values["traffic"] = extreme(steps(values["traffic"]), least=False)
    values["registers"] = extreme(steps(values["registers"]))
    return Figures(values, [Table("Set 6", rows)])


def intratask_profile(setting: Setting) -> Figures:
    """Table 4."""
    rows, values = _profile(setting, 4)
    naive, tile2, *_ = values["traffic"]
    *_, warp, warps = values["ours"]
    values |= {"tile2": [quotient(tile2, naive, "")], "fuller": [quotient(warps, warp, "")]}
    return Figures(values, [Table("Set 26", rows)], texts={"choices": choices(FAMILY, "intratask-warp")})


# ------------------------------------------------------------------ Table 5
def _on_ten_seconds(setting: Setting, variant: str) -> Value:
    """Milliseconds of the kernels by the time model: if all pairs had the set's average lengths; where a thread computes a pair,
    of the block of the longest, which all others are done before."""
    if variant in INTERTASK:
        time = predicted_pace(variant, *LONGEST_OF_10S, setting.engine, 1).estimate
        return Value(predicted_for(K40), time.time_us / 1e3, variant, (time.low_us / 1e3, time.high_us / 1e3))
    blocks = -(-PAIRS_OF_10S // PAIRS_OF_BLOCK[variant])
    prediction = predicted_pace(variant, *LOOP_LENGTHS, setting.engine, blocks)
    return predicted(K40, prediction, lambda microseconds: blocks * microseconds / 1e3, variant)


def ten_seconds(setting: Setting) -> Figures:
    """Table 5: kernels by the time model and on recorded GPUs, and the plain loop."""
    rows: list[Row] = []
    by_origin: dict[Origin, dict[str, Value]] = {}
    for variant in (*INTRATASK, *INTERTASK):
        values = [_on_ten_seconds(setting, variant)]
        row: Row = {"variant": variant, **predicted_cells("kernels on a K40, ms", values[0])}
        for device in recorded.DEVICES:
            milliseconds = recorded.milliseconds(f"pairhmm {variant}", DATA, device)
            row[f"GPU: {device}, kernels, ms"] = milliseconds
            if milliseconds is not None:
                values.append(Value(recorded.origin(device), milliseconds, variant))
        for value in values:
            by_origin.setdefault(value.origin, {})[variant] = value
        rows.append(row)
    for machine in (Machine.core, Machine.cores):
        if timing := setting.timing(LOOP, machine):
            name = f"{LOOP}, {machine}: {timing.machine}"
            rows.append({"variant": name, "CPU: ms": 1e3 * CELLS_OF_10S / timing.rate})
    complete = [times for times in by_origin.values() if len(times) == len(INTRATASK) + len(INTERTASK)]

    def over(slow: tuple[str, ...], fast: tuple[str, ...]) -> list[Value]:
        return extreme(quotient(times[a], times[b]) for times in complete for a in slow for b in fast)

    def slowest(variants: tuple[str, ...]) -> list[Value]:
        return extreme((times[variant] for times in complete for variant in variants), least=False)

    return Figures(
        {
            "improved": over((*INTRATASK[:-1], *INTERTASK), INTRATASK[-1:]),
            "approaches": over(INTERTASK, INTRATASK),
            "tiles": extreme(
                replace(step, value=1 / (step.value or 1), interval=_inverse(step.interval))
                for times in complete for step in steps([times[variant] for variant in INTERTASK])
            ),
            "slowest": slowest((*INTRATASK, *INTERTASK)),
            "slowest but one": slowest((*INTRATASK, *INTERTASK[1:])),
        },
        [Table("Kernels here", rows)],
    )  # fmt: skip


def _inverse(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return interval and (1 / interval[1], 1 / interval[0])
