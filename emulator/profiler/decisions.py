"""What a launch with decisions=True keeps: how often warps take each loop, and which way each branch.

A row of a site is one pattern: which lanes of a warp came to the branch or the loop, and what each of them decided.
Of a loop that is the iterations that the lane began until all lanes left it. Of an if it is a code: bit 0 says whether the
condition held; where the condition is made of several by `and`, `or` and `not`, bit k says whether the k-th of them, from
the left, held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

PATTERNS = 1 << 14
"""Patterns of a site that are told apart; executions with others are counted together."""
RUNS = 1 << 12
"""Runs of equal patterns of a site that are kept in the order of execution."""
LEAVES = 8
"""Conditions of an if that have a bit each, after bit 0."""

NOTE = np.dtype(
    [("count", np.int64), ("block", np.int64), ("site", np.int32), ("warp", np.int32), ("warps", np.int32),
     ("mask", np.uint32), ("value", np.int32, (32,))]
)  # fmt: skip
"""What an engine notes: consecutive executions at one site with one pattern. count: how many there were; block, warp: of the
first; warps: how many warps took part, one after the other. value: 0 in lanes that are not in the mask."""
PATTERN = np.dtype([("count", np.int64), ("mask", np.uint32), ("value", np.int32, (32,))])
RUN = np.dtype([("block", np.int64), ("warp", np.int32), ("warps", np.int32), ("count", np.int64), ("pattern", np.int32)])
"""One run in the order of execution. pattern: the row of the site, -1 for one of those counted together."""

Notes = npt.NDArray[np.void]
_FACTORS = np.random.default_rng(18).integers(1, 1 << 62, 33, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
"""Odd factors of a hash; which ones does not matter."""


@dataclass
class SiteDecisions:
    """Of one if or loop. patterns: PATTERN[n]. runs: RUN[m], the first ones. others: executions beyond PATTERNS, and, of a
    loop, the iterations that their lanes began and that their warps took."""

    patterns: Notes = field(default_factory=lambda: np.zeros(0, PATTERN))
    runs: Notes = field(default_factory=lambda: np.zeros(0, RUN))
    others: tuple[int, int, int] = (0, 0, 0)
    _known: dict[int, int] = field(default_factory=dict, repr=False)

    def add(self, notes: Notes) -> None:
        """Take in what was noted at the site, in order."""
        hashes = hashed(notes)
        _, firsts, which = np.unique(hashes, return_index=True, return_inverse=True)
        rows = np.empty(len(firsts), np.int32)
        fresh = []
        for at, first in enumerate(firsts.tolist()):
            key = int(hashes[first])
            if key not in self._known and len(self._known) < PATTERNS:
                self._known[key] = len(self._known)
                fresh.append(first)
            rows[at] = self._known.get(key, -1)
        if fresh:
            new = np.zeros(len(fresh), PATTERN)
            new["mask"], new["value"] = notes["mask"][fresh], notes["value"][fresh]
            self.patterns = np.concatenate([self.patterns, new])
        row = rows[which]
        kept = row >= 0
        np.add.at(self.patterns["count"], row[kept], notes["count"][kept])
        if not kept.all():
            rest = notes[~kept]
            executions, began, took = self.others
            self.others = (
                executions + int(rest["count"].sum()),
                began + int((rest["count"] * rest["value"].sum(axis=1, dtype=np.int64)).sum()),
                took + int((rest["count"] * rest["value"].max(axis=1)).sum()),
            )
        if len(self.runs) < RUNS:
            chosen = slice(0, RUNS - len(self.runs))
            runs = np.zeros(len(notes[chosen]), RUN)
            for name in ("block", "warp", "warps", "count"):
                runs[name] = notes[name][chosen]
            runs["pattern"] = row[chosen]
            self.runs = np.concatenate([self.runs, runs])

    @property
    def executions(self) -> int:
        """By warps."""
        return int(self.patterns["count"].sum()) + self.others[0]


@dataclass
class Decisions:
    """Of one launch, by site; or of several launches of one kernel."""

    sites: dict[int, SiteDecisions] = field(default_factory=dict)

    def add(self, notes: Notes) -> None:
        """Take in what an engine noted, in order."""
        for site in np.unique(notes["site"]).tolist():
            self.sites.setdefault(site, SiteDecisions()).add(notes[notes["site"] == site])

    def update(self, other: Decisions) -> None:
        """Take in another launch of the same kernel."""
        for site, found in other.sites.items():
            mine = self.sites.setdefault(site, SiteDecisions())
            notes = np.zeros(len(found.patterns), NOTE)
            for name in ("count", "mask", "value"):
                notes[name] = found.patterns[name]
            before = mine.runs
            mine.add(notes)
            runs = found.runs.copy()
            rows = np.array([mine._known.get(int(key), -1) for key in hashed(found.patterns)] or [-1], np.int32)
            runs["pattern"] = np.where(runs["pattern"] >= 0, rows[np.maximum(runs["pattern"], 0)], -1)
            mine.runs = np.concatenate([before, runs])[:RUNS]
            a, b, c = found.others
            mine.others = (mine.others[0] + a, mine.others[1] + b, mine.others[2] + c)


def hashed(rows: Notes) -> npt.NDArray[np.uint64]:
    """A number a row, from its mask and values: equal for equal patterns, and different for others but by chance, once in
    2^64 pairs."""
    words = rows["value"].astype(np.uint64)
    mixed = (words ^ (words >> np.uint64(7))) * _FACTORS[:32]
    total: npt.NDArray[np.uint64] = mixed.sum(axis=1, dtype=np.uint64) + rows["mask"].astype(np.uint64) * _FACTORS[32]
    return total ^ (total >> np.uint64(29))


def together(several: Iterable[Decisions]) -> Decisions:
    """Those of several launches of one kernel, as if of one."""
    total = Decisions()
    for one in several:
        total.update(one)
    return total
