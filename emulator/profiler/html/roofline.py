"""Roofline of a device as SVG: warp instructions per second over warp instructions per sector of global memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...escaping import html
from ...language.intrinsics import WARP_SIZE
from ...machine.device import Device
from .pictures import svg

WIDTH, HEIGHT, LEFT, TOP = 560, 300, 60, 10
"""Pixels of the plot, and of its left and top margins."""


class Point(NamedTuple):
    """A kernel. intensity: warp instructions per sector. rate: warp instructions per second, 0 if its time is unknown."""

    name: str
    intensity: float
    rate: float = 0.0


@dataclass(frozen=True)
class _Limits:
    """Limits of a device per second. issue: warp instructions. memory: sectors. pipes: warp instructions, by issue class."""

    issue: float
    memory: float
    pipes: dict[str, float]

    @staticmethod
    def of_device(device: Device, classes: Iterable[str]) -> _Limits:
        """Return the limits, with the pipes of `classes` that are slower than issue."""
        clock = device.clock * 1e6
        rates = {name: getattr(device.rates, name, 0) for name in classes}
        slower = {name: rate for name, rate in rates.items() if 0 < rate < device.warp_unit * WARP_SIZE}
        pipes = {name: device.sms * rate / WARP_SIZE * clock for name, rate in slower.items()}
        return _Limits(device.sms * device.warp_unit * clock, device.bandwidth * 1e9 / device.sector, pipes)

    def named(self) -> dict[float, str]:
        """Return the names of instruction limits; equal limits share one entry."""
        names = {self.issue: "issue"}
        for name, limit in self.pipes.items():
            names[limit] = f"{names[limit]}, {name}" if limit in names else name
        return names


@dataclass(frozen=True)
class _Axes:
    """Powers of ten at the ends of two logarithmic axes."""

    left: int
    right: int
    bottom: int
    top: int

    @staticmethod
    def around(limits: _Limits, points: list[Point]) -> _Axes:
        values, bend = [point.intensity for point in points], limits.issue / limits.memory
        left = math.floor(math.log10(min([*values, bend / 8])))
        right = math.ceil(math.log10(max([*values, bend * 8])))
        top = math.ceil(math.log10(limits.issue))
        slowest = min((point.rate for point in points if point.rate > 0), default=limits.issue)
        bottom = min(math.floor(math.log10(limits.memory)) + left, math.floor(math.log10(slowest)), top - 2)
        return _Axes(left, right, bottom, top)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point; points below the plot are on its edge."""
        across = (math.log10(x) - self.left) / (self.right - self.left)
        down = (self.top - max(math.log10(y), self.bottom)) / (self.top - self.bottom)
        return round(LEFT + across * WIDTH, 1), round(TOP + down * HEIGHT, 1)

    def grid(self) -> Iterator[str]:
        """Yield lines at powers of ten, with their numbers."""
        for power in range(self.left, self.right + 1):
            x, y = self.at(10.0**power, 10.0**self.bottom)
            yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{y}"/>'
            yield f'<text x="{x}" y="{y + 14}">{_power(power)}</text>'
        for power in range(self.bottom, self.top + 1):
            x, y = self.at(10.0**self.left, 10.0**power)
            yield f'<line class="grid" x1="{x}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>'
            yield f'<text class="end" x="{x - 6}" y="{y + 4}">{_power(power - 9)}</text>'


def roofline(points: Iterable[Point], classes: Iterable[str], device: Device) -> str:
    """Draw the roofline of a device.

    points: kernels; those that move no sector are omitted. A kernel with a known time is a dot, another one a vertical line up to
    the limit. classes: the issue classes they use, each of which has a limit.
    """
    limits = _Limits.of_device(device, classes)
    shown = [point for point in points if point.intensity > 0]
    axes = _Axes.around(limits, shown)
    start = 10.0**axes.left
    shapes = [*axes.grid(), _line(axes, (start, limits.memory * start), (limits.issue / limits.memory, limits.issue))]
    for limit, name in limits.named().items():
        shapes.append(_line(axes, (limit / limits.memory, limit), (10.0**axes.right, limit)))
        x, y = axes.at(10.0**axes.right, limit)
        shapes.append(f'<text class="end" x="{x - 4}" y="{y - 4}">{html(name)} {round(limit / 1e9):,}</text>')
    for point in shown:
        shapes += _shapes(point, min(limits.issue, limits.memory * point.intensity), axes)
    shapes.append(f'<text x="{LEFT + WIDTH / 2}" y="{HEIGHT + 44}">warp instructions a sector</text>')
    shapes.append('<text class="start" x="0" y="-4">10^9 warp instructions a second</text>')
    return svg(LEFT + WIDTH + 20, HEIGHT + 50, shapes, f"roofline of an {device.name}", top=14)


def _shapes(point: Point, roof: float, axes: _Axes) -> Iterator[str]:
    """Yield the mark of a kernel and its name. roof: warp instructions per second at most."""
    x, y = axes.at(point.intensity, point.rate or roof)
    title = f"{point.name}: {point.intensity:.3g} instructions a sector"
    if point.rate:
        title += f", {point.rate / 1e9:.3g} x 10^9 a second, {100 * point.rate / roof:.2g} % of the limit"
        yield f'<circle class="point" cx="{x}" cy="{y}" r="5"><title>{html(title)}</title></circle>'
    else:
        bottom = axes.at(point.intensity, 10.0**axes.bottom)[1]
        yield f'<line class="point" x1="{x}" x2="{x}" y1="{y}" y2="{bottom}"><title>{html(title)}</title></line>'
    yield f'<text class="start" x="{x + 8}" y="{y + 14}">{html(point.name)}</text>'


def _line(axes: _Axes, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = axes.at(*start), axes.at(*end)
    return f'<line class="roof" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 4 else f"1e{power}"
