"""Notes of decisions, folded by compiled code: equal ones become one pattern with a count."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64
from ..native import native
from .drawing import is_drawn

WORDS = 40
"""4-byte words of a note: count and block, two each, then site, warp, mask and phase, then the 32 values."""
ROW = 34
"""Words of a pattern: its site, its mask, the values."""
_SLOTS = 1 << 10
"""Of a table, at first."""
_FACTORS = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 63) for n in range(1, 18)], np.int64)
"""Odd factors of a hash; which ones does not matter."""

Words = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


@st.device
def _mixed(hash: i64) -> i64:
    """Bits of a sum spread to the low ones."""
    return (hash ^ (hash >> 29)) * 0x1E3779B97F4A7C15


@st.device
def pair(low: i32, high: i32) -> i64:
    """Two words that lie beside each other, as one."""
    return (i64(low) & 0xFFFFFFFF) | (i64(high) << 32)


@native
def _join(
    notes: Global[i32], count: i64, table: Global[i32], kept: Global[i32], size: i64, parted: Global[i32], out: Global[i32],
    made: Global[i64], until: Global[i64],
) -> None:  # fmt: skip
    """Lanes that left an execution early together with those that left later: out holds the whole ones.

    table: int32[size], a power of two, for each slot 1 where `kept` has a note there. made: out's notes, and slots in use.
    until: where the notes end that were taken; before all are, half of the slots are in use.
    """
    for n in range(count):
        at = i64(40) * n
        site = notes[at + 4]
        alone = site < 0
        if alone:
            site = -1 - site
            parted[i64(site)] = 1
        joined = False
        if parted[i64(site)] != 0:
            if 2 * made[1] >= size:
                until[0] = n
                return
            slot = _mixed(i64(notes[at + 2]) * 1000003 + i64(site) * 8191 + i64(notes[at + 5])) >> 20 & size - 1
            while table[slot] != 0 and not (
                kept[40 * slot + 4] == site and kept[40 * slot + 5] == notes[at + 5] and kept[40 * slot + 2] == notes[at + 2]
                and kept[40 * slot + 3] == notes[at + 3]
            ):  # fmt: skip
                slot = slot + 1 & size - 1
            waiting = table[slot] != 0 and kept[40 * slot + 6] != 0
            if waiting and (kept[40 * slot + 6] & notes[at + 6]) != 0:
                for k in range(i64(40)):
                    out[40 * made[0] + k] = kept[40 * slot + k]
                made[0] += 1
                waiting = False
            if alone or waiting:
                if table[slot] == 0:
                    table[slot] = 1
                    made[1] += 1
                if waiting:
                    kept[40 * slot + 6] |= notes[at + 6]
                    kept[40 * slot + 7] = notes[at + 7]
                    for k in range(i64(8), i64(40)):
                        kept[40 * slot + k] += notes[at + k]
                else:
                    for k in range(i64(40)):
                        kept[40 * slot + k] = notes[at + k]
                    kept[40 * slot + 4] = site
            elif table[slot] != 0:
                kept[40 * slot + 6] = 0
            joined = alone or waiting
            if waiting and not alone:
                for k in range(i64(40)):
                    out[40 * made[0] + k] = kept[40 * slot + k]
                made[0] += 1
                kept[40 * slot + 6] = 0
        if not joined:
            for k in range(i64(40)):
                out[40 * made[0] + k] = notes[at + k]
            made[0] += 1
    until[0] = count


@native
def _fold(
    notes: Global[i32], pairs: Global[i64], first: i64, count: i64, factors: Global[i64], table: Global[i32], size: i64,
    patterns: Global[i64], counts: Global[i64], used: Global[i64], sites: i64, most: i64, apart: i64, told: i64,
    others: Global[i64], rows: Global[i32], until: Global[i64],
) -> None:  # fmt: skip
    """Count the notes from `first` on at their patterns: rows[n] is that of note n, -1 for one beyond `most` of its site, or beyond
    `told` where its block is one of those drawn of which one of `apart` is.

    pairs: the notes, and patterns: the known ones, two words at a time. table: int32[size], a power of two, the row of a pattern plus 1
    by its hash. used: patterns of each site, then of all. others: int64[sites, 3]. until: where the notes end that were counted; before
    all are, half of the slots are in use.
    """
    for n in range(first, count):
        if 2 * used[sites] >= size:
            until[0] = n
            return
        at = i64(40) * n
        site, mask = notes[at + 4], notes[at + 6]
        which = pair(site, mask)
        hash = which * factors[0]
        for k in range(i64(16)):
            hash += pairs[20 * n + 4 + k] * factors[1 + k]
        slot = _mixed(hash) >> 20 & size - 1
        found = i64(-1)
        while found < 0 and table[slot] != 0:
            row = i64(table[slot]) - 1
            differ = patterns[17 * row] ^ which
            for k in range(i64(16)):
                differ |= patterns[17 * row + 1 + k] ^ pairs[20 * n + 4 + k]
            if differ == 0:
                found = row
            else:
                slot = slot + 1 & size - 1
        times, room = pairs[20 * n], most
        if found < 0 and used[i64(site)] >= most:
            room = told if is_drawn(pairs[20 * n + 1], apart) else most
        if found < 0 and used[i64(site)] < room:
            found = used[sites]
            used[sites] += 1
            used[i64(site)] += 1
            table[slot] = i32(found + 1)
            counts[found] = 0
            patterns[17 * found] = which
            for k in range(i64(16)):
                patterns[17 * found + 1 + k] = pairs[20 * n + 4 + k]
        if found >= 0:
            counts[found] += times
        else:
            began, took = i64(0), i64(0)
            for lane in range(i64(32)):
                began += i64(notes[at + 8 + lane])
                took = max(took, i64(notes[at + 8 + lane]))
            others[3 * i64(site)] += times
            others[3 * i64(site) + 1] += times * began
            others[3 * i64(site) + 2] += times * took
        rows[n] = i32(found)
    until[0] = count


@native
def _enter(patterns: Global[i64], count: i64, factors: Global[i64], table: Global[i32], size: i64) -> None:
    """Enter patterns, none twice, into an empty table."""
    for row in range(count):
        hash = i64(0)
        for k in range(i64(17)):
            hash += patterns[17 * row + k] * factors[k]
        slot = _mixed(hash) >> 20 & size - 1
        while table[slot] != 0:
            slot = slot + 1 & size - 1
        table[slot] = i32(row + 1)


class Folder:
    """Patterns of many notes, and notes of lanes that wait for others of their execution."""

    def __init__(self, most: int, apart: int, told: int) -> None:
        """most: patterns of a site; told: those where a block has them of which one of `apart` is drawn."""
        self.most, self.apart, self.told, self.sites = most, apart, told, 0
        self.table, self.patterns = np.zeros(_SLOTS, np.int32), np.zeros(_SLOTS // 2 * ROW, np.int32)
        self.counts, self.used, self.others = (np.zeros(n, np.int64) for n in (_SLOTS // 2, 1, 0))
        self.parted, self.waiting = np.zeros(0, np.int32), np.zeros(_SLOTS, np.int32)
        self.kept, self.slots = np.zeros(_SLOTS * WORDS, np.int32), 0

    def joined(self, notes: Words) -> Words:
        """Those of whole executions, in order; others are kept until the rest of their execution is noted."""
        given = notes.reshape(-1, WORDS)
        self._provide(given[:, 4])
        if not self.parted.any() and given[:, 4].min() >= 0:
            return notes
        found, until = list[Words](), np.zeros(1, np.int64)
        while len(given):
            out, made = np.empty(2 * given.size, np.int32), np.array([0, self.slots], np.int64)
            rest = np.ascontiguousarray(given).reshape(-1)
            _join(rest, len(given), self.waiting, self.kept, len(self.waiting), self.parted, out, made, until)
            self.slots = int(made[1])
            found.append(out[: made[0] * WORDS])
            given = given[until[0] :]
            if len(given):
                self._make_room()
        return np.concatenate(found)

    def left(self) -> Words:
        """When all is noted: those that waited for no one."""
        kept = self.kept.reshape(-1, WORDS)
        found: Words = kept[(self.waiting != 0) & (kept[:, 6] != 0)].reshape(-1)
        self.waiting[:], self.slots = 0, 0
        return found

    def rows(self, notes: Words) -> Words:
        """Count notes of whole executions: the row of each one's pattern, -1 beyond the most of its site."""
        count, done, until = len(notes) // WORDS, 0, np.zeros(1, np.int64)
        rows = np.empty(count, np.int32)
        while done < count:
            _fold(
                notes, notes.view(np.int64), done, count, _FACTORS, self.table, len(self.table),
                self.patterns.view(np.int64), self.counts, self.used, self.sites, self.most, self.apart, self.told,
                self.others, rows, until,
            )  # fmt: skip
            done = int(until[0])
            if done < count:
                self._grow()
        return rows

    def _provide(self, sites: Words) -> None:
        """Room for the sites of notes."""
        sites_now = int(np.maximum(sites, -1 - sites).max()) + 1
        more = sites_now - self.sites
        if more > 0:
            self.used = np.concatenate([self.used[:-1], np.zeros(more, np.int64), self.used[-1:]])
            self.others = np.concatenate([self.others, np.zeros(3 * more, np.int64)])
            self.parted = np.concatenate([self.parted, np.zeros(more, np.int32)])
            self.sites = sites_now

    def _make_room(self) -> None:
        """For lanes that wait: without those that wait no more, and of twice the size where that is not enough."""
        waiting = self.left()
        size = len(self.waiting) * (2 if 4 * len(waiting) // WORDS > len(self.waiting) else 1)
        self.waiting, self.kept = np.zeros(size, np.int32), np.zeros(size * WORDS, np.int32)
        if len(waiting):
            waiting.reshape(-1, WORDS)[:, 4] = -1 - waiting.reshape(-1, WORDS)[:, 4]
            out, made, until = np.empty(2 * len(waiting), np.int32), np.zeros(2, np.int64), np.zeros(1, np.int64)
            _join(waiting, len(waiting) // WORDS, self.waiting, self.kept, size, self.parted, out, made, until)
            self.slots = int(made[1])

    def _grow(self) -> None:
        """Patterns in a table of twice the size, at the rows they have."""
        known, size = int(self.used[-1]), 2 * len(self.table)
        self.patterns = np.concatenate([self.patterns, np.zeros(len(self.patterns), np.int32)])
        self.counts = np.concatenate([self.counts, np.zeros(len(self.counts), np.int64)])
        self.table = np.zeros(size, np.int32)
        _enter(self.patterns.view(np.int64), known, _FACTORS, self.table, size)
