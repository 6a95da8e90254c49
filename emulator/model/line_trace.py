"""Trace of a launch's accesses as cache lines: lines and sectors of each warp access."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.walk import statements
from ..language.hints import Global, i64
from ..language.types import Array, Scalar
from ..native import native
from ..profiler.trace import CACHED, Entries
from ..runtime.engine import Request

LINE, SECTOR = 128, 32
"""Bytes of a line and of a sector on all supported devices."""
MAX_LINES = 1 << 18
"""Lines in the trace. Beyond, a hash of the line number selects every 2nd, 4th, ... line, and simulated caches shrink
accordingly."""
MAX_ACCESSES = 1 << 26
"""Accesses after which no further block is traced; the rest is extrapolated."""
_ALLOCATION_ALIGNMENT = 1 << 21
"""Alignment of arrays in bytes: pages of device memory."""
_REGIONS = 1 << 14
"""Memory regions with separate L2 request counts; each is in one L2 slice, eight regions share 4 KiB."""
_PLACEMENT_SAMPLES = 16
"""Random placements of regions in slices, averaged for the busiest slice."""
BLOCK_WARP, PHASE_SITE, FIRST_LINE, NUMBER_LINES = range(4)
RECORD = 4
"""Words of an access record: block << 16 | warp; phase << 32 | store lines of the warp so far (16 bits) << 16 | site;
first line; access number << 8 | line count. Access numbers are synchronized at barriers."""
WORDS, TOUCHED = 6, 4
"""Bits of a line entry below its number: count of accessed words, and sector mask."""
LOAD, STORE, ATOMIC, LOCAL_LOAD, LOCAL_STORE, CONSTANT = range(6)
"""Kinds of accesses. For constant memory, lines are distinct addresses."""
ACCESSES, LINES, SECTORS, CYCLES, NON_ADJACENT, SAME_SECTORS, PARTIAL_SECTORS, TOTALS = range(8)
"""Columns of a site: warp accesses; lines; sectors; L1 cycles; accesses with non-adjacent lines; accesses to the
sectors of the warp's previous one; partially written sectors. L1 cycles of an access: maximum of words per bank (32
banks) and lines per tag bank (four banks)."""
_FIRST_TAGS, _SECOND_TAGS = 0x6F7AB5, 0x3AD5DA
"""Line-number bits whose parities select the tag bank. Inferred from Nsight Compute on an H100
(`l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld`), loads of `reports.hardware.patterns` and lines at distances of 2^5 to 2^22."""
_HASH_SLOTS, _RECENT_SLOTS = 256, 1 << 16
"""Slots of the hash tables of an access's lines and of recent sectors."""
_LINE_WORDS = 6
"""Words of a line of an access: number, word mask of all lanes, word mask by phase."""
HASH_BITS = 40
"""Bits of a line's hash: the first ones select sampled lines, the next ones the cache set."""

Words = npt.NDArray[np.int64]


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
def atomic_passes(word_lanes: Global[i64], first: i64) -> i64:
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
def count_addresses(word_lanes: Global[i64], first: i64, line: i64, hot_regions: Global[i64], at: i64) -> i64:
    """Return distinct words of a line; adds their lanes to `hot_regions`."""
    addresses = i64(0)
    for word in range(i64(32)):
        if word_lanes[first + word] > 0:
            addresses += 1
            address = line * 32 + word
            hot_regions[at + ((address ^ (address >> 14)) & 16383)] += word_lanes[first + word]
    return addresses


@st.device
def max_bank_words(line_words: Global[i64], line_count: i64, phase: i64, bit_slices: Global[i64]) -> i64:
    """Return the words of the busiest bank, by bit-sliced counters."""
    if line_count == 1:
        return i64(1) if line_words[2 + phase] != 0 else i64(0)
    for which in range(line_count):
        carry, bit = line_words[_LINE_WORDS * which + 2 + phase], i64(0)
        while carry != 0:
            low = bit_slices[bit]
            bit_slices[bit] = low ^ carry
            carry &= low
            bit += 1
    most, candidates = i64(0), i64(0xFFFFFFFF)
    for n in range(i64(6)):
        bit = i64(5) - n
        if bit_slices[bit] & candidates != 0:
            candidates &= bit_slices[bit]
            most += i64(1) << bit
        bit_slices[bit] = 0
    return most


@st.device
def l1_cycles(line_words: Global[i64], line_count: i64, phases: i64, bit_slices: Global[i64]) -> i64:
    """Return L1 cycles of an access."""
    cycles, tags = i64(0), i64(0)
    for phase in range(phases):
        cycles += max_bank_words(line_words, line_count, phase, bit_slices)
    for which in range(line_count):
        line = line_words[_LINE_WORDS * which]
        bank = (st.popcount(line & _FIRST_TAGS) & 1) * 2 + (st.popcount(line & _SECOND_TAGS) & 1)
        tags += i64(1) << i64(8 * bank)
    for _bank in range(4):
        cycles = max(cycles, tags & 255)
        tags = tags >> 8
    return cycles


@native
def _compact(
    raw: Global[i64], count: i64, base: Global[i64], size: Global[i64], kind: Global[i64], loads_full_lines: i64, sampling_stride: i64,
    records: Global[i64], lines: Global[i64], hot_regions: Global[i64], totals: Global[i64], work: Global[i64], warps: i64,
    local_bytes: Global[i64], threads: i64, line_slots: Global[i64], line_words: Global[i64], counters: Global[i64],
    word_lanes: Global[i64], bit_slices: Global[i64],
    hot_rows: Global[i64], access_numbers: Global[i64], phase_numbers: Global[i64],
    stored_lines: Global[i64], recent_sectors: Global[i64],
) -> i64:  # fmt: skip
    """Append records and sampled lines of accesses; return the number of lines.

    local_bytes: of a thread's local array; threads: resident on the GPU, whose local words are interleaved. counters:
    access number, records. hot_rows: row of a site's stores or atomics in hot_regions, else -1. access_numbers: by
    warp. phase_numbers: by block, phase, highest number before it, highest number. stored_lines: by warp.
    recent_sectors: hash table of warp, site and sector signature. word_lanes, bit_slices: zeroed buffers.
    """
    stored = i64(0)
    kept_records = i64(0)
    number = counters[0]
    for n in range(count):
        at = n * 35
        site = raw[at + 1] & 0xFFFFFFFF
        phase = raw[at + 1] >> 32
        warp = raw[at + 2] & 0xFFFFFFFF
        mask = raw[at + 2] >> 32
        number += 1
        line_count = i64(0)
        last_line = i64(-1)
        if phase > phase_numbers[3 * raw[at]]:
            phase_numbers[3 * raw[at]] = phase
            phase_numbers[3 * raw[at] + 1] = phase_numbers[3 * raw[at] + 2]
        owner = raw[at] * warps + warp
        access_numbers[owner] = max(access_numbers[owner], phase_numbers[3 * raw[at] + 1]) + 1
        phase_numbers[3 * raw[at] + 2] = max(phase_numbers[3 * raw[at] + 2], access_numbers[owner])
        is_local = kind[site] == 3 or kind[site] == 4
        phases = size[site] // 4 if size[site] == 8 or size[site] == 16 else i64(1)
        words_per_lane = phases if is_local else i64(1)
        local_base = base[site] + ((raw[at] * warps + warp) * 32 % threads) * local_bytes[site]
        for lane in range(i64(32)):
            for piece in range(words_per_lane if (mask >> lane) & 1 != 0 else i64(0)):
                address = raw[at + 3 + lane] * size[site]
                bits, phase_of = (i64(1) << ((size[site] + 3) >> 2)) - 1, (i64(lane) * phases) >> 5
                if is_local:
                    address, bits, phase_of = local_base + 128 * ((address >> 2) + piece) + 4 * lane, i64(1), piece
                else:
                    address += base[site]
                line = address >> 7
                if kind[site] == 5:
                    line = address >> 2
                if last_line < 0 or line_words[_LINE_WORDS * last_line] != line:
                    place = (line ^ (line >> 6)) & (_HASH_SLOTS - 1)
                    while (
                        line_slots[2 * place] == number and line_words[_LINE_WORDS * line_slots[2 * place + 1]] != line
                    ):
                        place = (place + 1) & (_HASH_SLOTS - 1)
                    if line_slots[2 * place] == number:
                        last_line = line_slots[2 * place + 1]
                    else:
                        last_line = line_count
                        line_slots[2 * place] = number
                        line_slots[2 * place + 1] = line_count
                        line_words[_LINE_WORDS * line_count] = line
                        for index in range(i64(1), i64(_LINE_WORDS)):
                            line_words[_LINE_WORDS * line_count + index] = i64(0)
                        line_count += 1
                words = bits << ((address >> 2) & 31)
                line_words[_LINE_WORDS * last_line + 1] |= words
                line_words[_LINE_WORDS * last_line + 2 + phase_of] |= words
                if kind[site] == 2:
                    word_lanes[32 * last_line + ((address >> 2) & 31)] += 1
        if kind[site] == 1:
            stored_lines[owner] += line_count
            for index in range(line_count):
                hot_regions[hot_rows[site] + l2_slice_region(line_words[_LINE_WORDS * index])] += 1
        if kind[site] == 2:
            for index in range(line_count):
                place = hot_rows[site] + l2_slice_region(line_words[_LINE_WORDS * index])
                hot_regions[place + 16384] += count_addresses(
                    word_lanes, 32 * index, line_words[_LINE_WORDS * index], hot_regions, hot_rows[site] + 32768
                )
                hot_regions[place] += atomic_passes(word_lanes, 32 * index)
        totals[TOTALS * site + CYCLES] += (
            i64(1) if kind[site] == 5 else l1_cycles(line_words, line_count, phases, bit_slices)
        )
        first_stored = stored
        sectors, partial, signature = i64(0), i64(0), i64(1)
        first = line_words[0]
        past = line_words[0]
        for index in range(line_count):
            first = min(first, line_words[_LINE_WORDS * index])
            past = max(past, line_words[_LINE_WORDS * index])
            touched = i64(15)
            if loads_full_lines == 0 or kind[site] != 0:
                words = line_words[_LINE_WORDS * index + 1]
                touched = i64(0)
                for sector in range(i64(4)):
                    if (words >> (8 * sector)) & 255 != 0:
                        touched |= i64(1) << sector
                        partial += i64((words >> (8 * sector)) & 255 != 255)
            sectors += i64(st.popcount(touched))
            signature += hash_line((line_words[_LINE_WORDS * index] << 4) | touched)
            if sampling_stride == 1 or hash_line(line_words[_LINE_WORDS * index]) * sampling_stride < i64(1) << 40:
                lines[stored] = (
                    (line_words[_LINE_WORDS * index] << 10)
                    | (i64(st.popcount(line_words[_LINE_WORDS * index + 1])) << 4)
                    | touched
                )
                stored += 1
        place = 3 * (hash_line(owner * 8191 + site) & 65535)
        totals[TOTALS * site + SAME_SECTORS] += i64(
            recent_sectors[place] == owner
            and recent_sectors[place + 1] == site
            and recent_sectors[place + 2] == signature
        )
        recent_sectors[place] = owner
        recent_sectors[place + 1] = site
        recent_sectors[place + 2] = signature
        totals[TOTALS * site + ACCESSES] += 1
        totals[TOTALS * site + NON_ADJACENT] += i64(1) if past - first > 2 * line_count else i64(0)
        work[owner] += 1
        totals[TOTALS * site + LINES] += line_count
        if kind[site] == 5:
            stored = first_stored
        else:
            totals[TOTALS * site + SECTORS] += sectors
            totals[TOTALS * site + PARTIAL_SECTORS] += partial
        if stored > first_stored:
            records[4 * kept_records] = (raw[at] << 16) | warp
            records[4 * kept_records + 1] = (phase << 32) | ((stored_lines[owner] & 0xFFFF) << 16) | site
            records[4 * kept_records + 2] = first_stored
            records[4 * kept_records + 3] = (access_numbers[owner] << 8) | (stored - first_stored)
            kept_records += 1
    counters[0] = number
    counters[1] = kept_records
    return stored


@dataclass
class LineTrace:
    """A tracer of cache lines. most: sampled lines, at most; accesses: limit of traced accesses.

    sampling_stride: one of so many lines is in the trace. totals: int64[site, TOTALS], of all traced accesses; work:
    accesses by warp. fetching: sites of atomics with used results.
    """

    request: Request
    most: int = MAX_LINES
    accesses: int = MAX_ACCESSES
    blocks: int = 1 << 62
    sampling_stride: int = 1
    spaces: tuple[str, ...] = CACHED
    interval: int = 1
    _records: list[Words] = field(default_factory=list)
    _lines: list[Words] = field(default_factory=list)
    _count: int = 0
    _last: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        sites, arguments = self.request.prepared.sites, self.request.arguments
        types = {p.name: p.type for p in self.request.program.kernel.params if isinstance(p.type, Array)}
        addresses, next_address = {}, _ALLOCATION_ALIGNMENT
        for name, type in types.items():
            addresses[name] = next_address
            next_address += (
                -(-max(1, len(np.asarray(arguments[name])) * type.element.size) // _ALLOCATION_ALIGNMENT)
                * _ALLOCATION_ALIGNMENT
            )
        device = self.request.device
        self._threads = device.sms * device.threads_per_sm
        local_sizes = {}
        add_spans = set()
        for stmt in statements(self.request.prepared.program.kernel.body):
            if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic) and stmt.value.op in ("add", "sub"):
                add_spans.add(stmt.span)
            if isinstance(stmt, ir.Alloc) and stmt.type.space in ("local", "constant"):
                types[stmt.array], addresses[stmt.array] = stmt.type, next_address
                size = (stmt.type.length or 1) * stmt.type.element.size
                if stmt.type.space == "local":
                    local_sizes[stmt.array] = size = -(-size // 4) * 4
                    size *= self._threads
                next_address += -(-size // _ALLOCATION_ALIGNMENT) * _ALLOCATION_ALIGNMENT
        self._base, self._size, self._local_bytes, self.kinds = (np.zeros(len(sites), np.int64) for _ in range(4))
        for number, site in enumerate(sites):
            if site.array in addresses:
                self._base[number], self._size[number] = addresses[site.array], site.size
                self._local_bytes[number] = local_sizes.get(site.array, 0)
                self.kinds[number] = _KINDS[types[site.array].space][site.access.operation]
        access_words = self._size[np.isin(self.kinds, (LOCAL_LOAD, LOCAL_STORE))] // 4
        self._max_lines_per_access = 32 * int(access_words.max(initial=1))
        atomic_sites = [n for n in range(len(sites)) if self.kinds[n] == ATOMIC]
        self.fetching = frozenset(n for n in atomic_sites if sites[n].access.operation is Operation.ATOMIC)
        slice_sites = [n for n in range(len(sites)) if self.kinds[n] in (STORE, ATOMIC)]
        self._float_rows = [
            number
            for number, n in enumerate(slice_sites)
            if n in atomic_sites
            and sites[n].span in add_spans
            and isinstance(element := types[sites[n].array].element, Scalar)
            and element.is_float
        ]
        self._loads_full_lines = int(device.loads_cached and device.load_sector == device.line)
        self.totals = np.zeros((len(sites), TOTALS), np.int64)
        self._hot_rows = np.full(len(sites), -1, np.int64)
        self._hot_rows[slice_sites] = 3 * _REGIONS * np.arange(len(slice_sites))
        self._hot_regions = np.zeros((max(1, len(slice_sites)), 3, _REGIONS), np.int64)
        self._warps = -(-int(np.prod(self.request.block)) // 32)
        blocks = int(np.prod(self.request.grid))
        self.work, self._numbers, self._stored_lines = (np.zeros(blocks * self._warps, np.int64) for _ in range(3))
        self._phases, self._recent_sectors = np.zeros(3 * blocks, np.int64), np.zeros(3 * _RECENT_SLOTS, np.int64)
        self._line_slots, self._line_words = (
            np.zeros(2 * _HASH_SLOTS, np.int64),
            np.zeros(_LINE_WORDS * self._max_lines_per_access, np.int64),
        )
        self._counters, self._word_lanes, self._bit_slices = (
            np.zeros(2, np.int64),
            np.zeros(32 * 32, np.int64),
            np.zeros(6, np.int64),
        )

    def take(self, entries: Entries) -> None:
        with self._lock:
            selected = entries if self.blocks > 1 << 61 else entries[entries["block"] < self.blocks]
            if not len(selected):
                return
            records, lines = (
                np.empty(RECORD * len(selected), np.int64),
                np.empty(self._max_lines_per_access * len(selected), np.int64),
            )
            raw = np.ascontiguousarray(selected).view(np.int64)
            stored = _compact(
                raw, len(selected), self._base, self._size, self.kinds, self._loads_full_lines, self.sampling_stride, records,
                lines, self._hot_regions.reshape(-1),
                self.totals.reshape(-1), self.work, self._warps, self._local_bytes, self._threads, self._line_slots,
                self._line_words, self._counters,
                self._word_lanes, self._bit_slices, self._hot_rows, self._numbers, self._phases, self._stored_lines,
                self._recent_sectors,
            )  # fmt: skip
            records = records[: RECORD * int(self._counters[1])].copy()
            records[2::RECORD] += self._count
            self._records.append(records)
            self._lines.append(lines[:stored].copy())
            self._count += stored
            self._last = max(self._last, int(selected["block"].max()))
            while self._count > self.most:
                self._halve_sampling()
            if self._counters[0] > self.accesses and self.blocks > 1 << 61:
                self.blocks = self._last + 1  # running blocks are traced to their end

    def _halve_sampling(self) -> None:
        """Drop half of the sampled lines."""
        self.sampling_stride *= 2
        lines, records = np.concatenate(self._lines), np.concatenate(self._records).reshape(-1, RECORD)
        is_sampled = hash_lines(lines >> (WORDS + TOUCHED)) * self.sampling_stride < 1 << HASH_BITS
        new_index = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_sampled)])
        new_end = new_index[records[:, 2] + (records[:, 3] & 0xFF)]
        records[:, 2] = new_index[records[:, 2]]
        records[:, 3] = records[:, 3] >> 8 << 8 | new_end - records[:, 2]
        self._records, self._lines = [records[records[:, 3] & 0xFF > 0].reshape(-1)], [lines[is_sampled]]
        self._count = int(new_index[-1])

    def begin_again(self) -> None:
        self._records.clear()
        self._lines.clear()
        self._count, self._last, self.blocks, self.sampling_stride = 0, -1, 1 << 62, 1
        for array in (
            self._hot_regions,
            self.totals,
            self._counters,
            self._line_slots,
            self.work,
            self._numbers,
            self._phases,
            self._stored_lines,
            self._recent_sectors,
        ):
            array[:] = 0

    @property
    def traced_blocks(self) -> int:
        """Number of traced blocks."""
        return min(self.blocks, int(np.prod(self.request.grid)))

    def busiest_slice_cycles(
        self, slices: int, store_cycles: float, atomic_cycles: float, warp_aggregated: Collection[int] = ()
    ) -> float:
        """Return cycles of the busiest L2 slice in the launch. store_cycles, atomic_cycles: per line of a store, per
        atomic pass. warp_aggregated: sites with one active lane per address."""
        cycles = np.zeros(_REGIONS)
        for number, site in enumerate(np.flatnonzero(np.isin(self.kinds, (STORE, ATOMIC)))):
            cycles_per_request = store_cycles if self.kinds[site] == STORE else atomic_cycles
            cycles += cycles_per_request * self._hot_regions[number, int(site in warp_aggregated)]
        generator = np.random.default_rng(_PLACEMENT_SAMPLES)
        groups, first = (
            generator.integers(0, most, (_PLACEMENT_SAMPLES, _REGIONS // 8, 1)) for most in (max(1, slices // 8), 8)
        )
        placements = (8 * groups + (np.arange(8) ^ first)).reshape(_PLACEMENT_SAMPLES, _REGIONS)
        return self._scale_to_launch(float(np.mean([np.bincount(slice_of, cycles).max() for slice_of in placements])))

    @property
    def hottest_float_adds(self) -> float:
        """Float additions to the most used address, in the launch."""
        return self._scale_to_launch(float(self._hot_regions[self._float_rows, 2].sum(axis=0).max()))

    def _scale_to_launch(self, value: float) -> float:
        """Scale from traced blocks to all blocks."""
        return float(value * np.prod(self.request.grid) / self.traced_blocks)

    @property
    def imbalance(self) -> float:
        """Accesses of the longest warp relative to the mean."""
        mean = float(self.work.mean())
        return float(self.work.max()) / mean if mean and self.traced_blocks == np.prod(self.request.grid) else 1.0

    @cached_property
    def sorted(self) -> tuple[Words, Words, Words]:
        """Records by block and warp, int64[n * RECORD]; start of each warp's records; the lines."""
        records = np.concatenate([np.zeros(0, np.int64), *self._records]).reshape(-1, RECORD)
        lines = np.concatenate([np.zeros(0, np.int64), *self._lines])
        warps = -(-int(np.prod(self.request.block)) // 32)
        if len(records) and (np.diff(records[:, 0]) < 0).any():
            records = records[np.argsort(records[:, 0], kind="stable")]
        owner = (records[:, 0] >> 16) * warps + (records[:, 0] & 0xFFFF)
        first = np.zeros(self.traced_blocks * warps + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=self.traced_blocks * warps), out=first[1:])
        return np.ascontiguousarray(records).reshape(-1), first, lines


def hash_lines(lines: Words) -> Words:
    """Return `hash_line` of an array."""
    with np.errstate(over="ignore"):
        return ((lines * np.int64(-0x61C8864680B583EB)) >> 24) & np.int64(0xFFFFFFFFFF)


_KINDS: dict[str, dict[Any, int]] = {
    "global": {
        Operation.LOAD: LOAD, Operation.STORE: STORE, Operation.ATOMIC: ATOMIC, Operation.REDUCTION: ATOMIC,
    },
    "local": {Operation.LOAD: LOCAL_LOAD, Operation.STORE: LOCAL_STORE},
    "constant": {Operation.LOAD: CONSTANT},
}  # fmt: skip
