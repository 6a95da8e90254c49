"""Pictures of a sweep as SVG: lines with intervals, and a map of two axes. Numbers stand beside colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

WIDTH, HEIGHT, LEFT, TOP, CELL = 620, 300, 80, 16, 78
_DASHES = ("", "6 3", "2 2", "8 3 2 3", "1 3")
STYLE = """
:root { color-scheme: light dark; } body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8886; }
pre { overflow-x: auto; } svg { max-width: 100%; }
svg text { font: 11px sans-serif; fill: currentColor; text-anchor: middle; } svg .start { text-anchor: start; }
svg .end { text-anchor: end; } svg .grid { stroke: #8886; } svg .roof { stroke: currentColor; } svg .point { fill: #c60; }
"""
_SVG_STYLE = (
    "text{font:11px sans-serif;fill:currentColor}.start{text-anchor:start}.end{text-anchor:end}.middle{text-anchor:middle}"
    ".l{fill:none;stroke:currentColor;stroke-width:1.6}"
    ".g{stroke:#8886}.i{stroke:currentColor;stroke-opacity:.35;stroke-width:3}"
)


def lines(devices: Mapping[str, Mapping[str, tuple[float, float, float]]], unit: str) -> str:
    """A line a device over the choices; of each point value, low and high. The axis is logarithmic."""
    choices = list(dict.fromkeys(choice for of in devices.values() for choice in of))
    every = [n for of in devices.values() for point in of.values() for n in point if n > 0] or [1.0]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    high += high == low
    step = WIDTH / max(1, len(choices))

    def down(value: float) -> float:
        share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        return round(TOP + HEIGHT * (1 - share), 1)

    parts = []
    for power in range(low, high + 1):
        y = down(10.0**power)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" class="end">{10.0**power:g}</text>')
    for number, (device, of) in enumerate(devices.items()):
        points = []
        for at, choice in enumerate(choices):
            if choice in of:
                value, least, most = of[choice]
                x, y = round(LEFT + step * (at + 0.5), 1), down(value)
                points.append(f"{x},{y}")
                parts.append(f'<line class="i" x1="{x}" x2="{x}" y1="{down(least)}" y2="{down(most)}"/>')
                title = f"{device}, {choice}: {value:,.2f} {unit}, {least:,.2f} to {most:,.2f}"
                parts.append(
                    f'<circle cx="{x}" cy="{y}" r="3.5" fill="currentColor"><title>{escape(title)}</title></circle>'
                )
        dash = _DASHES[number % len(_DASHES)]
        parts.append(f'<polyline class="l" stroke-dasharray="{dash}" points="{" ".join(points)}"/>')
        if points:
            end_x, end_y = map(float, points[-1].split(","))
            parts.append(f'<text class="start" x="{end_x + 6}" y="{end_y - 6}">{escape(device)}</text>')
    for at, choice in enumerate(choices):
        x, y = LEFT + step * (at + 0.5), TOP + HEIGHT + 14
        parts.append(f'<text class="start" transform="translate({x:.1f},{y}) rotate(20)">{escape(choice)}</text>')
    return _svg(LEFT + WIDTH + 120, TOP + HEIGHT + 90, parts, f"{unit} by choice")


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
