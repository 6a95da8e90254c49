"""Who is still here: the masks of loops, frames and the kernel that lanes may leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from ...ir import nodes as ir
from ...ir.walk import bodies
from .context import CodegenContext


@dataclass
class Scope:
    """What a leave can aim at.

    here: slot of the lanes that have not left the turn (a frame's or the kernel's: not left it); None where lanes
    only leave together. stay: of a loop, slot of the lanes that go on with the next turn.
    done, next: labels to jump to when all lanes leave, or continue. of_block: all warps of the block take it together.
    """

    kind: Literal["loop", "frame", "kernel"]
    present: str | None
    looping: str | None = None
    done: str = ""
    next: str = ""
    of_block: bool = False


@dataclass
class Scopes:
    """The scopes around the current statement, outermost first."""

    context: CodegenContext
    stack: list[Scope] = field(default_factory=list)

    def target(self, stmt: ir.Stmt) -> Scope:
        """What a break, continue or return leaves."""
        kinds = ("frame", "kernel") if isinstance(stmt, ir.Return) else ("loop",)
        return next(s for s in reversed(self.stack) if s.kind in kinds)

    def leaves_uniformly(self, stmt: ir.Stmt) -> bool:
        """Whether all lanes leave together, by a jump."""
        return stmt.site in self.context.shapes.together and not self.target(stmt).of_block

    def leaves_divergently(self, stmts: Iterable[ir.Stmt]) -> bool:
        """Whether lanes may leave a scope around these statements while others stay."""
        return any(self._leaves_divergently(stmt, False, False) for stmt in stmts)

    def _leaves_divergently(self, stmt: ir.Stmt, in_loop: bool, in_frame: bool) -> bool:
        match stmt:
            case ir.Break() | ir.Continue():
                return not in_loop and not self.leaves_uniformly(stmt)
            case ir.Return():
                return not in_frame and not self.leaves_uniformly(stmt)
            case ir.While() | ir.For():
                if self.context.options.careful:
                    return True  # it may be cut off
                in_loop = True
            case ir.Frame():
                in_loop, in_frame = True, True
        return any(self._leaves_divergently(s, in_loop, in_frame) for body in bodies(stmt) for s in body)

    def innermost(self) -> str:
        """The slot that tells who is here."""
        return next(s.present for s in reversed(self.stack) if s.present is not None)

    def leave(self, stmt: ir.Break | ir.Continue | ir.Return) -> None:
        """The active lanes leave, others may stay."""
        aim = self.target(stmt)
        inner = self.stack if aim.kind == "kernel" else self.stack[self.stack.index(aim) :]
        self._remove_lanes([aim.present] if isinstance(stmt, ir.Continue) else _slots(inner))

    def kill(self) -> None:
        """The active lanes leave the kernel."""
        self._remove_lanes(_slots(self.stack))

    def _remove_lanes(self, slots: Iterable[str | None]) -> None:
        builder = self.context.builder
        others = builder.let(f"xor i32 {self.context.active()}, -1", "others")
        for slot in slots:
            if slot is not None:
                builder.store(
                    "i32", builder.let(f"and i32 {builder.load('i32', slot, 'here')}, {others}", "here"), slot
                )


def _slots(scopes: Iterable[Scope]) -> Iterator[str | None]:
    for scope in scopes:
        yield scope.present
        yield scope.looping
