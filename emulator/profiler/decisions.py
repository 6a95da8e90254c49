"""What a launch with decisions=True keeps: how often warps take each loop, and which way each branch.

A pattern of a site says which lanes of a warp came to it together, and what each of them decided. Of a loop that is the
number of iterations that the lane began before all lanes had left it. Of an if it is a code: bit 0 says whether the
condition held; where the condition is made of several by `and`, `or` and `not`, bit k says whether the k-th of them, from
the left, held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

PATTERNS = 1 << 14
"""Patterns of a site that are told apart; executions with others are counted together."""
RUNS = 1 << 12
"""Runs of a site that are kept: those of the first blocks."""

NOTE = np.dtype(
    [("count", np.int64), ("block", np.int64), ("site", np.int32), ("warp", np.int32), ("mask", np.uint32),
     ("phase", np.int32), ("value", np.int32, (32,))]
)  # fmt: skip
"""What an engine notes: executions at one site by one warp, one after the other, with one pattern, and how many they were.
phase: barriers that the block has passed. value: 0 in lanes that are not in the mask. site: that of the branch or loop;
-1 - site for lanes that leave a loop and its frame before the others, whose note follows."""
PATTERN = np.dtype([("count", np.int64), ("mask", np.uint32), ("value", np.int32, (32,))])
RUN = np.dtype(
    [("block", np.int64), ("warp", np.int32), ("phase", np.int32), ("pattern", np.int32), ("count", np.int64)]
)
"""Consecutive executions of a site by a warp with one pattern, between two barriers. pattern: the row, -1 for one of those
counted together."""

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

    def add(self, notes: Rows) -> None:
        """Take in what was noted at the site, in order."""
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
        if len(self.runs) == RUNS and notes["block"].min() > self.runs["block"][-1]:
            return
        runs = np.zeros(len(notes), RUN)
        for name in ("block", "warp", "phase", "count"):
            runs[name] = notes[name]
        runs["pattern"] = rows
        self.runs = first_runs(np.concatenate([self.runs, runs]))

    def _rows(self, notes: Rows) -> npt.NDArray[np.int32]:
        """The row of each note's pattern; new ones are made while there is room."""
        hashes = hashed(notes)
        _, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        rows = self._known_rows(hashes[firsts])
        fresh = np.sort(firsts[rows < 0])[: PATTERNS - len(self.patterns)]
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

    def sort(self) -> None:
        """Patterns in an order that does not hang on that of blocks."""
        order = np.argsort(self._hashes)
        self.patterns, self._hashes, self._order = self.patterns[order], self._hashes[order], np.arange(len(order))
        moved = np.empty(len(order) + 1, np.int32)
        moved[order], moved[-1] = np.arange(len(order)), -1
        self.runs["pattern"] = moved[self.runs["pattern"]]

    def update(self, other: SiteDecisions) -> None:
        """Take in those of another launch; its runs follow."""
        notes = np.zeros(len(other.patterns), NOTE)
        for name in ("count", "mask", "value"):
            notes[name] = other.patterns[name]
        before, runs = self.runs, other.runs.copy()
        self.add(notes)
        rows = np.append(self._rows(notes), np.int32(-1))
        runs["pattern"] = rows[runs["pattern"]]
        self.runs = np.concatenate([before, runs])[:RUNS]
        executions, began, took = (a + b for a, b in zip(self.others, other.others, strict=True))
        self.others = (executions, began, took)


@dataclass
class Decisions:
    """Of one launch, by site; or of several launches of one kernel."""

    sites: dict[int, SiteDecisions] = field(default_factory=dict)
    _apart: dict[tuple[int, int, int], Rows] = field(default_factory=dict, repr=False)
    _parted: set[int] = field(default_factory=set, repr=False)

    def add(self, notes: Rows) -> None:
        """Take in what an engine noted: of each warp in the order of execution."""
        if not len(notes):
            return
        self._parted |= {-1 - site for site in np.unique(notes["site"][notes["site"] < 0]).tolist()}
        sites = np.where(notes["site"] < 0, -1 - notes["site"], notes["site"])
        notes = notes[np.argsort(sites, kind="stable")]
        found, counts = np.unique(sites, return_counts=True)
        for site, mine in zip(found.tolist(), np.split(notes, np.cumsum(counts)[:-1]), strict=True):
            if site in self._parted:
                joined = list(self._joined(site, mine))
                mine = np.concatenate(joined) if joined else mine[:0]
            if len(mine):
                self.sites.setdefault(site, SiteDecisions()).add(mine)

    def _joined(self, site: int, notes: Rows) -> Iterator[Rows]:
        """Lanes that left early together with those of the same execution that left later."""
        for at in range(len(notes)):
            note = notes[at : at + 1].copy()
            key = (site, int(note["block"][0]), int(note["warp"][0]))
            before = self._apart.pop(key, None)
            if before is not None and not (before["mask"] & note["mask"]).any():
                note["mask"] |= before["mask"]
                note["value"] += before["value"]
            elif before is not None:
                yield before
            if note["site"][0] >= 0:
                yield note
            else:
                self._apart[key] = note

    def finish(self) -> Decisions:
        """When all is noted: executions that all lanes left early are whole too."""
        for (site, _, _), note in self._apart.items():
            self.sites.setdefault(site, SiteDecisions()).add(note)
        self._apart.clear()
        self.sites = {site: self.sites[site] for site in sorted(self.sites)}
        for one in self.sites.values():
            one.sort()
        return self


def first_runs(runs: Rows) -> Rows:
    """Those of the first blocks, by block and warp; consecutive ones with one pattern are one."""
    runs = runs[np.lexsort([runs["phase"], runs["warp"], runs["block"]])]
    if not len(runs):
        return runs
    new = np.ones(len(runs), np.bool_)
    new[1:] = np.any([runs[name][1:] != runs[name][:-1] for name in ("block", "warp", "phase", "pattern")], axis=0)
    found: Rows = runs[new]
    found["count"] = np.add.reduceat(runs["count"], np.flatnonzero(new))
    return found[:RUNS]


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
            total.sites.setdefault(site, SiteDecisions()).update(found)
    return total.finish()
