"""Work queues: kernels whose warps claim work from a counter, so that the share of each warp is decided at run time."""

from __future__ import annotations

from ..ir import nodes as ir
from ..ir.walk import bodies, once_a_node, registers, statements


@once_a_node
def uses_dynamic_work(kernel: ir.Function) -> bool:
    """Return whether a counter in global memory, to which lanes add, decides the end of a loop. A claimed value may
    reach a lane through
    another lane or through shared memory. Calls are inlined."""
    shared = {one.array for one in statements(kernel.body) if isinstance(one, ir.Alloc) and one.type.space == "shared"}
    claimed, before = set[str](), -1
    while len(claimed) != before:
        before = len(claimed)
        _follow(kernel.body, shared, claimed, inside=False)
    loops = (one for one in statements(kernel.body) if isinstance(one, ir.While | ir.For))
    return any(_left_by(loop, claimed) for loop in loops)


def _follow(body: ir.Body, shared: set[str], claimed: set[str], inside: bool) -> None:
    """Add the registers and arrays with claimed values. inside: an arm whose condition depends on a claimed value."""
    for stmt in body:
        match stmt:
            case ir.Let(target=ir.Reg(name=name), value=value) if inside or _is_claimed(value, shared, claimed):
                claimed.add(name)
            case ir.Store(array=array, value=value) if array in shared and _reads(value, claimed):
                claimed.add(array)
        deciding = isinstance(stmt, ir.If) and _reads(stmt.cond, claimed)
        for inner in bodies(stmt):
            _follow(inner, shared, claimed, inside or deciding)


def _is_claimed(value: ir.Expr | ir.Effect, shared: set[str], claimed: set[str]) -> bool:
    match value:
        case ir.Atomic(op="add" | "sub" | "inc" | "dec", array=array):
            return array not in shared
        case ir.Load(array=array):
            return array in claimed
    return _reads(value, claimed)


def _reads(node: ir.Expr | ir.Effect, claimed: set[str]) -> bool:
    return (isinstance(node, ir.Reg) and node.name in claimed) or any(one.name in claimed for one in registers(node))


def _left_by(loop: ir.While | ir.For, claimed: set[str]) -> bool:
    """Return whether a claimed value decides the end of a loop."""
    if isinstance(loop, ir.While) and _reads(loop.cond, claimed):
        return True
    guards = (one for one in statements(loop.body) if isinstance(one, ir.If) and _reads(one.cond, claimed))
    return any(
        isinstance(one, ir.Break | ir.Return) for guard in guards for arm in bodies(guard) for one in statements(arm)
    )
