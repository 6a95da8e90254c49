"""Release and acquire between threads, as vector clocks in Python objects: the order of `sanitizer.races.release_acquire`.

A clock maps a thread to its accesses that are ordered before, a block to the barrier before which all of its accesses are, and a lane to
its last `syncwarp`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...language.intrinsics import WARP_SIZE
from ...sanitizer.races import release_acquire, shadow
from ...sanitizer.tracking import is_of_block
from .threads import Access, Thread

Clock = dict[tuple[Any, ...], int]


class Release(NamedTuple):
    """What a fence or a release orders before its acquires. of_block: whether it reaches the threads of its block only."""

    clock: Clock
    block: int
    of_block: bool

    def reaches(self, block: int) -> bool:
        return not self.of_block or block == self.block


@dataclass
class ThreadOrder:
    """acquired: what is ordered before the next access. read: releases that the thread has read. fences: by scope, and by element of a
    release. fenced: the phase of its last fence of the device."""

    acquired: Clock = field(default_factory=dict)
    read: list[Release] = field(default_factory=list)
    fences: dict[Any, Release] = field(default_factory=dict)
    fenced: int = -1

    def acquire(self, releases: Iterable[Release]) -> None:
        """Order releases before the next access."""
        _join(self.acquired, (release.clock for release in releases))


class ReleaseOrder:
    """The order of a launch. published: by block, the phase before which all of its warps have fenced their accesses."""

    def __init__(self, lockstep: bool) -> None:
        self.lockstep = lockstep
        self.threads: dict[tuple[int, int], ThreadOrder] = defaultdict(ThreadOrder)
        self.published: dict[int, int] = defaultdict(int)

    def fence(self, thread: Thread, phase: int, of_block: bool) -> None:
        """Order a fence: it acquires what its thread has read."""
        block = thread.block.linear
        own = self.threads[block, thread.linear]
        own.acquire(release for release in own.read if not of_block or release.block == block)
        own.read = [release for release in own.read if of_block and release.block != block]
        clock = self._clock(block, thread.linear, thread.accesses, phase, thread.lane_epochs)
        own.fences["block" if of_block else "device"] = Release(clock, block, of_block)
        own.fenced = own.fenced if of_block else phase

    def synchronise(self, threads: Sequence[Thread]) -> None:
        """Order threads at a barrier: each acquires what any of them has read."""
        orders = [self.threads[thread.block.linear, thread.linear] for thread in threads]
        union: Clock = {}
        for own in orders:
            own.acquire(own.read)
            own.read = []
            _join(union, [own.acquired])
        for own in orders:
            own.acquired = dict(union)

    def publish(self, block: int, phase: int, warps: int) -> None:
        """Count a barrier of a block: if all warps have fenced in the phase before, it publishes their accesses."""
        fenced = {
            thread // WARP_SIZE for (of, thread), own in self.threads.items() if of == block and own.fenced == phase
        }
        if len(fenced) == warps:
            self.published[block] = phase + 1

    def access(self, access: Access, role: int, head: list[Release], key: Any) -> list[Release]:
        """Order an atomic operation. head: the releases that its element has; returns those that it has then. key: of the element."""
        own, of_block = self.threads[access.block, access.thread], is_of_block(access.node)
        head = [] if role & shadow.OVERWRITES else [one for one in head if not of_block or one.block == access.block]
        near = [release for release in head if release.reaches(access.block)]
        first = access.thread // WARP_SIZE * WARP_SIZE
        for thread in range(first, first + WARP_SIZE) if self.lockstep else [access.thread]:
            reader = self.threads[access.block, thread]
            if role & shadow.ACQUIRES:
                reader.acquire(near)
            else:
                reader.read += near
        if role & shadow.LOADS_ONLY:
            return head
        if role & shadow.RELEASES:
            clock = self._clock(access.block, access.thread, access.number, access.phase, access.lane_epochs)
            own.fences[key] = Release(clock, access.block, of_block)
        present = [own.fences[name] for name in ("device", "block", key) if name in own.fences]
        published: Clock = {("block", access.block): self.published[access.block]}
        merged = {(one.block, one.of_block): one.clock for one in head}
        for release in present:
            key = release.block, release.of_block or of_block
            merged[key] = _join(dict(release.clock), [published, merged.get(key, {})])
        return [Release(clock, *reached) for reached, clock in merged.items()]

    def status(self, earlier: Access, access: Access) -> int:
        """Return how an earlier access was released to the thread of a later one."""
        own = self.threads[access.block, access.thread]
        if self._covers(own.acquired, earlier):
            return release_acquire.ACQUIRED
        read = any(self._covers(release.clock, earlier) for release in own.read)
        return release_acquire.READ_NOT_ACQUIRED if read else release_acquire.NOT_RELEASED

    def _covers(self, clock: Clock, access: Access) -> bool:
        warp = access.thread // WARP_SIZE * WARP_SIZE
        lanes = range(warp, warp + WARP_SIZE) if self.lockstep else [access.thread]
        return (
            clock.get(("block", access.block), 0) > access.phase
            or clock.get(("lane", access.block, access.thread), 0) > access.epoch
            or any(clock.get(("thread", access.block, lane), 0) >= access.number for lane in lanes)
        )

    def _clock(self, block: int, thread: int, accesses: int, phase: int, lanes: Any) -> Clock:
        """Return what is ordered before the next access of a thread."""
        own: Clock = {("thread", block, thread): accesses, ("block", block): phase}
        own |= {("lane", block, lane): epoch for lane, epoch in lanes.items()}
        return _join(own, [self.threads[block, thread].acquired])


def _join(clock: Clock, clocks: Iterable[Clock]) -> Clock:
    """Set a clock to the later of it and others, and return it."""
    for other in clocks:
        for key, value in other.items():
            clock[key] = max(value, clock.get(key, 0))
    return clock
