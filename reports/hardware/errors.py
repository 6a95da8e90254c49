"""The model beside measured times: errors launch by launch, rooflines beside it, and constants fitted without the kernel they are
tried on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import Device, SimtbedError
from simtbed.kernels.files import contents
from simtbed.model.launches import observe
from simtbed.model.time import MEMORIES, Estimate, estimate
from simtbed.runtime.request import prepare_request

from .launches import Timed
from .traffic import NAMES, Figures, of_model

LOADED = (0.4, 0.5, 0.6, 0.7, 0.8)
FACTOR = (0.94, 0.97, 1.0, 1.03, 1.06, 1.1)
"""What is tried when fitting: by what part device memory answers later when it is busy, and a factor of all cycles."""

_FEW = 10
"""Launches of one bound from which on they have an interval of their own."""


@dataclass(frozen=True)
class Compared:
    """One launch. measured_us: on the GPU. times: microseconds without the launch itself, by what LOADED is; launch_us: of an empty
    kernel. found: by the model as it is; source_us: with the source counted alone. model, measured: hit rates and bytes; None where the
    record has none."""

    name: str
    kernel: str
    measured_us: float
    times: Mapping[float, float]
    launch_us: float
    found: Estimate
    source_us: float
    model: Figures
    measured: Figures | None

    def time(self, loaded: float, factor: float) -> float:
        """Microseconds, with these constants."""
        return factor * self.times[loaded] + self.launch_us

    @property
    def roofline(self) -> float:
        """Microseconds of the larger of device memory and the busiest pipe."""
        limits = self.found.limits
        pipes = [limit for name, limit in limits.items() if name not in (*MEMORIES, "latency")]
        return max(limits.get("DRAM", 0.0), *pipes)


@dataclass(frozen=True)
class Errors:
    """Of times, as shares of the measured ones."""

    mean: float
    p90: float
    worst: float

    @staticmethod
    def of(pairs: Iterable[tuple[float, float]]) -> Errors:
        """From (predicted, measured)."""
        found = np.array([abs(p / m - 1) for p, m in pairs])
        return Errors(float(found.mean()), float(np.quantile(found, 0.9)), float(found.max()))


def load(path: Path) -> dict[str, Any]:
    """A record of times. Raises SimtbedError where it is none."""
    try:
        record: dict[str, Any] = json.loads(contents(path))
        for times in record["launches"].values():
            if not all(float(times[name]) > 0 for name in ("warm_us", "cold_us")):
                raise ValueError("a time that is not above 0")
        if not record["launches"]:
            raise ValueError("no times")
        return record
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SimtbedError(f"{path}: expected a record that `simtbed hardware times` wrote: {error}") from None


def compare(cases: Iterable[Timed], record: Mapping[str, Any], device: Device, cold: bool, done: Any) -> list[Compared]:
    """Each case that the record has, emulated."""
    found = []
    for case in cases:
        times = record["launches"].get(case.name)
        if times is None:
            continue
        found.append(_compared(case, times, device, cold))
        done(case.name)
    if not found:
        raise SimtbedError("the record has none of these launches")
    return found


def _compared(case: Timed, times: Mapping[str, Any], device: Device, cold: bool) -> Compared:
    request = prepare_request(
        case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=device, shared=case.shared
    )
    observed = observe(request)
    found, launch = estimate(observed, device, cold), device.timing.launch / 1000
    source = estimate(
        replace(observed, decisions=None, registers=int(times.get("registers", 0))), device, cold, found.traffic
    )
    tried = {n: estimate(observed, device, cold, found.traffic, loaded=n).time_us - launch for n in LOADED}
    figures = times.get("cold", {}) if cold else times
    counted = {name: float(figures[name]) for name in NAMES} if NAMES[0] in figures else None
    return Compared(
        case.name, case.kernel.__name__, times["cold_us" if cold else "warm_us"], tried, launch, found, source.time_us,
        of_model(found.traffic), counted,
    )  # fmt: skip


Constants = tuple[float, float]


def fitted(rows: Sequence[Compared]) -> Constants:
    """The constants with the least mean error."""
    return min(product(LOADED, FACTOR), key=lambda c: Errors.of((r.time(*c), r.measured_us) for r in rows).mean)


def left_out(rows: Sequence[Compared]) -> list[tuple[Compared, float]]:
    """Each launch with its time by constants that were fitted without its kernel."""
    found = []
    for kernel in dict.fromkeys(row.kernel for row in rows):
        others = [row for row in rows if row.kernel != kernel]
        if not others:
            raise SimtbedError("leaving a kernel out needs two kernels or more")
        constants = fitted(others)
        found += [(row, row.time(*constants)) for row in rows if row.kernel == kernel]
    return found


def residuals(rows: Sequence[tuple[Compared, float]]) -> dict[str, tuple[float, float, int]]:
    """By what bounds a launch: by how much measured times are less and more than the predicted ones, as factors between which nine
    of ten lie, and of how many launches."""
    found: dict[str, list[float]] = {}
    for row, predicted in rows:
        found.setdefault(row.found.bound, []).append(row.measured_us / predicted)
    return {
        bound: (float(np.quantile(of, 0.05)), float(np.quantile(of, 0.95)), len(of)) for bound, of in found.items()
    }  # fmt: skip


def covered(rows: Sequence[tuple[Compared, float]]) -> float:
    """The share of measured times that lie in the interval which the launches of other kernels with the same bound give."""
    within = 0
    for kernel in dict.fromkeys(row.kernel for row, _ in rows):
        others = [one for one in rows if one[0].kernel != kernel]
        everything = [row.measured_us / predicted for row, predicted in others]
        known = residuals(others)
        for row, predicted in (one for one in rows if one[0].kernel == kernel):
            low, high, count = known.get(row.found.bound, (0.0, 0.0, 0))
            if count < _FEW:
                low, high = float(np.quantile(everything, 0.05)), float(np.quantile(everything, 0.95))
            within += low <= row.measured_us / predicted <= high
    return within / len(rows)


def lost_by_choices(rows: Sequence[tuple[Compared, float]]) -> list[tuple[str, float]]:
    """Of each sweep of blocks (launches whose names differ in the last word alone): the time lost by the choice that the model
    names, as a share of the best."""
    sweeps: dict[str, list[tuple[Compared, float]]] = {}
    for row, predicted in rows:
        sweeps.setdefault(row.name.rpartition(" ")[0], []).append((row, predicted))
    found = []
    for name, of in sweeps.items():
        if len(of) > 1:
            chosen = min(of, key=lambda one: one[1])[0]
            found.append((name, chosen.measured_us / min(row.measured_us for row, _ in of) - 1))
    return found
