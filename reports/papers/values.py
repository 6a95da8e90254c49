"""Values of formulas: counters and lower bounds of time, agreements with oracles, ratios of measured times, predictions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from simtbed import Counters, Device, Kernel, Result, devices, launch
from simtbed.kernels import Agreement, Family, FunctionLauncher, Launcher
from simtbed.runtime.registry import EngineName

from ..launchers import Runner
from .claims import COMPUTED, Origin, Value, predicted_for, quotient
from .measured import Machine
from .paper import Row, Setting
from .predicted import Pace

K40 = replace(devices.find("K40"), clock=745)
"""The GPU of Ren 2018 and Ren 2019, at its clock."""
Solve = Callable[[Launcher], object]
"""The solution of a problem by a launcher."""


def launches(solve: Solve, engine: EngineName, device: Device = devices.H200, counters: bool = True) -> list[Result]:
    """Return the launches of a solution."""
    results: list[Result] = []

    @FunctionLauncher
    def noted(kernel: Kernel, **how: Any) -> Result:
        results.append(launch(kernel, engine=engine, device=device, counters=counters, **how))
        return results[-1]

    solve(noted)
    return results


def counters_of(solve: Solve, engine: EngineName, device: Device = devices.H200, kernel: str = "") -> Counters:
    """Return the counters over the launches of a solution. kernel: name of the only one to count."""
    runner = Runner(engine, device, counting=True)
    solve(runner)
    if kernel:
        return runner.counters_of(kernel)
    assert runner.counters is not None  # requested above
    return runner.counters


def floors(counters: Counters, units: float, device: Device) -> dict[str, float]:
    """Return the lower bound of nanoseconds per unit of work for each resource: global memory at its bandwidth, shared memory
    at a wavefront per cycle and SM, instructions at the issue rate of the ALUs."""
    totals = counters.totals()
    cycles = 1e3 / (device.clock * device.sms)  # ns of one SM-cycle, shared out over the device
    sectors = totals["global_load_sectors"] + totals["global_store_sectors"]
    return {
        "global memory": sectors * device.sector / device.bandwidth / units,
        "shared memory": shared_cycles(counters) * cycles / units,
        "instructions": 32 * totals["warp_instructions"] * cycles / device.rates.alu / units,
    }


def shared_cycles(counters: Counters) -> int:
    """Return the wavefronts of shared memory and the shuffles."""
    return sum(counters.total(event) for event in ("shared_load_wavefronts", "shared_store_wavefronts", "shuffles"))


def limit(bounds: Mapping[str, float]) -> tuple[str, float]:
    """Return the resource with the highest lower bound, and the bound."""
    return max(bounds.items(), key=lambda bound: bound[1])


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
    return {f"time model: {name}": value.value, "time model: from": low, "time model: to": high}


def timed(setting: Setting, name: str, on: Machine, unit: float = 1.0) -> list[Value]:
    """Return the rate of a benchmark on each machine that has it, in `unit` per second."""
    return [Value(timing.origin, timing.rate / unit) for timing in setting.timings(name, on)]


def speedups(setting: Setting, on: Machine, slow: str, fast: str) -> list[Value]:
    """Return the ratio of two benchmarks' rates on each machine with both, with the machine and the later date."""
    ratios = []
    for timings in setting.by_machine([slow, fast], on):
        dated = max(timing.dated for timing in timings.values())
        ratios.append(Value(replace(timings[fast].origin, dated=dated), timings[fast].rate / timings[slow].rate))
    return ratios


def timed_cells(setting: Setting, name: str, on: Machine, unit: str, amount: float, digits: int | None = None) -> Row:
    """Return the time of an amount of work by a benchmark on each machine. unit: of the time of so many, in seconds."""
    times = {timing.machine: (timing, amount / timing.rate) for timing in setting.timings(name, on)}
    return {
        f"{timing.origin.source}: {machine}, {unit}": time if digits is None else round(time, digits)
        for machine, (timing, time) in times.items()
    }


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


def ranked(values: Iterable[Value], rank: Callable[[int], int]) -> list[Value]:
    """Return the value of each origin at `rank(N)` of its N values in ascending order, with "of N" as its label."""
    by_origin: dict[Origin, list[Value]] = {}
    for value in values:
        if value.value is not None:
            by_origin.setdefault(value.origin, []).append(value)
    return [
        replace(sorted(found, key=lambda value: value.amount)[rank(len(found))], label=f"of {len(found)}")
        for found in by_origin.values()
    ]


def extreme(values: Iterable[Value], least: bool = True) -> list[Value]:
    """Return the smallest value, or else the largest, of each origin."""
    return ranked(values, lambda number: 0 if least else number - 1)
