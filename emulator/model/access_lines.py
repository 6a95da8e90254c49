"""Native code of the trace: cache lines and sectors of each warp access, appended to records."""

from enum import IntEnum
from typing import NamedTuple

from .. import language as st
from ..language.hints import Global, i64
from ..native import native

Kind = IntEnum("Kind", "LOAD STORE ATOMIC LOCAL_LOAD LOCAL_STORE CONSTANT BULK_LOAD", start=0)
"""Kinds of accesses. For constant memory, lines are distinct addresses. Bulk copies load from L2."""
Total = IntEnum("Total", "ACCESSES LINES SECTORS CYCLES NON_ADJACENT SAME_SECTORS PARTIAL_SECTORS", start=0)
TOTALS = len(Total)
"""Columns of a site: warp accesses; lines; sectors; L1 cycles; accesses with non-adjacent lines; accesses to the
sectors of the warp's previous one; partially written sectors. L1 cycles of an access: maximum of words per bank (32
banks) and lines per tag bank (four banks)."""
RecordWord = IntEnum("RecordWord", "BLOCK_WARP PHASE_SITE FIRST_LINE NUMBER_LINES", start=0)
RECORD = len(RecordWord)
"""Words of an access record: block << 16 | warp; phase << 32 | store lines of the warp so far (16 bits) << 16 | site;
first line; access number << 8 | line count. Access numbers are synchronized at barriers."""
WORDS, TOUCHED = 6, 4
"""Bits of a line entry below its number: count of accessed words, and sector mask."""
REGIONS = 1 << 14
"""Memory regions with separate L2 request counts; each is in one L2 slice, eight regions share 4 KiB."""
HASH_SLOTS, RECENT_SLOTS = 256, 1 << 16
"""Slots of the hash tables of an access's lines and of recent sectors."""
LINE_WORDS = 6
"""Words of a line of an access: number, word mask of all lanes, word mask by phase."""
HASH_BITS = 40
"""Bits of a line's hash: the first ones select sampled lines, the next ones the cache set."""
_ENTRY = 35
"""Words of a `profiler.trace` entry: block; phase << 32 | site; lanes << 32 | warp; the index of each lane."""
_FIRST_TAGS, _SECOND_TAGS = 0x6F7AB5, 0x3AD5DA
"""Line-number bits whose parities select the tag bank. Inferred from Nsight Compute on an H100
(`l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld`), loads of `reports.hardware.patterns` and lines at distances of 2^5 to 2^22."""
Counter = IntEnum("Counter", "ACCESSES RECORDS LINES SAMPLING_STRIDE", start=0)
"""Counters: accesses; records and sampled lines in the trace; one of so many lines is sampled."""


class Sites(NamedTuple):
    """Access sites. base: address of the array. size: bytes of a lane's access. local_bytes: of a thread's local array. float_add:
    whether lanes add floats."""

    base: Global[i64]
    size: Global[i64]
    kind: Global[i64]
    local_bytes: Global[i64]
    float_add: Global[i64]


class TraceCounts(NamedTuple):
    """Counts of the trace. totals: by site and column. hot_regions: store lines and atomic passes by region; lanes with float
    additions by address. work, access_numbers, stored_lines: by warp. phase_numbers: by block, phase, highest number before it,
    highest number. recent_sectors: hash table of warp, site and sector signature. counters: see `Counter`."""

    totals: Global[i64]
    hot_regions: Global[i64]
    work: Global[i64]
    access_numbers: Global[i64]
    phase_numbers: Global[i64]
    stored_lines: Global[i64]
    recent_sectors: Global[i64]
    counters: Global[i64]


class LineBuffers(NamedTuple):
    """Lines of an access. slots: hash table. word_lanes, bit_slices: zeroed."""

    slots: Global[i64]
    words: Global[i64]
    word_lanes: Global[i64]
    bit_slices: Global[i64]


class Options(NamedTuple):
    """threads: resident on the GPU, whose local words are interleaved. warps: of a block. most: sampled lines."""

    loads_full_lines: i64
    warps: i64
    threads: i64
    most: i64


class Tracer(NamedTuple):
    """A trace. lines: sampled ones."""

    sites: Sites
    counts: TraceCounts
    access: LineBuffers
    options: Options
    records: Global[i64]
    lines: Global[i64]


class Batch(NamedTuple):
    """Executed blocks. site_of: by instruction. first_warp: in the trace. phases: by block."""

    site_of: Global[i64]
    first_warp: i64
    phases: Global[i64]


class _Access(NamedTuple):
    """An access of a warp. owner: number of the warp in the launch. phases: words of a lane."""

    block: i64
    owner: i64
    site: i64
    kind: i64
    phases: i64


@st.device
def hash_line(line: i64) -> i64:
    """Return a 40-bit multiplicative hash of a line number. Ranges of lines spread evenly over sets, as on the
    hardware: 24 MiB in sequence fit in 30 MiB without conflict misses."""
    return ((line * -0x61C8864680B583EB) >> 24) & 0xFFFFFFFFFF


@st.device
def l2_slice_region(line: i64) -> i64:
    """Return the region of a line: every eighth line of 4 KiB. The hash from 4 KiB to slice groups is pseudo-random;
    fitted to random atomics on an H200."""
    mixed = (line >> 5) * -0x61C8864680B583EB
    mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * -0x40A7B892E31B1A47
    return (((mixed >> 32) & 0x7FF) << 3) | (line & 7)


@st.device
def _atomic_passes(word_lanes: Global[i64], first: i64) -> i64:
    """Return passes of a warp's atomics on a line, and clear the counts. Lanes of one word are serialized; per sector,
    one pass per lane, at most two per lane of its busiest word."""
    passes = i64(0)
    for sector in range(i64(4)):
        lanes, most = i64(0), i64(0)
        for word in range(first + 8 * sector, first + 8 * sector + 8):
            lanes += word_lanes[word]
            most = max(most, word_lanes[word])
            word_lanes[word] = i64(0)
        passes += min(lanes, 2 * most)
    return passes


@st.device
def _count_lanes(word_lanes: Global[i64], first: i64, line: i64, lanes_of_address: Global[i64], at: i64) -> None:
    """Add the lanes of the words of a line."""
    for word in range(i64(32)):
        address = line * 32 + word
        lanes_of_address[at + ((address ^ (address >> 14)) & (REGIONS - 1))] += word_lanes[first + word]


@st.device
def _max_bank_words(access: LineBuffers, line_count: i64, phase: i64) -> i64:
    """Return the words of the busiest bank, by bit-sliced counters."""
    if line_count == 1:
        return i64(1) if access.words[2 + phase] != 0 else i64(0)
    for which in range(line_count):
        carry, bit = access.words[LINE_WORDS * which + 2 + phase], i64(0)
        while carry != 0:
            low = access.bit_slices[bit]
            access.bit_slices[bit] = low ^ carry
            carry &= low
            bit += 1
    most, candidates = i64(0), i64(0xFFFFFFFF)
    for n in range(i64(6)):
        bit = i64(5) - n
        if access.bit_slices[bit] & candidates != 0:
            candidates &= access.bit_slices[bit]
            most += i64(1) << bit
        access.bit_slices[bit] = 0
    return most


@st.device
def _l1_cycles(access: LineBuffers, line_count: i64, phases: i64) -> i64:
    """Return L1 cycles of an access."""
    cycles, tags = i64(0), i64(0)
    for phase in range(phases):
        cycles += _max_bank_words(access, line_count, phase)
    for which in range(line_count):
        line = access.words[LINE_WORDS * which]
        bank = (st.popcount(line & _FIRST_TAGS) & 1) * 2 + (st.popcount(line & _SECOND_TAGS) & 1)
        tags += i64(1) << i64(8 * bank)
    for _bank in range(4):
        cycles = max(cycles, tags & 255)
        tags = tags >> 8
    return cycles


# ------------------------------------------------------------------ lines of an access
@st.device
def _number_access(t: Tracer, access: _Access, phase: i64) -> None:
    """Number an access: after those of the warp, and those of the block before its last barrier."""
    of_block = 3 * access.block
    if phase > t.counts.phase_numbers[of_block]:
        t.counts.phase_numbers[of_block] = phase
        t.counts.phase_numbers[of_block + 1] = t.counts.phase_numbers[of_block + 2]
    number = max(t.counts.access_numbers[access.owner], t.counts.phase_numbers[of_block + 1]) + 1
    t.counts.access_numbers[access.owner] = number
    t.counts.phase_numbers[of_block + 2] = max(t.counts.phase_numbers[of_block + 2], number)
    t.counts.counters[Counter.ACCESSES] += 1


@st.device
def _line_index(access: LineBuffers, number: i64, line: i64, line_count: i64) -> i64:
    """Return the index of a line in an access, `line_count` for a new one."""
    place = (line ^ (line >> 6)) & (HASH_SLOTS - 1)
    while access.slots[2 * place] == number and access.words[LINE_WORDS * access.slots[2 * place + 1]] != line:
        place = (place + 1) & (HASH_SLOTS - 1)
    if access.slots[2 * place] != number:
        access.slots[2 * place] = number
        access.slots[2 * place + 1] = line_count
        access.words[LINE_WORDS * line_count] = line
        for index in range(i64(1), i64(LINE_WORDS)):
            access.words[LINE_WORDS * line_count + index] = i64(0)
    return access.slots[2 * place + 1]


@st.device
def _collect_lines(t: Tracer, access: _Access, elements: Global[i64], at: i64, mask: i64) -> i64:
    """Collect the lines of an access; return their number. The words of a lane's local value are in several lines.

    elements: by lane, from `at` on. mask: active lanes.
    """
    site, line_count, index = access.site, i64(0), i64(-1)
    number = t.counts.counters[Counter.ACCESSES]
    is_local = access.kind == Kind.LOCAL_LOAD or access.kind == Kind.LOCAL_STORE
    local_base = t.sites.base[site] + (access.owner * 32 % t.options.threads) * t.sites.local_bytes[site]
    shift = i64(2) if access.kind == Kind.CONSTANT else i64(7)
    words_per_lane = access.phases if is_local else i64(1)
    for lane in range(i64(32)):
        for piece in range(words_per_lane if (mask >> lane) & 1 != 0 else i64(0)):
            address = elements[at + lane] * t.sites.size[site]
            bits, phase = (i64(1) << ((t.sites.size[site] + 3) >> 2)) - 1, (i64(lane) * access.phases) >> 5
            if is_local:
                address, bits, phase = local_base + 128 * ((address >> 2) + piece) + 4 * lane, i64(1), piece
            else:
                address += t.sites.base[site]
            line = address >> shift
            if index < 0 or t.access.words[LINE_WORDS * index] != line:
                index = _line_index(t.access, number, line, line_count)
                line_count = max(line_count, index + 1)
            words = bits << ((address >> 2) & 31)
            t.access.words[LINE_WORDS * index + 1] |= words
            t.access.words[LINE_WORDS * index + 2 + phase] |= words
            if access.kind == Kind.ATOMIC:
                t.access.word_lanes[32 * index + ((address >> 2) & 31)] += 1
    return line_count


@st.device
def _count_slice_requests(t: Tracer, access: _Access, line_count: i64) -> None:
    """Count requests of a store or of an atomic by region."""
    for index in range(line_count):
        line = t.access.words[LINE_WORDS * index]
        place = l2_slice_region(line)
        if access.kind == Kind.STORE:
            t.counts.hot_regions[place] += 1
        else:
            if t.sites.float_add[access.site] != 0:
                _count_lanes(t.access.word_lanes, 32 * index, line, t.counts.hot_regions, i64(2 * REGIONS))
            t.counts.hot_regions[place + REGIONS] += _atomic_passes(t.access.word_lanes, 32 * index)


@st.device
def _touched_sectors(t: Tracer, access: _Access, index: i64) -> i64:
    """Return the mask of the sectors of a line of an access; count partial ones."""
    touched = i64(15)
    if t.options.loads_full_lines == 0 or access.kind != Kind.LOAD:
        touched = i64(0)
        for sector in range(i64(4)):
            words = (t.access.words[LINE_WORDS * index + 1] >> (8 * sector)) & 255
            if words != 0:
                touched |= i64(1) << sector
                if access.kind != Kind.CONSTANT:
                    t.counts.totals[TOTALS * access.site + Total.PARTIAL_SECTORS] += i64(words != 255)
    return touched


@st.device
def _repeats_sectors(recent: Global[i64], access: _Access, signature: i64) -> bool:
    """Return whether the previous access of the warp at the site had the same sectors."""
    place = 3 * (hash_line(access.owner * 8191 + access.site) & (RECENT_SLOTS - 1))
    repeats = recent[place] == access.owner and recent[place + 1] == access.site and recent[place + 2] == signature
    recent[place] = access.owner
    recent[place + 1] = access.site
    recent[place + 2] = signature
    return repeats


@st.device
def _append_lines(t: Tracer, access: _Access, line_count: i64, stored: i64) -> i64:
    """Count an access and append its sampled lines after `stored` ones; return the number of lines."""
    sectors, signature, total = i64(0), i64(1), TOTALS * access.site
    low, high, past = t.access.words[0], t.access.words[0], stored
    for index in range(line_count):
        line = t.access.words[LINE_WORDS * index]
        low, high = min(low, line), max(high, line)
        touched = _touched_sectors(t, access, index)
        sectors += i64(st.popcount(touched))
        signature += hash_line((line << 4) | touched)
        if _is_sampled(t, line):
            words = i64(st.popcount(t.access.words[LINE_WORDS * index + 1]))
            t.lines[past] = (line << (WORDS + TOUCHED)) | (words << TOUCHED) | touched
            past += 1
    t.counts.totals[total + Total.SAME_SECTORS] += i64(_repeats_sectors(t.counts.recent_sectors, access, signature))
    t.counts.totals[total + Total.ACCESSES] += 1
    t.counts.totals[total + Total.NON_ADJACENT] += i64(high - low > 2 * line_count)
    t.counts.totals[total + Total.LINES] += line_count
    t.counts.work[access.owner] += 1
    if access.kind == Kind.CONSTANT:
        past = stored
    else:
        t.counts.totals[total + Total.SECTORS] += sectors
    return past


@st.device
def _is_sampled(t: Tracer, line: i64) -> bool:
    """Return whether a line is in the trace."""
    return hash_line(line) * t.counts.counters[Counter.SAMPLING_STRIDE] < i64(1) << HASH_BITS


@st.device
def _halve_sampling(t: Tracer) -> None:
    """Drop half of the sampled lines."""
    t.counts.counters[Counter.SAMPLING_STRIDE] *= 2
    records, lines = i64(0), i64(0)
    for n in range(t.counts.counters[Counter.RECORDS]):
        first, number = t.records[RECORD * n + RecordWord.FIRST_LINE], t.records[RECORD * n + RecordWord.NUMBER_LINES]
        t.records[RECORD * records + RecordWord.BLOCK_WARP] = t.records[RECORD * n + RecordWord.BLOCK_WARP]
        t.records[RECORD * records + RecordWord.PHASE_SITE] = t.records[RECORD * n + RecordWord.PHASE_SITE]
        t.records[RECORD * records + RecordWord.FIRST_LINE] = lines
        for k in range(first, first + (number & 0xFF)):
            if _is_sampled(t, t.lines[k] >> (WORDS + TOUCHED)):
                t.lines[lines] = t.lines[k]
                lines += 1
        kept = lines - t.records[RECORD * records + RecordWord.FIRST_LINE]
        t.records[RECORD * records + RecordWord.NUMBER_LINES] = number >> 8 << 8 | kept
        records += i64(kept > 0)
    t.counts.counters[Counter.RECORDS] = records
    t.counts.counters[Counter.LINES] = lines


@st.device
def _trace_access(t: Tracer, access: _Access, index: Global[i64], at: i64, mask: i64, phase: i64) -> None:
    """Append the record and the sampled lines of an access. index, at: as in `_collect_lines`."""
    _number_access(t, access, phase)
    line_count = _collect_lines(t, access, index, at, mask)
    if access.kind == Kind.STORE:
        t.counts.stored_lines[access.owner] += line_count
    if access.kind == Kind.STORE or access.kind == Kind.ATOMIC:
        _count_slice_requests(t, access, line_count)
    cycles = i64(1) if access.kind == Kind.CONSTANT else _l1_cycles(t.access, line_count, access.phases)
    t.counts.totals[TOTALS * access.site + Total.CYCLES] += cycles
    stored = t.counts.counters[Counter.LINES]
    past = _append_lines(t, access, line_count, stored)
    if past > stored:
        record = RECORD * t.counts.counters[Counter.RECORDS]
        t.records[record + RecordWord.BLOCK_WARP] = access.block << 16 | access.owner % t.options.warps
        stored_lines = t.counts.stored_lines[access.owner] & 0xFFFF
        t.records[record + RecordWord.PHASE_SITE] = phase << 32 | stored_lines << 16 | access.site
        t.records[record + RecordWord.FIRST_LINE] = stored
        t.records[record + RecordWord.NUMBER_LINES] = t.counts.access_numbers[access.owner] << 8 | (past - stored)
        t.counts.counters[Counter.RECORDS] += 1
        t.counts.counters[Counter.LINES] = past
        while t.counts.counters[Counter.LINES] > t.options.most:
            _halve_sampling(t)


@st.device
def _access_of(t: Tracer, block: i64, owner: i64, site: i64) -> _Access:
    size = t.sites.size[site]
    return _Access(block, owner, site, t.sites.kind[site], size // 4 if size == 8 or size == 16 else i64(1))


@native
def trace_entries(t: Tracer, raw: Global[i64], count: i64) -> None:
    """Append the accesses of the source. raw: of `profiler.trace`."""
    for n in range(count):
        at = n * _ENTRY
        block, mask, warp = raw[at], raw[at + 2] >> 32, raw[at + 2] & 0xFFFFFFFF
        access = _access_of(t, block, block * t.options.warps + warp, raw[at + 1] & 0xFFFFFFFF)
        _trace_access(t, access, raw, at + 3, mask, raw[at + 1] >> 32)


@native
def trace_warps(
    t: Tracer, batch: Batch, instruction: i64, warps: Global[i64], count: i64, index: Global[i64], active: Global[bool]
) -> None:
    """Append the accesses of a SASS instruction; see `sass.counts.AccessTrace`."""
    for n in range(count):
        mask, owner = i64(0), batch.first_warp + warps[n]
        for lane in range(i64(32)):
            mask |= i64(active[32 * n + lane]) << lane
        if mask != 0:
            access = _access_of(t, owner // t.options.warps, owner, batch.site_of[instruction])
            _trace_access(t, access, index, 32 * n, mask, batch.phases[warps[n] // t.options.warps])
