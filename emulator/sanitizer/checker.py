"""What a checker is made of: a row of data, the statements it adds to a program, and the accesses it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..language.types import Array


class Instrumentation:
    """The statements that a checker adds to one kernel. `Check`s have the checker's name; sites are numbered later."""

    def __init__(self, kernel: ir.Function) -> None:
        self.kernel = kernel

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """What runs before a statement, or before the test of a `While`; bodies are visited by themselves."""
        return iter(())

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """What runs after a statement."""
        return iter(())


@dataclass(frozen=True)
class OnAccess:
    """Accesses that engines compare with shadow memory.

    finds: races, or reads of elements that were never written.
    tracks: whether an array is tracked, given its type, whether the kernel writes it, and whether it was given as `empty`.
    """

    finds: Literal["races", "unwritten"]
    tracks: Callable[[Array, bool, bool], bool]


@dataclass(frozen=True)
class Checker:
    """One checker.

    name: in `check=` and in `Check` statements.
    kinds: of its diagnostics. suppressible: whether a comment may allow them; it names the first kind.
    remarks: kinds that are no faults unless the word given here is asked for too.
    instrument: makes what it adds to a kernel. on_access: what it asks of each access to memory.
    always: whether its `Check` statements are kept without being asked for.
    describe: the diagnostic of a `Check` that does not hold, given the values of `Check.shown` and the place.
    """

    name: str
    kinds: tuple[str, ...]
    suppressible: bool = False
    remarks: Mapping[str, str] = field(default_factory=dict)
    instrument: Callable[[ir.Function], Instrumentation] | None = None
    on_access: OnAccess | None = None
    always: bool = False
    describe: Callable[[ir.Check, ir.Function, Sequence[object], str], Diagnostic] | None = None
