"""The table of pure operations: one row each with types, NumPy meaning, CUDA and LLVM spelling, cost and domain.

The NumPy meaning has a result for all operands. Outside the row's domain CUDA leaves the result undefined, and the
other engines are not compared with it. There is one row for each type that can be cast to. `tests/ops` tests every row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..language.types import (
    BOOL,
    F32,
    F64,
    FLOATS,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    NUMBERS,
    SIGNED,
    U32,
    U64,
    UNSIGNED,
    Scalar,
)
from . import fused
from . import nodes as ir
from .domains import Domain, FitsInteger, NonZeroDivisor, NoOverflow, NotLowest, ShiftInRange

Values = npt.NDArray[Any]
Meaning = Callable[..., Values]
Cost = Literal["alu", "imul", "idiv", "fp32", "fp64", "fdiv", "sfu", "convert"]
COSTS: tuple[Cost, ...] = ("alu", "imul", "idiv", "fp32", "fp64", "fdiv", "sfu", "convert")


@dataclass(frozen=True)
class Policy:
    """How far engines may differ: the same bits, the same value (-0 equals 0), or within `ulp` units.

    Any NaN equals any NaN under each policy: the processors disagree on a NaN's sign and payload.
    """

    name: Literal["bits", "value", "ulp"]
    ulp: int = 0

    def agree(self, a: Values, b: Values) -> npt.NDArray[np.bool_]:
        """Element by element, whether two results of the same type count as equal."""
        if a.dtype.kind != "f":
            return np.asarray(a == b)
        both_nan = np.isnan(a) & np.isnan(b)
        if self.name == "bits":
            bits = f"u{a.dtype.itemsize}"
            return np.asarray((a.view(bits) == b.view(bits)) | both_nan)
        if self.name == "value":
            return np.asarray((a == b) | both_nan)
        # Ordering floats as integers makes neighbouring numbers differ by one.
        bits, wide = f"i{a.dtype.itemsize}", np.iinfo(f"i{a.dtype.itemsize}")
        ordered = [np.where(v.view(bits) < 0, wide.min - v.view(bits), v.view(bits)).astype(object) for v in (a, b)]
        near = np.abs(ordered[0] - ordered[1]) <= self.ulp
        return np.asarray(near.astype(bool) | both_nan)


BITS, VALUE = Policy("bits"), Policy("value")


def ulp(units: int) -> Policy:
    """Results may differ by so many units in the last place."""
    return Policy("ulp", units)


@dataclass(frozen=True)
class Op:
    """One operation.

    types: operand types it is defined for; all operands share one, save a `select`'s condition.
    result: "same" as the operands, or one type whatever they are.
    cuda: C++ text with {0} {1} {2} for the operands; a dict where the spelling depends on the type.
    llvm: the instruction; "signed|unsigned|float" where it depends on the type. @name: LLVM's intrinsic of that
        name; :name: several instructions, which the printer of LLVM text knows under that name.
    cost: issue class; "arith" stands for alu, fp32 or fp64 by type.
    domain: the operands for which CUDA defines the result; None means all.
    widens: kinds of integer types narrower than int for which C++, computing as int, may leave the type.
    """

    name: str
    types: tuple[Scalar, ...]
    meaning: Meaning
    cuda: str | dict[Scalar, str]
    llvm: str
    cost: Cost | Literal["arith", "mul"]
    operands: int = 2
    result: Literal["same"] | Scalar = "same"
    domain: Domain | None = None
    widens: tuple[Literal["int", "uint"], ...] = ()
    policy: Policy = BITS

    def spelling(self, type: Scalar) -> str:
        """The CUDA template for operands of `type`."""
        return self.cuda if isinstance(self.cuda, str) else self.cuda[type]

    def instruction(self, type: Scalar) -> str:
        """The LLVM word for operands of `type`."""
        words = self.llvm.split("|")
        return words[{"int": 0, "float": 2}.get(type.kind, 1)] if len(words) > 1 else words[0]

    def result_type(self, type: Scalar) -> Scalar:
        return type if self.result == "same" else self.result

    def cost_class(self, type: Scalar) -> Cost:
        if self.cost != "arith" and self.cost != "mul":
            return self.cost
        if type.is_float:
            return "fp32" if type is F32 else "fp64"
        return "imul" if self.cost == "mul" else "alu"


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


def _shift_left(a: Values, b: Values) -> Values:
    return np.asarray(
        np.where((b >= 0) & (b < 8 * a.dtype.itemsize), a << (b & b.dtype.type(8 * a.dtype.itemsize - 1)), 0)
    ).astype(a.dtype)


def _shift_right(a: Values, b: Values) -> Values:
    bits = 8 * a.dtype.itemsize
    count = np.where((b >= 0) & (b < bits), b, bits - 1).astype(b.dtype)
    gone = (b < 0) | (b >= bits)
    shifted = a >> count
    return np.asarray(np.where(gone & (a >= 0), 0, shifted)).astype(a.dtype)


def _leading_zeros(a: Values) -> Values:
    bits = 8 * a.dtype.itemsize
    rest = np.array(a, copy=True).view(f"u{a.dtype.itemsize}")
    zeros = np.full(rest.shape, bits, np.int32)
    step = bits // 2
    while step:
        high = rest >> rest.dtype.type(step)
        found = high != 0
        zeros = np.where(found, zeros - step, zeros).astype(np.int32)
        rest = np.where(found, high, rest).astype(rest.dtype)
        step //= 2
    return np.asarray(zeros - (rest != 0)).astype(np.int32)


def _through_f64(function: Callable[[Values], Values]) -> Meaning:
    """f32 through f64 and rounded once: half an ulp, the same on every processor."""

    def meaning(x: Values) -> Values:
        return np.asarray(function(x.astype(np.float64)).astype(x.dtype))

    return meaning


def cast_meaning(target: Scalar) -> Meaning:
    """What `cast` to `target` does: wrap integers, round to nearest, truncate floats and saturate as CUDA."""
    dtype = target.dtype

    def meaning(x: Values) -> Values:
        if target is BOOL:
            return np.asarray(x != 0)
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
    if target is BOOL:
        return "{0} != 0"
    if not (source.is_float and target.is_integer):
        return f"({CUDA_NAMES[target]}){{0}}"
    prefix = "float" if source is F32 else "double"
    wide = {I64: "ll", U64: "ull"}.get(target, "int" if target.kind == "int" else "uint")
    call = f"__{prefix}2{wide}_rz({{0}})"
    return call if target.size >= 4 else f"({CUDA_NAMES[target]}){call}"


CUDA_NAMES = {
    BOOL: "bool", I8: "signed char", I16: "short", I32: "int", I64: "long long",
    UNSIGNED[0]: "unsigned char", UNSIGNED[1]: "unsigned short", U32: "unsigned int", U64: "unsigned long long",
    F32: "float", F64: "double",
}  # fmt: skip


def _by_float(single: str, double: str) -> dict[Scalar, str]:
    return {F32: single, F64: double}


WORDS = (I32, U32, I64, U64)
BOTH: tuple[Literal["int", "uint"], ...] = ("int", "uint")
_words = {I32: "__popc({0})", U32: "__popc({0})", I64: "__popcll({0})", U64: "__popcll({0})"}
_zeros = {I32: "__clz({0})", U32: "__clz({0})", I64: "__clzll({0})", U64: "__clzll({0})"}
_extremes = {
    name: {t: f"{'f' if t.is_float else ''}{name}{'f' if t is F32 else ''}({{0}}, {{1}})" for t in NUMBERS}
    for name in ("min", "max")
}
_floor_div = {t: "{0} / {1}" if t in UNSIGNED else "floor_div({0}, {1})" for t in INTEGERS}
_floor_mod = {t: "{0} % {1}" if t in UNSIGNED else "floor_mod({0}, {1})" for t in INTEGERS}
_absolute = {I8: "abs({0})", I16: "abs({0})", I32: "abs({0})", I64: "llabs({0})", F32: "fabsf({0})", F64: "fabs({0})"}

# fmt: off
#   name         operand types       meaning               CUDA                       LLVM                              cost
_op("add",       NUMBERS,            np.add,               "{0} + {1}",               "add|add|fadd",                   "arith", domain=NoOverflow("add"), widens=BOTH)
_op("sub",       NUMBERS,            np.subtract,          "{0} - {1}",               "sub|sub|fsub",                   "arith", domain=NoOverflow("sub"), widens=BOTH)
_op("mul",       NUMBERS,            np.multiply,          "{0} * {1}",               "mul|mul|fmul",                   "mul",   domain=NoOverflow("mul"), widens=BOTH)
_op("neg",       NUMBERS,            np.negative,          "-{0}",                    ":negate",                        "arith", operands=1, domain=NotLowest("-({0})"), widens=BOTH)
_op("fdiv",      FLOATS,             np.true_divide,       "{0} / {1}",               "fdiv",                           "fdiv")
_op("floordiv",  INTEGERS,           np.floor_divide,      _floor_div,                ":floor_divide",                  "idiv",  domain=NonZeroDivisor("{0} // {1}"), widens=("int",))
_op("mod",       INTEGERS,           np.mod,               _floor_mod,                ":floor_modulo",                  "idiv",  domain=NonZeroDivisor("{0} % {1}"))
_op("div",       INTEGERS,           _truncated_div,       "{0} / {1}",               ":divide",                        "idiv",  domain=NonZeroDivisor("{0} / {1}"), widens=("int",))
_op("rem",       INTEGERS,           _truncated_rem,       "{0} % {1}",               ":remainder",                     "idiv",  domain=NonZeroDivisor("{0} rem {1}"))
_op("and",       (BOOL, *INTEGERS),  np.bitwise_and,       "{0} & {1}",               "and",                            "alu")
_op("or",        (BOOL, *INTEGERS),  np.bitwise_or,        "{0} | {1}",               "or",                             "alu")
_op("xor",       (BOOL, *INTEGERS),  np.bitwise_xor,       "{0} ^ {1}",               "xor",                            "alu")
_op("invert",    INTEGERS,           np.bitwise_not,       "~{0}",                    ":invert",                        "alu",   operands=1, widens=("uint",))
_op("shl",       INTEGERS,           _shift_left,          "{0} << {1}",              ":shift_left",                    "alu",   domain=ShiftInRange(), widens=BOTH)
_op("shr",       INTEGERS,           _shift_right,         "{0} >> {1}",              ":shift_right",                   "alu",   domain=ShiftInRange())
_op("lt",        NUMBERS,            np.less,              "{0} < {1}",               "icmp slt|icmp ult|fcmp olt",     "arith", result=BOOL)
_op("le",        NUMBERS,            np.less_equal,        "{0} <= {1}",              "icmp sle|icmp ule|fcmp ole",     "arith", result=BOOL)
_op("gt",        NUMBERS,            np.greater,           "{0} > {1}",               "icmp sgt|icmp ugt|fcmp ogt",     "arith", result=BOOL)
_op("ge",        NUMBERS,            np.greater_equal,     "{0} >= {1}",              "icmp sge|icmp uge|fcmp oge",     "arith", result=BOOL)
_op("eq",        (BOOL, *NUMBERS),   np.equal,             "{0} == {1}",              "icmp eq|icmp eq|fcmp oeq",       "arith", result=BOOL)
_op("ne",        (BOOL, *NUMBERS),   np.not_equal,         "{0} != {1}",              "icmp ne|icmp ne|fcmp une",       "arith", result=BOOL)
_op("not",       (BOOL,),            np.logical_not,       "!{0}",                    ":invert",                        "alu",   operands=1)
_op("both",      (BOOL,),            np.logical_and,       "{0} && {1}",              "and",                            "alu")
_op("either",    (BOOL,),            np.logical_or,        "{0} || {1}",              "or",                             "alu")
_op("select",    (BOOL, *NUMBERS),   np.where,             "{0} ? {1} : {2}",         ":select",                        "alu",   operands=3)
_op("min",       NUMBERS,            np.fmin,              _extremes["min"],          "@smin|@umin|:least",             "arith", policy=VALUE)
_op("max",       NUMBERS,            np.fmax,              _extremes["max"],          "@smax|@umax|:greatest",          "arith", policy=VALUE)
_op("viaddmax",  (I32,),             lambda a, b, c: np.maximum(a + b, c), "__viaddmax_s32({0}, {1}, {2})", ":greatest_of_sum",  "alu", operands=3, domain=NoOverflow("add"))
_op("vimax3",    (I32,),             lambda a, b, c: np.maximum(np.maximum(a, b), c), "__vimax3_s32({0}, {1}, {2})", ":greatest_of_three", "alu", operands=3)
_op("abs",       SIGNED + FLOATS,    np.abs,               _absolute,                 ":absolute||@fabs",               "arith", operands=1, domain=NotLowest("abs({0})"), widens=("int",))
_op("fma",       FLOATS,             fused.fma,            _by_float("fmaf({0}, {1}, {2})", "fma({0}, {1}, {2})"), "@fma",                           "arith", operands=3)
_op("sqrt",      FLOATS,             np.sqrt,              _by_float("sqrtf({0})", "sqrt({0})"),   "@sqrt",                          "fdiv", operands=1)
_op("rsqrt",     FLOATS,             _through_f64(lambda x: 1 / np.sqrt(x)), _by_float("rsqrtf({0})", "rsqrt({0})"), ":reciprocal_root",               "sfu", operands=1, policy=ulp(2))
_op("exp",       FLOATS,             _through_f64(np.exp), _by_float("expf({0})", "exp({0})"),     ":meaning",                       "sfu",  operands=1, policy=ulp(2))
_op("log",       FLOATS,             _through_f64(np.log), _by_float("logf({0})", "log({0})"),     ":meaning",                       "sfu",  operands=1, policy=ulp(2))
_op("log2",      FLOATS,             _through_f64(np.log2), _by_float("log2f({0})", "log2({0})"),  ":meaning",                       "sfu",  operands=1, policy=ulp(2))
_op("popcount",  WORDS,              lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.int32), _words, ":population",                    "alu", operands=1, result=I32)
_op("clz",       WORDS,              _leading_zeros,       _zeros,                    ":leading_zeros",                 "alu",   operands=1, result=I32)
_op("as_i32",    (F32,),             lambda x: x.view(np.int32),    "__float_as_int({0})",         "bitcast",                        "alu",  operands=1, result=I32)
_op("as_u32",    (F32,),             lambda x: x.view(np.uint32),   "__float_as_uint({0})",        "bitcast",                        "alu",  operands=1, result=U32)
_op("as_i64",    (F64,),             lambda x: x.view(np.int64),    "__double_as_longlong({0})",   "bitcast",                        "alu",  operands=1, result=I64)
_op("as_u64",    (F64,),             lambda x: x.view(np.uint64),   "(unsigned long long)__double_as_longlong({0})", "bitcast",                        "alu", operands=1, result=U64)
_op("as_f32",    (I32, U32),         lambda x: x.view(np.float32),  {I32: "__int_as_float({0})", U32: "__uint_as_float({0})"}, "bitcast",                        "alu", operands=1, result=F32)
_op("as_f64",    (I64, U64),         lambda x: x.view(np.float64),  "__longlong_as_double({0})",   "bitcast",                        "alu",  operands=1, result=F64)
# fmt: on

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
    """Whether operands can lie outside the domain of the operation's row; constant ones may keep inside."""
    domain, type, last = TABLE[op.name].domain, op.args[0].type, op.args[-1]
    if domain is None or not isinstance(type, Scalar):
        return False
    return domain.may_leave(type, last.value if isinstance(last, ir.Const) else None)


__all__ = ["BITS", "COSTS", "CUDA_NAMES", "TABLE", "VALUE", "Cost", "Op", "Policy", "Values", "may_leave_domain", "ulp"]
