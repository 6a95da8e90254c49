"""Memory traffic of a launch by source site and class of warps."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .access_lines import Kind, Total
from .line_trace import Words as Numbers

Floats = npt.NDArray[np.float64]

Column = IntEnum(
    "Column",
    "SECTORS L1_HITS NEAR_HITS FAR_HITS MISSES ACCESSES LINES UNPAIRED_SECTORS L2_REQUESTS CYCLES "
    "MERGEABLE_SECTORS NON_ADJACENT L2_WAITS FAR_WAITS DRAM_WAITS STORE_REHITS STORE_REUSE_DISTANCE "
    "SAME_SECTORS PARTIAL_SECTORS REPEATED_WAITS SHARED_SECTORS",
    start=0,
)
"""Columns of a site. Sectors requested; those answered by L1, the near and far half of L2, and device memory; accesses;
lines touched; missing sectors without a pair (device memory transfers two); lines requested from L2; L1 cycles; store
sectors mergeable with earlier ones of the warp; accesses with non-adjacent lines; accesses that wait for L2, its far half
and device memory, by their farthest line (requests of other warps in flight count); lines of stores to lines of an earlier
store of the warp; the distance to these, in store lines; accesses to the sectors of the warp's previous one; partially
written sectors; accesses that wait for L2 directly after another one of the warp; sectors of bulk copies, of lines that another SM
copied last."""
COLUMNS = len(Column)
SHARED_COST = 0.4
"""Sectors that L2 reads for a shared sector: requests of several SMs merge. Nsight Compute counted 0.49 to 0.74 for
products on an H200, with the sectors that the halves of L2 exchange: up to half as many again."""


@dataclass(frozen=True)
class Traffic:
    """Traffic of the memories in a launch. Sectors have 32 bytes.

    sites: int64[site, COLUMNS], of all blocks. sampled: int64[class, site, COLUMNS], of sampled lines and of accesses
    with such. distinct_lines: int64[class, site], sampled. dram_read, dram_written: bytes; dram_filled: read for
    partially written lines; dram_wasted: bytes of unused transfer slots. sampling_stride: one of so many lines is
    sampled. traced_blocks: simulated, of `blocks`; the others repeat the middle ones. merge_ratio: fraction of
    mergeable store sectors that merge.
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
        """Return the sum of a column over all sites, or those of some kinds."""
        rows = self.sites if not kinds else self.sites[np.isin(self.kinds, kinds)]
        return int(rows[:, column].sum())

    @property
    def merge_bound(self) -> float:
        """Upper bound of merge_ratio if loads and runs of stores alternate: a load outlasts open lines."""
        loads, stores = (
            self.total(Column.ACCESSES, Kind.LOAD, Kind.LOCAL_LOAD),
            self.total(Column.ACCESSES, Kind.STORE, Kind.LOCAL_STORE),
        )
        mergeable = self.total(Column.MERGEABLE_SECTORS) / max(
            self.total(Column.SECTORS, Kind.STORE, Kind.LOCAL_STORE), 1
        )
        return min(1.0, max(0.0, 1.0 - loads / stores) / mergeable) if stores and mergeable else 1.0

    @cached_property
    def classes(self) -> Floats:
        """float64[class, site, COLUMNS], estimated from the samples; without ACCESSES if lines were sampled."""
        totals = self.sampled.sum(axis=0)
        share = np.divide(self.sampled, totals, out=np.zeros(self.sampled.shape), where=totals > 0)
        result: Floats = self.sites * share
        result[:, :, Column.CYCLES] = self.sites[:, Column.CYCLES] * share[:, :, Column.LINES]
        result[:, :, Column.NON_ADJACENT] = self.sites[:, Column.NON_ADJACENT] * share[:, :, Column.ACCESSES]
        if self.sampling_stride > 1:
            result[:, :, Column.ACCESSES] = 0.0
        return result

    @property
    def l1_hit(self) -> float:
        """Fraction of load sectors answered by L1."""
        requested = self.total(Column.SECTORS, 0)
        return self.total(Column.L1_HITS, 0) / requested if requested else 0.0

    @property
    def l2_sectors(self) -> int:
        """Sectors requested from L2: L1 load misses, stores, atomics."""
        return (
            self.total(Column.SECTORS)
            - self.total(Column.L1_HITS)
            - round(self.merge_ratio * self.total(Column.MERGEABLE_SECTORS))
        )

    @property
    def merged_copies(self) -> float:
        """Sectors of bulk copies that merge with requests of other SMs."""
        return (1 - SHARED_COST) * self.total(Column.SHARED_SECTORS)

    @property
    def stored(self) -> tuple[float, float]:
        """Requests and sectors of stores sent to L2: one request per line; for local arrays, one per partial sector."""
        lines, sectors = (
            self.total(Column.LINES, Kind.STORE, Kind.LOCAL_STORE),
            self.total(Column.SECTORS, Kind.STORE, Kind.LOCAL_STORE),
        )
        merged_lines = lines - self.total(Column.L2_REQUESTS, Kind.STORE, Kind.LOCAL_STORE)
        local = max(
            0, self.total(Column.PARTIAL_SECTORS, Kind.LOCAL_STORE) - self.total(Column.LINES, Kind.LOCAL_STORE)
        )
        return lines + local - self.merge_ratio * merged_lines, sectors - self.merge_ratio * self.total(
            Column.MERGEABLE_SECTORS
        )

    @property
    def l2_hit(self) -> float:
        """Fraction of L2 sectors found in the near half, as counted by Nsight Compute. Stores always hit."""
        requested = self.l2_sectors
        unmerged = self.total(Column.MERGEABLE_SECTORS) - round(self.merge_ratio * self.total(Column.MERGEABLE_SECTORS))
        return (self.total(Column.NEAR_HITS) + unmerged) / requested if requested else 0.0

    @property
    def dram_bytes(self) -> int:
        return self.dram_read + self.dram_written


def scale_to_launch(sampled: Numbers, totals: Numbers, kinds: Numbers, has_l1: bool) -> Numbers:
    """Scale sampled columns to all accesses. Sites without sampled lines touch few lines, assumed in L1 or, without it, in L2."""
    result = sampled.copy()
    result[
        :,
        [
            Column.ACCESSES,
            Column.LINES,
            Column.SECTORS,
            Column.CYCLES,
            Column.NON_ADJACENT,
            Column.SAME_SECTORS,
            Column.PARTIAL_SECTORS,
        ],
    ] = totals
    answered = [
        Column.L1_HITS, Column.NEAR_HITS, Column.FAR_HITS, Column.MISSES, Column.UNPAIRED_SECTORS, Column.L2_REQUESTS,
        Column.MERGEABLE_SECTORS, Column.STORE_REHITS, Column.STORE_REUSE_DISTANCE, Column.SHARED_SECTORS,
    ]  # fmt: skip
    for site in np.flatnonzero(totals[:, Total.SECTORS]):
        sectors, row = int(totals[site, Total.SECTORS]), sampled[site]
        if row[Column.SECTORS]:
            result[site, answered] = np.rint(row[answered] * (sectors / row[Column.SECTORS]))
        elif has_l1 and kinds[site] in (Kind.LOAD, Kind.LOCAL_LOAD):
            result[site, Column.L1_HITS] = sectors
        else:
            result[site, Column.NEAR_HITS], result[site, Column.FAR_HITS] = sectors - sectors // 2, sectors // 2
            result[site, Column.L2_REQUESTS] = totals[site, Total.LINES]
    return result
