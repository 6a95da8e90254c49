"""Claims of a paper: values compared with the intervals that support a claim, and the result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from simtbed import Device
from simtbed.kernels import Agreement

from .numbers import Number, text_of_number

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
    """Results of a claim. disputed: the sources disagree. unknown: no source has a value."""

    yes = "yes"
    no = "no"
    disputed = "disputed"
    unknown = "not shown"


class Verdict(StrEnum):
    """Results of an item."""

    reproduced = "reproduced"
    partly = "partly"
    contradicted = "contradicted"
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
class Comparison:
    """A value and the interval in which it supports a claim.

    quantity: name of the value, with its unit. value: None if it is not available. low, high: ends of the interval, in the
    unit of the value; excluded if `strict`.
    """

    origin: Origin
    quantity: str
    value: Number | None
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether the value is in the interval; None without a value."""
        if self.value is None:
            return None
        if self.strict:
            return self.low < self.value < self.high
        return self.low <= self.value <= self.high

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
        value = "not available" if self.value is None else text_of_number(self.value)
        return f"{self.quantity}: {value} ({self.origin}); expected {self.condition}"


def near(origin: Origin, quantity: str, value: Number | None, expected: float, tolerance: float) -> Comparison:
    """Compare a value with a number of the paper. tolerance: relative, at most MAX_TOLERANCE."""
    if not 0 < tolerance <= MAX_TOLERANCE:
        raise ValueError(f"expected a tolerance above 0 and at most {MAX_TOLERANCE}, got {tolerance}")
    margin = abs(expected) * tolerance
    return Comparison(origin, quantity, value, expected - margin, expected + margin)


def exactly(origin: Origin, quantity: str, value: Number | None, expected: float) -> Comparison:
    """Compare a value with the only one that supports the claim."""
    return Comparison(origin, quantity, value, expected, expected)


def more_than(origin: Origin, quantity: str, value: Number | None, bound: float) -> Comparison:
    """Compare a value with an excluded lower bound."""
    return Comparison(origin, quantity, value, low=bound, strict=True)


def less_than(origin: Origin, quantity: str, value: Number | None, bound: float) -> Comparison:
    """Compare a value with an excluded upper bound."""
    return Comparison(origin, quantity, value, high=bound, strict=True)


def at_least(origin: Origin, quantity: str, value: Number | None, bound: float) -> Comparison:
    """Compare a value with a lower bound."""
    return Comparison(origin, quantity, value, low=bound)


def at_most(origin: Origin, quantity: str, value: Number | None, bound: float) -> Comparison:
    """Compare a value with an upper bound."""
    return Comparison(origin, quantity, value, high=bound)


def same_results(origin: Origin, agreement: Agreement) -> Comparison:
    """Compare results with an oracle: none of them differs. Without results there is no value."""
    differing = agreement.differing if agreement.compared else None
    return exactly(origin, f"results that differ from the oracle's, of {agreement.compared:,}", differing, 0)


def ratio(above: float | None, below: float | None) -> float | None:
    """Return a quotient; None if a value is not available."""
    return None if above is None or below is None else above / below


@dataclass(frozen=True)
class Claim:
    """A claim of an item. comparisons: by source; the claim fails for a source if one of its comparisons fails.

    main: whether the item represents this claim in the paper. remark: a sentence on the values, or what is missing without any.
    """

    text: str
    comparisons: Sequence[Comparison]
    main: bool = False
    remark: str = ""

    @property
    def holds(self) -> Holds:
        """yes or no if all origins with a value agree, disputed if they do not."""
        results = {self._holds_by(origin) for origin in {c.origin for c in self.comparisons}} - {None}
        if not results:
            return Holds.unknown
        if len(results) > 1:
            return Holds.disputed
        return Holds.yes if results.pop() else Holds.no

    def _holds_by(self, origin: Origin) -> bool | None:
        results = [c.holds for c in self.comparisons if c.origin == origin and c.holds is not None]
        return all(results) if results else None


def verdict(claims: Iterable[Claim]) -> Verdict:
    """Return the verdict of an item's claims.

    contradicted if a main claim fails; "cannot be shown" if no main claim has a value; reproduced if all claims hold;
    else partly.
    """
    listed = list(claims)
    main = {claim.holds for claim in listed if claim.main}
    if Holds.no in main:
        return Verdict.contradicted
    if main <= {Holds.unknown}:
        return Verdict.not_shown
    return Verdict.reproduced if {claim.holds for claim in listed} == {Holds.yes} else Verdict.partly
