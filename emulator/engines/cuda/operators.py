"""Operations and literals as C++ text: precedence from the op table's templates, and the casts that C++ needs.

C++ computes types narrower than int as int, so a result that may not fit its type is cast back to it.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from ...ir import halves
from ...ir import nodes as ir
from ...ir.effects import is_extreme_of_floats
from ...ir.maths import APPROXIMATE
from ...ir.matrices import INSTRUCTIONS
from ...ir.ops import CUDA_NAMES, TABLE
from ...ir.shifts import is_shift, power_of_two
from ...language.types import BOOL, COMPLEX, F32, F64, HALVES, I64, U16, U32, U64, Scalar, Value, Vector
from . import matrices, mbarriers

ANY, TERNARY, UNARY, PRIMARY = 0, 3, 15, 16
INFIX = {
    "||": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10, "<=": 10, ">": 10, ">=": 10,
    "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13,
}  # fmt: skip
SCOPES = {"block": "_block", "device": "", "system": "_system"}
"""Suffixes of CUDA's atomic functions, by scope."""
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
UNCLEAR = ("<<", ">>", "&", "^", "|", "||")
"""Operators with little-known precedence: another operator under them gets parentheses."""

HELPERS = {
    "floor_div": """\
static __device__ __forceinline__ {T} floor_div({T} a, {T} b) {{
    const {T} quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}}
""",
    "floor_mod": """\
static __device__ __forceinline__ {T} floor_mod({T} a, {T} b) {{
    const {T} rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}}
""",
    "frexp_fraction": """\
static __device__ __forceinline__ {T} frexp_fraction({T} x) {{
    int exponent;
    return frexp(x, &exponent);
}}
""",
    "frexp_exponent": """\
static __device__ __forceinline__ int frexp_exponent({T} x) {{
    int exponent;
    frexp(x, &exponent);
    return exponent;
}}
""",
    "match_all": """\
static __device__ __forceinline__ unsigned int match_all(unsigned int mask, {T} value) {{
    int equal;
    return __match_all_sync(mask, value, &equal);
}}
""",
}
HELPERS |= {
    name: f"""\
static __device__ __forceinline__ {{T}} {name}({{T}} x{", {T} y" if "div" in ptx else ""}) {{{{
    {{T}} result;
    asm("{ptx} %0, %1{", %2" if "div" in ptx else ""};" : "=f"(result) : "f"(x){', "f"(y)' if "div" in ptx else ""});
    return result;
}}}}
"""
    for name, ptx in APPROXIMATE.items()
}
HELPERS |= {
    f"compare_swap_{order}_{scope}": f"""\
static __device__ __forceinline__ {{T}} compare_swap_{order}_{scope}({{T}}* place, {{T}} expected, {{T}} value) {{{{
    __nv_atomic_compare_exchange_n(place, &expected, value, false, __NV_ATOMIC_{order.upper()},
        __NV_ATOMIC_{"RELAXED" if order == "release" else "ACQUIRE"}, __NV_THREAD_SCOPE_{scope.upper()});
    return expected;
}}}}
"""
    for order in ("acquire", "release", "acq_rel")
    for scope in ("block", "device", "system")
}
HELPERS |= {
    f"atomic_{op}_{scope}": f"""\
static __device__ __forceinline__ {{T}} atomic_{op}_{scope}({{T}}* place, {{T}} value) {{{{
    using Bits = unsigned {{word}};
    Bits found = *(volatile Bits*)place, expected;
    do {{{{
        expected = found;
        found = atomicCAS{suffix}((Bits*)place, expected, {{to_bits}}({{prefix}}{op}({{of_bits}}(expected), value)));
    }}}} while (found != expected);
    return {{of_bits}}(found);
}}}}
"""
    for op in ("min", "max")
    for scope, suffix in SCOPES.items()
}
HELPERS |= matrices.HELPERS | mbarriers.HELPERS
"""Helpers: Python's `//` and `%` with narrower types promoted to int; the two results of `frexp`; a vote without its second
result; ordered exchanges; extremes of floats in memory by compare-and-swap."""
BITS = {
    "float": {"word": "int", "to_bits": "__float_as_uint", "of_bits": "__uint_as_float", "prefix": "f"},
    "double": {
        "word": "long long",
        "to_bits": "__double_as_longlong",
        "of_bits": "__longlong_as_double",
        "prefix": "f",
    },
    "__half": {"word": "short", "to_bits": "__half_as_ushort", "of_bits": "__ushort_as_half", "prefix": "__h"},
    "__nv_bfloat16": {
        "word": "short",
        "to_bits": "__bfloat16_as_ushort",
        "of_bits": "__ushort_as_bfloat16",
        "prefix": "__h",
    },
}
"""Words that a helper compares and swaps, and the conversions to and from them, by the type of the numbers."""


class Fragment(NamedTuple):
    """C++ text of an expression, with the precedence of its outermost operator and its infix symbol."""

    text: str
    level: int = PRIMARY
    symbol: str = ""

    def within(self, level: int, symbol: str = "") -> str:
        """The text as an operand of `symbol`, which binds at `level`."""
        unclear = self.symbol and self.symbol != symbol and symbol in UNCLEAR
        if symbol == "||":
            unclear = self.symbol == "&&"
        return f"({self.text})" if self.level < level or unclear else self.text


@dataclass(frozen=True)
class Precedence:
    """A template's outermost operator, and how tightly each operand must bind under it."""

    level: int
    operands: tuple[int, ...]
    symbol: str = ""


@cache
def shape(template: str) -> Precedence:
    """The precedence of a template of the op table."""
    if infix := re.fullmatch(r"\{0\} (\S+) (\{1\}|0)", template):
        symbol = infix[1]
        level = INFIX[symbol]
        operand_levels = (level + (symbol in COMPARISONS), level + 1)
        return Precedence(level, operand_levels if infix[2] == "{1}" else operand_levels[:1], symbol)
    if "?" in template:
        return Precedence(TERNARY, (TERNARY + 1,) * 3)
    operands = len(set(re.findall(r"\{\d\}", template)))
    if re.fullmatch(r"[-~!]\{0\}|\([a-z ]+\)\{0\}", template):
        return Precedence(UNARY, (UNARY,))
    return Precedence(UNARY if template.startswith("(") else PRIMARY, (ANY,) * operands)


def infix(op: ir.Op) -> tuple[str, ir.Expr] | None:
    """The operator and right operand of an operation that C++ can also write as `a symbol= b`."""
    if len(op.args) != 2 or op.type != op.args[0].type or _wide_product(op):
        return None
    left, right = op.args
    assert isinstance(left.type, Scalar)
    shift = power_of_two(right)
    if is_shift(op) and shift is not None:
        assert isinstance(right, ir.Const)
        if op.name == "mod":
            return "&", ir.Const(int(right.value) - 1, right.type, right.span)
        return ">>", ir.Const(shift, right.type, right.span)
    symbol = shape(TABLE[op.name].spelling(left.type)).symbol
    return (symbol, right) if symbol and symbol not in (*COMPARISONS, "&&", "||") else None


def _wide_product(op: ir.Op) -> bool:
    """u16 * u16 overflows the int that C++ computes it in."""
    return op.name == "mul" and op.type is U16


def spelled(op: ir.Op, operands: list[Fragment]) -> Fragment:
    """The operation in C++, its operands given."""
    kind = TABLE[op.name].deciding(op.args).type
    assert isinstance(kind, Scalar)
    short = infix(op)
    if short is not None:
        symbol, right = short
        level = INFIX[symbol]
        second = operands[1] if right is op.args[1] else literal(right)  # type: ignore[arg-type]
        result = Fragment(
            f"{operands[0].within(level, symbol)} {symbol} {second.within(level + 1, symbol)}", level, symbol
        )
    elif _wide_product(op):
        texts = [o.within(INFIX["*"] + 1, "*") for o in operands]
        result = Fragment(f"1u * {' * '.join(texts)}", INFIX["*"], "*")
    else:
        template = TABLE[op.name].spelling(kind)
        form = shape(template)
        texts = [o.within(level, form.symbol) for o, level in zip(operands, form.operands, strict=True)]
        if form.level == UNARY and template[0] == texts[0][0] == "-":
            texts[0] = f"({texts[0]})"  # --x is something else
        result = Fragment(template.format(*texts), form.level, form.symbol)
    if op.type.size < 4 and op.type.kind in TABLE[op.name].widens and result.symbol != ">>":
        return cast(op.type, result)
    return result


Called = ir.Op | ir.Effect | ir.Wgmma | ir.BulkCopy | ir.TensorCopy | ir.Store
"""Nodes that may call a function of the text."""


def helper(op: Called) -> tuple[str, str] | None:
    """The function that an operation calls: its name and its text."""
    if isinstance(op, ir.Store):
        return ("mbarrier_init", mbarriers.HELPERS["mbarrier_init"]) if op.order == "mbarrier" else None
    if isinstance(op, ir.BulkCopy):
        return ("bulk_copy", mbarriers.BULK_COPY) if op.barrier else mbarriers.store_helper(op)
    if isinstance(op, ir.TensorCopy):
        return mbarriers.tensor_helper(op)
    if isinstance(op, ir.Wgmma):
        return matrices.group_function(op), matrices.group_helper(op)
    if (called := _helper(op)) is None:
        return None
    name, type = called
    return name, HELPERS[name].format(T=type, **BITS.get(type, {}))


def _helper(op: ir.Op | ir.Effect) -> tuple[str, str] | None:
    """The function of HELPERS that an operation calls and the C++ type it computes in."""
    if isinstance(op, ir.CompareSwap):
        return None if op.order == "relaxed" else (f"compare_swap_{op.order}_{op.scope}", type_name(op.type))
    if isinstance(op, ir.Atomic):
        if op.op in mbarriers.HELPERS:
            return op.op + "_cluster" * (op.block is not None), ""
        return (f"atomic_{op.op}_{op.scope}", type_name(op.type)) if is_extreme_of_floats(op) else None
    if isinstance(op, ir.Vote):
        assert isinstance(op.value.type, Scalar)
        return ("match_all", type_name(op.value.type)) if op.mode == "match_all" else None
    if isinstance(op, ir.Mma):
        return matrices.function(INSTRUCTIONS[op.instruction]), ""
    if isinstance(op, ir.MoveMatrix):
        return matrices.moved(op), ""
    if not isinstance(op, ir.Op):
        return None
    if op.name in HELPERS:
        assert isinstance(op.args[0].type, Scalar)
        return op.name, type_name(op.args[0].type)
    if op.name not in ("floordiv", "mod") or op.type.kind != "int" or infix(op) is not None:
        return None
    return ("floor_div" if op.name == "floordiv" else "floor_mod"), ("long long" if op.type is I64 else "int")


def cast(type: Scalar, value: Fragment) -> Fragment:
    return Fragment(f"({type_name(type)}){value.within(UNARY)}", UNARY)


def type_name(type: Value) -> str:
    """The type in CUDA; short vectors have CUDA's own names, complex numbers those of their vectors."""
    if isinstance(type, Scalar):
        return CUDA_NAMES[type]
    return f"{CUDA_NAMES[type.element]}2" if type in COMPLEX or type.element in HALVES else type.name


def maker(type: Vector) -> str:
    """Return the function that constructs a vector from its components."""
    return f"make_{type_name(type) if type in COMPLEX else type.name}"


# ------------------------------------------------------------------ literals
def literal(const: ir.Const) -> Fragment:
    """A constant that reads back as the same value of the same type (narrower types as int)."""
    if const.type is BOOL:
        return Fragment("true" if const.value else "false")
    if const.type.is_float:
        return _float(float(const.value), const.type)
    return _integer(int(const.value), const.type)


def _integer(value: int, type: Scalar) -> Fragment:
    suffix = {U32: "u", I64: "LL", U64: "ULL"}.get(type, "")
    if type.size >= 4 and type.kind == "int" and value == type.range[0]:
        return Fragment(f"-{-value - 1}{suffix} - 1", INFIX["-"], "-")  # its magnitude is no number of the type
    return Fragment(f"{value}{suffix}", UNARY if value < 0 else PRIMARY)


def _float(value: float, type: Scalar) -> Fragment:
    with np.errstate(over="ignore"):
        number = type.dtype.type(value)
    if type in HALVES:
        return Fragment(halves.narrowed(F32, type).format(_float(float(number), F32).text))
    if math.isnan(number):
        return Fragment("__int_as_float(0x7fffffff)" if type is F32 else "__longlong_as_double(0x7fffffffffffffffLL)")
    sign, level = ("-", UNARY) if np.signbit(number) else ("", PRIMARY)
    if math.isinf(number):
        bits = "__int_as_float(0x7f800000)" if type is F32 else "__longlong_as_double(0x7ff0000000000000LL)"
        return Fragment(sign + bits, level)
    if number == 0 or 1e-4 <= abs(number) < 1e16:
        digits = np.format_float_positional(number, trim="0")
    else:
        digits = np.format_float_scientific(number, trim="-")
    return Fragment(digits + ("" if type is F64 else "f"), level)


def hexadecimal(const: ir.Const) -> Fragment:
    """A lane mask."""
    return Fragment(f"0x{int(const.value):08x}")
