"""Counter buffer of compiled code: the contribution of each slot to sites and columns of the counts.

Compiled code counts executions of runs of statements, and the variable costs of memory accesses. The table of contributions
converts these to counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ....language.intrinsics import WARP_SIZE
from ....profiler import events, samples
from ....profiler.samples import Samples

CONTRIBUTION = np.dtype([(name, np.int64) for name in ("slot", "site", "column", "amount")])
"""A contribution: each count of a slot adds an amount to a column of a site."""


@dataclass
class CounterSlots:
    """Slots of the counter buffer, int64 each, and their contributions to the counts."""

    slots: dict[tuple[str, int, int], int] = field(default_factory=dict)
    contributions: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def _slot(self, kind: str, site: int, column: int = -1) -> int:
        return self.slots.setdefault((kind, site, column), len(self.slots))

    def whole_warps(self, sites: Iterable[int]) -> int:
        """Return the slot for executions of statements by full warps."""
        sites = tuple(sites)
        slot = self._slot("full", sites[0])
        for site in sites:
            self.contribute(slot, site, events.WARPS, 1)
            self.contribute(slot, site, events.LANES, WARP_SIZE)
        return slot

    def masked_warps(self, sites: Iterable[int]) -> tuple[int, int]:
        """Return the slots for executions of statements under a mask: of warps, and of lanes."""
        sites = tuple(sites)
        warps, lanes = self._slot("warps", sites[0]), self._slot("lanes", sites[0])
        for site in sites:
            self.contribute(warps, site, events.WARPS, 1)
            self.contribute(lanes, site, events.LANES, 1)
        return warps, lanes

    def counter(self, site: int, column: int) -> int:
        """Return a new slot for one column of one site."""
        return self.counters(site, [column])

    def counters(self, site: int, columns: Sequence[int]) -> int:
        """Return the first of consecutive slots for columns of one site."""
        slots = []
        for column in columns:
            slots.append(self._slot("own", site, column))
            self.contribute(slots[-1], site, column, 1)
        assert slots == list(range(slots[0], slots[0] + len(slots)))
        return slots[0]

    def contribute(self, slot: int, site: int, column: int, amount: int) -> None:
        """Add `amount` to the column of the site for each count of the slot."""
        self.contributions[slot, site, column] = amount

    def table(self) -> npt.NDArray[np.void]:
        """Return the contributions, CONTRIBUTION[n]."""
        return np.array([(*key, amount) for key, amount in self.contributions.items()], CONTRIBUTION)


@dataclass
class SampleSlots:
    """Offsets in bytes of the sample tables of accesses and loops in the sample buffer, by site."""

    accesses: dict[int, int] = field(default_factory=dict)
    loops: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the size of the buffer in bytes."""
        return len(self.accesses) * samples.COSTS * samples.ACCESS.itemsize + (
            len(self.loops) * samples.ITERATIONS * samples.LOOP.itemsize
        )

    def access(self, site: int) -> int:
        return self.accesses.setdefault(site, self.size)

    def loop(self, site: int) -> int:
        return self.loops.setdefault(site, self.size)

    def decode(self, buffers: Sequence[npt.NDArray[np.uint8]]) -> Samples:
        """Return the samples of a launch from the buffers of its threads."""
        shapes = ((self.accesses, samples.ACCESS, samples.COSTS), (self.loops, samples.LOOP, samples.ITERATIONS))
        accesses, loops = (
            {
                site: samples.merge_tables(np.frombuffer(b, dtype, rows, start) for b in buffers)
                for site, start in known.items()
            }
            for known, dtype, rows in shapes
        )
        return Samples(accesses, loops)
