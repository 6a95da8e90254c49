"""Unrolling of loops, folding of constants, and replacement of register arrays by registers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.limits import MOST_STATEMENTS
from ..ir.names import element
from ..ir.ops import TABLE
from ..ir.walk import map_bodies, rewrite_operands, statements
from ..language.types import BOOL, Array, Scalar, Vector
from . import budget

Constants = dict[str, ir.Const]


def unroll(program: ir.Program) -> ir.Program:
    """The program without unrolled loops, Items and constant branches. Needs inlined calls.

    Raises CompileError where an index into a register array or a vector is out of range, and where it becomes too long.
    """
    kernel = program.kernel
    budget.check_loops(kernel.body)
    arrays = {
        s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc) and s.type.space == "register"
    }
    assigned = Counter(
        s.target.name for s in statements(kernel.body) if isinstance(s, ir.Let) and isinstance(s.target, ir.Reg)
    )
    unroller = _Unroller(arrays, frozenset(name for name, times in assigned.items() if times == 1))
    body = unroller.body(kernel.body, {})
    if unroller.diagnostics:
        raise CompileError(sorted(unroller.diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column)))
    return ir.Program(replace(kernel, body=body), ())


class _Unroller:
    def __init__(self, arrays: dict[str, Array], once: frozenset[str]) -> None:
        self.arrays, self.once = arrays, once
        self.diagnostics: list[Diagnostic] = []
        self.made = 0  # statements of unrolled loops

    def body(self, body: ir.Body, known: Constants) -> ir.Body:
        known = dict(known)
        return tuple(new for stmt in body for new in self.statement(stmt, known))

    def statement(self, stmt: ir.Stmt, known: Constants) -> ir.Body:
        if isinstance(stmt, ir.For) and stmt.unroll:
            return self.iterations(stmt, known)
        stmt = self.fold(stmt, known)
        match stmt:
            case ir.If(cond=ir.Const() as cond):
                return self.body(stmt.then if cond.value else stmt.orelse, known)
            case ir.Let(target=ir.Reg(name=name), value=ir.Const() as value) if name in self.once:
                known[name] = value  # for the rest of this body
        return (map_bodies(stmt, lambda inner: self.body(inner, known)),)

    def iterations(self, loop: ir.For, known: Constants) -> ir.Body:
        """The body once for each value of the loop variable."""
        start, stop = self.fold(loop.start, known), self.fold(loop.stop, known)
        assert isinstance(start, ir.Const) and isinstance(stop, ir.Const)
        assert isinstance(loop.var.type, Scalar) and isinstance(loop.step, int)
        self.made += budget.trips(int(start.value), int(stop.value), loop.step) * max(1, len(loop.body))
        if self.made > MOST_STATEMENTS:
            budget.too_long(loop.span, self.made, "by this unrolled loop")
        numbers = range(int(start.value), int(stop.value), loop.step)
        values = [ir.Const(i, loop.var.type, loop.var.span) for i in numbers]
        return tuple(s for v in values for s in self.body(loop.body, {**known, loop.var.name: v}))

    def fold(self, node: Any, known: Constants) -> Any:
        """The node with known registers replaced and constant operations computed."""

        def change(part: Any) -> Any:
            match part:
                case ir.Reg() if part.name in known:
                    return replace(known[part.name], span=part.span)
                case ir.Op():
                    return _folded(part)
                case ir.Item(index=ir.Const() as index):
                    return self.register(part, index)
                case ir.Part(index=ir.Const() as index):
                    assert isinstance(part.value.type, Vector)
                    lanes = part.value.type.lanes
                    if not 0 <= index.value < lanes:
                        last = f"its last index is {lanes - 1}"
                        self.report(part, f"index {index.value}, but {part.value.type} has {lanes} parts", last)
                    elif isinstance(part.value, ir.Pack):
                        return part.value.args[int(index.value)]
            return part

        return rewrite_operands(node, change)

    def register(self, item: ir.Item, index: ir.Const) -> ir.Expr:
        length = self.arrays[item.array].length
        assert length is not None
        if not 0 <= index.value < length:
            self.report(
                item, f"index {index.value}, but {item.array} has {length} registers", f"its last index is {length - 1}"
            )
        return ir.Reg(element(item.array, int(index.value)), item.type, item.span)

    def report(self, node: Any, message: str, advice: str) -> None:
        found = Diagnostic("compile", message, node.span, (advice,))
        if found not in self.diagnostics:
            self.diagnostics.append(found)


def _folded(op: ir.Op) -> ir.Expr:
    """The operation computed, where its operands decide it."""
    if op.name == "select" and isinstance(op.args[0], ir.Const):
        return op.args[1] if op.args[0].value else op.args[2]
    if op.name in ("both", "either"):
        for arg, other in (op.args, op.args[::-1]):
            if isinstance(arg, ir.Const):
                return other if bool(arg.value) == (op.name == "both") else arg
    if not all(isinstance(a, ir.Const) for a in op.args):
        return op
    operands = [np.array([a.value], a.type.dtype) for a in op.args if isinstance(a, ir.Const)]
    with np.errstate(all="ignore"):
        value = TABLE[op.name].meaning(*operands)[0].item()
    return ir.Const(bool(value) if op.type is BOOL else value, op.type, op.span)
