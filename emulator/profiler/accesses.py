"""Memory accesses of the warps of sampled blocks, recorded with the decisions of a launch.

The accesses of a compiled kernel, whose warps reconverge differently from the source, are computed from them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from .block_sampling import sampled_blocks
from .trace import ENTRY, Entries

MAX_ACCESSES = 1 << 17
"""Recorded accesses of a launch: 37 MB. If there are more, only every second, fourth, ... block is sampled."""
NONE = 1 << 30
"""Interval that samples no block."""


@dataclass(frozen=True)
class WarpAccesses:
    """Recorded accesses of a launch.

    interval: one of so many blocks is sampled. by_warp: by block and warp, ENTRY[n] in the order of execution. spaces: of
    which memories. blocks: only blocks below this number are sampled.
    """

    interval: int = NONE
    by_warp: dict[tuple[int, int], Entries] = field(default_factory=dict)
    spaces: tuple[str, ...] = ("global", "shared")
    blocks: int = 1 << 62

    def has(self, block: int) -> bool:
        """Return whether a block is sampled."""
        return block < self.blocks and bool(sampled_blocks(np.array([block]), self.interval)[0])


@dataclass
class AccessRecorder:
    """A tracer that records the accesses of sampled blocks. The interval doubles when there are too many."""

    interval: int
    spaces: tuple[str, ...] = ("global", "shared")
    blocks: int = 1 << 62
    _initial_interval: int = 0
    _recorded: list[Entries] = field(default_factory=list)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._initial_interval = self.interval

    def take(self, entries: Entries) -> None:
        with self._lock:
            sampled = entries[sampled_blocks(entries["block"], self.interval)]
            self._recorded.append(sampled)
            self._count += len(sampled)
            while self._count > MAX_ACCESSES:
                self.interval *= 2
                merged = np.concatenate(self._recorded)
                self._recorded = [merged[sampled_blocks(merged["block"], self.interval)]]
                self._count = len(self._recorded[0])

    def begin_again(self) -> None:
        self._recorded.clear()
        self._count, self.interval = 0, self._initial_interval

    def finish(self) -> WarpAccesses:
        """Return the recorded accesses."""
        entries = np.concatenate([np.zeros(0, ENTRY), *self._recorded])
        entries = entries[np.lexsort((entries["warp"], entries["block"]))]
        if not len(entries):
            return WarpAccesses(self.interval, {}, self.spaces, self.blocks)
        warps = np.stack([entries["block"], entries["warp"].astype(np.int64)], axis=1)
        first = np.flatnonzero(np.append(True, (warps[1:] != warps[:-1]).any(axis=1)))
        by_warp = {
            (block, warp): accesses
            for (block, warp), accesses in zip(warps[first].tolist(), np.split(entries, first[1:]), strict=True)
        }
        return WarpAccesses(self.interval, by_warp, self.spaces, self.blocks)
