"""The ways of the lanes of a warp through the source, told again from what the emulator recorded of its decisions.

A warp's executions of a branch or loop stand in the order in which it made them, each with the lanes that came there and
what they decided. So its statements follow, one after the other, with the lanes that execute them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..ir.walk import statements
from ..native import Fixed
from ..passes.slow_paths import slow_paths
from ..profiler.decisions import Decisions, SiteDecisions
from .decision_bytecode import MORE, ROOM, TOGETHER, DecisionProgram, hashes, tell

_ROOM = 1 << 12
"""Things that are told of a warp, at first."""

Words = npt.NDArray[np.int32]
WarpName = tuple[int, int, int]
"""Launch, block, warp."""


class ReplayError(Exception):
    """What was recorded of a warp is not whole."""


@dataclass(frozen=True)
class WarpTrace:
    """What a warp did. told: one thing after the other, by number, int32[n]. lanes: those that did it, a bit each, uint32[n].
    names: by number, of statements their sites, int32[m]."""

    told: Words
    lanes: npt.NDArray[np.uint32]
    names: Words

    @property
    def sites(self) -> Words:
        found: Words = self.names[self.told]
        return found

    def of(self, lane: int) -> npt.NDArray[np.int64]:
        """Which of them a lane did."""
        return np.flatnonzero(self.lanes >> np.uint32(lane) & np.uint32(1))

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """By number, how often a warp did each thing, and its lanes together."""
        lanes = np.bincount(self.told, np.bitwise_count(self.lanes), len(self.names))
        return np.bincount(self.told, minlength=len(self.names)), lanes.astype(np.int64)

    def together(self) -> list[int]:
        """Lanes that did the same at the same steps, a bit each."""
        return list(self._alike(np.arange(len(self.told), dtype=np.int32)).values())

    def alike(self) -> dict[int, int]:
        """Lanes that did the same, at whatever steps, a bit each, by a number of what they did: that of others is the same only by
        chance, one in 2^64."""
        return self._alike(self.told)

    def _alike(self, told: Words) -> dict[int, int]:
        numbers, found = np.empty(32, np.int64), dict[int, int]()
        hashes(told, self.lanes, len(told), numbers)
        for lane, number in enumerate(numbers.tolist()):
            found[number] = found.get(number, 0) | 1 << lane
        return found


class RecordedDecisions:
    """Decisions of warps. runs: int32[n, 3], site, pattern and executions; those of a warp lie together, by site. of_warp: by warp,
    its first run and the one past its last. masks, values: uint32[m], int32[m, 32], of patterns: the lanes that came to a branch or
    loop, a bit each, and what each of them decided. sites: that have patterns."""

    def __init__(self, decisions: Decisions) -> None:
        self.sites = decisions.sites.keys()
        known = [SiteDecisions(), *decisions.sites.values()]
        self.masks = np.concatenate([one.patterns["mask"] for one in known])
        self.values = np.concatenate([one.patterns["value"] for one in known])
        every, sizes = np.concatenate([one.runs for one in known]), [len(one.runs) for one in known]
        sites = np.repeat([-1, *decisions.sites], sizes)
        before = np.repeat(np.cumsum([0, *(len(one.patterns) for one in known)])[:-1], sizes)
        pattern = np.where(every["pattern"] < 0, -1, every["pattern"] + before)
        order = np.lexsort([sites, every["warp"], every["block"], every["launch"]])
        executions = np.minimum(every["count"], np.iinfo(np.int32).max)
        self.runs = np.stack([sites, pattern, executions], axis=1)[order].astype(np.int32)
        names = np.stack([every[name] for name in ("launch", "block", "warp")], axis=1)[order]
        new = np.ones(len(names), np.bool_)
        new[1:] = (names[1:] != names[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        spans = zip(first.tolist(), [*first[1:].tolist(), len(names)], strict=False)
        self.of_warp = {
            (launch, block, warp): span
            for (launch, block, warp), span in zip(names[first].tolist(), spans, strict=False)
        }

    def decided(self, warp: WarpName) -> bytes:
        """All that was recorded of a warp: of two that decided alike it is the same."""
        first, past = self.of_warp.get(warp, (0, 0))
        return self.runs[first:past].tobytes()


class DecisionReplay:
    """The statements of a kernel's warps, told again. names: what is told, by number."""

    def __init__(self, body: ir.Body, recorded: RecordedDecisions, wanted: Iterable[int]) -> None:
        """wanted: what is told; the others are left out."""
        divided = frozenset(stmt.site for stmt in statements(body) if slow_paths(stmt)) & recorded.sites
        self.script, self.recorded = DecisionProgram(body, sorted(wanted), divided), recorded
        self.names = self.script.names
        self._given = Fixed(self.script.steps), Fixed(recorded.masks), Fixed(recorded.values.reshape(-1))
        self._runs = Fixed(recorded.runs.reshape(-1))
        sites = self.script.sites
        self._work = (
            Fixed(np.zeros(sites, np.int64)),
            Fixed(np.zeros(sites, np.int32)),
            Fixed(np.zeros(self.script.depth, np.int64)),
        )
        self._failed = np.zeros(1, np.int64)
        self._make_room(_ROOM)

    def _make_room(self, room: int) -> None:
        self._told, self._lanes = np.zeros(room, np.int32), np.zeros(room, np.uint32)

    def steps(self, warp: WarpName, lanes: int) -> WarpTrace:
        """What a warp did whose first lanes entered the kernel. Raises Lost where its record is not whole."""
        first, past = self.recorded.of_warp.get(warp, (0, 0))
        while True:
            steps, masks, values = self._given
            count = tell(
                steps, len(self.script), masks, values, self._runs, first, past, (1 << lanes) - 1, self.script.sites, *self._work,
                self._told, self._lanes, len(self._told), self._failed,
            )  # fmt: skip
            if count != ROOM:
                break
            self._make_room(2 * len(self._told))
        if count == MORE:
            raise ReplayError("more is recorded than was executed")
        if count == TOGETHER:
            raise ReplayError("patterns that are not told apart")
        if count < 0:
            raise ReplayError(f"site {self._failed[0]} was not recorded for these lanes")
        return WarpTrace(self._told[:count].copy(), self._lanes[:count].copy(), self.names)
