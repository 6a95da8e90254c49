"""Execution of blocks that wait for others: in each round every block of the grid or of a cluster runs up to its next barrier of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ...runtime.engine import Request
from .block_frames import FINISHED, OWN, PHASE, RESUME, RESUMES
from .layout import Buffers

if TYPE_CHECKING:
    from ...runtime.prepared import PreparedProgram
    from ...sanitizer.faults import Faults
    from ...sanitizer.races.cluster_blocks import ClusterBlocks
    from ...sanitizer.races.shadow import RaceState
    from ...sanitizer.schedules import Schedule
    from ...sanitizer.tracking import Plan

Worker = TypeVar("Worker")
Run = Callable[[Worker, int, int, Mapping[str, int] | None], bool]
"""Runs a range of blocks, with the addresses of the memory of blocks that wait for others. Returns whether no loop reached the step
limit."""
Distribute = Callable[[Sequence[Worker], Callable[[Worker, int, int], bool], int], bool]
"""Distributes a number of ranges over workers."""
BYTES_OF_CLUSTERS = 1 << 22
"""Memory of the clusters that a worker runs at a time, of at least one cluster."""


class HasPrepared(Protocol):
    @property
    def prepared(self) -> PreparedProgram: ...


def aligned(size: int) -> npt.NDArray[np.uint8]:
    """Return zeroed bytes aligned to a cache line."""
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size + 64]


@dataclass
class GridLaunch:
    """The blocks of one launch. A kernel without barriers of blocks has one round.

    resident: the race state of the blocks of clusters. missing: barrier, number of barriers passed before, waiting blocks, missing blocks.
    """

    request: Request
    needed: Buffers
    race_state: RaceState | None
    plan: Plan | None
    missing: list[tuple[int, int, list[int], list[int]]] = field(default_factory=list)
    resident: ClusterBlocks | None = None

    def run(self, distribute: Distribute[Worker], workers: Sequence[Worker], run: Run[Worker]) -> bool:
        """Run all blocks to their end. Return whether no loop reached the step limit."""
        blocks = prod(self.request.grid)
        if not self.needed.sizes["frame"]:
            return distribute(workers, lambda worker, first, last: run(worker, first, last, None), blocks)
        if self.request.specialisation.summary.clusters:
            return self._run_clusters(distribute, workers, run)
        memory, heads = self._memory(blocks)
        heads[:, RESUMES], addresses = 1, _addresses(memory)

        def in_memory(worker: Worker, first: int, last: int) -> bool:
            return run(worker, first, last, addresses)

        run_single = self._announced(heads, in_memory) if self.race_state is not None else in_memory
        passed = 0
        while distribute(workers, run_single, blocks):
            waiting = heads[heads[:, RESUME] >= 0, RESUME]
            if not len(waiting):
                return True
            resuming = heads[:, RESUME] == waiting.min()
            heads[:, RESUMES] = resuming
            if not resuming.all():
                self.missing.append((int(waiting.min()), passed, _numbers(resuming), _numbers(~resuming)))
            passed += 1
            if self.race_state is not None:
                self._bound()(_happens_before().grid_barrier)
        return False

    def _memory(self, blocks: int) -> tuple[dict[str, npt.NDArray[np.uint8]], npt.NDArray[np.int32]]:
        """Return the memory of blocks by name, and the words of their frames, int32[blocks, words]."""
        memory = {name: aligned(int(self.needed.sizes[name]) * blocks) for name in OWN}
        size = int(self.needed.sizes["frame"]) * blocks
        return memory, memory["frame"][:size].view(np.int32).reshape(blocks, -1)

    # -------------------------------------------------------------- clusters
    def _run_clusters(self, distribute: Distribute[Worker], workers: Sequence[Worker], run: Run[Worker]) -> bool:
        """Run the blocks of each cluster in rounds; a worker runs a few clusters at a time."""
        order = self.request.clusters if self._schedule is None else self._schedule.of_clusters(self.request.clusters)
        clusters, size = order.shape
        if self.race_state is not None:
            from ...sanitizer.races.cluster_blocks import ClusterBlocks  # imported on demand, as below

            assert self.plan is not None
            self.resident = ClusterBlocks(self._bound(), self.plan, order)
        of_cluster = size * sum(int(self.needed.sizes[name]) for name in OWN)
        at_once = 1 if self._in_order else min(clusters, 1 + BYTES_OF_CLUSTERS // of_cluster)
        memories = {id(worker): self._memory(at_once * size) for worker in workers}

        def run_range(worker: Worker, first: int, last: int) -> bool:
            memory, heads = memories[id(worker)]
            for start in range(first, last, at_once):
                count = min(at_once, last - start)
                heads[:, : PHASE + 1] = 0
                addresses = _addresses(memory, start * size, self.needed)
                rounds = ClusterRounds(
                    heads[: count * size].reshape(count, size, -1), order[start : start + count], self._miss, self._pass
                )
                if not rounds.run(partial(self._run_round, partial(run, worker), addresses, start * size)):
                    return False
            return True

        return distribute(workers, run_range, clusters)

    @property
    def _in_order(self) -> bool:
        """Whether the blocks of a cluster run one at a time, in the order of the schedule."""
        return self.race_state is not None or self.request.schedule is not None

    def _run_round(
        self, run: Callable[..., bool], addresses: Mapping[str, int], start: int, rounds: ClusterRounds
    ) -> bool:
        """Run the blocks of clusters that resume, up to their next barrier of blocks. start: place of the first block."""
        if not self._in_order:
            return run(start, start + rounds.heads.shape[0] * rounds.heads.shape[1], addresses)
        (head,), (blocks,) = rounds.heads, rounds.blocks
        for rank in self._ranks(blocks):
            if not head[rank, RESUMES]:
                continue
            if self.resident is not None:
                self.resident.select(int(blocks[rank]))
            if not run(start + rank, start + rank + 1, addresses):
                return False
        return True

    def _ranks(self, blocks: npt.NDArray[np.int64]) -> Iterable[int]:
        """Return the ranks of a cluster in the order of their execution."""
        if self._schedule is None:
            return range(len(blocks))
        ranks: list[int] = np.argsort(self._schedule.places[blocks]).tolist()
        return ranks

    def _miss(self, *missing: Any) -> None:
        self.missing.append(missing)

    def _pass(self, number: int, blocks: npt.NDArray[np.int64]) -> None:
        """Blocks of a cluster pass a barrier of its text."""
        if self.resident is None:
            return
        from ...passes.grids import blocks_barriers

        assert self.plan is not None
        barrier = blocks_barriers(self.plan.kernel)[number - 1].value
        self.resident.pass_barrier(barrier.mode, blocks.tolist())  # type: ignore[union-attr]

    def report(self, faults: Faults, program: HasPrepared) -> None:
        """Add the faults of blocks that did not reach a barrier, and of accesses to the memory of blocks that do not run."""
        if self.resident is not None:
            self.resident.report(faults, self.request.grid, self.request.block)
        if not self.missing:
            return
        from ...passes.grids import blocks_barriers
        from ...sanitizer.grids import check_arrivals

        barriers = blocks_barriers(program.prepared.program.kernel)
        for number, passed, resuming, missing_blocks in self.missing:
            stmt = barriers[number - 1]
            check_arrivals(faults, stmt, passed, resuming, missing_blocks, self.request.grid)

    def _announced(
        self, heads: npt.NDArray[np.int32], run: Callable[[Worker, int, int], bool]
    ) -> Callable[[Worker, int, int], bool]:
        """Return `run` for single blocks, each announced to the race state."""
        order = self._order(len(heads))

        def run_single(worker: Worker, first: int, last: int) -> bool:
            assert self.plan is not None and self.race_state is not None
            for place in range(first, last):
                block = order[place]
                if not heads[block, RESUMES]:
                    continue
                self.plan.select_block(self.race_state, block, len(heads))
                self._bound()(_happens_before().resume_block, block, int(heads[block, PHASE]))
                if not run(worker, place, place + 1):
                    return False
            return True

        return run_single

    def _order(self, blocks: int) -> Sequence[int]:
        if self._schedule is None:
            return range(blocks)
        block_order: list[int] = self._schedule.blocks.tolist()
        return block_order

    @cached_property
    def _schedule(self) -> Schedule | None:
        if self.request.schedule is None:
            return None
        from ...sanitizer.schedules import Schedule

        return Schedule.from_seed(self.request.schedule, self.request.grid, self.request.block)

    def _bound(self) -> Any:
        assert self.race_state is not None
        return _happens_before().BoundRaceState(self.race_state)


@dataclass
class ClusterRounds:
    """The rounds of clusters. heads: first words of the frames, int32[clusters, blocks, words]. blocks: linear, by cluster and rank.
    miss: receives the data of `GridLaunch.missing`. passes: is called with a barrier and the blocks of a cluster that pass it."""

    heads: npt.NDArray[np.int32]
    blocks: npt.NDArray[np.int64]
    miss: Callable[..., None]
    passes: Callable[[int, npt.NDArray[np.int64]], None]

    def run(self, run_round: Callable[[ClusterRounds], bool]) -> bool:
        """Run all blocks to their end. Return whether no loop reached the step limit.

        The blocks of a cluster at its first barrier resume; those elsewhere miss it, except those that have returned. Blocks stop where
        they arrive too, so that all accesses before the arrivals of a cluster precede all others.
        """
        heads, passed = self.heads, 0
        heads[..., RESUMES] = 1
        while run_round(self):
            at = heads[..., RESUME]
            running = at >= 0
            if not running.any():
                return True
            first = np.where(running, at, np.iinfo(np.int32).max).min(axis=1, keepdims=True)
            heads[..., RESUMES] = resuming = at == first
            elsewhere = running & ~resuming | (at == FINISHED)
            for cluster in np.flatnonzero(elsewhere.any(axis=1) & resuming.any(axis=1)):
                present, absent = (
                    sorted(self.blocks[cluster, which[cluster]].tolist()) for which in (resuming, elsewhere)
                )
                self.miss(int(first[cluster, 0]), passed, present, absent)
            if len(heads) == 1:  # as under the race checker
                self.passes(int(first[0, 0]), self.blocks[resuming])
            passed += 1
        return False


def _addresses(
    memory: Mapping[str, npt.NDArray[Any]], first: int = 0, needed: Buffers | None = None
) -> Mapping[str, int]:
    """Return the addresses of the memory of block 0, by argument. first: the block at the start of the memory."""
    sizes = {name: 0 if needed is None else int(needed.sizes[name]) for name in memory}
    return {f".{name}": buffer.ctypes.data - first * sizes[name] for name, buffer in memory.items()}


def _numbers(chosen: npt.NDArray[np.bool_]) -> list[int]:
    block_order: list[int] = np.flatnonzero(chosen).tolist()
    return block_order


def _happens_before() -> Any:
    from ...sanitizer.races import happens_before  # imported on demand: most launches are not checked

    return happens_before
