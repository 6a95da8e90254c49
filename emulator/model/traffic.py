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

(
    SECTORS,
    L1_HITS,
    NEAR_HITS,
    FAR_HITS,
    MISSES,
    ACCESSES,
    LINES,
    UNPAIRED_SECTORS,
    L2_REQUESTS,
    CYCLES,
    MERGEABLE_SECTORS,
    NON_ADJACENT,
) = range(12)
L2_WAITS, FAR_WAITS, DRAM_WAITS, STORE_REHITS, STORE_REUSE_DISTANCE, SAME_SECTORS, PARTIAL_SECTORS, REPEATED_WAITS = (
    range(12, 20)
)
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
    sampling_stride: int
    traced_blocks: int
    blocks: int
    merge_ratio: float = 1.0

    def total(self, column: int, *kinds: int) -> int:
        """Of all sites, or of those of some kinds of access."""
        rows = self.sites if not kinds else self.sites[np.isin(self.kinds, kinds)]
        return int(rows[:, column].sum())

    @property
    def merge_bound(self) -> float:
        """Of the sectors of stores that can go with others, the share that no load comes before, if loads and runs of stores take turns:
        a load takes longer than L1 keeps lines of stores open."""
        loads, stores = self.total(ACCESSES, LOAD, LOCAL_LOAD), self.total(ACCESSES, STORE, LOCAL_STORE)
        mergeable = self.total(MERGEABLE_SECTORS) / max(self.total(SECTORS, STORE, LOCAL_STORE), 1)
        return min(1.0, max(0.0, 1.0 - loads / stores) / mergeable) if stores and mergeable else 1.0

    @cached_property
    def classes(self) -> Floats:
        """float64[class, site, COLUMNS], what of the sites each class has; but for ACCESSES where only some lines were looked at, which
        are 0. Cycles of L1 are taken to be shared as lines are."""
        totals = self.sampled.sum(axis=0)
        share = np.divide(self.sampled, totals, out=np.zeros(self.sampled.shape), where=totals > 0)
        result: Floats = self.sites * share
        result[:, :, CYCLES] = self.sites[:, CYCLES] * share[:, :, LINES]
        result[:, :, NON_ADJACENT] = self.sites[:, NON_ADJACENT] * share[:, :, ACCESSES]
        if self.sampling_stride > 1:
            result[:, :, ACCESSES] = 0.0
        return result

    @property
    def l1_hit(self) -> float:
        """Of the sectors that loads ask for, the share that L1 answers."""
        requested = self.total(SECTORS, 0)
        return self.total(L1_HITS, 0) / requested if requested else 0.0

    @property
    def l2_sectors(self) -> int:
        """That SMs ask of L2: loads that L1 does not answer, stores, atomic operations."""
        return self.total(SECTORS) - self.total(L1_HITS) - round(self.merge_ratio * self.total(MERGEABLE_SECTORS))

    @property
    def stored(self) -> tuple[float, float]:
        """Requests and sectors of stores that SMs send to L2: a line, but of local arrays each sector that is not stored to whole."""
        lines, sectors = self.total(LINES, STORE, LOCAL_STORE), self.total(SECTORS, STORE, LOCAL_STORE)
        merged_lines = lines - self.total(L2_REQUESTS, STORE, LOCAL_STORE)
        local = max(0, self.total(PARTIAL_SECTORS, LOCAL_STORE) - self.total(LINES, LOCAL_STORE))
        return lines + local - self.merge_ratio * merged_lines, sectors - self.merge_ratio * self.total(
            MERGEABLE_SECTORS
        )

    @property
    def l2_hit(self) -> float:
        """Of the sectors asked of L2, the share that is found where it is asked first: in the half that is near the SM. So Nsight
        Compute counts. A store is always answered."""
        requested = self.l2_sectors
        unmerged = self.total(MERGEABLE_SECTORS) - round(self.merge_ratio * self.total(MERGEABLE_SECTORS))
        return (self.total(NEAR_HITS) + unmerged) / requested if requested else 0.0

    @property
    def dram_bytes(self) -> int:
        return self.dram_read + self.dram_written


def scale_to_launch(sampled: Numbers, totals: Numbers, kinds: Numbers, has_l1: bool) -> Numbers:
    """What was found of some lines, of all that the sites accessed. A site of which no line was sampled goes to very few, which stay
    in L1 (cached: there is one) or else in L2."""
    result = sampled.copy()
    result[:, [ACCESSES, LINES, SECTORS, CYCLES, NON_ADJACENT, SAME_SECTORS, PARTIAL_SECTORS]] = totals
    answered = [
        L1_HITS,
        NEAR_HITS,
        FAR_HITS,
        MISSES,
        UNPAIRED_SECTORS,
        L2_REQUESTS,
        MERGEABLE_SECTORS,
        STORE_REHITS,
        STORE_REUSE_DISTANCE,
    ]
    for site in np.flatnonzero(totals[:, TOTAL_SECTORS]):
        sectors, row = int(totals[site, TOTAL_SECTORS]), sampled[site]
        if row[SECTORS]:
            result[site, answered] = np.rint(row[answered] * (sectors / row[SECTORS]))
        elif has_l1 and kinds[site] in (LOAD, LOCAL_LOAD):
            result[site, L1_HITS] = sectors
        else:
            result[site, NEAR_HITS], result[site, FAR_HITS] = sectors - sectors // 2, sectors // 2
            result[site, L2_REQUESTS] = totals[site, TOTAL_LINES]
    return result
