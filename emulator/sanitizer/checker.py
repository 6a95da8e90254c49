"""Components of a checker: a row of data, the statements it adds to a program, and the accesses it tracks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..language.types import Array


class Instrumentation:
    """Statements that a checker adds to one kernel. Each `Check` has the checker's name; sites are numbered later."""

    def __init__(self, kernel: ir.Function) -> None:
        self.kernel = kernel

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """Yield the statements to insert before a statement, or before the test of a `While`, without those of its body."""
        return iter(())

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """Yield the statements to insert after a statement."""
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
    kinds: of its diagnostics. suppressible: whether a comment may suppress them; the comment names the first kind.
    remarks: kinds that are remarks unless their option is requested too. options_in_all: those that "all" includes, of defects on some
    GPU.
    instrument: returns the statements to add to a kernel. on_access: accesses to compare with shadow memory.
    in_all: whether "all" includes it.
    always: whether its `Check` statements remain in a program without a request.
    describe: returns the diagnostic of a failed `Check`, given the values of `Check.shown` and the thread.
    """

    name: str
    kinds: tuple[str, ...]
    suppressible: bool = False
    remarks: Mapping[str, str] = field(default_factory=dict)
    options_in_all: tuple[str, ...] = ()
    instrument: Callable[[ir.Function], Instrumentation] | None = None
    on_access: OnAccess | None = None
    in_all: bool = True
    always: bool = False
    describe: Callable[[ir.Check, ir.Function, Sequence[object], str], Diagnostic] | None = None
