"""The table of pure operations: one row each with types, NumPy meaning, CUDA and LLVM spelling, cost and domain.

The NumPy meaning has a result for all operands. Outside the row's domain CUDA leaves the result undefined, and the
other engines are not compared with it. There is one row for each type that can be cast to. `tests/ops` tests every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..language.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    FLOATS,
    HALVES,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    NUMBERS,
    SIGNED,
    U16,
    U32,
    U64,
    UNSIGNED,
    Scalar,
    holds_floats,
)
from . import bits, fused, halves, maths
from . import nodes as ir
from .domains import FitsInteger, NonZeroDivisor, NoOverflow, NotLowest, ShiftInRange
from .op import BITS, COSTS, VALUE, Cost, Meaning, Op, Policy, Values, ulp

TABLE: dict[str, Op] = {}


def _op(
    name: str,
    types: tuple[Scalar, ...],
    meaning: Meaning,
    cuda: str | dict[Scalar, str],
    llvm: str,
    cost: Any,
    **rest: Any,
) -> None:
    assert name not in TABLE
    TABLE[name] = Op(name, types, meaning, cuda, llvm, cost, **rest)


# ------------------------------------------------------------------ meanings that NumPy does not have
def _truncated_div(a: Values, b: Values) -> Values:
    quotient = np.floor_divide(a, b)
    inexact = (quotient * b != a) & (b != 0)
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))).astype(a.dtype))


def _truncated_rem(a: Values, b: Values) -> Values:
    return np.asarray(np.where(b == 0, a.dtype.type(0), a - _truncated_div(a, b) * b))


def _fits(count: Values, bits: int) -> bool:
    """Return whether every count is below the number of bits. Nearly all are."""
    if count.size == 1:
        return 0 <= int(count.item()) < bits
    return bool(((count >= 0) & (count < bits)).all())


def _shift_left(a: Values, b: Values) -> Values:
    bits = 8 * a.dtype.itemsize
    if _fits(b, bits):
        return np.asarray(a << b.astype(a.dtype, copy=False)).astype(a.dtype, copy=False)
    count = (b & b.dtype.type(bits - 1)).astype(a.dtype)
    return np.asarray(np.where((b >= 0) & (b < bits), a << count, 0)).astype(a.dtype)


def _shift_right(a: Values, b: Values) -> Values:
    bits = 8 * a.dtype.itemsize
    if _fits(b, bits):
        return np.asarray(a >> b.astype(a.dtype, copy=False)).astype(a.dtype, copy=False)
    count = np.where((b >= 0) & (b < bits), b, bits - 1).astype(a.dtype)
    out_of_range = (b < 0) | (b >= bits)
    shifted = a >> count
    return np.asarray(np.where(out_of_range & (a >= 0), 0, shifted)).astype(a.dtype)


def _extreme(pick: Meaning, of_zeros: Meaning) -> Meaning:
    """Return the meaning of min or max, for which -0 is smaller than +0. of_zeros: combines the bits of two zeros."""

    def meaning(a: Values, b: Values) -> Values:
        result = np.asarray(pick(a, b))
        if result.dtype.kind != "f" or not (zeros := (a == 0) & (b == 0)).any():
            return result
        bits = f"u{result.dtype.itemsize}"
        return np.where(zeros, of_zeros(a.view(bits), b.view(bits)).view(result.dtype), result)

    return meaning


def _leading_zeros(a: Values) -> Values:
    bits = 8 * a.dtype.itemsize
    rest = np.array(a, copy=True).view(f"u{a.dtype.itemsize}")
    zeros = np.full(rest.shape, bits, np.int32)
    step = bits // 2
    while step:
        high = rest >> rest.dtype.type(step)
        nonzero = high != 0
        zeros = np.where(nonzero, zeros - step, zeros).astype(np.int32)
        rest = np.where(nonzero, high, rest).astype(rest.dtype)
        step //= 2
    return np.asarray(zeros - (rest != 0)).astype(np.int32)


def _through_f64(function: Callable[[Values], Values]) -> Meaning:
    """f32 through f64 and rounded once: half an ulp, the same on every processor."""

    def meaning(x: Values) -> Values:
        return np.asarray(function(x.astype(np.float64)).astype(x.dtype))

    return meaning


def cast_meaning(target: Scalar) -> Meaning:
    """Return the meaning of a cast: wrap integers, round to nearest, truncate floats and saturate as CUDA does."""
    dtype = target.dtype

    def meaning(x: Values) -> Values:
        if target is BOOL:
            return np.asarray(x != 0)
        if target in HALVES:
            return halves.converted(x, target)
        if x.dtype.itemsize == 2 and holds_floats(x.dtype):
            x = x.astype(np.float32)
        if x.dtype.kind != "f" or target.is_float:
            return x.astype(dtype)
        # CUDA converts to at least 32 bits and then wraps to narrower types.
        middle = target if target.size >= 4 else (I32 if target.kind == "int" else U32)
        low, high = middle.range
        clamped = np.trunc(np.where(np.isnan(x), 0, x)).astype(np.float64)
        inside = (clamped >= low) & (clamped < float(high + 1))
        whole = np.where(inside, clamped, 0).astype(middle.dtype)
        whole = np.where(clamped >= float(high + 1), middle.dtype.type(high), whole)
        whole = np.where(clamped < low, middle.dtype.type(low), whole)
        if x.dtype.itemsize == 8 or middle.size == 8:  # PTX: a NaN gives the top bit, not 0
            whole = np.where(np.isnan(x), np.array(1 << (middle.bits - 1), f"u{middle.size}").view(middle.dtype), whole)
        return whole.astype(dtype)

    return meaning


def cast_spelling(source: Scalar, target: Scalar) -> str:
    """CUDA text of a cast; float to integer names the rounding and so saturates by definition."""
    if target in HALVES:
        return halves.narrowed(source, target)
    value = halves.widened(source)
    if target is BOOL:
        return f"({value} != 0)" if source in HALVES else "{0} != 0"
    if source in HALVES and target is F32:
        return value
    if not (source.is_float and target.is_integer):
        return f"({CUDA_NAMES[target]}){value}"
    prefix = "double" if source is F64 else "float"
    wide = {I64: "ll", U64: "ull"}.get(target, "int" if target.kind == "int" else "uint")
    call = f"__{prefix}2{wide}_rz({value})"
    return call if target.size >= 4 else f"({CUDA_NAMES[target]}){call}"


CUDA_NAMES = {
    BOOL: "bool", I8: "signed char", I16: "short", I32: "int", I64: "long long",
    UNSIGNED[0]: "unsigned char", UNSIGNED[1]: "unsigned short", U32: "unsigned int", U64: "unsigned long long",
    F16: "__half", BF16: "__nv_bfloat16", F32: "float", F64: "double",
}  # fmt: skip


def _by_float(single: str, double: str) -> dict[Scalar, str]:
    return {F32: single, F64: double}


WORDS = (I32, U32, I64, U64)
BOTH: tuple[Literal["int", "uint"], ...] = ("int", "uint")


def _by_word(narrow: str, wide: str) -> dict[Scalar, str]:
    return {I32: narrow, U32: narrow, I64: wide, U64: wide}


_words = _by_word("__popc({0})", "__popcll({0})")
_zeros = _by_word("__clz({0})", "__clzll({0})")
_reversed = {I32: "(int)__brev({0})", U32: "__brev({0})", I64: "(long long)__brevll({0})", U64: "__brevll({0})"}
_high_products = {
    I32: "__mulhi({0}, {1})",
    U32: "__umulhi({0}, {1})",
    I64: "__mul64hi({0}, {1})",
    U64: "__umul64hi({0}, {1})",
}
_extremes = {
    name: {t: f"{'f' if t.is_float else ''}{name}{'f' if t is F32 else ''}({{0}}, {{1}})" for t in NUMBERS}
    | halves.called(f"__h{name}", 2)
    for name in ("min", "max")
}
_ratios = dict.fromkeys(FLOATS, "{0} / {1}") | halves.through_float("__fdiv_rn({0}, {1})")
_fused = _by_float("fmaf({0}, {1}, {2})", "fma({0}, {1}, {2})") | halves.called("__hfma", 3)
_roots = _by_float("sqrtf({0})", "sqrt({0})") | halves.through_float("sqrtf({0})")
_floor_div = {t: "{0} / {1}" if t in UNSIGNED else "floor_div({0}, {1})" for t in INTEGERS}
_floor_mod = {t: "{0} % {1}" if t in UNSIGNED else "floor_mod({0}, {1})" for t in INTEGERS}
_absolute = {I8: "abs({0})", I16: "abs({0})", I32: "abs({0})", I64: "llabs({0})", F32: "fabsf({0})", F64: "fabs({0})"}
_absolute |= halves.called("__habs", 1)


def _infix(symbol: str, half: str) -> dict[Scalar, str]:
    """An operator; halves need the function that is never fused with another."""
    return dict.fromkeys(NUMBERS, f"{{0}} {symbol} {{1}}") | halves.called(half, 2)


# fmt: off
#   name         operand types       meaning               CUDA                       LLVM                              cost
_op("add",       NUMBERS,            np.add,               _infix("+", "__hadd_rn"),           "add|add|fadd",                   "arith", domain=NoOverflow("add"), widens=BOTH)
_op("sub",       NUMBERS,            np.subtract,          _infix("-", "__hsub_rn"),           "sub|sub|fsub",                   "arith", domain=NoOverflow("sub"), widens=BOTH)
_op("mul",       NUMBERS,            np.multiply,          _infix("*", "__hmul_rn"),           "mul|mul|fmul",                   "mul",   domain=NoOverflow("mul"), widens=BOTH)
_op("neg",       NUMBERS,            np.negative,          "-{0}",                    ":negate",                        "arith", operands=1, domain=NotLowest("-({0})"), widens=BOTH)
_op("fdiv",      FLOATS + HALVES,    np.true_divide,       _ratios,                   "fdiv",                           "fdiv")
_op("floordiv",  INTEGERS,           np.floor_divide,      _floor_div,                ":floor_divide",                  "idiv",  domain=NonZeroDivisor("{0} // {1}"), widens=("int",))
_op("mod",       INTEGERS,           np.mod,               _floor_mod,                ":floor_modulo",                  "idiv",  domain=NonZeroDivisor("{0} % {1}"))
_op("div",       INTEGERS,           _truncated_div,       "{0} / {1}",               ":divide",                        "idiv",  domain=NonZeroDivisor("{0} / {1}"), widens=("int",))
_op("rem",       INTEGERS,           _truncated_rem,       "{0} % {1}",               ":remainder",                     "idiv",  domain=NonZeroDivisor("{0} rem {1}"))
_op("and",       (BOOL, *INTEGERS),  np.bitwise_and,       "{0} & {1}",               "and",                            "alu")
_op("or",        (BOOL, *INTEGERS),  np.bitwise_or,        "{0} | {1}",               "or",                             "alu")
_op("xor",       (BOOL, *INTEGERS),  np.bitwise_xor,       "{0} ^ {1}",               "xor",                            "alu")
_op("invert",    INTEGERS,           np.bitwise_not,       "~{0}",                    ":invert",                        "alu",   operands=1, widens=("uint",))
_op("shl",       INTEGERS,           _shift_left,          "{0} << {1}",              ":shift_left",                    "alu",   domain=ShiftInRange(), widens=BOTH, count="any")
_op("shr",       INTEGERS,           _shift_right,         "{0} >> {1}",              ":shift_right",                   "alu",   domain=ShiftInRange(), count="any")
_op("lt",        NUMBERS,            np.less,              "{0} < {1}",               "icmp slt|icmp ult|fcmp olt",     "arith", result=BOOL)
_op("le",        NUMBERS,            np.less_equal,        "{0} <= {1}",              "icmp sle|icmp ule|fcmp ole",     "arith", result=BOOL)
_op("gt",        NUMBERS,            np.greater,           "{0} > {1}",               "icmp sgt|icmp ugt|fcmp ogt",     "arith", result=BOOL)
_op("ge",        NUMBERS,            np.greater_equal,     "{0} >= {1}",              "icmp sge|icmp uge|fcmp oge",     "arith", result=BOOL)
_op("eq",        (BOOL, *NUMBERS),   np.equal,             "{0} == {1}",              "icmp eq|icmp eq|fcmp oeq",       "arith", result=BOOL)
_op("ne",        (BOOL, *NUMBERS),   np.not_equal,         "{0} != {1}",              "icmp ne|icmp ne|fcmp une",       "arith", result=BOOL)
_op("not",       (BOOL,),            np.logical_not,       "!{0}",                    ":invert",                        "alu",   operands=1)
_op("both",      (BOOL,),            np.logical_and,       "{0} && {1}",              "and",                            "alu")
_op("either",    (BOOL,),            np.logical_or,        "{0} || {1}",              "or",                             "alu")
_op("select",    (BOOL, *NUMBERS),   np.where,             "{0} ? {1} : {2}",         ":select",                        "alu",   operands=3, first=BOOL)
_op("min",       NUMBERS,            halves.in_f32(_extreme(np.fmin, np.bitwise_or)), _extremes["min"],          "@smin|@umin|:least",             "arith", policy=VALUE)
_op("max",       NUMBERS,            halves.in_f32(_extreme(np.fmax, np.bitwise_and)), _extremes["max"],          "@smax|@umax|:greatest",          "arith", policy=VALUE)
_op("viaddmax",  (I32,),             lambda a, b, c: np.maximum(a + b, c), "__viaddmax_s32({0}, {1}, {2})", ":greatest_of_sum",  "alu", operands=3, domain=NoOverflow("add"))
_op("vimax3",    (I32,),             lambda a, b, c: np.maximum(np.maximum(a, b), c), "__vimax3_s32({0}, {1}, {2})", ":greatest_of_three", "alu", operands=3)
_op("abs",       SIGNED + FLOATS + HALVES, np.abs,               _absolute,                 ":absolute||@fabs",               "arith", operands=1, domain=NotLowest("abs({0})"), widens=("int",))
_op("fma",       FLOATS + HALVES,    halves.fused(fused.fma), _fused, "||@fma|:fused_halves",                           "arith", operands=3)
_op("sqrt",      FLOATS + HALVES,    np.sqrt,              _roots,   "@sqrt",                          "fdiv", operands=1)
_op("rsqrt",     FLOATS,             _through_f64(lambda x: 1 / np.sqrt(x)), _by_float("rsqrtf({0})", "rsqrt({0})"), ":reciprocal_root",               "sfu", operands=1, policy=ulp(2))
_op("popcount",  WORDS,              lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.int32), _words, ":population",                    "alu", operands=1, result=I32)
_op("clz",       WORDS,              _leading_zeros,       _zeros,                    ":leading_zeros",                 "alu",   operands=1, result=I32)
_op("ffs",       WORDS,              bits.first_set,       _by_word("__ffs({0})", "__ffsll({0})"), ":first_set",                      "alu", operands=1, result=I32)
_op("brev",      WORDS,              bits.reversed_bits,   _reversed,                 "@bitreverse",                    "alu",   operands=1)
_op("mulhi",     WORDS,              bits.high_product,    _high_products,            ":high_product",                  "imul")
_op("byte_perm", (U32,),             bits.permuted_bytes,  "__byte_perm({0}, {1}, {2})", ":permuted_bytes",             "alu",   operands=3)
_op("dp4a",      (I32, U32),         bits.dot_of_bytes,    "__dp4a({0}, {1}, {2})",   ":dot_of_bytes",                  "imul",  operands=3)
_op("funnel_shift_left",  (U32,),    bits.funnel(True, False),  "__funnelshift_l({0}, {1}, {2})", ":funnel_left",      "alu",   operands=3)
_op("funnel_shift_right", (U32,),    bits.funnel(False, False), "__funnelshift_r({0}, {1}, {2})", ":funnel_right",     "alu",   operands=3)
_op("funnel_shift_left_clamped",  (U32,), bits.funnel(True, True),  "__funnelshift_lc({0}, {1}, {2})", ":funnel_left_clamped",  "alu", operands=3)
_op("funnel_shift_right_clamped", (U32,), bits.funnel(False, True), "__funnelshift_rc({0}, {1}, {2})", ":funnel_right_clamped", "alu", operands=3)
_op("as_i32",    (F32,),             lambda x: x.view(np.int32),    "__float_as_int({0})",         "bitcast",                        "alu",  operands=1, result=I32)
_op("as_u32",    (F32,),             lambda x: x.view(np.uint32),   "__float_as_uint({0})",        "bitcast",                        "alu",  operands=1, result=U32)
_op("as_i64",    (F64,),             lambda x: x.view(np.int64),    "__double_as_longlong({0})",   "bitcast",                        "alu",  operands=1, result=I64)
_op("as_u64",    (F64,),             lambda x: x.view(np.uint64),   "(unsigned long long)__double_as_longlong({0})", "bitcast",                        "alu", operands=1, result=U64)
_op("as_i16",    HALVES,             lambda x: x.view(np.int16),    {F16: "__half_as_short({0})", BF16: "__bfloat16_as_short({0})"}, "bitcast",                     "alu",  operands=1, result=I16)
_op("as_u16",    HALVES,             lambda x: x.view(np.uint16),   {F16: "__half_as_ushort({0})", BF16: "__bfloat16_as_ushort({0})"}, "bitcast",                     "alu",  operands=1, result=U16)
_op("as_f16",    (I16, U16),             lambda x: x.view(F16.dtype),   {I16: "__short_as_half({0})", U16: "__ushort_as_half({0})"}, "bitcast",  "alu", operands=1, result=F16)
_op("as_bf16",   (I16, U16),             lambda x: x.view(BF16.dtype),  {I16: "__short_as_bfloat16({0})", U16: "__ushort_as_bfloat16({0})"}, "bitcast", "alu", operands=1, result=BF16)
_op("as_f32",    (I32, U32),         lambda x: x.view(np.float32),  {I32: "__int_as_float({0})", U32: "__uint_as_float({0})"}, "bitcast",                        "alu", operands=1, result=F32)
_op("as_f64",    (I64, U64),         lambda x: x.view(np.float64),  "__longlong_as_double({0})",   "bitcast",                        "alu",  operands=1, result=F64)
# fmt: on

TABLE |= {row.name: row for row in maths.ROWS}

for _target in (BOOL, *NUMBERS):
    _op(
        f"cast_{_target.name}",
        tuple(t for t in (BOOL, *NUMBERS) if t is not _target),
        cast_meaning(_target),
        {t: cast_spelling(t, _target) for t in (BOOL, *NUMBERS)},
        ":cast",
        "convert",
        operands=1,
        result=_target,
        domain=FitsInteger(_target) if _target.is_integer else None,
    )


def may_leave_domain(op: ir.Op) -> bool:
    """Return whether operands can be outside the domain of the operation's row. Constant operands may prove that they are not."""
    domain, type, last = TABLE[op.name].domain, op.args[0].type, op.args[-1]
    if domain is None or not isinstance(type, Scalar):
        return False
    return domain.may_leave(type, last.value if isinstance(last, ir.Const) else None)


__all__ = ["BITS", "COSTS", "CUDA_NAMES", "TABLE", "VALUE", "Cost", "Op", "Policy", "Values", "may_leave_domain", "ulp"]
