"""Grid barriers: which blocks wait at one, and the diagnostic where not all of them do."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Diagnostic
from ..span import Span
from .faults import Faults
from .places import Dim3, coordinates


def check_arrivals(
    faults: Faults, span: Span, site: int, passed: int, here: Sequence[int], others: Sequence[int], grid: Dim3
) -> None:
    """Add the fault of a grid barrier that only some blocks reach. here, others: linear indices of blocks, ascending.
    passed: the grid barriers before."""
    if not others:
        return
    all_of = len(here) + len(others)
    message = f"grid barrier divergence: {len(here)} of {all_of} blocks reach this grid barrier"
    notes = (
        f"block {coordinates(here[0], grid)} waits here",
        f"missing: block {coordinates(others[0], grid)}",
        "every block of the grid must reach it: move it out of the branch, and let no block return before it",
    )
    order = (here[0], passed, 0)
    faults.add("grid barrier", site, order, len(others), lambda: Diagnostic("barrier", message, span, notes))
