"""Opcode rows of instructions that exchange values between the lanes of a warp, and of special registers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import language as st
from ..language.hints import Global, i64, u32
from ..language.intrinsics import WARP_SIZE
from ..native import native
from .integer import Values
from .operands import Decoded
from .rows import Row
from .traced import Lanes

KINDS = (
    "UP", "DOWN", "BFLY", "IDX", "ANY", "ALL", "EQ", "MATCH", "FIRST",
    "SUM", "MAX", "MIN", "OR", "XOR", "AND", "MAX.S32", "MIN.S32", "ELECT", "FIRST.OR",
)  # fmt: skip
"""Exchanges: shuffles, votes, MATCH, the value of the first active lane, reductions, the first active lane; FIRST.OR is FIRST,
with another result."""
UP, DOWN, BFLY, IDX, ANY, ALL, EQ, MATCH, FIRST = range(9)
SUM, MAX, MIN, OR, XOR, AND, SIGNED_MAX, SIGNED_MIN = range(9, 17)
ELECT, FIRST_OR = 17, 18


@st.device
def _shuffle(kind: i64, at: i64, a: Global[u32], b: Global[u32], c: Global[u32], out: Global[u32],
             holds: Global[bool]) -> None:  # fmt: skip
    for lane in range(i64(WARP_SIZE)):
        moved, limits = i64(b[at + lane] & u32(31)), i64(c[at + lane])
        segment = limits >> 8 & 31
        last = (lane & segment) | (limits & 31 & ~segment)
        source = (lane & segment) | (moved & ~segment)
        if kind == UP:
            source = lane - moved
        elif kind == DOWN:
            source = lane + moved
        elif kind == BFLY:
            source = lane ^ moved
        inside = source >= last if kind == UP else source <= last
        holds[at + lane] = inside
        out[at + lane] = a[at + (source if inside else lane)]


@st.device
def _folded(kind: i64, a: u32, b: u32) -> u32:
    result = a & b
    if kind == SUM:
        result = a + b
    elif kind == MAX:
        result = max(a, b)
    elif kind == MIN:
        result = min(a, b)
    elif kind == OR:
        result = a | b
    elif kind == XOR:
        result = a ^ b
    elif kind == SIGNED_MAX:
        result = max(a ^ u32(0x80000000), b ^ u32(0x80000000)) ^ u32(0x80000000)
    elif kind == SIGNED_MIN:
        result = min(a ^ u32(0x80000000), b ^ u32(0x80000000)) ^ u32(0x80000000)
    return result


@st.device
def _equal_lanes(at: i64, lane: i64, a: Global[u32], active: Global[bool]) -> u32:
    """Return the active lanes with the value of a lane."""
    equal = u32(0)
    for other in range(i64(WARP_SIZE)):
        if active[at + other] and a[at + other] == a[at + lane]:
            equal |= u32(1) << u32(other)
    return equal


@native
def exchange(
    kind: i64, warps: i64, a: Global[u32], b: Global[u32], c: Global[u32], active: Global[bool], out: Global[u32],
    holds: Global[bool],
) -> None:  # fmt: skip
    """Exchange values between lanes; 32 elements a warp. kind: an index of KINDS.

    a, b, c: the operands; a vote's predicate is 0 or 1. out, holds: the results.
    """
    for warp in range(warps):
        at = warp * WARP_SIZE
        if kind <= IDX:
            _shuffle(kind, at, a, b, c, out, holds)
            continue
        bits, voting, result, has_value = u32(0), u32(0), u32(0), False
        for lane in range(i64(WARP_SIZE)):
            if active[at + lane]:
                bits |= u32(1) << u32(lane)
                voting |= a[at + lane] << u32(lane) if kind <= EQ else u32(0)
                if kind >= FIRST:
                    if not has_value:
                        result = u32(lane) if kind == ELECT else a[at + lane]
                    elif kind > FIRST and kind < ELECT:
                        result = _folded(kind, result, a[at + lane])
                    has_value = True
        holds[at] = voting != u32(0)
        if kind == ALL:
            holds[at] = voting == bits
        elif kind == EQ:
            holds[at] = voting == bits or voting == u32(0)
        for lane in range(i64(WARP_SIZE)):
            holds[at + lane] = holds[at]
            out[at + lane] = voting if kind <= EQ else result
            if kind == MATCH:
                out[at + lane] = _equal_lanes(at, lane, a, active)
            elif kind == ELECT:
                holds[at + lane] = u32(lane) == result
            elif kind in (FIRST, FIRST_OR):
                holds[at + lane] = a[at + lane] != result or (kind == FIRST_OR and b[at + lane] != u32(0))


@dataclass(frozen=True)
class Exchange:
    """The meaning of a row with active lanes. kind: an index of KINDS. results: those of `exchange`, in the order of the
    destinations."""

    kind: Callable[[Decoded], int]
    results: str

    def __call__(self, op: Decoded, *values: Values) -> Any:
        *operands, active = values
        if isinstance(active, Lanes):
            return self._results(active.exchange(active, self.kind(op), operands))
        flat = [np.broadcast_to(one, active.shape).astype(np.uint32).reshape(-1) for one in operands]
        flat += [flat[0]] * (3 - len(flat))
        out, holds = np.zeros(active.size, np.uint32), np.zeros(active.size, np.bool_)
        exchange(self.kind(op), len(active), *flat, np.ascontiguousarray(active).reshape(-1), out, holds)
        return self._results({"out": out.reshape(active.shape), "holds": holds.reshape(active.shape)})

    def _results(self, named_results: dict[str, Any]) -> Any:
        results = [named_results[name] for name in self.results.split()]
        return results if len(results) > 1 else results[0]


def _by_modifier(op: Decoded) -> int:
    return KINDS.index(op.modifiers[0])


def _reduction(op: Decoded) -> int:
    name = next((name for name in op.modifiers if name != "S32"), "AND")
    return KINDS.index(f"{name}.S32" if "S32" in op.flags and f"{name}.S32" in KINDS else name)


def mask_bits(lanes: Values) -> Values:
    """Return uint32[warps] of bool[warps, 32]."""
    packed = np.packbits(np.ascontiguousarray(lanes), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)[:, 0]


def _special_register(op: Decoded, value: Values) -> Values:
    return value


def _special_register_wide(op: Decoded, value: Values) -> Values:
    return value.astype(np.uint64)


ROWS = [
    Row("SHFL", "P R i i i m", Exchange(_by_modifier, "holds out"), "UP DOWN BFLY IDX"),
    Row("VOTE", "R? P? p m", Exchange(_by_modifier, "out holds"), "ANY ALL EQ"),
    Row("MATCH", "R i m", Exchange(lambda op: MATCH, "out"), required="ANY"),
    Row("REDUX", "R i m", Exchange(_reduction, "out"), "SUM MAX MIN OR XOR AND S32"),
    Row("R2UR", "P R i o m", Exchange(lambda op: FIRST_OR, "holds out"), required="OR"),
    Row("R2UR", "P? R i m", Exchange(lambda op: FIRST, "holds out")),
    Row("ELECT", "P R p m", Exchange(lambda op: ELECT, "holds out")),
    Row("S2R", "R s", _special_register),
    Row("CS2R", "R s", _special_register, required="32"),
    Row("CS2R", "D s", _special_register_wide),
]
