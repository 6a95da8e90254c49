"""The emulators' clock: a count of the thread's own readings. It advances, and every engine reads the same values."""

from dataclasses import replace

from ..ir import nodes as ir
from ..ir.names import temporary
from ..ir.walk import effect, map_bodies, statements
from ..language.types import I64, SCALARS

CLOCK = temporary("clock", 0)


def count_clock_readings(program: ir.Program) -> ir.Program:
    """Return the program with a register in place of the clock."""
    kernel = program.kernel
    if not any(isinstance(effect(stmt), ir.Clock) for stmt in statements(kernel.body)):
        return program
    start = ir.Let(ir.Reg(CLOCK, I64, kernel.span), ir.Const(0, I64, kernel.span), kernel.span)
    return ir.Program(replace(kernel, body=(start, *_body(kernel.body))), program.functions)


def _body(body: ir.Body) -> ir.Body:
    return tuple(new for stmt in body for new in _statement(stmt))


def _statement(stmt: ir.Stmt) -> ir.Body:
    match stmt:
        case ir.Let(value=ir.Clock() as reading):
            clock, unit = ir.Reg(CLOCK, I64, stmt.span), ir.Const(1, I64, stmt.span)
            on = ir.Let(clock, ir.Op("add", (clock, unit), I64, stmt.span), stmt.span)
            if stmt.target is None:
                return (on,)
            before = ir.Op("sub", (clock, unit), I64, stmt.span)
            cast = f"cast_{reading.type}"
            value = before if reading.type == SCALARS["i64"] else ir.Op(cast, (before,), reading.type, stmt.span)
            return (on, replace(stmt, value=value))
    return (map_bodies(stmt, _body),)
