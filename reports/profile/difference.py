"""Two runs side by side: what changed, kernel by kernel, counter by counter and line by line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simtbed import Profile, Run

from .annotate import short

NEITHER = ("arithmetic_intensity",)
"""Figures of which neither more nor less is worse."""


@dataclass(frozen=True)
class Change:
    """One counter that is not the same. line: 0 for the whole kernel; else of the source, which is that of B where it has
    the line. before, after: its values in A and B; None where the kernel, or the line, is in one run alone."""

    kernel: str
    file: str
    line: int
    source: str
    counter: str
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """After as a part of before; None where there is none."""
        return self.after / self.before if self.before and self.after is not None else None

    @property
    def worse(self) -> float:
        """By which part of its value a counter got worse, below 0 where it got better: most are costs, of efficiencies
        less is worse. Of a kernel or a line that is in one run alone: 0, and infinite where the value was 0."""
        if self.before is None or self.after is None or self.counter in NEITHER:
            return 0.0
        apart = (self.after - self.before) * (-1 if self.counter.endswith("efficiency") else 1)
        return apart / abs(self.before) if self.before else math.copysign(math.inf, apart)


def changes(before: Run, after: Run) -> list[Change]:
    """Every counter that differs: of each kernel in all its launches, then of its lines. A line is the same where its text
    is, the first with the first, so that lines may move."""
    a, b = before.profiles(), after.profiles()
    found = []
    for kernel in dict.fromkeys((*a, *b)):
        totals = [_totals(one[kernel]) if kernel in one else None for one in (a, b)]
        found += [Change(kernel, "", 0, "", counter, x, y) for counter, x, y in _apart(*totals)]
        lines = [_lines(one[kernel]) if kernel in one else {} for one in (a, b)]
        for key in dict.fromkeys((*lines[1], *lines[0])):
            file, line, _ = lines[1].get(key) or lines[0][key]
            rows = [one[key][2] if key in one else None for one in lines]
            for counter, x, y in _apart(*rows):
                found.append(Change(kernel, file, line, key[0], counter, x, y))
    return found


def _totals(profile: Profile) -> Mapping[str, float]:
    return {"launches": profile.launches, **profile.totals(), **profile.derived()}


def _lines(profile: Profile) -> dict[tuple[str, int], tuple[str, int, Mapping[str, int]]]:
    """By text and how often the text came before: file, line and counters."""
    found: dict[tuple[str, int], tuple[str, int, Mapping[str, int]]] = {}
    seen: dict[str, int] = {}
    for (file, line), row in profile.by_line().items():
        text = "".join(profile.sources[file].splitlines()[line - 1 : line]).strip()  # empty when the file is gone
        seen[text] = seen.get(text, -1) + 1
        found[text, seen[text]] = (short(file), line, row)
    return found


def _apart(
    a: Mapping[str, float] | None, b: Mapping[str, float] | None
) -> Iterator[tuple[str, float | None, float | None]]:
    """Counters that differ, with 0 for what was not counted; None for all of what is not there."""
    for counter in dict.fromkeys((*(a or {}), *(b or {}))):
        x, y = (None if one is None else one.get(counter, 0) for one in (a, b))
        if x != y and (x or y):
            yield counter, x, y
