"""Translation of instructions other than calls: one function a kind, in a table by opcode."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..ir import nodes as ir
from ..language.forms import AtomicOp, MemoryOrder, MemoryScope
from ..language.types import BOOL, I32, I64, Scalar
from .accesses import Scope, lane_type, loaded, order_of, regrouped, stored
from .arithmetic import (
    UNSIGNED,
    bitcast,
    cast,
    compared,
    compared_floats,
    constant,
    is_constant,
    negated,
    operation,
    signed,
    unsigned,
)
from .arrays import Ordering
from .calls import Handler
from .module import Instruction, Local, Number
from .pointers import Pointer, indexed
from .types import (
    SequenceType,
    Type,
    UnsupportedError,
    memory_scalar,
    scalar_of,
)
from .values import Item, truth

ATOMICS: Mapping[str, AtomicOp] = MappingProxyType({
    "add": "add", "fadd": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "xchg": "exchange", "max": "max",
    "min": "min", "umax": "max", "umin": "min", "fmax": "max", "fmin": "min", "uinc_wrap": "inc", "udec_wrap": "dec",
})  # fmt: skip
"""Atomic operations by LLVM's name; fsub is an addition."""
EXACT_ATOMICS = ("fadd", "fsub", "max", "min", "umax", "umin", "fmax", "fmin", "uinc_wrap", "udec_wrap")
"""Operations that depend on the type of the element."""
_SCOPES: Mapping[str, MemoryScope] = MappingProxyType({"block": "block", "device": "device"})


def ordering_of(instruction: Instruction) -> Ordering:
    """Return order and scope of an atomic operation. One without a scope has the system's, with LLVM's strongest order: it is relaxed
    and of the device, as CUDA's functions without an order are."""
    (word,) = instruction.flags or {""}
    orders: dict[str, MemoryOrder] = {"acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
    return orders.get(word, "relaxed"), _SCOPES.get(instruction.scope, "device")


def atomic_type(word: str, type: Type) -> Scalar:
    """Return the type of an atomic operation by LLVM's name: unsigned where the operation is."""
    scalar = memory_scalar(type)
    return UNSIGNED[scalar] if word in ("umax", "umin", "uinc_wrap", "udec_wrap") else scalar


def lanewise(translated: Handler) -> Handler:
    """Return the translation of an instruction or a call of numbers for vectors, too: of each lane, with operands that are no vectors."""

    def translate(scope: Scope, instruction: Instruction) -> Item | None:
        if not isinstance(instruction.type, SequenceType):
            return translated(scope, instruction)
        type, values = instruction.type.item, [scope.values.resolve(operand) for operand in instruction.operands]
        results: list[Any] = []
        for lane in range(instruction.type.count):
            operands = list(instruction.operands)
            for number, value in enumerate(values):
                if isinstance(value, list):
                    operands[number] = own = Local(f"{instruction.name}.{number}", type)
                    scope.values.by_name[own.name] = value[lane]
            results.append(translated(scope, replace(instruction, type=type, operands=tuple(operands))))
        return results

    return translate


# ------------------------------------------------------------------ arithmetic
_PLAIN = {
    "add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fadd": "add", "fsub": "sub",
    "fmul": "mul", "fdiv": "fdiv", "frem": "fmod", "sdiv": "div", "srem": "rem", "shl": "shl", "ashr": "shr",
}  # fmt: skip
_UNSIGNED = {"udiv": "div", "urem": "rem", "lshr": "shr"}
_TRUTH = {"and": "both", "mul": "both", "or": "either", "xor": "ne", "add": "ne", "sub": "ne"}


def _binary(scope: Scope, instruction: Instruction) -> Item:
    combine = combined
    if scope.memories.single and instruction.op in _WRAPPING and "nsw" not in instruction.flags:
        combine = _wrapped
    return combine(instruction.op, *map(scope.values.expr, instruction.operands))


_WRAPPING = ("add", "sub", "mul")


def _wrapped(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return the result of an operation on unsigned integers. That of indices of threads has no overflow and is signed, as they are."""
    if a.type is BOOL or (_is_index(a) and _is_index(b)):
        return combined(op, a, b)
    return signed(combined(op, unsigned(a), unsigned(b)))


def _is_index(value: ir.Expr) -> bool:
    if isinstance(value, ir.Op):
        return value.name in _WRAPPING and value.type is I32 and all(map(_is_index, value.args))
    return isinstance(value, ir.Special) or (isinstance(value, ir.Const) and int(value.value) >= 0)


def combined(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return the result of an operation on two numbers, by LLVM's name. Raises UnsupportedError."""
    if a.type is BOOL:
        if op not in _TRUTH:
            raise UnsupportedError(f"the instruction {op} is not supported for i1")
        if _TRUTH[op] == "ne" and is_constant(b, True):
            return negated(a)
        return operation(_TRUTH[op], a, b)
    if op == "xor" and is_constant(b, -1):
        return operation("invert", a)
    if op == "sub" and is_constant(a, 0):
        return operation("neg", b)
    if op in _UNSIGNED:
        return signed(operation(_UNSIGNED[op], unsigned(a), unsigned(b)))
    return operation(_PLAIN[op], a, b)


def _negate(scope: Scope, instruction: Instruction) -> Item:
    return operation("neg", scope.values.expr(instruction.operands[0]))


def same_value(scope: Scope, instruction: Instruction) -> Item:
    return scope.values.resolve(instruction.operands[0])


# ------------------------------------------------------------------ conversions
def _converted(scope: Scope, instruction: Instruction) -> Item:
    value = scope.values.resolve(instruction.operands[0])
    if isinstance(value, Pointer):
        if instruction.op in ("addrspacecast", "bitcast"):
            return value
        return cast(scope.values.address_of(value), scalar_of(instruction.type))
    if isinstance(value, list):
        return _converted_vector(instruction, [scope.emitter.let(x, "lane") for x in value])
    if instruction.op == "inttoptr":
        if isinstance(value, ir.Const) and not value.value:
            return scope.memories.null
        if isinstance(instruction.operands[0], Number):
            return Pointer((scope.memories.at_address(int(instruction.operands[0].value)),))
        return scope.values.pointer_of_number(instruction.operands[0], value)
    if isinstance(instruction.type, SequenceType):
        elements = regrouped([scope.emitter.let(value, "bits")], scalar_of(instruction.type.item))
        return elements[: instruction.type.count]
    return converted(instruction.op, value, scalar_of(instruction.type), "nneg" in instruction.flags)


def _converted_vector(instruction: Instruction, value: list[Any]) -> Item:
    if instruction.op == "bitcast":
        elements = regrouped(value, scalar_of(lane_type(instruction.type)))
        return elements if isinstance(instruction.type, SequenceType) else elements[0]
    assert isinstance(instruction.type, SequenceType)
    type = scalar_of(instruction.type.item)
    return [converted(instruction.op, x, type, "nneg" in instruction.flags) for x in value]


def converted(op: str, value: ir.Expr, type: Scalar, nneg: bool = False) -> ir.Expr:
    """Return the result of a conversion between numbers. nneg: the operand, read as signed, is not negative."""
    is_truth = value.type is BOOL
    match op:
        case "trunc" if type is BOOL:
            assert isinstance(value.type, Scalar)
            return truth(operation("and", value, constant(1, value.type, value.span)))
        case "zext" | "uitofp":
            return cast(value if is_truth or nneg else unsigned(value), type)
        case "sext" | "sitofp" if is_truth:
            return operation("neg", cast(value, type))
        case "fptoui":
            return signed(cast(value, UNSIGNED[type]))
        case "bitcast":
            return bitcast(value, type)
    return cast(value, type)


def _integer_comparison(scope: Scope, instruction: Instruction) -> Item:
    a, b = (scope.values.resolve(operand) for operand in instruction.operands)
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return _compared_pointers(scope, instruction.word, a, b)
    return compared(instruction.word, *map(scope.values.expr, instruction.operands))


def _compared_pointers(scope: Scope, predicate: str, a: Pointer, b: Pointer) -> ir.Expr:
    """Compare addresses: in one memory by their offsets."""
    span = scope.emitter.span
    if a.memories == b.memories and len(a.memories) == 1:
        return compared(predicate, a.offset(span), b.offset(span))
    return compared(predicate, scope.values.address_of(a), scope.values.address_of(b))


def _float_comparison(scope: Scope, instruction: Instruction) -> Item:
    return compared_floats(instruction.word, *map(scope.values.expr, instruction.operands))


def _select(scope: Scope, instruction: Instruction) -> Item:
    condition, *values = instruction.operands
    return scope.values.choice(scope.values.expr(condition), *map(scope.values.resolve, values))


# ------------------------------------------------------------------ memory
def _address(scope: Scope, instruction: Instruction) -> Item:
    assert instruction.source is not None
    base, *indices = instruction.operands
    once = scope.values.uses[instruction.name] == 1
    exprs = [scope.values.expr(index) for index in indices]
    stable = exprs if once else [scope.emitter.let(index, "index") for index in exprs]
    pointer = scope.values.pointer(base)
    moved = indexed(pointer, instruction.source, stable).folded(scope.emitter.let, scope.emitter.span)
    if (
        scope.memories.single
        and len(stable) == 2
        and is_constant(stable[0], 0)
        and isinstance(instruction.source, SequenceType)
    ):
        return _within(scope, pointer, moved, stable[1], instruction.source.count)
    return moved


def _within(scope: Scope, pointer: Pointer, moved: Pointer, index: ir.Expr, count: int) -> Pointer:
    """Return an element of an array of arrays, with its index and extent in each dimension."""
    inner = pointer.within if pointer.within is not None else ((), ())
    if not count:
        return moved
    extent = constant(count, I64, scope.emitter.span)
    indices = (*inner[0], cast(scope.emitter.let(index, "index"), I64))
    return replace(moved, within=(indices, (*inner[1], extent)))


def _alloca(scope: Scope, instruction: Instruction) -> Item:
    return Pointer((scope.memories.of_alloca(instruction),))


def _load(scope: Scope, instruction: Instruction) -> Item:
    pointer = scope.values.pointer(instruction.operands[0])
    return loaded(scope, pointer, instruction.type, order_of(instruction), instruction.name, instruction.alignment)


def _store(scope: Scope, instruction: Instruction) -> None:
    value = scope.values.resolve(instruction.operands[0])
    pointer, type = scope.values.pointer(instruction.operands[1]), instruction.operands[0].type
    stored(scope, pointer, value, type, order_of(instruction), instruction.alignment)


def _atomic(scope: Scope, instruction: Instruction) -> Item:
    pointer, value = scope.values.pointer(instruction.operands[0]), scope.values.expr(instruction.operands[1])
    return atomic(scope, instruction.word, pointer, value, instruction)


def atomic(
    scope: Scope, word: str, pointer: Pointer, value: ir.Expr, instruction: Instruction, used: bool | None = None
) -> ir.Expr:
    """Return the old value of an atomic operation by LLVM's name. used: None for whether the instruction's result is read.

    Raises UnsupportedError for an unknown operation.
    """
    used = scope.values.uses[instruction.name] > 0 if used is None else used
    if word == "fsub":
        word, value = "fadd", operation("neg", value)
    if word not in ATOMICS:
        raise UnsupportedError(f"the atomic operation {word} is not supported")
    type = atomic_type(word, instruction.operands[1].type)
    order = ordering_of(instruction)
    old = scope.arrays.atomic(ATOMICS[word], pointer, bitcast(value, type), used, instruction.name or "old", order)
    return bitcast(old, memory_scalar(instruction.operands[1].type))


def _compare_exchange(scope: Scope, instruction: Instruction) -> Item:
    pointer = scope.values.pointer(instruction.operands[0])
    expected, value = (scope.values.expr(operand) for operand in instruction.operands[1:])
    expected = scope.emitter.let(expected, "expected")
    order = ordering_of(instruction)
    old = scope.arrays.compare_swap(pointer, expected, value, instruction.name, order)
    old = scope.emitter.let(old, instruction.name)
    return [old, operation("eq", old, expected)]


def _fence(scope: Scope, instruction: Instruction) -> None:
    scope.emitter.emit(ir.Fence("block" if instruction.word == "block" else "device", scope.emitter.span))


# ------------------------------------------------------------------ aggregates
def _extract(scope: Scope, instruction: Instruction) -> Item:
    value: Any = scope.values.items(instruction.operands[0])
    for index in instruction.indices:
        value = value[index]
    return value  # type: ignore[no-any-return]


def _insert(scope: Scope, instruction: Instruction) -> Item:
    whole = scope.values.items(instruction.operands[0])
    return _replaced(whole, instruction.indices, scope.values.resolve(instruction.operands[1]))


def _replaced(items: list[Any], indices: tuple[int, ...], value: Item) -> list[Any]:
    first, *rest = indices
    inner = _replaced(items[first], tuple(rest), value) if rest else value
    return [*items[:first], inner, *items[first + 1 :]]


def _extract_element(scope: Scope, instruction: Instruction) -> Item:
    items, index = scope.values.items(instruction.operands[0]), _lane(instruction, 1)
    return items[index]  # type: ignore[no-any-return]


def _insert_element(scope: Scope, instruction: Instruction) -> Item:
    items, index = scope.values.items(instruction.operands[0]), _lane(instruction, 2)
    return [*items[:index], scope.values.resolve(instruction.operands[1]), *items[index + 1 :]]


def _lane(instruction: Instruction, operand: int) -> int:
    index = instruction.operands[operand]
    if not isinstance(index, Number):
        raise UnsupportedError("a component of a vector with a computed index is not supported")
    return int(index.value)


def _shuffle_vector(scope: Scope, instruction: Instruction) -> Item:
    both = scope.values.items(instruction.operands[0]) + scope.values.items(instruction.operands[1])
    lanes = scope.values.items(instruction.operands[2])
    if not all(isinstance(lane, ir.Const) for lane in lanes):
        raise UnsupportedError("a shufflevector with a computed mask is not supported")
    return [both[int(lane.value)] for lane in lanes]


_TRANSLATIONS: Mapping[str, Handler] = MappingProxyType({
    **dict.fromkeys((*_PLAIN, *_UNSIGNED), lanewise(_binary)),
    **dict.fromkeys((
        "trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "ptrtoint", "ptrtoaddr",
        "inttoptr", "bitcast", "addrspacecast",
    ), _converted),
    "fneg": lanewise(_negate), "freeze": same_value, "icmp": lanewise(_integer_comparison), "fcmp": lanewise(_float_comparison),
    "select": lanewise(_select),
    "getelementptr": _address, "alloca": _alloca, "load": _load, "store": _store, "atomicrmw": _atomic,
    "cmpxchg": _compare_exchange, "fence": _fence, "extractvalue": _extract, "insertvalue": _insert,
    "extractelement": _extract_element, "insertelement": _insert_element, "shufflevector": _shuffle_vector,
})  # fmt: skip


def translate_instruction(scope: Scope, instruction: Instruction) -> Item | None:
    """Return the value of an instruction; emit its effects. Raises UnsupportedError."""
    if instruction.op not in _TRANSLATIONS:
        raise UnsupportedError(f"the instruction {instruction.op} is not supported")
    return _TRANSLATIONS[instruction.op](scope, instruction)
