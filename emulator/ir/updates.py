"""Meanings of atomic updates: the new value of an element, given the old one and the operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.forms import AtomicOp
from . import nodes as ir
from .effects import is_extreme_of_floats
from .ops import TABLE

Values = npt.NDArray[Any]


def _incremented(old: Values, limit: Values) -> Values:
    return np.asarray(np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)))


def _decremented(old: Values, limit: Values) -> Values:
    return np.asarray(np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)))


_UPDATES: dict[AtomicOp, Callable[[Values, Values], Values]] = {
    "add": np.add, "sub": np.subtract, "inc": _incremented, "dec": _decremented, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "exchange": lambda old, new: new,
}  # fmt: skip


def update_of(atomic: ir.Atomic) -> Callable[[Values, Values], Values]:
    """Return the meaning of an atomic operation. The extremes of floats are those of the operations `min` and `max`."""
    return TABLE[atomic.op].meaning if is_extreme_of_floats(atomic) else _UPDATES[atomic.op]
