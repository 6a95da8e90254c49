"""A row of the table of pure operations: types, meaning, spellings, cost, domain, and the tolerance between engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..language.types import F64, HALVES, Scalar, holds_floats
from .domains import Domain

T = TypeVar("T")
Values = npt.NDArray[Any]
Meaning = Callable[..., Values]
Cost = Literal["alu", "imul", "idiv", "fp32", "fp64", "fdiv", "sfu", "convert"]
COSTS: tuple[Cost, ...] = ("alu", "imul", "idiv", "fp32", "fp64", "fdiv", "sfu", "convert")


@dataclass(frozen=True)
class Policy:
    """The tolerance between engines: the same bits, the same value (-0 equals 0), or within `ulp` units in the last place or
    the distance `absolute`.

    Any NaN equals any NaN under each policy: processors disagree on a NaN's sign and payload. Complex numbers agree
    where both components do.
    """

    name: Literal["bits", "value", "ulp"]
    ulp: int = 0
    absolute: float = 0.0

    def agree(self, a: Values, b: Values) -> npt.NDArray[np.bool_]:
        """Element by element, whether two results of the same type count as equal."""
        if a.dtype.kind == "c":
            return self.agree(a.real, b.real) & self.agree(a.imag, b.imag)
        if not holds_floats(a.dtype):
            return np.asarray(a == b)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            both_nan = np.isnan(a) & np.isnan(b)
        if self.name == "bits":
            bits = f"u{a.dtype.itemsize}"
            return np.asarray((a.view(bits) == b.view(bits)) | both_nan)
        if self.name == "value":
            return np.asarray((a == b) | both_nan)
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.abs(a.astype(np.float64) - b.astype(np.float64)) <= self.absolute
        return np.asarray((ulp_distance(a, b) <= self.ulp) | both_nan | close)


def ulp_distance(a: Values, b: Values) -> npt.NDArray[np.uint64]:
    """Return element by element the distance of two arrays of one float type in units in the last place. A NaN counts as the number
    with the next bits."""
    bits = f"i{a.dtype.itemsize}"
    # Ordering floats as integers makes neighbouring numbers differ by one.
    ordered = [
        np.where(v.view(bits) < 0, np.iinfo(bits).min - v.view(bits), v.view(bits)).astype(np.int64) for v in (a, b)
    ]
    return np.asarray(np.maximum(*ordered).view(np.uint64) - np.minimum(*ordered).view(np.uint64))


BITS, VALUE = Policy("bits"), Policy("value")


def ulp(units: int, absolute: float = 0.0) -> Policy:
    """Results may differ by so many units in the last place, or by a distance."""
    return Policy("ulp", units, absolute)


@dataclass(frozen=True)
class Op:
    """One operation.

    types: operand types it is defined for. All operands share one type, but the first where `first` is its type, and the last
        where it is a `count`.
    result: "same" as the operands, or one type.
    cuda: C++ text with {0} {1} {2} for the operands; a dict where the spelling depends on the type.
    llvm: the instruction; "signed|unsigned|float|half" where it depends on the type. The last is optional and defaults to float's.
        @name: LLVM's intrinsic of that name; :name: several instructions, which the printer of LLVM text defines under
        that name; $name: the library's function of that name. Halves are computed as f32 unless the printer has an alternative.
    cost: issue class; "arith" means alu, fp32 (halves too) or fp64 by type.
    domain: the operands for which CUDA defines the result; None means all.
    first: the type of the first operand, where it differs.
    count: the last operand is a count, of any integer type or of the given one; the first operand then decides the type.
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
    policy: Policy | dict[Scalar, Policy] = BITS
    first: Scalar | None = None
    count: Literal["any"] | Scalar | None = None

    def comparable(self, *operands: Values) -> Values:
        """Element by element, whether the policy holds for the operands."""
        return np.ones(operands[0].shape, bool) if self.domain is None else self.domain.holds(*operands)

    def deciding(self, operands: Sequence[T]) -> T:
        """The operand whose type the operation has."""
        return operands[0 if self.count else -1]

    def operand_types(self, type: Scalar) -> tuple[Scalar, ...]:
        """Return the types of all operands, given the deciding operand's. A count of any type has the same type."""
        if isinstance(self.count, Scalar):
            return type, self.count
        return (self.first or type, *[type] * (self.operands - 1))

    def policy_for(self, type: Scalar) -> Policy:
        """The policy for operands of `type`."""
        return self.policy if isinstance(self.policy, Policy) else self.policy[type]

    def spelling(self, type: Scalar) -> str:
        """The CUDA template for operands of `type`."""
        return self.cuda if isinstance(self.cuda, str) else self.cuda[type]

    def instruction(self, type: Scalar) -> str:
        """The LLVM word for operands of `type`."""
        words = self.llvm.split("|")
        at = {"int": 0, "float": 2}.get(type.kind, 1) + (type in HALVES)
        return words[min(at, len(words) - 1)] if len(words) > 1 else words[0]

    def result_type(self, type: Scalar) -> Scalar:
        return type if self.result == "same" else self.result

    def cost_class(self, type: Scalar) -> Cost:
        if self.cost != "arith" and self.cost != "mul":
            return self.cost
        if type.is_float:
            return "fp64" if type is F64 else "fp32"
        return "imul" if self.cost == "mul" else "alu"
