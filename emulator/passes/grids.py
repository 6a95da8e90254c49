"""Barriers of the grid and of clusters in a program, and accesses to the shared memory of other blocks."""

from ..ir import nodes as ir
from ..ir.effects import CLUSTER_BARRIERS, performed
from ..ir.walk import bodies, effect, once_a_node, statements


def waits_for_others(barrier: ir.Barrier) -> bool:
    """Return whether blocks wait for other blocks at a barrier: for the grid or their cluster."""
    return barrier.mode == "grid" or barrier.mode in CLUSTER_BARRIERS


@once_a_node
def holds_blocks_barrier(stmt: ir.Stmt) -> bool:
    """Whether the statement holds a barrier of the grid or of a cluster, at any depth."""
    barrier = effect(stmt)
    if isinstance(barrier, ir.Barrier):
        return waits_for_others(barrier)
    return any(holds_blocks_barrier(s) for b in bodies(stmt) for s in b)


@once_a_node
def is_cooperative(kernel: ir.Function) -> bool:
    """Whether blocks of the kernel wait for the grid."""
    return any(isinstance(barrier := effect(s), ir.Barrier) and barrier.mode == "grid" for s in statements(kernel.body))


@once_a_node
def has_clusters(kernel: ir.Function) -> bool:
    """Whether blocks of the kernel wait for their cluster, or access the memory of its other blocks."""
    nodes = map(performed, statements(kernel.body))
    return any(getattr(n, "block", None) is not None or getattr(n, "mode", None) in CLUSTER_BARRIERS for n in nodes)


def waits_for_blocks(kernel: ir.Function) -> bool:
    """Whether a block of the kernel does not run alone."""
    return is_cooperative(kernel) or has_clusters(kernel)


def blocks_barriers(kernel: ir.Function) -> list[ir.Let]:
    """The statements that are barriers of the grid or of a cluster, in the order of the text."""
    return [s for s in statements(kernel.body) if isinstance(s, ir.Let) and holds_blocks_barrier(s)]
