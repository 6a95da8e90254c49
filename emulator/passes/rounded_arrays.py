"""Arrays that hold results of functions which CUDA's own mathematics rounds otherwise, with the bound of their difference.

A bound applies to an array with results of such functions of exact operands, and to no array with later results: operations on a
rounded value may increase its error.
"""

from dataclasses import dataclass
from typing import Any

from ..ir import nodes as ir
from ..ir.op import Policy, ulp
from ..ir.ops import TABLE
from ..language.types import Scalar
from .array_flow import ArrayFlow


@dataclass(frozen=True)
class Rounded:
    """A rounded value. bound: of its difference; None if there is no bound."""

    bound: Policy | None


UNBOUNDED = Rounded(None)


def rounded_arrays(kernel: ir.Function) -> dict[str, Rounded]:
    """Return the arrays of an inlined kernel that are not exact."""
    return _RoundedArrays(kernel).dependent_arrays()


def bound_of(op: ir.Op) -> Policy | None:
    """Return the bound of an operation on exact operands; None for an operation with equal bits."""
    row = TABLE[op.name]
    type = row.deciding(op.args).type
    assert isinstance(type, Scalar)
    policy = row.policy_for(type)
    return policy if policy.name == "ulp" else None


class _RoundedArrays(ArrayFlow[Rounded]):
    def joined(self, a: Rounded, b: Rounded) -> Rounded:
        if a.bound is None or b.bound is None:
            return UNBOUNDED
        return Rounded(ulp(max(a.bound.ulp, b.bound.ulp), max(a.bound.absolute, b.bound.absolute)))

    def chosen(self, state: Rounded) -> Rounded:
        return UNBOUNDED

    def computed(self, node: Any, operands: Rounded | None) -> Rounded | None:
        if isinstance(node, ir.Load | ir.Pack):
            return operands
        if isinstance(node, ir.Atomic | ir.CompareSwap) and node.array in self.arrays:
            return UNBOUNDED
        if operands is not None:
            return UNBOUNDED
        if isinstance(node, ir.Op) and (bound := bound_of(node)) is not None:
            return Rounded(bound)
        return None

    def stored(self, access: Any) -> Rounded | None:
        state = super().stored(access)
        return state if isinstance(access, ir.Store) or state is None else UNBOUNDED
