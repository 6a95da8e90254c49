"""The table of checkers, one row each, and the meaning of `check=`.

Without being asked for, engines always report accesses outside an array, barriers and warp operations that not all
lanes reach, and loops that do not end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import Diagnostic, LaunchError
from ..ir import nodes as ir
from . import arithmetic, bounds, uninitialised
from .checker import Checker, OnAccess
from .races import shadow

CHECKERS = (
    Checker("bounds", ("bounds",), always=True, describe=bounds.bad_view),
    Checker(
        "uninitialised",
        ("uninitialised",),
        suppressible=True,
        instrument=uninitialised.Instrumentation,
        on_access=OnAccess("unwritten", uninitialised.tracks),
        describe=uninitialised.unassigned_register,
    ),
    Checker(
        "races",
        ("race", "benign race", "unacquired race"),
        suppressible=True,
        remarks={"benign race": "benign", "unacquired race": "acquire"},
        on_access=OnAccess("races", shadow.tracks),
    ),
    Checker("barriers", ("barrier",)),
    Checker(
        "arithmetic",
        ("arithmetic",),
        suppressible=True,
        instrument=arithmetic.Instrumentation,
        describe=arithmetic.undefined_result,
    ),
)
BY_NAME = {row.name: row for row in CHECKERS}
OPTIONS = {word: row.name for row in CHECKERS for word in row.remarks.values()}
"""Words of `check=` that make faults of remarks, and their checkers."""
SUPPRESSIBLE = {row.kinds[0]: row for row in CHECKERS if row.suppressible}
"""What a comment may allow, and the checker that finds it."""


def parse(given: str | Iterable[str]) -> frozenset[str]:
    """The checkers and options that a text such as "all" or "races,arithmetic", or several of them, asks for."""
    words = [w.strip() for part in ([given] if isinstance(given, str) else given) for w in part.split(",")]
    found: set[str] = set()
    for word in filter(None, words):
        if word == "all":
            found |= set(BY_NAME)
        elif word in BY_NAME or word in OPTIONS:
            found |= {word, OPTIONS.get(word, word)}
        else:
            raise LaunchError(f"no check is called {word!r}; there are all, {', '.join((*BY_NAME, *OPTIONS))}")
    return frozenset(found)


def asked(checks: frozenset[str]) -> list[Checker]:
    """The rows of the checkers asked for."""
    return [row for row in CHECKERS if row.name in checks]


def keeps(about: str, checks: frozenset[str]) -> bool:
    """Whether `Check` statements of a checker stay in a program."""
    return about in checks or BY_NAME[about].always


def need_order(checks: frozenset[str]) -> bool:
    """Whether blocks must run one after another, because accesses are compared with earlier ones."""
    return any(row.on_access for row in asked(checks))


def is_remark(kind: str, checks: frozenset[str]) -> bool:
    """Whether findings of a kind are remarks: the word that makes them faults was not asked for."""
    words = {word for row in CHECKERS for remark, word in row.remarks.items() if remark == kind}
    return bool(words) and not words & checks


def describe(check: ir.Check, kernel: ir.Function, values: Sequence[object], where: str) -> Diagnostic:
    """The diagnostic of a check that did not hold; `values` are those of `check.shown`."""
    found = BY_NAME[check.about].describe
    assert found is not None
    return found(check, kernel, values, where)
