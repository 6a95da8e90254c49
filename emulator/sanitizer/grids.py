"""Grid barriers: the diagnostic of a barrier that only some blocks reach."""

from collections.abc import Sequence

from ..errors import Diagnostic
from ..span import Span
from .faults import Faults
from .places import Dim3, coordinates


def check_arrivals(
    faults: Faults, span: Span, site: int, passed: int, arrived: Sequence[int], missing: Sequence[int], grid: Dim3
) -> None:
    """Add the fault of a grid barrier that only some blocks reach.

    arrived, missing: linear indices of blocks, ascending. passed: number of grid barriers before.
    """
    if not missing:
        return
    all_of = len(arrived) + len(missing)
    message = f"grid barrier divergence: {len(arrived)} of {all_of} blocks reach this grid barrier"
    notes = (
        f"block {coordinates(arrived[0], grid)} waits here",
        f"missing: block {coordinates(missing[0], grid)}",
        "every block of the grid must reach it equally often: move it out of branches and loops that depend on the block, and let no "
        "block return before it",
    )
    order = (arrived[0], passed, 0)
    faults.add("grid barrier", site, order, len(missing), lambda: Diagnostic("barrier", message, span, notes))
