"""Rows of the op table as LLVM instructions, on scalars (uniform values) or vectors of lanes.

LLVM leaves some results undefined (a shift beyond the width, a division by zero, a float beyond the integer's
range); here they have the value of the table.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from ..ir import nodes as ir
from ..ir.domains import promoted_bits
from ..ir.library import PREFIX
from ..ir.ops import TABLE
from ..language.types import BOOL, F32, F64, HALVES, I16, I32, I64, U64, Scalar
from . import halves
from .builder import LANES, FunctionBuilder, is_constant, many, scalar_type, splat
from .casts import convert, converted
from .shape import Shape
from .values import Value, lanes, number


def operation(builder: FunctionBuilder, op: ir.Op, args: list[Value]) -> Value:
    """Return the value of an operation."""
    row = TABLE[op.name]
    stepped = _affine(builder, op, args) if any(a.affine for a in args) else None
    if stepped is not None:
        return stepped
    kind = row.deciding(args).type
    if row.count:
        args = [args[0], shift_count(builder, args[1], kind)]
    shape = Shape(kind, all(a.uniform for a in args))
    word = row.instruction(kind)
    if kind in HALVES and word not in _OF_HALVES:
        return _through_f32(builder, op, args)
    if word.startswith("$"):
        return shape.value(op.type, _function(builder, shape, op, args, word[1:]))
    if word.startswith(":"):
        return shape.value(op.type, _COMPOSED[word[1:]](builder, shape, op, args))
    refs = shape.refs(builder, *args)
    if word.startswith("@"):
        ref = builder.intrinsic(f"llvm.{word[1:]}", shape.type, *refs, hint=op.name)
    elif word == "bitcast":
        ref = builder.let(f"bitcast {shape.type} {refs[0]} to {shape.with_type(op.type).type}", "bits")
    else:
        ref = builder.let(f"{word} {shape.type} {', '.join(refs)}", op.name)
    return shape.value(op.type, ref)


_OF_HALVES = (":select", ":cast", ":fused_halves", "bitcast")
"""Operations on halves without widening."""


def _through_f32(builder: FunctionBuilder, op: ir.Op, args: list[Value]) -> Value:
    """Return an operation on halves, computed in f32; rounding the f32 result once more is exact."""
    wide = [converted(builder, arg, F32) for arg in args]
    result = operation(builder, replace(op, type=TABLE[op.name].result_type(F32)), wide)
    return converted(builder, result, op.type) if op.type in HALVES else result


# ------------------------------------------------------------------ affine values
def _affine(builder: FunctionBuilder, op: ir.Op, args: list[Value]) -> Value | None:
    """Return the result as a base and a stride for affine operands (`passes.uniform`); None otherwise."""
    if not op.type.is_integer or any(a.stride is None for a in args):
        return None
    first, type = args[0], op.type
    match op.name:
        case "add" | "sub":
            base = arithmetic(builder, op.name, type, first.ref, args[1].ref)
            return Value(type, base, arithmetic(builder, op.name, type, str(first.stride), str(args[1].stride)))
        case "neg":
            return Value(
                type,
                arithmetic(builder, "sub", type, "0", first.ref),
                arithmetic(builder, "sub", type, "0", str(first.stride)),
            )
        case "mul" if first.uniform or args[1].uniform:
            value, factor = (args[1], first.ref) if first.uniform else (first, args[1].ref)
            stride = arithmetic(builder, "mul", type, str(value.stride), factor)
            return Value(type, arithmetic(builder, "mul", type, value.ref, factor), stride)
        case "shl" if args[1].constant is not None and 0 <= args[1].constant < type.bits:
            factor = str(1 << int(args[1].constant))
            stride = arithmetic(builder, "mul", type, str(first.stride), factor)
            return Value(type, arithmetic(builder, "mul", type, first.ref, factor), stride)
        case "select" if first.uniform and args[1].stride == args[2].stride and args[1].step is not None:
            refs = f"{scalar_type(type)} {args[1].ref}, {scalar_type(type)} {args[2].ref}"
            return Value(type, builder.let(f"select i1 {first.ref}, {refs}", "selected"), args[1].stride)
    if op.name.startswith("cast_") and first.type.is_integer and type.size <= first.type.size:
        return Value(
            type, _narrow(builder, first.type, type, first.ref), _narrow(builder, first.type, type, first.stride)
        )
    return None


def arithmetic(builder: FunctionBuilder, word: str, type: Scalar, a: str | None, b: str | None) -> str:
    """Return the add, sub or mul of integers, folded for constants."""
    assert a is not None and b is not None
    if is_constant(a) and is_constant(b):
        x, y = int(a), int(b)
        return str(_wrap({"add": x + y, "sub": x - y, "mul": x * y}[word], type.bits))
    if (word in ("add", "sub") and b == "0") or (word == "mul" and b == "1"):
        return a
    if (word == "add" and a == "0") or (word == "mul" and a == "1"):
        return b
    if word == "mul" and "0" in (a, b):
        return "0"
    return builder.let(f"{word} {scalar_type(type)} {a}, {b}", word)


def _wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _narrow(builder: FunctionBuilder, source: Scalar, target: Scalar, ref: str | None) -> str:
    assert ref is not None
    if is_constant(ref):
        return str(_wrap(int(ref), target.bits))
    if source.bits == target.bits:
        return ref
    return builder.let(f"trunc {scalar_type(source)} {ref} to {scalar_type(target)}", "narrow")


# ------------------------------------------------------------------ several instructions
def _negate(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    if shape.scalar.is_float:
        return builder.let(f"fneg {shape.type} {x}", "neg")
    return builder.let(f"sub {shape.type} {shape.constant(0)}, {x}", "neg")


def _invert(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    ones = shape.constant(True if shape.scalar is BOOL else -1)
    return builder.let(f"xor {shape.type} {x}, {ones}", "inverted")


def _absolute(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    return builder.call(shape.type, f"llvm.abs.{_suffix(shape)}", (shape.type, x), ("i1", "false"), hint="abs")


def _select(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    a, b = shape.refs(builder, *args[1:])
    condition = f"i1 {args[0].ref}" if args[0].uniform else f"{many('i1')} {lanes(builder, args[0])}"
    return builder.let(f"select {condition}, {shape.type} {a}, {shape.type} {b}", "selected")


def _extreme(comparison: str, of_equal: str) -> Callable[[FunctionBuilder, Shape, ir.Op, list[Value]], str]:
    """Return the writer of min or max. of_equal: combines the bits of equal operands: -0 is smaller than +0."""

    def compute(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
        a, b = shape.refs(builder, *args)  # the other operand for a NaN
        first = builder.let(f"fcmp {comparison} {shape.type} {a}, {b}", "first")
        chosen = builder.let(f"select {shape.bool} {first}, {shape.type} {a}, {shape.type} {b}", op.name)
        whole = shape.with_type({2: I16, 4: I32, 8: I64}[shape.scalar.size]).type
        bits = [builder.let(f"bitcast {shape.type} {x} to {whole}", "bits") for x in (a, b)]
        both = builder.let(f"{of_equal} {whole} {bits[0]}, {bits[1]}", "both")
        both = builder.let(f"bitcast {whole} {both} to {shape.type}", "both")
        equal = builder.let(f"fcmp oeq {shape.type} {a}, {b}", "equal")
        chosen = builder.let(f"select {shape.bool} {equal}, {shape.type} {both}, {shape.type} {chosen}", op.name)
        number_b = builder.let(f"fcmp ord {shape.type} {b}, {b}", "number")
        return builder.let(f"select {shape.bool} {number_b}, {shape.type} {chosen}, {shape.type} {a}", op.name)

    return compute


def _is(comparison: str, to: float) -> Callable[[FunctionBuilder, Shape, ir.Op, list[Value]], str]:
    """Return the writer of a comparison of the magnitude."""

    def compute(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
        (x,) = shape.refs(builder, *args)
        size = builder.intrinsic("llvm.fabs", shape.type, x, hint="size")
        return builder.let(f"fcmp {comparison} {shape.type} {size}, {shape.constant(to)}", op.name)

    return compute


def _sign_bit(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    whole = shape.with_type(I32 if shape.scalar is F32 else I64)
    bits = builder.let(f"bitcast {shape.type} {x} to {whole.type}", "bits")
    return builder.let(f"icmp slt {whole.type} {bits}, {whole.constant(0)}", op.name)


def _greatest_of_sum(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    a, b, c = shape.refs(builder, *args)
    return builder.intrinsic("llvm.smax", shape.type, builder.let(f"add {shape.type} {a}, {b}", "sum"), c, hint=op.name)


def _greatest_of_three(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    a, b, c = shape.refs(builder, *args)
    return builder.intrinsic("llvm.smax", shape.type, builder.intrinsic("llvm.smax", shape.type, a, b), c, hint=op.name)


def _reciprocal_root(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    wide = shape.with_type(F64)
    (x,) = shape.refs(builder, *args)
    if shape.scalar is F32:
        x = builder.let(f"fpext {shape.type} {x} to {wide.type}", "wide")
    root = builder.intrinsic("llvm.sqrt", wide.type, x, hint="root")
    result = builder.let(f"fdiv {wide.type} {wide.constant(1.0)}, {root}", "rsqrt")
    return builder.let(f"fptrunc {wide.type} {result} to {shape.type}", "rsqrt") if shape.scalar is F32 else result


def _population(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    return _to_i32(builder, shape, builder.intrinsic("llvm.ctpop", shape.type, x, hint="popcount"))


def _leading_zeros(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    zeros = builder.call(shape.type, f"llvm.ctlz.{_suffix(shape)}", (shape.type, x), ("i1", "false"), hint="clz")
    return _to_i32(builder, shape, zeros)


def _first_set(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    zeros = builder.call(shape.type, f"llvm.cttz.{_suffix(shape)}", (shape.type, x), ("i1", "false"), hint="zeros")
    one_more = builder.let(f"add {shape.type} {zeros}, {shape.constant(1)}", "first")
    none = builder.let(f"icmp eq {shape.type} {x}, {shape.constant(0)}", "none")
    result = builder.let(
        f"select {shape.bool} {none}, {shape.type} {shape.constant(0)}, {shape.type} {one_more}", "ffs"
    )
    return _to_i32(builder, shape, result)


def _high_product(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    bits = shape.scalar.bits
    wide = f"i{2 * bits}" if shape.uniform else many(f"i{2 * bits}")
    extend = "sext" if shape.scalar.kind == "int" else "zext"
    a, b = (builder.let(f"{extend} {shape.type} {x} to {wide}", "wide") for x in shape.refs(builder, *args))
    product = builder.let(f"mul {wide} {a}, {b}", "product")
    shift = str(bits) if shape.uniform else splat(f"i{2 * bits}", bits)
    return builder.let(
        f"trunc {wide} {builder.let(f'lshr {wide} {product}, {shift}', 'high')} to {shape.type}", "mulhi"
    )


def _permuted_bytes(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    wide = shape.with_type(U64)
    a, b, selector = shape.refs(builder, *args)
    low, high = (builder.let(f"zext {shape.type} {x} to {wide.type}", "wide") for x in (a, b))
    both = builder.let(f"or {wide.type} {builder.let(f'shl {wide.type} {high}, {wide.constant(32)}')}, {low}", "both")
    result = shape.constant(0)
    for at in range(4):
        chosen = builder.let(f"lshr {shape.type} {selector}, {shape.constant(4 * at)}", "chosen")
        chosen = builder.let(f"and {shape.type} {chosen}, {shape.constant(7)}", "chosen")
        shift = builder.let(f"shl {shape.type} {chosen}, {shape.constant(3)}", "shift")
        moved = builder.let(
            f"lshr {wide.type} {both}, {builder.let(f'zext {shape.type} {shift} to {wide.type}')}", "moved"
        )
        byte = builder.let(f"trunc {wide.type} {moved} to {shape.type}", "byte")
        byte = builder.let(f"and {shape.type} {byte}, {shape.constant(255)}", "byte")
        result = builder.let(
            f"or {shape.type} {result}, {builder.let(f'shl {shape.type} {byte}, {shape.constant(8 * at)}')}", "bytes"
        )
    return result


def _dot_of_bytes(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    a, b, total = shape.refs(builder, *args)
    word = "ashr" if shape.scalar.kind == "int" else "lshr"

    def byte(x: str, at: int) -> str:
        up = builder.let(f"shl {shape.type} {x}, {shape.constant(24 - 8 * at)}", "up")
        return builder.let(f"{word} {shape.type} {up}, {shape.constant(24)}", "byte")

    for at in range(4):
        product = builder.let(f"mul {shape.type} {byte(a, at)}, {byte(b, at)}", "product")
        total = builder.let(f"add {shape.type} {total}, {product}", "dp4a")
    return total


def _funnel(left: bool, clamped: bool) -> Callable[[FunctionBuilder, Shape, ir.Op, list[Value]], str]:
    def compute(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
        low, high, count = shape.refs(builder, *args)
        shifted = builder.intrinsic(f"llvm.fsh{'l' if left else 'r'}", shape.type, high, low, count, hint="funnel")
        if not clamped:
            return shifted
        beyond = builder.let(f"icmp uge {shape.type} {count}, {shape.constant(32)}", "outside")
        whole = low if left else high
        return builder.let(f"select {shape.bool} {beyond}, {shape.type} {whole}, {shape.type} {shifted}", "funnel")

    return compute


def _to_i32(builder: FunctionBuilder, shape: Shape, ref: str) -> str:
    return (
        ref
        if shape.scalar.size == 4
        else builder.let(f"trunc {shape.type} {ref} to {shape.with_type(I32).type}", "narrow")
    )


def _suffix(shape: Shape) -> str:
    return shape.element if shape.uniform else f"v{LANES}{shape.element}"


# ------------------------------------------------------------------ shifts
def shift_count(builder: FunctionBuilder, count: Value, type: Scalar) -> Value:
    """Return a shift count in the type of the shifted value; a count beyond the width or negative is clamped to the width."""
    if count.type == type:
        return count
    most = promoted_bits(type)
    if count.constant is not None:
        return number(int(count.constant) if 0 <= count.constant < most else most, type)
    shape = Shape(count.type, count.uniform)
    (ref,) = shape.refs(builder, count)
    least = builder.intrinsic("llvm.umin", shape.type, ref, shape.constant(most), hint="count")
    return shape.value(type, convert(builder, shape, type, least))


def _shift_left(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    return _zero_beyond(builder, shape, "shl", args)


def _shift_right(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    if shape.scalar.kind == "uint":
        return _zero_beyond(builder, shape, "lshr", args)
    a, b = shape.refs(builder, *args)
    if args[1].constant is None or not 0 <= args[1].constant < shape.scalar.bits:
        # A count beyond the width, or negative and so huge as unsigned, yields the sign.
        b = builder.intrinsic("llvm.umin", shape.type, b, shape.constant(shape.scalar.bits - 1), hint="count")
    return builder.let(f"ashr {shape.type} {a}, {b}", "shr")


def _zero_beyond(builder: FunctionBuilder, shape: Shape, word: str, args: list[Value]) -> str:
    a, b = shape.refs(builder, *args)
    if args[1].constant is not None and 0 <= args[1].constant < shape.scalar.bits:
        return builder.let(f"{word} {shape.type} {a}, {b}", word)
    inside = builder.let(f"icmp ult {shape.type} {b}, {shape.constant(shape.scalar.bits)}", "inside")
    count = builder.let(f"select {shape.bool} {inside}, {shape.type} {b}, {shape.type} {shape.constant(0)}", "count")
    moved = builder.let(f"{word} {shape.type} {a}, {count}", word)
    return builder.let(f"select {shape.bool} {inside}, {shape.type} {moved}, {shape.type} {shape.constant(0)}", word)


# ------------------------------------------------------------------ division
def _quotient(builder: FunctionBuilder, shape: Shape, args: list[Value]) -> tuple[str, str, str, str]:
    """Return (a, divisor, quotient truncated, validity of the divisor).

    The divisor is replaced by 1 if it is 0 or if the quotient of the smallest number by -1 overflows.
    """
    a, b = shape.refs(builder, *args)
    signed = shape.scalar.kind == "int"
    word = "sdiv" if signed else "udiv"
    if args[1].constant not in (None, 0, -1):
        return a, b, builder.let(f"{word} {shape.type} {a}, {b}", "quotient"), ""
    valid = builder.let(f"icmp ne {shape.type} {b}, {shape.constant(0)}", "valid")
    safe = valid
    if signed:
        minus = builder.let(f"icmp ne {shape.type} {b}, {shape.constant(-1)}", "minus")
        lowest = builder.let(f"icmp ne {shape.type} {a}, {shape.constant(shape.scalar.range[0])}", "lowest")
        fits = builder.let(f"or {shape.bool} {minus}, {lowest}", "fits")
        safe = builder.let(f"and {shape.bool} {valid}, {fits}", "safe")
    divisor = builder.let(f"select {shape.bool} {safe}, {shape.type} {b}, {shape.type} {shape.constant(1)}", "divisor")
    if shape.uniform or shape.scalar.size == 8:
        return a, divisor, builder.let(f"{word} {shape.type} {a}, {divisor}", "quotient"), valid
    # f64 holds 32-bit integers exactly, and their quotients precisely enough for truncation; processors divide floats
    # by vectors and integers one at a time.
    wide, to, back = shape.with_type(F64).type, *(("sitofp", "fptosi") if signed else ("uitofp", "fptoui"))
    x = builder.let(f"{to} {shape.type} {a} to {wide}", "wide")
    y = builder.let(f"{to} {shape.type} {divisor} to {wide}", "wide")
    exact = builder.let(f"fdiv {wide} {x}, {y}", "ratio")
    return a, divisor, builder.let(f"{back} {wide} {exact} to {shape.type}", "quotient"), valid


def _or_zero(builder: FunctionBuilder, shape: Shape, valid: str, ref: str) -> str:
    if not valid:
        return ref
    return builder.let(f"select {shape.bool} {valid}, {shape.type} {ref}, {shape.type} {shape.constant(0)}", "defined")


def _remainder_of(builder: FunctionBuilder, shape: Shape, a: str, divisor: str, quotient: str) -> str:
    product = builder.let(f"mul {shape.type} {quotient}, {divisor}", "product")
    return builder.let(f"sub {shape.type} {a}, {product}", "remainder")


def _divide(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    _, _, quotient, valid = _quotient(builder, shape, args)
    return _or_zero(builder, shape, valid, quotient)


def _remainder(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    a, divisor, quotient, valid = _quotient(builder, shape, args)
    return _or_zero(builder, shape, valid, _remainder_of(builder, shape, a, divisor, quotient))


def _below(builder: FunctionBuilder, shape: Shape, remainder: str, divisor: str) -> str:
    """Return whether flooring is one below truncating: the remainder is nonzero with another sign than the divisor."""
    some = builder.let(f"icmp ne {shape.type} {remainder}, {shape.constant(0)}", "some")
    signs = builder.let(f"xor {shape.type} {remainder}, {divisor}", "signs")
    differ = builder.let(f"icmp slt {shape.type} {signs}, {shape.constant(0)}", "differ")
    return builder.let(f"and {shape.bool} {some}, {differ}", "below")


def _power_of_two(args: list[Value]) -> int | None:
    """Return the exponent of a constant power-of-two divisor, else None."""
    divisor = args[1].constant
    whole = divisor is not None and divisor > 0 and int(divisor) & (int(divisor) - 1) == 0
    return int(divisor or 0).bit_length() - 1 if whole else None


def _floor_divide(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    exponent = _power_of_two(args)
    if exponent is not None:
        (a,) = shape.refs(builder, args[0])
        word = "ashr" if shape.scalar.kind == "int" else "lshr"
        return builder.let(f"{word} {shape.type} {a}, {shape.constant(exponent)}", "quotient")
    a, divisor, quotient, valid = _quotient(builder, shape, args)
    if shape.scalar.kind == "int":
        below = _below(builder, shape, _remainder_of(builder, shape, a, divisor, quotient), divisor)
        less = builder.let(f"sext {shape.bool} {below} to {shape.type}", "less")
        quotient = builder.let(f"add {shape.type} {quotient}, {less}", "quotient")
    return _or_zero(builder, shape, valid, quotient)


def _floor_modulo(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    exponent = _power_of_two(args)
    if exponent is not None:
        (a,) = shape.refs(builder, args[0])
        return builder.let(f"and {shape.type} {a}, {shape.constant((1 << exponent) - 1)}", "remainder")
    a, divisor, quotient, valid = _quotient(builder, shape, args)
    remainder = _remainder_of(builder, shape, a, divisor, quotient)
    if shape.scalar.kind == "int":
        below = _below(builder, shape, remainder, divisor)
        zero = shape.constant(0)
        more = builder.let(f"select {shape.bool} {below}, {shape.type} {divisor}, {shape.type} {zero}", "more")
        remainder = builder.let(f"add {shape.type} {remainder}, {more}", "remainder")
    return _or_zero(builder, shape, valid, remainder)


# ------------------------------------------------------------------ functions of the library
def _function(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value], name: str) -> str:
    """Call a library function; its operands are arrays in memory."""
    wide = shape.with_type(F64)
    places: list[str] = []
    for arg in args:
        own = shape.with_type(arg.type)
        (ref,) = own.refs(builder, arg)
        if arg.type is F32:
            own, ref = wide, builder.let(f"fpext {own.type} {ref} to {wide.type}", "wide")
        places.append(builder.slot(own.type, f"{op.name}.operand"))
        builder.store(own.type, ref, places[-1])
    to = builder.slot(wide.type, f"{op.name}.result")
    count = 1 if shape.uniform else LANES
    builder.call("void", PREFIX + name, *(("ptr", place) for place in (*places, to)), ("i64", str(count)))
    result = builder.load(wide.type, to, op.name)
    return result if op.type is F64 else convert(builder, wide, op.type, result)


def _fused_halves(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    return halves.fused(builder, shape, *shape.refs(builder, *args))


# ------------------------------------------------------------------ casts
def _cast(builder: FunctionBuilder, shape: Shape, op: ir.Op, args: list[Value]) -> str:
    (x,) = shape.refs(builder, *args)
    return convert(builder, shape, op.type, x)


_COMPOSED: dict[str, Callable[[FunctionBuilder, Shape, ir.Op, list[Value]], str]] = {
    "negate": _negate, "invert": _invert, "absolute": _absolute, "select": _select,
    "least": _extreme("olt", "or"), "greatest": _extreme("ogt", "and"), "reciprocal_root": _reciprocal_root,
    "greatest_of_sum": _greatest_of_sum, "greatest_of_three": _greatest_of_three,
    "first_set": _first_set, "high_product": _high_product, "permuted_bytes": _permuted_bytes, "dot_of_bytes": _dot_of_bytes,
    "funnel_left": _funnel(True, False), "funnel_right": _funnel(False, False),
    "funnel_left_clamped": _funnel(True, True), "funnel_right_clamped": _funnel(False, True),
    "population": _population, "leading_zeros": _leading_zeros,
    "shift_left": _shift_left, "shift_right": _shift_right,
    "divide": _divide, "remainder": _remainder, "floor_divide": _floor_divide, "floor_modulo": _floor_modulo,
    "cast": _cast, "fused_halves": _fused_halves, "isnan": _is("uno", 0.0), "isinf": _is("oeq", math.inf),
    "isfinite": _is("one", math.inf), "signbit": _sign_bit,
}  # fmt: skip
