"""What a launch costs, as a baseline keeps it, and how two of them differ: by figure and by line of the kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import zip_longest
from typing import Any

from .. import __version__
from ..machine.occupancy import occupancy
from ..profiler.profile import Profile
from ..span import Span

Figures = dict[str, Any]
MOST_LINES, MOST_CHANGES = 10, 3
"""Lines of a kernel that a difference shows, and figures of each."""
_ABOUT = {"device": "device", "rules": "simtbed", "compiler": "compiler"}
"""What figures depend on besides the kernel."""


def figures(profile: Profile, threads: int, shared_bytes: int, compiled: Mapping[str, Any] | None = None) -> Figures:
    """The figures of launches of blocks of `threads` threads. compiled: what a compiler says of the kernel."""
    registers = compiled["registers"] if compiled else 0
    held = occupancy(profile.device, threads, registers, shared_bytes)
    totals = {name: count for name, count in profile.totals().items() if count}
    return {
        "device": profile.device.name,
        "rules": __version__,
        **({"compiler": compiled["compiler"]} if compiled else {}),
        "figures": {
            **totals,
            **profile.derived(),
            "occupancy": held.percent,
            "shared_bytes": shared_bytes,
            **{name: value for name, value in (compiled or {}).items() if name != "compiler"},
        },
        "lines": [line for line, _ in _lines(profile)],
    }


def _lines(profile: Profile) -> Iterator[tuple[Figures, Span]]:
    """Each line that costs something, counted from the first line of its function, and its place."""
    for (file, number), row in profile.by_line().items():
        text = profile.sources[file]
        function, first = _function(text, number)
        source = text.splitlines()[number - 1].strip() if text else ""
        yield {"function": function, "line": number - first, "source": source, **row}, Span(file, number, 1, number, 1)


@cache
def _function(text: str, number: int) -> tuple[str, int]:
    """The innermost function around a line, and the line of its `def`."""
    around = [
        (node.lineno, node.name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.lineno <= number <= (node.end_lineno or number)
    ]
    return (max(around)[1], max(around)[0]) if around else ("", 1)


@dataclass(frozen=True)
class Change:
    """A figure of a baseline and what it is now; 0 where it is in one of them alone."""

    name: str
    before: float
    now: float

    @property
    def percent(self) -> float:
        """By how much it changed."""
        if self.before == self.now:
            return 0.0
        return 100 * abs(self.now - self.before) / abs(self.before) if self.before else float("inf")

    def __str__(self) -> str:
        much = f" ({self.percent:.2f} %)" if self.before else ""
        return f"{self.name}: {self.before:,} in the baseline, now {self.now:,}{much}"


def changes(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """The figures that differ, the most first."""
    found = [Change(name, before.get(name, 0), now.get(name, 0)) for name in {**before, **now}]
    return sorted((one for one in found if one.before != one.now), key=lambda one: (-one.percent, one.name))


def explained(before: Figures, now: Figures, profile: Profile, found: list[Change]) -> str:
    """The changes, the lines of the kernel that they come from, and what else is not as it was."""
    lines = [f"  {change}" for change in found]
    changed = list(_changed_lines(before["lines"], profile))
    lines += changed[:MOST_LINES]
    if len(changed) > MOST_LINES:
        lines.append(f"  and {len(changed) - MOST_LINES} more lines")
    for key, what in _ABOUT.items():
        if before.get(key) != now.get(key):
            lines.append(f"  the baseline is of {what} {before.get(key)}, this is of {what} {now.get(key)}")
    return "\n".join(lines)


def _changed_lines(before: list[Figures], profile: Profile) -> Iterator[str]:
    """Lines that cost more or less, lines that are new, and lines that are gone. They are matched by their text."""
    found = list(_lines(profile))
    now = [line for line, _ in found]
    matcher = SequenceMatcher(None, [_key(line) for line in before], [_key(line) for line in now], autojunk=False)
    for kind, start, end, now_start, now_end in matcher.get_opcodes():
        pairs = zip_longest(before[start:end], found[now_start:now_end])
        for was, current in pairs:
            if current is None:
                yield f"  gone: line {was['line']} of {was['function']}: {was['source']}"
                continue
            row, span = current
            differing = changes(_row(was or {}), _row(row))
            if kind == "equal" and not differing:
                continue
            old = [f"      was: {was['source']}"] if kind == "replace" and was else []
            shown = [f"      {change}" for change in differing[:MOST_CHANGES]]
            yield "\n".join([f"  {span.place}: {row['source']}", *old, *shown])


def _key(line: Figures) -> tuple[str, str]:
    return line["function"], line["source"]


def _row(line: Figures) -> dict[str, int]:
    return {name: value for name, value in line.items() if name not in ("function", "line", "source")}
