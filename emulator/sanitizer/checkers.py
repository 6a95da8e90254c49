"""The table of checkers, one row each, and the meaning of `check=`.

Independently of `check=`, engines report accesses outside an array, misaligned accesses, divergent barriers and warp operations, and
endless loops.
"""

from collections.abc import Iterable, Sequence

from ..errors import Diagnostic, LaunchError
from ..ir import nodes as ir
from . import arithmetic, bounds, mbarriers, nan, products, uninitialised
from .checker import Checker, OnAccess
from .races import shadow

CHECKERS = (
    Checker("bounds", ("bounds",), always=True, describe=bounds.bad_view),
    Checker("alignment", ("alignment",), always=True, describe=bounds.misaligned),
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
        options_in_all=("acquire",),
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
    Checker("mbarrier", ("mbarrier",), instrument=mbarriers.Instrumentation, describe=mbarriers.wrong_use),
    Checker("wgmma", ("wgmma",), instrument=products.Instrumentation, describe=products.unordered),
    Checker(
        "nan",
        ("nan",),
        suppressible=True,
        in_all=False,
        instrument=nan.Instrumentation,
        describe=nan.special_result,
    ),
)
BY_NAME = {row.name: row for row in CHECKERS}
OPTIONS = {word: row.name for row in CHECKERS for word in row.remarks.values()}
"""Words of `check=` that make remarks faults, and their checkers."""
SUPPRESSIBLE = {row.kinds[0]: row for row in CHECKERS if row.suppressible}
"""Kinds of finding that a comment may suppress, and their checkers."""


def parse(words: str | Iterable[str]) -> frozenset[str]:
    """Return the checkers and options in texts such as "all" or "races,arithmetic". Raises LaunchError for an unknown word."""
    texts = [words] if isinstance(words, str) else words
    names: set[str] = set()
    for word in filter(None, (word.strip() for text in texts for word in text.split(","))):
        if word == "all":
            names |= {name for row in CHECKERS if row.in_all for name in (row.name, *row.options_in_all)}
        elif word in BY_NAME or word in OPTIONS:
            names |= {word, OPTIONS.get(word, word)}
        else:
            raise LaunchError(f"no check is called {word!r}; there are all, {', '.join((*BY_NAME, *OPTIONS))}")
    return frozenset(names)


def requested(checks: frozenset[str]) -> list[Checker]:
    """Return the rows of the requested checkers."""
    return [row for row in CHECKERS if row.name in checks]


def keeps(about: str, checks: frozenset[str]) -> bool:
    """Return whether `Check` statements of a checker remain in a program."""
    return about in checks or BY_NAME[about].always


def need_order(checks: frozenset[str]) -> bool:
    """Return whether blocks must run in sequence, because accesses are compared with earlier ones."""
    return any(row.on_access for row in requested(checks))


def is_remark(kind: str, checks: frozenset[str]) -> bool:
    """Return whether findings of a kind are remarks: the word that makes them faults was not requested."""
    words = {word for row in CHECKERS for remark, word in row.remarks.items() if remark == kind}
    return bool(words) and not words & checks


def describe(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of a failed check. values: of `check.shown`."""
    describe_check = BY_NAME[check.about].describe
    assert describe_check is not None
    return describe_check(check, kernel, values, thread)
