"""Intervals of integers at launch: encoded expressions, evaluated with the numbers, sizes and arrays of a launch.

`passes.counter_bounds` encodes the bounds of loops. A launch evaluates them without the program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Interval = tuple[int, int]
"""Smallest and largest value."""


@dataclass(frozen=True)
class Term:
    """An encoded expression.

    kind: "type" for any value between low and high, "leaf" for a value of the launch, "join" for one of its operands,
    else one of OPERATIONS. low, high: the range of its type. operands: the positions of other terms. name: of a leaf:
    a parameter, a special name, `length(ARRAY)` or `values(ARRAY)`.
    """

    kind: str
    low: int
    high: int
    operands: tuple[int, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class CountedLoop:
    """A loop whose counter may wrap for some launches. number: of the loop in its program. low, high: the range of the counter's
    type. start, stop, step: positions of terms."""

    number: int
    low: int
    high: int
    start: int
    stop: int
    step: int


@dataclass(frozen=True)
class Counters:
    """The loops of a program whose counter may wrap, and the terms of their bounds: operands first, except in cycles."""

    terms: tuple[Term, ...] = ()
    loops: tuple[CountedLoop, ...] = ()

    def wrapping(self, leaf: Callable[[str], Interval | None]) -> tuple[int, ...]:
        """Return the numbers of the loops whose counter may leave its range. leaf: the interval of a leaf; None if
        unknown."""
        if not self.loops:
            return ()
        values = evaluated(self.terms, leaf)
        return tuple(
            loop.number
            for loop in self.loops
            if wraps(values[loop.start], values[loop.stop], values[loop.step], (loop.low, loop.high))
        )


def wraps(start: Interval, stop: Interval, step: Interval, type: Interval) -> bool:
    """Return whether the counter of a range with bounds in these intervals may leave the range of its type."""
    if all(low == high for low, high in (start, stop, step)):
        numbers = range(start[0], stop[0], step[0] or 1)
        return bool(numbers) and not type[0] <= numbers[-1] + step[0] <= type[1]
    up = step[1] > 1 and start[0] < stop[1] and stop[1] - 1 + step[1] > type[1]
    down = step[0] < -1 and start[1] > stop[0] and stop[0] + 1 + step[0] < type[0]
    return up or down


MAX_ROUNDS = 4
"""Evaluations of cyclic terms before their bounds are widened."""


def evaluated(terms: Sequence[Term], leaf: Callable[[str], Interval | None]) -> list[Interval]:
    """Return the interval of each term."""
    values: list[Interval | None] = [None] * len(terms)
    cyclic = any(operand >= at for at, term in enumerate(terms) for operand in term.operands)
    rounds, changed = 0, True
    while changed:
        changed = False
        for at, term in enumerate(terms):
            value = _value(term, [values[operand] for operand in term.operands], leaf)
            if rounds >= MAX_ROUNDS and term.kind == "join":
                value = _widened(values[at], value, term)
            if value != values[at]:
                values[at], changed = value, cyclic
        rounds += 1
    return [_range(term) if value is None else value for term, value in zip(terms, values, strict=True)]


def _value(term: Term, operands: Sequence[Interval | None], leaf: Callable[[str], Interval | None]) -> Interval | None:
    """Return the interval of a term; None without a value yet, in a cycle."""
    if term.kind == "type":
        return _range(term)
    if term.kind == "leaf":
        value = leaf(term.name)
        return _range(term) if value is None else _inside(value, term)
    present = [operand for operand in operands if operand is not None]
    if term.kind == "join":
        return _hull(present) if present else None
    return _inside(_OPERATIONS[term.kind](*present), term) if len(present) == len(operands) else None


def _range(term: Term) -> Interval:
    return term.low, term.high


def _inside(value: Interval, term: Term) -> Interval:
    """Return the interval of a result of exact arithmetic; any value of the type if it may wrap."""
    return value if term.low <= value[0] and value[1] <= term.high else _range(term)


def _widened(before: Interval | None, now: Interval | None, term: Term) -> Interval | None:
    """Return the interval with each bound that still moves at 0 or at the limit of the type."""
    if before is None or now is None:
        return now
    low, high = (0 if now[0] >= 0 else term.low), (0 if now[1] <= 0 else term.high)
    return min(before[0], low) if now[0] < before[0] else before[0], max(before[1], high) if now[1] > before[
        1
    ] else before[1]


def _hull(intervals: Sequence[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _corners(operation: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    """Return the interval of an operation that is monotonic in each operand."""
    values = [operation(x, y) for x in a for y in b]
    return min(values), max(values)


_UNKNOWN = (-(1 << 128), 1 << 128)
_MAX_SHIFT = 63


def _quotient(a: Interval, b: Interval) -> Interval:
    return _corners(lambda x, y: x // y, a, b) if b[0] > 0 else _UNKNOWN


def _truncated_quotient(a: Interval, b: Interval) -> Interval:
    return _quotient(a, b) if a[0] >= 0 else _UNKNOWN


def _modulus(a: Interval, b: Interval) -> Interval:
    return (0, b[1] - 1) if b[0] > 0 else _UNKNOWN


def _remainder(a: Interval, b: Interval) -> Interval:
    return (0, min(a[1], b[1] - 1)) if a[0] >= 0 and b[0] > 0 else _UNKNOWN


def _masked(a: Interval, b: Interval) -> Interval:
    """`a & b` has no bits beyond an operand that is not negative."""
    positive = [high for low, high in (a, b) if low >= 0]
    return (0, min(positive)) if positive else _UNKNOWN


def _shifted(operation: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    def interval(a: Interval, b: Interval) -> Interval:
        return _corners(operation, a, b) if b[0] >= 0 and b[1] <= _MAX_SHIFT else _UNKNOWN

    return interval


_OPERATIONS: Mapping[str, Callable[..., Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": lambda a, b: _corners(lambda x, y: x * y, a, b),
    "neg": lambda a: (-a[1], -a[0]),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "floordiv": _quotient,
    "div": _truncated_quotient,
    "mod": _modulus,
    "rem": _remainder,
    "and": _masked,
    "shl": _shifted(lambda x, y: x << y),
    "shr": _shifted(lambda x, y: x >> y),
    "cast": lambda a: a,
}
OPERATIONS = frozenset(_OPERATIONS)
"""Operations with an interval. "cast" represents each conversion of integers."""
