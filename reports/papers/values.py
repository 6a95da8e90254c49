"""Values of formulas: agreements with oracles, ratios of measured times, and predictions with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from simtbed import Device
from simtbed.kernels import Agreement, Family
from simtbed.runtime.registry import EngineName

from ..launchers import Runner
from .claims import COMPUTED, Value, predicted_for, quotient
from .measured import Machine
from .paper import Row, Setting, model
from .predicted import Pace

Problem = TypeVar("Problem")


def computed(value: float | None, label: str = "") -> list[Value]:
    """Return a value of a shipped variant or oracle."""
    return [Value(COMPUTED, value, label)]


def differing(agreement: Agreement) -> list[Value]:
    """Return the number of results that differ from the oracle's; no value without results."""
    return computed(agreement.differing if agreement.compared else None, f"of {agreement.compared:,}")


def solved(family: Family[Problem], problem: Problem, variant: str, engine: EngineName) -> list[Value]:
    """Return the number of results of a variant that differ from the oracle's."""
    return differing(family.compare(family.solve(problem, variant, Runner(engine)), family.oracle(problem)))


def predicted(device: Device, prediction: Pace, value: Callable[[float], float], label: str = "") -> Value:
    """Return a value as a function of the predicted microseconds per block, with its interval."""
    ends = [value(microseconds) for microseconds in prediction.interval]
    return Value(predicted_for(device), value(prediction.microseconds), label, (min(ends), max(ends)))


def predicted_cells(name: str, value: Value) -> Row:
    """Return the cells of a prediction and the ends of its interval."""
    low, high = value.interval or (0.0, 0.0)
    return {model(name): value.value, model("from"): low, model("to"): high}


def timed(setting: Setting, name: str, on: Machine, unit: float = 1.0, label: str = "") -> list[Value]:
    """Return the rate of a benchmark on each machine that has it, in `unit` per second."""
    return [Value(timing.origin, timing.rate / unit, label) for timing in setting.timings(name, on)]


def speedups(setting: Setting, on: Machine, slow: str, fast: str, label: str = "") -> list[Value]:
    """Return the ratio of two benchmarks' rates on each machine with both, with the machine and the later date."""
    ratios = []
    for timings in setting.by_machine([slow, fast], on):
        dated = max(timing.dated for timing in timings.values())
        ratios.append(Value(replace(timings[fast].origin, dated=dated), timings[fast].rate / timings[slow].rate, label))
    return ratios


def across(setting: Setting, slow: str, slow_on: Machine, fast: str, fast_on: Machine) -> str:
    """Return a remark with the speedups over another kind of machine: machines of today, not those of the paper."""
    return "; ".join(
        f"{timing.machine} over {base.machine}: {timing.rate / base.rate:.3g} times"
        for base in setting.timings(slow, slow_on)
        for timing in setting.timings(fast, fast_on)
    )


def steps(values: Sequence[Value]) -> Iterator[Value]:
    """Yield the quotient of each value and the one before it."""
    for before, after in pairwise(values):
        yield quotient(after, before)


def extreme(values: Iterable[Value], least: bool = True, label: str = "") -> list[Value]:
    """Return the smallest value, or else the largest, of each origin, with the number of values as its label."""
    by_origin: dict[object, list[Value]] = {}
    for value in values:
        if value.value is not None:
            by_origin.setdefault(value.origin, []).append(value)
    choose = min if least else max
    return [
        replace(choose(found, key=lambda value: value.value or 0.0), label=f"of {len(found)}{label}")
        for found in by_origin.values()
    ]
