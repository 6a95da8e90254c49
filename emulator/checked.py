"""Validation of caller-supplied integers, bools and words, and their short text for messages."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import index
from typing import Any, TypeVar

from .errors import LaunchError

Word = TypeVar("Word", bound=str)
MAX_SHOWN = 60


def shown(value: Any) -> str:
    """Return a value as short text on one line, for a message."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return f"a whole number of {value.bit_length():,} bits"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # its own repr failed
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 4]} ..."


def closest(name: str, names: Iterable[str], similarity: float = 0.75) -> str | None:
    """Return the closest match of a misspelt name; None without one. similarity: the least, from 0 to 1 as in `difflib`."""
    from difflib import get_close_matches  # late: only errors need it

    return next(iter(get_close_matches(name, names, 1, similarity)), None)


def counted(number: int) -> str:
    """Return an integer with thousands separators: 70,000."""
    return f"{number:,}" if number.bit_length() <= 200 else shown(number)


def whole(name: str, value: Any, least: int, most: int, owner: str = "") -> int:
    """Return an integer from `least` to `most`, of any type that Python indexes with. owner: subject of the upper limit in the message.

    Raises LaunchError, also for bools and floats.
    """
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise LaunchError(f"{name} is a whole number, not {shown(value)}")
    if number < least:
        raise LaunchError(f"{name} is {counted(number)}: it is at least {counted(least)}")
    if number > most:
        taker = f"{owner} takes" if owner else "it is"
        raise LaunchError(f"{name} is {counted(number)}: {taker} at most {counted(most)}")
    return number


def truth(name: str, value: Any) -> bool:
    """Return a bool. Raises LaunchError for other values."""
    from numpy import bool_  # late: marking a kernel does not need NumPy

    if not isinstance(value, bool | bool_):
        raise LaunchError(f"{name} is True or False, not {shown(value)}")
    return bool(value)


def one_of(name: str, value: Any, words: Iterable[Word]) -> Word:
    """Return one of the words. Raises LaunchError with all of them."""
    choices = list(words)
    if not isinstance(value, str) or value not in choices:
        raise LaunchError(f"{name} is {' or '.join(map(repr, choices))}, not {shown(value)}")
    return choices[choices.index(value)]


STACK_ENDED = (
    "Python's stack ended: launch from fewer calls inside each other, raise sys.setrecursionlimit, or split what nests "
    "deepest in the kernel"
)


@contextmanager
def within_stack() -> Iterator[None]:
    """Convert RecursionError to LaunchError: a kernel may be read deep inside the caller's stack."""
    try:
        yield
    except RecursionError:
        raise LaunchError(STACK_ENDED) from None
