"""Replay of recorded decisions: the statements executed by a warp, in order, with the active lanes of each.

Decisions of a branch or loop are recorded in execution order, with the arriving lanes and their outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..ir.walk import statements
from ..native import Fixed, fixed
from ..passes.slow_paths import slow_path_ops
from ..profiler.decisions import Decisions, SiteDecisions
from .decision_bytecode import (
    FAILED_SITE,
    OUT_OF_SPACE,
    REGISTERS,
    SUMMARIZED,
    TRAILING_RECORDS,
    DecisionProgram,
    Recorded,
    ReplayBuffers,
    hash_lanes,
    replay_steps,
)

_INITIAL_CAPACITY = 1 << 12
"""Events of a warp, before buffers grow."""

Int32Array = npt.NDArray[np.int32]
WarpName = tuple[int, int, int]
"""Launch, block, warp."""


class ReplayError(Exception):
    """The recorded decisions of a warp are incomplete."""


@dataclass(frozen=True)
class WarpTrace:
    """Events of a warp in order. events: int32[n], indices into `names`. lanes: uint32[n], masks. names: int32[m],
    event names; the name of a statement's event is its site."""

    events: Int32Array
    lanes: npt.NDArray[np.uint32]
    names: Int32Array

    @property
    def sites(self) -> Int32Array:
        result: Int32Array = self.names[self.events]
        return result

    def steps_of_lane(self, lane: int) -> npt.NDArray[np.int64]:
        """Return the positions of a lane's events."""
        return np.flatnonzero(self.lanes >> np.uint32(lane) & np.uint32(1))

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return, by event, its executions by the warp and by its lanes."""
        lanes = np.bincount(self.events, np.bitwise_count(self.lanes), len(self.names))
        return np.bincount(self.events, minlength=len(self.names)), lanes.astype(np.int64)

    def lane_groups(self) -> list[int]:
        """Return masks of the lanes with identical events at identical positions."""
        return list(self._lanes_by_hash(np.arange(len(self.events), dtype=np.int32)).values())

    def lane_groups_by_hash(self) -> dict[int, int]:
        """Return masks of the lanes with identical event sequences, by their 64-bit hash."""
        return self._lanes_by_hash(self.events)

    def _lanes_by_hash(self, events: Int32Array) -> dict[int, int]:
        hashes, groups = np.empty(32, np.int64), dict[int, int]()
        hash_lanes(events, self.lanes, len(events), hashes)
        for lane, lane_hash in enumerate(hashes.tolist()):
            groups[lane_hash] = groups.get(lane_hash, 0) | 1 << lane
        return groups


class RecordedDecisions:
    """Decisions of all warps.

    runs: int32[n, 3], site, pattern and executions, grouped by warp, then site. runs_of_warp: [first, past) run by
    warp. masks, values: uint32[m], int32[m, 32], arriving lanes of each pattern and their outcomes. sites: with
    patterns.
    """

    def __init__(self, decisions: Decisions) -> None:
        self.sites = decisions.sites.keys()
        all_decisions = [SiteDecisions(), *decisions.sites.values()]
        self.masks = np.concatenate([one.patterns["mask"] for one in all_decisions])
        self.values = np.concatenate([one.patterns["value"] for one in all_decisions])
        runs, sizes = np.concatenate([one.runs for one in all_decisions]), [len(one.runs) for one in all_decisions]
        sites = np.repeat([-1, *decisions.sites], sizes)
        offsets = np.repeat(np.cumsum([0, *(len(one.patterns) for one in all_decisions)])[:-1], sizes)
        pattern = np.where(runs["pattern"] < 0, -1, runs["pattern"] + offsets)
        order = np.lexsort([sites, runs["warp"], runs["block"], runs["launch"]])
        executions = np.minimum(runs["count"], np.iinfo(np.int32).max)
        self.runs = np.stack([sites, pattern, executions], axis=1)[order].astype(np.int32)
        warps = np.stack([runs[name] for name in ("launch", "block", "warp")], axis=1)[order]
        first_of_warp = np.ones(len(warps), np.bool_)
        first_of_warp[1:] = (warps[1:] != warps[:-1]).any(axis=1)
        first = np.flatnonzero(first_of_warp)
        spans = zip(first.tolist(), [*first[1:].tolist(), len(warps)], strict=False)
        self.runs_of_warp = {
            (launch, block, warp): span
            for (launch, block, warp), span in zip(warps[first].tolist(), spans, strict=False)
        }

    def decision_key(self, warp: WarpName) -> bytes:
        """Return the runs of a warp as bytes; equal for warps with equal decisions."""
        first, past = self.runs_of_warp.get(warp, (0, 0))
        return self.runs[first:past].tobytes()


class DecisionReplay:
    """Replays warps of a kernel. names: of the events, by index."""

    def __init__(self, body: ir.Body, recorded: RecordedDecisions, events: Iterable[int]) -> None:
        """events: names to record in traces."""
        with_slow_paths = frozenset(stmt.site for stmt in statements(body) if slow_path_ops(stmt)) & recorded.sites
        self.script, self.recorded = DecisionProgram(body, sorted(events), with_slow_paths), recorded
        self.names = self.script.names
        self._program = Fixed(self.script.steps), len(self.script), self.script.sites
        tables: Any = Fixed(recorded.masks), Fixed(recorded.values.reshape(-1)), Fixed(recorded.runs.reshape(-1))
        self._recorded = Recorded(*tables)
        sites, self._registers = self.script.sites, np.zeros(len(REGISTERS), np.int64)
        arrays = np.zeros(sites, np.int64), np.zeros(sites, np.int32), np.zeros(self.script.depth, np.int64)
        self._state = fixed(*arrays, self._registers)
        self._allocate(_INITIAL_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        self._steps, self._lanes = np.zeros(capacity, np.int32), np.zeros(capacity, np.uint32)

    def trace(self, warp: WarpName, lanes: int) -> WarpTrace:
        """Return the trace of a warp with its first `lanes` lanes active. Raises ReplayError if its record is incomplete."""
        first, past = self.recorded.runs_of_warp.get(warp, (0, 0))
        while True:
            buffers: Any = *self._state, self._steps, self._lanes, len(self._steps)
            status = replay_steps(
                *self._program, self._recorded, first, past, (1 << lanes) - 1, ReplayBuffers(*buffers)
            )
            if status != OUT_OF_SPACE:
                break
            self._allocate(2 * len(self._steps))
        if status == TRAILING_RECORDS:
            raise ReplayError("decisions remain after the last statement")
        if status == SUMMARIZED:
            raise ReplayError("only a summary of the decisions is recorded")
        if status < 0:
            raise ReplayError(f"site {self._registers[FAILED_SITE]} was not recorded for these lanes")
        return WarpTrace(self._steps[:status].copy(), self._lanes[:status].copy(), self.names)
