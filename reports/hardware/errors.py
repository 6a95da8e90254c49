"""The model beside measured times: errors launch by launch, a roofline beside it, and constants fitted without the kernel they
are tried on."""

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
from simtbed.model.time import MEMORIES, Observed, estimate, factor
from simtbed.runtime.request import prepare_request

from .timing import Timed
from .traffic import NAMES, Figures, of_model

SHARPNESS = (1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
LATENCY = (0.4, 0.6, 0.8, 1.0, 1.25, 1.6)
ISSUE = (0.5, 0.65, 0.8, 1.0, 1.2)
"""What is tried when fitting: how sharply the parts add up, and factors of the chain of a warp and of instructions."""


@dataclass(frozen=True)
class Compared:
    """One launch. measured_us: on the GPU. limits: microseconds of each part, from the model, before its fitted factors;
    launch_us: of an empty kernel. model, measured: hit rates and bytes, with warm caches; None where the record has none."""

    name: str
    kernel: str
    measured_us: float
    limits: Mapping[str, float]
    launch_us: float
    model: Figures
    measured: Figures | None

    def time(self, sharpness: float, latency: float, issue: float) -> float:
        """Microseconds, with these constants."""
        total = 0.0
        for name, limit in self.limits.items():
            by = latency if name == "latency" else 1.0 if name in MEMORIES else issue
            total += float((by * limit) ** sharpness)
        return float(total ** (1 / sharpness)) + self.launch_us

    @property
    def roofline(self) -> float:
        """Microseconds of the larger of device memory and the busiest pipe."""
        pipes = [limit for name, limit in self.limits.items() if name not in (*MEMORIES, "latency")]
        return max(self.limits.get("DRAM", 0.0), *pipes)


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
        request = prepare_request(
            case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=device, shared=case.shared
        )
        observed: Observed = replace(observe(request), registers=int(times.get("registers", 0)))
        modelled = estimate(observed, device, cold)
        limits = {name: limit / factor(name) for name, limit in modelled.limits.items()}
        counted = {name: float(times[name]) for name in NAMES} if NAMES[0] in times and not cold else None
        measured = times["cold_us" if cold else "warm_us"]
        found.append(
            Compared(
                case.name, case.kernel.__name__, measured, limits, device.timing.launch / 1000, of_model(modelled.traffic),
                counted,
            )
        )  # fmt: skip
        done(case.name)
    if not found:
        raise SimtbedError("the record has none of these launches")
    return found


Constants = tuple[float, float, float]


def fitted(rows: Sequence[Compared]) -> Constants:
    """The constants with the least mean error."""
    return min(
        product(SHARPNESS, LATENCY, ISSUE), key=lambda c: Errors.of((r.time(*c), r.measured_us) for r in rows).mean
    )


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
