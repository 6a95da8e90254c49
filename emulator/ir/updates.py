"""Table of atomic updates, one row an operation. Its meaning: the new value of an element, given the old one and the operand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.forms import AtomicOp, BulkReduction
from ..language.types import F32, F64, HALVES, I32, I64, U32, U64, Scalar
from . import nodes as ir
from .effects import is_extreme_of_floats
from .mbarriers import COUNT, EXPECTED, NO_BYTES, TX, TX_FIELD, WAITS
from .ops import TABLE

Values = npt.NDArray[Any]


def _incremented(old: Values, limit: Values) -> Values:
    return np.asarray(np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)))


def _decremented(old: Values, limit: Values) -> Values:
    return np.asarray(np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)))


def _counted(change: Callable[[Values], Values]) -> Callable[[Values, Values], Values]:
    """Return the update that adds a change to the word of a barrier (`mbarriers`)."""

    def update(old: Values, operand: Values) -> Values:
        new = old + change(operand)
        left = (new & np.uint64(COUNT)) | ((new >> np.uint64(TX) & np.uint64(TX_FIELD)) ^ np.uint64(NO_BYTES))
        following = (new ^ np.uint64(1 << 63)) | (new >> np.uint64(EXPECTED) & np.uint64(COUNT))
        return np.asarray(np.where(left == 0, following, new))

    return update


_LEAST_NORMAL = np.float32(2.0**-126)
_FAR = np.float32(2.0**-100)


def without_subnormal(values: Values) -> Values:
    """Return f32 with zeros of their signs in place of subnormal numbers."""
    return np.where(np.abs(values) < _LEAST_NORMAL, np.copysign(np.float32(0), values), values)


def _flushing(change: np.ufunc) -> Callable[[Values, Values], Values]:
    """Return the update that flushes subnormal numbers of its operands and of its result."""

    def update(old: Values, operand: Values) -> Values:
        return without_subnormal(change(without_subnormal(old), without_subnormal(operand)))

    return update


def never_subnormal(values: Values) -> bool:
    """Return whether no sum of some f32 is subnormal, in any order: they are multiples of 2**-123, and so are their sums."""
    return bool(np.all((np.abs(values) >= _FAR) | (values == 0) | np.isnan(values)))


_ONE_BYTE = np.uint64(1 << TX)


@dataclass(frozen=True)
class Update:
    """An atomic operation: its NumPy meaning, its name in CUDA, and the types of elements that CUDA has it for."""

    meaning: Callable[[Values, Values], Values]
    cuda: str
    types: tuple[Scalar, ...]


_INTEGERS = (I32, U32, I64, U64)
_NUMBERS = (*_INTEGERS, F32, F64)
UPDATES: dict[AtomicOp, Update] = {
    "add": Update(np.add, "atomicAdd", (*_NUMBERS, *HALVES)),
    "sub": Update(np.subtract, "atomicSub", (*_NUMBERS, *HALVES)),
    "add_ftz": Update(_flushing(np.add), "atomicAdd", ()),
    "sub_ftz": Update(_flushing(np.subtract), "atomicSub", ()),
    "inc": Update(_incremented, "atomicInc", (U32,)),
    "dec": Update(_decremented, "atomicDec", (U32,)),
    "min": Update(np.minimum, "atomicMin", _INTEGERS),
    "max": Update(np.maximum, "atomicMax", _INTEGERS),
    "and": Update(np.bitwise_and, "atomicAnd", _INTEGERS),
    "or": Update(np.bitwise_or, "atomicOr", _INTEGERS),
    "xor": Update(np.bitwise_xor, "atomicXor", _INTEGERS),
    "exchange": Update(lambda old, new: new, "atomicExch", _NUMBERS),
    "mbarrier_arrive": Update(_counted(lambda count: np.uint64(0) - count), "mbarrier_arrive", (U64,)),
    "mbarrier_arrive_expect_tx": Update(
        _counted(lambda bytes: bytes * _ONE_BYTE - np.uint64(1)), "mbarrier_arrive_expect_tx", (U64,)
    ),
    "mbarrier_expect_tx": Update(_counted(lambda bytes: bytes * _ONE_BYTE), "mbarrier_expect_tx", (U64,)),
    "mbarrier_complete_tx": Update(
        _counted(lambda bytes: np.uint64(0) - bytes * _ONE_BYTE), "mbarrier_complete_tx", (U64,)
    ),
    **{name: Update(lambda old, state: old, name, (U64,)) for name in WAITS},
}

FLUSHED: dict[AtomicOp, AtomicOp] = {"add": "add_ftz", "sub": "sub_ftz"}
"""The operations that flush subnormal numbers, of engines alone: see `passes.flushed_sums`."""
SUMS = {*FLUSHED, *FLUSHED.values()}
UNFLUSHED = {flushed: UPDATES[op].meaning for op, flushed in FLUSHED.items()}
"""By operation, its meaning if no number is subnormal."""
_BULK_REDUCTIONS: dict[BulkReduction, tuple[Scalar, ...]] = {
    "add": (I32, U32, U64, F32, F64, *HALVES),
    "min": (*_INTEGERS, *HALVES),
    "max": (*_INTEGERS, *HALVES),
    "inc": (U32,),
    "dec": (U32,),
    "and": _INTEGERS,
    "or": _INTEGERS,
    "xor": _INTEGERS,
}


def reduced_types(op: BulkReduction, boxes: bool) -> tuple[Scalar, ...]:
    """Return the types of elements that PTX has a bulk reduction for (`cp.reduce.async.bulk`; of boxes `cp.reduce.async.bulk.tensor`)."""
    without = (F64, *([I64] if op in ("and", "or", "xor") else [])) if boxes else ()
    return tuple(type for type in _BULK_REDUCTIONS[op] if type not in without)


def update_of(atomic: ir.Atomic) -> Callable[[Values, Values], Values]:
    """Return the meaning of an atomic operation. The extremes of floats are those of the operations `min` and `max`."""
    return TABLE[atomic.op].meaning if is_extreme_of_floats(atomic) else UPDATES[atomic.op].meaning
