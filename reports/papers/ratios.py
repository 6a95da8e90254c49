"""Ratios of measured times, one for each machine with all of them."""

from __future__ import annotations

from dataclasses import replace

from .claims import Comparison, Origin, near
from .measured import Machine
from .paper import Setting


def speedups(setting: Setting, on: Machine, slow: str, fast: str) -> list[tuple[Origin, float]]:
    """Return the ratio of two benchmarks' rates on each machine with both, with the machine and the later date."""
    ratios = []
    for timings in setting.by_machine([slow, fast], on):
        dated = max(timing.dated for timing in timings.values())
        ratios.append((replace(timings[fast].origin, dated=dated), timings[fast].rate / timings[slow].rate))
    return ratios


def near_speedups(
    setting: Setting, on: Machine, slow: str, fast: str, expected: float, tolerance: float
) -> list[Comparison]:
    """Compare the speedups of a benchmark with a number of the paper. tolerance: relative."""
    return [
        near(origin, f"speedup over {slow}", ratio, expected, tolerance)
        for origin, ratio in speedups(setting, on, slow, fast)
    ]


def across(setting: Setting, slow: str, slow_on: Machine, fast: str, fast_on: Machine) -> str:
    """Return a remark with the speedups over another kind of machine: machines of today, not those of the paper."""
    bases, timings = setting.by_machine([slow], slow_on), setting.by_machine([fast], fast_on)
    return "; ".join(
        f"{timing[fast].machine} over {base[slow].machine}: {timing[fast].rate / base[slow].rate:.3g} times"
        for base in bases
        for timing in timings
    )
