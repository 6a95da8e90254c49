"""Recorded decisions of a launch with decisions=True: the iterations of each loop, the outcome of each branch and division.

A pattern of a site is a set of lanes of a warp that execute the site together, and the decision of each. For a loop the
decision is the number of iterations that the lane began before all lanes had left it. For an `if` it is a code: bit 0 is
the condition; if it is composed by `and`, `or`, `not`, or by comparison of truth values, bit k is the k-th operand, from
the left. For a statement that divides or takes a root, bit k is set if the k-th of these uses a slow path
(`passes.slow_paths`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .accesses import WarpAccesses
from .block_sampling import sampled_blocks
from .decision_compaction import ROW, PatternTable, Words
from .warp_decisions import WarpDecisions

MAX_PATTERNS = 1 << 14
"""Patterns of a site. Executions with further patterns are counted together."""
MAX_SAMPLED_PATTERNS = 1 << 16
"""Patterns of a site, with those of sampled blocks."""
SAMPLED_WARPS = 1 << 10
"""Warps of the sampled blocks of a launch; fewer than twice as many."""
MAX_RUNS = 1 << 18
"""Runs of the sampled blocks of a launch. If there are more, only every second, fourth, ... sampled block has runs."""

NOTE = np.dtype(
    [("count", np.int64), ("block", np.int64), ("site", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("phase", np.int32), ("value", np.int32, (32,))]
)  # fmt: skip
"""A note of an engine: consecutive executions of one site by one warp with one pattern, and their count.
phase: barriers that the block has passed. value: 0 in lanes that are not in the mask. site: of the branch or loop;
-1 - site for lanes that leave a loop and its frame before the excess, whose note follows."""
PATTERN = np.dtype([("count", np.int64), ("mask", np.uint32), ("value", np.int32, (32,))])
RUN = np.dtype(
    [("launch", np.int32), ("block", np.int64), ("warp", np.int32), ("phase", np.int32), ("pattern", np.int32), ("count", np.int64)]
)  # fmt: skip
"""Consecutive executions of a site by a warp with one pattern, between two barriers. launch: its number among the launches of a kernel.
pattern: the row, -1 for executions counted together."""

SITE_RUN = np.dtype([("site", np.int32), *((name, RUN[name]) for name in RUN.names or ())])

Rows = npt.NDArray[np.void]
_FACTORS = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 64) for n in range(1, 34)], np.uint64)
"""Odd factors of a hash."""


@dataclass
class SiteDecisions:
    """Decisions at one `if` or loop. patterns: PATTERN[n]. runs: RUN[m], by block and warp, in the order of execution.

    excess: executions beyond MAX_PATTERNS; for a loop, the iterations that their lanes and their warps began.
    """

    patterns: Rows = field(default_factory=lambda: np.zeros(0, PATTERN))
    runs: Rows = field(default_factory=lambda: np.zeros(0, RUN))
    excess: tuple[int, int, int] = (0, 0, 0)
    _hashes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)
    _order: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @property
    def executions(self) -> int:
        """Executions by warps."""
        return int(self.patterns["count"].sum()) + self.excess[0]

    def _add(self, notes: Rows) -> None:
        """Count the patterns of notes."""
        rows = self._rows(notes)
        present = rows >= 0
        np.add.at(self.patterns["count"], rows[present], notes["count"][present])
        if not present.all():
            rest = notes[~present]
            count, values = rest["count"], rest["value"]
            added = (
                count.sum(),
                (count * values.sum(axis=1, dtype=np.int64)).sum(),
                (count * values.max(axis=1)).sum(),
            )
            executions, by_lanes, by_warps = (a + int(b) for a, b in zip(self.excess, added, strict=True))
            self.excess = (executions, by_lanes, by_warps)

    def _rows(self, notes: Rows) -> npt.NDArray[np.int32]:
        """Return the row of each note's pattern; add new patterns up to the limit."""
        hashes = pattern_hashes(notes)
        _, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        rows = self._rows_of_hashes(hashes[firsts])
        fresh = np.sort(firsts[rows < 0])[: MAX_SAMPLED_PATTERNS - len(self.patterns)]
        if len(fresh):
            new = np.zeros(len(fresh), PATTERN)
            new["mask"], new["value"] = notes["mask"][fresh], notes["value"][fresh]
            self.patterns = np.concatenate([self.patterns, new])
            self._hashes = np.concatenate([self._hashes, hashes[fresh]])
            self._order = np.argsort(self._hashes)
            rows = self._rows_of_hashes(hashes[firsts])
        return rows[which]

    def _rows_of_hashes(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """Return the rows of patterns by their hashes, -1 for new patterns."""
        if not len(self._hashes):
            return np.full(len(hashes), -1, np.int32)
        at = self._order[np.minimum(np.searchsorted(self._hashes, hashes, sorter=self._order), len(self._order) - 1)]
        return np.where(self._hashes[at] == hashes, at, -1).astype(np.int32)

    def index_patterns(self) -> None:
        """Index the patterns by their hashes."""
        self._hashes = pattern_hashes(self.patterns)
        self._order = np.argsort(self._hashes)

    def sort(self) -> None:
        """Sort the patterns, so that they do not depend on the order of blocks."""
        order = np.argsort(self._hashes)
        self.patterns, self._hashes, self._order = self.patterns[order], self._hashes[order], np.arange(len(order))
        new_rows = np.empty(len(order) + 1, np.int32)
        new_rows[order], new_rows[-1] = np.arange(len(order)), -1
        self.runs["pattern"] = new_rows[self.runs["pattern"]]

    def update(self, other: SiteDecisions, launch: int) -> None:
        """Add the decisions of later launches. launch: the number of the first."""
        notes = np.zeros(len(other.patterns), NOTE)
        for name in ("count", "mask", "value"):
            notes[name] = other.patterns[name]
        before, runs = self.runs, other.runs.copy()
        runs["launch"] += launch
        self._add(notes)
        rows = np.append(self._rows(notes), np.int32(-1))
        runs["pattern"] = rows[runs["pattern"]]
        self.runs = np.concatenate([before, runs])
        executions, by_lanes, by_warps = (a + b for a, b in zip(self.excess, other.excess, strict=True))
        self.excess = (executions, by_lanes, by_warps)


@dataclass
class Decisions:
    """Decisions of one launch, or of several launches of one kernel, by site.

    warps: of one launch, by warp. intervals: by launch, one of so many blocks is sampled: it has patterns up to
    MAX_SAMPLED_PATTERNS, and runs. accesses: by launch, of the warps of sampled blocks.
    """

    sites: dict[int, SiteDecisions] = field(default_factory=dict)
    warps: WarpDecisions = field(default_factory=WarpDecisions, repr=False)
    intervals: list[int] = field(default_factory=list)
    accesses: list[WarpAccesses] = field(default_factory=list, repr=False)
    _table: PatternTable | None = field(default=None, repr=False)
    _runs: SampledRuns = field(default_factory=lambda: SampledRuns(), repr=False)

    def blocks(self, launch: int, count: int) -> list[int]:
        """Return the sampled blocks of a launch of `count` blocks."""
        numbers = np.arange(count)
        interval = self.intervals[launch] if launch < len(self.intervals) else 1
        return [int(n) for n in numbers[sampled_blocks(numbers, interval)]]

    @staticmethod
    def for_warps(warps: int) -> Decisions:
        """Return empty decisions of a launch of `warps` warps."""
        return Decisions(_runs=SampledRuns(sampling_interval(warps)))

    def add(self, notes: Rows) -> None:
        """Add the notes of an engine: those of each warp in the order of execution."""
        if len(notes):
            if self._table is None:
                self._table = PatternTable(MAX_PATTERNS, self._runs.interval, MAX_SAMPLED_PATTERNS)
            self._count(self._table.merge_lanes(np.ascontiguousarray(notes).view(np.int32)))

    def _count(self, words: Words) -> None:
        """Count complete executions, and add the runs of sampled blocks."""
        assert self._table is not None
        rows = self._table.count(words)
        self._runs.add(words.view(NOTE), rows)
        self.warps.add(words)

    def finish(self) -> Decisions:
        """Complete the decisions after the last note: executions that all lanes left early are complete now."""
        if self._table is not None:
            self._count(self._table.flush())
            self._add_sites(self._table)
            self._table = None
            self.warps.sort()
        self.intervals = self.intervals or [self._runs.interval]
        self.sites = {site: self.sites[site] for site in sorted(self.sites)}
        for site in self.sites.values():
            site.sort()
        return self

    def _add_sites(self, table: PatternTable) -> None:
        """Add the patterns of each site, and its runs."""
        words, counts = table.patterns[: table.used[-1] * ROW].reshape(-1, ROW), table.counts[: table.used[-1]]
        new_rows = np.empty(len(words) + 1, np.int32)
        new_rows[-1] = -1
        runs = self._runs.by_site()
        for site in np.flatnonzero((table.used[:-1] > 0) | (table.excess[::3] > 0)).tolist():
            rows = np.flatnonzero(words[:, 0] == site)
            new_rows[rows] = np.arange(len(rows))
            result = SiteDecisions(np.zeros(len(rows), PATTERN), runs.get(site, np.zeros(0, RUN)))
            result.patterns["count"], result.patterns["mask"] = counts[rows], words[rows, 1].view(np.uint32)
            result.patterns["value"] = words[rows, 2:]
            result.runs["pattern"] = new_rows[result.runs["pattern"]]
            executions, by_lanes, by_warps = table.excess[3 * site : 3 * site + 3].tolist()
            result.excess = executions, by_lanes, by_warps
            result.index_patterns()
            self.sites[site] = result


def sampling_interval(warps: int) -> int:
    """Return the interval of sampled blocks of a launch: one of so many blocks is sampled."""
    return max(1, warps // SAMPLED_WARPS)


@dataclass
class SampledRuns:
    """Runs of the sampled blocks of a launch, from notes in any order of blocks.

    interval: one of so many blocks is sampled, at all sites, so the runs of a sampled block are complete.
    """

    interval: int = 1
    runs: Rows = field(default_factory=lambda: np.zeros(0, SITE_RUN))
    pending: list[Rows] = field(default_factory=list)
    _pending_rows: int = 0

    def add(self, notes: Rows, rows: npt.NDArray[np.int32]) -> None:
        """Add notes and the rows of their patterns."""
        sampled = sampled_blocks(notes["block"], self.interval)
        count = int(np.count_nonzero(sampled))
        if not count:
            return
        runs = np.zeros(count, SITE_RUN)
        for name in ("site", "block", "warp", "phase", "count"):
            runs[name] = notes[name][sampled]
        runs["pattern"] = rows[sampled]
        self.pending.append(runs)
        self._pending_rows += count
        if self._pending_rows > MAX_RUNS:
            self._merge_pending()

    def _merge_pending(self) -> None:
        """Merge the pending runs into the excess; sample fewer blocks if there are too many."""
        self.runs = merge_runs(np.concatenate([self.runs, *self.pending]))
        self.pending.clear()
        self._pending_rows = 0
        while len(self.runs) > MAX_RUNS:
            self.interval *= 2
            self.runs = self.runs[sampled_blocks(self.runs["block"], self.interval)]

    def by_site(self) -> dict[int, Rows]:
        """Return RUN[n] of each site."""
        self._merge_pending()
        sites, first = np.unique(self.runs["site"], return_index=True)
        result = {}
        for site, rows in zip(sites.tolist(), np.split(self.runs, first[1:]), strict=False):
            result[site] = np.zeros(len(rows), RUN)
            for name in RUN.names or ():
                result[site][name] = rows[name]
        return result


def merge_runs(runs: Rows) -> Rows:
    """Sort runs by site, block and warp, and merge consecutive runs of one pattern."""
    runs = runs[np.lexsort([runs["phase"], runs["warp"], runs["block"], runs["site"]])]
    if not len(runs):
        return runs
    first = np.ones(len(runs), np.bool_)
    names = ("site", "block", "warp", "phase", "pattern")
    first[1:] = np.any([runs[name][1:] != runs[name][:-1] for name in names], axis=0)
    merged: Rows = runs[first]
    merged["count"] = np.add.reduceat(runs["count"], np.flatnonzero(first))
    return merged


def pattern_hashes(rows: Rows) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of the mask and the values of each row."""
    words = np.ascontiguousarray(rows["value"]).view(np.uint64)
    mixed = words * _FACTORS[:16]
    mixed ^= mixed >> np.uint64(31)
    total: npt.NDArray[np.uint64] = (mixed * _FACTORS[16:32]).sum(axis=1, dtype=np.uint64)
    return np.asarray(total + rows["mask"].astype(np.uint64) * _FACTORS[32], np.uint64)


def merge(launches: Iterable[Decisions]) -> Decisions:
    """Merge the decisions of several launches of one kernel."""
    total = Decisions()
    for decisions in launches:
        for site, added in decisions.sites.items():
            total.sites.setdefault(site, SiteDecisions()).update(added, len(total.intervals))
        total.intervals += decisions.intervals
        total.accesses += decisions.accesses or [WarpAccesses()]
    return total.finish()
