"""Trace of a launch's accesses as cache lines: lines and sectors of each warp access."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.walk import statements
from ..language.types import Array, Scalar
from ..profiler.trace import CACHED, Entries
from ..runtime.engine import Request
from .access_lines import (
    HASH_BITS,
    HASH_SLOTS,
    LINE_WORDS,
    RECENT_SLOTS,
    RECORD,
    REGIONS,
    TOTALS,
    TOUCHED,
    WORDS,
    Kind,
    LineBuffers,
    Options,
    RecordWord,
    Sites,
    TraceCounts,
    Tracer,
    compact,
)
from .records import zeroed

LINE, SECTOR = 128, 32
"""Bytes of a line and of a sector on all supported devices."""
MAX_LINES = 1 << 18
"""Lines in the trace. Beyond, a hash of the line number selects every 2nd, 4th, ... line, and simulated caches shrink
accordingly."""
MAX_ACCESSES = 1 << 26
"""Accesses after which no further block is traced; the rest is extrapolated."""
_ALLOCATION_ALIGNMENT = 1 << 21
"""Alignment of arrays in bytes: pages of device memory."""
_PLACEMENT_SAMPLES = 16
"""Random placements of regions in slices, averaged for the busiest slice."""
Words = npt.NDArray[np.int64]


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
        sites = self.request.prepared.sites
        device, blocks = self.request.device, int(np.prod(self.request.grid))
        body = self.request.prepared.program.kernel.body
        adds = {
            stmt.span
            for stmt in statements(body)
            if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic) and stmt.value.op in ("add", "sub")
        }
        self._threads, self._warps = device.sms * device.threads_per_sm, -(-int(np.prod(self.request.block)) // 32)
        types = self._set_sites(body)
        slice_sites = np.flatnonzero(np.isin(self.kinds, (Kind.STORE, Kind.ATOMIC))).tolist()
        atomic_sites = [n for n in slice_sites if self.kinds[n] == Kind.ATOMIC]
        self.fetching = frozenset(n for n in atomic_sites if sites[n].access.operation is Operation.ATOMIC)
        self._float_rows = [
            number
            for number, n in enumerate(slice_sites)
            if n in atomic_sites
            and sites[n].span in adds
            and isinstance(element := types[sites[n].array].element, Scalar)
            and element.is_float
        ]
        self._hot_rows = np.full(len(sites), -1, np.int64)
        self._hot_rows[slice_sites] = 3 * REGIONS * np.arange(len(slice_sites))
        self._hot_regions = np.zeros((max(1, len(slice_sites)), 3, REGIONS), np.int64)
        self.totals, self.work = np.zeros((len(sites), TOTALS), np.int64), np.zeros(blocks * self._warps, np.int64)
        self._counts = zeroed(
            TraceCounts, totals=self.totals.reshape(-1), hot_regions=self._hot_regions.reshape(-1), work=self.work,
            access_numbers=len(self.work), phase_numbers=3 * blocks, stored_lines=len(self.work),
            recent_sectors=3 * RECENT_SLOTS, counters=2,
        )  # fmt: skip
        words = LINE_WORDS * self._max_lines_per_access
        self._buffers = zeroed(LineBuffers, slots=2 * HASH_SLOTS, words=words, word_lanes=32 * 32, bit_slices=6)

    def _set_sites(self, body: ir.Body) -> dict[str, Array]:
        """Set address, size and kind of each site, and return the types of the arrays by name."""
        sites = self.request.prepared.sites
        types = {p.name: p.type for p in self.request.program.kernel.params if isinstance(p.type, Array)}
        sizes = {
            name: max(1, len(np.asarray(self.request.arguments[name])) * type.element.size)
            for name, type in types.items()
        }
        local_sizes = {}
        for stmt in statements(body):
            if isinstance(stmt, ir.Alloc) and stmt.type.space in ("local", "constant"):
                types[stmt.array] = stmt.type
                sizes[stmt.array] = (stmt.type.length or 1) * stmt.type.element.size
                if stmt.type.space == "local":
                    local_sizes[stmt.array] = -(-sizes[stmt.array] // 4) * 4
                    sizes[stmt.array] = local_sizes[stmt.array] * self._threads
        pages = [-(-size // _ALLOCATION_ALIGNMENT) for size in sizes.values()]
        starts = _ALLOCATION_ALIGNMENT * np.cumsum([1, *pages])
        addresses = dict(zip(sizes, starts.tolist(), strict=False))
        self._base, self._size, self._local_bytes, self.kinds = np.zeros((4, len(sites)), np.int64)
        for number, site in enumerate(sites):
            if site.array in addresses:
                self._base[number], self._size[number] = addresses[site.array], site.size
                self._local_bytes[number] = local_sizes.get(site.array, 0)
                self.kinds[number] = _KINDS[types[site.array].space][site.access.operation]
        access_words = self._size[np.isin(self.kinds, (Kind.LOCAL_LOAD, Kind.LOCAL_STORE))] // 4
        self._max_lines_per_access = 32 * int(access_words.max(initial=1))
        return types

    def take(self, entries: Entries) -> None:
        with self._lock:
            selected = entries if self.blocks > 1 << 61 else entries[entries["block"] < self.blocks]
            if not len(selected):
                return
            device, count = self.request.device, len(selected)
            full_lines = int(device.loads_cached and device.load_sector == device.line)
            records, lines = np.empty(RECORD * count, np.int64), np.empty(self._max_lines_per_access * count, np.int64)
            sites: Any = self._base, self._size, self.kinds, self._local_bytes, self._hot_rows
            options = Options(full_lines, self.sampling_stride, self._warps, self._threads)
            results: Any = records, lines
            tracer = Tracer(Sites(*sites), self._counts, self._buffers, options, *results)
            stored = compact(tracer, np.ascontiguousarray(selected).view(np.int64), count)
            accesses, record_count = np.asarray(self._counts.counters).tolist()
            records = records[: RECORD * record_count].copy()
            records[RecordWord.FIRST_LINE :: RECORD] += self._count
            self._records.append(records)
            self._lines.append(lines[:stored].copy())
            self._count += stored
            self._last = max(self._last, int(selected["block"].max()))
            while self._count > self.most:
                self._halve_sampling()
            if accesses > self.accesses and self.blocks > 1 << 61:
                self.blocks = self._last + 1  # running blocks are traced to their end

    def _halve_sampling(self) -> None:
        """Drop half of the sampled lines."""
        self.sampling_stride *= 2
        lines, records = np.concatenate(self._lines), np.concatenate(self._records).reshape(-1, RECORD)
        is_sampled = hash_lines(lines >> (WORDS + TOUCHED)) * self.sampling_stride < 1 << HASH_BITS
        new_index = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_sampled)])
        first, numbers = records[:, RecordWord.FIRST_LINE], records[:, RecordWord.NUMBER_LINES]
        new_end = new_index[first + (numbers & 0xFF)]
        first[:] = new_index[first]
        numbers[:] = numbers >> 8 << 8 | new_end - first
        self._records, self._lines = [records[numbers & 0xFF > 0].reshape(-1)], [lines[is_sampled]]
        self._count = int(new_index[-1])

    def begin_again(self) -> None:
        self._records.clear()
        self._lines.clear()
        self._count, self._last, self.blocks, self.sampling_stride = 0, -1, 1 << 62, 1
        for array in (*self._counts, self._buffers.slots):
            np.asarray(array)[:] = 0

    @property
    def traced_blocks(self) -> int:
        """Number of traced blocks."""
        return min(self.blocks, int(np.prod(self.request.grid)))

    def busiest_slice_cycles(
        self, slices: int, store_cycles: float, atomic_cycles: float, warp_aggregated: Collection[int] = ()
    ) -> float:
        """Return cycles of the busiest L2 slice in the launch. store_cycles, atomic_cycles: per line of a store, per
        atomic pass. warp_aggregated: sites with one active lane per address."""
        cycles = np.zeros(REGIONS)
        for number, site in enumerate(np.flatnonzero(np.isin(self.kinds, (Kind.STORE, Kind.ATOMIC)))):
            cycles_per_request = store_cycles if self.kinds[site] == Kind.STORE else atomic_cycles
            cycles += cycles_per_request * self._hot_regions[number, int(site in warp_aggregated)]
        generator = np.random.default_rng(_PLACEMENT_SAMPLES)
        groups, first = (
            generator.integers(0, most, (_PLACEMENT_SAMPLES, REGIONS // 8, 1)) for most in (max(1, slices // 8), 8)
        )
        placements = (8 * groups + (np.arange(8) ^ first)).reshape(_PLACEMENT_SAMPLES, REGIONS)
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
        if len(records) and (np.diff(records[:, RecordWord.BLOCK_WARP]) < 0).any():
            records = records[np.argsort(records[:, RecordWord.BLOCK_WARP], kind="stable")]
        owner = (records[:, RecordWord.BLOCK_WARP] >> 16) * warps + (records[:, RecordWord.BLOCK_WARP] & 0xFFFF)
        first = np.zeros(self.traced_blocks * warps + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=self.traced_blocks * warps), out=first[1:])
        return np.ascontiguousarray(records).reshape(-1), first, lines


def hash_lines(lines: Words) -> Words:
    """Return `hash_line` of an array."""
    with np.errstate(over="ignore"):
        return ((lines * np.int64(-0x61C8864680B583EB)) >> 24) & np.int64(0xFFFFFFFFFF)


_KINDS: dict[str, dict[Any, int]] = {
    "global": {
        Operation.LOAD: Kind.LOAD, Operation.STORE: Kind.STORE, Operation.ATOMIC: Kind.ATOMIC, Operation.REDUCTION: Kind.ATOMIC,
    },
    "local": {Operation.LOAD: Kind.LOCAL_LOAD, Operation.STORE: Kind.LOCAL_STORE},
    "constant": {Operation.LOAD: Kind.CONSTANT},
    "texture": {Operation.LOAD: Kind.CONSTANT},
}  # fmt: skip
