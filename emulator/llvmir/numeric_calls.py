"""Intrinsics of numbers: rows of the op table, bits, saturation, overflow, classes of floats."""

from typing import Any

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.types import BOOL, I32, Scalar
from .accesses import Scope
from .arithmetic import cast, compared, constant, negated, operation, selected, signed, unsigned
from .calls import Handler, fixed, operand_values
from .instructions import combined
from .libdevice import FUNCTIONS
from .module import Instruction
from .types import UnsupportedError, scalar_of
from .values import Item


# ------------------------------------------------------------------ rows of the op table
def table_row(name: str) -> Handler:
    def translate(scope: Scope, call: Instruction) -> Item:
        return operation(name, *map(scope.values.expr, call.operands[: TABLE[name].operands]))

    return translate


def unsigned_table_row(name: str) -> Handler:
    def translate(scope: Scope, call: Instruction) -> Item:
        return signed(operation(name, *map(unsigned, operand_values(scope, call))))

    return translate


def counted_bits(name: str) -> Handler:
    """A row of 32 and 64 bits, for narrower integers too: the result type is that of the operand."""

    def translate(scope: Scope, call: Instruction) -> Item:
        value, type = operand_values(scope, call)[0], scalar_of(call.type)
        if type.size >= 4:
            return cast(operation(name, value), type)
        wide = cast(unsigned(value), I32)
        result = operation(name, wide)
        if name == "clz":
            result = operation("sub", result, constant(32 - type.bits, I32, value.span))
        return cast(result, type)

    return translate


def trailing_zeros(scope: Scope, call: Instruction) -> Item:
    value, type = operand_values(scope, call)[0], scalar_of(call.type)
    wide = value if type.size >= 4 else cast(unsigned(value), I32)
    count = operation("sub", operation("ffs", wide), constant(1, I32, value.span))
    zero = operation("lt", count, constant(0, I32, value.span))
    return cast(selected(zero, constant(type.bits, I32, value.span), count), type)


def reversed_bits(scope: Scope, call: Instruction) -> Item:
    value, type = operand_values(scope, call)[0], scalar_of(call.type)
    if type.size >= 4:
        return operation("brev", value)
    wide = operation("brev", unsigned(cast(unsigned(value), I32)))
    return cast(operation("shr", wide, constant(32 - type.bits, I32, value.span)), type)


def swapped_bytes(scope: Scope, call: Instruction) -> Item:
    (value,) = operand_values(scope, call)
    assert isinstance(value.type, Scalar)
    bits, size = unsigned(scope.emitter.let(value)), value.type.size
    assert isinstance(bits.type, Scalar)
    total: ir.Expr = constant(0, bits.type, value.span)
    for byte in range(size):
        moved = operation("shr", bits, constant(8 * byte, I32, value.span))
        moved = operation("and", moved, constant(255, bits.type, value.span))
        moved = operation("shl", moved, constant(8 * (size - 1 - byte), I32, value.span))
        total = operation("or", total, moved)
    return signed(total)


def funnel_shift(left: bool) -> Handler:
    def translate(scope: Scope, call: Instruction) -> Item:
        high, low, count = (scope.emitter.let(x) for x in operand_values(scope, call))
        type = scalar_of(call.type)
        rest = operation("and", count, constant(type.bits - 1, type, count.span))
        other = operation("sub", constant(type.bits, type, count.span), rest)
        shifts = (rest, other) if left else (other, rest)  # a shift by all bits gives 0
        upper = operation("shl", high, shifts[0])
        return operation("or", upper, signed(operation("shr", unsigned(low), shifts[1])))

    return translate


def saturating(op: str, is_signed: bool) -> Handler:
    def translate(scope: Scope, call: Instruction) -> Item:
        a, b = (scope.emitter.let(x) for x in operand_values(scope, call))
        type = scalar_of(call.type)
        if not is_signed and op == "sub":
            return signed(operation("sub", operation("max", unsigned(a), unsigned(b)), unsigned(b)))
        if not is_signed:
            total = scope.emitter.let(operation("add", a, b))
            return selected(compared("ult", total, a), constant(-1, type, a.span), total)
        total, overflow = _checked(scope, op, True, a, b)
        low, high = type.range
        negative = operation("lt", a, constant(0, type, a.span))
        limit = selected(negative, constant(low, type, a.span), constant(high, type, a.span))
        return selected(overflow, limit, total)

    return translate


def _checked(scope: Scope, op: str, is_signed: bool, a: ir.Expr, b: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Return the result of an operation that wraps, and whether it overflows."""
    result = scope.emitter.let(operation(op, a, b))
    assert isinstance(a.type, Scalar)
    zero = constant(0, a.type, a.span)
    if op == "mul":
        if a.type.size < 4:
            raise UnsupportedError("a product with an overflow flag is supported for 32 and 64 bits")
        high = operation("mulhi", a, b) if is_signed else signed(operation("mulhi", unsigned(a), unsigned(b)))
        sign = operation("shr", result, constant(a.type.bits - 1, I32, a.span)) if is_signed else zero
        return result, operation("ne", high, sign)
    if not is_signed:
        return result, compared("ult", *((result, a) if op == "add" else (a, b)))
    other = b if op == "add" else operation("invert", b)
    signs = operation("and", operation("xor", result, a), operation("xor", result, other))
    return result, operation("lt", signs, zero)


def with_overflow(op: str, is_signed: bool) -> Handler:
    def translate(scope: Scope, call: Instruction) -> Item:
        a, b = (scope.emitter.let(x) for x in operand_values(scope, call))
        return list(_checked(scope, op, is_signed, a, b))

    return translate


def ordering(is_signed: bool) -> Handler:
    """scmp and ucmp: -1, 0 or 1."""

    def translate(scope: Scope, call: Instruction) -> Item:
        a, b = (scope.emitter.let(x) for x in operand_values(scope, call))
        letter, type = "s" if is_signed else "u", scalar_of(call.type)
        more = selected(compared(f"{letter}gt", a, b), constant(1, type, a.span), constant(0, type, a.span))
        return selected(compared(f"{letter}lt", a, b), constant(-1, type, a.span), more)

    return translate


def integer_power(scope: Scope, call: Instruction) -> Item:
    return FUNCTIONS["powi"](*operand_values(scope, call))


def scaled(scope: Scope, call: Instruction) -> Item:
    """ldexp: a number, and the power of two by which it is multiplied."""
    value, exponent = operand_values(scope, call)
    return operation("ldexp", exponent, value)


def fraction_and_exponent(scope: Scope, call: Instruction) -> Item:
    """frexp: a structure of both."""
    (operand,) = operand_values(scope, call)
    value = scope.emitter.let(operand, "value")
    return [operation("frexp_fraction", value), cast(operation("frexp_exponent", value), I32)]


def extreme_with_nan(name: str) -> Handler:
    """maximum and minimum: a NaN operand gives a NaN."""

    def translate(scope: Scope, call: Instruction) -> Item:
        a, b = (scope.emitter.let(x) for x in operand_values(scope, call))
        unordered = operation("either", operation("ne", a, a), operation("ne", b, b))
        return selected(unordered, operation("add", a, b), operation(name, a, b))

    return translate


def vector_reduction(op: str) -> Handler:
    """vector.reduce: the elements combined from the first one on; of floats after the start value. op: LLVM's name."""

    def combine(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        if op[0] == "u":
            return signed(operation(op[1:], unsigned(a), unsigned(b)))
        return operation(op[1:], a, b) if op.endswith(("max", "min")) else combined(op, a, b)

    def translate(scope: Scope, call: Instruction) -> Item:
        *start, vector = call.operands
        lanes = scope.values.resolve(vector)
        assert isinstance(lanes, list)
        items: list[Any] = [*map(scope.values.expr, start), *lanes]
        total: ir.Expr = items[0]
        for item in items[1:]:
            total = scope.emitter.let(combine(total, item))
        return total

    return translate


def float_class(scope: Scope, call: Instruction) -> Item:
    """is.fpclass for sets that do not separate normal, subnormal and signalling numbers."""
    value, mask = operand_values(scope, call)
    value, bits = scope.emitter.let(value), fixed(mask, "class of floats")
    nan, infinite = operation("ne", value, value), operation("isinf", value)
    assert isinstance(value.type, Scalar)
    zero = operation("eq", value, constant(0, value.type, value.span))
    negative = operation("signbit", value)
    finite = negated(operation("either", operation("either", nan, infinite), zero))
    result: ir.Expr = constant(False, BOOL, value.span)
    for test, below, above in ((infinite, 0x004, 0x200), (finite, 0x018, 0x180), (zero, 0x020, 0x040)):
        if bits & below not in (0, below) or bits & above not in (0, above):
            raise UnsupportedError(f"the class of floats {bits:#x} is not supported")
        if bits & (below | above):
            side = operation("both", test, negative if bits & below else negated(negative))
            result = operation("either", result, test if bits & below and bits & above else side)
    if bits & 3 not in (0, 3):
        raise UnsupportedError(f"the class of floats {bits:#x} is not supported")
    return operation("either", result, nan) if bits & 3 else result
