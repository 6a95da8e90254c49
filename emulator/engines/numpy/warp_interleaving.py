"""Cooperative scheduling of the warps of blocks: each runs until it waits, reaches a barrier or ends.

Each warp has a Python thread, so that it can pause within a loop. One thread runs at a time; the order depends on the kernel alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from .control import scheduled
from .warp_group import NO_LANES, Mask, WarpGroup

MAX_IDLE_ROUNDS = 64
"""Consecutive rounds without progress after which the waiting warps are assumed to wait forever."""


class BarrierStep(Protocol):
    """A barrier."""

    @property
    def site(self) -> int: ...

    def synchronise(self, groups: Sequence[WarpGroup]) -> None: ...


class _State(Enum):
    READY, WAITS, ARRIVED, ENDED = range(4)


class _Abandoned(BaseException):
    """Ends the thread of a warp whose launch has ended."""


@dataclass
class ScheduledWarp:
    """A warp and its thread. stop_loop: whether its loop must end in the next slice."""

    group: WarpGroup
    yielded: threading.Semaphore
    resume: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    state: _State = _State.READY
    barrier: BarrierStep | None = None
    stop_loop: bool = False
    abandoned: bool = False
    raised: BaseException | None = None
    thread: threading.Thread | None = None

    # -------------------------------------------------------------- in the warp's own thread
    def pause(self, waits: bool) -> bool:
        """End the slice after an iteration. waits: whether the loop only waits. Return whether the loop must end."""
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
    """The warps of a block: in the order of their numbers, and in that of their slices."""

    groups: Sequence[WarpGroup]
    warps: list[ScheduledWarp]

    def of_state(self, state: _State) -> list[ScheduledWarp]:
        return [warp for warp in self.warps if warp.state is state]


def interleave(
    blocks: Iterator[Sequence[WarpGroup]],
    body: Callable[[Sequence[WarpGroup]], None],
    select: Callable[[Sequence[WarpGroup]], None],
) -> int:
    """Run blocks to completion. A block starts when all warps of the earlier ones wait or have ended. select: called before a block
    runs. Return the largest number of blocks that ran at the same time."""
    yielded = threading.Semaphore(0)
    running: list[_ScheduledBlock] = []
    most = idle_rounds = 0
    last = False
    try:
        while True:
            moved = _run_slices(running, body, select, stop=last and idle_rounds == MAX_IDLE_ROUNDS)
            running = [block for block in running if block.of_state(_State.ENDED) != block.warps]
            idle_rounds = idle_rounds + 1 if not moved and idle_rounds < MAX_IDLE_ROUNDS else 0
            if moved:
                continue
            groups = next(blocks, None)
            last = groups is None
            if groups is not None:
                warps = [ScheduledWarp(group, yielded) for group in scheduled(groups)]
                for warp in warps:
                    warp.group.scheduler = warp
                running.append(_ScheduledBlock(groups, warps))
                most = max(most, len(running))
            elif not running:
                return most
    finally:
        for block in running:
            for warp in block.warps:
                warp.abandon()


def _run_slices(
    running: Sequence[_ScheduledBlock],
    body: Callable[[Sequence[WarpGroup]], None],
    select: Callable[[Sequence[WarpGroup]], None],
    stop: bool,
) -> bool:
    """Run a slice of each warp that is ready; of each one that waits if none is. Return whether a warp did more than wait.

    stop: whether loops that only wait end.
    """
    state = _State.READY if any(block.of_state(_State.READY) for block in running) else _State.WAITS
    moved = False
    for block in running:
        slices = block.of_state(state)
        if slices or block.of_state(_State.ARRIVED):
            select(block.groups)
        for warp in slices:
            warp.stop_loop = stop and state is _State.WAITS
            warp.run_slice(body)
            moved |= warp.state is not _State.WAITS
        arrived = block.of_state(_State.ARRIVED)
        if arrived and not block.of_state(_State.READY) and not block.of_state(_State.WAITS):
            _release_first_barrier(arrived, block.groups)
            moved = True
    return moved


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
