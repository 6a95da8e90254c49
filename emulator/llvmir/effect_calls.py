"""Calls of the functions that the headers of CUDA C++ declare: operations and effects of the IR by name, `simtbed.` and words.

A function of memory ends in the type of its element, and its last operands are the order and the scope of nvcc's constants.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.forms import AtomicOp, MemoryOrder, MemoryScope
from ..language.intrinsics import WARP_SIZE
from ..language.types import BOOL, I8, I32, SCALARS, U32, VECTORS, Scalar, Vector
from .accesses import Scope
from .arithmetic import bitcast, cast, compared, constant, operation, selected, signed, unsigned
from .arrays import Need, Ordering, atomic_need
from .calls import Handler, fixed, operand_values
from .module import Instruction, Number, Operand
from .printing import text_at
from .texture_calls import CALLS as TEXTURE_CALLS
from .thread_calls import active_mask_call, clock, sleep, warp_barrier
from .types import UnsupportedError, scalar_of
from .values import Item, truth

PREFIX = "simtbed."
"""The beginning of the name of a function of the headers."""
OPERATION = "op"
_ORDERS: Mapping[int, MemoryOrder] = {
    0: "relaxed",
    1: "acquire",
    2: "acquire",
    3: "release",
    4: "acq_rel",
    5: "acq_rel",
}
_SCOPES: Mapping[int, MemoryScope] = {0: "device", 1: "block", 2: "device", 3: "device", 4: "system"}


def typed(value: ir.Expr, type: Scalar) -> ir.Expr:
    """Return an operand of LLVM as a number of a type of its size."""
    if type is BOOL or value.type is BOOL:
        return truth(value) if type is BOOL else cast(value, type)
    return bitcast(value, type)


def returned(value: ir.Expr, call: Instruction) -> ir.Expr:
    """Return a number as the result of a call."""
    return typed(value, scalar_of(call.type))


def words_of(call: Instruction) -> list[str]:
    return call.function.removeprefix(PREFIX).split(".")


def _row(scope: Scope, call: Instruction) -> Item:
    """A row of the op table: name, type, and for each argument the number of the operand."""
    _, name, type_name, places = words_of(call)
    row, type = TABLE[name], SCALARS[type_name]
    arguments = operand_values(scope, call)
    types = row.operand_types(type)
    operands: list[Any] = [None] * len(types)
    for place, value in zip(map(int, places), arguments, strict=True):
        operands[place] = typed(value, types[place])
    return returned(operation(name, *operands), call)


# ------------------------------------------------------------------ memory
def element_of(call: Instruction) -> Scalar | Vector:
    """Return the type of the elements that a function of memory accesses."""
    name = words_of(call)[-1]
    return SCALARS.get(name) or VECTORS[name]


def _ordering(scope: Scope, call: Instruction) -> Ordering:
    order, level = (
        fixed(scope.values.expr(operand), "order or scope of an atomic operation") for operand in call.operands[-2:]
    )
    if order not in _ORDERS or level not in _SCOPES:
        raise UnsupportedError("the order and the scope of an atomic operation must be constants of CUDA")
    return _ORDERS[order], _SCOPES[level]


def accesses_of(call: Instruction) -> Iterator[tuple[Operand, Scalar, Need]]:
    """Yield the pointers of a call of the headers, each with the type of the elements and the need of the access."""
    if not call.function.startswith(PREFIX):
        return
    words = words_of(call)
    match words[0]:
        case "atomic" | "swap" | "load" | "store" if words[-1] in SCALARS or words[-1] in VECTORS:
            type = element_of(call)
            lane = type.element if isinstance(type, Vector) else I8 if type is BOOL else type
            op = words[1] if words[0] == "atomic" else "cas"
            yield call.operands[0], lane, atomic_need(op, type) if words[0] in ("atomic", "swap") else "any"
        case "copy_async":
            size = call.operands[2]
            unit = COPIED.get(int(size.value)) if isinstance(size, Number) else None
            if unit is not None:
                for operand in call.operands[:2]:
                    yield operand, unit.element if isinstance(unit, Vector) else unit, "any"


def _atomic(scope: Scope, call: Instruction) -> Item:
    op: AtomicOp = words_of(call)[1]  # type: ignore[assignment]
    pointer, type, order = scope.values.pointer(call.operands[0]), element_of(call), _ordering(scope, call)
    used = scope.values.uses[call.name] > 0
    if isinstance(type, Vector):
        return scope.arrays.atomic_vector(pointer, scope.values.items(call.operands[1]), type, used, order)
    value = typed(scope.values.expr(call.operands[1]), type)
    return returned(scope.arrays.atomic(op, pointer, value, used, call.name or "old", order), call)


def _swap(scope: Scope, call: Instruction) -> Item:
    type = element_of(call)
    assert isinstance(type, Scalar)
    pointer = scope.values.pointer(call.operands[0])
    expected, value = (typed(scope.values.expr(operand), type) for operand in call.operands[1:3])
    return returned(
        scope.arrays.compare_swap(pointer, expected, value, call.name or "old", _ordering(scope, call)), call
    )


def _load(scope: Scope, call: Instruction) -> Item:
    type, (order, level) = element_of(call), _ordering(scope, call)
    assert isinstance(type, Scalar)
    pointer = scope.values.pointer(call.operands[0])
    loaded = scope.arrays.load(pointer, type, "acquire" if order == "acquire" else "volatile", call.name, level)
    return returned(loaded, call)


def _store(scope: Scope, call: Instruction) -> None:
    type, (order, level) = element_of(call), _ordering(scope, call)
    assert isinstance(type, Scalar)
    pointer, value = scope.values.pointer(call.operands[0]), typed(scope.values.expr(call.operands[1]), type)
    scope.arrays.store(pointer, value, "release" if order == "release" else "volatile", level)


COPIED: Mapping[int, Scalar | Vector] = {4: U32, 8: VECTORS["uint2"], 16: VECTORS["uint4"]}
"""Types of asynchronous copies by their bytes."""


def _copy(scope: Scope, call: Instruction) -> None:
    target, source = (scope.values.pointer(operand) for operand in call.operands[:2])
    size = fixed(scope.values.expr(call.operands[2]), "size of an asynchronous copy")
    unit = COPIED.get(size)
    if unit is None:
        raise UnsupportedError(f"an asynchronous copy of {size} bytes is not supported")
    copy_async(scope, target, source, unit)


def copy_async(scope: Scope, target: Any, source: Any, unit: Scalar | Vector) -> None:
    """Copy a value asynchronously."""
    if isinstance(unit, Vector):
        scope.arrays.store_vector(target, scope.arrays.load_vector(source, unit, "async", "copied"), unit, "async")
    else:
        scope.arrays.store(target, scope.arrays.load(source, unit, "async", "copied"), "async")


# ------------------------------------------------------------------ blocks and warps
def _barrier(scope: Scope, call: Instruction) -> Item | None:
    emitter, mode = scope.emitter, words_of(call)[1]
    value = truth(scope.values.expr(call.operands[0])) if call.operands else constant(True, BOOL, emitter.span)
    barrier = ir.Barrier(mode, value, I32 if mode == "count" else BOOL, emitter.span)  # type: ignore[arg-type]
    result = emitter.effect(barrier, mode, bool(call.name))
    return returned(result, call) if call.name else None


def _fence(scope: Scope, call: Instruction) -> None:
    scope.emitter.emit(ir.Fence(words_of(call)[1], scope.emitter.span))  # type: ignore[arg-type]


def _shuffle(scope: Scope, call: Instruction) -> Item:
    _, word, name = words_of(call)
    mode: Any = word
    mask, value, lane, width = operand_values(scope, call)
    if not isinstance(width, ir.Const):
        lane = _source_lane(scope, word, signed(lane), signed(width))
        mode, width = "idx", constant(WARP_SIZE, I32, scope.emitter.span)
    type = SCALARS[name]
    operands = typed(value, type), signed(lane), int(width.value), unsigned(mask)
    return returned(scope.emitter.effect(ir.Shuffle(mode, *operands, type, scope.emitter.span), "shuffled"), call)


def _source_lane(scope: Scope, word: str, lane: ir.Expr, width: ir.Expr) -> ir.Expr:
    """Return the lane that a shuffle reads whose width is a variable, as a lane of the warp."""
    span = scope.emitter.span
    lane, width = scope.emitter.let(lane, "source"), scope.emitter.let(width, "width")
    own, low = ir.Special("lane", I32, span), operation("sub", width, constant(1, I32, span))
    base = operation("sub", own, operation("and", own, low))
    if word == "idx":
        return operation("or", base, operation("and", lane, low))
    source = operation({"up": "sub", "down": "add", "xor": "xor"}[word], own, lane)
    end = operation("add", base, width)
    inside = compared("sge", source, base) if word == "up" else compared("slt", source, end)
    return selected(inside, source, own)


def _vote(scope: Scope, call: Instruction) -> Item:
    _, mode, name = words_of(call)
    mask, value = operand_values(scope, call)
    type = SCALARS[name]
    result = type if mode in ("add", "min", "max", "and", "or", "xor") else BOOL if mode in ("any", "all") else U32
    vote = ir.Vote(mode, typed(value, type), unsigned(mask), result, scope.emitter.span)  # type: ignore[arg-type]
    return returned(scope.emitter.effect(vote, mode), call)


def _assert(scope: Scope, call: Instruction) -> None:
    condition, text = truth(scope.values.expr(call.operands[0])), text_at(scope.values.pointer(call.operands[1]))
    scope.emitter.emit(ir.Assert(condition, text, scope.emitter.span))


def _commit(scope: Scope, call: Instruction) -> None:
    scope.emitter.emit(ir.AsyncCommit(scope.emitter.span))


def _wait(scope: Scope, call: Instruction) -> None:
    pending = fixed(scope.values.expr(call.operands[0]), "number of pending copies")
    scope.emitter.emit(ir.AsyncWait(pending, scope.emitter.span))


_HANDLERS: Mapping[str, Callable[[Scope, Instruction], Item | None]] = MappingProxyType({
    OPERATION: _row, "atomic": _atomic, "swap": _swap, "load": _load, "store": _store, "copy_async": _copy, "barrier": _barrier,
    "warp_barrier": warp_barrier, "fence": _fence, "shuffle": _shuffle, "vote": _vote, "active": active_mask_call, "clock": clock,
    **TEXTURE_CALLS, "sleep": sleep, "assert": _assert, "commit": _commit, "wait": _wait,
})  # fmt: skip


def header_call(name: str) -> Handler | None:
    """Return the translation of calls of a function of the headers; None for other functions."""
    handler = _HANDLERS.get(name.removeprefix(PREFIX).split(".")[0]) if name.startswith(PREFIX) else None
    if handler is None:
        return None

    def translate(scope: Scope, call: Instruction) -> Item | None:
        try:
            return handler(scope, call)
        except (KeyError, ValueError, IndexError):  # a text may declare a function with any symbol
            raise UnsupportedError(f"the function {name} is not supported") from None

    return translate
