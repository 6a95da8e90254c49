"""Race state of the blocks of clusters: their order by barriers of the cluster, and accesses to the memory of blocks that do not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from ...errors import Diagnostic
from ...span import Span
from ..elements import element
from ..faults import Faults
from ..places import Dim3, coordinates
from ..tracking import Plan
from . import happens_before
from .report import KIND
from .resident_blocks import ResidentBlocks
from .shadow import ACCESS_OF, BITS, BLOCK_OF, CLUSTER, GRID, LENGTH, LOADS, MERGED, PADDING, THREAD, TICK

NEVER = 1 << 32
"""An epoch behind all others."""


class ClusterBlocks(ResidentBlocks):
    """Selects the block that runs. clusters: blocks by cluster and rank. together: clusters with shared memory at the same time.

    Known limit: if clusters run at the same time, a barrier of one also orders the accesses of the others since its start.
    """

    def __init__(
        self, race: happens_before.BoundRaceState, plan: Plan, clusters: npt.NDArray[np.int64], together: int = 1
    ) -> None:
        super().__init__(race, plan, clusters.shape[1] * together)
        self.blocks, size = clusters.ravel(), clusters.shape[1]
        self.size: int = size
        self.places = np.argsort(self.blocks)
        self.starts: dict[int, int] = {}
        self.arrivals: dict[int, list[int]] = {}
        self.passed: dict[int, int] = {}
        self.passing: set[int] = set()
        self.misused: list[tuple[str, int, int, int, bool]] = []

    def place(self, block: int) -> int:
        return int(self.places[block] % self.count)

    def _cluster(self, block: int) -> int:
        return int(self.places[block]) // self.size

    def select(self, block: int) -> None:
        state, cluster = self.race.arrays.state, self._cluster(block)
        if cluster not in self.starts:
            self._begin(cluster)
        is_new = block != self.running and block not in self.waiting
        super().select(block)
        if is_new:
            state[GRID], state[CLUSTER] = 0, self.starts[cluster]
        if block in self.passing:
            self.passing.remove(block)
            self.passed[block] = self.arrivals[cluster][-1]
            self.race(happens_before.cluster_barrier, self.passed[block])

    def _begin(self, cluster: int) -> None:
        """Start a cluster. If it has the memory of the one before, all elements are unwritten."""
        if self.starts and self.count == self.size:
            self.find_misuse()
            self.running = -1
            self.waiting.clear()
            for planes, _, _ in self._planes():
                planes[...] = 0
        self.starts[cluster] = int(self.race.arrays.state[LENGTH]) * TICK

    def pass_barrier(self, mode: str, blocks: Iterable[int]) -> None:
        """Blocks of one cluster arrive at a barrier of it, wait for it, or both."""
        now = int(self.race.arrays.state[LENGTH]) * TICK
        for block in blocks:
            arrivals = self.arrivals.setdefault(self._cluster(block), [])
            if mode != "cluster_wait" and arrivals[-1:] != [now]:
                arrivals.append(now)
            if mode != "cluster_arrive" and arrivals:
                self.passing.add(block)

    def _planes(self) -> Iterator[tuple[npt.NDArray[np.uint32], str, int]]:
        """Yield the epochs of each array that blocks have of their own, [planes, elements], with its name and the place of the block."""
        race, start = self.race.arrays, PADDING
        for name, tracked in self.plan.tracked.items():
            size, step = int(race.planes[4 * tracked.number + 1]), tracked.block_step(race)
            copies = self.count if self.plan.types[name].space != "global" else 0
            for place in range(copies):
                epochs = np.asarray(race.epochs)[start + place * step :][: step - PADDING]
                yield epochs.reshape(-1, size)[:, : size - PADDING], name, place
            start += 0 if tracked.common else step * max(copies, 1)

    # -------------------------------------------------------------- memory of blocks that do not run
    def find_misuse(self) -> None:
        """Find accesses to the shared memory of a block before the first barrier of the cluster, or behind its last one that the block
        passes: the block may not have started, or may have ended."""
        log = np.asarray(self.race.arrays.log).reshape(-1, 4)
        if self.size == 1 or self.race.arrays.state[MERGED] or not self.starts:
            return
        self.passed |= {block: self.arrivals[self._cluster(block)][-1] for block in self.passing}
        first = 0 if self.count > self.size else list(self.starts)[-1] * self.size
        for planes, name, place in self._planes():
            block = int(self.blocks[first + place])
            arrivals = self.arrivals.get(self._cluster(block)) or [NEVER]
            if not self.plan.tracked[name].for_races:
                continue
            away = (planes >= TICK) & (log[planes >> BITS, BLOCK_OF] != block)
            for late, wrong in ((False, planes < arrivals[0]), (True, planes >= self.passed.get(block, NEVER))):
                for plane, at in np.argwhere(away & wrong):
                    self.misused.append((name, int(at), int(planes[plane, at]), block, late))

    def report(self, faults: Faults, grid: Dim3, block: Dim3) -> None:
        """Add the findings of `find_misuse`."""
        self.find_misuse()
        log = np.asarray(self.race.arrays.log).reshape(-1, 4)
        for name, at, epoch, owner, late in self.misused:
            row = log[epoch >> BITS]
            site, accessor = int(row[ACCESS_OF]) // 4, int(row[BLOCK_OF])
            blocks = coordinates(owner, grid), coordinates(accessor, grid)
            shown, thread = element(name, self.plan.types[name], at, {}), coordinates(epoch & THREAD, block)
            reads = int(row[ACCESS_OF]) & 3 == LOADS
            fault = misuse(shown, self.plan.sites[site], reads, late, blocks, thread)
            order = (accessor, owner, at)
            faults.add(f"late {late}", site, order, 1, lambda fault=fault: fault)  # type: ignore[misc]


def misuse(shown: str, span: Span, reads: bool, late: bool, blocks: tuple[Dim3, Dim3], thread: Dim3) -> Diagnostic:
    """Return the finding of an access to the memory of a block that may not run. late: whether it may have ended, else not have started.
    blocks: that has the element, and that accesses it by a thread."""
    verb = "read" if reads else "changed"
    needed, place = ("keeps the block", "after the last") if late else ("says that it has", "before the first")
    may = "may have ended" if late else "may not have started"
    owner, accessor = blocks
    notes = (
        f"{shown} of block {owner}",
        f"{verb} by block {accessor}, thread {thread}",
        f"no barrier of the cluster {needed}: st.cluster_sync() {place} access to other blocks",
    )
    message = f"race on shared memory: {shown} is {verb} here, in a block that {may}"
    return Diagnostic(KIND, message, span, notes, array=shown.partition("[")[0])
