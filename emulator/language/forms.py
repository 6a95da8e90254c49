"""The forms of intrinsics: what a call means, as data that the front end reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BarrierMode = Literal["sync", "count", "and", "or", "grid"]
ShuffleMode = Literal["idx", "up", "down", "xor"]
ReductionOp = Literal["add", "min", "max", "and", "or", "xor"]
VoteMode = Literal["ballot", "any", "all", "active", "match", "match_all"] | ReductionOp
LaneOrder = Literal["lt", "le", "eq", "ge", "gt"]
AtomicOp = Literal["add", "sub", "inc", "dec", "min", "max", "and", "or", "xor", "exchange"]
MemoryScope = Literal["block", "device", "system"]
AccessOrder = Literal["weak", "volatile", "acquire", "release", "async"]
MemoryOrder = Literal["relaxed", "acquire", "release", "acq_rel"]
FenceScope = Literal["block", "device"]
AllocatedSpace = Literal["shared", "local", "register", "constant"]


@dataclass(frozen=True)
class Allocation:
    """An array declared by an assignment. dynamic: its size is given at launch."""

    space: AllocatedSpace
    dynamic: bool = False


@dataclass(frozen=True)
class Effect:
    """An effect of the IR. Its row in `ir.effects` converts the arguments of the call, in order.

    node: the name of its node. mode, scope: fields of the node. result: the type of the call's value, "" for no value.
    """

    node: str
    mode: str = ""
    scope: str = ""
    result: str = ""


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
class MatchAll:
    """Whether the operands of the named lanes are all equal, and those lanes."""


@dataclass(frozen=True)
class Reduction:
    """The operands of the named lanes, combined."""

    op: ReductionOp


@dataclass(frozen=True)
class LaneMask:
    """The lanes that stand in an order to this one."""

    order: LaneOrder


@dataclass(frozen=True)
class AtomicUpdate:
    """A read-modify-write of one element; gives back the old value."""

    op: AtomicOp


@dataclass(frozen=True)
class CompareAndSwap:
    """An exchange that happens where the element has the expected value."""


@dataclass(frozen=True)
class OrderedLoad:
    """A load that other threads may store at the same time."""

    order: AccessOrder


@dataclass(frozen=True)
class OrderedStore:
    """A store that other threads may load at the same time."""

    order: AccessOrder


@dataclass(frozen=True)
class AsyncCopy:
    """A copy of an element to shared memory that goes on by itself."""


@dataclass(frozen=True)
class AsyncWait:
    """A wait for groups of asynchronous copies."""


@dataclass(frozen=True)
class Operation:
    """A row of the op table. order: its operands as places among the parameters; all in their order where it is empty."""

    op: str
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Operations:
    """Several rows of one operand, applied to the same argument: a tuple of their results."""

    ops: tuple[str, ...]


@dataclass(frozen=True)
class Conjugate:
    """The conjugate of a complex number."""


@dataclass(frozen=True)
class Bitcast:
    """The same bits as another type."""


@dataclass(frozen=True)
class UnrolledRange:
    """The range of a loop that is written out; stands only in a `for`."""


Form = (
    Allocation | Effect | Shuffle | Vote | MatchAll | Reduction | LaneMask | AtomicUpdate | CompareAndSwap | OrderedLoad
    | OrderedStore | AsyncCopy | AsyncWait | Operation | Operations | Conjugate | Bitcast | UnrolledRange
)  # fmt: skip
