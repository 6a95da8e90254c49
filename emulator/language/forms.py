"""Forms of intrinsics: the meaning of a call as data for the front end."""

from dataclasses import dataclass
from typing import Literal

BarrierMode = Literal["sync", "count", "and", "or", "grid", "cluster", "cluster_arrive", "cluster_wait"]
ShuffleMode = Literal["idx", "up", "down", "xor"]
ReductionOp = Literal["add", "min", "max", "and", "or", "xor"]
VoteMode = Literal["ballot", "any", "all", "active", "match", "match_all"] | ReductionOp
LaneOrder = Literal["lt", "le", "eq", "ge", "gt"]
MbarrierOp = Literal[
    "mbarrier_arrive", "mbarrier_arrive_expect_tx", "mbarrier_expect_tx", "mbarrier_complete_tx", "mbarrier_test_wait",
    "mbarrier_test_wait_parity", "mbarrier_try_wait_parity",
]  # fmt: skip
AtomicOp = (
    Literal["add", "sub", "inc", "dec", "min", "max", "and", "or", "xor", "exchange", "add_ftz", "sub_ftz"] | MbarrierOp
)
BulkReduction = Literal["add", "min", "max", "inc", "dec", "and", "or", "xor"]
MemoryScope = Literal["block", "device", "system"]
AccessOrder = Literal["weak", "volatile", "acquire", "release", "async", "bulk", "wgmma", "mbarrier"]
MemoryOrder = Literal["relaxed", "acquire", "release", "acq_rel"]
FenceScope = Literal["block", "device"]
MatrixMode = Literal["load", "store", "move"]
AsyncMode = Literal["fence", "commit", "wait", "proxy", "bulk_commit", "bulk_wait", "bulk_wait_read"]
AllocatedSpace = Literal["shared", "local", "register", "constant"]


@dataclass(frozen=True)
class AllocationForm:
    """An array declared by an assignment. dynamic: its size is a launch argument."""

    space: AllocatedSpace
    dynamic: bool = False


@dataclass(frozen=True)
class EffectForm:
    """An effect of the IR. Its row in `ir.effects` converts the arguments of the call, in order.

    node: the name of its node. mode, scope: fields of the node. result: the type of the call's value, "" for no value.
    """

    node: str
    mode: str = ""
    scope: str = ""
    result: str = ""


@dataclass(frozen=True)
class ShuffleForm:
    """A shuffle. lane: name of the parameter for the source lane."""

    mode: ShuffleMode
    lane: str


@dataclass(frozen=True)
class VoteForm:
    """A vote of the named lanes with a value of type `result`."""

    mode: VoteMode
    result: str


@dataclass(frozen=True)
class MatchAllForm:
    """A comparison of all operands of the named lanes, and the lanes."""


@dataclass(frozen=True)
class ReductionForm:
    """A reduction over the named lanes."""

    op: ReductionOp


@dataclass(frozen=True)
class LaneMaskForm:
    """A mask of the lanes below, up to, at, from or above this lane."""

    order: LaneOrder


@dataclass(frozen=True)
class AtomicUpdateForm:
    """A read-modify-write of one element; returns the old value."""

    op: AtomicOp


@dataclass(frozen=True)
class CompareAndSwapForm:
    """An exchange conditional on the expected value."""


@dataclass(frozen=True)
class OrderedLoadForm:
    """A load that may race with stores of other threads."""

    order: AccessOrder


@dataclass(frozen=True)
class OrderedStoreForm:
    """A store that may race with loads of other threads."""

    order: AccessOrder


@dataclass(frozen=True)
class AsyncCopyForm:
    """An asynchronous copy of an element to shared memory."""


@dataclass(frozen=True)
class AsyncWaitForm:
    """A wait for groups of asynchronous copies; with a mode, for those of another `AsyncOrder`."""

    mode: AsyncMode | None = None


@dataclass(frozen=True)
class MbarrierForm:
    """An operation on a barrier in shared memory; None for its initialisation or its end."""

    op: MbarrierOp | None


@dataclass(frozen=True)
class BulkCopyForm:
    """A copy between global and shared memory. stores: to global memory; else it completes bytes of a barrier."""

    stores: bool = False


@dataclass(frozen=True)
class TensorCopyForm(BulkCopyForm):
    """A copy of a box between a tensor map and shared memory."""


@dataclass(frozen=True)
class MappedSharedForm:
    """The shared array of another block of the cluster."""


@dataclass(frozen=True)
class MmaForm:
    """A matrix multiply-accumulate of a warp."""


@dataclass(frozen=True)
class MatrixForm:
    """A load, a store or a transposition of 8x8 matrices of a warp."""

    mode: MatrixMode


@dataclass(frozen=True)
class WgmmaForm:
    """A matrix multiply-accumulate of a warpgroup."""


@dataclass(frozen=True)
class DescriptorForm:
    """The descriptor of a matrix in shared memory."""


@dataclass(frozen=True)
class OperationForm:
    """A row of the op table. order: parameter positions of its operands; all in order if empty."""

    op: str
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class OperationsForm:
    """Several unary rows applied to one argument: a tuple of their results."""

    ops: tuple[str, ...]


@dataclass(frozen=True)
class ConjugateForm:
    """The conjugate of a complex number."""


@dataclass(frozen=True)
class BitcastForm:
    """The same bits as another type."""


@dataclass(frozen=True)
class UnrolledRangeForm:
    """The range of an unrolled loop; valid only in a `for`."""


Form = (
    AllocationForm | EffectForm | ShuffleForm | VoteForm | MatchAllForm | ReductionForm | LaneMaskForm
    | AtomicUpdateForm | CompareAndSwapForm | OrderedLoadForm | OrderedStoreForm | AsyncCopyForm | AsyncWaitForm
    | MbarrierForm | BulkCopyForm | TensorCopyForm | MappedSharedForm | MmaForm | MatrixForm | WgmmaForm | DescriptorForm
    | OperationForm | OperationsForm | ConjugateForm | BitcastForm | UnrolledRangeForm
)  # fmt: skip
