"""Trace-driven cache simulation: sectored L1 per SM, L2 of one or two partitions, device memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from .. import language as st
from ..language.hints import Global, i64
from ..machine.device import Device
from ..native import native
from .line_trace import HASH_BITS, LINE, RECORD, SECTOR, TOUCHED, WORDS, LineTrace, hash_line
from .line_trace import Words as Numbers
from .traffic import COLUMNS, MISSES, UNPAIRED_SECTORS, Traffic, scale_to_launch

FILLED, WRITTEN, CLOCK, NEXT, LEFT, TIME, WASTED = range(7)
"""State of the simulation: sectors read for partial writes; sectors written to device memory; access clock; next block;
remaining blocks; time in accesses of an unblocked warp; unused half-sector transfer slots (a shorter line takes as long
as 5.5 sectors)."""
_L1_ASSOCIATIVITY, _L2_ASSOCIATIVITY = 16, 16
"""Lines per set, at least; sets are a power of two, the rest widens them."""
_MAX_STORED_LINES = 4096
"""Store lines tracked per SM."""
_MAX_DIRTY_FRACTION = 0.27
"""Maximal dirty fraction of L2; fitted on an H200, where 16 MiB are rewritten without write-back."""
_MAX_ROUNDS = 1 << 16
_STEP_DIVISOR = 4
"""With sampled lines, warps interleave after sampling_stride / 4 accesses."""


@st.device
def _find_line(tags: Global[i64], first: i64, associativity: i64, line: i64) -> i64:
    """Return the position of a line in its set; -1 if absent."""
    match = i64(-1)
    for entry in range(associativity):
        if tags[first + entry] == line:
            match = first + entry
    return match


@st.device
def _least_recent(stamps: Global[i64], first: i64, associativity: i64) -> i64:
    """Return the least recently used entry of a set."""
    oldest = first
    for entry in range(i64(1), associativity):
        if stamps[first + entry] < stamps[oldest]:
            oldest = first + entry
    return oldest


@st.device
def _l2_half(line: i64) -> i64:
    """Return the L2 partition of a line."""
    return i64(st.popcount(line & 0x5A5A5A5A) & 1)


@st.device
def _write_back(dirty: Global[i64], words: Global[i64], at: i64, state: Global[i64]) -> None:
    """Write a dirty line to device memory; partially written sectors are read first."""
    sectors = i64(st.popcount(dirty[at]))
    filled = max(i64(0), sectors - words[at] // 8)
    state[0] += filled
    state[1] += sectors
    if filled > 0:
        state[6] += max(i64(0), 11 - 2 * (sectors + filled))
    dirty[at] = 0
    words[at] = 32


@st.device
def _place_line(
    tags: Global[i64], valid: Global[i64], dirty: Global[i64], stamps: Global[i64], words: Global[i64], first: i64,
    associativity: i64, line: i64,
    now: i64, state: Global[i64],
) -> i64:  # fmt: skip
    """Return the entry of a line, after eviction of the least recently used one if absent."""
    at = _find_line(tags, first, associativity, line)
    if at < 0:
        at = _least_recent(stamps, first, associativity)
        if dirty[at] != 0:
            _write_back(dirty, words, at, state)
        tags[at] = line
        valid[at] = 0
        words[at] = 0
    stamps[at] = now
    return at


@st.device
def _limit_dirty(
    dirty: Global[i64],
    stamps: Global[i64],
    words: Global[i64],
    first: i64,
    associativity: i64,
    most: i64,
    state: Global[i64],
) -> None:
    """Write back the least recently used dirty line of a set with more than `most`."""
    count = i64(0)
    oldest = i64(-1)
    for entry in range(first, first + associativity):
        if dirty[entry] != 0:
            count += 1
            if oldest < 0 or stamps[entry] < stamps[oldest]:
                oldest = entry
    if count > most:
        _write_back(dirty, words, oldest, state)


@st.device
def _paired_sectors(missing: i64, present: i64) -> i64:
    """Return the pairs of missing sectors within half lines, fetched with them."""
    other = ((missing & 5) << 1) | ((missing & 10) >> 1)
    return other & ~missing & ~present & 15


@native
def _simulate_accesses(
    records: Global[i64], first_of: Global[i64], lines: Global[i64], kind: Global[i64],
    sms: i64, resident: i64, warps: i64, blocks: i64, until: i64, rounds: i64, step: i64, random_assignment: i64,
    block_of: Global[i64], phase_of: Global[i64], block_start: Global[i64], cursor: Global[i64],
    l1_tags: Global[i64], l1_valid: Global[i64], l1_stamps: Global[i64], l1_filled: Global[i64], l1_sets: i64,
    l1_associativity: i64, l1_shift: i64,
    l2_tags: Global[i64], l2_valid: Global[i64], l2_dirty: Global[i64], l2_stamps: Global[i64], l2_words: Global[i64], l2_sets: i64,
    l2_associativity: i64, l2_shift: i64,
    halves: i64, sent_tags: Global[i64], sent_sectors: Global[i64], sent_stamps: Global[i64], sent_at: Global[i64], sent_sets: i64,
    sent_associativity: i64,
    sent_shift: i64, max_reuse_distance: i64, max_dirty: i64, classes: Global[i64], count: i64, last_waits: Global[i64],
    sites: Global[i64], state: Global[i64],
) -> None:  # fmt: skip
    """Interleave the resident blocks of all SMs, `step` accesses per warp, until `until` blocks remain or `rounds` are used.

    random_assignment: 1 to swap new blocks of neighboring SMs at random. block_start: by slot. max_reuse_distance: of
    mergeable stores, in store lines. max_dirty: see `_limit_dirty`. classes: by block and warp; count: sites per class.
    last_waits: by warp and site, 2 * (block + 1), plus 1 if its last access waited for L2.
    """
    round_number = i64(0)
    while state[4] > until and round_number < rounds:
        round_number += 1
        state[5] += step
        for place in range(sms * resident):
            slot = place
            if state[5] > step and place | 1 < sms * resident:
                slot = place ^ (hash_line((place >> 1) + 8191 * state[5]) >> 39 & random_assignment)
            block = block_of[slot]
            if block < 0:
                if state[3] >= blocks:
                    continue
                block = state[3]
                state[3] += 1
                block_of[slot] = block
                phase_of[slot] = 0
                block_start[slot] = state[5] - step
                for warp in range(warps):
                    cursor[slot * warps + warp] = first_of[block * warps + warp]
            sm = slot % sms
            near = (sm & 1) * (halves - 1)
            waiting = i64(0)
            active = i64(0)
            earliest = i64(1) << 40
            for warp in range(warps):
                at = cursor[slot * warps + warp]
                if at >= first_of[block * warps + warp + 1]:
                    continue
                waiting += 1
                phase = records[4 * at + 1] >> 32
                if phase != phase_of[slot]:
                    earliest = min(earliest, phase)
                    continue
                active += 1
                time = block_start[slot] + (records[4 * at + 3] >> 8)
                while time <= state[5]:
                    site = records[4 * at + 1] & 0xFFFF
                    state[2] += 1
                    now = state[2]
                    row = (classes[block * warps + warp] * count + site) * COLUMNS
                    sites[row + 5] += 1
                    farthest, from_there, in_l1 = i64(0), i64(0), i64(0)
                    for which in range(records[4 * at + 2], records[4 * at + 2] + (records[4 * at + 3] & 0xFF)):
                        line = lines[which] >> 10
                        words = (lines[which] >> 4) & 63
                        sectors = lines[which] & 15
                        sites[row + 6] += 1
                        sites[row] += i64(st.popcount(sectors))
                        loads = kind[site] == 0 or kind[site] == 3
                        if l1_sets > 0 and kind[site] != 2:
                            first = (sm * l1_sets + ((hash_line(line) >> l1_shift) & (l1_sets - 1))) * l1_associativity
                            entry = _find_line(l1_tags, first, l1_associativity, line)
                            hit = i64(0)
                            whole = kind[site] == 1 and words == 8 * i64(st.popcount(sectors))
                            if loads or kind[site] == 4 or whole or (kind[site] == 1 and entry >= 0):
                                if entry < 0:
                                    entry = _least_recent(l1_stamps, first, l1_associativity)
                                    l1_tags[entry] = line
                                    l1_valid[entry] = 0
                                hit = l1_valid[entry] & sectors
                                l1_valid[entry] |= sectors
                                l1_stamps[entry] = now
                            if loads:
                                in_l1 = entry
                                sites[row + 1] += i64(st.popcount(hit))
                                if hit != 0 and l1_filled[entry] >> 2 >= time:
                                    farthest = max(farthest, l1_filled[entry] & 3)
                                sectors &= ~hit
                        if kind[site] == 1:
                            first = (
                                sm * sent_sets + ((hash_line(line) >> sent_shift) & (sent_sets - 1))
                            ) * sent_associativity
                            own = (line << 24) | ((block & 0x3FF) << 14) | (slot * warps + warp)
                            entry = _find_line(sent_tags, first, sent_associativity, own)
                            if entry < 0:
                                entry = _least_recent(sent_stamps, first, sent_associativity)
                                sent_tags[entry] = own
                                sent_sectors[entry] = 0
                            stored = (records[4 * at + 1] >> 16) & 0xFFFF
                            reuse_distance = (stored - sent_at[entry]) & 0xFFFF
                            merged = sectors & sent_sectors[entry]
                            if reuse_distance > max_reuse_distance:
                                merged = i64(0)
                            sent_sectors[entry] |= sectors
                            sent_stamps[entry] = now
                            sent_at[entry] = stored
                            if merged != 0:
                                sites[row + 10] += i64(st.popcount(merged))
                                sites[row + 15] += 1
                                sites[row + 16] += reuse_distance
                            sectors &= ~merged
                        home = _l2_half(line) * (halves - 1)
                        of_set = (hash_line(line) >> l2_shift) & (l2_sets - 1)
                        at_home = (home * l2_sets + of_set) * l2_associativity
                        if sectors == 0 and kind[site] == 1:  # merged store
                            entry = _find_line(l2_tags, at_home, l2_associativity, line)
                            if entry >= 0:
                                l2_words[entry] += words
                        if sectors != 0:
                            sites[row + 8] += 1
                            from_there = i64(1)
                            if loads:
                                at_home_wanted = sectors
                                if near != home:
                                    own = _place_line(
                                        l2_tags, l2_valid, l2_dirty, l2_stamps, l2_words, (near * l2_sets + of_set) * l2_associativity,
                                        l2_associativity, line, now, state,
                                    )  # fmt: skip
                                    sites[row + 2] += i64(st.popcount(l2_valid[own] & sectors))
                                    at_home_wanted = sectors & ~l2_valid[own]
                                    l2_valid[own] |= sectors
                                if at_home_wanted != 0:
                                    entry = _place_line(
                                        l2_tags,
                                        l2_valid,
                                        l2_dirty,
                                        l2_stamps,
                                        l2_words,
                                        at_home,
                                        l2_associativity,
                                        line,
                                        now,
                                        state,
                                    )
                                    hits = i64(st.popcount(l2_valid[entry] & at_home_wanted))
                                    missing = at_home_wanted & ~l2_valid[entry]
                                    missed = i64(st.popcount(missing))
                                    alone = _paired_sectors(missing, l2_valid[entry])
                                    l2_valid[entry] |= at_home_wanted | alone
                                    if near != home:
                                        sites[row + 3] += hits
                                        from_there = i64(2)
                                    else:
                                        sites[row + 2] += hits
                                    if missed > 0:
                                        from_there = i64(3)
                                    sites[row + 4] += missed
                                    sites[row + 7] += i64(st.popcount(alone))
                                    l2_words[entry] += 8 * missed
                            else:
                                if halves == 2 and (near == home or kind[site] == 2):
                                    other = _find_line(
                                        l2_tags,
                                        ((1 - home) * l2_sets + of_set) * l2_associativity,
                                        l2_associativity,
                                        line,
                                    )
                                    if other >= 0:
                                        l2_valid[other] &= ~sectors
                                entry = _place_line(
                                    l2_tags,
                                    l2_valid,
                                    l2_dirty,
                                    l2_stamps,
                                    l2_words,
                                    at_home,
                                    l2_associativity,
                                    line,
                                    now,
                                    state,
                                )
                                hits = i64(st.popcount(l2_valid[entry] & sectors))
                                missed = i64(st.popcount(sectors & ~l2_valid[entry]))
                                if kind[site] == 2:  # atomics read the line
                                    sites[row + 2] += hits
                                    sites[row + 4] += missed
                                    if missed > 0:
                                        from_there = i64(3)
                                    l2_words[entry] += 8 * missed
                                else:
                                    sites[row + 2] += hits + missed
                                    l2_words[entry] += words
                                l2_valid[entry] |= sectors
                                was = l2_dirty[entry]
                                l2_dirty[entry] = was | sectors
                                if was == 0:
                                    _limit_dirty(
                                        l2_dirty, l2_stamps, l2_words, at_home, l2_associativity, max_dirty, state
                                    )
                            farthest = max(farthest, from_there)
                            if loads and l1_sets > 0:
                                l1_filled[in_l1] = time << 2 | from_there
                    for level in range(farthest):
                        sites[row + 12 + level] += 1
                    last = (slot * warps + warp) * count + site
                    if farthest > 0 and last_waits[last] == 2 * block + 3:
                        sites[row + 19] += 1
                    last_waits[last] = 2 * block + 2 + min(farthest, i64(1))
                    at += 1
                    time = i64(1) << 60
                    if at < first_of[block * warps + warp + 1] and records[4 * at + 1] >> 32 == phase:
                        time = block_start[slot] + (records[4 * at + 3] >> 8)
                cursor[slot * warps + warp] = at
            if waiting == 0:
                block_of[slot] = i64(-1)
                state[4] -= 1
            elif active == 0:
                phase_of[slot] = earliest


@dataclass
class _CacheArrays:
    """Arrays of a set-associative cache."""

    sets: int
    associativity: int
    arrays: tuple[Numbers, ...]

    @staticmethod
    def allocate(size: int, copies: int, associativity: int, arrays: int) -> _CacheArrays:
        """Return empty tables of `copies` caches of `size` bytes each."""
        lines = max(1, size // LINE)
        sets = 1 << max(0, (lines // associativity).bit_length() - 1)
        line_count = max(1, lines // sets)
        cache = _CacheArrays(
            sets, line_count, tuple(np.zeros(copies * sets * line_count, np.int64) for _ in range(arrays))
        )
        cache.clear()
        return cache

    def geometry(self, sampling_stride: int) -> tuple[int, int, int]:
        """Return sets, associativity and hash shift for a sampled trace."""
        return (
            self.sets,
            self.associativity,
            HASH_BITS - (sampling_stride - 1).bit_length() - (self.sets - 1).bit_length(),
        )

    def clear(self) -> None:
        """Invalidate all lines."""
        for array in self.arrays:
            array[:] = 0
        self.arrays[0][:] = -1


def l1_bytes(device: Device, shared: int, resident: int) -> int:
    """Return the L1 capacity next to the shared memory of the resident blocks, with the smallest sufficient carve-out;
    0 if global loads bypass L1."""
    if not device.loads_cached:
        return 0
    unit = device.shared_unit
    needed = resident * (-(-(shared + device.shared_reserved) // unit) * unit) if shared else 0
    carved = next((size for size in device.shared_carveouts if size >= needed), device.shared_per_sm)
    return max(0, device.timing.l1_size - carved)


def simulate(
    lines: LineTrace, device: Device, resident: int, shared: int, cold: bool, eliminated: Collection[int] = (),
    classes: Numbers | None = None,
) -> Traffic:  # fmt: skip
    """Return the traffic of a traced launch. resident: blocks per SM; shared: bytes per block.

    cold: with empty caches; else L2 has the data of an identical launch. eliminated: sites without accesses in the
    compiled kernel. classes: int64[block, warp]. Blocks are assigned to SMs round-robin, then to the first free SM,
    randomized between launches. A store leaves a copy in the partition of its SM and invalidates the other one. Warps
    interleave one access each; barriers synchronize a block. L1 is write-through and keeps fully written sectors; L2 is
    write-back; replacement is LRU.
    """
    records, first_of, line_words = lines.sorted
    is_eliminated = np.isin(np.arange(len(lines.kinds)), list(eliminated))
    if is_eliminated.any():
        records = records.reshape(-1, RECORD).copy()
        records[is_eliminated[records[:, 1] & 0xFFFF], 3] &= ~0xFF
        records = records.reshape(-1)
    warps = -(-int(np.prod(lines.request.block)) // 32)
    blocks, traced = int(np.prod(lines.request.grid)), lines.traced_blocks
    halves, sampling_stride = device.timing.l2_halves, lines.sampling_stride
    size = l1_bytes(device, shared, resident) // sampling_stride
    l1 = _CacheArrays.allocate(size, device.sms, _L1_ASSOCIATIVITY, 4) if size >= LINE else None
    l2 = _CacheArrays.allocate(device.l2 // halves // sampling_stride, halves, _L2_ASSOCIATIVITY, 5)
    stored_lines = _CacheArrays.allocate(_MAX_STORED_LINES * LINE // sampling_stride, device.sms, _L1_ASSOCIATIVITY, 4)
    nothing = np.zeros(1, np.int64)
    l1_arrays = l1.arrays if l1 else (nothing, nothing.copy(), nothing.copy(), nothing.copy())
    slots = device.sms * resident
    warm_up = not cold and (traced == blocks or sampling_stride * _footprint(line_words) * blocks / traced <= device.l2)
    class_of = np.zeros((traced, warps), np.int64) if classes is None else np.ascontiguousarray(classes)
    shape, clock = (int(class_of.max(initial=0)) + 1, len(lines.kinds), COLUMNS), 0
    for launch in range(2 if warm_up else 1):
        if l1:
            l1.clear()
        stored_lines.clear()
        sites, state = np.zeros(shape, np.int64), np.zeros(8, np.int64)
        waited = np.zeros(slots * warps * len(lines.kinds), np.int64)
        state[LEFT], state[CLOCK] = traced, clock
        in_slots = (
            np.full(slots, -1, np.int64),
            *(np.zeros(slots, np.int64) for _ in range(2)),
            np.zeros(slots * warps, np.int64),
        )
        snapshots: list[tuple[Numbers, Numbers]] = []
        for until in (traced - traced // 4, traced // 4, 0):
            while state[LEFT] > until:
                _simulate_accesses(
                    records, first_of, line_words, lines.kinds, device.sms, resident, warps, traced, until, _MAX_ROUNDS,
                    max(1, sampling_stride // _STEP_DIVISOR), launch, *in_slots,
                    *l1_arrays, *(l1.geometry(sampling_stride) if l1 else (0, 0, 0)), *l2.arrays, *l2.geometry(sampling_stride), halves,
                    *stored_lines.arrays, *stored_lines.geometry(sampling_stride), device.timing.open_lines, max(1,
                    round(_MAX_DIRTY_FRACTION * l2.associativity)),
                    class_of.reshape(-1), len(lines.kinds), waited, sites.reshape(-1), state,
                )  # fmt: skip
            snapshots.append((sites.copy(), state.copy()))
        clock = int(state[CLOCK])
    if blocks > traced:  # extrapolate the steady state between the quarters
        (from_sites, from_state), (to_sites, to_state), _ = snapshots
        remaining = (blocks - traced) / max(1, int(from_state[LEFT] - to_state[LEFT]))
        sites += np.rint((to_sites - from_sites) * remaining).astype(np.int64)
        state += np.rint((to_state - from_state) * remaining).astype(np.int64)
    result = scale_to_launch(
        sites.sum(axis=0),
        np.rint(lines.totals * ((blocks / traced) * ~is_eliminated[:, None])).astype(np.int64),
        lines.kinds,
        l1 is not None,
    )
    missed, filled, written = (
        SECTOR * int(sectors)
        for sectors in (
            result[:, [MISSES, UNPAIRED_SECTORS]].sum(),
            state[FILLED] * sampling_stride,
            state[WRITTEN] * sampling_stride,
        )
    )
    wasted = int(state[WASTED]) * sampling_stride * SECTOR // 2
    different = _count_distinct_lines(records.reshape(-1, RECORD), line_words, class_of, len(lines.kinds))
    return Traffic(
        result, sites, different, lines.kinds, missed + filled, written, filled, wasted, sampling_stride, traced, blocks
    )


def _footprint(lines: Numbers) -> int:
    """Return the bytes of the distinct lines."""
    return LINE * len(np.unique(lines >> (WORDS + TOUCHED)))


def _count_distinct_lines(records: Numbers, lines: Numbers, classes: Numbers, sites: int) -> Numbers:
    """Return int64[class, site], distinct sampled lines."""
    many = records[:, 3] & 0xFF
    rows = classes[records[:, 0] >> 16, records[:, 0] & 0xFFFF] * sites + (records[:, 1] & 0xFFFF)
    at = np.repeat(records[:, 2], many) + np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    row, line = np.repeat(rows, many), lines[at] >> (WORDS + TOUCHED)
    with np.errstate(over="ignore"):
        _, first = np.unique(line * np.int64(-0x61C8864680B583EB) + row, return_index=True)
    return np.bincount(row[first], minlength=(int(classes.max(initial=0)) + 1) * sites).reshape(-1, sites)
