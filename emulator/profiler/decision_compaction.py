"""Compaction of recorded decisions: a hash table counts equal ones as one pattern. Its loops are native code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64
from ..language.intrinsics import WARP_SIZE
from ..native import native
from .block_sampling import is_sampled

WORDS = 40
"""4-byte words of a note: count and block, two each, then site, warp, mask and phase, then the 32 values."""
ROW = 34
"""Words of a pattern: its site, its mask, the values."""
_SLOTS = 1 << 10
"""Initial size of a table."""
_FACTORS = np.array([pow(0x9E3779B97F4A7C15, n, 1 << 63) for n in range(1, 18)], np.int64)
"""Odd factors of a hash."""

Words = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


@st.device
def _mix(hash: i64) -> i64:
    """Spread the bits of a sum to the low bits."""
    return (hash ^ (hash >> 29)) * 0x1E3779B97F4A7C15


@st.device
def pair(low: i32, high: i32) -> i64:
    """Return two adjacent words as one."""
    return (i64(low) & 0xFFFFFFFF) | (i64(high) << 32)


# ------------------------------------------------------------------ lanes of one execution
class PendingTable(NamedTuple):
    """Hash table of executions that some of their lanes left early. slots: int32[size], a power of two, 1 if `notes` has an
    entry there; its mask is 0 once the execution is complete."""

    slots: Global[i32]
    notes: Global[i32]
    size: i64


_MERGED, _USED_SLOTS, _READ = range(3)
"""Columns of `progress`: notes in the output, slots in use, notes read."""


@st.device
def _copy_note(source: Global[i32], row: i64, target: Global[i32], to: i64) -> None:
    for k in range(i64(WORDS)):
        target[WORDS * to + k] = source[WORDS * row + k]


@st.device
def _pending_slot(notes: Global[i32], at: i64, site: i32, pending: PendingTable) -> i64:
    """Return the slot of the execution of a note: its site, warp and block."""
    slot = _mix(i64(notes[at + 2]) * 1000003 + i64(site) * 8191 + i64(notes[at + 5])) >> 20 & pending.size - 1
    while pending.slots[slot] != 0:
        own = WORDS * slot
        same = pending.notes[own + 4] == site and pending.notes[own + 5] == notes[at + 5]
        if same and pending.notes[own + 2] == notes[at + 2] and pending.notes[own + 3] == notes[at + 3]:
            return slot
        slot = slot + 1 & pending.size - 1
    return slot


@st.device
def _append(source: Global[i32], row: i64, out: Global[i32], progress: Global[i64]) -> None:
    _copy_note(source, row, out, progress[_MERGED])
    progress[_MERGED] += 1


@st.device
def _merge_note(
    notes: Global[i32], n: i64, site: i32, pending: PendingTable, out: Global[i32], progress: Global[i64]
) -> None:
    """Merge the note of a site with early lanes into the pending note of its execution; output it if it is complete."""
    at = i64(WORDS) * n
    early = notes[at + 4] < 0
    slot = _pending_slot(notes, at, site, pending)
    own = WORDS * slot
    waiting = pending.slots[slot] != 0 and pending.notes[own + 6] != 0
    if waiting and (pending.notes[own + 6] & notes[at + 6]) != 0:  # of an earlier execution
        _append(pending.notes, slot, out, progress)
        waiting = False
    if not early and not waiting:
        if pending.slots[slot] != 0:
            pending.notes[own + 6] = 0
        _append(notes, n, out, progress)
        return
    if pending.slots[slot] == 0:
        pending.slots[slot] = 1
        progress[_USED_SLOTS] += 1
    if waiting:
        pending.notes[own + 6] |= notes[at + 6]
        pending.notes[own + 7] = notes[at + 7]
        for k in range(i64(8), i64(WORDS)):
            pending.notes[own + k] += notes[at + k]
    else:
        _copy_note(notes, n, pending.notes, slot)
        pending.notes[own + 4] = site
    if waiting and not early:
        _append(pending.notes, slot, out, progress)
        pending.notes[own + 6] = 0


@native
def _merge_lanes(
    notes: Global[i32],
    count: i64,
    early_sites: Global[i32],
    pending: PendingTable,
    out: Global[i32],
    progress: Global[i64],
) -> None:
    """Merge the lanes that left an execution early with the excess: out gets the complete executions.

    early_sites: by site, whether lanes have left it early. Stops before all notes are read if half of the slots are in use.
    """
    for n in range(count):
        site = notes[i64(WORDS) * n + 4]
        if site < 0:
            site = -1 - site
            early_sites[i64(site)] = 1
        if early_sites[i64(site)] == 0:
            _append(notes, n, out, progress)
        elif 2 * progress[_USED_SLOTS] >= pending.size:
            progress[_READ] = n
            return
        else:
            _merge_note(notes, n, site, pending, out, progress)
    progress[_READ] = count


# ------------------------------------------------------------------ patterns
class Notes(NamedTuple):
    """Notes of complete executions, by 4-byte words and by pairs of them."""

    words: Global[i32]
    pairs: Global[i64]
    length: i64


class PatternArrays(NamedTuple):
    """Hash table of patterns. slots: int32[size], a power of two, the row of a pattern plus 1. patterns: int64[row, 17].
    counts: executions by row. used: patterns of each site, then of all. excess: int64[sites, 3], see `SiteDecisions.excess`."""

    factors: Global[i64]
    slots: Global[i32]
    size: i64
    patterns: Global[i64]
    counts: Global[i64]
    used: Global[i64]
    sites: i64
    excess: Global[i64]


class Limits(NamedTuple):
    """Maximum numbers of patterns of a site. sampled: for patterns of sampled blocks, of which one of `interval` is."""

    patterns: i64
    sampled: i64
    interval: i64


@st.device
def _pattern_slot(notes: Notes, n: i64, which: i64, table: PatternArrays) -> i64:
    """Return the slot of a note's pattern, or the empty slot for it. which: site and mask."""
    hash = which * table.factors[0]
    for k in range(i64(16)):
        hash += notes.pairs[20 * n + 4 + k] * table.factors[1 + k]
    slot = _mix(hash) >> 20 & table.size - 1
    while table.slots[slot] != 0:
        row = i64(table.slots[slot]) - 1
        differ = table.patterns[17 * row] ^ which
        for k in range(i64(16)):
            differ |= table.patterns[17 * row + 1 + k] ^ notes.pairs[20 * n + 4 + k]
        if differ == 0:
            return slot
        slot = slot + 1 & table.size - 1
    return slot


@st.device
def _is_within_limits(notes: Notes, n: i64, site: i64, table: PatternArrays, limits: Limits) -> bool:
    if table.used[site] < limits.patterns:
        return True
    return table.used[site] < limits.sampled and is_sampled(notes.pairs[20 * n + 1], limits.interval)


@native
def _count_patterns(
    notes: Notes, first: i64, table: PatternArrays, limits: Limits, rows: Global[i32], read: Global[i64]
) -> None:
    """Count the notes from `first` on at their patterns. rows[n]: the row of note n's pattern, -1 beyond the limits.

    read: the end of the notes counted; not all are if half of the slots are in use.
    """
    for n in range(first, notes.length):
        if 2 * table.used[table.sites] >= table.size:
            read[0] = n
            return
        at = i64(WORDS) * n
        site = i64(notes.words[at + 4])
        which = pair(notes.words[at + 4], notes.words[at + 6])
        slot = _pattern_slot(notes, n, which, table)
        executions = notes.pairs[20 * n]
        row = i64(table.slots[slot]) - 1
        if row < 0 and _is_within_limits(notes, n, site, table, limits):
            row = table.used[table.sites]
            table.used[table.sites] += 1
            table.used[site] += 1
            table.slots[slot] = i32(row + 1)
            table.counts[row] = 0
            table.patterns[17 * row] = which
            for k in range(i64(16)):
                table.patterns[17 * row + 1 + k] = notes.pairs[20 * n + 4 + k]
        if row >= 0:
            table.counts[row] += executions
        else:
            by_lanes, by_warp = i64(0), i64(0)
            for lane in range(i64(WARP_SIZE)):
                by_lanes += i64(notes.words[at + 8 + lane])
                by_warp = max(by_warp, i64(notes.words[at + 8 + lane]))
            table.excess[3 * site] += executions
            table.excess[3 * site + 1] += executions * by_lanes
            table.excess[3 * site + 2] += executions * by_warp
        rows[n] = i32(row)
    read[0] = notes.length


@native
def _insert(patterns: Global[i64], count: i64, factors: Global[i64], slots: Global[i32], size: i64) -> None:
    """Insert distinct patterns into an empty table."""
    for row in range(count):
        hash = i64(0)
        for k in range(i64(17)):
            hash += patterns[17 * row + k] * factors[k]
        slot = _mix(hash) >> 20 & size - 1
        while slots[slot] != 0:
            slot = slot + 1 & size - 1
        slots[slot] = i32(row + 1)


class PatternTable:
    """Patterns of many notes, and pending notes of executions whose other lanes are not recorded yet."""

    def __init__(self, limit: int, interval: int, sampled_limit: int) -> None:
        """limit: patterns of a site; sampled_limit: with those of sampled blocks, of which one of `interval` is."""
        self.limits, self.sites = Limits(limit, sampled_limit, interval), 0
        self.slots, self.patterns = np.zeros(_SLOTS, np.int32), np.zeros(_SLOTS // 2 * ROW, np.int32)
        self.counts, self.used, self.excess = (np.zeros(n, np.int64) for n in (_SLOTS // 2, 1, 0))
        self.early_sites, self.pending_slots = np.zeros(0, np.int32), np.zeros(_SLOTS, np.int32)
        self.pending, self.used_slots = np.zeros(_SLOTS * WORDS, np.int32), 0

    def merge_lanes(self, notes: Words) -> Words:
        """Return the notes of complete executions, in order; the excess are pending."""
        rest = notes.reshape(-1, WORDS)
        self._extend_sites(rest[:, 4])
        if not self.early_sites.any() and rest[:, 4].min() >= 0:
            return notes
        merged = list[Words]()
        while len(rest):
            out, read = self._merge(rest)
            merged.append(out)
            rest = rest[read:]
            if len(rest):
                self._grow_pending()
        return np.concatenate(merged)

    def _merge(self, notes: Words) -> tuple[Words, int]:
        """Return complete executions, and the number of notes read."""
        out, progress = np.empty(2 * notes.size, np.int32), np.array([0, self.used_slots, 0], np.int64)
        words = np.ascontiguousarray(notes).reshape(-1)
        _merge_lanes(words, len(notes), self.early_sites, self._pending_table(), out, progress)
        self.used_slots = int(progress[_USED_SLOTS])
        return out[: progress[_MERGED] * WORDS], int(progress[_READ])

    def _pending_table(self) -> PendingTable:
        return PendingTable(self.pending_slots, self.pending, len(self.pending_slots))  # type: ignore[arg-type]

    def flush(self) -> Words:
        """Remove and return the pending notes, at the end of the launch."""
        notes = self.pending.reshape(-1, WORDS)
        pending: Words = notes[(self.pending_slots != 0) & (notes[:, 6] != 0)].reshape(-1)
        self.pending_slots[:], self.used_slots = 0, 0
        return pending

    def count(self, notes: Words) -> Words:
        """Count notes of complete executions. Return the row of each note's pattern, -1 beyond the limits of its site."""
        count, start, read = len(notes) // WORDS, 0, np.zeros(1, np.int64)
        rows = np.empty(count, np.int32)
        batch = Notes(notes, notes.view(np.int64), count)  # type: ignore[arg-type]
        while start < count:
            table = PatternArrays(
                _FACTORS, self.slots, len(self.slots), self.patterns.view(np.int64), self.counts, self.used, self.sites, self.excess,  # type: ignore[arg-type]
            )  # fmt: skip
            _count_patterns(batch, start, table, self.limits, rows, read)
            start = int(read[0])
            if start < count:
                self._grow_patterns()
        return rows

    def _extend_sites(self, sites: Words) -> None:
        """Extend the arrays by site to the sites of notes."""
        total = int(np.maximum(sites, -1 - sites).max()) + 1
        more = total - self.sites
        if more > 0:
            self.used = np.concatenate([self.used[:-1], np.zeros(more, np.int64), self.used[-1:]])
            self.excess = np.concatenate([self.excess, np.zeros(3 * more, np.int64)])
            self.early_sites = np.concatenate([self.early_sites, np.zeros(more, np.int32)])
            self.sites = total

    def _grow_pending(self) -> None:
        """Remove complete executions from the pending table; double it if that is not enough."""
        pending = self.flush()
        size = len(self.pending_slots) * (2 if 4 * len(pending) // WORDS > len(self.pending_slots) else 1)
        self.pending_slots, self.pending = np.zeros(size, np.int32), np.zeros(size * WORDS, np.int32)
        if len(pending):
            notes = pending.reshape(-1, WORDS)
            notes[:, 4] = -1 - notes[:, 4]
            self._merge(notes)

    def _grow_patterns(self) -> None:
        """Double the table of patterns; they keep their rows."""
        count, size = int(self.used[-1]), 2 * len(self.slots)
        self.patterns = np.concatenate([self.patterns, np.zeros(len(self.patterns), np.int32)])
        self.counts = np.concatenate([self.counts, np.zeros(len(self.counts), np.int64)])
        self.slots = np.zeros(size, np.int32)
        _insert(self.patterns.view(np.int64), count, _FACTORS, self.slots, size)
