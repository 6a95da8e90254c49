"""Opcode rows of instructions that exchange values between the lanes of a warp, and of special registers."""

from __future__ import annotations

import numpy as np

from .integer import Values, i32, i64, u32, u64, unsigned
from .operands import Decoded
from .rows import Row

LANE_BITS = (1 << np.arange(32, dtype=u64)).astype(u32)


def mask_bits(lanes: Values) -> Values:
    """Return uint32[warps] of bool[warps, 32]."""
    packed = np.packbits(np.ascontiguousarray(lanes), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(u32)[:, 0]


def _shuffle(op: Decoded, value: Values, source: Values, limits: Values, active: Values) -> tuple[Values, Values]:
    lane = np.arange(32, dtype=i64)[None, :]
    source, limits = (source & u32(31)).astype(i64), limits.astype(i64)
    clamp, segment = limits & 31, limits >> 8 & 31
    first, last = lane & segment, (lane & segment) | (clamp & ~segment)
    if "UP" in op.flags:
        source_lane = lane - source
        inside = source_lane >= last
    else:
        moved = {"DOWN": lane + source, "BFLY": lane ^ source, "IDX": first | (source & ~segment)}
        source_lane = moved[op.modifiers[0]]
        inside = source_lane <= last
    source_lane = np.broadcast_to(np.where(inside, source_lane, lane), active.shape)
    value = np.take_along_axis(np.broadcast_to(value, active.shape), source_lane, 1)
    return np.broadcast_to(inside, active.shape), value


def _vote(op: Decoded, holds: Values, active: Values) -> tuple[Values, Values]:
    voting = np.broadcast_to(holds, active.shape) & active
    unanimous = (voting == active).all(1)
    result = {"ANY": voting.any(1), "ALL": unanimous, "EQ": unanimous | ~voting.any(1)}[op.modifiers[0]]
    return mask_bits(voting)[:, None], result[:, None]


def _match(op: Decoded, value: Values, active: Values) -> Values:
    value = np.broadcast_to(value, active.shape)
    equal = (value[:, :, None] == value[:, None, :]) & active[:, None, :]
    return (equal * LANE_BITS).sum(2, dtype=u64).astype(u32)


_REDUCTIONS = {
    "SUM": (np.add, 0, 0), "MAX": (np.maximum, 0, -(2**31)), "MIN": (np.minimum, 2**32 - 1, 2**31 - 1),
    "OR": (np.bitwise_or, 0, 0), "XOR": (np.bitwise_xor, 0, 0), "AND": (np.bitwise_and, 2**32 - 1, -1),
}  # fmt: skip
"""By modifier: the function, and its neutral element among unsigned and signed numbers."""


def _reduce(op: Decoded, value: Values, active: Values) -> Values:
    function, neutral, signed_neutral = _REDUCTIONS[next((name for name in op.modifiers if name != "S32"), "AND")]
    value = np.ascontiguousarray(np.broadcast_to(value, active.shape))
    if "S32" in op.flags:
        value, neutral = value.view(i32), signed_neutral
    total = function.reduce(np.where(active, value, value.dtype.type(neutral)), axis=1, dtype=value.dtype)
    return unsigned(total)[:, None]


def _first_lane(op: Decoded, value: Values, active: Values) -> Values:
    first = active.argmax(1)[:, None]
    return np.take_along_axis(np.broadcast_to(value, active.shape), first, 1)


def _special_register(op: Decoded, value: Values) -> Values:
    return value


def _special_register_wide(op: Decoded, value: Values) -> Values:
    return value.astype(u64)


ROWS = [
    Row("SHFL", "P R i i i m", _shuffle, "UP DOWN BFLY IDX"),
    Row("VOTE", "R? P? p m", _vote, "ANY ALL EQ"),
    Row("MATCH", "R i m", _match, required="ANY"),
    Row("REDUX", "R i m", _reduce, "SUM MAX MIN OR XOR AND S32"),
    Row("R2UR", "R i m", _first_lane),
    Row("S2R", "R s", _special_register),
    Row("CS2R", "R s", _special_register, required="32"),
    Row("CS2R", "D s", _special_register_wide),
]
