"""Warps that wait for each other: those of a block take turns, each until it waits, reaches a barrier or ends.

Each warp has a thread of Python, so that it can stop in the middle of a loop; one of them runs at a time, and in what order depends on
the kernel alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from .warp_group import NO_LANES, Mask, WarpGroup

PATIENCE = 64
"""Turns in a row that each waiting warp of a block takes in vain before it is taken to wait for good."""


class Meeting(Protocol):
    """A barrier."""

    @property
    def site(self) -> int: ...

    def meet(self, groups: Sequence[WarpGroup]) -> None: ...


class _State(Enum):
    READY, WAITS, ARRIVED, ENDED = range(4)


class _Abandoned(BaseException):
    """Ends the thread of a warp whose launch has ended."""


@dataclass
class Turn:
    """A warp that takes turns. cut: whether the loop in which it waits is cut off in its next turn."""

    group: WarpGroup
    back: threading.Semaphore
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    state: _State = _State.READY
    barrier: Meeting | None = None
    cut: bool = False
    abandoned: bool = False
    raised: BaseException | None = None
    thread: threading.Thread | None = None

    # -------------------------------------------------------------- in the warp's own thread
    def pause(self, waits: bool) -> bool:
        """End the turn after an iteration. waits: of a loop that only waits. Whether the loop is to be cut off."""
        self._yield(_State.WAITS if waits else _State.READY)
        cut, self.cut = self.cut, False
        return cut

    def arrive(self, barrier: Meeting) -> None:
        """End the turn at a barrier."""
        if self.group.active is not NO_LANES:
            self.barrier = barrier
            self._yield(_State.ARRIVED)

    def _yield(self, state: _State) -> None:
        self.state = state
        self.back.release()
        self.go.acquire()
        if self.abandoned:
            raise _Abandoned
        self.state = _State.READY

    # -------------------------------------------------------------- in the thread of the launch
    def take(self, body: Callable[[Sequence[WarpGroup]], None]) -> None:
        """Let the warp run until its turn ends. Raises what it raises."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, args=(body,), daemon=True)
            self.thread.start()
        else:
            self.go.release()
        self.back.acquire()
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
        self.back.release()

    def abandon(self) -> None:
        """End the thread."""
        if self.thread is not None and self.thread.is_alive() and self.state is not _State.ENDED:
            self.abandoned = True
            self.go.release()
            self.thread.join()


def take_turns(
    groups: Sequence[WarpGroup], order: Sequence[WarpGroup], body: Callable[[Sequence[WarpGroup]], None]
) -> None:
    """Run the warps of a block to their ends. order: in which they take their turns."""
    back = threading.Semaphore(0)
    turns = [Turn(group, back) for group in order]
    for turn in turns:
        turn.group.turn = turn
    vain = 0
    try:
        while any(turn.state is not _State.ENDED for turn in turns):
            ready = [turn for turn in turns if turn.state is _State.READY]
            waiting = [turn for turn in turns if turn.state is _State.WAITS]
            for turn in ready or waiting:
                turn.cut = not ready and vain == PATIENCE
                turn.take(body)
            if not ready and not waiting:
                _meet([turn for turn in turns if turn.state is _State.ARRIVED], groups)
            in_vain = waiting and not ready and all(turn.state is _State.WAITS for turn in waiting)
            vain = vain + 1 if in_vain and vain < PATIENCE else 0
    finally:
        for turn in turns:
            turn.abandon()


def _meet(arrived: Sequence[Turn], groups: Sequence[WarpGroup]) -> None:
    """All warps that have not ended are at barriers: those at the first one pass it."""
    barrier = min((turn.barrier for turn in arrived if turn.barrier is not None), key=lambda one: one.site)
    others = [turn for turn in arrived if turn.barrier is not barrier]
    masks: list[Mask] = [turn.group.active for turn in others]
    for turn in others:
        turn.group.active = NO_LANES
    barrier.meet(groups)
    for turn, mask in zip(others, masks, strict=True):
        turn.group.active = mask
    for turn in arrived:
        if turn.barrier is barrier:
            turn.state = _State.READY
