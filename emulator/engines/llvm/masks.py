"""Who is still here: the masks of loops, frames and the kernel that lanes may leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...ir import nodes as ir
from ...ir.exits import Exit, ScopeKind, exited, exits
from ...ir.walk import statements
from .context import Build


@dataclass
class Scope:
    """What a leave can aim at.

    here: slot of the lanes that have not left the turn (a frame's or the kernel's: not left it); None where lanes
    only leave together. stay: of a loop, slot of the lanes that go on with the next turn.
    done, next: labels to jump to when all lanes leave, or continue. walked: all warps of the block take it together.
    """

    kind: ScopeKind
    here: str | None
    stay: str | None = None
    done: str = ""
    next: str = ""
    walked: bool = False


@dataclass
class Scopes:
    """The scopes around the current statement, outermost first."""

    build: Build
    stack: list[Scope] = field(default_factory=list)

    def target(self, stmt: Exit) -> Scope:
        """What a break, continue or return leaves."""
        return exited(stmt, self.stack)

    def directly(self, stmt: Exit) -> bool:
        """Whether all lanes leave together, by a jump."""
        return stmt.site in self.build.divergence.uniform_exits and not self.target(stmt).walked

    def scatters(self, stmts: Sequence[ir.Stmt]) -> bool:
        """Whether lanes may leave a scope around these statements while others stay."""
        cut_off = self.build.options.careful and any(isinstance(s, ir.While | ir.For) for s in statements(tuple(stmts)))
        return cut_off or any(not self.directly(found) for stmt in stmts for found in exits(stmt))

    def innermost(self) -> str:
        """The slot that tells who is here."""
        return next(s.here for s in reversed(self.stack) if s.here is not None)

    def leave(self, stmt: Exit) -> None:
        """The active lanes leave, others may stay."""
        aim = self.target(stmt)
        inner = self.stack if aim.kind == "kernel" else self.stack[self.stack.index(aim) :]
        self._take_out([aim.here] if isinstance(stmt, ir.Continue) else _slots(inner))

    def kill(self) -> None:
        """The active lanes leave the kernel."""
        self._take_out(_slots(self.stack))

    def _take_out(self, slots: Iterable[str | None]) -> None:
        page = self.build.page
        others = page.let(f"xor i32 {self.build.active()}, -1", "others")
        for slot in slots:
            if slot is not None:
                page.store("i32", page.let(f"and i32 {page.load('i32', slot, 'here')}, {others}", "here"), slot)


def _slots(scopes: Iterable[Scope]) -> Iterator[str | None]:
    for scope in scopes:
        yield scope.here
        yield scope.stay
