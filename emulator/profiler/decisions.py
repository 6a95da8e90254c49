"""What a launch with decisions=True keeps: how often warps take each loop, and which way each branch and division.

A pattern of a site says which lanes of a warp came to it together, and what each of them decided. Of a loop that is the
number of iterations that the lane began before all lanes had left it. Of an if it is a code: bit 0 says whether the
condition held; where it is made of several by `and`, `or`, `not`, or as equal or different, bit k says whether the k-th of them, from
the left, held.
Of a statement that divides or takes a root, bit k of its code says whether the k-th of these took a slow path (`passes.slow_paths`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .accesses import WarpAccesses
from .drawing import drawn
from .folding import ROW, Folder, Words
from .warps import WarpDecisions

PATTERNS = 1 << 14
"""Patterns of a site that are told apart; executions with others are counted together."""
TOLD, WARPS_TOLD = 1 << 16, 1 << 10
"""So many of them where blocks have them that are drawn by their numbers: with so many warps of a launch, or up to twice as many."""
RUNS = 1 << 18
"""Runs of a launch that are kept: of those blocks, or of every second, fourth, ... of them, drawn by their numbers."""

NOTE = np.dtype(
    [("count", np.int64), ("block", np.int64), ("site", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("phase", np.int32), ("value", np.int32, (32,))]
)  # fmt: skip
"""What an engine notes: executions at one site by one warp, one after the other, with one pattern, and how many they were.
phase: barriers that the block has passed. value: 0 in lanes that are not in the mask. site: that of the branch or loop;
-1 - site for lanes that leave a loop and its frame before the others, whose note follows."""
PATTERN = np.dtype([("count", np.int64), ("mask", np.uint32), ("value", np.int32, (32,))])
RUN = np.dtype(
    [("launch", np.int32), ("block", np.int64), ("warp", np.int32), ("phase", np.int32), ("pattern", np.int32), ("count", np.int64)]
)  # fmt: skip
"""Consecutive executions of a site by a warp with one pattern, between two barriers. launch: which, of several of a kernel.
pattern: the row, -1 for one of those counted together."""

SITE_RUN = np.dtype([("site", np.int32), *((name, RUN[name]) for name in RUN.names or ())])

Rows = npt.NDArray[np.void]
_FACTORS = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 64) for n in range(1, 34)], np.uint64)
"""Odd factors of a hash; which ones does not matter."""


@dataclass
class SiteDecisions:
    """Of one if or loop. patterns: PATTERN[n]. runs: RUN[m], by block and warp, in the order of execution.

    others: executions beyond PATTERNS; and, of a loop, the iterations that their lanes began, and that their warps did.
    """

    patterns: Rows = field(default_factory=lambda: np.zeros(0, PATTERN))
    runs: Rows = field(default_factory=lambda: np.zeros(0, RUN))
    others: tuple[int, int, int] = (0, 0, 0)
    _hashes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)
    _order: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @property
    def executions(self) -> int:
        """By warps."""
        return int(self.patterns["count"].sum()) + self.others[0]

    def _add(self, notes: Rows) -> None:
        """Count patterns, as notes."""
        rows = self._rows(notes)
        kept = rows >= 0
        np.add.at(self.patterns["count"], rows[kept], notes["count"][kept])
        if not kept.all():
            rest = notes[~kept]
            count, values = rest["count"], rest["value"]
            added = (
                count.sum(),
                (count * values.sum(axis=1, dtype=np.int64)).sum(),
                (count * values.max(axis=1)).sum(),
            )
            executions, began, took = (a + int(b) for a, b in zip(self.others, added, strict=True))
            self.others = (executions, began, took)

    def _rows(self, notes: Rows) -> npt.NDArray[np.int32]:
        """The row of each note's pattern; new ones are made while there is room."""
        hashes = hashed(notes)
        _, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        rows = self._known_rows(hashes[firsts])
        fresh = np.sort(firsts[rows < 0])[: TOLD - len(self.patterns)]
        if len(fresh):
            new = np.zeros(len(fresh), PATTERN)
            new["mask"], new["value"] = notes["mask"][fresh], notes["value"][fresh]
            self.patterns = np.concatenate([self.patterns, new])
            self._hashes = np.concatenate([self._hashes, hashes[fresh]])
            self._order = np.argsort(self._hashes)
            rows = self._known_rows(hashes[firsts])
        return rows[which]

    def _known_rows(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """The rows of patterns by their hashes, -1 for those that are not known."""
        if not len(self._hashes):
            return np.full(len(hashes), -1, np.int32)
        at = self._order[np.minimum(np.searchsorted(self._hashes, hashes, sorter=self._order), len(self._order) - 1)]
        return np.where(self._hashes[at] == hashes, at, -1).astype(np.int32)

    def know(self) -> None:
        """Patterns that were put in are found again."""
        self._hashes = hashed(self.patterns)
        self._order = np.argsort(self._hashes)

    def sort(self) -> None:
        """Patterns in an order that does not hang on that of blocks."""
        order = np.argsort(self._hashes)
        self.patterns, self._hashes, self._order = self.patterns[order], self._hashes[order], np.arange(len(order))
        moved = np.empty(len(order) + 1, np.int32)
        moved[order], moved[-1] = np.arange(len(order)), -1
        self.runs["pattern"] = moved[self.runs["pattern"]]

    def update(self, other: SiteDecisions, launch: int) -> None:
        """Take in those of another launch, the first of which has this number; its runs follow."""
        notes = np.zeros(len(other.patterns), NOTE)
        for name in ("count", "mask", "value"):
            notes[name] = other.patterns[name]
        before, runs = self.runs, other.runs.copy()
        runs["launch"] += launch
        self._add(notes)
        rows = np.append(self._rows(notes), np.int32(-1))
        runs["pattern"] = rows[runs["pattern"]]
        self.runs = np.concatenate([before, runs])
        executions, began, took = (a + b for a, b in zip(self.others, other.others, strict=True))
        self.others = (executions, began, took)


@dataclass
class Decisions:
    """Of one launch, by site; or of several launches of one kernel. warps: of one launch, by warp. apart: by launch, one of so
    many blocks has all its patterns told apart, as far as they go, and its runs kept. accesses: by launch,
    those of warps whose accesses are kept."""

    sites: dict[int, SiteDecisions] = field(default_factory=dict)
    warps: WarpDecisions = field(default_factory=WarpDecisions, repr=False)
    apart: list[int] = field(default_factory=list)
    accesses: list[WarpAccesses] = field(default_factory=list, repr=False)
    _folder: Folder | None = field(default=None, repr=False)
    _runs: DrawnRuns = field(default_factory=lambda: DrawnRuns(), repr=False)

    def blocks(self, launch: int, count: int) -> list[int]:
        """Of a launch's blocks those whose patterns are told apart, and whose runs are kept."""
        numbers = np.arange(count)
        return [int(n) for n in numbers[drawn(numbers, self.apart[launch] if launch < len(self.apart) else 1)]]

    @staticmethod
    def of(warps: int) -> Decisions:
        """To be filled, of a launch of so many warps."""
        return Decisions(_runs=DrawnRuns(told_of(warps)))

    def add(self, notes: Rows) -> None:
        """Take in what an engine noted: of each warp in the order of execution."""
        if len(notes):
            if self._folder is None:
                self._folder = Folder(PATTERNS, self._runs.apart, TOLD)
            self._count(self._folder.joined(np.ascontiguousarray(notes).view(np.int32)))

    def _count(self, words: Words) -> None:
        """Count whole executions, and keep the runs of drawn blocks."""
        assert self._folder is not None
        rows = self._folder.rows(words)
        self._runs.add(words.view(NOTE), rows)
        self.warps.add(words)

    def finish(self) -> Decisions:
        """When all is noted: executions that all lanes left early are whole too."""
        if self._folder is not None:
            self._count(self._folder.left())
            self._take(self._folder)
            self._folder = None
            self.warps.sort()
        self.apart = self.apart or [self._runs.apart]
        self.sites = {site: self.sites[site] for site in sorted(self.sites)}
        for one in self.sites.values():
            one.sort()
        return self

    def _take(self, folder: Folder) -> None:
        """The patterns of each site, its runs at their rows among them."""
        words, counts = folder.patterns[: folder.used[-1] * ROW].reshape(-1, ROW), folder.counts[: folder.used[-1]]
        place = np.empty(len(words) + 1, np.int32)
        place[-1] = -1
        kept = self._runs.by_site()
        for site in np.flatnonzero((folder.used[:-1] > 0) | (folder.others[::3] > 0)).tolist():
            mine = np.flatnonzero(words[:, 0] == site)
            place[mine] = np.arange(len(mine))
            found = SiteDecisions(np.zeros(len(mine), PATTERN), kept.get(site, np.zeros(0, RUN)))
            found.patterns["count"], found.patterns["mask"] = counts[mine], words[mine, 1].view(np.uint32)
            found.patterns["value"] = words[mine, 2:]
            found.runs["pattern"] = place[found.runs["pattern"]]
            executions, began, took = folder.others[3 * site : 3 * site + 3].tolist()
            found.others = executions, began, took
            found.know()
            self.sites[site] = found


def told_of(warps: int) -> int:
    """Of a launch of so many warps, one of so many blocks is told apart."""
    return max(1, warps // WARPS_TOLD)


@dataclass
class DrawnRuns:
    """Runs of a launch's blocks, from notes that come in any order of blocks. apart: one of so many blocks is kept, drawn by
    its number, at all sites; so what is kept of a block is all of it."""

    apart: int = 1
    runs: Rows = field(default_factory=lambda: np.zeros(0, SITE_RUN))
    waiting: list[Rows] = field(default_factory=list)
    _waiting: int = 0

    def add(self, notes: Rows, rows: npt.NDArray[np.int32]) -> None:
        """Take in notes and the rows of their patterns."""
        wanted = drawn(notes["block"], self.apart)
        count = int(np.count_nonzero(wanted))
        if not count:
            return
        runs = np.zeros(count, SITE_RUN)
        for name in ("site", "block", "warp", "phase", "count"):
            runs[name] = notes[name][wanted]
        runs["pattern"] = rows[wanted]
        self.waiting.append(runs)
        self._waiting += count
        if self._waiting > RUNS:
            self._settle()

    def _settle(self) -> None:
        """Sort what waits among the others, and keep fewer blocks where that is too much."""
        self.runs = joined_runs(np.concatenate([self.runs, *self.waiting]))
        self.waiting.clear()
        self._waiting = 0
        while len(self.runs) > RUNS:
            self.apart *= 2
            self.runs = self.runs[drawn(self.runs["block"], self.apart)]

    def by_site(self) -> dict[int, Rows]:
        """RUN[n] of each site."""
        self._settle()
        sites, first = np.unique(self.runs["site"], return_index=True)
        found = {}
        for site, mine in zip(sites.tolist(), np.split(self.runs, first[1:]), strict=False):
            found[site] = np.zeros(len(mine), RUN)
            for name in RUN.names or ():
                found[site][name] = mine[name]
        return found


def joined_runs(runs: Rows) -> Rows:
    """By site, block and warp; consecutive ones with one pattern are one."""
    runs = runs[np.lexsort([runs["phase"], runs["warp"], runs["block"], runs["site"]])]
    if not len(runs):
        return runs
    new = np.ones(len(runs), np.bool_)
    names = ("site", "block", "warp", "phase", "pattern")
    new[1:] = np.any([runs[name][1:] != runs[name][:-1] for name in names], axis=0)
    found: Rows = runs[new]
    found["count"] = np.add.reduceat(runs["count"], np.flatnonzero(new))
    return found


def hashed(rows: Rows) -> npt.NDArray[np.uint64]:
    """A number a row, from its mask and values: equal for equal patterns; for others only by chance, one in 2^64."""
    words = np.ascontiguousarray(rows["value"]).view(np.uint64)
    mixed = words * _FACTORS[:16]
    mixed ^= mixed >> np.uint64(31)
    total: npt.NDArray[np.uint64] = (mixed * _FACTORS[16:32]).sum(axis=1, dtype=np.uint64)
    return np.asarray(total + rows["mask"].astype(np.uint64) * _FACTORS[32], np.uint64)


def together(several: Iterable[Decisions]) -> Decisions:
    """Those of several launches of one kernel, as if of one."""
    total = Decisions()
    for one in several:
        for site, found in one.sites.items():
            total.sites.setdefault(site, SiteDecisions()).update(found, len(total.apart))
        total.apart += one.apart
        total.accesses += one.accesses or [WarpAccesses()]
    return total.finish()
