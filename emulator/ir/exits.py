"""What break, continue and return leave: the innermost loop, an inlined call's frame, or the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeVar

from . import nodes as ir
from .walk import bodies

Exit = ir.Break | ir.Continue | ir.Return
ScopeKind = Literal["loop", "frame", "kernel"]


class Scope(Protocol):
    """A loop, a frame or the kernel around a statement."""

    @property
    def kind(self) -> ScopeKind: ...


S = TypeVar("S", bound=Scope)


def exits(stmt: ir.Stmt) -> Iterator[Exit]:
    """The statements at or under `stmt` that leave a loop, frame or kernel around it."""
    match stmt:
        case ir.Break() | ir.Continue() | ir.Return():
            yield stmt
        case ir.While() | ir.For():
            yield from (found for found in _inside(stmt) if isinstance(found, ir.Return))
        case ir.If():
            yield from _inside(stmt)


def _inside(stmt: ir.Stmt) -> Iterator[Exit]:
    for body in bodies(stmt):
        for inner in body:
            yield from exits(inner)


def exited(stmt: Exit, scopes: Sequence[S]) -> S:
    """The scope that a statement leaves, of those around it, outermost first."""
    kinds = ("frame", "kernel") if isinstance(stmt, ir.Return) else ("loop",)
    return next(scope for scope in reversed(scopes) if scope.kind in kinds)
