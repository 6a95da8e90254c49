"""The accesses that warps of drawn blocks made, kept beside the decisions of a launch: what lanes access that a compiled kernel has
execute together otherwise than the source does follows from them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from .drawing import drawn
from .trace import ENTRY, Entries

MOST = 1 << 17
"""Accesses of a launch that are kept: 37 MB. Where there are more, only those of every second, fourth, ... block are."""
NONE = 1 << 30
"""One of so many blocks: none, as numbers are drawn."""


@dataclass(frozen=True)
class WarpAccesses:
    """Of a launch. by_warp: by block and warp, ENTRY[n] in the order in which it made them. one_of: of one of so many blocks. spaces: to
    which memories. blocks: of blocks below this number."""

    one_of: int = NONE
    by_warp: dict[tuple[int, int], Entries] = field(default_factory=dict)
    spaces: tuple[str, ...] = ("global", "shared")
    blocks: int = 1 << 62

    def has(self, block: int) -> bool:
        """Whether a block's accesses are kept."""
        return block < self.blocks and bool(drawn(np.array([block]), self.one_of)[0])


@dataclass
class AccessRecorder:
    """A tracer that keeps the accesses to global and shared memory of one of so many blocks, and of fewer where that is too much."""

    one_of: int
    spaces: tuple[str, ...] = ("global", "shared")
    blocks: int = 1 << 62
    _begun: int = 0
    _kept: list[Entries] = field(default_factory=list)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._begun = self.one_of

    def take(self, entries: Entries) -> None:
        with self._lock:
            kept = entries[drawn(entries["block"], self.one_of)]
            self._kept.append(kept)
            self._count += len(kept)
            while self._count > MOST:
                self.one_of *= 2
                joined = np.concatenate(self._kept)
                self._kept = [joined[drawn(joined["block"], self.one_of)]]
                self._count = len(self._kept[0])

    def begin_again(self) -> None:
        self._kept.clear()
        self._count, self.one_of = 0, self._begun

    def finish(self) -> WarpAccesses:
        """What was kept."""
        found = np.concatenate([np.zeros(0, ENTRY), *self._kept])
        found = found[np.lexsort((found["warp"], found["block"]))]
        if not len(found):
            return WarpAccesses(self.one_of, {}, self.spaces, self.blocks)
        places = np.stack([found["block"], found["warp"].astype(np.int64)], axis=1)
        first = np.flatnonzero(np.append(True, (places[1:] != places[:-1]).any(axis=1)))
        names = places[first].tolist()
        parts = zip(names, np.split(found, first[1:]), strict=True)
        by_warp = {(block, warp): part for (block, warp), part in parts}
        return WarpAccesses(self.one_of, by_warp, self.spaces, self.blocks)
