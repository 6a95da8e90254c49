"""Arrays whose contents depend on the order of threads: a data-flow analysis of an inlined kernel.

Sources are old values of atomic operations, compare-and-swap, exchanges, sums of floats, different atomic operations on one
array, loads with an order, and clocks. A dependence passes through registers, indices, conditions and arrays. The analysis ignores
the order of assignments to a register. It assumes a program without races: a plain load has no concurrent store.
"""

from __future__ import annotations

from typing import Any

from ..ir import nodes as ir
from ..ir.effects import is_ordered, performed, written_array
from ..ir.walk import bodies, expressions, statements
from ..language.types import Scalar
from ..span import Span

Cause = Span | None
"""The first source of a dependence; None for no dependence."""


def order_dependent_arrays(kernel: ir.Function) -> dict[str, Span]:
    """Return the arrays with contents that depend on the order of threads, each with the statement that causes it."""
    analysis = _Analysis(kernel)
    while analysis.changed:
        analysis.changed = False
        analysis.body(kernel.body, None)
    return analysis.arrays


class _Analysis:
    """registers, arrays, loops: those that depend on the order, with the cause. changed: whether the last pass added one."""

    def __init__(self, kernel: ir.Function) -> None:
        self.registers: dict[str, Span] = {}
        self.arrays: dict[str, Span] = {}
        self.loops: dict[int, Span] = {}
        self.changed = True
        self.operations: dict[str, set[str]] = {}
        for stmt in statements(kernel.body):
            if isinstance(node := performed(stmt), ir.Atomic):
                self.operations.setdefault(node.array, set()).add(node.op)

    def add(self, table: dict[Any, Span], key: Any, cause: Cause) -> None:
        if cause is not None and key not in table:
            table[key], self.changed = cause, True

    def cause(self, node: Any) -> Cause:
        """Return the cause of a dependence of an expression, or of the operands of an effect or a statement."""
        nodes = (node, *expressions(node))
        registers = (self.registers.get(n.name) for n in nodes if isinstance(n, ir.Reg))
        items = (self.arrays.get(n.array) for n in nodes if isinstance(n, ir.Item))
        return next((found for group in (registers, items) for found in group if found is not None), None)

    def body(self, body: ir.Body, context: Cause) -> Cause:
        """Pass over statements. context: cause of the choice whether they run. Return that of the statements after them."""
        for stmt in body:
            context = self.statement(stmt, context) or context
        return context

    def statement(self, stmt: ir.Stmt, context: Cause) -> Cause:
        """Return the cause of a choice that ends a block of statements early."""
        match stmt:
            case ir.If():
                inner = context or self.cause(stmt.cond)
                ends = [self.body(part, inner) for part in bodies(stmt)]
                leaves = any(isinstance(s, ir.Break | ir.Continue | ir.Return) for s in statements((stmt,)))
                return next((end for end in ends if end is not None), None) if leaves else None
            case ir.While() | ir.For():
                self.loop(stmt, context)
                leaves = any(isinstance(s, ir.Return) for s in statements((stmt,)))
                return self.loops.get(id(stmt)) if leaves else None
            case ir.Frame():
                self.body(stmt.body, context)
            case ir.Let():
                cause = context or self.effect(stmt, context) or self.cause(stmt.value)
                if isinstance(stmt.target, ir.Reg):
                    self.add(self.registers, stmt.target.name, cause)
                elif isinstance(stmt.target, ir.Item):
                    self.add(self.arrays, stmt.target.array, cause or self.cause(stmt.target.index))
            case _ if (array := written_array(stmt)) is not None:
                self.add(self.arrays, array, context or self.cause(stmt))
        return None

    def loop(self, stmt: ir.While | ir.For, context: Cause) -> None:
        """Pass over a loop. A body with an early end that depends on the order runs a number of times that does."""
        chosen = context or self.loops.get(id(stmt)) or self.cause(stmt)
        end = chosen
        for part in bodies(stmt):
            end = self.body(part, end)
        self.add(self.loops, id(stmt), end or self.cause(stmt))
        if isinstance(stmt, ir.For):
            self.add(self.registers, stmt.var.name, chosen)

    def effect(self, let: ir.Let, context: Cause) -> Cause:
        """Return the cause of a dependence of the effect's result; add the array that it writes."""
        node = let.value
        match node:
            case ir.Load():
                return self.arrays.get(node.array) or (let.span if is_ordered(node) else None)
            case ir.Clock():
                return let.span
            case ir.CompareSwap():
                self.add(self.arrays, node.array, let.span)
                return let.span
            case ir.Atomic():
                is_source = not self.commutes(node)
                cause = context or self.cause(node) or (let.span if is_source else None)
                self.add(self.arrays, node.array, cause)
                return let.span
        return None

    def commutes(self, node: ir.Atomic) -> bool:
        """Return whether all orders of the atomic operations on the array leave the same contents."""
        exact = node.op in ("min", "max") or (isinstance(node.type, Scalar) and node.type.is_integer)
        return exact and node.op not in ("exchange", "inc", "dec") and len(self.operations[node.array]) == 1
