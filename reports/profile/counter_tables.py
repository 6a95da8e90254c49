"""Tables of counters and derived ratios."""

from simtbed import Counters, Profile
from simtbed.profiler.events import MEANING

from ..tables import table


def totals(counters: Counters | Profile) -> str:
    """Return the table of nonzero counters and their definitions."""
    from tabulate import tabulate  # late, as in `tables`

    rows = [(name, f"{n:,}", MEANING[name]) for name, n in counters.totals().items() if n]
    headers = ["counter", "total", "definition"]
    return tabulate(rows, headers=headers, disable_numparse=True, colalign=("left", "right", "left"))


def derived(counters: Counters | Profile) -> str:
    """Return the table of derived ratios."""
    return table(["derived", "value"], [(name, ratio(name, value)) for name, value in counters.derived().items()])


def ratio(name: str, value: float) -> str:
    """Format an efficiency in percent, any other ratio as a number."""
    return f"{100 * value:.1f} %" if name.endswith("efficiency") else f"{value:.2f}"
