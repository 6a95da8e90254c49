"""Whether warps of a kernel take work until none is left, so that which of them does how much is decided as they run."""

from __future__ import annotations

from ..ir import nodes as ir
from ..ir.walk import bodies, once_a_node, registers, statements


@once_a_node
def takes_tickets(kernel: ir.Function) -> bool:
    """Whether lanes go on with a loop for as long as a counter in global memory, to which they add, says. What they got may come to
    them from another lane, or through shared memory. Calls are inlined."""
    shared = {one.array for one in statements(kernel.body) if isinstance(one, ir.Alloc) and one.type.space == "shared"}
    drawn, before = set[str](), -1
    while len(drawn) != before:
        before = len(drawn)
        _follow(kernel.body, shared, drawn, inside=False)
    loops = (one for one in statements(kernel.body) if isinstance(one, ir.While | ir.For))
    return any(_left_by(loop, drawn) for loop in loops)


def _follow(body: ir.Body, shared: set[str], drawn: set[str], inside: bool) -> None:
    """Add the registers and arrays that have what was drawn. inside: an arm that what was drawn decides."""
    for stmt in body:
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value) if inside or _drawn(value, shared, drawn):
                drawn.add(name)
            case ir.Store(array=array, value=value) if array in shared and _reads(value, drawn):
                drawn.add(array)
        deciding = isinstance(stmt, ir.If) and _reads(stmt.cond, drawn)
        for inner in bodies(stmt):
            _follow(inner, shared, drawn, inside or deciding)


def _drawn(value: ir.Expr | ir.Effect, shared: set[str], drawn: set[str]) -> bool:
    match value:
        case ir.Atomic(op="add" | "sub" | "inc" | "dec", array=array):
            return array not in shared
        case ir.Load(array=array):
            return array in drawn
    return _reads(value, drawn)


def _reads(node: ir.Expr | ir.Effect, drawn: set[str]) -> bool:
    return (isinstance(node, ir.Reg) and node.name in drawn) or any(one.name in drawn for one in registers(node))


def _left_by(loop: ir.While | ir.For, drawn: set[str]) -> bool:
    """Whether what was drawn decides whether lanes go on with a loop."""
    if isinstance(loop, ir.While) and _reads(loop.cond, drawn):
        return True
    guards = (one for one in statements(loop.body) if isinstance(one, ir.If) and _reads(one.cond, drawn))
    return any(
        isinstance(one, ir.Break | ir.Return) for guard in guards for arm in bodies(guard) for one in statements(arm)
    )
