"""The report of a sweep: a table for people, JSON, and a page with pictures."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from html import escape

from simtbed import Device
from simtbed.model.sweeps import OBJECTIVES, Table
from simtbed.profiler.html.roofline import roofline

from .. import tables
from .pictures import STYLE, heat_map, lines


def text(title: str, table: Table) -> str:
    """The rows, the best choices with their margins, what was refused, and in words what bounds each best choice."""
    shown = tables.table(
        ["kernel", "device", "choice", "launch", "grid", "us", "from", "to", "bound", "L1", "L2", "DRAM bytes"],
        [
            [
                row["kernel"], row["device"], choice, row["launch"], "x".join(map(str, row["grid"])),
                f"{row['time_us']:,.2f}", f"{row['low_us']:,.2f}", f"{row['high_us']:,.2f}", row["bound"],
                f"{100 * row['l1_hit']:.1f} %", f"{100 * row['l2_hit']:.1f} %", row["dram_bytes"],
            ]
            for row, choice in zip(table, table.choices, strict=True)
        ],
        left=3,
    )  # fmt: skip
    parts = [title, shown, *_best(table)]
    if table.refused:
        parts.append("\n".join(f"left out: {line}" for line in table.refused))
    return "\n\n".join(parts)


def _best(table: Table) -> list[str]:
    """A paragraph for each kernel and device."""
    unit = {"time": "us", "bytes": "bytes of device memory"}[table.objective]
    sums, found = table.sums(), []
    for (kernel, device), (choice, margin) in table.best().items():
        of = sums[kernel, device]
        words = f"best of {len(of)}: " if len(of) > 1 else ""
        line = f"{kernel} on {device}, {words}{choice}: {of[choice]:,.2f} {unit}"
        if len(of) > 1:
            line += f", {100 * margin:.1f} % less than the next"
        first = next(
            n for n, row in enumerate(table)
            if (row["kernel"], row["device"], table.choices[n]) == (kernel, device, choice)
        )  # fmt: skip
        found.append(f"{line}\n{table.explanations[first]}")
    return found


def as_json(table: Table) -> str:
    """A list with one object a launch and configuration."""
    return json.dumps(list(table), indent=1, allow_nan=False)


def page(title: str, table: Table, devices: Iterable[Device]) -> str:
    """One HTML file that needs no network."""
    named = [*drawn(table), *rooflines(table, devices)]
    pictures = "".join(f"<figure>{svg}<figcaption>{escape(name)}</figcaption></figure>" for name, svg in named)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line.split(",")) + "</tr>"
        for line in table.csv().splitlines()[1:]
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    words = "\n\n".join([*_best(table), *(f"left out: {line}" for line in table.refused)])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"<h1>{escape(title)}</h1><pre>{escape(words)}</pre>{pictures}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></html>"
    )


def rooflines(table: Table, devices: Iterable[Device]) -> list[tuple[str, str]]:
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


def drawn(table: Table) -> list[tuple[str, str]]:
    """Pictures as SVG, each with its name: of each kernel a line a device over the choices, and of two axes a map."""
    found = []
    by_kernel: dict[str, dict[str, dict[str, tuple[float, float, float]]]] = defaultdict(lambda: defaultdict(dict))
    for row, choice in zip(table, table.choices, strict=True):
        of = by_kernel[row["kernel"]][row["device"]]
        before = of.get(choice, (0.0, 0.0, 0.0))
        value = row[OBJECTIVES[table.objective]]
        ends = (row["low_us"], row["high_us"]) if table.objective == "time" else (value, value)
        of[choice] = (before[0] + value, before[1] + ends[0], before[2] + ends[1])
    unit = {"time": "us", "bytes": "bytes of device memory"}[table.objective]
    for kernel, of_kernel in by_kernel.items():
        found.append((f"{kernel}: {unit}", lines(of_kernel, unit)))
        for device, of in of_kernel.items():
            pairs = [choice.rsplit(", ", 1) for choice in of]
            if len(of) > 3 and all(len(pair) == 2 for pair in pairs):
                first, second = (len({pair[n] for pair in pairs}) for n in (0, 1))
                if first > 1 and second > 1 and first * second == len(of):
                    found.append(
                        (f"{kernel} on {device}: {unit}", heat_map({tuple(p): of[", ".join(p)][0] for p in pairs}))
                    )
    return found
