"""Opcode rows of integers, logic, comparisons, and moves between lanes' registers.

Values are uint32[warps, lanes], of uniform registers uint32[warps, 1].
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from .operands import Decoded
from .rows import Row
from .traced import contiguous

Values = Any
"""A NumPy array, broadcast to [warps, 32] when it is written."""
u32, i32, u64, i64 = np.uint32, np.int32, np.uint64, np.int64
_HALF = u64(32)
COMPARISONS: dict[str, Callable[[Values, Values], Values]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


def low(value: Values) -> Values:
    """Return the lower 32 bits."""
    return value.astype(u32)


def signed(value: Values) -> Values:
    """Return the bits as signed numbers of the same size."""
    return contiguous(value).view(i64 if value.dtype == u64 else i32)


def unsigned(value: Values) -> Values:
    """Return the bits as unsigned numbers of the same size."""
    return contiguous(value).view(u64 if value.dtype.itemsize == 8 else u32)


def combine(op: Decoded, holds: Values, other: Values) -> tuple[Values, Values]:
    """Return the two predicates of a comparison: it and its complement, each combined with a third one."""
    if "AND" in op.flags:
        return holds & other, ~holds & other
    if "OR" in op.flags:
        return holds | other, ~holds | other
    return holds ^ other, ~holds ^ other


# ------------------------------------------------------------------ sums and products
def _add3(op: Decoded, a: Values, b: Values, c: Values, *carries: Values) -> tuple[Values, ...]:
    total = a + b + c
    for carry in carries:
        if carry is not None and "X" in op.flags:
            total = total + carry
    return low(total), total >> _HALF >= 1, total >> _HALF >= 2


def _add(op: Decoded, a: Values, b: Values) -> Values:
    return a + b


def _add3_wide(op: Decoded, a: Values, b: Values, c: Values) -> Values:
    return a + b + c


def _of_halves(meaning: Callable[[Values, Values], Values], a: Values, b: Values) -> Values:
    """Return the results of a meaning for the low and the high halves of two registers."""
    parts = [low(meaning(*((value >> u32(at)) & u32(0xFFFF) for value in (a, b)))) & u32(0xFFFF) for at in (0, 16)]
    return parts[0] | parts[1] << u32(16)


def _add_halves(op: Decoded, a: Values, b: Values) -> Values:
    first, second = (source.negative for source in op.operands[1:3])
    return _of_halves(lambda x, y: (-x if first else x) + (-y if second else y), a, b)


def _multiply_add(op: Decoded, a: Values, b: Values, c: Values, carry: Values) -> Values:
    return a * b + c if carry is None else a * b + c + carry.astype(u32)


def _multiply_add_wide(op: Decoded, a: Values, b: Values, c: Values, carry: Values) -> tuple[Values, Values]:
    """Return the 64-bit sum, or its upper half, and whether it overflows."""
    is_signed = "U32" not in op.flags
    product = unsigned(signed(a).astype(i64) * signed(b).astype(i64)) if is_signed else a.astype(u64) * b.astype(u64)
    total = product + c
    overflow = total < c
    if carry is not None and "X" in op.flags:
        with_carry = total + carry
        overflow, total = overflow | (with_carry < total), with_carry
    return (low(total >> _HALF) if "HI" in op.flags else total), overflow


def _load_address(op: Decoded, a: Values, b: Values, *rest: Values) -> tuple[Values, Values]:
    """Return ((a << shift) + b, carry): of the lower or the upper half of a 64-bit a."""
    *upper, shift, carry = rest
    source = op.operands[2 if op.operands[1].kind == "predicate" else 1]
    if "SX32" in op.flags:
        value = unsigned(signed(a).astype(i64))
    else:
        value = a.astype(u64) | upper[0].astype(u64) << _HALF if upper else a.astype(u64)
    if source.negative:
        value = u64(0) - value
    if source.inverted:
        value = ~value
    value = value << u64(shift)
    value = value >> _HALF if "HI" in op.flags else value & u64(0xFFFFFFFF)
    total = value + b.astype(u64)
    if carry is not None and "X" in op.flags:
        total = total + carry
    return low(total), total >> _HALF >= 1


def _absolute(op: Decoded, a: Values) -> Values:
    return unsigned(np.abs(signed(a)))


def _dot4(op: Decoded, a: Values, b: Values, c: Values) -> Values:
    kinds = [np.int8 if name == "S8" else np.uint8 for name in op.modifiers if name in ("S8", "U8")]
    for shift in range(0, 32, 8):
        x, y = (
            (v >> u32(shift)).astype(np.uint8).view(kind).astype(i32) for v, kind in zip((a, b), kinds, strict=True)
        )
        c = c + unsigned(x * y)
    return c


# ------------------------------------------------------------------ bits
def lookup3(a: Values, b: Values, c: Values, table: int) -> Values:
    """Return a function of three bits at each position. table: its value for bit pattern 4a + 2b + c."""
    common: dict[int, Callable[[], Values]] = {0xC0: lambda: a & b, 0xFC: lambda: a | b, 0x3C: lambda: a ^ b}
    if table in common:
        return common[table]()
    terms = [
        (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c) for row in range(8) if table >> row & 1
    ]
    return reduce(np.bitwise_or, terms, a ^ a)


def _lookup(op: Decoded, a: Values, b: Values, c: Values, table: int, other: Values) -> tuple[Values, Values]:
    value = lookup3(a, b, c, table)
    nonzero = value != 0
    if other is not None:
        nonzero = nonzero & other if "PAND" in op.flags else nonzero | other
    return nonzero, value


def _lookup_predicates(op: Decoded, a: Values, b: Values, c: Values, first: int, second: int) -> tuple[Values, Values]:
    row = a * 4 + b * 2 + c * 1
    return (first >> row & 1).astype(bool), (second >> row & 1).astype(bool)


def _funnel_shift(op: Decoded, a: Values, count: Values, c: Values) -> Values:
    """Shift the 64-bit number c:a, and return one of its halves."""
    wide, arithmetic = bool({"U64", "S64"} & op.flags), bool({"S32", "S64"} & op.flags)
    limit = 64 if wide else 32
    count = count.astype(u64)
    count = count & u64(limit - 1) if "W" in op.flags else np.minimum(count, u64(limit))
    value, count = np.broadcast_arrays(a.astype(u64) | c.astype(u64) << _HALF, count)
    within = np.minimum(count, u64(63))
    if "L" in op.flags:
        shifted = np.where(count >= 64, u64(0), value << within)
    elif arithmetic:
        shifted = unsigned(signed(value) >> within.astype(i64))
    else:
        shifted = np.where(count >= 64, u64(0), value >> within)
    return low(shifted >> _HALF) if "HI" in op.flags else low(shifted)


def _permute_bytes(op: Decoded, a: Values, selector: Values, b: Values) -> Values:
    source, result = a.astype(u64) | b.astype(u64) << _HALF, u32(0)
    for to in range(4):
        choice = (selector >> u32(4 * to)) & u32(15)
        byte = (source >> ((choice & u32(7)).astype(u64) * u64(8))) & u64(255)
        sign = np.where(byte & u64(128), u64(255), u64(0))
        byte = np.where(choice & u32(8), sign, byte)
        result = result | low(byte << u64(8 * to))
    return result


def _byte_differences(op: Decoded, a: Values, b: Values, c: Values) -> Values:
    """Return the distances of the bytes of two registers, or their sum and c."""
    result = c if "ACC" in op.flags else u32(0)
    sign = u32(0 if "U8" in op.flags else 128)
    for at in range(0, 32, 8):
        x, y = (((value >> u32(at)) & u32(255)) ^ sign for value in (a, b))
        distance = np.maximum(x, y) - np.minimum(x, y)
        result = result + (distance if "ACC" in op.flags else distance << u32(at))
    return result


def _extend(op: Decoded, a: Values, width: Values) -> Values:
    """Extend the number in the low bits of a register: with zeros, or with its sign."""
    bits = width & u32(31) if "W" in op.flags else np.minimum(width, u32(32))
    power = u64(1) << bits.astype(u64)
    value, sign = a & low(power - u64(1)), low(power >> u64(1))
    return value if "U32" in op.flags else (value ^ sign) - sign


def _population(op: Decoded, a: Values) -> Values:
    return np.bitwise_count(a).astype(u32)


def _leading_one(op: Decoded, a: Values) -> Values:
    """Return the position of the highest one, or its distance from bit 31; 0xffffffff for 0."""
    position = np.frexp(a.astype(np.float64))[1] - 1
    return np.where(a == 0, u32(0xFFFFFFFF), (31 - position if "SH" in op.flags else position).astype(u32))


def _reverse_bits(op: Decoded, a: Values) -> Values:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFF)):
        a = (a >> u32(shift)) & u32(mask) | (a & u32(mask)) << u32(shift)
    return a


# ------------------------------------------------------------------ comparisons and selections
def _compare(op: Decoded, a: Values, b: Values, other: Values, carry: Values) -> tuple[Values, Values]:
    """Compare numbers, or with EX the upper halves of two, given the comparison of the lower ones."""
    name = op.modifiers[0]
    if "U32" not in op.flags:
        a, b = signed(a), signed(b)
    holds = COMPARISONS[name](a, b)
    if carry is not None:
        if name == "EQ":
            holds = holds & carry
        elif name == "NE":
            holds = holds | carry
        else:
            holds = COMPARISONS[name[0] + "T"](a, b) | (a == b) & carry
    return combine(op, holds, other)


def extreme(op: Decoded, a: Values, b: Values, least: Values) -> Values:
    """Return the minimum where `least`, else the maximum."""
    if "U32" not in op.flags:
        a, b = signed(a), signed(b)
    value: Values = np.where(least, np.minimum(a, b), np.maximum(a, b))
    return unsigned(np.maximum(value, 0) if "RELU" in op.flags else value)


def _extreme_of_halves(op: Decoded, a: Values, b: Values, least: Values) -> Values:
    sign = u32(0 if "U16x2" in op.flags else 0x8000)

    def chosen(x: Values, y: Values) -> Values:
        x, y = x ^ sign, y ^ sign
        value: Values = np.where(least, np.minimum(x, y), np.maximum(x, y))
        return value ^ sign

    return _of_halves(chosen, a, b)


def _extreme3(op: Decoded, a: Values, b: Values, c: Values, first: Values, second: Values) -> Values:
    if "U32" not in op.flags:
        a, b, c = signed(a), signed(b), signed(c)
    second = first if second is None else second
    value: Values = np.where(first, np.minimum(a, b), np.maximum(a, b))
    value = np.where(second, np.minimum(value, c), np.maximum(value, c))
    return unsigned(np.maximum(value, 0) if "RELU" in op.flags else value)


def _add_extreme(op: Decoded, a: Values, b: Values, c: Values, least: Values) -> Values:
    return extreme(op, a + b, c, least)


def _select(op: Decoded, a: Values, b: Values, first: Values) -> Values:
    return np.where(first, a, b)


def _move(op: Decoded, a: Values, lanes: int | None) -> Values:
    return a


def _predicates_to_register(op: Decoded, predicates: Values, a: Values, mask: int) -> Values:
    return (predicates & u32(mask)) | (a & u32(~mask & 0xFFFFFFFF))


def _register_to_predicates(op: Decoded, a: Values, mask: int) -> tuple[Values, int]:
    """Return predicates as bits, and the mask of those to be written."""
    byte = next((int(name[1]) for name in op.modifiers), 0)
    return a >> u32(8 * byte), mask


_COMPARED = "EQ NE LT LE GT GE AND OR XOR"
ROWS = [
    Row("IADD3", "D l l l", _add3_wide, required="64"),
    Row("IADD3", "R P? P? w w w p? p?", _add3, "X"),
    Row("VIADD", "R i i", _add),
    Row("VIADD", "R x x", _add_halves, required="16x2"),
    Row("IMAD", "D P? i i l p?", _multiply_add_wide, "U32 X", "WIDE"),
    Row("IMAD", "R P? i i l p?", _multiply_add_wide, "U32 X", "HI"),
    Row("IMAD", "R i i i p?", _multiply_add, "U32 MOV IADD SHL X"),
    Row("LEA", "R P? x i n p?", _load_address, "X", "HI SX32"),
    Row("LEA", "R P? x i i n p?", _load_address, "X", "HI"),
    Row("LEA", "R P? x i n p?", _load_address, "X"),
    Row("IABS", "R i", _absolute),
    Row("IDP", "R i i i", _dot4, "S8 U8", "4A"),
    Row("LOP3", "P? R i i i n p?", _lookup, "PAND", "LUT"),
    Row("PLOP3", "P P p p p n n", _lookup_predicates, required="LUT"),
    Row("SHF", "R i i i", _funnel_shift, "L R W HI U32 S32 U64 S64"),
    Row("PRMT", "R i i i", _permute_bytes),
    Row("SGXT", "R i i", _extend, "U32 W"),
    Row("VABSDIFF4", "R i i i", _byte_differences, "U8 S8 ACC"),
    Row("POPC", "R i", _population),
    Row("FLO", "R i", _leading_one, "SH", "U32"),
    Row("BREV", "R i", _reverse_bits),
    Row("ISETP", "P P i i p p?", _compare, _COMPARED + " U32 EX"),
    Row("VIMNMX", "R i i p", extreme, "U32 RELU"),
    Row("VIMNMX", "R i i p", _extreme_of_halves, required="S16x2"),
    Row("VIMNMX", "R i i p", _extreme_of_halves, required="U16x2"),
    Row("IMNMX", "R i i p", extreme, "U32"),
    Row("VIMNMX3", "R i i i p p?", _extreme3, "U32 RELU"),
    Row("VIADDMNMX", "R i i i p", _add_extreme, "U32 RELU"),
    Row("SEL", "R i i p", _select),
    Row("MOV", "R i n?", _move),
    Row("P2R", "R A i n", _predicates_to_register),
    Row("P2UR", "R A i n", _predicates_to_register),
    Row("R2P", "Q i n", _register_to_predicates, "B1 B2 B3"),
]
"""Rows of a form with required modifiers precede the plain form. The uniform forms (UIADD3) have the same rows."""
