"""The grammar of the IR: a typed, structured tree. All nodes but types have the span of their source.

Expressions are pure. An Effect accesses memory or other lanes. It may only be the right side of a Let, so the order
of effects is the order of statements. Masks are not in the tree: a statement runs for the lanes that reach it, and a
loop runs until no lane is left. A register is mutable and has one type. Names of generated registers contain `@`,
which the user's cannot.

Each component of a tuple or a struct is a register or parameter of its own (`names.component`). The result of a device function is
one `Results` value until calls are inlined.
Arrays have one dimension. An access to an array or a view with strides or more dimensions has a Within as its index: the `flat`
index and, for messages and checks, the indices and extents of the array `shown` in the source. An index is in 0 ... extent - 1;
None is a dimension that a view preserves. Extents and strides of such arrays of a launch are parameters of their own
(`names.extent`, `names.stride`). An access may have another type than the element of its array (`wide`): its index is in units of
its own type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Annotated, Any, TypeVar, dataclass_transform

from ..language.forms import (
    AccessOrder,
    AsyncMode,
    AtomicOp,
    BarrierMode,
    BulkReduction,
    FenceScope,
    MatrixMode,
    MemoryOrder,
    MemoryScope,
    ShuffleMode,
    VoteMode,
)
from ..language.tensor_maps import TensorMapForm
from ..language.textures import TextureForm
from ..language.types import U32, Array, Results, Scalar, Value
from ..span import Span

C = TypeVar("C")
ValueOrResults = Annotated[Value, Results]
"""A value's type. Until calls are inlined, it may be the `Results` of a device function."""


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[C]) -> type[C]:
    """A frozen dataclass compared by identity."""
    return dataclass(frozen=True, eq=False)(cls)


@dataclass(frozen=True)
class HostFunction:
    """A Python function. constants: compile-time values and variables of enclosing functions, by name. Pickled as None."""

    function: FunctionType
    constants: Mapping[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


# fmt: off
# ------------------------------------------------------------------ expressions: pure values
@node
class Const:   value: bool | int | float; type: Scalar; span: Span
@node
class Reg:     name: str; type: ValueOrResults; span: Span              # a variable of one thread
@node
class Item:    array: str; index: Expr; type: Value; span: Span         # a register array's element
@node
class Special: name: str; type: Scalar; span: Span                      # thread.x ... lane, warp
@node
class Op:      name: str; args: tuple[Expr, ...]; type: Scalar; span: Span   # a row of ops.TABLE
@node
class Pack:    args: tuple[Expr, ...]; type: ValueOrResults; span: Span # build a vector or results
@node
class Component: value: Expr; index: Expr; type: Value; span: Span      # of a vector or of results
@node
class Extent:  array: str; type: Scalar; span: Span                     # elements of an array
@node
class Defined: value: Op; type: Scalar; span: Span  # whether the operands are in the domain of the op
@node
class Within:  # an access's `flat` index, and the indices and extents of its dimensions
    flat: Expr; shown: str; index: tuple[Expr | None, ...]; extents: tuple[Expr, ...]; type: Scalar; span: Span

# ------------------------------------------------------------------ effects: the right side of a Let
@node
class Load:
    array: str; index: Expr; type: Value; span: Span; order: AccessOrder = "weak"; scope: MemoryScope = "device"
    lanes: int = 32                                                     # the first lanes of the warp, which access memory
    block: Expr | None = None                                           # the rank of another block of the cluster, i32
@node
class Fetch:
    """A fetch from a texture, before `passes.textures`. coordinates: x, y, z, of f32, or an index of i32. layer: of i32, None without.
    The result has four components."""

    array: str; coordinates: tuple[Expr, ...]; layer: Expr | None; form: TextureForm; type: ValueOrResults; span: Span
@node
class Atomic:
    op: AtomicOp; array: str; index: Expr; value: Expr; type: Value; span: Span
    order: MemoryOrder = "relaxed"; scope: MemoryScope = "device"; block: Expr | None = None
@node
class CompareSwap:
    array: str; index: Expr; expected: Expr; value: Expr; type: Scalar; span: Span
    order: MemoryOrder = "relaxed"; scope: MemoryScope = "device"; block: Expr | None = None
@node
class Shuffle:     mode: ShuffleMode; value: Expr; lane: Expr; width: int; mask: Expr; type: Scalar; span: Span
@node
class Vote:        mode: VoteMode; value: Expr; mask: Expr; type: Scalar; span: Span
@node
class Mma:         instruction: str; a: Expr; b: Expr; c: Expr; mask: Expr; type: Value; span: Span  # of matrices.INSTRUCTIONS
@node
class MoveMatrix:  mode: MatrixMode; transposed: bool; value: Expr; mask: Expr; type: Value; span: Span  # matrices.moved
@node
class Clock:       type: Scalar; span: Span
@node
class Barrier:     mode: BarrierMode; value: Expr; type: Scalar; span: Span  # the whole block; value: of count, and, or
@node
class Call:        function: str; args: tuple[Expr | ArrayRef, ...]; type: ValueOrResults | None; span: Span
@node
class ArrayRef:    name: str; span: Span                                # an array passed to a Call

# ------------------------------------------------------------------ statements
@node
class Let:         target: Reg | Item | None; value: Expr | Effect; span: Span; site: int = -1
@node
class Store:
    array: str; index: Expr; value: Expr; span: Span; site: int = -1
    order: AccessOrder = "weak"; scope: MemoryScope = "device"; lanes: int = 32; block: Expr | None = None
@node
class Alloc:
    """Allocation of a shared or local array.

    count: elements in dynamic shared memory, computed at launch; None for those that take the rest.
    """

    array: str; type: Array; values: tuple[int | float, ...]; span: Span; site: int = -1; count: Expr | None = None
@node
class If:          cond: Expr; then: Body; orelse: Body; span: Span; site: int = -1
@node
class While:       setup: Body; cond: Expr; body: Body; span: Span; site: int = -1  # setup before each test
@node
class For:
    """A counted loop over the numbers of Python's `range`.

    rises: whether the step is positive, although known only at run time. limit: the stop minus the step, saturated; None if
    the counter cannot wrap. Only a counter before the limit is stepped.
    """

    var: Reg; start: Expr; stop: Expr; step: int | Expr; unroll: bool; body: Body; span: Span; site: int = -1; rises: bool = False
    limit: Expr | None = None
@node
class Frame:       body: Body; span: Span; site: int = -1               # an inlined call: Return leaves it
@node
class Break:       span: Span; site: int = -1
@node
class Continue:    span: Span; site: int = -1
@node
class Return:      value: Expr | None; span: Span; site: int = -1
@node
class WarpBarrier: mask: Expr; span: Span; site: int = -1
@node
class Fence:       scope: FenceScope; span: Span; site: int = -1
@node
class AsyncCommit: span: Span; site: int = -1
@node
class AsyncWait:   pending: int; span: Span; site: int = -1
@node
class Wgmma:
    """A matrix multiply-accumulate of a warpgroup, before `passes.warpgroups`: of matrices.GROUP_INSTRUCTIONS.

    d: the register array of D. a: the fragment of A, or its descriptor, with the address from the start of the shared array `in_a`.
    b: the descriptor of B. add: whether D is added to the product. transposed: whether M, and N, are contiguous in memory in place of K.
    negative: whether the product is subtracted.
    """

    instruction: str; d: ArrayRef; a: Expr; in_a: ArrayRef | None; b: Expr; in_b: ArrayRef; add: Expr
    transposed: tuple[bool, bool]; negative: bool; span: Span; site: int = -1
@node
class BulkCopy:
    """A copy from global to shared memory that completes its bytes of a barrier, or one to global memory, before `passes.bulk_copies`.

    at, index: of the first element in `to` and in the source, in units of 16 bytes. barrier: None for a copy to global memory. which:
    the index of the barrier. op: of a copy to global memory that combines its elements of a type with those of the target.
    """

    to: ArrayRef; at: Expr; source: ArrayRef; index: Expr; bytes: Expr; barrier: ArrayRef | None; which: Expr; span: Span; site: int = -1
    op: BulkReduction | None = None; element: Scalar = U32
@node
class TensorCopy:
    """A copy of a box between an array with a tensor map and shared memory, before `passes.tensor_copies`.

    coordinates: of i32, the innermost first. at: of the box in shared memory, in units of 128 bytes. barrier, which, op: as those of a
    `BulkCopy`. words, word: of a tensor map that the kernel makes, the array of u64 with it and the index of its first word
    (`tensor_maps.FIRST_ELEMENT`); sizes and strides of the form have no meaning then.
    """

    tensor: ArrayRef; coordinates: tuple[Expr, ...]; form: TensorMapForm; shared: ArrayRef; at: Expr; barrier: ArrayRef | None
    which: Expr; span: Span; site: int = -1; words: ArrayRef | None = None; word: Expr | None = None; op: BulkReduction | None = None
@node
class AsyncOrder:  mode: AsyncMode; span: Span; site: int = -1; pending: int = 0  # of effects.ASYNC_ORDERS
@node
class Sleep:       time: Expr; span: Span; site: int = -1                # nanoseconds
@node
class Assert:
    """items: a message with values, in place of the text `message`. shown: values of the condition, for the finding."""

    cond: Expr; message: str; span: Span; site: int = -1; items: tuple[str | Expr, ...] = (); shown: tuple[Expr, ...] = ()
@node
class Print:
    """items: texts and values. names.CONVERSION in a text: a conversion of `printf` for the next values follows, to the end of the text;
    without one, the next print continues the line."""

    items: tuple[str | Expr, ...]; span: Span; site: int = -1
@node
class HostCall:    source: str; span: Span; site: int = -1               # a Python call, for engines that run Python
@node
class Check:                                                             # by the checker named `about`
    about: str; cond: Expr; subject: Expr; shown: tuple[Expr, ...]; span: Span; site: int = -1

# ------------------------------------------------------------------ tops
@node
class Param:       name: str; type: Value | Array; span: Span
@node
class Function:
    """host: the `HostFunction`, for engines that run Python; None for other front ends."""

    name: str; params: tuple[Param, ...]; body: Body; result: ValueOrResults | None; span: Span; host: Any = None
@node
class Program:     kernel: Function; functions: tuple[Function, ...]    # callees before callers
# fmt: on

Expr = Const | Reg | Item | Special | Op | Pack | Component | Extent | Defined | Within
Effect = Load | Fetch | Atomic | CompareSwap | Shuffle | Vote | Mma | MoveMatrix | Clock | Barrier | Call
Stmt = (
    Let | Store | Alloc | If | While | For | Frame | Break | Continue | Return
    | WarpBarrier | Fence | Sleep | AsyncCommit | AsyncWait | BulkCopy | TensorCopy | Wgmma | AsyncOrder | Assert | Print | HostCall | Check
)  # fmt: skip
Body = tuple[Stmt, ...]
Access = Load | Store | Atomic | CompareSwap

INDICES = {
    f"{index}.{letter}": (index, axis)
    for index in (
        "thread",
        "block",
        "block_dim",
        "grid_dim",
        "cluster_index",
        "cluster_block",
        "cluster_dim",
        "grid_clusters",
    )
    for axis, letter in enumerate("xyz")
}
"""The index and the axis (0, 1, 2) of each special name that has an axis."""
SPECIALS = (*INDICES, "lane", "warp", "cluster_rank", "cluster_size")
UNCOUNTED = -2
"""`site` of statements without instructions of their own, before the program is numbered."""
