"""What a caller gives, looked at where it enters: whole numbers, truths, words, and how a message shows what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from .errors import LaunchError

LONGEST_SHOWN = 60


def shown(given: Any) -> str:
    """What was given, on one line and short, for a message."""
    if isinstance(given, int) and not isinstance(given, bool) and given.bit_length() > 200:
        return f"a whole number of {given.bit_length():,} bits"
    try:
        text = " ".join(repr(given).split())
    except Exception:  # its own class is at fault
        text = f"<{type(given).__name__}>"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 4]} ..."


def counted(number: int) -> str:
    """A whole number for a message: 70,000."""
    return f"{number:,}" if number.bit_length() <= 200 else shown(number)


def whole(name: str, given: Any, least: int, most: int, owner: str = "") -> int:
    """A whole number of `least` to `most`, as Python's or NumPy's integers have it. owner: who takes no more.

    Raises LaunchError: neither True nor 1.0 is a whole number here.
    """
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise LaunchError(f"{name} is a whole number, not {shown(given)}")
    number = int(given)
    if number < least:
        raise LaunchError(f"{name} is {counted(number)}: it is at least {counted(least)}")
    if number > most:
        taker = f"{owner} takes" if owner else "it is"
        raise LaunchError(f"{name} is {counted(number)}: {taker} at most {counted(most)}")
    return number


def truth(name: str, given: Any) -> bool:
    """True or False. Raises LaunchError."""
    from numpy import bool_  # late: marking a kernel does without

    if not isinstance(given, bool | bool_):
        raise LaunchError(f"{name} is True or False, not {shown(given)}")
    return bool(given)


def one_of(name: str, given: Any, words: Iterable[str]) -> str:
    """One of some words. Raises LaunchError with all of them."""
    known = list(words)
    if not isinstance(given, str) or given not in known:
        raise LaunchError(f"{name} is {' or '.join(map(repr, known))}, not {shown(given)}")
    return given


@contextmanager
def within_stack() -> Iterator[None]:
    """Inside, the end of Python's stack is a LaunchError: a kernel may be read from within many calls of the caller's."""
    try:
        yield
    except RecursionError:
        raise LaunchError(
            "Python's stack ended: launch from fewer calls inside each other, raise sys.setrecursionlimit, or split what "
            "nests deepest in the kernel"
        ) from None
