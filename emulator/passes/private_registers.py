"""Registers assignable in all lanes of a warp, active or not."""

from ..ir import nodes as ir
from ..ir.walk import bodies, once_a_node, registers, statements


def private_registers(kernel: ir.Function) -> frozenset[str]:
    """Registers whose every read follows an assignment, in the same or an enclosing body, by at least the reading lanes.

    Under a mask such a register needs no merge with its old value.
    """
    shared: set[str] = set()
    _visit(kernel.body, {}, shared)
    assigned = {
        s.target.name for s in statements(kernel.body) if isinstance(s, ir.Let) and isinstance(s.target, ir.Reg)
    }
    return frozenset(assigned - shared)


@once_a_node
def _assigned(stmt: ir.Stmt) -> frozenset[str]:
    """Registers a statement may assign, at any depth."""
    own = {stmt.target.name} if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg) else set()
    if isinstance(stmt, ir.For):
        own = {stmt.var.name}
    return frozenset(own.union(*(_assigned(s) for b in bodies(stmt) for s in b)))


Dominated = dict[str, bool]
"""By register assigned before a place: whether the last assignment is in the same or an enclosing body."""


def _visit(body: ir.Body, before: Dominated, shared: set[str]) -> None:
    """Collect the reads that may see an older value. before: updated to the state after the body."""
    for stmt in body:
        if isinstance(stmt, ir.While):
            inside = _entered(stmt, before)
            _visit(stmt.setup, inside, shared)
            _reads(stmt, inside, shared)
            _visit(stmt.body, inside, shared)
        else:
            _reads(stmt, before, shared)
            for inner in bodies(stmt):
                _visit(inner, _entered(stmt, before), shared)
        before.update(dict.fromkeys(_assigned(stmt), isinstance(stmt, ir.Let)))


def _entered(stmt: ir.Stmt, before: Dominated) -> Dominated:
    """Return the state at the start of a body of a statement. A loop may read the assignment of an earlier iteration."""
    inside = before.copy()
    if isinstance(stmt, ir.While | ir.For):
        inside.update(dict.fromkeys(_assigned(stmt), False))
    if isinstance(stmt, ir.For):
        inside[stmt.var.name] = True
    return inside


def _reads(stmt: ir.Stmt, before: Dominated, shared: set[str]) -> None:
    """Add the registers whose reads are not dominated. A register without an assignment is a parameter."""
    shared.update(r.name for r in registers(stmt) if not before.get(r.name, True))
