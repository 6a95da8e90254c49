"""Columns of counters, and the table of the counted lines of a profile."""

from collections.abc import Callable

from ..escaping import printable
from ..span import name_of
from .costs import Costs
from .counters import Row
from .sums import CONFLICTS, DIVERGENT, INSTRUCTIONS, REQUESTS, SECTORS, THREADS, WAVEFRONTS


def _lanes(row: Row) -> str:
    return f"{THREADS(row) / INSTRUCTIONS(row):.1f}" if INSTRUCTIONS(row) else ""


def _formatted(value: Callable[[Row], int]) -> Callable[[Row], str]:
    return lambda row: f"{value(row):,}" if value(row) else ""


COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("instructions", _formatted(INSTRUCTIONS)),
    ("lanes", _lanes),
    ("divergent", _formatted(DIVERGENT)),
    ("requests", _formatted(REQUESTS)),
    ("sectors", _formatted(SECTORS)),
    ("wavefronts", _formatted(WAVEFRONTS)),
    ("conflicts", _formatted(CONFLICTS)),
)
"""Columns: warp instructions, average active lanes, divergent branches, global requests and sectors, shared wavefronts, bank
conflicts."""


def title(costs: Costs) -> str:
    """Return the kernels, the launches and the device in one line."""
    launches = "1 launch" if costs.launches == 1 else f"{costs.launches:,} launches"
    names = ", ".join(costs.kernels) if len(costs.kernels) <= 3 else f"{len(costs.kernels)} kernels"
    return printable(f"{names}: {launches} on {costs.device.name}")


def line_table(costs: Costs) -> str:
    """Return a row for each counted line, with a column for each nonzero counter and its source text."""
    from tabulate import tabulate  # late: its import takes longer than most launches

    lines = costs.by_line()
    columns = [(name, show) for name, show in COLUMNS if any(show(row) for row in lines.values())]
    rows = []
    for (file, number), row in lines.items():
        source = costs.sources.get(file, "").split("\n")
        text = printable(source[number - 1].strip()) if number <= len(source) else ""
        rows.append([f"{name_of(file)}:{number}", *(show(row) for _, show in columns), text])
    aligned = ["left", *["right"] * len(columns), "left"]
    headers = ["line", *(name for name, _ in columns), "source"]
    return tabulate(rows, headers, disable_numparse=True, colalign=aligned if rows else None)
