"""Code of passes that replace an effect by others: statements without instructions of their own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from ..ir import nodes as ir
from ..ir.names import temporary
from ..ir.nodes import UNCOUNTED
from ..ir.ops import TABLE
from ..ir.walk import map_bodies, statements
from ..language.forms import BulkReduction
from ..language.types import Scalar
from ..span import Span

Operand = ir.Expr | int | float


S = TypeVar("S", bound=ir.Stmt)


def replaced(program: ir.Program, kind: type[S], new: Callable[[S, Iterator[int]], Iterable[ir.Stmt]]) -> ir.Program:
    """Return the program with other statements in place of those of a kind in its kernel. new: returns them, with the numbers of their
    registers."""
    kernel = program.kernel
    if not any(isinstance(stmt, kind) for stmt in statements(kernel.body)):
        return program
    numbers = count()

    def changed(body: ir.Body) -> ir.Body:
        return tuple(
            own
            for stmt in body
            for own in (new(stmt, numbers) if isinstance(stmt, kind) else (map_bodies(stmt, changed),))
        )

    return ir.Program(replace(kernel, body=changed(kernel.body)), program.functions)


def combined(op: BulkReduction, array: str, index: ir.Expr, value: ir.Expr) -> ir.Stmt:
    """Return the update of one element by a bulk reduction: relaxed, for the device, without an instruction of its own."""
    assert isinstance(value.type, Scalar)
    return ir.Let(None, ir.Atomic(op, array, index, value, value.type, value.span), value.span, UNCOUNTED)


class Code:
    """Statements in order. stem, numbers: of the registers' names."""

    def __init__(self, span: Span, stem: str, numbers: Iterator[int]) -> None:
        self.span, self.stem, self.numbers, self.body = span, stem, numbers, list[ir.Stmt]()

    def let(self, value: ir.Expr | ir.Effect, site: int = UNCOUNTED) -> ir.Reg:
        register = ir.Reg(temporary(self.stem, next(self.numbers)), value.type, self.span)  # type: ignore[arg-type]
        self.body.append(ir.Let(register, value, self.span, site))
        return register

    def op(self, name: str, *operands: Operand) -> ir.Expr:
        """Return the register of an operation; numbers have the type of the other operands."""
        row = TABLE[name]
        typed = [o for o in operands[1 if name == "select" else 0 :] if not isinstance(o, int | float)]
        type: Any = typed[-1].type
        args = tuple(ir.Const(o, type, self.span) if isinstance(o, int | float) else o for o in operands)
        return self.let(ir.Op(name, args, row.result_type(type), self.span))

    def cast(self, value: ir.Expr, type: Scalar) -> ir.Expr:
        return value if value.type is type else self.op(f"cast_{type}", value)
