"""The PTX conversions: rows as in `ptx_table`."""

from ..ir import nodes as ir
from ..ir.matrices import FLOATS
from ..language.types import BF16, F16, F32, F64, I16, I32, U32, Scalar
from .arithmetic import UNSIGNED, bitcast, cast, constant, operation, selected
from .assembly import Registers, packed, pairs
from .ptx_table import PAIRED, TYPES, row
from .types import UnsupportedError

_ROUNDS = {"rni": "rint", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}


@row(r"cvt\.(rna|rn)\.tf32\.f32")
def _to_tf32(r: Registers, mode: str, d: str, a: str) -> None:
    """Round to 10 fraction bits, halves away from zero or to the even number. A NaN becomes 0x7FFFFFFF."""
    value = r.let(r.read(a, F32))
    bits = r.let(bitcast(value, I32))
    unused = FLOATS["tf32"].unused
    half: ir.Expr = r.number(1 << (unused - 1))
    if mode == "rn":
        odd = operation("and", operation("shr", bits, r.number(unused)), r.number(1))
        half = operation("add", r.number((1 << (unused - 1)) - 1), odd)
    rounded = operation("and", operation("add", bits, half), r.number(-1 << unused))
    rounded = selected(operation("isinf", value), bits, rounded)
    r.write(d, selected(operation("ne", value, value), r.number(0x7FFFFFFF), rounded))


_LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B}
_NAN = 0x7F
"""A NaN of both formats of 8 bits."""


@row(r"cvt\.rn\.satfinite\.(e4m3|e5m2)x2\.(f32|f16x2)")
def _to_bytes(r: Registers, to: str, source: str, d: str, *operands: str) -> None:
    """Convert to two numbers of 8 bits, the first operand to the high one. Numbers above the largest one become it."""
    if source == "f16x2":
        (pair,) = operands
        values = pairs(r.read(pair, I32), F16, r)
    else:
        high, low = operands
        values = [r.read(low, F32), r.read(high, F32)]
    first, second = (_to_byte(r, cast(value, F32), to) for value in values)
    r.write(d, cast(operation("or", first, operation("shl", second, r.number(8))), I16))


def _to_byte(r: Registers, value: ir.Expr, to: str) -> ir.Expr:
    form, wide = FLOATS[to], FLOATS["f32"]
    value = r.let(value)
    bits = r.let(bitcast(value, I32))
    magnitude = r.let(operation("and", bits, r.number(0x7FFFFFFF)))
    shift, base = wide.fraction - form.fraction, (form.lowest - 1 - (wide.lowest - 1)) << form.fraction
    odd = operation("and", operation("shr", magnitude, r.number(shift)), r.number(1))
    rounded = operation("add", magnitude, operation("add", odd, r.number((1 << (shift - 1)) - 1)))
    normal = operation("sub", operation("shr", rounded, r.number(shift)), r.number(base))
    unit = constant(2.0 ** (form.fraction - form.lowest), F32, r.span)
    subnormal = cast(operation("rint", operation("mul", operation("abs", value), unit)), I32)
    is_small = operation("lt", magnitude, r.number((form.lowest - wide.lowest + 1) << wide.fraction))
    own = operation("min", selected(is_small, subnormal, normal), r.number(_LARGEST[to]))
    own = selected(operation("ne", value, value), r.number(_NAN), own)
    sign = operation("and", operation("shr", bits, r.number(24)), r.number(128))
    return r.let(selected(operation("ne", value, value), r.number(_NAN), operation("or", own, sign)))


@row(r"cvt\.rn\.f16x2\.(e4m3|e5m2)x2")
def _from_bytes(r: Registers, source: str, d: str, a: str) -> None:
    word = r.let(cast(r.read(a, I16), I32))
    r.write(d, packed([_from_byte(r, operation("shr", word, r.number(at)), source) for at in (0, 8)], r))


def _from_byte(r: Registers, word: ir.Expr, source: str) -> ir.Expr:
    byte = r.let(operation("and", word, r.number(255)))
    if source == "e5m2":  # the high byte of a half
        return bitcast(cast(operation("shl", byte, r.number(8)), I16), F16)
    magnitude = operation("and", byte, r.number(127))
    form, half = FLOATS["e4m3"], FLOATS["f16"]
    bits = cast(operation("shl", magnitude, r.number(half.fraction - form.fraction)), I16)
    scaled = operation("mul", bitcast(bits, F16), constant(2.0 ** (form.lowest - half.lowest), F16, r.span))
    nan = bitcast(r.number(0x7FFF, I16), F16)
    value = bitcast(selected(operation("eq", magnitude, r.number(_NAN)), nan, scaled), I16)
    sign = cast(operation("shl", operation("and", byte, r.number(128)), r.number(8)), I16)
    return bitcast(operation("or", value, sign), F16)


def _half(r: Registers, value: ir.Expr, target: Scalar, mode: str) -> ir.Expr:
    """Return an f32 as a half, rounded to the nearest one or to zero."""
    if mode == "rn":
        return cast(value, target)
    value = r.let(value)
    nearest = r.let(cast(value, target))
    beyond = operation("gt", operation("abs", cast(nearest, F32)), operation("abs", value))
    bits = bitcast(nearest, I16)
    return bitcast(selected(beyond, operation("sub", bits, r.number(1, I16)), bits), target)


@row(r"cvt(?:\.(r[nzmp]i?))?(?:\.ftz)?(\.sat)?\.(\w+)\.(\w+)")
def _convert(r: Registers, mode: str | None, sat: str | None, to: str, source: str, d: str, *operands: str) -> None:
    if to in PAIRED and mode in ("rn", "rz") and not sat:  # the first operand becomes the high half
        values = [r.read(own, TYPES[source]) for own in reversed(operands)]
        r.write(d, packed([_half(r, value, PAIRED[to], mode) for value in values], r))
        return
    (a,) = operands
    target, own = TYPES[to], TYPES[source]
    value = r.read(a, own)
    if target.is_float:
        if mode == "rz" and own is F32 and target in (F16, BF16) and not sat:
            r.write(d, _half(r, value, target, mode))
            return
        if mode not in (None, "rn") and not mode.endswith("i"):
            raise UnsupportedError(f"the conversion cvt.{mode} is not supported: it does not round to the nearest")
        if mode in _ROUNDS:
            value = operation(_ROUNDS[mode], value)
        value = cast(value, target)
        if sat:
            value = operation("min", operation("max", value, constant(0, target, r.span)), constant(1, target, r.span))
        r.write(d, value)
        return
    if own.is_float:
        wide = cast(value, F32) if own in (F16, BF16) else value
        value = operation(_ROUNDS.get(mode or "rzi", "trunc"), wide)
    elif sat:
        low, high = (constant(max(min(bound, own.range[1]), own.range[0]), own, r.span) for bound in target.range)
        value = operation("min", operation("max", value, low), high)
    result = cast(value, target)
    # A register of another width has the value with the sign of its type.
    r.write(d, cast(result, {True: I32, False: U32}[target in UNSIGNED]) if target.size < 2 else result)


@row(r"(add|mul|fma)\.(r[zmp])(?:\.ftz)?\.f32")
def _directed(r: Registers, name: str, mode: str, d: str, *operands: str) -> None:
    """Compute in f64, where a product is exact, with the error of the sum; take the f32 on the side of the direction."""
    x, y, *rest = (r.let(cast(r.read(own, F32), F64)) for own in operands)
    zero = constant(0, F64, r.span)
    total = x
    error: ir.Expr = zero
    if name != "add":
        total, y = r.let(operation("mul", x, y)), rest[0] if rest else zero
    if name != "mul":
        x, total = total, r.let(operation("add", total, y))
        rounded = r.let(operation("sub", total, x))
        error = operation("add", operation("sub", x, operation("sub", total, rounded)), operation("sub", y, rounded))
    nearest = r.let(cast(total, F32))
    gap = r.let(operation("sub", total, cast(nearest, F64)))
    # The exact value is above the nearest one, or below it.
    beyond = r.let(selected(operation("eq", gap, zero), error, gap))
    above, below = operation("gt", beyond, zero), operation("lt", beyond, zero)
    positive = operation("ge", nearest, constant(0, F32, r.span))
    bits = bitcast(nearest, I32)
    inward, outward = operation("sub", bits, r.number(1)), operation("add", bits, r.number(1))
    is_zero = operation("eq", nearest, constant(0, F32, r.span))
    downward = selected(is_zero, r.number(-0x7FFFFFFF), selected(positive, inward, outward))
    upward = selected(is_zero, r.number(1), selected(positive, outward, inward))
    steps = {
        "rm": selected(below, downward, bits),
        "rp": selected(above, upward, bits),
        "rz": selected(selected(positive, operation("both", below, operation("not", is_zero)), above), inward, bits),
    }
    r.write(d, bitcast(steps[mode], F32))


@row(r"set\.(nan|num|eq|ne|lt|le|gt|ge)\.f16x2\.f16x2")
def _compare_halves(r: Registers, predicate: str, d: str, a: str, b: str) -> None:
    """Write 1 for each half for which a comparison holds, else 0."""
    results = []
    for x, y in zip(*(pairs(r.read(own, I32), F16, r) for own in (a, b)), strict=True):
        if predicate in ("nan", "num"):
            unordered = operation("either", operation("ne", x, x), operation("ne", y, y))
            holds = unordered if predicate == "nan" else operation("not", unordered)
        else:
            holds = operation(predicate, x, y)
        results.append(selected(holds, constant(1, F16, r.span), constant(0, F16, r.span)))
    r.write(d, packed(results, r))
