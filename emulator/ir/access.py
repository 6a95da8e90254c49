"""Kinds of memory access, and the dimensions of an index whose bounds are checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..language.types import I32, Space
from . import nodes as ir


class Operation(StrEnum):
    """An access's operation.

    REDUCTION is an atomic operation on global memory with an unused result. COUNT is an atomic addition of 1 to 4
    bytes of shared memory:
    GPUs have a separate instruction that counts the lanes of a word at once. SWAP is a compare-and-swap on shared
    memory, which takes two passes. COPY is the store of an asynchronous copy of 4 or 8 bytes a lane, which does not
    merge lanes.
    """

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"
    COUNT = "count"
    SWAP = "swap"
    COPY = "copy"


_NAMED = {Operation.COUNT: Operation.ATOMIC, Operation.SWAP: Operation.ATOMIC, Operation.COPY: Operation.STORE}


@dataclass(frozen=True)
class AccessKind:
    """The operation and the memory space of a statement. Its text, such as global_load, is the prefix of its counters.

    uncounted: the name of an access that no counter of memory has, in place of this text; empty for others.
    """

    space: Space
    operation: Operation
    uncounted: str = ""

    def __str__(self) -> str:
        return self.uncounted or f"{self.space}_{_NAMED.get(self.operation, self.operation)}"

    @property
    def atomic(self) -> bool:
        return self.operation not in (Operation.LOAD, Operation.STORE, Operation.COPY)


OUTSIDE, FREED = 1 << 62, 1 << 61
"""Bytes before the memory of an allocation: the offsets of an address in no allocation and in a freed one, whose extent is 0."""


def open_dimensions(access: ir.Access) -> list[tuple[ir.Expr, ir.Expr]]:
    """Return the index and the extent of each dimension whose bounds need a check, the block of a cluster last."""
    index, blocks = access.index, _block(access)
    pairs = [*zip(index.index, index.extents, strict=True)] if isinstance(index, ir.Within) else []
    pairs += [(blocks[0], blocks[1])] if blocks else []
    return [(position, extent) for position, extent in pairs if position is not None and not _holds(position, extent)]


def shown_dimensions(access: ir.Access) -> list[ir.Expr]:
    """Return the expressions of an access that diagnostics print: the indices, the extents, then the block and the blocks of a cluster."""
    index = access.index
    if not isinstance(index, ir.Within):
        return _block(access)
    return [*(position for position in index.index if position is not None), *index.extents, *_block(access)]


def _block(access: ir.Access) -> list[ir.Expr]:
    """Return the rank of the block whose memory an access reaches, and the size of its cluster; nothing for its own block."""
    return [] if access.block is None else [access.block, ir.Special("cluster_size", I32, access.span)]


def _holds(position: ir.Expr, extent: ir.Expr) -> bool:
    return isinstance(position, ir.Const) and isinstance(extent, ir.Const) and 0 <= position.value < extent.value
