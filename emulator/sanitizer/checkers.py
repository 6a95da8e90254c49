"""The checkers by name, and what a `Check` of the program says when it does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import Diagnostic, LaunchError
from ..ir import nodes as ir
from . import arithmetic, bounds, uninitialised

CHECKS = ("bounds", "uninitialised", "races", "barriers", "arithmetic")
"""Always looked for: accesses outside an array, barriers and warp operations that not everybody reaches, loops that
do not end. Asked for by name, `bounds` looks at each index of an array of several dimensions too, and `barriers` at
threads that returned before a barrier."""
BENIGN = "benign"
"""With races: writes of the same value count as faults too."""


def parse(given: str | Iterable[str]) -> frozenset[str]:
    """The checks that a text such as "all" or "races,arithmetic", or several of them, asks for."""
    words = [w.strip() for part in ([given] if isinstance(given, str) else given) for w in part.split(",")]
    found: set[str] = set()
    for word in filter(None, words):
        if word not in (*CHECKS, BENIGN, "all"):
            raise LaunchError(f"no check is called {word!r}; there are all, {', '.join(CHECKS)}, {BENIGN}")
        found |= set(CHECKS) if word == "all" else {"races", word} if word == BENIGN else {word}
    return frozenset(found)


def need_order(checks: frozenset[str]) -> bool:
    """Whether blocks must run one after another, because what one did is held against the next."""
    return bool(checks & {"races", "uninitialised"})


def describe(check: ir.Check, kernel: ir.Function, values: Sequence[object], where: str) -> Diagnostic:
    """The diagnostic of a check that did not hold; `values` are those of `check.shown`."""
    match check.of:
        case ir.Op() as op if check.about == "arithmetic":
            return arithmetic.undefined_result(op, values, where)
        case ir.Reg() as register if check.about == "uninitialised":
            return uninitialised.read_register(kernel, register, where)
    return bounds.row_overrun(check.span, values, where)
