"""Intrinsic functions that are effects of the IR: barriers, warp operations, atomics, copies, assertions, prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..ir import nodes as ir
from ..language.types import BOOL, I32, I64, U32, U64, VECTORS, Scalar, Vector
from .calls import Calls, Intrinsic
from .counted import whole
from .tree import Node
from .types import CType, PointerType, Refusal
from .values import Choice, Memory, MemoryPlace, Pointer

INTRINSICS: dict[str, Intrinsic] = {}


def _named(*names: str) -> Callable[[Intrinsic], Intrinsic]:
    def enter(function: Intrinsic) -> Intrinsic:
        INTRINSICS.update(dict.fromkeys(names, function))
        return function

    return enter


def _effect(low: Calls, effect: ir.Effect, stem: str, needs_value: bool) -> ir.Expr | None:
    """Emit an effect. Return its result, if it is used."""
    if not needs_value:
        low.emit(ir.Let(None, effect, low.position))
        return None
    return low.let(effect, stem)


def _integer(low: Calls, value: ir.Expr | None, node: Node) -> ir.Expr | None:
    return None if value is None else low.converted(value, cast(CType, node.type))


# ------------------------------------------------------------------ blocks
@_named("__syncthreads", "__simtbed_grid_sync")
def _barrier(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    mode: Any = "sync" if node.function is not None and node.function.name == "__syncthreads" else "grid"
    low.emit(ir.Let(None, ir.Barrier(mode, low.constant(True, BOOL), BOOL, low.position), low.position))


@_named("__syncthreads_count", "__syncthreads_and", "__syncthreads_or")
def _counting_barrier(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    mode: Any = _name(node).rpartition("_")[2]
    value = low.condition(arguments[0])
    low.at(node)
    return _integer(
        low,
        _effect(low, ir.Barrier(mode, value, I32 if mode == "count" else BOOL, low.position), mode, needs_value),
        node,
    )


@_named("__threadfence", "__threadfence_block", "__threadfence_system")
def _fence(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    low.emit(ir.Fence("block" if _name(node).endswith("block") else "device", low.position))


def _name(node: Node) -> str:
    assert node.function is not None
    return node.function.name


# ------------------------------------------------------------------ warps
def _mask(low: Calls, argument: Node) -> ir.Expr:
    return low.converted(low.scalar(argument), U32)


@_named("__syncwarp")
def _warp_barrier(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    mask = _mask(low, arguments[0])
    low.at(node)
    low.emit(ir.WarpBarrier(mask, low.position))


@_named("__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync")
def _shuffle(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> ir.Expr | None:
    mode: Any = {"__shfl_sync": "idx"}.get(_name(node)) or _name(node).split("_")[3]
    mask, value = _mask(low, arguments[0]), low.scalar(arguments[1])
    lane, width = low.converted(low.scalar(arguments[2]), I32), low.scalar(arguments[3])
    low.at(node)
    if not isinstance(width, ir.Const):
        raise Refusal("the width of a shuffle must be a constant")
    shuffle = ir.Shuffle(mode, value, lane, int(width.value), mask, cast(Scalar, value.type), low.position)
    return _effect(low, shuffle, "shuffled", needs_value)


@_named("__ballot_sync", "__any_sync", "__all_sync")
def _vote(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    mode: Any = _name(node).split("_")[2]
    mask, value = _mask(low, arguments[0]), low.condition(arguments[1])
    low.at(node)
    type = U32 if mode == "ballot" else BOOL
    return _integer(low, _effect(low, ir.Vote(mode, value, mask, type, low.position), mode, needs_value), node)


@_named("__activemask")
def _active(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    everyone = low.constant(0xFFFFFFFF, U32)
    return _effect(low, ir.Vote("active", low.constant(True, BOOL), everyone, U32, low.position), "active", needs_value)


@_named("__match_any_sync", "__match_all_sync")
def _match(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    mask, value = _mask(low, arguments[0]), low.scalar(arguments[1])
    mode: Any = "match" if "any" in _name(node) else "match_all"
    low.at(node)
    lanes = low.let(ir.Vote(mode, value, mask, U32, low.position), "match")
    if mode == "match_all":
        equal = MemoryPlace(low.pointer(arguments[2]), I32)
        low.store(equal, low.converted(low.truth(lanes), I32))
    return lanes


@_named(*(f"__reduce_{name}_sync" for name in ("add", "min", "max", "and", "or", "xor")))
def _reduce(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    mode: Any = _name(node).split("_")[3]
    mask, value = _mask(low, arguments[0]), low.scalar(arguments[1])
    low.at(node)
    return _effect(
        low, ir.Vote(mode, value, mask, cast(Scalar, value.type), low.position), f"reduced_{mode}", needs_value
    )


# ------------------------------------------------------------------ atomics
_ATOMICS = {
    "Add": "add", "Sub": "sub", "Min": "min", "Max": "max", "And": "and", "Or": "or", "Xor": "xor", "Exch": "exchange",
    "Inc": "inc", "Dec": "dec",
}  # fmt: skip


def _target(low: Calls, pointer: Any, type: Scalar | Vector) -> tuple[str, ir.Expr]:
    """Return array and index of an atomic operation on a pointer."""
    if isinstance(pointer, Choice):
        raise Refusal("an atomic operation through a pointer into several memories is not supported")
    if not isinstance(pointer, Pointer) or not isinstance(pointer.memory, Memory | None):
        raise Refusal("an atomic operation on a variable of one thread is not supported")
    memory, index = low.element(pointer, type)
    if memory.space not in ("global", "shared"):
        raise Refusal(f"an atomic operation on {memory.space} memory is not supported")
    return memory.name, index


def _atomic(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    match = re.fullmatch(r"atomic([A-Z][a-z]+|CAS)(?:_(block|system))?", _name(node))
    assert match is not None
    scope: Any = match[2] or "device"
    type = cast(Any, cast(PointerType, arguments[0].type).to)
    pointer = low.as_register(low.pointer(arguments[0]))
    values = [low.as_register(low.scalar(argument)) for argument in arguments[1:]]
    low.at(node)
    array, index = _target(low, pointer, type)
    if match[1] == "CAS":
        swap = ir.CompareSwap(array, index, values[0], values[1], type, low.position, scope=scope)
        return _effect(low, swap, "before", needs_value)
    operation: Any = _ATOMICS[match[1]]
    update = ir.Atomic(operation, array, index, values[0], type, low.position, scope=scope)
    return _effect(low, update, "before", needs_value)


for _operation in (*_ATOMICS, "CAS"):
    INTRINSICS |= dict.fromkeys((f"atomic{_operation}{scope}" for scope in ("", "_block", "_system")), _atomic)

_ORDERS = {0: "relaxed", 2: "acquire", 3: "release", 4: "acq_rel"}
_SCOPES = {1: "block", 3: "device", 4: "system"}


def _constant(argument: Node, names: dict[int, str]) -> Any:
    value = whole(argument)
    if value not in names:
        raise Refusal("the order and the scope of an atomic operation must be constants of CUDA")
    return names[value]


def _ordered(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    """Lower nvcc's atomic functions with an order and a scope."""
    kind = _name(node).removeprefix("__nv_atomic_")
    order, scope = _constant(arguments[-3 if "compare" in kind else -2], _ORDERS), _constant(arguments[-1], _SCOPES)
    type = cast(Any, cast(PointerType, arguments[0].type).to)
    pointer = low.as_register(low.pointer(arguments[0]))
    if kind == "compare_exchange_n":
        return _compare_exchange(low, node, arguments, (pointer, type, order, scope))
    values = [low.as_register(low.converted(low.scalar(argument), type)) for argument in arguments[1:-2]]
    low.at(node)
    array, index = _target(low, pointer, type)
    if kind == "load_n":
        load = ir.Load(array, index, type, low.position, "acquire" if order == "acquire" else "volatile", scope)
        return low.let(load, "loaded")
    value = values[0]
    if kind == "store_n":
        low.emit(
            ir.Store(
                array, index, value, low.position, order="release" if order == "release" else "volatile", scope=scope
            )
        )
        return None
    operation: Any = "exchange" if kind == "exchange_n" else kind.removeprefix("fetch_")
    update = ir.Atomic(operation, array, index, value, type, low.position, order, scope)
    return _effect(low, update, "before", needs_value)


def _compare_exchange(low: Calls, node: Node, arguments: Sequence[Node], target: tuple[Any, ...]) -> Any:
    pointer, type, order, scope = target
    expected = MemoryPlace(low.as_register(low.pointer(arguments[1])), type)
    value = low.as_register(low.converted(low.scalar(arguments[2]), type))
    before = low.as_register(low.load(expected))
    low.at(node)
    array, index = _target(low, pointer, type)
    swap = ir.CompareSwap(array, index, before, value, type, low.position, order, scope)
    results = low.let(swap, "before")
    low.store(expected, results)
    return low.operation("eq", results, before)


for _kind in ("load_n", "store_n", "exchange_n", "compare_exchange_n"):
    INTRINSICS[f"__nv_atomic_{_kind}"] = _ordered
for _kind in ("add", "sub", "min", "max", "and", "or", "xor"):
    INTRINSICS[f"__nv_atomic_fetch_{_kind}"] = _ordered


# ------------------------------------------------------------------ copies, clocks
@_named("__pipeline_memcpy_async")
def _copy(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    size = whole(arguments[2])
    target, source = (low.as_register(low.value(argument)) for argument in arguments[:2])
    low.at(node)
    if size is None or not all(isinstance(p, Pointer) and isinstance(p.memory, Memory) for p in (target, source)):
        raise Refusal("an asynchronous copy needs a constant size, and pointers into memory")
    elements = {p.memory.element for p in (target, source) if isinstance(p.memory, Memory)}
    whole_element = len(elements) == 1 and next(iter(elements)).size == size
    type = elements.pop() if whole_element else _COPIED.get(size)
    if type is None or any(size % element.size for element in elements):
        raise Refusal(f"an asynchronous copy of {size} bytes here is not supported")
    memory, index = low.element(source, type)
    loaded = low.let(ir.Load(memory.name, index, type, low.position, "async"), "copied")
    memory, index = low.element(target, type)
    low.emit(ir.Store(memory.name, index, loaded, low.position, order="async"))


_COPIED: dict[int, Scalar | Vector] = {4: U32, 8: U64, 16: VECTORS["uint4"]}
"""Types of asynchronous copies by their bytes."""


@_named("__pipeline_commit")
def _commit(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    low.emit(ir.AsyncCommit(low.position))


@_named("__pipeline_wait_prior")
def _wait(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    pending = whole(arguments[0])
    if pending is None:
        raise Refusal("the number of pending copies must be a constant")
    low.emit(ir.AsyncWait(pending, low.position))


@_named("clock", "clock64")
def _clock(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    return _effect(low, ir.Clock(I32 if _name(node) == "clock" else I64, low.position), "clock", needs_value)


@_named("__nanosleep")
def _sleep(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    time = low.converted(low.scalar(arguments[0]), U32)
    low.at(node)
    low.emit(ir.Sleep(time, low.position))


# ------------------------------------------------------------------ assertions, prints
def _text(node: Node) -> str:
    while node.kind == "cast":
        node = node[0]
    if node.kind != "text":
        raise Refusal("the text must be a literal")
    return str(node.value)


@_named("__simtbed_assert")
def _assert(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    condition = low.condition(arguments[0])
    low.at(node)
    low.emit(ir.Assert(condition, _text(arguments[1]), low.position))


@_named("__trap")
def _trap(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    low.emit(ir.Assert(low.constant(False, BOOL), "__trap()", low.position))


_CONVERSION = re.compile(r"(%[-+ #0]*\d*(?:\.\d+)?(?:hh|ll|[hlzjt])?[a-zA-Z%])")


@_named("printf")
def _print(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    values, items = iter(arguments[1:]), list[Any]()
    for piece in _CONVERSION.split(_text(arguments[0]).removesuffix("\n")):
        if not _CONVERSION.fullmatch(piece):
            items += [piece] if piece else []
        elif piece == "%%":
            items.append("%")
        else:
            argument = next(values, None)
            if argument is None:
                raise Refusal(f"printf has no value for {piece}")
            items.append(_text(argument) if piece[-1] == "s" else low.as_register(low.scalar(argument)))
    low.at(node)
    low.emit(ir.Print(tuple(items), low.position))
    return low.constant(len(arguments) - 1, I32) if needs_value else None


@_named(
    "__builtin_inff", "__builtin_inf", "__builtin_nanf", "__builtin_nan", "__builtin_huge_valf", "__builtin_huge_val"
)
def _special(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> ir.Expr:
    return low.constant(float("nan" if "nan" in _name(node) else "inf"), cast(Scalar, node.type))


@_named("__builtin_assume", "__builtin_unreachable")
def _no_effect(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> None:
    pass


@_named("__builtin_expect")
def _expected(low: Calls, node: Node, arguments: Sequence[Node], needs_value: bool) -> Any:
    return low.value(arguments[0])
