"""The state of warps that run together: their registers, masks and memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import Diagnostic
from ...language.intrinsics import WARP_SIZE
from ...runtime.engine import Request
from ...sanitizer.faults import Faults
from ...sanitizer.places import thread_text
from ...sanitizer.races.happens_before import BoundRaceState
from ...sanitizer.races.resident_blocks import ResidentBlocks
from ...sanitizer.schedules import Schedule
from ...span import Span
from . import lanes

Values = npt.NDArray[Any]
Register = Values | tuple[Values, ...]
Mask = npt.NDArray[np.bool_]
"""Values and masks broadcast to [blocks, warps, 32]; uniform ones have size 1 along the axes on which they are equal."""

NO_LANES: Mask = np.zeros((1, 1, 1), np.bool_)
"""The one empty mask of groups: emptiness is tested by identity."""


@dataclass
class ArrayStorage:
    """The arrays of a batch of blocks, by name, and the state shared by all its warps.

    Global and constant arrays are flat, shared ones [blocks * length], local ones [length * blocks * threads]. Arrays of
    vectors have a last axis for the components. allocated: the declaration of each array. shifts: of arrays in dynamic shared
    memory, the elements between the start of a bank's word and the first element. blocks: those of the batch. resident: selects the
    block that runs, for the race checker.
    """

    arrays: dict[str, Values] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    allocated: dict[str, Span] = field(default_factory=dict)
    shifts: dict[str, int] = field(default_factory=dict)
    race_state: BoundRaceState | None = None
    schedule: Schedule | None = None
    blocks: int = 1
    resident: ResidentBlocks | None = None


class Scheduler(Protocol):
    """The scheduler of a warp that is interleaved with others of its block (`warp_interleaving`)."""

    def pause(self, waits: bool, awaited: Callable[[], tuple[str, int] | None]) -> bool: ...

    def preempt(self) -> None: ...

    def arrive(self, barrier: Any) -> None: ...


class WarpGroup:
    """Warps that run in lockstep: those of a whole batch of blocks, or a single one."""

    def __init__(
        self,
        request: Request,
        blocks: npt.NDArray[np.int64],
        warps: npt.NDArray[np.int64],
        memory: ArrayStorage,
        faults: Faults,
        first: int = 0,
    ) -> None:
        self.request, self.memory, self.faults = request, memory, faults
        self.places = first + np.arange(len(blocks), dtype=np.int64).reshape(-1, 1, 1)  # of the blocks in the memory
        self.blocks, self.warps = blocks, warps
        self.shape = (len(blocks), len(warps), WARP_SIZE)
        self.registers: dict[str, Register] = {}
        threads = request.block[0] * request.block[1] * request.block[2]
        self.thread = (warps[:, None] * WARP_SIZE + np.arange(WARP_SIZE)).reshape(1, -1, WARP_SIZE)
        valid = self.thread < threads
        self.everyone: Mask = np.ones((1, 1, 1), np.bool_) if valid.all() else valid
        self.active: Mask = self.everyone
        self.alive: Mask = self.everyone  # has not returned from the kernel
        self.left: Mask = NO_LANES  # left the current iteration of the innermost loop, or the frame
        self.returned: Mask = NO_LANES  # returned from the current frame
        self.killed: Mask = NO_LANES  # ended by the step limit
        self.continued: Mask = NO_LANES  # left this iteration for the next one
        self.phase = np.zeros(len(blocks), np.int64)  # barriers each block has passed
        self.scheduler: Scheduler | None = None  # where the warps of the block are interleaved
        self.out_of_bounds: Values | None = None  # accesses out of bounds by warp, int64[blocks * warps]; None for none
        self.further: set[int] = set()  # loops with progress since their last test
        self._populations: tuple[Mask, tuple[int, int]] | None = None

    # -------------------------------------------------------------- masks
    def full(self, values: Values) -> Values:
        """[warps of the group, 32], contiguous."""
        if values.shape == self.shape:
            return np.ascontiguousarray(values).reshape(-1, WARP_SIZE)
        filled = np.empty(self.shape, values.dtype)
        filled[...] = values
        return filled.reshape(-1, WARP_SIZE)

    def population(self) -> tuple[int, int]:
        """(warps, lanes) of the active mask."""
        cached = self._populations
        if cached is None or cached[0] is not self.active:
            if self.active.size == 1:
                count = (
                    (self.shape[0] * self.shape[1], self.shape[0] * self.shape[1] * WARP_SIZE)
                    if self.active.flat[0]
                    else (0, 0)
                )
            else:
                count = lanes.population(self.full(self.active))
            cached = self._populations = (self.active, count)
        return cached[1]

    def leave(self, *, frame: bool) -> None:
        """The active lanes leave the iteration; with `frame`, the frame too."""
        self.left = self.left | self.active
        if frame:
            self.returned = self.returned | self.active
        self.active = NO_LANES

    def count_out_of_bounds(self, beyond: Mask) -> None:
        """Count an access of the warps that have lanes out of bounds, bool[blocks * warps, 32]."""
        wrong = np.asarray(beyond.any(axis=1), np.int64)
        self.out_of_bounds = wrong if self.out_of_bounds is None else np.add(self.out_of_bounds, wrong)

    def kill(self, leaving: Mask) -> None:
        """Some of the active lanes leave the kernel."""
        self.killed = self.killed | leaving
        self.alive = self.alive & ~leaving
        self.left = self.left | leaving
        self.returned = self.returned | leaving

    # -------------------------------------------------------------- faults
    def fault(self, kind: str, site: int, bad: Mask, describe: Callable[[int, int, str], Diagnostic]) -> None:
        """Add a fault of the lanes in bool[warps, 32]; `describe(row of the warp, lane, place)` gives the first one's finding."""
        row, lane = (int(v) for v in np.argwhere(bad)[0])
        block, warp = divmod(row, self.shape[1])
        linear = int(self.blocks[block])
        thread = int(self.warps[warp]) * WARP_SIZE + lane
        more = int(bad[row].sum()) - 1
        place = thread_text(linear, thread, self.request.grid, self.request.block, more)
        order = (linear, int(self.phase[block]), int(self.warps[warp]))
        self.faults.add(kind, site, order, int(bad.sum()), lambda: describe(row, lane, place))

    def lane_value(self, name: str, row: int, lane: int) -> object:
        """One lane's value of a scalar register, for a message."""
        value = self.registers.get(name)
        if value is None or isinstance(value, tuple):
            return None
        return self.full(value)[row, lane].item()
