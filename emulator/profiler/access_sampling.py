"""A sample of the memory accesses of a detailed launch, from which `remedies` computes the effect of changes of a kernel."""

import threading
from dataclasses import dataclass, field

import numpy as np

from .block_sampling import sampled_blocks
from .trace import ENTRY, TRACED, Entries

MAX_ACCESSES = 1 << 14
"""Accesses of a sample: 5 MB."""
SAMPLED_WARPS = 1 << 10
"""Warps of the sampled blocks of a launch; fewer than twice as many."""


def sampling_interval(warps: int) -> int:
    """Return the interval of sampled blocks of a launch: one of so many blocks is sampled."""
    return max(1, warps // SAMPLED_WARPS)


@dataclass
class AccessSampler:
    """A tracer that samples the accesses of a launch uniformly.

    interval: one of so many blocks is sampled. thinning: of these blocks, one of so many accesses is kept. It doubles when
    there are more than MAX_ACCESSES. A hash of the block and of the number of the access in its block decides, so that each run
    samples the same accesses.
    """

    interval: int = 1
    thinning: int = 1
    spaces: tuple[str, ...] = TRACED
    blocks: int = 1 << 62
    _accesses: list[Entries] = field(default_factory=list)
    _numbers: list[Entries] = field(default_factory=list)
    _by_block: dict[int, int] = field(default_factory=dict)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self, entries: Entries) -> None:
        with self._lock:
            numbers = self._numbers_of(entries["block"])
            selected = sampled_blocks(entries["block"], self.interval) & sampled_blocks(numbers, self.thinning)
            self._accesses.append(entries[selected])
            self._numbers.append(numbers[selected])
            self._count += int(selected.sum())
            while self._count > MAX_ACCESSES:
                self.thinning *= 2
                accesses, numbers = np.concatenate(self._accesses), np.concatenate(self._numbers)
                selected = sampled_blocks(numbers, self.thinning)
                self._accesses, self._numbers = [accesses[selected]], [numbers[selected]]
                self._count = int(selected.sum())

    def _numbers_of(self, blocks: Entries) -> Entries:
        """Return a number for each access, different for the accesses of a block."""
        numbers = np.empty(len(blocks), np.int64)
        for block in np.unique(blocks).tolist():
            own = np.flatnonzero(blocks == block)
            first = self._by_block.get(block, block << 32)
            numbers[own] = first + np.arange(len(own))
            self._by_block[block] = first + len(own)
        return numbers

    def begin_again(self) -> None:
        self._accesses.clear()
        self._numbers.clear()
        self._by_block.clear()
        self._count, self.thinning = 0, 1

    @property
    def is_complete(self) -> bool:
        """Whether no access was omitted."""
        return self.interval == self.thinning == 1

    def sample(self) -> Entries:
        """Return the sampled accesses by site, block and order in the block, whatever the order in which threads ran the blocks."""
        entries = np.concatenate([np.zeros(0, ENTRY), *self._accesses])
        return entries[np.lexsort((np.concatenate([np.zeros(0, np.int64), *self._numbers]), entries["site"]))]
