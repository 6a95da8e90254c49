"""Unrolling of loops, folding of constants, and replacement of register arrays by registers."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import CompileError, Diagnostic
from ..ir import nodes as ir
from ..ir.limits import MOST_STATEMENTS
from ..ir.names import Name, element
from ..ir.ops import TABLE
from ..ir.walk import bodies, map_bodies, rebuild, rebuild_operands, statements
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
    once = frozenset(name for name, times in assigned.items() if times == 1)
    unroller = _Unroller(arrays, once, _flags(kernel.body) - once)
    body = unroller.body(kernel.body, {})
    if unroller.diagnostics:
        raise CompileError(sorted(unroller.diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column)))
    return ir.Program(replace(kernel, body=body), ())


def _is_empty(loop: ir.For) -> bool:
    """Return whether a loop has constant bounds and no iteration."""
    match loop:
        case ir.For(start=ir.Const(value=start), stop=ir.Const(value=stop), step=int(step)):
            return not range(int(start), int(stop), step)
    return False


def _flags(body: ir.Body) -> frozenset[str]:
    """Return the generated registers of conditions."""
    targets = (stmt.target for stmt in statements(body) if isinstance(stmt, ir.Let))
    return frozenset(
        t.name for t in targets if isinstance(t, ir.Reg) and t.type == BOOL and Name.parse(t.name).temporary
    )


class _Unroller:
    """Expander of loops.

    once: registers with a single assignment. flags: registers of conditions with several; a known value holds until the next
    assignment.
    """

    def __init__(self, arrays: dict[str, Array], once: frozenset[str], flags: frozenset[str]) -> None:
        self.arrays, self.once, self.flags = arrays, once, flags
        self.diagnostics: list[Diagnostic] = []
        self.unrolled_statements = 0  # statements of unrolled loops

    def body(self, body: ir.Body, constants: Constants) -> ir.Body:
        return self.sequence(body, dict(constants))

    def sequence(self, body: ir.Body, constants: Constants) -> ir.Body:
        """Return a body whose assignments remain known to the statements after it."""
        return tuple(new for stmt in body for new in self.statement(stmt, constants))

    def statement(self, stmt: ir.Stmt, constants: Constants) -> ir.Body:
        if isinstance(stmt, ir.For) and stmt.unroll:
            self.forget(stmt, constants)
            return self.iterations(stmt, constants)
        if isinstance(stmt, ir.While):
            return self.repetition(stmt, constants)
        folded = self.fold(stmt, constants)
        if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg):  # the register itself, not its earlier value
            folded = replace(folded, target=stmt.target)
        stmt = folded
        match stmt:
            case ir.If(cond=ir.Const() as cond):
                return self.sequence(stmt.then if cond.value else stmt.orelse, constants)
            case ir.Let(target=ir.Reg(name=name), value=ir.Const() as value) if name in self.once | self.flags:
                constants[name] = value  # for the rest of this body
            case ir.Let(target=ir.Reg(name=name)):
                constants.pop(name, None)
        errors = len(self.diagnostics)
        if not isinstance(stmt, ir.If | ir.Frame):  # a loop reads its body again after it
            self.forget(stmt, constants)
        result = map_bodies(stmt, lambda inner: self.body(inner, constants))
        self.forget(stmt, constants)
        if isinstance(stmt, ir.For) and len(self.diagnostics) > errors and _is_empty(stmt):
            del self.diagnostics[errors:]  # its body never runs
            return (replace(stmt, body=()),)
        return (result,)

    def repetition(self, loop: ir.While, constants: Constants) -> ir.Body:
        """Return a loop with a run-time condition; only the setup of one that ends at its first test."""
        self.forget(loop, constants)
        inside = dict(constants)
        setup = self.sequence(loop.setup, inside)
        tested = self.fold(replace(loop, setup=(), body=()), inside)
        if isinstance(tested.cond, ir.Const) and not tested.cond.value:
            return setup
        return (replace(tested, setup=setup, body=self.body(loop.body, constants)),)

    def forget(self, stmt: ir.Stmt, constants: Constants) -> None:
        """Remove the values of conditions that are assigned in the bodies of a statement."""
        if bodies(stmt) and not self.flags.isdisjoint(constants):
            inner = (i for body in bodies(stmt) for i in statements(body))
            for target in (i.target for i in inner if isinstance(i, ir.Let) and isinstance(i.target, ir.Reg)):
                if target.name in self.flags:
                    constants.pop(target.name, None)

    def iterations(self, loop: ir.For, constants: Constants) -> ir.Body:
        """The body once for each value of the loop variable."""
        start, stop = self.fold(loop.start, constants), self.fold(loop.stop, constants)
        assert isinstance(start, ir.Const) and isinstance(stop, ir.Const)
        assert isinstance(loop.var.type, Scalar) and isinstance(loop.step, int)
        self.unrolled_statements += budget.trips(int(start.value), int(stop.value), loop.step) * max(1, len(loop.body))
        if self.unrolled_statements > MOST_STATEMENTS:
            budget.too_long(loop.span, self.unrolled_statements, "by this unrolled loop")
        numbers = range(int(start.value), int(stop.value), loop.step)
        values = [ir.Const(i, loop.var.type, loop.var.span) for i in numbers]
        return tuple(s for v in values for s in self.body(loop.body, {**constants, loop.var.name: v}))

    def fold(self, node: Any, constants: Constants) -> Any:
        """The node with known registers replaced and constant operations computed."""

        def change(inner_node: Any) -> Any:
            match inner_node:
                case ir.Reg() if inner_node.name in constants:
                    return replace(constants[inner_node.name], span=inner_node.span)
                case ir.Op():
                    return _folded(inner_node)
                case ir.Item(index=ir.Const() as index):
                    return self.register(inner_node, index)
                case ir.Component(index=ir.Const() as index):
                    assert isinstance(inner_node.value.type, Vector)
                    lanes = inner_node.value.type.lanes
                    if not 0 <= index.value < lanes:
                        last = f"its last index is {lanes - 1}"
                        self.report(
                            inner_node, f"index {index.value}, but {inner_node.value.type} has {lanes} parts", last
                        )
                    elif isinstance(inner_node.value, ir.Pack):
                        return inner_node.value.args[int(index.value)]
            return inner_node

        def visit(inner_node: Any) -> Any:
            if not (isinstance(inner_node, ir.Op) and inner_node.name in ("select", "both", "either")):
                return change(rebuild(inner_node, visit))
            first, *rest = inner_node.args
            first = visit(first)
            if not isinstance(first, ir.Const):
                return change(replace(inner_node, args=(first, *map(visit, rest))))
            # Only the arm of a decided condition is read.
            if inner_node.name == "select":
                return visit(rest[0] if first.value else rest[1])
            return visit(rest[0]) if bool(first.value) == (inner_node.name == "both") else first

        return rebuild_operands(node, visit) if isinstance(node, ir.Stmt) else visit(node)

    def register(self, item: ir.Item, index: ir.Const) -> ir.Expr:
        length = self.arrays[item.array].length
        assert length is not None
        if not 0 <= index.value < length:
            self.report(
                item, f"index {index.value}, but {item.array} has {length} registers", f"its last index is {length - 1}"
            )
        return ir.Reg(element(item.array, int(index.value)), item.type, item.span)

    def report(self, node: Any, message: str, advice: str) -> None:
        diagnostic = Diagnostic("compile", message, node.span, (advice,))
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)


def _folded(op: ir.Op) -> ir.Expr:
    """Return the constant value of an operation, where its operands decide it."""
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
