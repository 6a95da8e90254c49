"""Cooperative scheduling of the warps of blocks: each runs until it waits, reaches a barrier or ends.

Each warp has a Python thread, so that it can pause within a loop. One thread runs at a time; the order depends on the kernel alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from .control import scheduled
from .grid_phases import teams
from .warp_group import NO_LANES, Mask, WarpGroup

MAX_IDLE_ROUNDS = 64
"""Consecutive rounds without progress after which the waiting warps are assumed to wait forever."""


class BarrierStep(Protocol):
    """A barrier. of_blocks: of all blocks of the cluster."""

    @property
    def site(self) -> int: ...

    @property
    def of_blocks(self) -> bool: ...

    def synchronise(self, groups: Sequence[WarpGroup]) -> None: ...


class _State(Enum):
    READY, WAITS, ARRIVED, ENDED = range(4)


class _Abandoned(BaseException):
    """Ends the thread of a warp whose launch has ended."""


@dataclass
class ScheduledWarp:
    """A warp and its thread. stop_loop: whether its loop must end in the next slice. awaited: returns the element that a lane of its
    loop reads last, or None."""

    group: WarpGroup
    yielded: threading.Semaphore
    resume: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    state: _State = _State.READY
    barrier: BarrierStep | None = None
    stop_loop: bool = False
    abandoned: bool = False
    awaited: Callable[[], tuple[str, int] | None] = lambda: None
    raised: BaseException | None = None
    thread: threading.Thread | None = None

    # -------------------------------------------------------------- in the warp's own thread
    def pause(self, waits: bool, awaited: Callable[[], tuple[str, int] | None]) -> bool:
        """End the slice after an iteration. waits: whether the loop only waits. Return whether the loop must end."""
        self.awaited = awaited
        self._yield(_State.WAITS if waits else _State.READY)
        stop_loop, self.stop_loop = self.stop_loop, False
        return stop_loop

    def preempt(self) -> None:
        """End the slice until all other warps wait or have ended."""
        if self.group.active is not NO_LANES:
            self._yield(_State.WAITS)

    def arrive(self, barrier: BarrierStep) -> None:
        """End the slice at a barrier."""
        if self.group.active is not NO_LANES:
            self.barrier = barrier
            self._yield(_State.ARRIVED)

    def _yield(self, state: _State) -> None:
        self.state = state
        self.yielded.release()
        self.resume.acquire()
        if self.abandoned:
            raise _Abandoned
        self.state = _State.READY

    # -------------------------------------------------------------- in the thread of the launch
    def run_slice(self, body: Callable[[Sequence[WarpGroup]], None]) -> None:
        """Run the warp until its slice ends. Raises the exceptions of the warp."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, args=(body,), daemon=True)
            self.thread.start()
        else:
            self.resume.release()
        self.yielded.acquire()
        if self.raised is not None:
            raise self.raised

    def _run(self, body: Callable[[Sequence[WarpGroup]], None]) -> None:
        try:
            with np.errstate(all="ignore"):
                body([self.group])
        except _Abandoned:
            return
        except BaseException as error:
            self.raised = error
        self.group.active = NO_LANES
        self.state = _State.ENDED
        self.yielded.release()

    def abandon(self) -> None:
        """End the thread."""
        if self.thread is not None and self.thread.is_alive() and self.state is not _State.ENDED:
            self.abandoned = True
            self.resume.release()
            self.thread.join()


@dataclass
class _ScheduledBlock:
    """The warps of a block: in the order of their numbers, and in that of their slices. cluster: the blocks that run with it."""

    groups: Sequence[WarpGroup]
    warps: list[ScheduledWarp]
    cluster: list[_ScheduledBlock] = field(default_factory=list)

    def of_state(self, state: _State) -> list[ScheduledWarp]:
        return [warp for warp in self.warps if warp.state is state]

    def barrier(self) -> BarrierStep | None:
        """Return the first barrier at which warps are, if all others have ended or are at later ones."""
        if self.of_state(_State.READY) or self.of_state(_State.WAITS):
            return None
        barriers = [warp.barrier for warp in self.of_state(_State.ARRIVED) if warp.barrier is not None]
        return min(barriers, key=lambda one: one.site, default=None)

    def release(self) -> bool:
        """Release the warps at the first barrier, of a cluster once all its blocks are at such a barrier. Return whether they are."""
        first = self.barrier()
        if first is None:
            return False
        blocks = [self]
        if first.of_blocks:
            blocks = [block for block in self.cluster if block.of_state(_State.ENDED) != block.warps]
            if not all((own := block.barrier()) is not None and own.of_blocks for block in blocks):
                return False
        arrived = [warp for block in blocks for warp in block.of_state(_State.ARRIVED)]
        members = self.cluster if first.of_blocks else blocks
        _release_first_barrier(arrived, [group for block in members for group in block.groups])
        return True


@dataclass
class Waits:
    """The largest number of blocks that ran at the same time, and the first wait for a block that the device does not hold then.

    element: array and index for which a warp waits. setter: the first block that changes it. memory, before: its array and its value.
    """

    together: int = 0
    element: tuple[str, int] | None = None
    setter: int | None = None
    memory: Any = None
    before: Any = None

    def watch(self, running: Sequence[_ScheduledBlock]) -> None:
        """Watch the element for which a warp waits."""
        for warp in (warp for block in running for warp in block.of_state(_State.WAITS)):
            if (element := warp.awaited()) is not None:
                self.element, self.memory = element, warp.group.memory.arrays[element[0]]
                self.before = self.memory[element[1]].copy()
                return

    def observe(self, group: WarpGroup) -> None:
        """Compare the element after a slice of a block."""
        if self.element is not None and self.setter is None and (self.memory[self.element[1]] != self.before).any():
            self.setter = int(group.blocks[0])


def interleave(
    blocks: Iterator[Sequence[WarpGroup]],
    body: Callable[[Sequence[WarpGroup]], None],
    select: Callable[[int], None],
    resident: int,
) -> Waits:
    """Run blocks to completion. A block starts when all warps of the earlier ones wait or have ended. select: called with a block before it
    runs. resident: blocks that the device holds at once."""
    yielded = threading.Semaphore(0)
    running: list[_ScheduledBlock] = []
    result, idle_rounds = Waits(), 0
    last = False
    try:
        while True:
            moved = _run_slices(running, body, select, last and idle_rounds == MAX_IDLE_ROUNDS, result)
            running = [block for block in running if block.of_state(_State.ENDED) != block.warps]
            idle_rounds = idle_rounds + 1 if not moved and idle_rounds < MAX_IDLE_ROUNDS else 0
            if moved:
                continue
            groups = next(blocks, None)
            last = groups is None
            if groups is not None:
                if len(running) == resident and result.element is None:
                    result.watch(running)
                cluster = [_scheduled_block(team, yielded) for team in teams(groups)]
                for block in cluster:
                    block.cluster = cluster
                running += cluster
                result.together = max(result.together, len(running))
            elif not running:
                return result
    finally:
        for block in running:
            for warp in block.warps:
                warp.abandon()


def _run_slices(
    running: Sequence[_ScheduledBlock],
    body: Callable[[Sequence[WarpGroup]], None],
    select: Callable[[int], None],
    stop: bool,
    result: Waits,
) -> bool:
    """Run a slice of each warp that is ready; of each one that waits if none is. Return whether a warp did more than wait.

    stop: whether loops that only wait end. result: observes the element that it watches.
    """
    state = _State.READY if any(block.of_state(_State.READY) for block in running) else _State.WAITS
    moved = False
    for block in running:
        slices = block.of_state(state)
        if slices or block.of_state(_State.ARRIVED):
            select(int(block.groups[0].blocks[0]))
        for warp in slices:
            warp.stop_loop = stop and state is _State.WAITS
            warp.run_slice(body)
            moved |= warp.state is not _State.WAITS
            result.observe(block.groups[0])
        moved |= block.release()
    return moved


def _scheduled_block(groups: Sequence[WarpGroup], yielded: threading.Semaphore) -> _ScheduledBlock:
    """Return a block that starts."""
    warps = [ScheduledWarp(group, yielded) for group in scheduled(groups)]
    for warp in warps:
        warp.group.scheduler = warp
    return _ScheduledBlock(groups, warps)


def _release_first_barrier(arrived: Sequence[ScheduledWarp], groups: Sequence[WarpGroup]) -> None:
    """Release the warps at the first barrier; all other warps have ended or are at later barriers."""
    barrier = min((warp.barrier for warp in arrived if warp.barrier is not None), key=lambda one: one.site)
    rest = [warp for warp in arrived if warp.barrier is not barrier]
    masks: list[Mask] = [warp.group.active for warp in rest]
    for warp in rest:
        warp.group.active = NO_LANES
    barrier.synchronise(groups)
    for warp, mask in zip(rest, masks, strict=True):
        warp.group.active = mask
    for warp in arrived:
        if warp.barrier is barrier:
            warp.state = _State.READY
