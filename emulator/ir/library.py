"""Registry of mathematical functions, which modules above this package read and compile: their machine code and programs.

A function takes arrays of f64 (of i32 where its row's first operand is one) of one length, then the output array of f64, and
the length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from . import nodes as ir

PREFIX = "maths."
"""Before a function's name where compiled code names it."""


class Code(Protocol):
    """Machine code of a function. Its address is valid for the lifetime of this object."""

    @property
    def address(self) -> int: ...


_finders: list[tuple[Callable[[str], Code], Callable[[str], ir.Program]]] = []


def enter(find: Callable[[str], Code], read: Callable[[str], ir.Program]) -> None:
    """Register the function that finds the machine code of a name, and the one that reads its program."""
    _finders[:] = [(find, read)]


def code(symbol: str) -> Code:
    """The function that compiled code names so."""
    return _finders[0][0](symbol.removeprefix(PREFIX))


def program(name: str) -> ir.Program:
    """The program of a function, which has the role of the kernel."""
    return _finders[0][1](name)
