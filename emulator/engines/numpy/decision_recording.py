"""Recording of warp decisions into `profiler.decisions`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ir import nodes as ir
from ...profiler.decisions import NOTE, Decisions, Rows
from .expressions import scalar
from .warp_group import WarpGroup

_AT_ONCE = 1 << 14
"""Records added at once."""


class DecisionRecorder:
    """The recorded decisions of a launch, merged in batches."""

    def __init__(self, warps: int) -> None:
        """warps: of the launch."""
        self.decisions = Decisions.for_warps(warps)
        self.waiting: list[Rows] = []
        self.length = 0

    def add(self, notes: Rows) -> None:
        self.waiting.append(notes)
        self.length += len(notes)
        if self.length >= _AT_ONCE:
            self._take_in()

    def finish(self) -> Decisions:
        """Merge the last batch; return the decisions."""
        if self.length:
            self._take_in()
        return self.decisions.finish()

    def _take_in(self) -> None:
        self.decisions.add(np.concatenate(self.waiting))
        self.waiting.clear()
        self.length = 0


def record_decision(stmt: ir.RecordDecision, recorder: DecisionRecorder) -> Callable[[WarpGroup], None]:
    """Return a closure that records the values of the active lanes, a row a warp."""
    value, site = scalar(stmt.value), stmt.about if stmt.whole else -1 - stmt.about

    def run(group: WarpGroup) -> None:
        active = group.full(group.active)
        rows = np.flatnonzero(active.any(axis=1))
        notes = np.zeros(len(rows), NOTE)
        block, warp = np.divmod(rows, group.shape[1])
        notes["count"], notes["site"] = 1, site
        notes["block"], notes["warp"] = group.blocks[block], group.warps[warp]
        notes["phase"] = group.phase[block]
        notes["mask"] = np.packbits(active[rows], axis=1, bitorder="little").view(np.uint32)[:, 0]
        notes["value"] = np.where(active[rows], group.full(value(group))[rows], 0)
        recorder.add(notes)

    return run
