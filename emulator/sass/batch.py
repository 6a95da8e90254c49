"""A batch of blocks while it runs: its state, its groups of lanes, and the warps of the present run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..language.intrinsics import WARP_SIZE
from ..native import fixed, record
from .collectives import mask_bits
from .control import Control
from .convergence import begin_run, end_run
from .groups import AT_CLUSTER_BARRIER, EXITED, MAX_PATH, STUCK, Groups, new_groups
from .state import ExecutionError, State
from .steps import Step


class Batch:
    """A batch. groups: arrays of its groups. table: fields of the control instructions. rows, active: of the present run, as
    `begin_run`. chosen, values, awaited_threads: as `end_run`. paths: emptied `Groups.path`."""

    def __init__(self, steps: Sequence[Step], state: State, merges: bool) -> None:
        self.state, warps = state, state.warps
        self.groups, self.paths = new_groups(state, len(steps), merges), list[Any]()
        controls = [step.control or Control(0) for step in steps]
        self.table = np.array(
            [[one.kind, one.target, one.number, one.reduction] for one in controls], np.int64
        ).reshape(-1)
        self.rows, self.active = np.zeros(warps + 1, np.int64), np.zeros(WARP_SIZE * warps, np.bool_)
        self.chosen = np.full(warps, -1)
        self.values, self.awaited_threads = np.zeros(WARP_SIZE * warps, np.int64), np.zeros(WARP_SIZE * warps, np.int64)
        arrays = [one for one in self.groups if isinstance(one, np.ndarray)]
        own = [self.table, self.rows, self.active, self.chosen, self.values, self.awaited_threads]
        (self._table, self._rows, self._active, *self._operands) = fixed(*arrays, *own)[len(arrays) :]
        self._groups = record(Groups, *fixed(*arrays), *self.groups[len(arrays) :])

    @property
    def runs(self) -> int:
        """Number of runs until now."""
        return int(self.groups.run[0])

    @property
    def running(self) -> tuple[Any, Any]:
        """The warps of the present run, int64[n], and their active lanes, bool[n, 32]."""
        count = int(self.rows[-1])
        return self.rows[:count].copy(), self.active[: WARP_SIZE * count].reshape(count, WARP_SIZE)

    def begin(self) -> int:
        """Begin a run; see `begin_run`."""
        self.pause_after(1)
        return int(begin_run(self._groups, self._rows, self._active))

    def pause_after(self, runs: int) -> None:
        """Set the number of runs until a pause; empty `Groups.path` if it has no space for them."""
        self.groups.run[2] = runs
        if int(self.groups.run[3]) + runs * self.state.warps > len(self.groups.path):
            self.empty_path()

    def empty_path(self) -> None:
        """Move the runs of `Groups.path` to `paths`."""
        if sum(map(len, self.paths)) < MAX_PATH:
            self.paths.append(self.groups.path[: self.groups.run[3]].copy())
        self.groups.run[3] = 0

    def end(self, n: int, control: Control, rows: Any, lanes: Any) -> None:
        """Execute a control instruction. lanes: those that its guard selects."""
        count = len(rows)
        if control.select is not None:
            lanes = control.select(self.state, rows, lanes)
        self.chosen[:count] = mask_bits(lanes)
        for values, read in ((self.values, control.values), (self.awaited_threads, control.awaited_threads)):
            if read is not None:
                values[: WARP_SIZE * count] = np.broadcast_to(read(self.state, rows), lanes.shape).reshape(-1)
        end_run(self._groups, self._table, n, self._rows, count, *self._operands)

    def finish(self) -> None:
        """Check that all lanes have exited. Raises ExecutionError."""
        self.empty_path()
        stuck = np.flatnonzero(self.groups.status == STUCK)
        if len(stuck):
            raise ExecutionError(f"the lanes {int(self.groups.alive[stuck[0]]):#x} of a warp wait for each other")
        if (self.groups.status != EXITED).any():
            place = "cluster" if (self.groups.status == AT_CLUSTER_BARRIER).any() else "block"
            raise ExecutionError(f"warps of a {place} wait at different barriers")
