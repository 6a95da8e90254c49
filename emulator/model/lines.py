"""The accesses of a traced launch as cache lines: which sectors of which lines each access of each warp touches."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir.access import Operation
from ..language.hints import Global, i64
from ..language.types import Array
from ..native import native
from ..profiler.trace import ENTRY, Entries
from ..runtime.engine import Request

LINE, SECTOR = 128, 32
"""Bytes of a line and of a sector, on every device that there is a row of."""
MOST_LINES = 1 << 24
"""Lines of accesses after which no further block is traced: what follows is taken for more of the same."""
_ALIGNED = 1 << 21
"""Arrays begin at multiples of this: device memory is given out in pages of so many bytes."""
_HOT = 1 << 14
_WORDS = ENTRY.itemsize // 8
RECORD = 4
"""Words of an access: block << 16 | warp, phase << 32 | site, the first of its lines, and how many there are."""
LOAD, STORE, ATOMIC = range(3)

Words = npt.NDArray[np.int64]


@native
def _compact(
    raw: Global[i64], count: i64, base: Global[i64], size: Global[i64], kind: Global[i64], whole: i64,
    records: Global[i64], lines: Global[i64], first: i64, hot: Global[i64],
) -> i64:  # fmt: skip
    """Append accesses: their records from 0 on, their lines from `first` on. How many lines there are then."""
    used = first
    for n in range(count):
        at = n * 35
        site = raw[at + 1] & 0xFFFFFFFF
        phase = raw[at + 1] >> 32
        warp = raw[at + 2] & 0xFFFFFFFF
        mask = raw[at + 2] >> 32
        begin = used
        last = i64(-1)
        for lane in range(i64(32)):
            if (mask >> lane) & 1 != 0:
                address = base[site] + raw[at + 3 + lane] * size[site]
                line = address >> 7
                sector = i64(1) << ((address >> 5) & 3)
                if kind[site] == 2:
                    word = address >> 2
                    hot[(word ^ (word >> 14)) & 16383] += 1
                if last >= 0 and lines[last] >> 4 == line:
                    lines[last] |= sector
                else:
                    last = i64(-1)
                    for other in range(begin, used):
                        if lines[other] >> 4 == line:
                            last = other
                    if last < 0:
                        last = used
                        lines[used] = line << 4
                        used += 1
                    lines[last] |= sector
        if whole != 0 and kind[site] == 0:
            for other in range(begin, used):
                lines[other] |= 15
        records[4 * n] = (raw[at] << 16) | warp
        records[4 * n + 1] = (phase << 32) | site
        records[4 * n + 2] = begin
        records[4 * n + 3] = used - begin
    return used


@dataclass
class Lines:
    """A tracer that keeps the lines of accesses. most: lines after which no further block is traced."""

    request: Request
    most: int = MOST_LINES
    blocks: int = 1 << 62
    hot: Words = field(default_factory=lambda: np.zeros(_HOT, np.int64))
    _records: list[Words] = field(default_factory=list)
    _lines: list[Words] = field(default_factory=list)
    _count: int = 0
    _last: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        sites, arguments = self.request.prepared.sites, self.request.arguments
        types = {p.name: p.type for p in self.request.program.kernel.params if isinstance(p.type, Array)}
        addresses, following = {}, _ALIGNED
        for name, type in types.items():
            addresses[name] = following
            following += -(-max(1, len(np.asarray(arguments[name])) * type.element.size) // _ALIGNED) * _ALIGNED
        self._base, self._size, self.kinds = (np.zeros(len(sites), np.int64) for _ in range(3))
        for number, site in enumerate(sites):
            if site.array in addresses:
                self._base[number], self._size[number] = addresses[site.array], site.size
                self.kinds[number] = _KINDS[site.access.operation]
        self.extents = {name: addresses[name] for name in types} | {"": following}
        device = self.request.device
        self._whole = int(device.loads_cached and device.load_sector == device.line)

    def take(self, entries: Entries) -> None:
        with self._lock:
            kept = entries if self.blocks > 1 << 61 else entries[entries["block"] < self.blocks]
            if not len(kept):
                return
            records = np.empty(RECORD * len(kept), np.int64)
            lines = np.empty(32 * len(kept), np.int64)
            raw = np.ascontiguousarray(kept).view(np.int64)
            used = _compact(
                raw, len(kept), self._base, self._size, self.kinds, self._whole, records, lines, 0, self.hot
            )
            records[2::RECORD] += self._count
            self._records.append(records)
            self._lines.append(lines[:used].copy())
            self._count += used
            self._last = max(self._last, int(kept["block"].max()))
            if self._count > self.most and self.blocks > 1 << 61:
                self.blocks = self._last + 1  # those under way are traced to their end

    def begin_again(self) -> None:
        self._records.clear()
        self._lines.clear()
        self._count, self._last, self.blocks = 0, -1, 1 << 62
        self.hot[:] = 0

    @property
    def traced(self) -> int:
        """Blocks that were traced."""
        return min(self.blocks, int(np.prod(self.request.grid)))

    @property
    def hottest(self) -> int:
        """Lanes whose atomic operations go to the address that most go to, in the whole launch."""
        return int(self.hot.max() * np.prod(self.request.grid) / self.traced)

    @cached_property
    def sorted(self) -> tuple[Words, Words, Words]:
        """Records by block and warp, as [n * RECORD]; where those of each warp of each block begin; the lines."""
        records = np.concatenate([np.zeros(0, np.int64), *self._records]).reshape(-1, RECORD)
        lines = np.concatenate([np.zeros(0, np.int64), *self._lines])
        warps = -(-int(np.prod(self.request.block)) // 32)
        if len(records) and (np.diff(records[:, 0]) < 0).any():
            records = records[np.argsort(records[:, 0], kind="stable")]
        owner = (records[:, 0] >> 16) * warps + (records[:, 0] & 0xFFFF)
        first = np.searchsorted(owner, np.arange(self.traced * warps + 1))
        return np.ascontiguousarray(records).reshape(-1), first.astype(np.int64), lines


_KINDS: dict[Any, int] = {
    Operation.LOAD: LOAD, Operation.STORE: STORE, Operation.ATOMIC: ATOMIC, Operation.REDUCTION: ATOMIC,
}  # fmt: skip
