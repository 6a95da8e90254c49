"""Counters as tables: what was counted, and the ratios made from it."""

from __future__ import annotations

from simtbed import Counters, Profile
from simtbed.profiler.events import MEANING

from ..tables import table


def totals(counters: Counters | Profile) -> str:
    """Every counter that is not zero, with what it counts."""
    from tabulate import tabulate  # late, as in `tables`

    rows = [(name, f"{n:,}", MEANING[name]) for name, n in counters.totals().items() if n]
    headers = ["counter", "total", "what it counts"]
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=("left", "right", "left"))


def derived(counters: Counters | Profile) -> str:
    """The ratios made from the counters."""
    return table(["derived", "value"], [(name, ratio(name, value)) for name, value in counters.derived().items()])


def ratio(name: str, value: float) -> str:
    """An efficiency in per cent, any other ratio as a number."""
    return f"{100 * value:.1f} %" if name.endswith("efficiency") else f"{value:.2f}"
