"""The report of a sweep: a table for people, JSON, and a page with pictures."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from simtbed import Device
from simtbed.model.sweeps import OBJECTIVES, SweepTable
from simtbed.profiler.html.roofline import roofline

from .. import tables
from .pictures import heat_map, lines

HEADINGS = ("kernel", "device", "choice", "launch", "grid", "us", "from", "to", "bound", "L1", "L2", "DRAM bytes")
_TEXTS = 3
"""Columns that hold text, before those of numbers."""
UNITS = {"time": "us", "bytes": "bytes of device memory"}


def text(title: str, table: SweepTable) -> str:
    """The rows, the best choices with their margins, what was refused, and in words what bounds each best choice."""
    parts = [title, tables.table(HEADINGS, _rows(table), left=_TEXTS)]
    for one in _best(table):
        words = f"best of {one.of}: " if one.of > 1 else ""
        line = f"{one.kernel} on {one.device}, {words}{one.choice}: {one.amount} {UNITS[table.objective]}"
        parts.append(f"{line}, {one.margin} less than the next" if one.of > 1 else line)
        parts[-1] += f"\n{one.explanation}"
    if table.refused:
        parts.append("\n".join(f"left out: {line}" for line in table.refused))
    return "\n\n".join(parts)


def _rows(table: SweepTable) -> list[list[Any]]:
    """As people read them."""
    return [
        [
            row["kernel"], row["device"], choice, row["launch"], "x".join(map(str, row["grid"])),
            f"{row['time_us']:,.2f}", f"{row['low_us']:,.2f}", f"{row['high_us']:,.2f}", row["bound"],
            f"{100 * row['l1_hit']:.1f} %", f"{100 * row['l2_hit']:.1f} %", row["dram_bytes"],
        ]
        for row, choice in zip(table, table.choices, strict=True)
    ]  # fmt: skip


class _Best(NamedTuple):
    """The best choice for a kernel on a device. of: how many choices there are. amount: of the objective. margin: how much less
    than the next one's, "" where there is no other."""

    kernel: str
    device: str
    choice: str
    of: int
    amount: str
    margin: str
    bound: str
    explanation: str


def _best(table: SweepTable) -> list[_Best]:
    sums, found = table.sums(), []
    for (kernel, device), (choice, margin) in table.best().items():
        of = sums[kernel, device]
        first = next(
            n for n, row in enumerate(table)
            if (row["kernel"], row["device"], table.choices[n]) == (kernel, device, choice)
        )  # fmt: skip
        less = f"{100 * margin:.1f} %" if len(of) > 1 else ""
        bound, explanation = table[first]["bound"], table.explanations[first]
        found.append(_Best(kernel, device, choice, len(of), f"{of[choice]:,.2f}", less, bound, explanation))
    return found


def as_json(table: SweepTable) -> str:
    """A list with one object a launch and configuration."""
    return json.dumps(list(table), indent=1, allow_nan=False)


def page(title: str, table: SweepTable, devices: Iterable[Device]) -> str:
    """One HTML file that needs no network."""
    best, pictures = _best(table), drawn(table)
    kernels = [
        {
            "name": kernel,
            "pictures": [(name, svg) for of, name, svg in pictures if of == kernel],
            "explanations": [(f"{one.device}, {one.choice}", one.explanation) for one in best if one.kernel == kernel],
        }
        for kernel in dict.fromkeys(row["kernel"] for row in table)
    ]
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    headings = [(name, number < _TEXTS or name == "bound") for number, name in enumerate(HEADINGS)][1:]
    return template.render(
        title=title, style=files("simtbed.profiler.html").joinpath("page.css").read_text(encoding="utf-8"),
        unit=UNITS[table.objective], best=best, refused=table.refused, kernels=kernels, headings=headings, rows=_rows(table),
        rooflines=rooflines(table, devices),
    )  # fmt: skip


def rooflines(table: SweepTable, devices: Iterable[Device]) -> list[tuple[str, str]]:
    """Of each device, with a point for each kernel and choice: warp instructions for each sector of device memory."""
    found = []
    for device in devices:
        points: dict[str, tuple[int, int]] = {}
        for row, choice in zip(table, table.choices, strict=True):
            if row["device"] == device.name:
                name = f"{row['kernel']}, {choice}"
                before = points.get(name, (0, 0))
                points[name] = before[0] + row["warp_instructions"], before[1] + row["dram_bytes"] // device.sector
        known = [(name, instructions / sectors) for name, (instructions, sectors) in points.items() if sectors]
        if known:
            found.append((f"{device.name}: device memory", roofline(known, ("fp32", "alu"), device)))
    return found


def drawn(table: SweepTable) -> list[tuple[str, str, str]]:
    """Pictures, each with its kernel, its name and itself as SVG: a line a device over the choices, and of two axes a map."""
    found = []
    by_kernel: dict[str, dict[str, dict[str, tuple[float, float, float]]]] = defaultdict(lambda: defaultdict(dict))
    for row, choice in zip(table, table.choices, strict=True):
        of = by_kernel[row["kernel"]][row["device"]]
        before = of.get(choice, (0.0, 0.0, 0.0))
        value = row[OBJECTIVES[table.objective]]
        ends = (row["low_us"], row["high_us"]) if table.objective == "time" else (value, value)
        of[choice] = (before[0] + value, before[1] + ends[0], before[2] + ends[1])
    unit = UNITS[table.objective]
    for kernel, of_kernel in by_kernel.items():
        found.append((kernel, f"{unit} by choice", lines(of_kernel, unit)))
        for device, of in of_kernel.items():
            pairs = [choice.rsplit(", ", 1) for choice in of]
            if len(of) > 3 and all(len(pair) == 2 for pair in pairs):
                first, second = (len({pair[n] for pair in pairs}) for n in (0, 1))
                if first > 1 and second > 1 and first * second == len(of):
                    cells = {tuple(p): of[", ".join(p)][0] for p in pairs}
                    found.append((kernel, f"{unit} on {device}", heat_map(cells)))
    return found
