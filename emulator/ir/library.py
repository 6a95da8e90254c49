"""How rows of the table reach the functions of the kernel language that compute them, which are read and compiled above.

A function takes arrays of f64 (of i32 where its row's first operand is one), all of one length, then the array of f64
that it writes, and the length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

PREFIX = "maths."
"""Before a function's name where compiled code names it."""


class Code(Protocol):
    """Machine code of a function. It stays where it is as long as this object lives."""

    @property
    def address(self) -> int: ...


_finders: list[Callable[[str], Code]] = []


def enter(find: Callable[[str], Code]) -> None:
    """Say how the machine code of a function is found by name."""
    _finders[:] = [find]


def code(symbol: str) -> Code:
    """The function that compiled code names so."""
    return _finders[0](symbol.removeprefix(PREFIX))
