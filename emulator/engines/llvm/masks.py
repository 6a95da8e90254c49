"""Who is still here: the masks of loops, frames and the kernel that lanes may leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from ...ir import nodes as ir
from ...ir.walk import bodies
from .context import Build


@dataclass
class Scope:
    """What a leave can aim at.

    here: slot of the lanes that have not left the turn (a frame's or the kernel's: not left it); None where lanes
    only leave together. stay: of a loop, slot of the lanes that go on with the next turn.
    done, next: labels to jump to when all lanes leave, or continue. walked: all warps of the block take it together.
    """

    kind: Literal["loop", "frame", "kernel"]
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

    def target(self, stmt: ir.Stmt) -> Scope:
        """What a break, continue or return leaves."""
        kinds = ("frame", "kernel") if isinstance(stmt, ir.Return) else ("loop",)
        return next(s for s in reversed(self.stack) if s.kind in kinds)

    def directly(self, stmt: ir.Stmt) -> bool:
        """Whether all lanes leave together, by a jump."""
        return stmt.site in self.build.divergence.uniform_exits and not self.target(stmt).walked

    def scatters(self, stmts: Iterable[ir.Stmt]) -> bool:
        """Whether lanes may leave a scope around these statements while others stay."""
        return any(self._scatters(stmt, False, False) for stmt in stmts)

    def _scatters(self, stmt: ir.Stmt, in_loop: bool, in_frame: bool) -> bool:
        match stmt:
            case ir.Break() | ir.Continue():
                return not in_loop and not self.directly(stmt)
            case ir.Return():
                return not in_frame and not self.directly(stmt)
            case ir.While() | ir.For():
                if self.build.options.careful:
                    return True  # it may be cut off
                in_loop = True
            case ir.Frame():
                in_loop, in_frame = True, True
        return any(self._scatters(s, in_loop, in_frame) for body in bodies(stmt) for s in body)

    def innermost(self) -> str:
        """The slot that tells who is here."""
        return next(s.here for s in reversed(self.stack) if s.here is not None)

    def leave(self, stmt: ir.Break | ir.Continue | ir.Return) -> None:
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
