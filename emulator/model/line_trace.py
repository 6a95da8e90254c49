"""Trace of a launch's accesses as cache lines: lines and sectors of each warp access."""

import threading
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..machine.device import Device
from ..native import record
from ..native.function import flattened
from ..profiler.trace import CACHED, Entries
from ..runtime.engine import Request
from ..sass.counts import TRACE_ARGUMENTS
from .access_lines import (
    HASH_SLOTS,
    LINE_WORDS,
    RECENT_SLOTS,
    RECORD,
    REGIONS,
    TOTALS,
    Batch,
    Counter,
    Kind,
    LineBuffers,
    Options,
    RecordWord,
    Sites,
    TraceCounts,
    Tracer,
    trace_entries,
    trace_warps,
)
from .access_sites import AccessSites, sites_of_source
from .records import zeroed

LINE, SECTOR = 128, 32
"""Bytes of a line and of a sector on all supported devices."""
MAX_LINES = 1 << 18
"""Lines in the trace. Beyond, a hash of the line number selects every 2nd, 4th, ... line, and simulated caches shrink
accordingly."""
MAX_ACCESSES = 1 << 26
"""Accesses of the source after which no further block is traced; the rest is extrapolated."""
_PLACEMENT_SAMPLES = 16
"""Random placements of regions in slices, averaged for the busiest slice."""
Words = npt.NDArray[np.int64]


@dataclass
class LineTrace:
    """A trace of cache lines. grid: blocks of the launch. blocks: traced ones. warps: of a block. most: sampled lines, at most.

    totals: int64[site, TOTALS], of all traced accesses; work: accesses by warp.
    """

    sites: AccessSites
    device: Device
    grid: int
    blocks: int
    warps: int
    most: int = MAX_LINES

    def __post_init__(self) -> None:
        access_sites, device, warps = self.sites, self.device, self.grid * self.warps
        is_local = np.isin(access_sites.kinds, (Kind.LOCAL_LOAD, Kind.LOCAL_STORE))
        most_lines = 32 * int((access_sites.size[is_local] // 4).max(initial=1))
        self._hot_regions, self._counters = np.zeros((3, REGIONS), np.int64), np.array([0, 0, 0, 1])
        self.totals, self.work = np.zeros((len(access_sites.kinds), TOTALS), np.int64), np.zeros(warps, np.int64)
        counts = zeroed(
            TraceCounts, totals=self.totals.reshape(-1), hot_regions=self._hot_regions.reshape(-1), work=self.work,
            access_numbers=warps, phase_numbers=3 * self.grid, stored_lines=warps, recent_sectors=3 * RECENT_SLOTS,
            counters=self._counters,
        )  # fmt: skip
        buffers = zeroed(
            LineBuffers, slots=2 * HASH_SLOTS, words=LINE_WORDS * most_lines, word_lanes=32 * 32, bit_slices=6
        )
        full_lines = int(device.loads_cached and device.load_sector == device.line)
        sites: Any = (
            access_sites.base,
            access_sites.size,
            access_sites.kinds,
            access_sites.local_bytes,
            access_sites.float_add,
        )
        options: Any = full_lines, self.warps, device.sms * device.threads_per_sm, self.most
        self._records = np.empty(RECORD * (self.most + 1), np.int64)
        self._lines = np.empty(self.most + most_lines, np.int64)
        results: Any = self._records, self._lines
        self._tracer = Tracer(Sites(*sites), counts, buffers, Options(*options), *results)

    # -------------------------------------------------------------- names of sass.counts.AccessTrace
    def begin_batch(self, first_warp: int, phases: Words) -> None:
        self._batch = record(Batch, self.sites.site_of, first_warp, phases)

    def add(self, instruction: int, warps: Words, index: Words, active: npt.NDArray[np.bool_]) -> None:
        trace_warps(self._tracer, self._batch, instruction, warps, len(warps), index.reshape(-1), active.reshape(-1))

    @property
    def function(self) -> tuple[int, Words]:
        fixed = [
            one.ctypes.data if isinstance(one, np.ndarray) else one for one in flattened((self._tracer, self._batch))
        ]
        assert len(fixed) == TRACE_ARGUMENTS
        return trace_warps.address(), np.array(fixed, np.int64)

    # -------------------------------------------------------------- results
    @property
    def kinds(self) -> Words:
        """Kind of each site."""
        return self.sites.kinds

    @property
    def accesses(self) -> int:
        """Number of traced accesses."""
        return int(self._counters[Counter.ACCESSES])

    @property
    def sampling_stride(self) -> int:
        """One of so many lines is in the trace."""
        return int(self._counters[Counter.SAMPLING_STRIDE])

    def busiest_slice_cycles(self, slices: int, store_cycles: float, atomic_cycles: float) -> float:
        """Return cycles of the busiest L2 slice in the launch. store_cycles, atomic_cycles: per line of a store, per
        atomic pass."""
        cycles = store_cycles * self._hot_regions[0] + atomic_cycles * self._hot_regions[1]
        generator = np.random.default_rng(_PLACEMENT_SAMPLES)
        groups, first = (
            generator.integers(0, most, (_PLACEMENT_SAMPLES, REGIONS // 8, 1)) for most in (max(1, slices // 8), 8)
        )
        placements = (8 * groups + (np.arange(8) ^ first)).reshape(_PLACEMENT_SAMPLES, REGIONS)
        return self._scale_to_launch(float(np.mean([np.bincount(slice_of, cycles).max() for slice_of in placements])))

    @property
    def hottest_float_adds(self) -> float:
        """Float additions to the most used address, in the launch."""
        return self._scale_to_launch(float(self._hot_regions[2].max()))

    def _scale_to_launch(self, value: float) -> float:
        """Scale from traced blocks to all blocks."""
        return value * self.grid / self.blocks

    @property
    def imbalance(self) -> float:
        """Accesses of the longest warp relative to the mean."""
        mean = float(self.work.mean())
        return float(self.work.max()) / mean if mean and self.blocks == self.grid else 1.0

    @cached_property
    def sorted(self) -> tuple[Words, Words, Words]:
        """Records by block and warp, int64[n * RECORD]; start of each warp's records; the lines."""
        _, record_count, line_count, _ = self._counters.tolist()
        records, lines = (
            self._records[: RECORD * record_count].reshape(-1, RECORD),
            self._lines[:line_count],
        )
        if len(records) and (np.diff(records[:, RecordWord.BLOCK_WARP]) < 0).any():
            records = records[np.argsort(records[:, RecordWord.BLOCK_WARP], kind="stable")]
        owner = (records[:, RecordWord.BLOCK_WARP] >> 16) * self.warps + (records[:, RecordWord.BLOCK_WARP] & 0xFFFF)
        first = np.zeros(self.blocks * self.warps + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=self.blocks * self.warps), out=first[1:])
        return np.ascontiguousarray(records).reshape(-1), first, lines


class SourceTracer:
    """A tracer of the cache lines of a launch's source. accesses: after which no further block is traced.

    lines: the trace, complete after the launch.
    """

    spaces: tuple[str, ...] = CACHED
    interval = 1

    def __init__(self, request: Request, most: int = MAX_LINES, accesses: int = MAX_ACCESSES) -> None:
        self.request, self.most, self.accesses, self._lock = request, most, accesses, threading.Lock()
        self.begin_again()

    def begin_again(self) -> None:
        device, grid = self.request.device, prod(self.request.grid)
        sites = sites_of_source(self.request, device.sms * device.threads_per_sm)
        self.lines = LineTrace(sites, device, grid, grid, -(-prod(self.request.block) // 32), self.most)
        self.blocks, self._last = 1 << 62, -1

    def take(self, entries: Entries) -> None:
        with self._lock:
            selected = entries if self.blocks > 1 << 61 else entries[entries["block"] < self.blocks]
            if not len(selected):
                return
            trace_entries(self.lines._tracer, np.ascontiguousarray(selected).view(np.int64), len(selected))
            self._last = max(self._last, int(selected["block"].max()))
            if self.lines.accesses > self.accesses and self.blocks > 1 << 61:
                self.blocks = self._last + 1  # running blocks are traced to their end
                self.lines.blocks = min(self.blocks, self.lines.grid)
