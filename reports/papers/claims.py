"""Claims of a paper: values compared with the intervals that support a claim, the one rule of all verdicts, and texts of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from simtbed import Device

Number: TypeAlias = int | float
PRECISION = 4
"""Significant digits of a fraction."""


def text_of_number(value: Number) -> str:
    """Format a number: integers and large values with separators of thousands, fractions with PRECISION digits."""
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 10**PRECISION):
        return f"{int(value):,}"
    if 1e-4 <= abs(value) < 10**PRECISION or not value:
        return f"{value:,.{PRECISION}g}"
    return f"{value:,.0f}" if abs(value) >= 1 else f"{value:.{PRECISION - 1}g}"


MAX_TOLERANCE = 0.25
"""Largest relative tolerance of `near`: a claim on a number that is off by more is not reproduced."""


class Source(StrEnum):
    """Sources of values. emulator: counted by the rules of the GPU of the paper, or computed by a shipped variant."""

    paper = "paper"
    emulator = "emulator"
    model = "time model"
    gpu = "GPU"
    cpu = "CPU"


class Holds(StrEnum):
    """Results of a comparison or claim. disputed: the sources disagree. unresolved: the interval of a prediction contains
    values that support the claim, and others. unknown: no source has a value."""

    yes = "yes"
    no = "no"
    disputed = "disputed"
    unresolved = "not resolved"
    unknown = "not shown"


class Verdict(StrEnum):
    """Results of an item."""

    reproduced = "reproduced"
    partly = "partly"
    contradicted = "contradicted"
    unresolved = "below the resolution of the model"
    arithmetic = "arithmetic of the paper"
    not_shown = "cannot be shown"


@dataclass(frozen=True)
class Origin:
    """The origin of a value. device: machine or counting rules, "" for the paper's own text. dated: ISO date of a measurement."""

    source: Source
    device: str = ""
    dated: str = ""

    def __str__(self) -> str:
        details = ", ".join(text for text in (self.device, self.dated) if text)
        return f"{self.source}, {details}" if details else str(self.source)


PRINTED = Origin(Source.paper)
"""Values of the paper itself: formulas, tables and texts compared with each other."""
COMPUTED = Origin(Source.emulator)
"""Values computed by shipped kernels and oracles, by the rules of no device."""


def counted_by(device: Device) -> Origin:
    """Return the origin of values that the emulator counts by the rules of a device."""
    return Origin(Source.emulator, device.name)


def predicted_for(device: Device) -> Origin:
    """Return the origin of predictions of the time model for a device."""
    return Origin(Source.model, device.name)


@dataclass(frozen=True)
class Value:
    """A value of a quantity. label: the case, if there are several. interval: low and high end of a prediction."""

    origin: Origin
    value: Number | None
    label: str = ""
    interval: tuple[float, float] | None = None

    @property
    def amount(self) -> float:
        """The value; 0 if it is not available."""
        return self.value or 0.0


def quotient(above: Value, below: Value, label: str | None = None) -> Value:
    """Return the quotient of two values, with the origin of the first one. The intervals of both are independent."""
    label = above.label if label is None else label
    if above.value is None or below.value is None:
        return Value(above.origin, None, label)
    low, high = above.interval or (above.value, above.value)
    least, most = below.interval or (below.value, below.value)
    interval = (low / most, high / least) if above.interval or below.interval else None
    return Value(above.origin, above.value / below.value, label, interval)


@dataclass(frozen=True)
class Comparison:
    """A value and the interval in which it supports a claim.

    quantity: name of the value, with its unit. value: None if it is not available. low, high: ends of the interval, in the
    unit of the value; excluded if `strict`. interval: of a predicted value. tolerance: name of the tolerance of the interval.
    """

    origin: Origin
    quantity: str
    value: Number | None
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    interval: tuple[float, float] | None = None
    tolerance: str = ""

    @property
    def holds(self) -> Holds:
        """yes or no if the value, or all values of its interval, are inside or outside; unresolved if some are."""
        if self.value is None:
            return Holds.unknown
        inside = [self._contains(value) for value in (self.value, *(self.interval or ()))]
        if all(inside):
            return Holds.yes
        if any(inside):
            return Holds.unresolved
        first, last = self.interval or (self.value, self.value)
        return Holds.unresolved if first < self.low and last > self.high else Holds.no

    def _contains(self, value: Number) -> bool:
        return self.low < value < self.high if self.strict else self.low <= value <= self.high

    @property
    def condition(self) -> str:
        """The interval as text: "0.9 to 1.1", "at least 80", "more than 1"."""
        low, high = text_of_number(self.low), text_of_number(self.high)
        if self.low == self.high:
            return low
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{low} to {high}"
        if math.isfinite(self.low):
            return f"{'more than' if self.strict else 'at least'} {low}"
        return f"{'less than' if self.strict else 'at most'} {high}"

    def __str__(self) -> str:
        tolerance = f" ({self.tolerance})" if self.tolerance else ""
        return f"{self.quantity}: {self.shown} ({self.origin}); expected {self.condition}{tolerance}"

    @property
    def shown(self) -> str:
        """The value as text, with its interval: "1.07, 0.5 to 2.1"."""
        if self.value is None:
            return "not available"
        return ", ".join(
            [text_of_number(self.value), *([" to ".join(map(text_of_number, self.interval))] if self.interval else [])]
        )

    def shifted(self) -> Iterator[tuple[float, Comparison]]:
        """Yield each end of the expected interval, and the comparison with the value, or an end of its interval, at that end
        and next to it."""
        if self.value is None:
            return
        for end in filter(math.isfinite, (self.low, self.high)):
            whole = isinstance(self.value, int) and float(end).is_integer()
            neighbours = (
                (end - 1, end + 1) if whole else (math.nextafter(end, -math.inf), math.nextafter(end, math.inf))
            )
            for target in (end, *neighbours):
                if self.interval is None:
                    yield target, replace(self, value=target)
                    continue
                for point in filter(None, self.interval):
                    low, high = (target if bound == point else bound * target / point for bound in self.interval)
                    yield end, replace(self, value=self.value * target / point, interval=(low, high))


@dataclass(frozen=True)
class Claim:
    """A claim of an item. comparisons: by source; the claim fails for a source if one of its comparisons fails.

    main: whether the item represents this claim in the paper. remark: a sentence on the values, or what is missing without any.
    place: section or row of the paper, where the item does not name it.
    """

    text: str
    comparisons: Sequence[Comparison]
    main: bool = False
    remark: str = ""
    place: str = ""

    @property
    def arithmetic(self) -> bool:
        """Whether only printed values are compared: with each other, or by rules that no run can change."""
        return bool(self.comparisons) and all(c.origin.source is Source.paper for c in self.comparisons)

    @property
    def holds(self) -> Holds:
        """yes if an origin shows it and none fails; no if all fail; disputed if some fail.

        A prediction that does not resolve the claim leaves it open for the GPU of the paper: a failure on another GPU disputes
        the claim, and does not contradict it.
        """
        results = {self._holds_by(origin) for origin in {c.origin for c in self.comparisons}}
        if Holds.no in results and results & {Holds.yes, Holds.unresolved}:
            return Holds.disputed
        return next((each for each in (Holds.yes, Holds.no, Holds.unresolved) if each in results), Holds.unknown)

    def _holds_by(self, origin: Origin) -> Holds:
        results = {c.holds for c in self.comparisons if c.origin == origin}
        return next((each for each in (Holds.no, Holds.unresolved, Holds.yes) if each in results), Holds.unknown)


def verdict(claims: Sequence[Claim]) -> Verdict:
    """Return the verdict of an item's claims, by the rule of all papers.

    contradicted if a main claim fails; "cannot be shown" if no main claim has a value; "below the resolution of the model" if
    the main claims have only predictions that do not resolve them; partly if a claim does not hold; "arithmetic of the paper"
    if all main claims compare printed values; else reproduced.
    """
    main = {claim.holds for claim in claims if claim.main}
    if Holds.no in main:
        return Verdict.contradicted
    if main <= {Holds.unknown}:
        return Verdict.not_shown
    if main <= {Holds.unknown, Holds.unresolved}:
        return Verdict.unresolved
    if {claim.holds for claim in claims} != {Holds.yes}:
        return Verdict.partly
    return Verdict.arithmetic if all(claim.arithmetic for claim in claims if claim.main) else Verdict.reproduced


def change(claims: Sequence[Claim]) -> str:
    """Return a sentence with the number that changes the verdict: of the single comparisons that do so, the nearest one. If
    none does, all comparisons of a claim are moved together."""
    now = verdict(claims)
    single: list[tuple[float, str]] = []
    joint: list[tuple[float, str]] = []
    for at, claim in enumerate(claims):
        nearest: dict[int, tuple[float, str, Comparison]] = {}
        for index, compared in enumerate(claim.comparisons):
            for place, moved in compared.shifted():
                if moved.holds is compared.holds or moved.value is None or compared.value is None:
                    continue
                distance = abs(moved.value - compared.value) / max(abs(moved.value), abs(compared.value))
                text = f"{text_of_number(place)} of: {compared.quantity}, here {compared.shown}"
                changed = _verdict_with(claims, at, {index: moved})
                if changed is not now:
                    single.append((distance, f"{changed} at {text}"))
                nearest[index] = min(
                    nearest.get(index, (distance, text, moved)), (distance, text, moved), key=lambda n: n[0]
                )
        changed = _verdict_with(claims, at, {index: moved for index, (_, _, moved) in nearest.items()})
        if changed is not now:
            distance, text, _ = max(nearest.values(), key=lambda n: n[0])
            joint.append((distance, f"{changed} if all sources move, the farthest at {text}"))
    changes = single or joint
    return (
        f"The verdict changes to {min(changes)[1]}." if changes else "No number of this machine changes this verdict."
    )


def _verdict_with(claims: Sequence[Claim], at: int, changed: Mapping[int, Comparison]) -> Verdict:
    comparisons = [changed.get(index, compared) for index, compared in enumerate(claims[at].comparisons)]
    return verdict([*claims[:at], replace(claims[at], comparisons=comparisons), *claims[at + 1 :]])
