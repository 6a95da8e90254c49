"""The kinds of access to memory, and the dimensions of an index that have to be checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..language.types import Space
from . import nodes as ir


class Operation(StrEnum):
    """What an access does. REDUCTION is an atomic operation whose result nobody uses."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"


@dataclass(frozen=True)
class AccessKind:
    """What one statement does to which space of memory. Its text, such as global_load, begins the names of its
    counters."""

    space: Space
    operation: Operation

    def __str__(self) -> str:
        return f"{self.space}_{self.operation}"

    @property
    def atomic(self) -> bool:
        return self.operation in (Operation.ATOMIC, Operation.REDUCTION)


def open_dimensions(index: ir.Expr) -> list[tuple[ir.Expr, ir.Expr]]:
    """The index and the extent of each dimension in which an access may leave its array."""
    if not isinstance(index, ir.Within):
        return []
    pairs = zip(index.index, index.extents, strict=True)
    return [(part, extent) for part, extent in pairs if part is not None and not _holds(part, extent)]


def shown_dimensions(index: ir.Expr) -> list[ir.Expr]:
    """What a message about an access needs of each dimension: the indices, then the extents."""
    if not isinstance(index, ir.Within):
        return []
    return [*(part for part in index.index if part is not None), *index.extents]


def _holds(part: ir.Expr, extent: ir.Expr) -> bool:
    return isinstance(part, ir.Const) and isinstance(extent, ir.Const) and 0 <= part.value < extent.value
