"""Annotated source of the counted functions: each line with its counters."""

from dataclasses import dataclass
from pathlib import Path

import simtbed.kernels
from simtbed import Profile
from simtbed.profiler.line_table import COLUMNS
from simtbed.profiler.sums import INSTRUCTIONS, SECTORS, WAVEFRONTS
from simtbed.source_text import functions_in
from simtbed.span import Span

Row = dict[str, int]
Place = tuple[str, int]
_ROOT = Path(simtbed.kernels.__file__).parents[1]
GAP = 5
"""Lines without counters inside a kernel of another language."""


@dataclass(frozen=True)
class Hottest:
    """The source line with the largest value of a counter."""

    what: str
    place: Place
    count: int
    share: float
    source: str

    def __str__(self) -> str:
        file, line = self.place
        return f"most {self.what}: {short(file)}:{line}, {self.count:,} ({100 * self.share:.0f} %): {self.source}"


def hottest(profile: Profile) -> list[Hottest]:
    """Return the lines with the most warp instructions, global sectors and shared wavefronts."""
    lines = profile.by_line()
    result = []
    for what, value in (
        ("warp instructions", INSTRUCTIONS), ("global sectors", SECTORS), ("shared wavefronts", WAVEFRONTS),
    ):  # fmt: skip
        total = sum(value(row) for row in lines.values())
        if total:
            place = max(lines, key=lambda place: value(lines[place]))
            source = _line(profile.sources[place[0]].splitlines(), place[1]).strip()
            result.append(Hottest(what, place, value(lines[place]), value(lines[place]) / total, source))
    return result


def _line(source: list[str], number: int) -> str:
    """Return a line, counted from 1; an empty text for one that `#line` names and no file has."""
    return source[number - 1] if 1 <= number <= len(source) else ""


def short(file: str) -> str:
    """Return the path of a source file relative to the package, if inside it, else to the current folder."""
    path = Path(file)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else Span(file, 1, 1, 1, 1).name


def annotated(profile: Profile) -> str:
    """Return the source of every counted function, with a column for each nonzero counter."""
    lines = profile.by_line()
    columns = [(name, show) for name, show in COLUMNS if any(show(row) for row in lines.values())]
    widths = [max([len(name), *(len(show(row)) for row in lines.values())]) for name, show in columns]
    head = "  ".join(name.rjust(width) for (name, _), width in zip(columns, widths, strict=True))
    text = []
    for file in dict.fromkeys(file for file, _ in lines):
        source = profile.sources[file].splitlines()
        for first, last in _functions(profile.sources[file], {line for other, line in lines if other == file}):
            text += ["", f"{head}  {short(file)}"]
            for line in range(first, last + 1):
                row = lines.get((file, line), {})
                cells = (show(row).rjust(width) for (_, show), width in zip(columns, widths, strict=True))
                text.append(f"{'  '.join(cells)}  {line:>4} | {_line(source, line)}".rstrip())
    return "\n".join(text[1:])


def _functions(source: str, counted: set[int]) -> list[tuple[int, int]]:
    """Return first and last line of each innermost Python function with a counted line.

    Other counted lines are kernels of another language: return first and last line of each group of them.
    """
    ranges = [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in functions_in(source)
    ]
    around = {line: [r for r in ranges if r[0] <= line <= r[1]] for line in counted}
    functions = {max(found) for found in around.values() if found}
    return sorted(functions | set(_groups({line for line, found in around.items() if not found})))


def _groups(counted: set[int]) -> list[tuple[int, int]]:
    """Return first and last line of each group of lines with at most GAP lines between neighbours."""
    groups: list[tuple[int, int]] = []
    for line in sorted(counted):
        if groups and line <= groups[-1][1] + GAP:
            groups[-1] = groups[-1][0], line
        else:
            groups.append((line, line))
    return groups
