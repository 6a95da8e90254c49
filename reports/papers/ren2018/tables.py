"""Tables 2, 4 and 5 of Ren 2018: profiles, and times on the "10s" set."""

from __future__ import annotations

from dataclasses import replace

from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import equal_lengths
from simtbed.machine.occupancy import occupancy

from ...explanation import choices
from .. import recorded
from ..claims import Origin, Source, Value, counted_by, predicted_for, quotient
from ..measured import Machine
from ..paper import Figures, Row, Setting, Table, about, cpu, emulator, gpu, model, paper
from ..predicted import CAVEAT
from ..values import extreme, predicted, predicted_cells, steps
from .figures import cells
from .profiled import K40, LENGTHS, bound, by_rule, floors, launched
from .profiled import PAPER as PRINTED
from .throughput import (
    CELLS_OF_10S,
    DATA,
    INTERTASK,
    INTRATASK,
    LOOP,
    LOOP_LENGTHS,
    PAIRS_OF_BLOCK,
    counted_pairs,
    predicted_pace,
)

PAIRS_OF_10S, LONGEST_OF_10S = 3_550, (247, 263)
"""Of the "10s" set."""
NOTE = "Registers: nvcc 13 for sm_90. Latency and achieved occupancy are not counted by the emulator. " + CAVEAT


def _profile(setting: Setting, number: int) -> tuple[list[Row], dict[str, list[Value]]]:
    """Return the rows of a table, and the values by name, in the order of its rows."""
    rows: list[Row] = []
    rule, by_printed = counted_by(K40), Origin(Source.paper, "CUDA's rule for its registers and bytes")
    values: dict[str, list[Value]] = {name: [] for name in ("bandwidths", "shared", "occupancies", "traffic", "ours")}
    agreeing = 0
    memory = "global memory" if number == 2 else "shared memory"
    for printed in (row for row in PRINTED if row.table == number):
        variant, pairs = printed.variant, counted_pairs(setting, printed.variant)
        (result,) = launched(equal_lengths(1, pairs, *LENGTHS[number]), variant, engine=setting.engine)
        least = floors(result.counters, cells(pairs, *LENGTHS[number]), K40)[memory]
        prediction = predicted_pace(variant, *LENGTHS[number], setting.engine)
        bandwidth = prediction.dram_bandwidth if number == 2 else prediction.shared_bandwidth
        moved = bandwidth * prediction.microseconds
        agreeing += (printed.limitation == "memory") == (bound(result.counters, K40) == "global memory")
        ours = occupancy(K40, printed.block, printed.registers, result.shared_bytes).percent
        values["bandwidths"].append(predicted(K40, prediction, lambda time, moved=moved: moved / time, variant))  # type: ignore[misc]
        values["shared"].append(Value(rule, result.shared_bytes, variant))
        values["occupancies"].append(Value(by_printed, _rounded(by_rule(printed)), variant))
        values["traffic"].append(Value(rule, least, variant))
        values["ours"].append(Value(rule, ours, variant))
        rows.append({
            about("implementation"): variant, paper("limited by"): printed.limitation, emulator("most used"): bound(result.counters, K40),
            model("bound by"): prediction.estimate.bound, paper("bandwidth, GB/s"): printed.bandwidth,
            **predicted_cells("bandwidth, GB/s", values["bandwidths"][-1]), emulator(f"least ns per cell, {memory}"): least,
            paper("registers"): printed.registers, gpu("registers, sm_90"): recorded.registers(f"pairhmm {variant}"),
            paper("shared bytes"): printed.shared, emulator("shared bytes"): result.shared_bytes,
            paper("occupancy, %"): printed.occupancy, emulator("occupancy by the paper's registers and our bytes, %"): ours,
        })  # fmt: skip
    return rows, {**values, "limits": [Value(rule, agreeing)]}


def _rounded(percent: float) -> float:
    """Return a percentage with the decimal of the paper, which rounds halves up."""
    return round(percent + 1e-9, 1)


def intertask_profile(setting: Setting) -> Figures:
    """Table 2."""
    rows, values = _profile(setting, 2)
    values["traffic"] = extreme(steps(values["traffic"]), least=False)
    return Figures(values, [Table("Set 6", rows)], texts={"note": NOTE})


def intratask_profile(setting: Setting) -> Figures:
    """Table 4."""
    rows, values = _profile(setting, 4)
    naive, tile2, *_ = values["traffic"]
    *_, warp, warps = values["ours"]
    derived = {
        "falls": list(steps(values["bandwidths"])), "tile2": [quotient(tile2, naive, "")], "fuller": [quotient(warps, warp, "")]
    }  # fmt: skip
    texts = {"note": NOTE, "choices": choices(FAMILY, "intratask-warp")}
    return Figures({**values, **derived}, [Table("Set 26", rows)], texts=texts)


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
        value = _on_ten_seconds(setting, variant)
        row: Row = {about("variant"): variant, **predicted_cells("kernels on a K40, ms", value)}
        values = [value]
        for device in recorded.DEVICES:
            milliseconds = recorded.milliseconds(f"pairhmm {variant}", DATA, device)
            row = {**row, gpu(f"{device}, kernels, ms"): milliseconds}
            if milliseconds is not None:
                values.append(Value(recorded.origin(device), milliseconds, variant))
        for value in values:
            by_origin.setdefault(value.origin, {})[variant] = value
        rows.append(row)
    for machine in (Machine.core, Machine.cores):
        if timing := setting.timing(LOOP, machine):
            rows.append(
                {about("variant"): f"{LOOP}, {machine}: {timing.machine}", cpu("ms"): 1e3 * CELLS_OF_10S / timing.rate}
            )
    complete = [times for times in by_origin.values() if len(times) == len(INTRATASK) + len(INTERTASK)]
    return Figures(
        {
            "improved": extreme(
                quotient(value, times["intratask-warps"]) for times in complete for value in times.values()
                if value.label != "intratask-warps"
            ),
            "approaches": extreme(
                quotient(times[slow], times[fast]) for times in complete for slow in INTERTASK for fast in INTRATASK
            ),
            "tiles": extreme(
                replace(step, value=1 / (step.value or 1), interval=_inverse(step.interval))
                for times in complete for step in steps([times[variant] for variant in INTERTASK])
            ),
            "slowest": _slowest(complete, ""),
            "slowest but one": _slowest(complete, "intertask-naive"),
        },
        [Table("Kernels here", rows)],
        texts={"caveat": CAVEAT},
    )  # fmt: skip


def _inverse(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return interval and (1 / interval[1], 1 / interval[0])


def _slowest(complete: list[dict[str, Value]], without: str) -> list[Value]:
    return extreme((value for times in complete for name, value in times.items() if name != without), least=False)
