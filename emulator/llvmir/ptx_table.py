"""The PTX instructions of inline assembly: one row each, with the forms of its name and its effect.

A form is a regular expression of the whole name; its groups are arguments of the effect. Modifiers without a meaning here
(`.ftz`, `.sat` of integers, cache hints, prefetch sizes) are part of the forms.
"""

import math
import re
from collections.abc import Callable
from functools import lru_cache

from ..ir import nodes as ir
from ..language.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar
from .arithmetic import UNSIGNED, cast, constant, operation, selected, unsigned
from .assembly import Registers, Statement, as_type, packed, pairs
from .halves import rounded_half
from .pointers import Pointer
from .thread_calls import RANKS, SPECIALS, lane_mask
from .types import UnsupportedError

TYPES = {
    "s8": I8, "s16": I16, "s32": I32, "s64": I64, "u8": U8, "u16": U16, "u32": U32, "u64": U64, "b8": U8, "b16": I16, "b32": I32,
    "b64": I64, "f16": F16, "bf16": BF16, "f32": F32, "f64": F64, "pred": BOOL,
}  # fmt: skip
PAIRED = {"f16x2": F16, "bf16x2": BF16}
Effect = Callable[..., None]
ROWS: list[tuple[re.Pattern[str], Effect]] = []


def row(form: str) -> Callable[[Effect], Effect]:
    """Add a row. form: of the name; `T` is a type, `F` a type of floats."""
    pattern = form.replace("(T)", r"([subf]+\d+(?:x2)?|pred)").replace("(F)", r"(b?f\d+(?:x2)?)")

    def enter(effect: Effect) -> Effect:
        ROWS.append((re.compile(pattern), effect))
        return effect

    return enter


@lru_cache(maxsize=512)
def _row(name: str) -> tuple[Effect, tuple[str | None, ...]] | None:
    return next(((effect, match.groups()) for form, effect in ROWS if (match := form.fullmatch(name))), None)


def execute(r: Registers, statement: Statement) -> None:
    """Execute an instruction. Raises UnsupportedError for one without a row."""
    matched = _row(statement.name)
    if matched is None:
        text = f"{statement.name} {', '.join(statement.operands)}".strip()
        raise UnsupportedError(f"the inline assembly {text!r} is not supported")
    effect, words = matched
    try:
        effect(r, *words, *statement.operands)
    except (TypeError, KeyError, ValueError):  # operands in another number, or of another kind
        raise UnsupportedError(f"the inline assembly {statement.name!r} is not supported with these operands") from None


def _lanes(function: Callable[..., ir.Expr], r: Registers, type: str, *sources: str) -> ir.Expr:
    """Return the result of a function of numbers; of pairs of halves, for each half."""
    if type in PAIRED:
        halves = [pairs(r.read(source, I32), PAIRED[type], r) for source in sources]
        return packed([function(*each) for each in zip(*halves, strict=True)], r)
    return function(*(r.let(r.read(source, TYPES[type])) for source in sources))


# ------------------------------------------------------------------ arithmetic
@row(r"(add|sub|min|max|and|or|xor|rem|mul)(?:\.rn)?(?:\.ftz)?(\.sat)?\.(T)")
def _binary(r: Registers, op: str, sat: str | None, type: str, d: str, a: str, b: str) -> None:
    def compute(x: ir.Expr, y: ir.Expr) -> ir.Expr:
        if x.type is BOOL:
            return operation({"and": "both", "or": "either", "xor": "ne"}[op], x, y)
        assert isinstance(x.type, Scalar)
        wraps = x.type in UNSIGNED and op in ("add", "sub", "mul")
        result = operation(op, unsigned(x), unsigned(y)) if wraps else operation(op, x, y)
        if sat and x.type.is_float:
            result = operation(
                "min", operation("max", result, constant(0, x.type, r.span)), constant(1, x.type, r.span)
            )
        return result

    r.write(d, _lanes(compute, r, type, a, b))


@row(r"(neg|abs|not)(?:\.ftz)?\.(T)")
def _unary(r: Registers, op: str, type: str, d: str, a: str) -> None:
    name = {"not": "invert"}.get(op, op)
    r.write(d, _lanes(lambda x: operation("not" if x.type is BOOL else name, x), r, type, a))


_DIVISIONS = {
    ".approx": "fast_divide",
    ".approx.ftz": "fast_divide_ftz",
    ".full": "full_divide",
    ".full.ftz": "full_divide",
}


@row(r"div(?:\.rn)?((?:\.full|\.approx)?(?:\.ftz)?)\.(T)")
def _divide(r: Registers, kind: str, type: str, d: str, a: str, b: str) -> None:
    own = TYPES[type]
    name = _DIVISIONS.get(kind, "fdiv") if own is F32 else "fdiv" if own.is_float else "div"
    r.write(d, operation(name, r.read(a, own), r.read(b, own)))


@row(r"(rcp|sqrt)(?:\.rn)?(?:\.ftz)?\.(F)")
def _root_or_reciprocal(r: Registers, name: str, type: str, d: str, a: str) -> None:
    def compute(x: ir.Expr) -> ir.Expr:
        assert isinstance(x.type, Scalar)
        return operation("sqrt", x) if name == "sqrt" else operation("fdiv", constant(1, x.type, r.span), x)

    r.write(d, _lanes(compute, r, type, a))


_APPROXIMATE = {
    "ex2": "fast_exp2", "lg2": "fast_log2", "rcp": "fast_rcp", "rsqrt": "fast_rsqrt", "sqrt": "fast_sqrt",
    "sin": "fast_sin", "cos": "fast_cos", "tanh": "fast_tanh",
}  # fmt: skip
"""Rows of f32. Sine, cosine and hyperbolic tangent have the same results with `.ftz`."""
_SAME_WITH_FTZ = ("sin", "cos", "tanh")


@row(r"(rcp|sqrt|rsqrt|sin|cos|lg2|ex2|tanh)\.approx(\.ftz)?\.(F)")
def _approximate(r: Registers, name: str, ftz: str | None, type: str, d: str, a: str) -> None:
    def compute(x: ir.Expr) -> ir.Expr:
        assert isinstance(x.type, Scalar)
        if x.type is F64:
            return operation("rsqrt", x) if name == "rsqrt" else operation("fdiv", constant(1, F64, r.span), x)
        is_half = x.type in (F16, BF16)
        suffix = "_ftz" if (ftz or is_half) and name not in _SAME_WITH_FTZ else ""
        value = operation(_APPROXIMATE[name] + suffix, cast(x, F32))
        return _truncated(value, x.type) if is_half else value

    r.write(d, _lanes(compute, r, type, a))


def _truncated(value: ir.Expr, type: Scalar) -> ir.Expr:
    """Return a result of the special function unit as a half: its upper bits, and infinity beyond the exponents of the type."""
    result = rounded_half(value, type, "rz")
    if type is BF16:
        return result
    beyond = operation("ge", value, constant(65536.0, F32, value.span))
    return selected(beyond, constant(math.inf, type, value.span), result)


@row(r"fma(?:\.rn)?(?:\.ftz)?\.(F)")
def _fma(r: Registers, type: str, d: str, a: str, b: str, c: str) -> None:
    r.write(d, _lanes(lambda x, y, z: operation("fma", x, y, z), r, type, a, b, c))


def _product(r: Registers, mode: str, type: str, a: str, b: str) -> ir.Expr:
    own = TYPES[type]
    x, y = r.read(a, own), r.read(b, own)
    if mode == "hi":
        return operation("mulhi", x, y)
    if mode == "wide":
        wide = {I16: I32, U16: U32, I32: I64, U32: U64}[own]
        return operation("mul", cast(x, wide), cast(y, wide))
    return operation("mul", unsigned(x), unsigned(y))


@row(r"mul(?:24)?\.(lo|hi|wide)\.(T)")
def _multiply(r: Registers, mode: str, type: str, d: str, a: str, b: str) -> None:
    r.write(d, _product(r, mode, type, a, b))


@row(r"(?:mad|madc|mad24)\.(lo|hi|wide)\.(T)")
def _multiply_add(r: Registers, mode: str, type: str, d: str, a: str, b: str, c: str) -> None:
    product = unsigned(_product(r, mode, type, a, b))
    assert isinstance(product.type, Scalar)
    r.write(d, operation("add", product, unsigned(r.read(c, product.type))))


@row(r"(add|sub|addc|subc)(\.cc)?\.([us](?:32|64))")
def _with_carry(r: Registers, op: str, sets: str | None, type: str, d: str, a: str, b: str) -> None:
    own = UNSIGNED.get(TYPES[type], TYPES[type])
    _carried(r, op, bool(sets), d, r.let(r.read(a, own)), r.let(r.read(b, own)))


@row(r"(mad|madc)\.(lo|hi)(\.cc)?\.([us](?:32|64))")
def _multiply_with_carry(r: Registers, op: str, mode: str, sets: str | None, type: str, d: str, *factors: str) -> None:
    own = UNSIGNED.get(TYPES[type], TYPES[type])
    a, b, c = factors
    product = r.let(as_type(_product(r, mode, type, a, b), own))
    _carried(r, "addc" if op == "madc" else "add", bool(sets), d, product, r.let(r.read(c, own)))


def _carried(r: Registers, op: str, sets: bool, d: str, x: ir.Expr, y: ir.Expr) -> None:
    """Write a sum or a difference with the carry, and set it: of a difference it is the borrow."""
    assert isinstance(x.type, Scalar)
    name, zero = op[:3], constant(0, x.type, r.span)
    carry = cast(r.carry, x.type) if op.endswith("c") and r.carry is not None else zero
    first = r.let(operation(name, x, y))
    total = r.let(operation(name, first, carry))
    if sets:
        compared = (first, x), (total, first)
        over = [operation("lt", *(pair if name == "add" else pair[::-1])) for pair in compared]
        r.carry = r.let(operation("either", *over))
    r.write(d, total)


@row(r"(shl|shr)\.([bus])(16|32|64)")
def _shift(r: Registers, op: str, kind: str, bits: str, d: str, a: str, b: str) -> None:
    own = TYPES[f"{'s' if kind == 's' else 'u'}{bits}"]
    r.write(d, _moved(r, op, r.read(a, own), r.let(r.read(b, U32))))


def _moved(r: Registers, op: str, value: ir.Expr, count: ir.Expr) -> ir.Expr:
    """Return a shift by any count: one by all bits or more gives 0, or the sign of a signed number to the right."""
    assert isinstance(value.type, Scalar)
    last = constant(value.type.bits - 1, U32, r.span)
    moved = operation(op, value, cast(operation("min", unsigned(count), last), I32))
    if op == "shr" and value.type in UNSIGNED:
        return moved
    return selected(operation("gt", unsigned(count), last), constant(0, value.type, r.span), moved)


# ------------------------------------------------------------------ bits
@row(r"lop3\.b32")
def _logic(r: Registers, d: str, a: str, b: str, c: str, table: str) -> None:
    values = [r.let(r.read(own, U32)) for own in (a, b, c)]
    lut, total = int(table.rstrip("U"), 0), None
    for index in range(8):
        if lut >> index & 1:
            bits = [v if index >> (2 - n) & 1 else operation("invert", v) for n, v in enumerate(values)]
            term = operation("and", operation("and", bits[0], bits[1]), bits[2])
            total = term if total is None else operation("or", total, term)
    r.write(d, total if total is not None else constant(0, U32, r.span))


@row(r"bfe\.([us])(32|64)")
def _extract(r: Registers, kind: str, bits: str, d: str, a: str, b: str, c: str) -> None:
    own, width = TYPES[f"{kind}{bits}"], int(bits)
    start, length = (r.let(operation("and", r.read(x, I32), r.number(255))) for x in (b, c))
    length = r.let(operation("min", length, operation("max", operation("sub", r.number(width), start), r.number(0))))
    left = operation("sub", r.number(width), length)
    moved = _moved(r, "shl", _moved(r, "shr", r.read(a, UNSIGNED.get(own, own)), start), left)
    result = _moved(r, "shr", as_type(moved, own), left)
    r.write(d, selected(operation("eq", length, r.number(0)), constant(0, own, r.span), result))


@row(r"bfi\.b(32|64)")
def _insert(r: Registers, bits: str, d: str, a: str, b: str, c: str, e: str) -> None:
    own = TYPES[f"u{bits}"]
    start, length = (r.let(operation("and", r.read(x, I32), r.number(255))) for x in (c, e))
    ones = operation("invert", constant(0, own, r.span))
    mask = r.let(_moved(r, "shl", operation("invert", _moved(r, "shl", ones, length)), start))
    inserted = operation("and", _moved(r, "shl", r.read(a, own), start), mask)
    r.write(d, operation("or", inserted, operation("and", r.read(b, own), operation("invert", mask))))


@row(r"prmt\.b32")
def _permute(r: Registers, d: str, a: str, b: str, c: str) -> None:
    r.write(d, operation("byte_perm", *(r.read(own, U32) for own in (a, b, c))))


@row(r"shf\.([lr])\.(wrap|clamp)\.b32")
def _funnel(r: Registers, side: str, mode: str, d: str, a: str, b: str, c: str) -> None:
    name = f"funnel_shift_{'left' if side == 'l' else 'right'}{'_clamped' if mode == 'clamp' else ''}"
    r.write(d, operation(name, *(r.read(own, U32) for own in (a, b, c))))


@row(r"(popc|clz|brev)\.b(32|64)")
def _count(r: Registers, op: str, bits: str, d: str, a: str) -> None:
    r.write(d, operation({"popc": "popcount"}.get(op, op), r.read(a, TYPES[f"u{bits}"])))


@row(r"bfind\.u(32|64)")
def _highest(r: Registers, bits: str, d: str, a: str) -> None:
    count = cast(operation("clz", r.read(a, TYPES[f"u{bits}"])), I32)
    r.write(d, operation("sub", r.number(int(bits) - 1), count))


@row(r"dp4a\.([us])32\.\1?[us]?32")
def _dot(r: Registers, kind: str, d: str, a: str, b: str, c: str) -> None:
    r.write(d, operation("dp4a", *(r.read(own, TYPES[f"{kind}32"]) for own in (a, b, c))))


# ------------------------------------------------------------------ scalar video instructions
_PIECE = re.compile(r"(.*?)(?:\.([bh])([0-3]))?")
"""A register, or a byte or half of it."""
_BITS = {"b": 8, "h": 16, None: 32}


def _piece(r: Registers, operand: str, type: str) -> ir.Expr:
    """Return an operand or its piece as i64. type: of the operand, u32 or s32."""
    name, kind, number = _PIECE.fullmatch(operand).groups()  # type: ignore[union-attr]
    if kind is None:
        return cast(r.read(name, TYPES[type]), I64)
    moved = operation("shr", r.read(name, U32), r.number(_BITS[kind] * int(number)))
    return cast(as_type(moved, TYPES[f"{type[0]}{_BITS[kind]}"]), I64)


@row(r"v(add|sub|min|max|absdiff|mad)\.([us]32)\.([us]32)\.([us]32)(\.sat)?(?:\.(add|min|max))?")
def _video(
    r: Registers, op: str, to: str, first: str, second: str, sat: str | None, then: str | None, *operands: str
) -> None:
    d, a, b, *rest = operands
    name, kind, number = _PIECE.fullmatch(d).groups()  # type: ignore[union-attr]
    x, y, bits = _piece(r, a, first), _piece(r, b, second), _BITS[kind]
    value = operation({"absdiff": "sub", "mad": "mul"}.get(op, op), x, y)
    if op == "absdiff":
        value = operation("abs", value)
    elif op == "mad":
        if sat or then:
            raise ValueError
        then = "add"
    if sat:
        low = -(1 << bits - 1) if to[0] == "s" else 0
        value = operation("max", value, constant(low, I64, r.span))
        value = operation("min", value, constant(low + (1 << bits) - 1, I64, r.span))
    if then:
        value = operation(then, value, cast(r.read(rest[0], TYPES[to]), I64))
    if kind:
        mask = ((1 << bits) - 1) << bits * int(number)
        moved = operation("shl", as_type(value, U32), r.number(bits * int(number)))
        unchanged = operation("and", r.read(rest[0], U32), constant(~mask & 0xFFFFFFFF, U32, r.span))
        value = operation("or", unchanged, operation("and", moved, constant(mask, U32, r.span)))
    r.write(name, as_type(value, U32))


# ------------------------------------------------------------------ comparisons, moves, conversions
@row(r"set\.(eq|ne|lt|le|gt|ge)\.[us]32\.(T)")
def _compare_to_mask(r: Registers, predicate: str, type: str, d: str, a: str, b: str) -> None:
    result = operation(predicate, r.read(a, TYPES[type]), r.read(b, TYPES[type]))
    r.write(d, operation("select", result, r.number(-1), r.number(0)))


@row(r"slct(?:\.ftz)?\.(T)\.([sf]32)")
def _select_by_sign(r: Registers, type: str, sign: str, d: str, a: str, b: str, c: str) -> None:
    condition = operation("ge", r.read(c, TYPES[sign]), constant(0, TYPES[sign], r.span))
    r.write(d, operation("select", condition, r.read(a, TYPES[type]), r.read(b, TYPES[type])))


@row(r"setp\.(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)u?(?:\.ftz)?\.(T)")
def _compare(r: Registers, predicate: str, type: str, d: str, a: str, b: str) -> None:
    names = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    own = TYPES[f"u{type[1:]}" if predicate in names or (type[0] == "b" and type[1:].isdigit()) else type]
    result = r.let(operation(names.get(predicate, predicate), r.read(a, own), r.read(b, own)))
    first, _, second = d.partition("|")
    r.write(first, result)
    if second:
        r.write(second, operation("not", result))


@row(r"selp\.(T)")
def _select(r: Registers, type: str, d: str, a: str, b: str, p: str) -> None:
    r.write(d, operation("select", r.read(p, BOOL), r.read(a, TYPES[type]), r.read(b, TYPES[type])))


@row(r"mov\.(T)")
def _move(r: Registers, type: str, d: str, a: str) -> None:
    if d[0] == "{":
        names = [own.strip() for own in d.strip("{}").split(",")]
        size = TYPES[type].size // len(names)
        bits = r.let(r.read(a, TYPES[f"u{8 * TYPES[type].size}"]))
        for number, name in enumerate(names):
            moved = operation("shr", bits, r.number(8 * size * number))
            r.write(name, as_type(moved, TYPES[f"b{8 * size}"]))
    elif a[0] == "{":
        names = [own.strip() for own in a.strip("{}").split(",")]
        own, size = TYPES[f"u{8 * TYPES[type].size}"], TYPES[type].size // len(names)
        total: ir.Expr = constant(0, own, r.span)
        for number, name in enumerate(names):
            shifted = operation(
                "shl", cast(unsigned(r.read(name, TYPES[f"b{8 * size}"])), own), r.number(8 * size * number)
            )
            total = operation("or", total, shifted)
        r.write(d, total)
    elif a[0] == "%" and a not in r.values:
        special = _special(r, a[1:])
        if special is None:
            raise UnsupportedError(f"the inline assembly 'mov.{type} {d}, {a}' is not supported")
        r.write(d, special)
    elif isinstance(r.values.get(a), Pointer):
        r.values[d], r.sources[d] = r.values[a], r.sources[a]
    else:
        r.write(d, r.read(a, TYPES[type]))


def _special(r: Registers, name: str) -> ir.Expr | None:
    """Return the value of a special register; None for other names."""
    index, _, axis = name.lstrip("%").partition(".")
    emitter = r.scope.emitter
    if index in SPECIALS and axis in ("x", "y", "z"):
        return ir.Special(f"{SPECIALS[index]}.{axis}", I32, r.span)
    if index in RANKS:
        return ir.Special(RANKS[index], I32, r.span)
    if match := re.fullmatch(r"lanemask_(lt|le|eq|ge|gt)", index):
        return lane_mask(r.scope, match[1])
    match index:
        case "laneid":
            return ir.Special("lane", I32, r.span)
        case "warpid":
            return ir.Special("warp", I32, r.span)
        case "dynamic_smem_size":
            return r.scope.arrays.dynamic_bytes()
        case "clock" | "clock64" | "globaltimer":
            return emitter.effect(ir.Clock(I32 if index == "clock" else I64, r.span), "clock")
    return None


@row(r"cvta(?:\.to)?\.(?:global|shared|local|const|param)(?:::cta|::cluster)?\.u(?:64|32)")
def _address(r: Registers, d: str, a: str) -> None:
    r.values[d] = r.values[a]
    if a in r.sources:
        r.sources[d] = r.sources[a]


@row(r"isspacep\.(global|shared|local|const)(?:::cta|::cluster)?")
def _is_in_space(r: Registers, space: str, d: str, a: str) -> None:
    value = r.values.get(a)
    spaces = {memory.space for memory in value.memories} if isinstance(value, Pointer) else set()
    if len(spaces) != 1:
        raise UnsupportedError("the memory space of a computed address is not supported")
    r.write(d, constant(spaces == {{"const": "constant"}.get(space, space)}, BOOL, r.span))
