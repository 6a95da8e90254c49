"""f16 and bf16 as LLVM instructions on their bits, identical on every processor; the scalar form of `ir.halves`.

A half is widened to f32, computed there, and rounded. LLVM's own halves are not used: without processor support they call a library.
"""

from ..language.types import BF16, F16, F32, F64, I32, I64, U16, Scalar
from .builder import FunctionBuilder
from .shape import Shape

_TO_NORMAL = 2.0**112
"""Factor from an f16's bits placed in an f32 to the f16's value."""
_REBIASED = 112 << 23
"""Difference of the exponent biases, in the bits of an f32."""


class _Writer:
    """Writer of instructions on values of one shape."""

    def __init__(self, builder: FunctionBuilder, shape: Shape) -> None:
        self.builder, self.shape = builder, shape

    def op(self, word: str, type: Scalar, a: str, b: str | int | float) -> str:
        """Add `word a, b` on values of a type; `b` may be a number."""
        shape = self.shape.with_type(type)
        second = b if isinstance(b, str) else shape.constant(b)
        return self.builder.let(f"{word} {shape.type} {a}, {second}", "half")

    def bits(self, x: str, source: Scalar, target: Scalar) -> str:
        return self.cast("bitcast", x, source, target)

    def cast(self, word: str, x: str, source: Scalar, target: Scalar) -> str:
        return self.builder.let(
            f"{word} {self.shape.with_type(source).type} {x} to {self.shape.with_type(target).type}", "half"
        )

    def choose(self, condition: str, type: Scalar, a: str | int, b: str | int) -> str:
        shape = self.shape.with_type(type)
        yes, no = (v if isinstance(v, str) else shape.constant(v) for v in (a, b))
        return self.builder.let(f"select {shape.bool} {condition}, {shape.type} {yes}, {shape.type} {no}", "half")

    def both(self, a: str, b: str) -> str:
        return self.builder.let(f"and {self.shape.bool} {a}, {b}", "half")

    def size(self, x: str, type: Scalar) -> str:
        return self.builder.intrinsic("llvm.fabs", self.shape.with_type(type).type, x, hint="size")


def widened(builder: FunctionBuilder, shape: Shape, x: str) -> str:
    """Return a half as f32, exactly."""
    write = _Writer(builder, shape)
    bits = write.cast("zext", x, U16, I32)
    if shape.scalar == BF16:
        return write.bits(write.op("shl", I32, bits, 16), I32, F32)
    sign = write.op("shl", I32, write.op("and", I32, bits, 0x8000), 16)
    size = write.op("shl", I32, write.op("and", I32, bits, 0x7FFF), 13)
    scaled = write.op("fmul", F32, write.bits(size, I32, F32), _TO_NORMAL)
    special = write.op("or", I32, size, 0x7F800000)
    finite = write.op("icmp ult", I32, size, 0x7C00 << 13)
    magnitude = write.choose(finite, I32, write.bits(scaled, F32, I32), special)
    return write.bits(write.op("or", I32, magnitude, sign), I32, F32)


def rounded(builder: FunctionBuilder, shape: Shape, type: Scalar, x: str) -> str:
    """Return an f32 rounded to a half, to nearest, ties to even; a NaN becomes CUDA's canonical NaN."""
    write = _Writer(builder, shape)
    bits = write.bits(x, F32, I32)
    size = write.op("and", I32, bits, 0x7FFFFFFF)
    sign = write.op("and", I32, write.op("lshr", I32, bits, 16), 0x8000)
    magnitude = _f16(write, size) if type == F16 else _nearest(write, size, 16, 0)
    number = write.op("icmp ule", I32, size, 0x7F800000)
    magnitude = write.choose(number, I32, magnitude, 0x7FFF)
    return write.cast("trunc", write.op("or", I32, magnitude, sign), I32, U16)


def _nearest(write: _Writer, size: str, amount: int, rebiased: int) -> str:
    """Return the bits shifted right by `amount`, rounded to nearest, ties to even."""
    last = write.op("and", I32, write.op("lshr", I32, size, amount), 1)
    up = write.op("add", I32, write.op("add", I32, size, (1 << (amount - 1)) - 1 - rebiased), last)
    return write.op("lshr", I32, up, amount)


def _f16(write: _Writer, size: str) -> str:
    """Return the f16 bits of a magnitude; adding 1/2 aligns subnormal results in the low bits."""
    magnitude = _nearest(write, size, 13, _REBIASED)
    units = write.bits(write.op("fadd", F32, write.bits(size, I32, F32), 0.5), F32, I32)
    small = write.op("icmp ult", I32, size, 0x38800000)  # 2^-14
    magnitude = write.choose(small, I32, write.op("sub", I32, units, 0x3F000000), magnitude)
    beyond = write.op("icmp uge", I32, size, 0x477FF000)  # 65520 rounds to infinity
    return write.choose(beyond, I32, 0x7C00, magnitude)


def _round_to_odd(write: _Writer, near: str, types: tuple[Scalar, Scalar], inexact: str, away: str) -> str:
    """Return `near` rounded to odd: moved by one bit if it is inexact with an even last bit. away: whether from 0.
    types: its own, and the type of its bits."""
    own, whole = types
    bits = write.bits(near, own, whole)
    even = write.op("icmp eq", whole, write.op("and", whole, bits, 1), 0)
    moved = write.op("add", whole, bits, write.choose(away, whole, 1, -1))
    return write.bits(write.choose(write.both(inexact, even), whole, moved, bits), whole, own)


def odd_sum(builder: FunctionBuilder, shape: Shape, a: str, b: str) -> str:
    """Return a + b of f64, rounded to odd."""
    write = _Writer(builder, shape)
    total = write.op("fadd", F64, a, b)
    other = write.op("fsub", F64, total, a)
    of_a = write.op("fsub", F64, a, write.op("fsub", F64, total, other))
    error = write.op("fadd", F64, of_a, write.op("fsub", F64, b, other))
    inexact = write.op("fcmp one", F64, error, 0.0)
    positive, above = write.op("fcmp ogt", F64, error, 0.0), write.op("fcmp ogt", F64, total, 0.0)
    away = builder.let(f"icmp eq {shape.bool} {positive}, {above}", "half")
    return _round_to_odd(write, total, (F64, I64), inexact, away)


def rounded_f64(builder: FunctionBuilder, shape: Shape, type: Scalar, x: str) -> str:
    """Return an f64 as a half, rounded once."""
    write = _Writer(builder, shape)
    near = write.cast("fptrunc", x, F64, F32)
    back = write.cast("fpext", near, F32, F64)
    away = write.op("fcmp olt", F64, write.size(back, F64), write.size(x, F64))
    odd = _round_to_odd(write, near, (F32, I32), write.op("fcmp one", F64, back, x), away)
    return rounded(builder, shape, type, odd)


def rounded_integer(builder: FunctionBuilder, shape: Shape, type: Scalar, x: str) -> str:
    """Return an integer or a bool as a half, rounded once; a 64-bit integer is split into two exact f64."""
    write, source = _Writer(builder, shape), shape.scalar
    word = "sitofp" if source.kind == "int" else "uitofp"
    if source.bits < 64:
        return rounded_f64(builder, shape, type, write.cast(word, x, source, F64))
    low = write.op("and", source, x, 0xFFFFFFFF)
    terms = (write.cast(word, term, source, F64) for term in (write.op("sub", source, x, low), low))
    return rounded_f64(builder, shape, type, odd_sum(builder, shape, *terms))


def fused(builder: FunctionBuilder, shape: Shape, a: str, b: str, c: str) -> str:
    """Return a * b + c of halves, rounded once."""
    write = _Writer(builder, shape)
    x, y, z = (write.cast("fpext", widened(builder, shape, v), F32, F64) for v in (a, b, c))
    total = odd_sum(builder, shape, write.op("fmul", F64, x, y), z)
    return rounded_f64(builder, shape, shape.scalar, total)
