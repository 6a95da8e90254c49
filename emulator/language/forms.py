"""The forms of intrinsics: what a call means, as data that the front end reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BarrierMode = Literal["sync", "count", "and", "or"]
ShuffleMode = Literal["idx", "up", "down", "xor"]
VoteMode = Literal["ballot", "any", "all", "active", "match"]
AtomicOp = Literal["add", "min", "max", "and", "or", "xor", "exchange"]
FenceScope = Literal["block", "device"]
AllocatedSpace = Literal["shared", "local", "register", "constant"]


@dataclass(frozen=True)
class Allocation:
    """An array declared by an assignment. dynamic: its size is given at launch."""

    space: AllocatedSpace
    dynamic: bool = False


@dataclass(frozen=True)
class View:
    """An array seen in two dimensions, declared by an assignment."""


@dataclass(frozen=True)
class BlockBarrier:
    """A barrier of the block; `result` is the type of what it gives back."""

    mode: BarrierMode
    result: str


@dataclass(frozen=True)
class WarpBarrier:
    """A barrier of the named lanes."""


@dataclass(frozen=True)
class Fence:
    """An order of the thread's own memory accesses, as seen by `scope`."""

    scope: FenceScope


@dataclass(frozen=True)
class Shuffle:
    """A value of another lane; `lane` is the name of the parameter that selects it."""

    mode: ShuffleMode
    lane: str


@dataclass(frozen=True)
class Vote:
    """A value of type `result` computed from the operands of the named lanes."""

    mode: VoteMode
    result: str


@dataclass(frozen=True)
class AtomicUpdate:
    """A read-modify-write of one element; gives back the old value."""

    op: AtomicOp


@dataclass(frozen=True)
class CompareAndSwap:
    """An exchange that happens where the element has the expected value."""


@dataclass(frozen=True)
class Operation:
    """A row of the op table, applied to the arguments in the order of the parameters."""

    op: str


@dataclass(frozen=True)
class Bitcast:
    """The same bits as another type."""


@dataclass(frozen=True)
class UnrolledRange:
    """The range of a loop that is written out; stands only in a `for`."""


Form = (
    Allocation | View | BlockBarrier | WarpBarrier | Fence | Shuffle | Vote | AtomicUpdate | CompareAndSwap | Operation
    | Bitcast | UnrolledRange
)  # fmt: skip
