"""Caches: a sectored L1 for each SM, an L2 of one or two halves, and device memory, fed by the accesses of a launch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from .. import language as st
from ..language.hints import Global, i64
from ..machine.device import Device
from ..native import native
from .line_trace import BITS, LINE, RECORD, SECTOR, TOUCHED, WORDS, LineTrace, drawn
from .line_trace import Words as Numbers
from .traffic import COLUMNS, LONE, MISSES, Traffic, whole

FILLED, WRITTEN, CLOCK, NEXT, LEFT, TIME, WASTED = range(7)
"""Of the launch: sectors that were read because a part of them had been written, sectors written to device memory, accesses done, the
next block, blocks left, the accesses that a warp would have made since it began which is never kept waiting, and the half sectors that
could have been moved in the time of lines of which less was: 5.5 sectors take as long, by stores 32, 64 and 128 bytes apart."""
_L1_WAYS, _L2_WAYS = 16, 16
"""At least so many lines of a set. What is left over makes sets wider: sets are a power of two."""
_SENT = 4096
"""Lines of stores of an SM that are known to L1, at most."""
_DIRTY = 0.27
"""The part of L2 whose lines hold what device memory does not, at most: 16 MiB of an H200 can be written again and again and none of
it goes out, of 64 MiB that are written as drawn nearly all that is written does, while nine of ten lines are still found."""
_ROUNDS = 1 << 16
_STEP = 4
"""Where one of so many lines is kept, warps take turns after a part of as many accesses: this one."""


@st.device
def _found(tags: Global[i64], first: i64, ways: i64, line: i64) -> i64:
    """Where a line is in its set; -1 if nowhere."""
    at = i64(-1)
    for way in range(ways):
        if tags[first + way] == line:
            at = first + way
    return at


@st.device
def _oldest(stamps: Global[i64], first: i64, ways: i64) -> i64:
    """The way of a set that was used longest ago."""
    at = first
    for way in range(i64(1), ways):
        if stamps[first + way] < stamps[at]:
            at = first + way
    return at


@st.device
def _half(line: i64) -> i64:
    """The half of L2 that a line belongs to."""
    return i64(st.popcount(line & 0x5A5A5A5A) & 1)


@st.device
def _written_back(dirty: Global[i64], words: Global[i64], at: i64, state: Global[i64]) -> None:
    """Send what was written of a line to device memory; sectors that were written in part are read first."""
    sectors = i64(st.popcount(dirty[at]))
    filled = max(i64(0), sectors - words[at] // 8)
    state[0] += filled
    state[1] += sectors
    if filled > 0:
        state[6] += max(i64(0), 11 - 2 * (sectors + filled))
    dirty[at] = 0
    words[at] = 32


@st.device
def _placed(
    tags: Global[i64], valid: Global[i64], dirty: Global[i64], stamps: Global[i64], words: Global[i64], first: i64, ways: i64, line: i64,
    now: i64, state: Global[i64],
) -> i64:  # fmt: skip
    """The way that holds a line, which another one leaves where it was not there."""
    at = _found(tags, first, ways, line)
    if at < 0:
        at = _oldest(stamps, first, ways)
        if dirty[at] != 0:
            _written_back(dirty, words, at, state)
        tags[at] = line
        valid[at] = 0
        words[at] = 0
    stamps[at] = now
    return at


@st.device
def _kept_clean(
    dirty: Global[i64], stamps: Global[i64], words: Global[i64], first: i64, ways: i64, most: i64, state: Global[i64]
) -> None:
    """Of a set no more lines than `most` hold what device memory does not: else the one that was used longest ago sends it."""
    count = i64(0)
    oldest = i64(-1)
    for way in range(first, first + ways):
        if dirty[way] != 0:
            count += 1
            if oldest < 0 or stamps[way] < stamps[oldest]:
                oldest = way
    if count > most:
        _written_back(dirty, words, oldest, state)


@st.device
def _alone(missed: i64, there: i64) -> i64:
    """The neighbours in the same half of a line of sectors that are missed, which are neither missed nor there: they come too."""
    other = ((missed & 5) << 1) | ((missed & 10) >> 1)
    return other & ~missed & ~there & 15


@native
def _run(
    records: Global[i64], first_of: Global[i64], lines: Global[i64], kind: Global[i64],
    sms: i64, resident: i64, warps: i64, blocks: i64, until: i64, rounds: i64, step: i64, chance: i64,
    block_of: Global[i64], phase_of: Global[i64], begun: Global[i64], cursor: Global[i64],
    l1_tags: Global[i64], l1_valid: Global[i64], l1_stamps: Global[i64], l1_filled: Global[i64], l1_sets: i64, l1_ways: i64, l1_shift: i64,
    l2_tags: Global[i64], l2_valid: Global[i64], l2_dirty: Global[i64], l2_stamps: Global[i64], l2_words: Global[i64], l2_sets: i64,
    l2_ways: i64, l2_shift: i64,
    halves: i64, sent_tags: Global[i64], sent: Global[i64], sent_stamps: Global[i64], sent_at: Global[i64], sent_sets: i64, sent_ways: i64,
    sent_shift: i64, held: i64, most: i64, classes: Global[i64], count: i64, waited: Global[i64], sites: Global[i64], state: Global[i64],
) -> None:  # fmt: skip
    """Have the resident blocks of all SMs take turns, `step` accesses a warp, until `until` blocks are left or turns are used up. chance: 1
    where it hangs on chance which of two neighbouring SMs takes a block that was not there at first. begun: when the block of a slot began.
    held: how many lines of its stores ago a warp may have stored to a line, so that what it stores there now can go with that. most: as
    `_kept_clean`. classes: of the warps of each block; count: of sites, whose rows are apart by class. waited: of each warp and site, twice
    the number of the block, from 1, and whether its last access waited for L2."""
    turn = i64(0)
    while state[4] > until and turn < rounds:
        turn += 1
        state[5] += step
        for place in range(sms * resident):
            slot = place
            if state[5] > step and place | 1 < sms * resident:
                slot = place ^ (drawn((place >> 1) + 8191 * state[5]) >> 39 & chance)
            block = block_of[slot]
            if block < 0:
                if state[3] >= blocks:
                    continue
                block = state[3]
                state[3] += 1
                block_of[slot] = block
                phase_of[slot] = 0
                begun[slot] = state[5] - step
                for warp in range(warps):
                    cursor[slot * warps + warp] = first_of[block * warps + warp]
            sm = slot % sms
            near = (sm & 1) * (halves - 1)
            waiting = i64(0)
            here = i64(0)
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
                here += 1
                time = begun[slot] + (records[4 * at + 3] >> 8)
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
                        wanted = lines[which] & 15
                        sites[row + 6] += 1
                        sites[row] += i64(st.popcount(wanted))
                        loads = kind[site] == 0 or kind[site] == 3
                        if l1_sets > 0 and kind[site] != 2:
                            first = (sm * l1_sets + ((drawn(line) >> l1_shift) & (l1_sets - 1))) * l1_ways
                            way = _found(l1_tags, first, l1_ways, line)
                            hit = i64(0)
                            whole = kind[site] == 1 and words == 8 * i64(st.popcount(wanted))
                            if loads or kind[site] == 4 or whole or (kind[site] == 1 and way >= 0):
                                if way < 0:
                                    way = _oldest(l1_stamps, first, l1_ways)
                                    l1_tags[way] = line
                                    l1_valid[way] = 0
                                hit = l1_valid[way] & wanted
                                l1_valid[way] |= wanted
                                l1_stamps[way] = now
                            if loads:
                                in_l1 = way
                                sites[row + 1] += i64(st.popcount(hit))
                                if hit != 0 and l1_filled[way] >> 2 >= time:
                                    farthest = max(farthest, l1_filled[way] & 3)
                                wanted &= ~hit
                        if kind[site] == 1:
                            first = (sm * sent_sets + ((drawn(line) >> sent_shift) & (sent_sets - 1))) * sent_ways
                            own = (line << 24) | ((block & 0x3FF) << 14) | (slot * warps + warp)
                            way = _found(sent_tags, first, sent_ways, own)
                            if way < 0:
                                way = _oldest(sent_stamps, first, sent_ways)
                                sent_tags[way] = own
                                sent[way] = 0
                            stored = (records[4 * at + 1] >> 16) & 0xFFFF
                            between = (stored - sent_at[way]) & 0xFFFF
                            merged = wanted & sent[way]
                            if between > held:
                                merged = i64(0)
                            sent[way] |= wanted
                            sent_stamps[way] = now
                            sent_at[way] = stored
                            if merged != 0:
                                sites[row + 10] += i64(st.popcount(merged))
                                sites[row + 15] += 1
                                sites[row + 16] += between
                            wanted &= ~merged
                        home = _half(line) * (halves - 1)
                        of_set = (drawn(line) >> l2_shift) & (l2_sets - 1)
                        at_home = (home * l2_sets + of_set) * l2_ways
                        if wanted == 0 and kind[site] == 1:  # its words go with others
                            way = _found(l2_tags, at_home, l2_ways, line)
                            if way >= 0:
                                l2_words[way] += words
                        if wanted != 0:
                            sites[row + 8] += 1
                            from_there = i64(1)
                            if loads:
                                reached = wanted
                                if near != home:
                                    own = _placed(
                                        l2_tags, l2_valid, l2_dirty, l2_stamps, l2_words, (near * l2_sets + of_set) * l2_ways,
                                        l2_ways, line, now, state,
                                    )  # fmt: skip
                                    sites[row + 2] += i64(st.popcount(l2_valid[own] & wanted))
                                    reached = wanted & ~l2_valid[own]
                                    l2_valid[own] |= wanted
                                if reached != 0:
                                    way = _placed(
                                        l2_tags,
                                        l2_valid,
                                        l2_dirty,
                                        l2_stamps,
                                        l2_words,
                                        at_home,
                                        l2_ways,
                                        line,
                                        now,
                                        state,
                                    )
                                    hits = i64(st.popcount(l2_valid[way] & reached))
                                    missing = reached & ~l2_valid[way]
                                    missed = i64(st.popcount(missing))
                                    alone = _alone(missing, l2_valid[way])
                                    l2_valid[way] |= reached | alone
                                    if near != home:
                                        sites[row + 3] += hits
                                        from_there = i64(2)
                                    else:
                                        sites[row + 2] += hits
                                    if missed > 0:
                                        from_there = i64(3)
                                    sites[row + 4] += missed
                                    sites[row + 7] += i64(st.popcount(alone))
                                    l2_words[way] += 8 * missed
                            else:
                                if halves == 2 and (near == home or kind[site] == 2):
                                    other = _found(l2_tags, ((1 - home) * l2_sets + of_set) * l2_ways, l2_ways, line)
                                    if other >= 0:
                                        l2_valid[other] &= ~wanted
                                way = _placed(
                                    l2_tags, l2_valid, l2_dirty, l2_stamps, l2_words, at_home, l2_ways, line, now, state
                                )
                                hits = i64(st.popcount(l2_valid[way] & wanted))
                                missed = i64(st.popcount(wanted & ~l2_valid[way]))
                                if kind[site] == 2:  # an atomic operation needs what is there
                                    sites[row + 2] += hits
                                    sites[row + 4] += missed
                                    if missed > 0:
                                        from_there = i64(3)
                                    l2_words[way] += 8 * missed
                                else:
                                    sites[row + 2] += hits + missed
                                    l2_words[way] += words
                                l2_valid[way] |= wanted
                                was = l2_dirty[way]
                                l2_dirty[way] = was | wanted
                                if was == 0:
                                    _kept_clean(l2_dirty, l2_stamps, l2_words, at_home, l2_ways, most, state)
                            farthest = max(farthest, from_there)
                            if loads and l1_sets > 0:
                                l1_filled[in_l1] = time << 2 | from_there
                    for level in range(farthest):
                        sites[row + 12 + level] += 1
                    last = (slot * warps + warp) * count + site
                    if farthest > 0 and waited[last] == 2 * block + 3:
                        sites[row + 19] += 1
                    waited[last] = 2 * block + 2 + min(farthest, i64(1))
                    at += 1
                    time = i64(1) << 60
                    if at < first_of[block * warps + warp + 1] and records[4 * at + 1] >> 32 == phase:
                        time = begun[slot] + (records[4 * at + 3] >> 8)
                cursor[slot * warps + warp] = at
            if waiting == 0:
                block_of[slot] = i64(-1)
                state[4] -= 1
            elif here == 0:
                phase_of[slot] = earliest


@dataclass
class _CacheArrays:
    """Lines of a cache, in sets of `ways`."""

    sets: int
    ways: int
    arrays: tuple[Numbers, ...]

    @staticmethod
    def of(size: int, copies: int, ways: int, arrays: int) -> _CacheArrays:
        """size: bytes of each of the copies."""
        held = max(1, size // LINE)
        sets = 1 << max(0, (held // ways).bit_length() - 1)
        each = max(1, held // sets)
        made = _CacheArrays(sets, each, tuple(np.zeros(copies * sets * each, np.int64) for _ in range(arrays)))
        made.clear()
        return made

    def form(self, apart: int) -> tuple[int, int, int]:
        """Sets, ways, and by how much the number drawn for a line is shifted to find its set, where one of so many lines is kept."""
        return self.sets, self.ways, BITS - (apart - 1).bit_length() - (self.sets - 1).bit_length()

    def clear(self) -> None:
        """Empty it."""
        for array in self.arrays:
            array[:] = 0
        self.arrays[0][:] = -1


def l1_bytes(device: Device, shared: int, resident: int) -> int:
    """What is left of L1 beside the shared memory of the resident blocks: the driver takes the least carve-out that holds
    them. 0 where global loads do not go through L1."""
    if not device.loads_cached:
        return 0
    unit = device.shared_unit
    needed = resident * (-(-(shared + device.shared_reserved) // unit) * unit) if shared else 0
    carved = next((size for size in device.shared_carveouts if size >= needed), device.shared_per_sm)
    return max(0, device.timing.l1_size - carved)


def simulate(
    lines: LineTrace, device: Device, resident: int, shared: int, cold: bool, without: Collection[int] = (),
    classes: Numbers | None = None,
) -> Traffic:  # fmt: skip
    """The traffic of a launch whose accesses were traced. resident: blocks of an SM at once; shared: bytes of a block.

    cold: with empty caches; else L2 holds what an earlier launch of the same on the same data left there. without: sites whose
    accesses are none, as a compiler keeps in registers what they access. classes: int64[block, warp], which warps are told apart;
    without it none.
    Blocks go to SMs one after another, as many as fit, then to whichever has finished one: at each launch another one, so that a line
    may be asked for by SMs of the other half of L2 than the last time. What SMs of a half store, a copy in it keeps; one in the other
    half is no longer valid. Warps of the resident blocks take turns, an access each; none passes a barrier before its block. L1 writes
    through, and keeps sectors that are written whole; L2 writes back; of a set the line goes that was used longest ago.
    """
    records, first_of, held = lines.sorted
    nowhere = np.isin(np.arange(len(lines.kinds)), list(without))
    if nowhere.any():
        records = records.reshape(-1, RECORD).copy()
        records[nowhere[records[:, 1] & 0xFFFF], 3] &= ~0xFF
        records = records.reshape(-1)
    warps = -(-int(np.prod(lines.request.block)) // 32)
    blocks, traced = int(np.prod(lines.request.grid)), lines.traced
    halves, apart = device.timing.l2_halves, lines.apart
    size = l1_bytes(device, shared, resident) // apart
    l1 = _CacheArrays.of(size, device.sms, _L1_WAYS, 4) if size >= LINE else None
    l2 = _CacheArrays.of(device.l2 // halves // apart, halves, _L2_WAYS, 5)
    sent = _CacheArrays.of(_SENT * LINE // apart, device.sms, _L1_WAYS, 4)
    nothing = np.zeros(1, np.int64)
    l1_arrays = l1.arrays if l1 else (nothing, nothing.copy(), nothing.copy(), nothing.copy())
    slots = device.sms * resident
    again = not cold and (traced == blocks or apart * _footprint(held) * blocks / traced <= device.l2)
    of = np.zeros((traced, warps), np.int64) if classes is None else np.ascontiguousarray(classes)
    shape, clock = (int(of.max(initial=0)) + 1, len(lines.kinds), COLUMNS), 0
    for launch in range(2 if again else 1):
        if l1:
            l1.clear()
        sent.clear()
        sites, state = np.zeros(shape, np.int64), np.zeros(8, np.int64)
        waited = np.zeros(slots * warps * len(lines.kinds), np.int64)
        state[LEFT], state[CLOCK] = traced, clock
        in_slots = (
            np.full(slots, -1, np.int64),
            *(np.zeros(slots, np.int64) for _ in range(2)),
            np.zeros(slots * warps, np.int64),
        )
        passed: list[tuple[Numbers, Numbers]] = []
        for until in (traced - traced // 4, traced // 4, 0):
            while state[LEFT] > until:
                _run(
                    records, first_of, held, lines.kinds, device.sms, resident, warps, traced, until, _ROUNDS,
                    max(1, apart // _STEP), launch, *in_slots,
                    *l1_arrays, *(l1.form(apart) if l1 else (0, 0, 0)), *l2.arrays, *l2.form(apart), halves,
                    *sent.arrays, *sent.form(apart), device.timing.open_lines, max(1, round(_DIRTY * l2.ways)),
                    of.reshape(-1), len(lines.kinds), waited, sites.reshape(-1), state,
                )  # fmt: skip
            passed.append((sites.copy(), state.copy()))
        clock = int(state[CLOCK])
    if blocks > traced:  # as between the quarters, with as many blocks under way at both
        (from_sites, from_state), (to_sites, to_state), _ = passed
        later = (blocks - traced) / max(1, int(from_state[LEFT] - to_state[LEFT]))
        sites += np.rint((to_sites - from_sites) * later).astype(np.int64)
        state += np.rint((to_state - from_state) * later).astype(np.int64)
    found = whole(
        sites.sum(axis=0),
        np.rint(lines.totals * ((blocks / traced) * ~nowhere[:, None])).astype(np.int64),
        lines.kinds,
        l1 is not None,
    )
    missed, filled, written = (
        SECTOR * int(sectors)
        for sectors in (found[:, [MISSES, LONE]].sum(), state[FILLED] * apart, state[WRITTEN] * apart)
    )
    wasted = int(state[WASTED]) * apart * SECTOR // 2
    different = _different(records.reshape(-1, RECORD), held, of, len(lines.kinds))
    return Traffic(
        found, sites, different, lines.kinds, missed + filled, written, filled, wasted, apart, traced, blocks
    )


def _footprint(lines: Numbers) -> int:
    """Bytes of the different lines."""
    return LINE * len(np.unique(lines >> (WORDS + TOUCHED)))


def _different(records: Numbers, lines: Numbers, classes: Numbers, sites: int) -> Numbers:
    """int64[class, site], how many different lines were looked at."""
    many = records[:, 3] & 0xFF
    rows = classes[records[:, 0] >> 16, records[:, 0] & 0xFFFF] * sites + (records[:, 1] & 0xFFFF)
    at = np.repeat(records[:, 2], many) + np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    row, line = np.repeat(rows, many), lines[at] >> (WORDS + TOUCHED)
    with np.errstate(over="ignore"):
        _, first = np.unique(line * np.int64(-0x61C8864680B583EB) + row, return_index=True)
    return np.bincount(row[first], minlength=(int(classes.max(initial=0)) + 1) * sites).reshape(-1, sites)
