"""Differences of two runs by kernel, source line and counter."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simtbed import Profile, Run

from .annotate import short

NEUTRAL = ("arithmetic_intensity",)
"""Derived values without a direction of improvement."""


@dataclass(frozen=True)
class Change:
    """A difference of one counter.

    line: line of the source of B, or of A if B lacks it; 0 for the total of the kernel.
    before, after: values in A and B; None if the kernel, or the line, is absent.
    """

    kernel: str
    file: str
    line: int
    source: str
    counter: str
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """The quotient of after and before; None if undefined."""
        return self.after / self.before if self.before and self.after is not None else None

    @property
    def regression(self) -> float:
        """The relative regression, negative for an improvement. Lower is better, except for efficiencies.

        0 if the kernel or the line is absent from one run; infinite if the value was 0.
        """
        if self.before is None or self.after is None or self.counter in NEUTRAL:
            return 0.0
        difference = (self.after - self.before) * (-1 if self.counter.endswith("efficiency") else 1)
        return difference / abs(self.before) if self.before else math.copysign(math.inf, difference)


def changes(before: Run, after: Run) -> list[Change]:
    """Return the counters that differ: for each kernel its totals over all launches, then its lines.

    Lines are matched by their text and its occurrence number, so lines may move.
    """
    a, b = before.profiles(), after.profiles()
    result = []
    for kernel in dict.fromkeys((*a, *b)):
        totals = [_totals(one[kernel]) if kernel in one else None for one in (a, b)]
        result += [Change(kernel, "", 0, "", counter, x, y) for counter, x, y in _differences(*totals)]
        lines = [_lines(one[kernel]) if kernel in one else {} for one in (a, b)]
        for key in dict.fromkeys((*lines[1], *lines[0])):
            file, line, _ = lines[1].get(key) or lines[0][key]
            rows = [one[key][2] if key in one else None for one in lines]
            for counter, x, y in _differences(*rows):
                result.append(Change(kernel, file, line, key[0], counter, x, y))
    return result


def _totals(profile: Profile) -> Mapping[str, float]:
    return {"launches": profile.launches, **profile.totals(), **profile.derived()}


def _lines(profile: Profile) -> dict[tuple[str, int], tuple[str, int, Mapping[str, int]]]:
    """Return file, line and counters by the text of the line and its occurrence number."""
    result: dict[tuple[str, int], tuple[str, int, Mapping[str, int]]] = {}
    occurrence: dict[str, int] = {}
    for (file, line), row in profile.by_line().items():
        text = "".join(profile.sources[file].splitlines()[line - 1 : line]).strip()  # empty if the file was removed
        occurrence[text] = occurrence.get(text, -1) + 1
        result[text, occurrence[text]] = (short(file), line, row)
    return result


def _differences(
    a: Mapping[str, float] | None, b: Mapping[str, float] | None
) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield the counters that differ and their values: 0 if not counted, None if the kernel or the line is absent."""
    for counter in dict.fromkeys((*(a or {}), *(b or {}))):
        x, y = (None if one is None else one.get(counter, 0) for one in (a, b))
        if x != y and (x or y):
            yield counter, x, y
