"""Reports of a comparison: a table of differences, the full report in Markdown, JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from .. import tables
from .compare import AGAIN, Cell, Comparison, Reason

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(
        (f"global {kind}s", (f"global_{kind}_requests", f"global_{kind}_sectors"))
        for kind in ("load", "store", "atomic", "reduction")
    ),
    *(
        (f"shared {kind}s", (f"shared_{kind}_wavefronts", f"shared_{kind}_conflicts"))
        for kind in ("load", "store", "atomic")
    ),
    ("barriers", ("barriers",)),
    ("shuffles", ("shuffles",)),
    ("warp instructions", ("warp_instructions",)),
    ("efficiency", ("warp_execution_efficiency",)),
    ("registers", ("registers",)),
    ("occupancy", ("occupancy",)),
)
"""Columns of the report: requests and sectors of global memory, wavefronts and conflicts of shared memory."""


def table(comparison: Comparison) -> str:
    """Return the counts of cells within their tolerances by metric, the cells beyond them, and the reasons."""
    lines = [tables.table(["figure", "goal", "met", "worst"], _rows(comparison), left=2)]
    notes = list(dict.fromkeys(cell.reason for cell in comparison.cells if cell.reason))
    if short := [cell for cell in comparison.cells if not cell.within_tolerance]:
        rows = [
            [
                cell.kernel,
                cell.figure.name,
                number(cell, cell.emulated),
                number(cell, cell.measured),
                f"[{notes.index(cell.reason) + 1}]" if cell.reason else "UNEXPLAINED",
            ]
            for cell in short
        ]
        lines += ["", tables.table(["kernel", "figure", "emulated", "measured", "why"], rows, left=2)]
    lines += [f"\n[{at}] {reason}: {reason.cause}" for at, reason in enumerate(notes, 1)]
    lines += [f"{name} waits to be measured" for name in comparison.unmeasured]
    lines += [f"{name} is not compared: {error}" for name, error in comparison.refused.items()]
    lines += [f"{name} is not in the record as it is printed now; {AGAIN}" for name in comparison.stale]
    lines += [
        f"{reason}: the reason given for {', '.join(reason.figures)} explains nothing" for reason in comparison.idle
    ]
    return "\n".join(lines)


def worst(cells: Sequence[Cell]) -> str:
    """Return the largest difference, in the unit of the tolerance."""
    match cells[0].figure.goal:
        case "5 %":
            return f"{max((100 * abs(c.emulated / c.measured - 1) for c in cells), default=0):.1f} %"
        case "2 points":
            return f"{max((100 * abs(c.emulated - c.measured) for c in cells), default=0):.1f} points"
    return f"{max((abs(c.emulated - c.measured) for c in cells), default=0):,.0f}"


def number(cell: Cell, value: float) -> str:
    """Format a count with separators, a ratio in percent."""
    if cell.figure.name == "warp_execution_efficiency":
        return f"{100 * value:.1f} %"
    return f"{value:g} %" if cell.figure.name == "occupancy" else f"{value:,.0f}"


def content(comparison: Comparison) -> dict[str, Any]:
    """Return the content of `--json`."""
    return {
        "device": comparison.record.gpu,
        "dated": comparison.record.dated,
        "toolkit": comparison.record.toolkit,
        "profiler": comparison.record.profiler,
        "holds": comparison.holds,
        "stale": list(comparison.stale),
        "unmeasured": list(comparison.unmeasured),
        "refused": dict(comparison.refused),
        "cells": [
            {
                "kernel": cell.kernel,
                "figure": cell.figure.name,
                "goal": cell.figure.goal,
                "emulated": cell.emulated,
                "measured": cell.measured,
                "meets": cell.within_tolerance,
                "why": cell.reason.cause if cell.reason else None,
            }
            for cell in comparison.cells
        ],
    }


# ------------------------------------------------------------------ the full report
def markdown(comparison: Comparison) -> str:
    """Return the report with a row for each kernel and the SASS of each reason."""
    record = comparison.record
    notes = list(dict.fromkeys(cell.reason for cell in comparison.cells if cell.reason))
    columns = [
        (t, n) for t, n in GROUPS if any(c.measured or c.emulated for c in comparison.cells if c.figure.name in n)
    ]
    return "\n".join(
        [
            f"# Emulated and measured: {record.gpu}",
            "",
            f"Nsight Compute {record.profiler}, {record.toolkit}, recorded {record.dated}; written by "
            "`simtbed hardware compare --markdown`.",
            "",
            "One number: emulated and measured agree (instructions: within 5 %, efficiency: within 2 points). Otherwise",
            "emulated, then **measured**, and the number of the reason below. Global memory: requests / sectors; shared",
            "memory: wavefronts / conflicts; all of it the compiled view, counted from the SASS that ran.",
            "",
            _pipe(["figure", "goal", "met", "worst"], _rows(comparison)),
            "",
            _pipe(["kernel", *(title for title, _ in columns)], _kernels(comparison, [n for _, n in columns], notes)),
            "",
            *(f"{name} waits to be measured." for name in comparison.unmeasured),
            *(f"{name} is not compared: {error}." for name, error in comparison.refused.items()),
            "",
            "## Why some differ",
            *(_note(number, reason) for number, reason in enumerate(notes, 1)),
        ]
    )


def _rows(comparison: Comparison) -> Iterable[list[str]]:
    for title, names in GROUPS:
        cells = [cell for cell in comparison.cells if cell.figure.name in names]
        if cells:
            yield [
                title,
                cells[0].figure.goal,
                f"{sum(c.within_tolerance for c in cells):,} of {len(cells):,}",
                worst(cells),
            ]


def _kernels(comparison: Comparison, columns: list[tuple[str, ...]], notes: list[Reason]) -> Iterable[list[str]]:
    at = {(cell.kernel, cell.figure.name): cell for cell in comparison.cells}
    for kernel in dict.fromkeys(cell.kernel for cell in comparison.cells):
        yield [kernel, *(_shown([at[kernel, name] for name in names], notes) for names in columns)]


def _shown(cells: list[Cell], notes: list[Reason]) -> str:
    if not any(cell.emulated or cell.measured for cell in cells):
        return ""
    emulated = " / ".join(number(cell, cell.emulated) for cell in cells)
    measured = " / ".join(number(cell, cell.measured) for cell in cells)
    if emulated == measured:
        return emulated
    if all(cell.within_tolerance for cell in cells):
        return f"{emulated} ({measured})"
    numbers = sorted({notes.index(cell.reason) + 1 for cell in cells if cell.reason})
    return f"{emulated}, **{measured}** {', '.join(f'[{n}]' for n in numbers)}".rstrip()


def _note(number: int, reason: Reason) -> str:
    shown = f"\n\n```\n{reason.sass}\n```" if reason.sass else ""
    return f"\n**[{number}] {reason}**: {reason.cause}{shown}"


def _pipe(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---", *("---:" for _ in headers[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
