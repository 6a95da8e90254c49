"""Domains of operations: the operands for which CUDA defines the result, as data that each engine lowers by kind.

An operation outside its domain still has a result in the emulator. The arithmetic checker reports it.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..language.types import Scalar, holds_floats

Values = npt.NDArray[Any]
Constant = bool | int | float


class Domain(ABC):
    """A kind of domain.

    guards: whether a conditional expression must not evaluate the operation in an arm that is not selected.
    """

    guards = True

    @abstractmethod
    def holds(self, *operands: Values) -> Values:
        """Return element by element whether the operands are in the domain."""

    @abstractmethod
    def may_leave(self, type: Scalar, last: Constant | None) -> bool:
        """Return whether operands of a type can be outside the domain, given the last operand where it is constant."""


@dataclass(frozen=True)
class NoOverflow(Domain):
    """The exact sum, difference or product of the first two operands fits their type.

    CUDA leaves the overflow of int and long long undefined. Narrower types are computed as int and wrap.
    """

    operation: Literal["add", "sub", "mul"]
    guards = False

    @property
    def written(self) -> str:
        """The operation in a message, {0} and {1} being the operands."""
        return f"{{0}} {_SYMBOLS[self.operation]} {{1}}"

    def holds(self, *operands: Values) -> Values:
        dtype = operands[0].dtype
        if not _overflows(dtype):
            return _everywhere(*operands)
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        exact = _EXACT[self.operation](*(a.astype(object) for a in operands[:2]))
        fits = np.asarray((exact >= low) & (exact <= high)).astype(bool)
        return np.broadcast_to(fits, np.broadcast(*operands).shape)

    def may_leave(self, type: Scalar, last: Constant | None) -> bool:
        return _overflows(type.dtype)


@dataclass(frozen=True)
class NotLowest(Domain):
    """The operand is not the smallest number of its type, which has no positive counterpart.

    written: the operation in a message, {0} being the operand.
    """

    written: str
    guards = False

    def holds(self, *operands: Values) -> Values:
        (a,) = operands
        return np.asarray(a != np.iinfo(a.dtype).min) if _overflows(a.dtype) else _everywhere(a)

    def may_leave(self, type: Scalar, last: Constant | None) -> bool:
        return _overflows(type.dtype)


@dataclass(frozen=True)
class NonZeroDivisor(Domain):
    """The second operand is not 0, and the quotient is not that of the smallest number by -1.

    written: the operation in a message, {0} and {1} being the operands.
    """

    written: str

    def holds(self, *operands: Values) -> Values:
        a, b = operands
        if a.dtype.kind == "u":
            return np.asarray(b != 0)
        return np.asarray((b != 0) & ~((a == np.iinfo(a.dtype).min) & (b == -1)))

    def may_leave(self, type: Scalar, last: Constant | None) -> bool:
        return last is None or last in (0, -1)


@dataclass(frozen=True)
class ShiftInRange(Domain):
    """The second operand is at least 0 and less than the bits of the promoted first one."""

    def holds(self, *operands: Values) -> Values:
        a, b = operands
        return np.asarray((b >= 0) & (b < 8 * max(4, a.dtype.itemsize)))

    def may_leave(self, type: Scalar, last: Constant | None) -> bool:
        return last is None or not 0 <= last < promoted_bits(type)


@dataclass(frozen=True)
class FitsInteger(Domain):
    """A float operand, truncated, is a number of the integer type `target`."""

    target: Scalar

    def holds(self, *operands: Values) -> Values:
        (x,) = operands
        if not holds_floats(x.dtype):
            return _everywhere(x)
        low, high = self.target.range
        whole = np.trunc(x.astype(np.float64))
        return np.asarray((whole >= low) & (whole < float(high + 1)))

    def may_leave(self, type: Scalar, last: Constant | None) -> bool:
        return type.is_float


def promoted_bits(type: Scalar) -> int:
    """Bits of an integer type where C++ computes with it: at least those of an int."""
    return max(32, type.bits)


_SYMBOLS = {"add": "+", "sub": "-", "mul": "*"}
_EXACT: dict[str, Callable[[Any, Any], Any]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _overflows(dtype: np.dtype[Any]) -> bool:
    """Whether CUDA leaves the overflow of a type undefined."""
    return dtype.kind == "i" and dtype.itemsize >= 4


def _everywhere(*operands: Values) -> Values:
    return np.ones(np.broadcast(*operands).shape, bool)
