"""Arrays whose contents depend on the order of threads, each with the first cause.

Sources are old values of atomic operations, compare-and-swap, exchanges, sums of floats, different atomic operations on one
array, loads with an order, and clocks.
"""

from typing import Any

from ..ir import nodes as ir
from ..ir.effects import is_ordered, performed
from ..ir.walk import statements
from ..language.types import Scalar
from ..span import Span
from .array_flow import ArrayFlow


def order_dependent_arrays(kernel: ir.Function) -> dict[str, Span]:
    """Return the arrays with contents that depend on the order of threads, each with the access that causes it."""
    return _ThreadOrder(kernel).dependent_arrays()


class _ThreadOrder(ArrayFlow[Span]):
    """A state is the cause of a dependence."""

    def __init__(self, kernel: ir.Function) -> None:
        super().__init__(kernel)
        self.operations: dict[str, set[str]] = {}
        for stmt in statements(kernel.body):
            if isinstance(node := performed(stmt), ir.Atomic):
                self.operations.setdefault(node.array, set()).add(node.op)

    def joined(self, a: Span, b: Span) -> Span:
        return a

    def chosen(self, state: Span) -> Span:
        return state

    def computed(self, node: Any, operands: Span | None) -> Span | None:
        is_source = isinstance(node, ir.Clock | ir.Atomic | ir.CompareSwap)
        is_source |= isinstance(node, ir.Load) and is_ordered(node)
        return self.join(operands, node.span if is_source else None)

    def stored(self, access: Any) -> Span | None:
        is_source = isinstance(access, ir.CompareSwap) or (isinstance(access, ir.Atomic) and not self.commutes(access))
        return self.join(super().stored(access), access.span if is_source else None)

    def commutes(self, node: ir.Atomic) -> bool:
        """Return whether all orders of the atomic operations on the array leave the same contents."""
        exact = node.op in ("min", "max") or (isinstance(node.type, Scalar) and node.type.is_integer)
        return exact and node.op not in ("exchange", "inc", "dec") and len(self.operations[node.array]) == 1
