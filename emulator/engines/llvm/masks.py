"""The masks of the scopes that lanes can leave: loops, frames of inlined calls, and the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...ir import nodes as ir
from ...ir.exits import Exit, ScopeKind, exited, exits
from ...ir.walk import statements
from .context import CodegenContext


@dataclass
class Scope:
    """A scope that break, continue or return leaves.

    present: slot of the lanes that have not left the scope, or the iteration of a loop; None where lanes only leave
    together. looping: of a loop, slot of the lanes that go on with the next iteration.
    done, next: labels to jump to when all lanes leave, or continue. of_block: all warps of the block enter it together.
    """

    kind: ScopeKind
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

    def target(self, stmt: Exit) -> Scope:
        """What a break, continue or return leaves."""
        return exited(stmt, self.stack)

    def leaves_uniformly(self, stmt: Exit) -> bool:
        """Whether all lanes leave together, so that a jump does it."""
        return stmt.site in self.context.divergence.uniform_exits and not self.target(stmt).of_block

    def leaves_divergently(self, stmts: Sequence[ir.Stmt]) -> bool:
        """Whether lanes may leave a scope around these statements while others stay."""
        if self.context.options.step_limited and any(
            isinstance(s, ir.While | ir.For) for s in statements(tuple(stmts))
        ):
            return True  # the step limit may end a loop
        return any(not self.leaves_uniformly(found) for stmt in stmts for found in exits(stmt))

    def innermost(self) -> str:
        """The slot of the lanes that have not left any scope."""
        return next(s.present for s in reversed(self.stack) if s.present is not None)

    def leave(self, stmt: Exit) -> None:
        """The active lanes leave, others may stay."""
        scope = self.target(stmt)
        inner = self.stack if scope.kind == "kernel" else self.stack[self.stack.index(scope) :]
        self._remove_lanes([scope.present] if isinstance(stmt, ir.Continue) else _slots(inner))

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
