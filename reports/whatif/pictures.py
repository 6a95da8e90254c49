"""Pictures of a sweep as SVG: lines with intervals, and a map of two axes. Numbers stand beside colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

WIDTH, HEIGHT, LEFT, TOP, CELL = 620, 300, 80, 22, 78
_COLOURS = ("#3572c6", "#d6722d", "#3c9a52", "#b8434e", "#8263b5", "#8a6d4b")
_DASHES = ("", "6 3", "2 2", "8 3 2 3", "1 3")
_SVG_STYLE = (
    "text{font:11px sans-serif;fill:currentColor}.start{text-anchor:start}.end{text-anchor:end}.middle{text-anchor:middle}"
    ".l{fill:none;stroke-width:1.6}.g{stroke:#8886}.i{stroke-opacity:.35;stroke-width:3}"
)
_APART = 13
"""Pixels between the names of lines."""


def lines(devices: Mapping[str, Mapping[str, tuple[float, float, float]]], unit: str) -> str:
    """A line a device over the choices; of each point value, low and high. The axis is logarithmic."""
    choices = list(dict.fromkeys(choice for of in devices.values() for choice in of))
    every = [n for of in devices.values() for point in of.values() for n in point if n > 0] or [1.0]
    ticks = _ticks(min(every), max(every))
    low, high = math.log10(ticks[0]), math.log10(ticks[-1])
    step = WIDTH / max(1, len(choices))

    def down(value: float) -> float:
        share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        return round(TOP + HEIGHT * (1 - share), 1)

    parts = [f'<text x="{LEFT - 6}" y="{TOP - 10}" class="end">{escape(unit)}</text>']
    for tick in ticks:
        y = down(tick)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" class="end">{tick:g}</text>')
    names = []
    for number, (device, of) in enumerate(devices.items()):
        points, colour = [], _COLOURS[number % len(_COLOURS)]
        for at, choice in enumerate(choices):
            if choice in of:
                value, least, most = of[choice]
                x, y = round(LEFT + step * (at + 0.5), 1), down(value)
                points.append((x, y))
                parts.append(
                    f'<line class="i" stroke="{colour}" x1="{x}" x2="{x}" y1="{down(least)}" y2="{down(most)}"/>'
                )
                title = f"{device}, {choice}: {value:,.2f} {unit}, {least:,.2f} to {most:,.2f}"
                parts.append(
                    f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"><title>{escape(title)}</title></circle>'
                )
        dash, line = _DASHES[number % len(_DASHES)], " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline class="l" stroke="{colour}" stroke-dasharray="{dash}" points="{line}"/>')
        if points:
            names.append((*points[-1], device))
    last = math.inf
    for x, y, device in sorted(names, key=lambda name: -name[1]):
        last = min(y + 4, last - _APART)  # names that would lie upon each other go up
        parts.append(f'<text class="start" x="{x + 8}" y="{last}">{escape(device)}</text>')
    slanted = max(map(len, choices), default=0) * 6 > step
    for at, choice in enumerate(choices):
        x, y = LEFT + step * (at + 0.5), TOP + HEIGHT + 16
        place = (
            f'class="start" transform="translate({x:.1f},{y}) rotate(20)"'
            if slanted
            else f'class="middle" x="{x:.1f}" y="{y}"'
        )
        parts.append(f"<text {place}>{escape(choice)}</text>")
    return _svg(LEFT + WIDTH + 120, TOP + HEIGHT + (90 if slanted else 26), parts, f"{unit} by choice")


def _ticks(least: float, most: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from the last below to the first above."""
    powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
    every = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    first = max(n for n, tick in enumerate(every) if tick <= least or n == 0)
    last = next(n for n, tick in enumerate(every) if tick >= most and n > first)
    found = every[first : last + 1]
    return found if len(found) <= 10 else sorted({found[0], found[-1], *(t for t in found if f"{t:e}".startswith("1"))})


def heat_map(cells: Mapping[tuple[str, ...], float]) -> str:
    """A cell for each pair of choices, the darker the more."""
    rows, columns = (list(dict.fromkeys(pair[n] for pair in cells)) for n in (0, 1))
    most, least = max(cells.values()), min(cells.values())
    parts = []
    for (row, column), value in ((tuple(pair), value) for pair, value in cells.items()):
        x, y = LEFT + CELL * columns.index(column), TOP + 20 + 26 * rows.index(row)
        shade = 0.08 + 0.6 * ((value - least) / (most - least) if most > least else 0.0)
        parts.append(f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="24" fill="#c60" fill-opacity="{shade:.2f}"/>')
        parts.append(f'<text x="{x + CELL / 2}" y="{y + 16}" class="middle">{value:,.4g}</text>')
    parts += [
        f'<text x="{LEFT - 6}" y="{TOP + 36 + 26 * n}" class="end">{escape(row)}</text>' for n, row in enumerate(rows)
    ]
    parts += [
        f'<text x="{LEFT + CELL * (n + 0.5)}" y="{TOP + 10}" class="middle">{escape(c)}</text>'
        for n, c in enumerate(columns)
    ]
    return _svg(LEFT + CELL * len(columns) + 20, TOP + 30 + 26 * len(rows), parts, "two axes")


def _svg(width: float, height: float, parts: list[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" '
        f'width="{width}"><style>{_SVG_STYLE}</style>{"".join(parts)}</svg>'
    )
