"""Masks of scopes with exits: loops, frames of inlined calls, and the kernel."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...ir import nodes as ir
from ...ir.exits import Exit, ScopeKind, exited, exits
from ...ir.walk import statements
from .context import CodegenContext


@dataclass
class Scope:
    """A target of break, continue or return.

    present: slot of the lanes inside the scope, or inside the iteration of a loop; None if lanes only leave together. looping: for a
    loop, slot of the lanes of the next iteration. end, next: labels for the exit, or the continuation, of all lanes. of_block: all
    warps of the block enter it together.
    """

    kind: ScopeKind
    present: str | None
    looping: str | None = None
    end: str = ""
    next: str = ""
    of_block: bool = False


@dataclass
class Scopes:
    """The scopes of the current statement, outermost first."""

    context: CodegenContext
    stack: list[Scope] = field(default_factory=list)

    def target(self, stmt: Exit) -> Scope:
        """Return the scope left by a break, continue or return."""
        return exited(stmt, self.stack)

    def leaves_uniformly(self, stmt: Exit) -> bool:
        """Return whether all lanes leave together, by a jump."""
        return stmt.site in self.context.divergence.uniform_exits and not self.target(stmt).of_block

    def leaves_divergently(self, stmts: Sequence[ir.Stmt]) -> bool:
        """Return whether some lanes may leave an enclosing scope of these statements while others remain."""
        if self.context.options.step_limited and any(
            isinstance(s, ir.While | ir.For) for s in statements(tuple(stmts))
        ):
            return True  # the step limit may end a loop
        return any(not self.leaves_uniformly(found) for stmt in stmts for found in exits(stmt))

    def innermost(self) -> str:
        """Return the slot of the lanes inside all scopes."""
        return next(s.present for s in reversed(self.stack) if s.present is not None)

    def leave(self, stmt: Exit) -> None:
        """Remove the active lanes from a scope; other lanes may remain."""
        scope = self.target(stmt)
        inner = self.stack if scope.kind == "kernel" else self.stack[self.stack.index(scope) :]
        self._remove_lanes([scope.present] if isinstance(stmt, ir.Continue) else _slots(inner))

    def kill(self) -> None:
        """Remove the active lanes from the kernel."""
        self._remove_lanes(_slots(self.stack))

    def _remove_lanes(self, slots: Iterable[str | None]) -> None:
        builder = self.context.builder
        remaining = builder.let(f"xor i32 {self.context.active()}, -1", "others")
        for slot in slots:
            if slot is not None:
                builder.store(
                    "i32", builder.let(f"and i32 {builder.load('i32', slot, 'present')}, {remaining}", "present"), slot
                )


def _slots(scopes: Iterable[Scope]) -> Iterator[str | None]:
    for scope in scopes:
        yield scope.present
        yield scope.looping
