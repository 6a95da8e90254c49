"""Source with what its lines cost: the functions that were counted, each line with its counters before it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import simtbed.kernels
from simtbed import Counters
from simtbed.profiler.events import GLOBAL, SHARED

Row = dict[str, int]
Place = tuple[str, int]
_ROOT = Path(simtbed.kernels.__file__).parents[1]


def _sum(*names: str) -> Callable[[Row], int]:
    return lambda row: sum(row.get(name, 0) for name in names)


SECTORS = _sum(*(f"{kind}_sectors" for kind in GLOBAL))
REQUESTS = _sum(*(f"{kind}_requests" for kind in GLOBAL))
WAVEFRONTS = _sum(*(f"{kind}_wavefronts" for kind in SHARED))
CONFLICTS = _sum(*(f"{kind}_conflicts" for kind in SHARED))
INSTRUCTIONS = _sum("warp_instructions")
DIVERGENT = _sum("divergent_branches")
THREADS = _sum("thread_instructions")


def _lanes(row: Row) -> str:
    return f"{THREADS(row) / INSTRUCTIONS(row):.1f}" if INSTRUCTIONS(row) else ""


def _figure(value: Callable[[Row], int]) -> Callable[[Row], str]:
    return lambda row: f"{value(row):,}" if value(row) else ""


COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("instructions", _figure(INSTRUCTIONS)),
    ("lanes", _lanes),
    ("divergent", _figure(DIVERGENT)),
    ("requests", _figure(REQUESTS)),
    ("sectors", _figure(SECTORS)),
    ("wavefronts", _figure(WAVEFRONTS)),
    ("conflicts", _figure(CONFLICTS)),
)
"""Of warps: instructions, lanes active in them on average, branches that diverged, global requests and sectors,
shared wavefronts and those that bank conflicts added."""


@dataclass(frozen=True)
class Hottest:
    """The line that has most of something."""

    what: str
    place: Place
    count: int
    share: float

    def __str__(self) -> str:
        file, line = self.place
        source = linecache.getline(file, line).strip()
        return f"most {self.what}: {short(file)}:{line}, {self.count:,} ({100 * self.share:.0f} %): {source}"


def hottest(counters: Counters) -> list[Hottest]:
    """The lines with the most warp instructions, global sectors and shared wavefronts, where there are any."""
    lines = counters.by_line()
    found = []
    for what, value in (
        ("warp instructions", INSTRUCTIONS), ("global sectors", SECTORS), ("shared wavefronts", WAVEFRONTS),
    ):  # fmt: skip
        total = sum(value(row) for row in lines.values())
        if total:
            place = max(lines, key=lambda place: value(lines[place]))
            found.append(Hottest(what, place, value(lines[place]), value(lines[place]) / total))
    return found


def short(file: str) -> str:
    """A source file as a reader of the project knows it: kernels/pairhmm/wavefront.py."""
    path = Path(file)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else file


def annotated(counters: Counters) -> str:
    """Every function that has counts, with a column for each event that occurs anywhere."""
    lines = counters.by_line()
    columns = [(name, show) for name, show in COLUMNS if any(show(row) for row in lines.values())]
    widths = [max([len(name), *(len(show(row)) for row in lines.values())]) for name, show in columns]
    head = "  ".join(name.rjust(width) for (name, _), width in zip(columns, widths, strict=True))
    text = []
    for file in dict.fromkeys(file for file, _ in lines):
        for first, last in _functions(file, {line for other, line in lines if other == file}):
            text += ["", f"{head}  {short(file)}"]
            for line in range(first, last + 1):
                row = lines.get((file, line), {})
                cells = (show(row).rjust(width) for (_, show), width in zip(columns, widths, strict=True))
                source = linecache.getline(file, line).rstrip("\n")
                text.append(f"{'  '.join(cells)}  {line:>4} | {source}".rstrip())
    return "\n".join(text[1:])


def _functions(file: str, counted: set[int]) -> Iterator[tuple[int, int]]:
    """First and last line of each function that holds a counted line."""
    for node in ast.parse("".join(linecache.getlines(file))).body:
        if isinstance(node, ast.FunctionDef):
            first, last = min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno
            if any(first <= line <= last for line in counted):
                yield first, last
