"""Trials of remedies: a launch with the advised barriers inserted, and the races that remain.

A trial decides which of two remedies is right, and finds races that others hide: the detector does not compare a thread's second
write of an element with reads that race with its first one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import Diagnostic, Insertion, SimtbedError
from ..ir import nodes as ir
from ..ir.walk import map_bodies
from ..language.intrinsics import WARP_SIZE
from ..language.types import BOOL, U32
from ..span import Span
from .races.report import Tentative

Run = Callable[[ir.Program], Sequence[Diagnostic]]
"""Returns the faults of the launch with another program."""
MAX_TRIALS = 3
"""Runs of one launch. Each may find races that the barriers of the previous one uncovered."""


def settle(faults: Sequence[Diagnostic], program: ir.Program, run: Run) -> list[Diagnostic]:
    """Return the faults with the simplest remedies that a run confirms, and the races that they uncover."""
    settled = list(faults)
    for _ in range(MAX_TRIALS):
        if not any(isinstance(fault, Tentative) for fault in settled):
            break
        remedies = dict.fromkeys(insertion for fault in settled for insertion in _simplest(fault))
        try:
            remaining = run(with_statements(program, remedies))
        except SimtbedError:  # such as a program that is too large: the remedies remain unconfirmed
            break
        races = {_places(fault) for fault in remaining}
        if any(fault.kind in ("barrier", "convergence") for fault in remaining):
            settled = [_settled(fault, True) for fault in settled]
            break
        reported = {_places(fault) for fault in settled}
        uncovered = [fault for fault in remaining if fault.kind == "race" and _places(fault) not in reported]
        settled = [*(_settled(fault, _places(fault) in races) for fault in settled), *uncovered]
    return [_settled(fault, True) for fault in settled]


def _simplest(fault: Diagnostic) -> tuple[Insertion, ...]:
    return fault.simpler.remedy if isinstance(fault, Tentative) and fault.simpler is not None else fault.remedy


def _settled(fault: Diagnostic, remains: bool) -> Diagnostic:
    if not isinstance(fault, Tentative):
        return fault
    return fault.confirmed if remains or fault.simpler is None else fault.simpler


def _places(fault: Diagnostic) -> frozenset[Span]:
    return frozenset(filter(None, (fault.span, fault.related)))


# ------------------------------------------------------------------ insertion into a program
def with_statements(program: ir.Program, insertions: Iterable[Insertion]) -> ir.Program:
    """Return a program with statements inserted; those of one place keep their order."""
    functions: list[ir.Function] = [*program.functions, program.kernel]
    for insertion in reversed(list(insertions)):
        functions = [replace(function, body=_inserted(function.body, insertion)) for function in functions]
    return ir.Program(functions[-1], tuple(functions[:-1]))


def _inserted(body: ir.Body, insertion: Insertion) -> ir.Body:
    """Insert a statement into the outermost body with a statement in its line."""
    place = insertion.file, insertion.line
    at = [number for number, stmt in enumerate(body) if (stmt.span.file, stmt.span.line) == place]
    if not at:
        return tuple(map_bodies(stmt, lambda inner: _inserted(inner, insertion)) for stmt in body)
    if insertion.place == "before":
        # An expression of a statement of several lines may be in a later line than the statement.
        first = next(number for number, stmt in enumerate(body) if stmt.span.line >= insertion.line)
        return (*body[:first], _statement(insertion, body[first].span), *body[first:])
    return tuple(_in_loop(stmt, insertion) if number in at else stmt for number, stmt in enumerate(body))


def _in_loop(stmt: ir.Stmt, insertion: Insertion) -> ir.Stmt:
    if not isinstance(stmt, ir.For | ir.While):
        return stmt
    added = _statement(insertion, stmt.span)
    body = (added, *stmt.body) if insertion.place == "start of loop" else (*stmt.body, added)
    return replace(stmt, body=body)


def _statement(insertion: Insertion, span: Span) -> ir.Stmt:
    if insertion.statement == "st.syncwarp()":
        return ir.WarpBarrier(ir.Const((1 << WARP_SIZE) - 1, U32, span), span)
    if insertion.statement == "st.async_wait(0)":
        return ir.AsyncWait(0, span)
    mode: Any = "grid" if insertion.statement == "st.grid_sync()" else "sync"
    return ir.Let(None, ir.Barrier(mode, ir.Const(True, BOOL, span), BOOL, span), span)
