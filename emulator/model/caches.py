"""Trace-driven cache simulation: sectored L1 per SM, L2 of one or two partitions, device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..machine.device import Device
from ..native import record
from .access_lines import HASH_BITS, RECORD, TOUCHED, WORDS
from .cache_simulator import L1, L2, Memories, Progress, Run, Slots, StoredLines, Trace, simulate_accesses
from .line_trace import LINE, SECTOR, LineTrace
from .line_trace import Words as Numbers
from .traffic import COLUMNS, Column, Traffic, scale_to_launch

_L1_ASSOCIATIVITY, _L2_ASSOCIATIVITY = 16, 16
"""Lines per set, at least; sets are a power of two, the rest widens them."""
_MAX_STORED_LINES = 4096
"""Store lines tracked per SM."""
_MAX_DIRTY_FRACTION = 0.27
"""Maximal dirty fraction of L2; fitted on an H200, where 16 MiB are rewritten without write-back."""
_MAX_ROUNDS = 1 << 16
_STEP_DIVISOR = 4
"""With sampled lines, warps interleave after sampling_stride / 4 accesses."""


@dataclass
class _CacheArrays:
    """Arrays of a set-associative cache."""

    sets: int
    associativity: int
    arrays: Any

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
    lines: LineTrace, device: Device, resident: int, shared: int, cold: bool, classes: Numbers | None = None
) -> Traffic:
    """Return the traffic of a traced launch. resident: blocks per SM; shared: bytes per block.

    cold: with empty caches; else L2 has the data of an identical launch. classes: int64[block, warp]. Blocks are assigned to SMs
    round-robin, then to the first free SM, randomized between launches. A store leaves a copy in the partition of its SM and
    invalidates the other one. Warps interleave one access each; barriers synchronize a block. L1 is write-through and keeps
    fully written sectors; L2 is write-back; replacement is LRU.
    """
    records, first, line_words = lines.sorted
    warps, blocks, traced, stride = lines.warps, lines.grid, lines.blocks, lines.sampling_stride
    fits = traced == blocks or stride * _footprint(line_words) * blocks / traced <= device.l2
    class_of = np.zeros((traced, warps), np.int64) if classes is None else np.ascontiguousarray(classes)
    l1_size = l1_bytes(device, shared, resident) // stride
    trace: Any = records, first, line_words, lines.kinds, class_of.reshape(-1)
    simulation = _Simulation(device, Trace(*trace), resident, warps, traced, stride, l1_size)
    shape = int(class_of.max(initial=0)) + 1, len(lines.kinds), COLUMNS
    counts, state = simulation.run(shape, warm_up=fits and not cold)
    if blocks > traced:  # extrapolate the steady state between the quarters
        remaining = (blocks - traced) / max(1, int(state[1][Progress.LEFT] - state[2][Progress.LEFT]))
        for numbers in counts, state:
            numbers[0] += np.rint((numbers[2] - numbers[1]) * remaining).astype(np.int64)
    totals = np.rint(lines.totals * (blocks / traced)).astype(np.int64)
    result = scale_to_launch(counts[0].sum(axis=0), totals, lines.kinds, simulation.has_l1)
    missed = int(result[:, [Column.MISSES, Column.UNPAIRED_SECTORS]].sum())
    filled, written, wasted = (int(state[0][n]) * stride for n in (Progress.FILLED, Progress.WRITTEN, Progress.WASTED))
    different = _count_distinct_lines(records.reshape(-1, RECORD), line_words, class_of, len(lines.kinds))
    return Traffic(
        result, counts[0], different, lines.kinds, SECTOR * (missed + filled), SECTOR * written, SECTOR * filled,
        SECTOR * wasted // 2, stride, traced, blocks,
    )  # fmt: skip


@dataclass
class _Simulation:
    """Simulation of the blocks of a trace. l1_size: bytes, 0 without L1. `stride`: one of so many lines is in the trace."""

    device: Device
    trace: Trace
    resident: int
    warps: int
    blocks: int
    stride: int
    l1_size: int

    def __post_init__(self) -> None:
        halves, sms = self.device.timing.l2_halves, self.device.sms
        self._l1 = _CacheArrays.allocate(self.l1_size, sms, _L1_ASSOCIATIVITY, 4)
        self._l2 = _CacheArrays.allocate(self.device.l2 // halves // self.stride, halves, _L2_ASSOCIATIVITY, 6)
        self._stored = _CacheArrays.allocate(_MAX_STORED_LINES * LINE // self.stride, sms, _L1_ASSOCIATIVITY, 4)

    @property
    def has_l1(self) -> bool:
        return self.l1_size >= LINE

    def run(self, shape: tuple[int, ...], warm_up: bool) -> tuple[list[Numbers], list[Numbers]]:
        """Return the counts, int64[shape], and the state of a launch: at its end, after a quarter of the blocks, and
        before the last quarter. warm_up: after an identical launch."""
        clock, snapshots = 0, list[tuple[Numbers, Numbers]]()
        for launch in range(2 if warm_up else 1):
            self._l1.clear()
            self._stored.clear()
            counts, state = np.zeros(shape, np.int64), np.zeros(8, np.int64)
            state[Progress.LEFT], state[Progress.CLOCK] = self.blocks, clock
            memories, snapshots = self._memories(launch, counts, state), []
            for until in (self.blocks - self.blocks // 4, self.blocks // 4, 0):
                while state[Progress.LEFT] > until:
                    simulate_accesses(memories, until, _MAX_ROUNDS)
                snapshots.append((counts.copy(), state.copy()))
            clock = int(state[Progress.CLOCK])
        first, last, end = snapshots
        return [end[0], first[0], last[0]], [end[1], first[1], last[1]]

    def _memories(self, launch: int, counts: Numbers, state: Numbers) -> Memories:
        timing, slots, sites = self.device.timing, self.device.sms * self.resident, len(self.trace.kinds)
        run = (
            self.device.sms, self.resident, self.warps, self.blocks, sites, max(1, self.stride // _STEP_DIVISOR),
            launch, timing.l2_halves, timing.open_lines, max(1, round(_MAX_DIRTY_FRACTION * self._l2.associativity)),
        )  # fmt: skip
        in_slots: Any = (
            np.full(slots, -1, np.int64),
            *(np.zeros(size, np.int64) for size in (slots, slots, slots * self.warps, slots * self.warps * sites)),
        )
        l1_geometry = self._l1.geometry(self.stride) if self.has_l1 else (0, 0, 0)
        flat: Any = counts.reshape(-1), state
        return Memories(
            self.trace, Run(*run), Slots(*in_slots), record(L1, *self._l1.arrays, *l1_geometry),
            record(L2, *self._l2.arrays, *self._l2.geometry(self.stride)),
            record(StoredLines, *self._stored.arrays, *self._stored.geometry(self.stride)), *flat,
        )  # fmt: skip


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
    count = int(classes.max(initial=0)) + 1
    return np.bincount(row[first], minlength=count * sites).reshape(count, sites)
