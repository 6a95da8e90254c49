"""Race state of blocks that run alternately: the synchronisation of the block that runs, and that of the blocks that wait."""

from typing import Any

import numpy as np

from ..tracking import Plan
from . import happens_before
from .shadow import (
    ALTERNATING,
    BARRIERS,
    BLOCK,
    CLUSTER,
    FOREIGN,
    FRESH,
    GRID,
    LENGTH,
    NOW,
    PHASE,
    PUBLISHED,
    TICK,
    WARP,
)

_FIELDS = (FOREIGN, PHASE, BLOCK, BARRIERS, WARP, PUBLISHED, GRID, CLUSTER)
_ARRAYS = ("warp_syncs", "full_warp_syncs", "clocks", "fences", "thread_events", "copy_groups")


class ResidentBlocks:
    """Selects the block that runs. count: blocks with shared memory at the same time, by default those of the launch."""

    def __init__(self, race: happens_before.BoundRaceState, plan: Plan, count: int) -> None:
        self.race, self.plan, self.count = race, plan, count
        self.waiting: dict[int, tuple[Any, list[Any]]] = {}
        self.running = -1
        race.arrays.state[ALTERNATING] = 1

    def select(self, block: int) -> None:
        """Continue with a block: the accesses of the others so far are not ordered before its own."""
        if block == self.running:
            return
        arrays, state = self.race.arrays, np.asarray(self.race.arrays.state)
        own = [getattr(arrays, name) for name in _ARRAYS]
        if self.running >= 0:
            self.waiting[self.running] = state[list(_FIELDS)], [array.copy() for array in own]
        self.running = block
        self.plan.select_block(arrays, self.place(block), self.count)
        if block not in self.waiting:
            self.race(happens_before.begin_block, block)
            return
        state[list(_FIELDS)], saved = self.waiting.pop(block)
        for array, values in zip(own, saved, strict=True):
            array[...] = values
        state[FRESH], state[NOW] = state[LENGTH], state[LENGTH] * TICK

    def place(self, block: int) -> int:
        """Return the number of the planes of a block."""
        return block
