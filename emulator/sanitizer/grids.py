"""Barriers of the grid and of clusters: the diagnostic of a barrier that only some blocks reach."""

from collections.abc import Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from .faults import Faults
from .places import Dim3, coordinates


def check_arrivals(
    faults: Faults, stmt: ir.Let, passed: int, arrived: Sequence[int], missing: Sequence[int], grid: Dim3
) -> None:
    """Add the fault of a barrier of the grid or a cluster that only some blocks reach.

    arrived, missing: linear indices of blocks, ascending. passed: number of such barriers before.
    """
    assert isinstance(stmt.value, ir.Barrier)
    if not missing:
        return
    all_of = len(arrived) + len(missing)
    group = "grid" if stmt.value.mode == "grid" else "cluster"
    message = f"{group} barrier divergence: {len(arrived)} of {all_of} blocks reach this {group} barrier"
    advice = {
        "grid": "must reach it equally often: move it out of branches and loops that depend on the block, and let no "
        "block return before it",
        "cluster": "reaches it equally often or has returned: move it out of branches and loops that depend on the block",
    }
    notes = (
        f"block {coordinates(arrived[0], grid)} waits here",
        f"missing: block {coordinates(missing[0], grid)}",
        f"every block of the {group} {advice[group]}",
    )
    order = (arrived[0], passed, 0)
    span = stmt.value.span
    faults.add(f"{group} barrier", stmt.site, order, len(missing), lambda: Diagnostic("barrier", message, span, notes))
