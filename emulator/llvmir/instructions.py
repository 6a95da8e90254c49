"""Translation of instructions other than calls: one function a kind, in a table by opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..ir import nodes as ir
from ..language.forms import AccessOrder, AtomicOp
from ..language.types import BOOL, I32, I64, Scalar
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
    selected,
    signed,
    unsigned,
)
from .arrays import Arrays
from .emitting import Emitter
from .module import Instruction, Number
from .pointers import NULL, Memories, Pointer, indexed
from .types import (
    PointerType,
    SequenceType,
    StructType,
    Type,
    UnsupportedError,
    component,
    memory_scalar,
    scalar_of,
)
from .values import Item, Values, truth

ATOMICS: Mapping[str, AtomicOp] = MappingProxyType({
    "add": "add", "fadd": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "xchg": "exchange", "max": "max",
    "min": "min", "umax": "max", "umin": "min", "fmax": "max", "fmin": "min", "uinc_wrap": "inc", "udec_wrap": "dec",
})  # fmt: skip
"""Atomic operations by LLVM's name; fsub is an addition."""
EXACT_ATOMICS = ("fadd", "fsub", "max", "min", "umax", "umin", "fmax", "fmin", "uinc_wrap", "udec_wrap")
"""Operations that depend on the type of the element."""


@dataclass
class Scope:
    """What the translation of an instruction reads and writes."""

    emitter: Emitter
    values: Values
    arrays: Arrays
    memories: Memories


def order_of(instruction: Instruction) -> AccessOrder:
    """Return the memory order of a load or a store."""
    match instruction.word:
        case "":
            return "weak"
        case "acquire" | "seq_cst" if instruction.op == "load":
            return "acquire"
        case "release" | "seq_cst" if instruction.op == "store":
            return "release"
    return "volatile"


def atomic_type(word: str, type: Type) -> Scalar:
    """Return the type of an atomic operation by LLVM's name: unsigned where the operation is."""
    scalar = memory_scalar(type)
    return UNSIGNED[scalar] if word in ("umax", "umin", "uinc_wrap", "udec_wrap") else scalar


# ------------------------------------------------------------------ arithmetic
_PLAIN = {
    "add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fadd": "add", "fsub": "sub",
    "fmul": "mul", "fdiv": "fdiv", "frem": "fmod", "sdiv": "div", "srem": "rem", "shl": "shl", "ashr": "shr",
}  # fmt: skip
_UNSIGNED = {"udiv": "div", "urem": "rem", "lshr": "shr"}
_TRUTH = {"and": "both", "mul": "both", "or": "either", "xor": "ne", "add": "ne", "sub": "ne"}


def _binary(scope: Scope, instruction: Instruction) -> Item:
    a, b = (scope.values.resolve(operand) for operand in instruction.operands)
    if isinstance(a, list) and isinstance(b, list):
        return [_combined(instruction.op, x, y) for x, y in zip(a, b, strict=True)]
    return _combined(
        instruction.op, scope.values.expr(instruction.operands[0]), scope.values.expr(instruction.operands[1])
    )


def _combined(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
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
    value = scope.values.resolve(instruction.operands[0])
    return [operation("neg", x) for x in value] if isinstance(value, list) else operation("neg", _number(value))


def _number(value: Item) -> ir.Expr:
    assert not isinstance(value, Pointer | list)
    return value


def _freeze(scope: Scope, instruction: Instruction) -> Item:
    return scope.values.resolve(instruction.operands[0])


# ------------------------------------------------------------------ conversions
def _converted(scope: Scope, instruction: Instruction) -> Item:
    value = scope.values.resolve(instruction.operands[0])
    if isinstance(value, Pointer):
        if instruction.op in ("addrspacecast", "bitcast"):
            return value
        return cast(address_of(scope, value), scalar_of(instruction.type))
    if isinstance(value, list):
        return _converted_vector(instruction, value)
    if instruction.op == "inttoptr":
        if isinstance(value, ir.Const):
            return Pointer((scope.memories.at_address(int(value.value)),)) if value.value else NULL
        raise UnsupportedError("a computed number as an address is not supported")
    return converted(instruction.op, value, scalar_of(instruction.type), "nneg" in instruction.flags)


def address_of(scope: Scope, pointer: Pointer) -> ir.Expr:
    """Return an address as a number."""
    span = scope.emitter.span
    base: ir.Expr | None = None
    for number, memory in enumerate(pointer.memories):
        address = scope.memories.address(memory)
        own = constant(address, I64, span) if address is not None else scope.arrays.address(memory)
        if base is None or pointer.which is None:
            base = own
        else:
            base = selected(operation("eq", pointer.which, constant(number, I32, span)), own, base)
    assert base is not None
    return operation("add", pointer.offset(span), base)


def _converted_vector(instruction: Instruction, value: list[Any]) -> Item:
    if (
        instruction.op == "bitcast"
        and isinstance(instruction.type, SequenceType)
        and instruction.type.count == len(value)
    ):
        return [bitcast(x, scalar_of(instruction.type.item)) for x in value]
    if instruction.op == "bitcast" or not isinstance(instruction.type, SequenceType):
        raise UnsupportedError(f"the bits of a vector as {instruction.type} are not supported")
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
    if isinstance(a, list) and isinstance(b, list):
        return [compared(instruction.word, x, y) for x, y in zip(a, b, strict=True)]
    return compared(instruction.word, _number(a), _number(b))


def _compared_pointers(scope: Scope, predicate: str, a: Pointer, b: Pointer) -> ir.Expr:
    """Compare addresses: in one memory by their offsets."""
    span = scope.emitter.span
    if a.memories == b.memories and len(a.memories) == 1:
        return compared(predicate, a.offset(span), b.offset(span))
    return compared(predicate, address_of(scope, a), address_of(scope, b))


def _float_comparison(scope: Scope, instruction: Instruction) -> Item:
    a, b = (scope.values.resolve(operand) for operand in instruction.operands)
    if isinstance(a, list) and isinstance(b, list):
        return [compared_floats(instruction.word, x, y) for x, y in zip(a, b, strict=True)]
    return compared_floats(instruction.word, _number(a), _number(b))


def _select(scope: Scope, instruction: Instruction) -> Item:
    condition, a, b = (scope.values.resolve(operand) for operand in instruction.operands)
    if isinstance(condition, list) and isinstance(a, list) and isinstance(b, list):
        return [scope.values.choice(*each) for each in zip(condition, a, b, strict=True)]
    return scope.values.choice(_number(condition), a, b)


# ------------------------------------------------------------------ memory
def _address(scope: Scope, instruction: Instruction) -> Item:
    assert instruction.source is not None
    base, *indices = instruction.operands
    once = scope.values.uses[instruction.name] == 1
    exprs = [scope.values.expr(index) for index in indices]
    stable = exprs if once else [scope.emitter.let(index, "index") for index in exprs]
    return indexed(scope.values.pointer(base), instruction.source, stable)


def _alloca(scope: Scope, instruction: Instruction) -> Item:
    return Pointer((scope.memories.of_alloca(instruction),))


def _load(scope: Scope, instruction: Instruction) -> Item:
    pointer = scope.values.pointer(instruction.operands[0])
    return _loaded(scope, pointer, instruction.type, order_of(instruction), instruction.name)


def _loaded(scope: Scope, pointer: Pointer, type: Type, order: AccessOrder, stem: str) -> Item:
    if isinstance(type, PointerType):
        raise UnsupportedError("a pointer stored in memory is not supported")
    if isinstance(type, StructType | SequenceType):
        count = len(type.items) if isinstance(type, StructType) else type.count
        components = [component(type, number) for number in range(count)]
        return [_loaded(scope, pointer.moved(offset), own, order, stem) for own, offset in components]
    loaded = scope.arrays.load(pointer, memory_scalar(type), order, stem)
    return truth(loaded) if scalar_of(type) is BOOL else loaded


def _store(scope: Scope, instruction: Instruction) -> None:
    value = scope.values.resolve(instruction.operands[0])
    _stored(
        scope, scope.values.pointer(instruction.operands[1]), value, instruction.operands[0].type, order_of(instruction)
    )


def _stored(scope: Scope, pointer: Pointer, value: Item, type: Type, order: AccessOrder) -> None:
    if isinstance(value, Pointer):
        raise UnsupportedError("a pointer stored in memory is not supported")
    if isinstance(value, list):
        for number, item in enumerate(value):
            own, offset = component(type, number)
            _stored(scope, pointer.moved(offset), item, own, order)
        return
    scope.arrays.store(pointer, cast(value, memory_scalar(type)), order)


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
    old = scope.arrays.atomic(ATOMICS[word], pointer, bitcast(value, type), used, instruction.name or "old")
    return bitcast(old, memory_scalar(instruction.operands[1].type))


def _compare_exchange(scope: Scope, instruction: Instruction) -> Item:
    pointer = scope.values.pointer(instruction.operands[0])
    expected, value = (scope.values.expr(operand) for operand in instruction.operands[1:])
    expected = scope.emitter.let(expected, "expected")
    old = scope.emitter.let(scope.arrays.compare_swap(pointer, expected, value, instruction.name), instruction.name)
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


_TRANSLATIONS: Mapping[str, Callable[[Scope, Instruction], Item | None]] = MappingProxyType({
    **dict.fromkeys((*_PLAIN, *_UNSIGNED), _binary),
    **dict.fromkeys((
        "trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "ptrtoint", "ptrtoaddr",
        "inttoptr", "bitcast", "addrspacecast",
    ), _converted),
    "fneg": _negate, "freeze": _freeze, "icmp": _integer_comparison, "fcmp": _float_comparison, "select": _select,
    "getelementptr": _address, "alloca": _alloca, "load": _load, "store": _store, "atomicrmw": _atomic,
    "cmpxchg": _compare_exchange, "fence": _fence, "extractvalue": _extract, "insertvalue": _insert,
    "extractelement": _extract_element, "insertelement": _insert_element, "shufflevector": _shuffle_vector,
})  # fmt: skip


def translate_instruction(scope: Scope, instruction: Instruction) -> Item | None:
    """Return the value of an instruction; emit its effects. Raises UnsupportedError."""
    if instruction.op not in _TRANSLATIONS:
        raise UnsupportedError(f"the instruction {instruction.op} is not supported")
    return _TRANSLATIONS[instruction.op](scope, instruction)
