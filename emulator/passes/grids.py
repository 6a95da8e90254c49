"""Grid barriers in a program."""

from ..ir import nodes as ir
from ..ir.walk import bodies, effect, once_a_node, statements


@once_a_node
def holds_grid_barrier(stmt: ir.Stmt) -> bool:
    """Whether the statement holds a grid barrier, at any depth."""
    barrier = effect(stmt)
    if isinstance(barrier, ir.Barrier):
        return barrier.mode == "grid"
    return any(holds_grid_barrier(s) for b in bodies(stmt) for s in b)


def is_cooperative(kernel: ir.Function) -> bool:
    """Whether blocks of the kernel wait for each other."""
    return any(holds_grid_barrier(stmt) for stmt in kernel.body)


def grid_barriers(kernel: ir.Function) -> list[ir.Let]:
    """The statements that are grid barriers, in the order of the text."""
    return [s for s in statements(kernel.body) if isinstance(s, ir.Let) and holds_grid_barrier(s)]
