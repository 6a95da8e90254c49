"""What the memories of a GPU were found to do in a launch: by site of the source, and by class of warps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .line_trace import LINES as TOTAL_LINES
from .line_trace import LOAD, LOCAL_LOAD, LOCAL_STORE, STORE
from .line_trace import SECTORS as TOTAL_SECTORS
from .line_trace import Words as Numbers

Floats = npt.NDArray[np.float64]

SECTORS, L1_HITS, NEAR_HITS, FAR_HITS, MISSES, ACCESSES, LINES, LONE, ASKED, CYCLES, MERGED, STREWN = range(12)
AWAITED, FAR_AWAITED, DRAM_AWAITED, AGAIN, BETWEEN, SAME, PARTIAL, LASTING = range(12, 20)
"""Of a site: sectors that its accesses ask for, and those of them that L1, the near half of L2, its far half and device memory
answer; its accesses; the lines that they touch; and of the sectors that device memory answers those that are alone in their half of
a line: it moves two at a time. ASKED: lines of which L2 is asked for sectors. CYCLES, STREWN, SAME, PARTIAL: as of `lines`. MERGED: sectors
of stores that L1 can send with others of the same warp, as it still may have their lines open; AGAIN: lines of such, and BETWEEN: how many
lines ago the warp stored to these. AWAITED, FAR_AWAITED, DRAM_AWAITED: accesses for whose farthest line L2, its far half and device memory
are waited; what another warp has asked for just before is waited for as long. LASTING: accesses for which L2 is waited, as for the one of
the warp before."""
COLUMNS = 20


@dataclass(frozen=True)
class Traffic:
    """What the memories of a GPU do in a launch. Sectors have 32 bytes.

    sites: int64[site, COLUMNS], of all blocks. looked_at: int64[class, site, COLUMNS], by class of warps, of the lines that were looked
    at and of the accesses that have such. different: int64[class, site], how many lines these were. dram_read, dram_written: bytes from
    and to device memory; dram_filled: those read for lines that had been written in part; dram_wasted: bytes more that could have been
    moved in the time of these. apart: one of so many lines was looked at. traced: blocks that were simulated, of `blocks`; the others
    are taken for more of what those in the middle did. together: of the sectors of stores that can go with others, the share that does.
    """

    sites: Numbers
    sampled: Numbers
    distinct_lines: Numbers
    kinds: Numbers
    dram_read: int
    dram_written: int
    dram_filled: int
    dram_wasted: int
    apart: int
    traced: int
    blocks: int
    together: float = 1.0

    def total(self, column: int, *kinds: int) -> int:
        """Of all sites, or of those of some kinds of access."""
        rows = self.sites if not kinds else self.sites[np.isin(self.kinds, kinds)]
        return int(rows[:, column].sum())

    @property
    def merge_bound(self) -> float:
        """Of the sectors of stores that can go with others, the share that no load comes before, if loads and runs of stores take turns:
        a load takes longer than L1 keeps lines of stores open."""
        loads, stores = self.total(ACCESSES, LOAD, LOCAL_LOAD), self.total(ACCESSES, STORE, LOCAL_STORE)
        again = self.total(MERGED) / max(self.total(SECTORS, STORE, LOCAL_STORE), 1)
        return min(1.0, max(0.0, 1.0 - loads / stores) / again) if stores and again else 1.0

    @cached_property
    def classes(self) -> Floats:
        """float64[class, site, COLUMNS], what of the sites each class has; but for ACCESSES where only some lines were looked at, which
        are 0. Cycles of L1 are taken to be shared as lines are."""
        every = self.sampled.sum(axis=0)
        share = np.divide(self.sampled, every, out=np.zeros(self.sampled.shape), where=every > 0)
        found: Floats = self.sites * share
        found[:, :, CYCLES] = self.sites[:, CYCLES] * share[:, :, LINES]
        found[:, :, STREWN] = self.sites[:, STREWN] * share[:, :, ACCESSES]
        if self.apart > 1:
            found[:, :, ACCESSES] = 0.0
        return found

    @property
    def l1_hit(self) -> float:
        """Of the sectors that loads ask for, the share that L1 answers."""
        asked = self.total(SECTORS, 0)
        return self.total(L1_HITS, 0) / asked if asked else 0.0

    @property
    def l2_sectors(self) -> int:
        """That SMs ask of L2: loads that L1 does not answer, stores, atomic operations."""
        return self.total(SECTORS) - self.total(L1_HITS) - round(self.together * self.total(MERGED))

    @property
    def stored(self) -> tuple[float, float]:
        """Requests and sectors of stores that SMs send to L2: a line, but of local arrays each sector that is not stored to whole."""
        lines, sectors = self.total(LINES, STORE, LOCAL_STORE), self.total(SECTORS, STORE, LOCAL_STORE)
        with_others = lines - self.total(ASKED, STORE, LOCAL_STORE)
        local = max(0, self.total(PARTIAL, LOCAL_STORE) - self.total(LINES, LOCAL_STORE))
        return lines + local - self.together * with_others, sectors - self.together * self.total(MERGED)

    @property
    def l2_hit(self) -> float:
        """Of the sectors asked of L2, the share that is found where it is asked first: in the half that is near the SM. So Nsight
        Compute counts. A store is always answered."""
        asked = self.l2_sectors
        apart = self.total(MERGED) - round(self.together * self.total(MERGED))
        return (self.total(NEAR_HITS) + apart) / asked if asked else 0.0

    @property
    def dram_bytes(self) -> int:
        return self.dram_read + self.dram_written


def whole(sampled: Numbers, totals: Numbers, kinds: Numbers, cached: bool) -> Numbers:
    """What was found of some lines, of all that the sites accessed. A site of which no line was sampled goes to very few, which stay
    in L1 (cached: there is one) or else in L2."""
    found = sampled.copy()
    found[:, [ACCESSES, LINES, SECTORS, CYCLES, STREWN, SAME, PARTIAL]] = totals
    answered = [L1_HITS, NEAR_HITS, FAR_HITS, MISSES, LONE, ASKED, MERGED, AGAIN, BETWEEN]
    for site in np.flatnonzero(totals[:, TOTAL_SECTORS]):
        every, row = int(totals[site, TOTAL_SECTORS]), sampled[site]
        if row[SECTORS]:
            found[site, answered] = np.rint(row[answered] * (every / row[SECTORS]))
        elif cached and kinds[site] in (LOAD, LOCAL_LOAD):
            found[site, L1_HITS] = every
        else:
            found[site, NEAR_HITS], found[site, FAR_HITS] = every - every // 2, every // 2
            found[site, ASKED] = totals[site, TOTAL_LINES]
    return found
