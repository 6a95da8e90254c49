"""How rows of the table reach the functions of the kernel language that compute them, which are read and compiled above.

A function takes arrays of f64 (of i32 where its row's first operand is one), all of one length, then the array of f64
that it writes, and the length.
"""

from __future__ import annotations

from collections.abc import Callable

PREFIX = "maths."
"""Before a function's name where compiled code names it."""
_found: list[Callable[[str], int]] = []


def enter(find: Callable[[str], int]) -> None:
    """Say how the machine code of a function is found by name."""
    _found[:] = [find]


def address(symbol: str) -> int:
    """Where the function is that compiled code names so. It stays there as long as the process lives."""
    return _found[0](symbol.removeprefix(PREFIX))
