"""SVG plots of a report in the form of the paper: line plots or grouped bars.

No plotting library is used: the style sheet of the page sets the colours, every point has its value as a tooltip, and
the output is identical on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from simtbed.escaping import html
from simtbed.profiler.html.pictures import svg

from .claims import Number
from .paper import Chart, Series

WIDTH, HEIGHT, LEFT, BELOW, ROW = 640, 260, 70, 40, 16
"""Pixels: plot, left margin, bottom margin, line of the legend."""
COLOURS = 8
"""Classes c0 to c7 of the style sheet."""
STEPS = (1, 2, 5, 10)


def chart_svg(chart: Chart) -> str:
    """Return the plot as one SVG element. Names on the horizontal axis are equidistant; numbers are to scale."""
    series = [line for line in chart.series if line.points]
    axes = _Axes.fit(chart, series)
    elements = [*axes.grid(), *(_bars(axes, series) if chart.bars else _lines(axes, series)), *_legend(series)]
    elements.append(f'<text x="{LEFT + WIDTH / 2}" y="{HEIGHT + 32}">{html(chart.across)}</text>')
    elements.append(f'<text class="start" x="0" y="-8">{html(chart.up)}</text>')
    return svg(LEFT + WIDTH + 20, HEIGHT + BELOW + ROW * len(series), elements, chart.title, top=20)


@dataclass(frozen=True)
class _Axes:
    """Axes of a plot. names: positions of names on the horizontal axis; empty for numbers. low, high: of the vertical axis."""

    names: dict[Number | str, int]
    left: float
    right: float
    low: float
    high: float
    logarithmic: bool

    @staticmethod
    def fit(chart: Chart, series: list[Series]) -> _Axes:
        across = list(dict.fromkeys(x for line in series for x, _ in line.points))
        heights = [y for line in series for _, y in line.points if y > 0 or not chart.logarithmic]
        numbers = [x for x in across if not isinstance(x, str)]
        named = chart.bars or len(numbers) < len(across) or len(across) < 2
        names = {x: place for place, x in enumerate(across)} if named else {}
        left, right = (-0.5, len(across) - 0.5) if named else (float(min(numbers)), float(max(numbers)))
        most = max(heights, default=1.0)
        if chart.logarithmic:
            low = 10.0 ** math.floor(math.log10(min(heights, default=1.0)))
            return _Axes(names, left, right, low, max(10 * low, 10.0 ** math.ceil(math.log10(most))), True)
        step = _step(most - min(0.0, *heights, 0.0))
        low = step * math.floor(min(0.0, *heights, 0.0) / step)
        return _Axes(names, left, right, low, step * max(1, math.ceil(most / step)), False)

    def x(self, place: Number | str) -> float:
        position = self.names[place] if self.names else float(place)
        return round(LEFT + WIDTH * (position - self.left) / (self.right - self.left), 1)

    def y(self, height: float) -> float:
        """Return the vertical coordinate; heights below the plot are clamped to its edge."""
        if self.logarithmic:
            share = math.log(max(height, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (height - self.low) / (self.high - self.low)
        return round(HEIGHT * (1 - share), 1)

    def grid(self) -> Iterator[str]:
        for height in self.marks():
            y = self.y(height)
            yield f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>'
            yield f'<text class="end" x="{LEFT - 6}" y="{y + 4}">{height:,.6g}</text>'
        for place in self.names or self.numbers():
            name = place if isinstance(place, str) else f"{place:,.6g}"
            yield f'<text x="{self.x(place)}" y="{HEIGHT + 16}">{html(name)}</text>'

    def marks(self) -> list[float]:
        if self.logarithmic:
            return [self.low * 10.0**power for power in range(round(math.log10(self.high / self.low)) + 1)]
        step = _step(self.high - self.low)
        return [self.low + step * mark for mark in range(round((self.high - self.low) / step) + 1)]

    def numbers(self) -> list[Number]:
        step = _step(self.right - self.left)
        first = math.ceil(self.left / step)
        return [round(step * mark, 9) for mark in range(first, int(self.right / step + 1e-9) + 1)]


def _step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, about a sixth of the span."""
    rough = max(span, 1e-9) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in STEPS if power * step >= rough * 0.999)


def _lines(axes: _Axes, series: list[Series]) -> Iterator[str]:
    for number, line in enumerate(series):
        colour = f"c{number % COLOURS}"
        corners = " ".join(f"{axes.x(x)},{axes.y(y)}" for x, y in line.points)
        yield f'<polyline class="{colour}" points="{corners}"/>'
        for x, y in line.points:
            title = f"<title>{html(f'{line.name}, {x}: {y:,.4g}')}</title>"
            yield f'<circle class="{colour}" cx="{axes.x(x)}" cy="{axes.y(y)}" r="3.5">{title}</circle>'


def _bars(axes: _Axes, series: list[Series]) -> Iterator[str]:
    group = 0.8 * WIDTH / max(1, len(axes.names))
    width = group / max(1, len(series))
    ground = axes.y(axes.low if axes.logarithmic else 0.0)
    for number, line in enumerate(series):
        for x, height in line.points:
            left = round(axes.x(x) - group / 2 + number * width, 1)
            y = axes.y(height)
            yield (
                f'<rect class="c{number % COLOURS}" x="{left}" y="{min(y, ground)}" width="{max(1.0, round(width - 1, 1))}" '
                f'height="{max(0.5, round(abs(ground - y), 1))}"><title>{html(f"{line.name}, {x}: {height:,.4g}")}</title></rect>'
            )


def _legend(series: list[Series]) -> Iterator[str]:
    for number, line in enumerate(series):
        y = HEIGHT + BELOW + ROW * number
        yield f'<rect class="c{number % COLOURS}" x="{LEFT}" y="{y}" width="10" height="10"/>'
        yield f'<text class="start" x="{LEFT + 16}" y="{y + 9}">{html(f"{line.name} ({line.source})")}</text>'
