"""SVG plots of a sweep: line plots with intervals, and heat maps of two axes with numbers in the cells."""

import math
from collections.abc import Mapping

from simtbed.escaping import html

WIDTH, HEIGHT, LEFT, TOP, CELL = 620, 300, 80, 22, 78
_COLOURS = ("#3572c6", "#d6722d", "#3c9a52", "#b8434e", "#8263b5", "#8a6d4b")
_DASHES = ("", "6 3", "2 2", "8 3 2 3", "1 3")
_SVG_STYLE = (
    "text{font:11px sans-serif;fill:currentColor}.start{text-anchor:start}.end{text-anchor:end}.middle{text-anchor:middle}"
    ".l{fill:none;stroke-width:1.6}.g{stroke:#8886}.i{stroke-opacity:.35;stroke-width:3}"
)
_LABEL_DISTANCE = 13
"""Vertical distance of line labels, in pixels."""


def line_plot(devices: Mapping[str, Mapping[str, tuple[float, float, float]]], unit: str) -> str:
    """Return a plot with a line per device over the choices and a logarithmic axis. Points are (value, low, high)."""
    choices = list(dict.fromkeys(choice for points in devices.values() for choice in points))
    values = [n for points in devices.values() for point in points.values() for n in point if n > 0] or [1.0]
    ticks = _ticks(min(values), max(values))
    low, high = math.log10(ticks[0]), math.log10(ticks[-1])
    step = WIDTH / max(1, len(choices))

    def vertical(value: float) -> float:
        fraction = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        return round(TOP + HEIGHT * (1 - fraction), 1)

    elements = [f'<text x="{LEFT - 6}" y="{TOP - 10}" class="end">{html(unit)}</text>']
    for tick in ticks:
        y = vertical(tick)
        elements.append(f'<line class="g" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>')
        elements.append(f'<text x="{LEFT - 6}" y="{y + 4}" class="end">{tick:g}</text>')
    ends = []
    for number, (device, points) in enumerate(devices.items()):
        line, colour = [], _COLOURS[number % len(_COLOURS)]
        for index, choice in enumerate(choices):
            if choice in points:
                value, least, most = points[choice]
                x, y = round(LEFT + step * (index + 0.5), 1), vertical(value)
                line.append((x, y))
                elements.append(
                    f'<line class="i" stroke="{colour}" x1="{x}" x2="{x}" y1="{vertical(least)}" y2="{vertical(most)}"/>'
                )
                title = f"{device}, {choice}: {value:,.2f} {unit}, {least:,.2f} to {most:,.2f}"
                elements.append(
                    f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"><title>{html(title)}</title></circle>'
                )
        dash, path = _DASHES[number % len(_DASHES)], " ".join(f"{x},{y}" for x, y in line)
        elements.append(f'<polyline class="l" stroke="{colour}" stroke-dasharray="{dash}" points="{path}"/>')
        if line:
            ends.append((*line[-1], device))
    elements += _labels(ends)
    slanted = max(map(len, choices), default=0) * 6 > step
    for index, choice in enumerate(choices):
        x, y = LEFT + step * (index + 0.5), TOP + HEIGHT + 16
        position = (
            f'class="start" transform="translate({x:.1f},{y}) rotate(20)"'
            if slanted
            else f'class="middle" x="{x:.1f}" y="{y}"'
        )
        elements.append(f"<text {position}>{html(choice)}</text>")
    return _svg(LEFT + WIDTH + 120, TOP + HEIGHT + (90 if slanted else 26), elements, f"{unit} by choice")


def _labels(ends: list[tuple[float, float, str]]) -> list[str]:
    """Return a label at the end (x, y) of each line; labels that would overlap move up."""
    labels, last = [], math.inf
    for x, y, name in sorted(ends, key=lambda end: -end[1]):
        last = min(y + 4, last - _LABEL_DISTANCE)
        labels.append(f'<text class="start" x="{x + 8}" y="{last}">{html(name)}</text>')
    return labels


def _ticks(least: float, most: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten that enclose the values."""
    powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
    candidates = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    first = max(n for n, tick in enumerate(candidates) if tick <= least or n == 0)
    last = next(n for n, tick in enumerate(candidates) if tick >= most and n > first)
    ticks = candidates[first : last + 1]
    return ticks if len(ticks) <= 10 else sorted({ticks[0], ticks[-1], *(t for t in ticks if f"{t:e}".startswith("1"))})


def heat_map(cells: Mapping[tuple[str, ...], float]) -> str:
    """Return a heat map with a cell for each pair of choices; larger values are darker."""
    rows, columns = (list(dict.fromkeys(pair[n] for pair in cells)) for n in (0, 1))
    most, least = max(cells.values()), min(cells.values())
    elements = []
    for (row, column), value in ((tuple(pair), value) for pair, value in cells.items()):
        x, y = LEFT + CELL * columns.index(column), TOP + 20 + 26 * rows.index(row)
        shade = 0.08 + 0.6 * ((value - least) / (most - least) if most > least else 0.0)
        elements.append(
            f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="24" fill="#c60" fill-opacity="{shade:.2f}"/>'
        )
        elements.append(f'<text x="{x + CELL / 2}" y="{y + 16}" class="middle">{value:,.4g}</text>')
    elements += [
        f'<text x="{LEFT - 6}" y="{TOP + 36 + 26 * n}" class="end">{html(row)}</text>' for n, row in enumerate(rows)
    ]
    elements += [
        f'<text x="{LEFT + CELL * (n + 0.5)}" y="{TOP + 10}" class="middle">{html(c)}</text>'
        for n, c in enumerate(columns)
    ]
    return _svg(LEFT + CELL * len(columns) + 20, TOP + 30 + 26 * len(rows), elements, "heat map of two axes")


def _svg(width: float, height: float, elements: list[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html(label)}" viewBox="0 0 {width} {height}" '
        f'width="{width}"><style>{_SVG_STYLE}</style>{"".join(elements)}</svg>'
    )
