"""Registry of the machine code of mathematical functions, which modules above this package read and compile.

A function takes arrays of f64 (of i32 where its row's first operand is one) of one length, then the output array of f64, and
the length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

PREFIX = "maths."
"""Before a function's name where compiled code names it."""


class Code(Protocol):
    """Machine code of a function. Its address is valid for the lifetime of this object."""

    @property
    def address(self) -> int: ...


_finders: list[Callable[[str], Code]] = []


def enter(find: Callable[[str], Code]) -> None:
    """Register the function that finds the machine code of a name."""
    _finders[:] = [find]


def code(symbol: str) -> Code:
    """The function that compiled code names so."""
    return _finders[0](symbol.removeprefix(PREFIX))
