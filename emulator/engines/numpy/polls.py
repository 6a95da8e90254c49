"""The element that a waiting loop polls."""

import numpy as np
import numpy.typing as npt

from ...ir import nodes as ir
from ...ir.effects import is_ordered, performed
from .expressions import scalar
from .warp_group import WarpGroup


def polled_element(group: WarpGroup, stmts: ir.Body, active: npt.NDArray[np.bool_]) -> tuple[str, int] | None:
    """Return the array and the element of the first atomic or volatile read of global memory by lanes of a warp. active: bool[32]."""
    for stmt in stmts:
        if isinstance(stmt, ir.If):
            chosen = active & group.full(scalar(stmt.cond)(group)).ravel()
            inner = polled_element(group, stmt.then, chosen) or polled_element(group, stmt.orelse, active & ~chosen)
            if inner is not None:
                return inner
            continue
        node = performed(stmt)
        if not isinstance(node, ir.Access) or isinstance(node, ir.Store) or node.array not in group.request.arrays:
            continue
        if is_ordered(node) and active.any():
            return node.array, int(group.full(scalar(node.index)(group)).ravel()[int(np.argmax(active))])
    return None
