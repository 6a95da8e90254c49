"""Both stages of Ren 2019, Figures 8 to 12: counters, predictions and measured times by length and number of pairs."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from simtbed.machine.occupancy import occupancy

from ..claims import Origin, Source, Value, counted_by, predicted_for, quotient
from ..measured import Machine
from ..paper import Chart, Figures, Row, Series, Setting, Table
from ..values import K40, extreme, ranked
from . import figures
from .timing import (
    BATCHES,
    BLOCK,
    LENGTHS,
    PASSES,
    PEER,
    STEPS,
    WIDE,
    counters,
    equal_sequences,
    loop_name,
    of_set,
    predicted,
    registers_of,
    timing_name,
)

PEERS = 32
"""Counted pairs of gpu-pairAlign: a warp."""
NAMES = {WIDE: "larger block", PASSES: "passes", PEER: "gpu-pairAlign", STEPS: "not recorded"}
Rates = Mapping[tuple[str, int, int], Value]
"""GCUPS of the first stage by variant, length and number of pairs, of one origin."""


def rates(setting: Setting, variants: Sequence[str]) -> dict[Origin, dict[tuple[str, int, int], Value]]:
    """Return the GCUPS of the first stage: predicted for some lengths and batches, and measured."""
    by_origin: dict[Origin, dict[tuple[str, int, int], Value]] = defaultdict(dict)
    for variant in variants:
        for batch in BATCHES:
            for length in _lengths(setting) if batch <= setting.whole("batch") else ():
                by_origin[predicted_for(K40)][variant, length, batch] = predicted(
                    length, batch, variant, setting.engine
                )
            for length in LENGTHS:
                name = timing_name(variant, length, batch, 1)
                for timing in setting.timings(name, Machine.gpu):
                    by_origin[timing.origin][variant, length, batch] = Value(timing.origin, timing.rate / 1e9)
    return by_origin


def _lengths(setting: Setting) -> Sequence[int]:
    """Return every Nth length of the paper."""
    return LENGTHS[:: setting.whole("every")]


def _rate_columns(by_origin: Mapping[Origin, Rates], variant: str, length: int) -> Row:
    """Return the cells of the rates of a row; a prediction with its interval."""
    row: Row = {}
    for batch in BATCHES:
        for origin, values in by_origin.items():
            if value := values.get((variant, length, batch)):
                if origin.source is Source.model:
                    low, high = value.interval or (0.0, 0.0)
                    row[f"time model: GCUPS, {batch} pairs"] = f"{value.value:.3g}, {low:.3g} to {high:.3g}"
                else:
                    row[f"GPU: GCUPS, {batch} pairs, {origin.device}"] = value.value
    return row


def _speedups(by_origin: Mapping[Origin, Rates], over: str, batches: Iterable[int], above: int = 0) -> list[Value]:
    """Return the speedups of the larger block over a variant, by origin, length and number of pairs."""
    return [
        quotient(value, values[over, length, batch])
        for values in by_origin.values()
        for (variant, length, batch), value in values.items()
        if variant == WIDE and length > above and batch in batches and (over, length, batch) in values
    ]


def _medians(values: Iterable[Value]) -> list[Value]:
    return ranked(values, lambda number: number // 2)


def _rate_charts(by_origin: Mapping[Origin, Rates], variants: Sequence[str]) -> list[Chart]:
    """Return a plot of the rates for each number of pairs."""
    charts = []
    for batch in BATCHES:
        series = [
            Series(f"{NAMES[variant]}, {origin.device}", origin.source,
                   [(n, values[variant, n, batch].amount) for n in LENGTHS if (variant, n, batch) in values])
            for origin, values in by_origin.items() for variant in variants
        ]  # fmt: skip
        charts.append(Chart(f"First stage, {batch:,} pairs", "bases of R1 and R2", "GCUPS", series))
    return charts


# ------------------------------------------------------------------ Figures 8 and 10
def resident(variant: str, length: int) -> int:
    """Return the resident blocks of a variant on a K40, with the registers recorded for sm_90, and in shared memory two
    vectors, a short2 vector and two best cells, 16 bytes each."""
    threads = -(-length // 32) * 32 if variant == WIDE else BLOCK
    shared = threads * 3 * 4 + 2 * 16
    return occupancy(K40, threads, registers_of(variant), shared).active_blocks * K40.sms


def two_solutions(setting: Setting) -> Figures:
    """Figure 8: larger blocks, or passes over the columns."""
    rows: list[Row] = []
    steps: dict[tuple[str, int], Value] = {}
    work: dict[tuple[str, int], Value] = {}
    pairs = setting.whole("pairs")
    by_origin = rates(setting, (WIDE, PASSES))
    for length in _lengths(setting):
        for variant, warps in ((WIDE, -(-length // 32)), (PASSES, BLOCK // 32)):
            totals = of_set(length, pairs, variant, figures.KERNEL, setting.engine).totals()
            blocks = resident(variant, length)
            of_block = totals["barriers"] / (figures.BARRIERS * pairs * warps)
            steps[variant, length] = Value(counted_by(K40), of_block)
            work[variant, length] = Value(counted_by(K40), totals["warp_instructions"] / pairs)
            row: Row = {
                "bases": length, "solution": NAMES[variant], "emulator: steps of a block": of_block,
                "emulator: warp instructions per pair": work[variant, length].value, "emulator: blocks that a K40 holds": blocks,
                **{f"emulator: steps in a row, {batch} pairs": of_block * -(-batch // blocks) for batch in BATCHES},
            }  # fmt: skip
            rows.append({**row, **_rate_columns(by_origin, variant, length)})
    longer = [length for length in _lengths(setting) if length > BLOCK]
    many = _medians(_speedups(by_origin, PASSES, (1_000,), BLOCK))
    return Figures(
        {
            "few": extreme(_speedups(by_origin, PASSES, (25, 100), BLOCK)),
            "many": many,
            "steps": extreme((quotient(steps[WIDE, n], steps[PASSES, n]) for n in longer), least=False),
            "work": _medians(quotient(work[PASSES, n], work[WIDE, n]) for n in longer),
        },
        [Table("Equal lengths of both sequences", rows)],
        _rate_charts(by_origin, (WIDE, PASSES)),
        {"many": "" if many else "Not measured, and not predicted: --batch is below 1,000."},
    )


def first_stage_of_peer(setting: Setting) -> Figures:
    """Figure 10."""
    rows: list[Row] = []
    by_origin = rates(setting, (WIDE, PEER))
    pairs_of = {WIDE: setting.whole("pairs"), PEER: PEERS}
    for length in _lengths(setting):
        for variant, kernel in ((WIDE, figures.KERNEL), (PEER, "pairalign_strips")):
            cells = pairs_of[variant] * length * length
            totals = of_set(length, pairs_of[variant], variant, kernel, setting.engine).totals()
            row: Row = {
                "bases": length, "implementation": "the paper's" if variant == WIDE else NAMES[variant],
                "emulator: steps one after the other":
                    totals["barriers"] / (figures.BARRIERS * pairs_of[WIDE] * -(-length // 32)) if variant == WIDE else length * length,
                "emulator: global bytes per cell": 32 * (totals["global_load_sectors"] + totals["global_store_sectors"]) / cells,
                "emulator: warp instructions per cell": totals["warp_instructions"] / cells,
                **{f"emulator: SMs busy, {batch} pairs": min(K40.sms, -(-batch // (BLOCK if variant == PEER else 1))) for batch in BATCHES},
            }  # fmt: skip
            rows.append({**row, **_rate_columns(by_origin, variant, length)})
    return Figures(
        {"speedup": extreme(_speedups(by_origin, PEER, BATCHES))},
        [Table("First stage, equal lengths of both sequences", rows)],
        _rate_charts(by_origin, (WIDE, PEER)),
        {"pairs": pairs_of[WIDE]},
    )


# ------------------------------------------------------------------ Figures 9 and 11: the second stage
def loads_per_pair(setting: Setting, variant: str, length: int) -> float:
    """Return the loads of moves per pair of equal sequences in the second stage."""
    pairs = setting.whole("pairs")
    counted = counters(equal_sequences(length, pairs), variant, "traceback", setting.engine)
    text = "moves[place.x" if variant != PEER else "strip_word = moves"
    return counted.at(text).total("global_load_bytes") / 4 / pairs


def _second_stage(setting: Setting, constant: str, growing: str) -> Figures:
    """Return the loads and times of two variants by length."""
    lines: dict[tuple[Origin, str], dict[int, float]] = defaultdict(dict)
    for length in LENGTHS:
        for variant in (constant, growing):
            if length in _lengths(setting):
                lines[counted_by(K40), variant][length] = loads_per_pair(setting, variant, length)
            name = timing_name(f"{variant}, equal sequences", length, 100, 2)
            for timing in setting.timings(name, Machine.gpu):
                lines[timing.origin, variant][length] = timing.milliseconds
    title = {constant: "lengths recorded", growing: NAMES[growing]}
    rows: list[Row] = []
    for length in LENGTHS:
        row: Row = {"bases": length}
        for (origin, variant), line in lines.items():
            counted = origin.source is Source.emulator
            name = f"loads per pair, {title[variant]}" if counted else f"ms, {title[variant]}, {origin.device}"
            row[f"{origin.source}: {name}"] = line.get(length)
        rows.append(row)
    values: dict[str, list[Value]] = defaultdict(list)
    for (origin, variant), line in lines.items():
        growth = Value(origin, line[max(line)] / line[min(line)], f"of {max(line)} and {min(line)} bases")
        values["constant" if variant == constant else "growth"].append(growth)
        if variant == growing:
            straight = statistics.correlation(list(line), list(line.values()))
            values["line"].append(Value(origin, straight, f"of {len(line)} lengths"))
    chart = Chart("Loads of the backtracking matrix", "bases of R1 and R2", "loads per pair", [
        Series(title[variant], Source.emulator, list(line.items()))
        for (origin, variant), line in lines.items() if origin.source is Source.emulator
    ])  # fmt: skip
    title_of_table = f"Equal sequences, {setting.whole('pairs')} pairs counted, 100 timed"
    return Figures(values, [Table(title_of_table, rows)], [chart])


def lengths_of_matches(setting: Setting) -> Figures:
    """Figure 9."""
    return _second_stage(setting, WIDE, STEPS)


def second_stage_of_peer(setting: Setting) -> Figures:
    """Figure 11."""
    return _second_stage(setting, WIDE, PEER)


# ------------------------------------------------------------------ Figure 12: against a CPU
def _over_core(setting: Setting) -> dict[str, dict[tuple[int, int], float]]:
    """Return the speedups of both stages on each GPU over the loop on one core, by length and pairs, by the two machines."""
    result: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    for length in LENGTHS:
        stages = [loop_name(length, stage) for stage in (1, 2)]
        for loops in setting.by_machine(stages, Machine.core):
            alone = sum(loop.milliseconds / loop.work for loop in loops.values())
            for pairs in BATCHES:
                names = [timing_name(WIDE, length, pairs, stage) for stage in (1, 2)]
                for kernels in setting.by_machine(names, Machine.gpu):
                    together = sum(kernel.milliseconds for kernel in kernels.values())
                    gpu_time, core_time = kernels[names[0]], loops[stages[0]]
                    machines = f"{gpu_time.machine} over {core_time.machine} of {core_time.dated}"
                    result[machines][length, pairs] = alone * length * length * pairs / together
    return result


def over_a_core(setting: Setting) -> Figures:
    """Figure 12."""
    by_machines = _over_core(setting)
    rows: list[Row] = []
    for length in LENGTHS:
        row: Row = {"bases": length}
        for machine in (Machine.core, Machine.cores):
            for timing in setting.timings(loop_name(length, 1), machine):
                row[f"CPU: GCUPS of the first stage, {timing.machine}, {timing.dated}"] = timing.rate / 1e9
        for machines, ratios in by_machines.items():
            row |= {f"GPU: speedup, {pairs} pairs, {machines}": ratios.get((length, pairs)) for pairs in BATCHES}
        rows.append(row)
    today = "; ".join(f"{machines}: up to {max(ratios.values()):.3g} times" for machines, ratios in by_machines.items())
    measured = {o: values for o, values in rates(setting, (WIDE,)).items() if o.source is Source.gpu}
    gains = [
        quotient(values[WIDE, length, 1_000], value)
        for values in measured.values() for (_, length, batch), value in values.items() if batch < 1_000 and (WIDE, length, 1_000) in values
    ]  # fmt: skip
    return Figures(
        {"gain": extreme(gains)},
        [Table("Both stages against the plain loop", rows)] if by_machines else [],
        [Chart(f"Speedup over one core: {machines}", "bases of R1 and R2", "times", [
            Series(f"{pairs:,} pairs", Source.gpu, [(length, ratios[length, pairs]) for length in LENGTHS if (length, pairs) in ratios])
            for pairs in BATCHES
        ]) for machines, ratios in by_machines.items()],
        {"today": today and f"On machines of today: {today}."},
    )  # fmt: skip
