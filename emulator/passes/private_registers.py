"""Registers that an engine may assign in all lanes of a warp, active or not."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import nodes as ir
from ..ir.walk import bodies, once_a_node, registers, statements


def private_registers(kernel: ir.Function) -> frozenset[str]:
    """Registers whose every read follows an assignment, in the same or an enclosing body, by at least the reading lanes.

    Under a mask such a register needs no merge with its old value.
    """
    shared: set[str] = set()
    _visit(kernel.body, (), shared)
    every = {s.target.name for s in statements(kernel.body) if isinstance(s, ir.Let) and isinstance(s.target, ir.Reg)}
    return frozenset(every - shared)


@once_a_node
def _assigned(stmt: ir.Stmt) -> frozenset[str]:
    """Registers a statement may assign, at any depth."""
    own = {stmt.target.name} if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg) else set()
    if isinstance(stmt, ir.For):
        own = {stmt.var.name}
    return frozenset(own.union(*(_assigned(s) for b in bodies(stmt) for s in b)))


Path = tuple[tuple[tuple[ir.Stmt, ...], ir.Stmt | None], ...]
"""From the innermost body outwards: the statements before a place, and the loop that is entered there, if any."""


def _visit(body: ir.Body, path: Path, shared: set[str]) -> None:
    for at, stmt in enumerate(body):
        here: Path = ((body[:at], None), *path)
        if isinstance(stmt, ir.While):
            inside: Path = (((), stmt), *here)
            _visit(stmt.setup, inside, shared)
            _reads((r.name for r in registers(stmt)), ((stmt.setup, stmt), *here), shared)
            _visit(stmt.body, ((stmt.setup, stmt), *here), shared)
            continue
        _reads((r.name for r in registers(stmt)), here, shared)
        for inner in bodies(stmt):
            _visit(inner, (((), stmt if isinstance(stmt, ir.For) else None), *here), shared)


def _reads(names: Iterable[str], path: Path, shared: set[str]) -> None:
    for name in set(names):
        if not _dominated(name, path):
            shared.add(name)


def _dominated(name: str, path: Path) -> bool:
    for before, loop in path:
        for stmt in reversed(before):
            if name in _assigned(stmt):
                return isinstance(stmt, ir.Let)
        if isinstance(loop, ir.For) and loop.var.name == name:
            return True
        if loop is not None and name in _assigned(loop):
            return False  # the assignment of an earlier iteration may be read
    return True  # a parameter
