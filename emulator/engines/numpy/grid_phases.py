"""Control flow of blocks that wait for others: phases between barriers of the grid or of clusters, and these barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ...ir import nodes as ir
from ...sanitizer import grids
from ...sanitizer.races import happens_before
from ...sanitizer.races.cluster_blocks import ClusterBlocks
from ...sanitizer.tracking import Plan
from .control import Barrier, BlockBarrier, Body
from .warp_group import NO_LANES, Mask, WarpGroup


@dataclass
class GridPhase:
    """Steps without a barrier of blocks: each block runs to the end before the next one starts."""

    body: Body
    plan: Plan

    def run(self, groups: Sequence[WarpGroup]) -> None:
        for team in teams(groups):
            first = team[0]
            if all(group.active is NO_LANES for group in team):
                continue
            race_state = first.memory.race_state
            block = int(first.blocks[0])
            if first.memory.resident is not None:
                first.memory.resident.select(block)
            elif race_state is not None:
                self.plan.select_block(race_state.arrays, block, int(np.prod(first.request.grid)))
                race_state(happens_before.resume_block, block, int(first.phase[0]))
            self.body.run(team)


@dataclass
class GridBarrier(Barrier):
    """A barrier of the grid or of a cluster. block: the barrier of each block. passed: earlier barriers.

    A grid whose blocks do not all arrive is a fault. So is a cluster, whose blocks may have returned before.
    """

    block: BlockBarrier
    stmt: ir.Let
    passed: int = 0
    of_blocks = True

    @property
    def site(self) -> int:
        return self.block.site

    def synchronise(self, groups: Sequence[WarpGroup]) -> None:
        """Execute the barrier: every block has arrived, or never will."""
        arrived, alive = (
            np.concatenate([_any_lane(team, masks) for team in teams(groups)])
            for masks in (lambda group: group.active, lambda group: group.alive)
        )
        if not arrived.any():  # as after `continue`
            return
        for team in teams(groups):
            if any(group.active is not NO_LANES for group in team):
                self.block.synchronise(team)
        first, of_grid = groups[0], self.block.node.mode == "grid"
        blocks = np.concatenate([team[0].blocks for team in teams(groups)])
        size = len(blocks) if of_grid else int(np.prod(first.request.cluster))
        together = (one.reshape(-1, size) for one in (blocks, arrived, alive | of_grid))
        for members, arrives, may_miss in zip(*together, strict=True):
            present, missing = (sorted(members[which].tolist()) for which in (arrives, ~arrives & may_miss))
            if isinstance(first.memory.resident, ClusterBlocks):
                first.memory.resident.pass_barrier(self.block.node.mode, present)
            if present:
                grids.check_arrivals(first.faults, self.stmt, self.passed, present, missing, first.request.grid)
        self.passed += 1
        if first.memory.race_state is not None and of_grid:
            first.memory.race_state(happens_before.grid_barrier)


def _any_lane(team: Sequence[WarpGroup], mask: Callable[[WarpGroup], Mask]) -> Mask:
    """Return whether a mask has a lane in each block of a team, bool[blocks]."""
    lanes_of: Mask = np.logical_or.reduce(
        [np.broadcast_to(mask(group), group.shape).any(axis=(1, 2)) for group in team]
    )
    return lanes_of


def teams(groups: Sequence[WarpGroup]) -> list[list[WarpGroup]]:
    """Return the groups by blocks."""
    return [list(team) for _, team in groupby(groups, key=lambda group: id(group.blocks))]
