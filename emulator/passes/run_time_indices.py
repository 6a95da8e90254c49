"""Local arrays with an index that only the launch or its data determine, so that no compiler keeps them in registers.

Constants and counters of loops with constant bounds are known to a compiler that unrolls the loops. A register is known at run
time only if a value assigned to it is, or if a condition known at run time only selects one of its assignments.
"""

from __future__ import annotations

from ..ir import nodes as ir
from ..ir.walk import bodies, expressions, once_a_node, registers, statements
from ..language.types import Array

Path = tuple[tuple[int, int], ...]
"""The conditional statements around an assignment, whose conditions are known at run time only: identity, and number of the arm."""


@once_a_node
def arrays_indexed_at_run_time(kernel: ir.Function) -> frozenset[str]:
    """Return the local arrays with such an index. Calls are inlined."""
    local = {one.array for one in statements(kernel.body) if isinstance(one, ir.Alloc) and one.type.space == "local"}
    if not local:
        return frozenset()
    unknown = {param.name for param in kernel.params if not isinstance(param.type, Array)}
    before = -1
    while len(unknown) != before:
        before = len(unknown)
        assignments: dict[str, list[Path]] = {}
        _follow(kernel.body, unknown, assignments, ())
        unknown |= {name for name, paths in assignments.items() if len({*paths}) > 1}
    accesses = (stmt.value if isinstance(stmt, ir.Let) else stmt for stmt in statements(kernel.body))
    return frozenset(
        access.array
        for access in accesses
        if isinstance(access, ir.Access) and access.array in local and _is_unknown(access.index, unknown)
    )


def _follow(body: ir.Body, unknown: set[str], assignments: dict[str, list[Path]], path: Path) -> None:
    """Add registers with unknown values to `unknown`, and the path of each assignment to `assignments`."""
    for stmt in body:
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value):
                assignments.setdefault(name, []).append(path)
                if isinstance(value, ir.Effect) or _is_unknown(value, unknown):
                    unknown.add(name)
            case ir.For(var=ir.Reg(name=name)) if any(_is_unknown(bound, unknown) for bound in _bounds(stmt)):
                unknown.add(name)
        deciding = _decides(stmt, unknown)
        for arm, inner in enumerate(bodies(stmt)):
            _follow(inner, unknown, assignments, (*path, (id(stmt), arm)) if deciding else path)


def _decides(stmt: ir.Stmt, unknown: set[str]) -> bool:
    """Return whether an unknown value selects an arm, or the number of iterations.

    A while loop is no evidence: nvcc unrolls one whose counter has a known limit, though its data may end it before.
    """
    if isinstance(stmt, ir.If):
        return _is_unknown(stmt.cond, unknown)
    return isinstance(stmt, ir.For) and any(_is_unknown(bound, unknown) for bound in _bounds(stmt))


def _bounds(loop: ir.For) -> list[ir.Expr]:
    return [loop.start, loop.stop, *([] if isinstance(loop.step, int) else [loop.step])]


def _is_unknown(expr: ir.Expr, unknown: set[str]) -> bool:
    """Return whether an expression has a value that is known at run time only."""
    if isinstance(expr, ir.Special | ir.Extent) or (isinstance(expr, ir.Reg) and expr.name in unknown):
        return True
    inner = [*expressions(expr)]
    return any(isinstance(one, ir.Special) for one in inner) or any(one.name in unknown for one in registers(expr))
