"""Native code of the cache simulation: accesses of interleaved warps to L1, L2 and device memory."""

from enum import IntEnum
from typing import NamedTuple

from .. import language as st
from ..language.hints import Global, i64
from ..native import native
from .access_lines import RECORD, Kind, RecordWord, hash_line
from .traffic import COLUMNS, Column

Progress = IntEnum("Progress", "FILLED WRITTEN CLOCK NEXT LEFT TIME WASTED", start=0)
"""State of the simulation: sectors read for partial writes; sectors written to device memory; access clock; next block;
remaining blocks; time in accesses of an unblocked warp; unused half-sector transfer slots (a shorter line takes as long
as 5.5 sectors)."""
_NEVER = 1 << 60
_IN_L1, _IN_L2, _IN_FAR_L2, _IN_DRAM = range(4)
"""Memories from which a line arrives."""


class Trace(NamedTuple):
    """The accesses: `LineTrace.sorted`. kinds: by site. classes: by block and warp."""

    records: Global[i64]
    first: Global[i64]
    lines: Global[i64]
    kinds: Global[i64]
    classes: Global[i64]


class Run(NamedTuple):
    """Parameters. step: accesses of a warp per round. random_assignment: 1 to swap new blocks of neighboring SMs at
    random. max_reuse_distance: of mergeable stores, in store lines. max_dirty: lines of an L2 set."""

    sms: i64
    resident: i64
    warps: i64
    blocks: i64
    sites: i64
    step: i64
    random_assignment: i64
    halves: i64
    max_reuse_distance: i64
    max_dirty: i64


class Slots(NamedTuple):
    """Resident blocks: block (-1: none), phase between barriers, time of the first access. cursor: next access by slot
    and warp. last_waits: by warp and site, 2 * (block + 1), plus 1 if its last access waited for L2."""

    block: Global[i64]
    phase: Global[i64]
    start: Global[i64]
    cursor: Global[i64]
    last_waits: Global[i64]


class L1(NamedTuple):
    """L1 of all SMs. filled: time << 2 | memory of the last miss of a line."""

    tags: Global[i64]
    valid: Global[i64]
    stamps: Global[i64]
    filled: Global[i64]
    sets: i64
    associativity: i64
    shift: i64


class L2(NamedTuple):
    """Halves of L2. dirty: sector masks. words: written words of a line. copiers: 1 + the last SM that copied it in bulk."""

    tags: Global[i64]
    valid: Global[i64]
    dirty: Global[i64]
    stamps: Global[i64]
    words: Global[i64]
    copiers: Global[i64]
    sets: i64
    associativity: i64
    shift: i64


class StoredLines(NamedTuple):
    """Lines stored by warps, by SM. positions: store lines of the warp before the last store."""

    tags: Global[i64]
    sectors: Global[i64]
    stamps: Global[i64]
    positions: Global[i64]
    sets: i64
    associativity: i64
    shift: i64


class Memories(NamedTuple):
    """The simulation. counts: by class, site and column of `traffic`. state: see FILLED."""

    trace: Trace
    run: Run
    slots: Slots
    l1: L1
    l2: L2
    stored: StoredLines
    counts: Global[i64]
    state: Global[i64]


class _Access(NamedTuple):
    """An access of a warp. owner: resident warp. half: of L2, near its SM. row: of its class and site in `counts`.
    position: store lines of the warp before it."""

    sm: i64
    half: i64
    owner: i64
    block: i64
    row: i64
    kind: i64
    position: i64
    time: i64


# ------------------------------------------------------------------ sets
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
def _l2_half(m: Memories, line: i64) -> i64:
    """Return the L2 partition of a line."""
    return i64(st.popcount(line & 0x5A5A5A5A) & 1) * (m.run.halves - 1)


@st.device
def _l2_set(m: Memories, half: i64, line: i64) -> i64:
    """Return the first entry of a line's set in an L2 partition."""
    return (half * m.l2.sets + ((hash_line(line) >> m.l2.shift) & (m.l2.sets - 1))) * m.l2.associativity


@st.device
def _write_back(m: Memories, entry: i64) -> None:
    """Write a dirty line of L2 to device memory; partially written sectors are read first."""
    sectors = i64(st.popcount(m.l2.dirty[entry]))
    filled = max(i64(0), sectors - m.l2.words[entry] // 8)
    m.state[Progress.FILLED] += filled
    m.state[Progress.WRITTEN] += sectors
    if filled > 0:
        m.state[Progress.WASTED] += max(i64(0), 11 - 2 * (sectors + filled))
    m.l2.dirty[entry] = 0
    m.l2.words[entry] = 32


@st.device
def _place_line(m: Memories, half: i64, line: i64) -> i64:
    """Return the entry of a line in L2, after eviction of the least recently used one if absent."""
    first = _l2_set(m, half, line)
    entry = _find_line(m.l2.tags, first, m.l2.associativity, line)
    if entry < 0:
        entry = _least_recent(m.l2.stamps, first, m.l2.associativity)
        if m.l2.dirty[entry] != 0:
            _write_back(m, entry)
        m.l2.tags[entry] = line
        m.l2.valid[entry] = 0
        m.l2.words[entry] = 0
        m.l2.copiers[entry] = 0
    m.l2.stamps[entry] = m.state[Progress.CLOCK]
    return entry


@st.device
def _limit_dirty(m: Memories, first: i64) -> None:
    """Write back the least recently used dirty line of a set with too many."""
    count = i64(0)
    oldest = i64(-1)
    for entry in range(first, first + m.l2.associativity):
        if m.l2.dirty[entry] != 0:
            count += 1
            if oldest < 0 or m.l2.stamps[entry] < m.l2.stamps[oldest]:
                oldest = entry
    if count > m.run.max_dirty:
        _write_back(m, oldest)


@st.device
def _paired_sectors(missing: i64, present: i64) -> i64:
    """Return the pairs of missing sectors within half lines, fetched with them."""
    other = ((missing & 5) << 1) | ((missing & 10) >> 1)
    return other & ~missing & ~present & 15


# ------------------------------------------------------------------ accesses to a line
@st.device
def _is_load(access: _Access) -> bool:
    return access.kind == Kind.LOAD or access.kind == Kind.LOCAL_LOAD


@st.device
def _access_l1(m: Memories, access: _Access, line: i64, words: i64, sectors: i64) -> tuple[i64, i64]:
    """Return the entry of a line in L1 and its valid sectors. Loads, local stores and full stores allocate a line."""
    first = (access.sm * m.l1.sets + ((hash_line(line) >> m.l1.shift) & (m.l1.sets - 1))) * m.l1.associativity
    entry, hit = _find_line(m.l1.tags, first, m.l1.associativity, line), i64(0)
    full = access.kind == Kind.STORE and (entry >= 0 or words == 8 * i64(st.popcount(sectors)))
    if _is_load(access) or access.kind == Kind.LOCAL_STORE or full:
        if entry < 0:
            entry = _least_recent(m.l1.stamps, first, m.l1.associativity)
            m.l1.tags[entry] = line
            m.l1.valid[entry] = 0
        hit = m.l1.valid[entry] & sectors
        m.l1.valid[entry] |= sectors
        m.l1.stamps[entry] = m.state[Progress.CLOCK]
    return entry, hit


@st.device
def _merge_store(m: Memories, access: _Access, line: i64, sectors: i64) -> i64:
    """Return the sectors of a store that merge with an earlier store of the warp."""
    set_of_line = (hash_line(line) >> m.stored.shift) & (m.stored.sets - 1)
    first = (access.sm * m.stored.sets + set_of_line) * m.stored.associativity
    tag = (line << 24) | ((access.block & 0x3FF) << 14) | access.owner
    entry = _find_line(m.stored.tags, first, m.stored.associativity, tag)
    if entry < 0:
        entry = _least_recent(m.stored.stamps, first, m.stored.associativity)
        m.stored.tags[entry] = tag
        m.stored.sectors[entry] = 0
    reuse_distance = (access.position - m.stored.positions[entry]) & 0xFFFF
    merged = sectors & m.stored.sectors[entry]
    if reuse_distance > m.run.max_reuse_distance:
        merged = i64(0)
    m.stored.sectors[entry] |= sectors
    m.stored.stamps[entry] = m.state[Progress.CLOCK]
    m.stored.positions[entry] = access.position
    if merged != 0:
        m.counts[access.row + Column.MERGEABLE_SECTORS] += i64(st.popcount(merged))
        m.counts[access.row + Column.STORE_REHITS] += 1
        m.counts[access.row + Column.STORE_REUSE_DISTANCE] += reuse_distance
    return merged


@st.device
def _load_from_l2(m: Memories, access: _Access, line: i64, sectors: i64) -> i64:
    """Load sectors from L2; return their farthest source. The near half keeps a copy."""
    home, wanted, farthest = _l2_half(m, line), sectors, i64(_IN_L2)
    if access.half != home:
        own = _place_line(m, access.half, line)
        m.counts[access.row + Column.NEAR_HITS] += i64(st.popcount(m.l2.valid[own] & sectors))
        wanted = sectors & ~m.l2.valid[own]
        m.l2.valid[own] |= sectors
    if wanted != 0:
        entry = _place_line(m, home, line)
        hits = i64(st.popcount(m.l2.valid[entry] & wanted))
        missing = wanted & ~m.l2.valid[entry]
        missed = i64(st.popcount(missing))
        alone = _paired_sectors(missing, m.l2.valid[entry])
        m.l2.valid[entry] |= wanted | alone
        if access.half != home:
            m.counts[access.row + Column.FAR_HITS] += hits
            farthest = i64(_IN_FAR_L2)
        else:
            m.counts[access.row + Column.NEAR_HITS] += hits
        if missed > 0:
            farthest = i64(_IN_DRAM)
        m.counts[access.row + Column.MISSES] += missed
        m.counts[access.row + Column.UNPAIRED_SECTORS] += i64(st.popcount(alone))
        m.l2.words[entry] += 8 * missed
    return farthest


@st.device
def _count_shared(m: Memories, access: _Access, line: i64, sectors: i64) -> None:
    """Count the sectors of a bulk copy if another SM was the last one that copied their line."""
    entry = _find_line(m.l2.tags, _l2_set(m, access.half, line), m.l2.associativity, line)
    if m.l2.copiers[entry] != 0 and m.l2.copiers[entry] != access.sm + 1:
        m.counts[access.row + Column.SHARED_SECTORS] += i64(st.popcount(sectors))
    m.l2.copiers[entry] = access.sm + 1


@st.device
def _write_to_l2(m: Memories, access: _Access, line: i64, words: i64, sectors: i64) -> i64:
    """Store to a line of L2, or update it; return its farthest source."""
    home, farthest = _l2_half(m, line), i64(_IN_L2)
    if m.run.halves == 2 and (access.half == home or access.kind == Kind.ATOMIC):
        other = _find_line(m.l2.tags, _l2_set(m, 1 - home, line), m.l2.associativity, line)
        if other >= 0:
            m.l2.valid[other] &= ~sectors
    entry = _place_line(m, home, line)
    hits = i64(st.popcount(m.l2.valid[entry] & sectors))
    missed = i64(st.popcount(sectors & ~m.l2.valid[entry]))
    m.counts[access.row + Column.NEAR_HITS] += hits
    if access.kind == Kind.ATOMIC:  # reads the line
        m.counts[access.row + Column.MISSES] += missed
        if missed > 0:
            farthest = i64(_IN_DRAM)
        m.l2.words[entry] += 8 * missed
    else:
        m.counts[access.row + Column.NEAR_HITS] += missed
        m.l2.words[entry] += words
    m.l2.valid[entry] |= sectors
    was_clean = m.l2.dirty[entry] == 0
    m.l2.dirty[entry] |= sectors
    if was_clean:
        _limit_dirty(m, _l2_set(m, home, line))
    return farthest


@st.device
def _access_line(m: Memories, access: _Access, entry: i64) -> i64:
    """Access a line; return the farthest memory it waits for. entry: number << 10 | words << 4 | sectors."""
    line, words, sectors = entry >> 10, (entry >> 4) & 63, entry & 15
    in_l1, farthest, from_there = i64(0), i64(_IN_L1), i64(_IN_L1)
    m.counts[access.row + Column.LINES] += 1
    m.counts[access.row + Column.SECTORS] += i64(st.popcount(sectors))
    if m.l1.sets > 0 and access.kind != Kind.ATOMIC and access.kind != Kind.BULK_LOAD:
        in_l1, hit = _access_l1(m, access, line, words, sectors)
        if _is_load(access):
            m.counts[access.row + Column.L1_HITS] += i64(st.popcount(hit))
            if hit != 0 and m.l1.filled[in_l1] >> 2 >= access.time:
                farthest = m.l1.filled[in_l1] & 3
            sectors &= ~hit
    if access.kind == Kind.STORE:
        sectors &= ~_merge_store(m, access, line, sectors)
        if sectors == 0:
            in_l2 = _find_line(m.l2.tags, _l2_set(m, _l2_half(m, line), line), m.l2.associativity, line)
            if in_l2 >= 0:
                m.l2.words[in_l2] += words
    if sectors != 0:
        m.counts[access.row + Column.L2_REQUESTS] += 1
        if _is_load(access) or access.kind == Kind.BULK_LOAD:
            from_there = _load_from_l2(m, access, line, sectors)
            if access.kind == Kind.BULK_LOAD:
                _count_shared(m, access, line, sectors)
            elif m.l1.sets > 0:
                m.l1.filled[in_l1] = access.time << 2 | from_there
        else:
            from_there = _write_to_l2(m, access, line, words, sectors)
    return max(farthest, from_there)


# ------------------------------------------------------------------ warps and blocks
@st.device
def _access(m: Memories, slot: i64, warp: i64, at: i64, time: i64) -> None:
    """Execute an access of a warp."""
    word, owner, block = (
        m.trace.records[RECORD * at + RecordWord.PHASE_SITE],
        slot * m.run.warps + warp,
        m.slots.block[slot],
    )
    site, sm = word & 0xFFFF, slot % m.run.sms
    row = (m.trace.classes[block * m.run.warps + warp] * m.run.sites + site) * COLUMNS
    access = _Access(
        sm, (sm & 1) * (m.run.halves - 1), owner, block, row, m.trace.kinds[site], (word >> 16) & 0xFFFF, time
    )
    m.state[Progress.CLOCK] += 1
    m.counts[row + Column.ACCESSES] += 1
    first, farthest = m.trace.records[RECORD * at + RecordWord.FIRST_LINE], i64(_IN_L1)
    for n in range(first, first + (m.trace.records[RECORD * at + RecordWord.NUMBER_LINES] & 0xFF)):
        farthest = max(farthest, _access_line(m, access, m.trace.lines[n]))
    for level in range(farthest):
        m.counts[row + Column.L2_WAITS + level] += 1
    last = owner * m.run.sites + site
    if farthest > 0 and m.slots.last_waits[last] == 2 * block + 3:
        m.counts[row + Column.REPEATED_WAITS] += 1
    m.slots.last_waits[last] = 2 * block + 2 + min(farthest, i64(1))


@st.device
def _run_warp(m: Memories, slot: i64, warp: i64) -> None:
    """Execute the accesses of a warp in this phase, up to the current time."""
    at, past = m.slots.cursor[slot * m.run.warps + warp], m.trace.first[m.slots.block[slot] * m.run.warps + warp + 1]
    time = m.slots.start[slot] + (m.trace.records[RECORD * at + RecordWord.NUMBER_LINES] >> 8)
    while time <= m.state[Progress.TIME]:
        _access(m, slot, warp, at, time)
        at += 1
        time = i64(_NEVER)
        if at < past and m.trace.records[RECORD * at + RecordWord.PHASE_SITE] >> 32 == m.slots.phase[slot]:
            time = m.slots.start[slot] + (m.trace.records[RECORD * at + RecordWord.NUMBER_LINES] >> 8)
    m.slots.cursor[slot * m.run.warps + warp] = at


@st.device
def _run_block(m: Memories, slot: i64) -> None:
    """Execute the accesses of a block up to the current time. If all its warps wait at a barrier, start the next phase."""
    waiting, active, earliest = i64(0), i64(0), i64(_NEVER)
    for warp in range(m.run.warps):
        at = m.slots.cursor[slot * m.run.warps + warp]
        if at < m.trace.first[m.slots.block[slot] * m.run.warps + warp + 1]:
            waiting += 1
            phase = m.trace.records[RECORD * at + RecordWord.PHASE_SITE] >> 32
            if phase == m.slots.phase[slot]:
                active += 1
                _run_warp(m, slot, warp)
            else:
                earliest = min(earliest, phase)
    if waiting == 0:
        m.slots.block[slot] = i64(-1)
        m.state[Progress.LEFT] -= 1
    elif active == 0:
        m.slots.phase[slot] = earliest


@st.device
def _start_block(m: Memories, slot: i64) -> None:
    """Assign the next block to a free slot."""
    if m.slots.block[slot] < 0 and m.state[Progress.NEXT] < m.run.blocks:
        block = m.state[Progress.NEXT]
        m.state[Progress.NEXT] += 1
        m.slots.block[slot] = block
        m.slots.phase[slot] = 0
        m.slots.start[slot] = m.state[Progress.TIME] - m.run.step
        for warp in range(m.run.warps):
            m.slots.cursor[slot * m.run.warps + warp] = m.trace.first[block * m.run.warps + warp]


@native
def simulate_accesses(m: Memories, until: i64, rounds: i64) -> None:
    """Interleave the resident blocks of all SMs, `step` accesses per warp, until `until` blocks remain or `rounds` are used."""
    round_number = i64(0)
    while m.state[Progress.LEFT] > until and round_number < rounds:
        round_number += 1
        m.state[Progress.TIME] += m.run.step
        for place in range(m.run.sms * m.run.resident):
            slot = place
            if m.state[Progress.TIME] > m.run.step and place | 1 < m.run.sms * m.run.resident:
                swapped = hash_line((place >> 1) + 8191 * m.state[Progress.TIME]) >> 39
                slot = place ^ (swapped & m.run.random_assignment)
            _start_block(m, slot)
            if m.slots.block[slot] >= 0:
                _run_block(m, slot)
