"""Errors of the time model: predicted and measured times by launch, a roofline, and constants fitted without the predicted kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import Device, SimtbedError
from simtbed.documents import json_of, require
from simtbed.escaping import printable
from simtbed.kernels.files import contents
from simtbed.model.launches import observe
from simtbed.model.time import MEMORIES, Estimate, estimate
from simtbed.runtime.request import prepare_request

from .launches import Timed
from .traffic import NAMES, Figures, of_model

LOADED = (0.4, 0.5, 0.6, 0.7, 0.8)
FACTOR = (0.94, 0.97, 1.0, 1.03, 1.06, 1.1)
"""Candidates of the fit: the factor of the latency of busy device memory, and a factor of all cycles."""

_FEW = 10
"""Minimum of launches with the same bound for an interval of their own."""


@dataclass(frozen=True)
class Compared:
    """One launch. measured_us: on the GPU. times: microseconds without the launch overhead, by the constant of LOADED;
    launch_us: of an empty kernel. source_us: with the counts of the source. model, measured: hit rates and bytes;
    None if not recorded."""

    name: str
    kernel: str
    measured_us: float
    times: Mapping[float, float]
    launch_us: float
    prediction: Estimate
    source_us: float
    model: Figures
    measured: Figures | None

    def time(self, loaded: float, factor: float) -> float:
        """Return microseconds with these constants."""
        return factor * self.times[loaded] + self.launch_us

    @property
    def roofline(self) -> float:
        """Microseconds of the larger of device memory and the busiest pipe."""
        limits = self.prediction.limits
        pipes = [limit for name, limit in limits.items() if name not in (*MEMORIES, "latency")]
        return max(limits.get("DRAM", 0.0), *pipes)


@dataclass(frozen=True)
class Errors:
    """Relative errors of times."""

    mean: float
    p90: float
    worst: float

    @staticmethod
    def from_pairs(pairs: Iterable[tuple[float, float]]) -> Errors:
        """Return the errors of pairs (predicted, measured)."""
        errors = np.array([abs(p / m - 1) for p, m in pairs])
        return Errors(float(errors.mean()), float(np.quantile(errors, 0.9)), float(errors.max()))


def load(path: Path) -> dict[str, Any]:
    """Read a record of times. Raises SimtbedError for another file."""
    from .record_schema import TimesRecord  # late: msgspec

    try:
        record: dict[str, Any] = json_of(contents(path))
        require(record, TimesRecord)
    except ValueError as error:
        raise SimtbedError(
            f"{printable(path)}: expected a record that `simtbed hardware times` wrote: {error}"
        ) from None
    return record


def compare(
    cases: Iterable[Timed], record: Mapping[str, Any], device: Device, cold: bool, progress: Any
) -> list[Compared]:
    """Predict each case of the record."""
    rows = []
    for case in cases:
        times = record["launches"].get(case.name)
        if times is None:
            continue
        rows.append(_compared(case, times, device, cold))
        progress(case.name)
    if not rows:
        raise SimtbedError("the record has none of these launches")
    return rows


def _compared(case: Timed, times: Mapping[str, Any], device: Device, cold: bool) -> Compared:
    request = prepare_request(
        case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=device, shared=case.shared
    )
    observed = observe(request)
    prediction, launch = estimate(observed, device, cold), device.timing.launch / 1000
    source = estimate(replace(observed, memory=None, registers=int(times.get("registers", 0))), device, cold)
    tried = {n: estimate(observed, device, cold, prediction.traffic, loaded=n).time_us - launch for n in LOADED}
    figures = times.get("cold", {}) if cold else times
    counted = {name: float(figures[name]) for name in NAMES} if NAMES[0] in figures else None
    return Compared(
        case.name, case.kernel.__name__, times["cold_us" if cold else "warm_us"], tried, launch, prediction, source.time_us,
        of_model(prediction.traffic), counted,
    )  # fmt: skip


Constants = tuple[float, float]


def fitted(rows: Sequence[Compared]) -> Constants:
    """Return the constants with the smallest mean error."""
    return min(product(LOADED, FACTOR), key=lambda c: Errors.from_pairs((r.time(*c), r.measured_us) for r in rows).mean)


def left_out(rows: Sequence[Compared]) -> list[tuple[Compared, float]]:
    """Return each launch with its time by constants fitted without its kernel."""
    predictions = []
    for kernel in dict.fromkeys(row.kernel for row in rows):
        rest = [row for row in rows if row.kernel != kernel]
        if not rest:
            raise SimtbedError("leaving a kernel out needs two kernels or more")
        constants = fitted(rest)
        predictions += [(row, row.time(*constants)) for row in rows if row.kernel == kernel]
    return predictions


def residuals(rows: Sequence[tuple[Compared, float]]) -> dict[str, tuple[float, float, int]]:
    """Return, by bound, the 5th and 95th percentile of measured / predicted, and the number of launches."""
    ratios: dict[str, list[float]] = {}
    for row, predicted in rows:
        ratios.setdefault(row.prediction.bound, []).append(row.measured_us / predicted)
    return {
        bound: (float(np.quantile(values, 0.05)), float(np.quantile(values, 0.95)), len(values)) for bound, values in ratios.items()
    }  # fmt: skip


def covered(rows: Sequence[tuple[Compared, float]]) -> float:
    """Return the fraction of measured times within the interval of the other kernels with the same bound."""
    within = 0
    for kernel in dict.fromkeys(row.kernel for row, _ in rows):
        rest = [one for one in rows if one[0].kernel != kernel]
        everything = [row.measured_us / predicted for row, predicted in rest]
        intervals = residuals(rest)
        for row, predicted in (one for one in rows if one[0].kernel == kernel):
            low, high, count = intervals.get(row.prediction.bound, (0.0, 0.0, 0))
            if count < _FEW:
                low, high = float(np.quantile(everything, 0.05)), float(np.quantile(everything, 0.95))
            within += low <= row.measured_us / predicted <= high
    return within / len(rows)


def lost_by_choices(rows: Sequence[tuple[Compared, float]]) -> list[tuple[str, float]]:
    """Return, for each sweep of blocks (launches with names that differ in the last word), the time lost by the
    predicted choice, relative to the best."""
    sweeps: dict[str, list[tuple[Compared, float]]] = {}
    for row, predicted in rows:
        sweeps.setdefault(row.name.rpartition(" ")[0], []).append((row, predicted))
    losses = []
    for name, sweep in sweeps.items():
        if len(sweep) > 1:
            chosen = min(sweep, key=lambda one: one[1])[0]
            losses.append((name, chosen.measured_us / min(row.measured_us for row, _ in sweep) - 1))
    return losses
