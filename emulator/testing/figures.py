"""What launches cost, as a baseline keeps it, and how two of them differ: by figure and by line of the kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple

from ..machine.occupancy import occupancy
from ..profiler.events import RULES
from ..profiler.profile import Profile
from ..span import Span

Figures = dict[str, Any]
MOST_LINES, MOST_CHANGES = 10, 3
"""Lines of a kernel that a difference shows, and figures of each."""
COMPILED = ("registers", "spill_stores", "spill_loads", "local_bytes", "compiled_occupancy")
"""Figures that a compiler gives: bytes, but for registers of a thread and percents of occupancy."""
_ABOUT = {"device": "device", "rules": "counting rules", "compiler": "compiler"}
"""What figures depend on besides the kernel."""


def figures(profile: Profile, blocks: Iterable[tuple[int, int]], compiled: Mapping[str, Any] | None = None) -> Figures:
    """The figures of launches. blocks: the threads and the bytes of shared memory of each one's blocks. compiled: what a
    compiler says of the kernel: its version and COMPILED, without the occupancy."""
    shapes = set(blocks)

    def held(registers: int) -> float:
        """The least occupancy of a launch."""
        return min(occupancy(profile.device, threads, registers, shared).percent for threads, shared in shapes)

    totals = {name: count for name, count in profile.totals().items() if count}
    made = {name: value for name, value in (compiled or {}).items() if name != "compiler"}
    return {
        "device": profile.device.name,
        "rules": RULES,
        **({"compiler": compiled["compiler"]} if compiled else {}),
        "figures": {
            "launches": profile.launches,
            **totals,
            **profile.derived(),
            "occupancy": held(0),
            "shared_bytes": max(shared for _, shared in shapes),
            **({**made, "compiled_occupancy": held(made["registers"])} if compiled else {}),
        },
        "lines": [line for line, _ in _lines(profile)],
    }


def _lines(profile: Profile) -> Iterator[tuple[Figures, Span]]:
    """Each line that costs something, counted from the first line of its function, and its place."""
    for (file, number), row in profile.by_line().items():
        text = profile.sources[file]
        function, first = _function(text, number)
        whole = text.splitlines()[number - 1] if text else ""
        source = whole.strip()
        column = len(whole) - len(whole.lstrip()) + 1
        place = Span(file, number, column, number, column + len(source))
        yield {"function": function, "line": number - first, "source": source, **row}, place


def _function(text: str, number: int) -> tuple[str, int]:
    """The innermost function around a line, and the line of its `def`."""
    around = [(first, name) for first, last, name in _functions(text) if first <= number <= last]
    return (max(around)[1], max(around)[0]) if around else ("", 1)


@cache
def _functions(text: str) -> tuple[tuple[int, int, str], ...]:
    """The functions of a file: first and last line, and name."""
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return tuple((node.lineno, node.end_lineno or node.lineno, node.name) for node in found)


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


def compared(before: Figures, now: Figures) -> list[Change]:
    """The changes from a baseline. Figures of a compiler count where `now` has them."""
    known = before["figures"]
    if "compiler" not in now:
        known = {name: value for name, value in known.items() if name not in COMPILED}
    return changes(known, now["figures"])


class ChangedLine(NamedTuple):
    """A line that costs more or less, that is new, or that is gone. span: its place; None where it is gone.
    edited: whether its text is not that of the baseline."""

    text: str
    span: Span | None
    edited: bool


def explained(before: Figures, now: Figures, changed: Sequence[ChangedLine], found: Iterable[Change]) -> list[str]:
    """The changes, the lines of the kernel that they come from, and what else is not as it was."""
    lines = [str(change) for change in found]
    for line in changed[:MOST_LINES]:
        lines += line.text.split("\n")
    if len(changed) > MOST_LINES:
        lines.append(f"and {len(changed) - MOST_LINES} more lines")
    about = ("device", "rules", *(["compiler"] if "compiler" in now else []))
    other = [key for key in about if before.get(key) != now.get(key)]
    lines += [
        f"the baseline is of {_ABOUT[key]} {before.get(key, 'none')}, this is of {_ABOUT[key]} {now[key]}"
        for key in other
    ]
    if other and "lines" in before and not any(line.edited for line in changed):
        lines.append("no line of the kernel is another one: that is the reason")
    return lines


def changed_lines(before: Figures, profile: Profile) -> list[ChangedLine]:
    """Return the lines that differ from those of a baseline, edited ones first, matched by text; none for a baseline of totals."""
    if "lines" not in before:
        return []
    return sorted(_changed_lines(before["lines"], profile), key=lambda line: not line.edited)


def _changed_lines(before: list[Figures], profile: Profile) -> Iterator[ChangedLine]:
    found = list(_lines(profile))
    now = [line for line, _ in found]
    matcher = SequenceMatcher(None, [_key(line) for line in before], [_key(line) for line in now], autojunk=False)
    for kind, start, end, now_start, now_end in matcher.get_opcodes():
        pairs = zip_longest(before[start:end], found[now_start:now_end])
        for was, current in pairs:
            if current is None:
                text = f"gone: line {was['line']} of {was['function']}: {was['source']}"
                yield ChangedLine(text, None, edited=True)
                continue
            row, span = current
            differing = changes(_row(was or {}), _row(row))
            if kind == "equal" and not differing:
                continue
            old = [f"    was: {was['source']}"] if kind == "replace" and was else []
            shown = [f"    {change}" for change in differing[:MOST_CHANGES]]
            text = "\n".join([f"{span.place}: {row['source']}", *old, *shown])
            yield ChangedLine(text, span, edited=kind != "equal")


def _key(line: Figures) -> tuple[str, str]:
    return line["function"], line["source"]


def _row(line: Figures) -> dict[str, int]:
    return {name: value for name, value in line.items() if name not in ("function", "line", "source")}
