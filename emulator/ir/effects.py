"""Table of effects: memory accesses, warp and block collectives, memory orders; one row an effect.

A row has the facts that the verifier, the printer, the passes, the checkers and the front end need: its text, its operands, the
memory spaces it reads and writes, the threads that execute it together, its site and its issue class. NumPy states the meaning of
a warp collective, as it does for an operation in `ops`. To add an effect, add its node to `nodes`, its row here, and its code to the
compiling engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..language.forms import MbarrierOp
from ..language.intrinsics import WARP_SIZE
from ..language.types import BOOL, F64, I32, I64, U32, U64, Scalar, Space, Vector
from . import nodes as ir
from .matrices import GROUP_INSTRUCTIONS, PARTS, registers
from .walk import statements

Values = npt.NDArray[Any]
Masks = npt.NDArray[np.uint32]
Capability = tuple[int, int]
"""Compute capability: major, minor."""
Needs = Iterable[tuple[str, Capability]]
"""Words of the language and the compute capability that each needs."""

LANE_BITS: Masks = np.uint32(1) << np.arange(WARP_SIZE, dtype=np.uint32)
ALL_LANES: Masks = np.array([0xFFFFFFFF], np.uint32)
SHUFFLE_WIDTHS = (2, 4, 8, 16, 32)
REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
MBARRIER_OPS: tuple[str, ...] = get_args(MbarrierOp)


@dataclass(frozen=True)
class Operand:
    """An operand of an effect.

    type: "element" for that of the accessed array, "result" for that of the effect, None for any.
    role: its name in messages. default: its constant where a call gives none.
    """

    type: Scalar | Literal["element", "result"] | None
    role: str = ""
    default: int | bool | None = None


MASK = Operand(U32, "a lane mask")


def _thread_varying(node: Any) -> None:
    """The result may differ between threads for any operands."""


def _needs_nothing(node: Any) -> Needs:
    return ()


@dataclass(frozen=True)
class Effect:
    """One effect.

    text: its printed form; {field} is a field of the node, {ordering} an order and a scope other than the defaults.
    action: the kind of its site, for an access the operation; "" for sites that only compute. issue: the issue class.
    operands: by field, in the order of the arguments of a call of the language.
    spaces: the memory spaces it may access. writes: whether it writes memory.
    scope: the threads that execute it together. aligned: whether all 32 lanes of a warp must execute it, those that returned included.
    transition: its function in `sanitizer.races.happens_before`.
    on_host: whether a native function (one thread on the host) may perform it.
    uniform_where: expressions; the result is uniform where all of them are. None for a result that never is.
    rules: conditions on a node and their messages, for the verifier.
    needs: words with a compute capability above the oldest.
    label: its name in messages of the checkers.
    meaning: for warp collectives, a function of (node, named lanes u32[..., 32], operands without the mask, each [..., 32])
        to the results [..., 32].
    """

    node: type[Any]
    text: str
    action: str = ""
    issue: str = ""
    operands: Mapping[str, Operand] = field(default_factory=dict)
    spaces: tuple[Space, ...] = ()
    writes: bool = False
    scope: Literal["thread", "warp", "block"] = "thread"
    aligned: bool = False
    transition: str = ""
    on_host: bool = False
    uniform_where: Callable[[Any], tuple[ir.Expr, ...] | None] = _thread_varying
    rules: tuple[tuple[Callable[[Any], bool], str], ...] = ()
    needs: Callable[[Any], Needs] = _needs_nothing
    label: Callable[[Any], str] = lambda node: type(node).__name__.lower()
    meaning: Callable[..., Values] | None = None

    @property
    def is_statement(self) -> bool:
        """Whether the effect has no result and is a statement of its own."""
        return self.node in get_args(ir.Stmt)


# ------------------------------------------------------------------ compute capabilities
_ATOMIC_TYPES: dict[str, Capability] = {"f16": (7, 0), "half2": (6, 0), "bf16": (8, 0), "bfloat162": (8, 0)}


def _ordered_access_needs(access: ir.Load | ir.Store) -> Needs:
    yield from _cluster_needs(access)
    if access.order == "async":
        yield "st.async_copy", (8, 0)
    elif access.order == "mbarrier":
        yield "st.mbarrier_init", (8, 0)
    elif access.order in ("acquire", "release"):
        yield ("st.load_acquire" if access.order == "acquire" else "st.store_release"), (7, 0)


def _cluster_needs(access: ir.Access) -> Needs:
    if access.block is not None:
        yield "st.map_shared_rank", (9, 0)


def _atomic_needs(atomic: ir.Atomic | ir.CompareSwap) -> Needs:
    yield from _cluster_needs(atomic)
    word = f"st.atomic_{atomic.op}" if isinstance(atomic, ir.Atomic) else "st.compare_swap"
    if isinstance(atomic, ir.Atomic) and atomic.op in MBARRIER_OPS:
        yield f"st.{atomic.op}", (9, 0) if _needs_transactions(atomic) else (8, 0)
        return
    if str(atomic.type) in _ATOMIC_TYPES:
        yield f"{word} on {atomic.type}", _ATOMIC_TYPES[str(atomic.type)]
    elif isinstance(atomic.type, Vector):
        yield f"{word} on {atomic.type}", (9, 0)
    elif atomic.type is F64 and word == "st.atomic_add":
        yield f"{word} on f64", (6, 0)
    if atomic.order != "relaxed":
        yield f'order="{atomic.order}"', (7, 0)
    if atomic.scope != "device":
        yield f'scope="{atomic.scope}"', (6, 0)


def _needs_transactions(atomic: ir.Atomic) -> bool:
    """Return whether an operation on a barrier counts bytes, or more than one arrival."""
    several = atomic.op == "mbarrier_arrive" and getattr(atomic.value, "value", 0) != 1
    return several or atomic.op.endswith("_tx") or atomic.op.startswith("mbarrier_try")


def is_extreme_of_floats(atomic: ir.Atomic) -> bool:
    """Return whether an atomic operation is a minimum or maximum of floats: in CUDA a loop of compare-and-swaps."""
    return atomic.op in ("min", "max") and isinstance(atomic.type, Scalar) and atomic.type.is_float


def _is_relaxed_extreme(atomic: ir.Atomic) -> bool:
    return not is_extreme_of_floats(atomic) or atomic.order == "relaxed"


def _vote_needs(vote: ir.Vote) -> Needs:
    if vote.mode in ("match", "match_all"):
        yield f"st.{'match_any' if vote.mode == 'match' else vote.mode}", (7, 0)
    elif vote.mode in REDUCTIONS:
        yield f"st.reduce_{vote.mode}", (8, 0)


CLUSTER_BARRIERS = {"cluster": "cluster_sync", "cluster_arrive": "cluster_arrive", "cluster_wait": "cluster_wait"}
"""The function of the language for each mode of an `ir.Barrier` of a cluster."""


COUNTING_BARRIERS = ("count", "and", "or")
"""Modes of an `ir.Barrier` with a result."""


def _barrier_needs(barrier: ir.Barrier) -> Needs:
    if barrier.mode in CLUSTER_BARRIERS:
        yield f"st.{CLUSTER_BARRIERS[barrier.mode]}", (9, 0)


# ------------------------------------------------------------------ collectives of the warp
def lane_bits(active: npt.NDArray[np.bool_]) -> Masks:
    """u32[..., 1], the masks of bool[..., 32]."""
    return np.asarray(np.where(active, LANE_BITS, np.uint32(0)).sum(axis=-1, keepdims=True, dtype=np.uint32))


def wrong_masks(masks: Masks, own: Masks, active: Masks, alive: Masks) -> tuple[Masks, npt.NDArray[np.bool_]]:
    """Return the lanes that each lane's mask names and that wait elsewhere, and whether the mask omits its own lane.

    masks, own: u32[...], the masks, and the bits of their lanes. active, alive: the lanes that execute the effect, and those that have
    not returned.
    """
    return masks & alive & ~active, (masks & own) == 0


def source_lanes(node: ir.Shuffle, argument: Values) -> Values:
    """Return the lane that each lane reads, i32[..., 32]: its own where there is none. argument: i32[..., 32] or i32[..., 1]."""
    lane, offset = np.arange(WARP_SIZE, dtype=np.int32), argument & np.int32(WARP_SIZE - 1)
    first, last = lane & -node.width, lane | (node.width - 1)
    if node.mode == "idx":
        return np.asarray(first + (offset & (node.width - 1)))
    source = {"up": np.subtract, "down": np.add, "xor": np.bitwise_xor}[node.mode](lane, offset)
    return np.where(source < first if node.mode == "up" else source > last, lane, source)


_COMBINE: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def _neutral(op: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a reduction of integers."""
    whole = np.iinfo(dtype)
    ones = np.array(-1 if dtype.kind == "i" else whole.max, dtype)
    return {"min": whole.max, "max": whole.min, "and": ones}.get(op, dtype.type(0))


def _vote(node: ir.Vote, named: Masks, values: Values) -> Values:
    """The predicates or values of the named lanes, combined."""
    if node.mode in ("match", "match_all"):
        values = values.view(f"u{values.dtype.itemsize}")  # CUDA compares the bits
        equal = np.zeros(values.shape, np.uint32)
        for lane in range(WARP_SIZE):
            equal |= np.where(values == values[..., lane : lane + 1], LANE_BITS[lane], np.uint32(0))
        matching = equal & named
        return np.where(matching == named, named, np.uint32(0)) if node.mode == "match_all" else matching
    if node.mode in REDUCTIONS:
        included = (named[..., None] & LANE_BITS) != 0
        own = np.broadcast_to(values[..., None, :], included.shape)
        start = _neutral(node.mode, values.dtype)
        reduced: Values = _COMBINE[node.mode].reduce(own, axis=-1, where=included, initial=start)
        return np.asarray(reduced, values.dtype)
    holds = lane_bits(values) & named
    result: Values = {"any": holds != 0, "all": holds == named}.get(node.mode, holds)
    return result


def _votes_uniformly(vote: ir.Vote) -> tuple[ir.Expr, ...] | None:
    if vote.mode.startswith("match"):
        return None
    return () if vote.mode == "active" else (vote.mask,)


# ------------------------------------------------------------------ matrices
def _mma_needs(node: ir.Mma) -> Needs:
    yield f"st.mma of {node.instruction}", PARTS[node.instruction].needs


def _has_fragments(node: ir.Mma) -> bool:
    row = PARTS.get(node.instruction)
    return row is not None and (node.a.type, node.b.type, node.c.type) == row.types


def _matrix_needs(node: ir.MoveMatrix) -> Needs:
    yield f"st.{node.mode}_matrix", (9, 0) if node.mode == "store" else (7, 5)


def _moves_registers(node: ir.MoveMatrix) -> bool:
    four, some = registers(U32, 4), tuple(registers(U32, count) for count in (1, 2, 4))
    value, result = node.value.type, node.type
    if node.mode == "move":
        return value == result == U32
    return (value == four and result in some) if node.mode == "load" else (result == four and value in some)


def _group_needs(node: ir.Wgmma | ir.AsyncOrder | ir.BulkCopy | ir.TensorCopy) -> Needs:
    if isinstance(node, ir.AsyncOrder):
        yield f"st.{ASYNC_ORDERS[node.mode][0]}", (9, 0)
    elif isinstance(node, ir.Wgmma):
        yield "st.wgmma", (9, 0)
    else:
        kind = "tensor" if isinstance(node, ir.TensorCopy) else "bulk"
        yield f"st.{kind}_{'copy' if node.barrier else 'store'}", (9, 0)


def _has_operands(node: ir.Wgmma) -> bool:
    row = GROUP_INSTRUCTIONS.get(node.instruction)
    if row is None:
        return False
    fixed = row.part.a not in ("f16", "bf16")
    a = U64 if node.in_a is not None else row.part.types[0]
    return (node.a.type, node.b.type, node.add.type) == (a, U64, BOOL) and not (fixed and any(node.transposed))


ASYNC_ORDERS = {
    "fence": ("wgmma_fence", "wgmma.fence.sync.aligned"),
    "commit": ("wgmma_commit", "wgmma.commit_group.sync.aligned"),
    "wait": ("wgmma_wait", "wgmma.wait_group.sync.aligned"),
    "proxy": ("fence_async", "fence.proxy.async.shared::cta"),
    "bulk_commit": ("bulk_commit", "cp.async.bulk.commit_group"),
    "bulk_wait": ("bulk_wait", "cp.async.bulk.wait_group"),
    "bulk_wait_read": ("bulk_wait_read", "cp.async.bulk.wait_group.read"),
}
"""The function of the language and the PTX instruction of each mode of a `AsyncOrder`."""


# ------------------------------------------------------------------ the table
_INDEX = Operand(None, "an index")
_ELEMENT = Operand("element")

ROWS = (
    Effect(
        ir.Load,
        "load {array}[{index}]{ordering}{remote}",
        action="load",
        issue="memory",
        operands={"index": _INDEX},
        spaces=("global", "shared", "local", "constant", "texture"),
        on_host=True,
        uniform_where=lambda load: (load.index, *[load.block] * (load.block is not None)),
        needs=_ordered_access_needs,
    ),
    Effect(
        ir.Fetch,
        "fetch {array}({coordinates}) layer {layer} as {form}",
        action="load",
        issue="memory",
        uniform_where=lambda fetch: (*fetch.coordinates, *[fetch.layer] * (fetch.layer is not None)),
        rules=(
            (lambda node: len(node.coordinates) == len(node.form.extents), "one coordinate a dimension of the texture"),
        ),
    ),
    Effect(
        ir.Store,
        "{array}[{index}] = {value}{ordering}{remote}",
        action="store",
        issue="memory",
        operands={"index": _INDEX, "value": _ELEMENT},
        spaces=("global", "shared", "local"),
        writes=True,
        on_host=True,
        needs=_ordered_access_needs,
    ),
    Effect(
        ir.Atomic,
        "atomic {op} {array}[{index}], {value}{ordering}{remote}",
        action="atomic",
        issue="atomic",
        operands={"index": _INDEX, "value": _ELEMENT},
        spaces=("global", "shared"),
        writes=True,
        needs=_atomic_needs,
        rules=((_is_relaxed_extreme, "an atomic minimum or maximum of floats is relaxed"),),
    ),
    Effect(
        ir.CompareSwap,
        "compare_swap {array}[{index}], {expected}, {value}{ordering}{remote}",
        action="atomic",
        issue="atomic",
        operands={"index": _INDEX, "expected": _ELEMENT, "value": _ELEMENT},
        spaces=("global", "shared"),
        writes=True,
        needs=_atomic_needs,
    ),
    Effect(
        ir.Shuffle,
        "shuffle {mode} {value}, {lane}, width {width}, mask {mask}",
        action="shuffle",
        issue="shuffle",
        operands={"value": Operand("result"), "lane": Operand(I32), "mask": MASK},
        scope="warp",
        rules=((lambda node: node.width in SHUFFLE_WIDTHS, "a shuffle's width"),),
    ),
    Effect(
        ir.Vote,
        "vote {mode} {value}, mask {mask}",
        action="vote",
        issue="vote",
        operands={"value": Operand(None), "mask": MASK},
        scope="warp",
        uniform_where=_votes_uniformly,
        needs=_vote_needs,
        label=lambda vote: f"{vote.mode} vote",
        meaning=_vote,
    ),
    Effect(
        ir.Mma,
        "mma {instruction} {a}, {b}, {c}",
        action="mma",
        issue="tensor",
        operands={"a": Operand(None), "b": Operand(None), "c": Operand("result"), "mask": MASK},
        scope="warp",
        aligned=True,
        needs=_mma_needs,
        rules=((_has_fragments, "an instruction of the tensor cores, with its fragments"),),
        label=lambda node: "mma",
    ),
    Effect(
        ir.MoveMatrix,
        "{mode} matrix {value}, transposed {transposed}",
        operands={"value": Operand(None), "mask": MASK},
        scope="warp",
        aligned=True,
        needs=_matrix_needs,
        rules=((_moves_registers, "registers of 8x8 matrices"),),
        label=lambda node: f"{node.mode}_matrix",
    ),
    Effect(
        ir.Wgmma,
        "wgmma {instruction} {d} = {a} in {in_a}, {b} in {in_b}, add {add}, transposed {transposed}, negative {negative}",
        issue="tensor",
        operands={"a": Operand(None), "b": Operand(U64), "add": Operand(BOOL, default=True)},
        scope="warp",
        aligned=True,
        needs=_group_needs,
        rules=((_has_operands, "an instruction of a warpgroup, with its operands"),),
    ),
    Effect(ir.AsyncOrder, "order {mode} {pending}", transition="order_async", needs=_group_needs),
    Effect(
        ir.Clock,
        "clock {type}",
        rules=((lambda clock: clock.type in (I32, I64), "a clock has 32 or 64 bits"),),
    ),
    Effect(
        ir.Barrier,
        "barrier {mode} {value}",
        action="barrier",
        issue="barrier",
        operands={"value": Operand(BOOL, default=True)},
        scope="block",
        transition="barrier",
        uniform_where=lambda barrier: (),
        needs=_barrier_needs,
    ),
    Effect(ir.Call, "call {function}({args})", on_host=True),
    Effect(
        ir.WarpBarrier,
        "syncwarp {mask}",
        action="syncwarp",
        issue="barrier",
        operands={"mask": MASK},
        scope="warp",
        transition="syncwarp",
        label=lambda node: "syncwarp",
    ),
    Effect(ir.Fence, "fence {scope}", action="fence", issue="memory", transition="fence"),
    Effect(ir.AsyncCommit, "commit copies", transition="commit_copies"),
    Effect(ir.AsyncWait, "wait for copies but {pending}", transition="wait_for_copies"),
    Effect(
        ir.BulkCopy,
        "bulk copy {to}[{at}] = {source}[{index}], {bytes} bytes, barrier {barrier}[{which}], {op} of {element}",
        issue="memory",
        operands={"at": _INDEX, "index": _INDEX, "bytes": Operand(I32), "which": _INDEX},
        needs=_group_needs,
    ),
    Effect(
        ir.TensorCopy,
        "tensor copy {tensor}({coordinates}) as {form}, {shared}[{at}], barrier {barrier}[{which}], {op}",
        issue="memory",
        operands={"at": _INDEX, "which": _INDEX},
        needs=_group_needs,
        rules=(
            (lambda node: len(node.coordinates) == len(node.form.sizes), "one coordinate a dimension of the tensor"),
        ),
    ),
    Effect(
        ir.Sleep,
        "sleep {time}",
        operands={"time": Operand(U32, "a time in nanoseconds")},
        needs=lambda sleep: (("st.nanosleep", (7, 0)),),
    ),
)
TABLE: Mapping[type, Effect] = {row.node: row for row in ROWS}


def performed(stmt: ir.Stmt) -> Any:
    """The node of the effect that a statement performs: a Let's right side, or the statement itself; None without one."""
    node = stmt.value if isinstance(stmt, ir.Let) else stmt
    return node if type(node) in TABLE else None


def row_of(stmt: ir.Stmt) -> Effect | None:
    """The row of the effect that a statement performs."""
    return TABLE.get(type(stmt.value if isinstance(stmt, ir.Let) else stmt))


def written_array(stmt: ir.Stmt) -> str | None:
    """The array that a statement's access writes."""
    row = row_of(stmt)
    if isinstance(stmt, ir.BulkCopy):
        return stmt.to.name
    if isinstance(stmt, ir.TensorCopy):
        return (stmt.shared if stmt.barrier else stmt.tensor).name
    return performed(stmt).array if row is not None and row.writes else None


PLAIN_ORDERS = ("weak", "async", "bulk", "wgmma", "mbarrier")
"""Orders of accesses that race with other threads' accesses."""


def is_ordered(access: ir.Access) -> bool:
    """Whether other threads may access the element at the same time."""
    return access.order not in PLAIN_ORDERS


def accesses(kernel: ir.Function) -> Iterator[tuple[ir.Stmt, ir.Access]]:
    """The statements of a kernel that access memory, and their accesses."""
    for stmt in statements(kernel.body):
        if isinstance(access := performed(stmt), ir.Access):
            yield stmt, access
