"""Execution of blocks with grid barriers: in each round every block runs up to its next grid barrier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    from ...sanitizer.races.shadow import RaceState
    from ...sanitizer.tracking import Plan

Worker = TypeVar("Worker")
Run = Callable[[Worker, int, int], bool]
"""Runs a range of blocks. Returns whether no loop reached the step limit."""


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
    """The blocks of one launch. A kernel without grid barriers has one round.

    memory: of all blocks, by name. missing: barrier, number of barriers passed before, waiting blocks, missing blocks.
    """

    request: Request
    needed: Buffers
    race_state: RaceState | None
    plan: Plan | None
    memory: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    missing: list[tuple[int, int, list[int], list[int]]] = field(default_factory=list)

    def run(
        self, distribute: Callable[[Sequence[Worker], Run[Worker]], bool], workers: Sequence[Worker], run: Run[Worker]
    ) -> bool:
        """Run all blocks to their end. Return whether no loop reached the step limit."""
        size = int(self.needed.sizes["frame"])
        if not size:
            return distribute(workers, run)
        blocks = prod(self.request.grid)
        self.memory |= {name: aligned(int(self.needed.sizes[name]) * blocks) for name in OWN}
        heads = self.memory["frame"][: size * blocks].view(np.int32).reshape(blocks, -1)
        heads[:, RESUMES] = 1
        run_single = self._announced(heads, run) if self.race_state is not None else run
        passed = 0
        while distribute(workers, run_single):
            waiting = heads[heads[:, RESUME] != FINISHED, RESUME]
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

    def report(self, faults: Faults, program: HasPrepared) -> None:
        """Add the faults of blocks that did not reach a barrier."""
        if not self.missing:
            return
        from ...passes.grids import grid_barriers
        from ...sanitizer.grids import check_arrivals

        barriers = grid_barriers(program.prepared.program.kernel)
        for number, passed, resuming, missing_blocks in self.missing:
            stmt = barriers[number - 1]
            check_arrivals(faults, stmt.value.span, stmt.site, passed, resuming, missing_blocks, self.request.grid)

    def _announced(self, heads: npt.NDArray[np.int32], run: Run[Worker]) -> Run[Worker]:
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
        if self.request.schedule is None:
            return range(blocks)
        from ...sanitizer.schedules import Schedule

        block_order: list[int] = Schedule.from_seed(
            self.request.schedule, self.request.grid, self.request.block
        ).blocks.tolist()
        return block_order

    def _bound(self) -> Any:
        assert self.race_state is not None
        return _happens_before().BoundRaceState(self.race_state)


def _numbers(chosen: npt.NDArray[np.bool_]) -> list[int]:
    block_order: list[int] = np.flatnonzero(chosen).tolist()
    return block_order


def _happens_before() -> Any:
    from ...sanitizer.races import happens_before  # imported on demand: most launches are not checked

    return happens_before
