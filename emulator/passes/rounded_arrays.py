"""Arrays that hold results of functions which CUDA's own mathematics rounds otherwise, with the bound of their difference.

A bound applies to an array with results of such functions of exact operands, and to no array with later results: operations on a
rounded value may increase its error. The analysis ignores the order of assignments to a register.
"""

from __future__ import annotations

import math
from typing import Any

from ..ir import nodes as ir
from ..ir.effects import performed, written_array
from ..ir.op import Policy, ulp
from ..ir.ops import TABLE
from ..ir.walk import bodies, children, statements
from ..language.types import Scalar

Bound = Policy | None
"""The bound of a rounded value; None if there is no bound."""
States = dict[str, Bound]
"""Rounded registers or arrays, by name. Other names are exact."""


def rounded_arrays(kernel: ir.Function) -> States:
    """Return the arrays of an inlined kernel that are not exact, each with its bound."""
    analysis = _Analysis()
    while analysis.changed:
        analysis.changed = False
        analysis.body(kernel.body, False)
    return analysis.arrays


def bound_of(op: ir.Op) -> Policy | None:
    """Return the bound of an operation on exact operands; None for an operation with equal bits."""
    row = TABLE[op.name]
    type = row.deciding(op.args).type
    assert isinstance(type, Scalar)
    policy = row.policy_for(type)
    return policy if policy.name == "ulp" else None


class _Analysis:
    """choices: whether a rounded value chooses if statements after a jump run. changed: whether the last pass changed a state."""

    def __init__(self) -> None:
        self.registers: States = {}
        self.arrays: States = {}
        self.choices = False
        self.changed = True

    def add(self, states: States, name: str, sources: list[Bound]) -> None:
        """Join the states of rounded sources to the state of a name."""
        if not sources:
            return
        result = _join([*sources, states[name]] if name in states else sources)
        if name not in states or states[name] != result:
            states[name], self.changed = result, True

    def sources(self, node: Any) -> list[Bound]:
        """Return the bounds of rounded values that a value is, or [None] for a value computed from them."""
        match node:
            case ir.Reg():
                return [self.registers[node.name]] if node.name in self.registers else []
            case ir.Item() | ir.Load():
                if self.sources(node.index):
                    return [None]
                return [self.arrays[node.array]] if node.array in self.arrays else []
            case ir.Pack():
                return [bound for arg in node.args for bound in self.sources(arg)]
        if any(self.sources(operand) for operand in children(node)):
            return [None]
        if isinstance(node, ir.Op) and (bound := bound_of(node)) is not None:
            return [bound if TABLE[node.name].within == math.inf else None]  # a limited range depends on the operand
        if isinstance(node, ir.Atomic | ir.CompareSwap) and node.array in self.arrays:
            return [None]
        return []

    def body(self, body: ir.Body, chosen: bool) -> None:
        """Pass over statements. chosen: whether a rounded value chooses if they run."""
        for stmt in body:
            self.statement(stmt, chosen or self.choices)

    def statement(self, stmt: ir.Stmt, chosen: bool) -> None:
        inner = chosen
        if isinstance(stmt, ir.If | ir.While | ir.For):
            inner = chosen or bool(any(self.sources(operand) for operand in children(stmt)))
            jumps = any(isinstance(s, ir.Break | ir.Continue | ir.Return) for s in statements((stmt,)))
            if inner and jumps and not self.choices:
                self.choices = self.changed = True
            if isinstance(stmt, ir.For) and inner:
                self.add(self.registers, stmt.var.name, [None])
        for nested in bodies(stmt):
            self.body(nested, inner)
        if isinstance(stmt, ir.Let):
            sources: list[Bound] = [None] if chosen else self.sources(stmt.value)
            if isinstance(stmt.target, ir.Reg):
                self.add(self.registers, stmt.target.name, sources)
            elif isinstance(stmt.target, ir.Item):
                self.add(self.arrays, stmt.target.array, [None] if self.sources(stmt.target.index) else sources)
        if (array := written_array(stmt)) is not None:
            self.add(self.arrays, array, self.stored(stmt, chosen))

    def stored(self, stmt: ir.Stmt, chosen: bool) -> list[Bound]:
        """Return the bounds of what a statement writes."""
        access = performed(stmt)
        if isinstance(access, ir.Store) and not chosen and not self.sources(access.index):
            return self.sources(access.value)
        return [None] if chosen or any(self.sources(operand) for operand in children(access)) else []


def _join(bounds: list[Bound]) -> Bound:
    policies = [bound for bound in bounds if bound is not None]
    if len(policies) < len(bounds):
        return None
    return ulp(max(policy.ulp for policy in policies), max(policy.absolute for policy in policies))
