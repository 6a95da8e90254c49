"""Counts of branch outcomes and loop iterations for each warp."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64
from ..language.intrinsics import WARP_SIZE
from ..native import native
from .block_sampling import block_hash, is_sampled, sampled_blocks
from .decision_compaction import WORDS, Words, pair

MAX_ROWS = 1 << 18
"""Rows of a launch. If there are more, only every second, fourth, ... block is sampled."""
EXECUTIONS, ITERATIONS, TRUE_COUNT, FALSE_COUNT, ENTRIES = range(3, 8)
ROW = 8
"""Columns of a row: block, warp, site; executions of a branch or loop; iterations of a loop by the warp (undefined for a branch);
executions of a branch with a lane whose condition is true, and with a lane whose condition is false; executions of a loop with at
least one iteration."""
_SLOTS = 1 << 10

Rows = npt.NDArray[np.int64]


class RowTable(NamedTuple):
    """Hash table of rows. slots: int32[size], a power of two, the number of a row plus 1. used: int64[1], rows."""

    rows: Global[i64]
    slots: Global[i32]
    size: i64
    used: Global[i64]


@st.device
def _slot(table: RowTable, block: i64, warp: i64, site: i64) -> i64:
    """Return the slot of a row, or the empty slot for it."""
    slot = block_hash(block * 1000003 + warp * 8191 + site) & table.size - 1
    while table.slots[slot] != 0:
        row = ROW * (i64(table.slots[slot]) - 1)
        if table.rows[row] == block and table.rows[row + 1] == warp and table.rows[row + 2] == site:
            break
        slot = slot + 1 & table.size - 1
    return slot


@native
def _add(notes: Global[i32], first: i64, count: i64, table: RowTable, interval: i64, read: Global[i64]) -> None:
    """Add the notes from `first` on to their rows. read: the end of the notes added; not all are if half of the slots are in use."""
    for n in range(first, count):
        if 2 * table.used[0] >= table.size:
            read[0] = n
            return
        at = i64(WORDS) * n
        block = pair(notes[at + 2], notes[at + 3])
        if is_sampled(block, interval):
            slot = _slot(table, block, i64(notes[at + 5]), i64(notes[at + 4]))
            if table.slots[slot] == 0:
                new = ROW * table.used[0]
                table.used[0] += 1
                table.slots[slot] = i32(table.used[0])
                table.rows[new] = block
                table.rows[new + 1] = i64(notes[at + 5])
                table.rows[new + 2] = i64(notes[at + 4])
                for k in range(i64(EXECUTIONS), i64(ROW)):
                    table.rows[new + k] = i64(0)
            row = ROW * (i64(table.slots[slot]) - 1)
            executions = pair(notes[at], notes[at + 1])
            iterations, any_true, any_false = i64(0), i64(0), i64(0)
            for lane in range(i64(WARP_SIZE)):
                value = i64(notes[at + 8 + lane])
                iterations = max(iterations, value)
                any_true |= value & 1
                any_false |= (i64(notes[at + 6]) >> lane & 1) & ~value
            table.rows[row + EXECUTIONS] += executions
            table.rows[row + ITERATIONS] += executions * iterations
            table.rows[row + TRUE_COUNT] += executions * any_true
            table.rows[row + FALSE_COUNT] += executions * any_false
            table.rows[row + ENTRIES] += executions if iterations > 0 else i64(0)
    read[0] = count


@native
def _insert(table: RowTable, count: i64) -> None:
    """Insert distinct rows into an empty table."""
    for n in range(count):
        slot = _slot(table, table.rows[ROW * n], table.rows[ROW * n + 1], table.rows[ROW * n + 2])
        table.slots[slot] = i32(n + 1)


@dataclass
class WarpDecisions:
    """Rows of the sampled warps of a launch. interval: one of so many blocks is sampled. Blocks without decisions have no rows.

    rows: int64[n, ROW], by block, warp and site after `sort`.
    """

    interval: int = 1
    _rows: Rows = field(default_factory=lambda: np.zeros(_SLOTS // 2 * ROW, np.int64), repr=False)
    _slots: Words = field(default_factory=lambda: np.zeros(_SLOTS, np.int32), repr=False)
    _used: Rows = field(default_factory=lambda: np.zeros(1, np.int64), repr=False)

    @property
    def rows(self) -> Rows:
        return self._rows.reshape(-1, ROW)[: int(self._used[0])]

    @property
    def _table(self) -> RowTable:
        return RowTable(self._rows, self._slots, len(self._slots), self._used)  # type: ignore[arg-type]

    def add(self, words: Words) -> None:
        """Add notes of complete executions (`decision_compaction`)."""
        count, read = len(words) // WORDS, np.zeros(1, np.int64)
        while read[0] < count:
            _add(words, int(read[0]), count, self._table, self.interval, read)
            if read[0] < count:
                self._grow()

    def blocks(self, count: int) -> npt.NDArray[np.int64]:
        """Return the sampled blocks of a launch of `count` blocks."""
        numbers = np.arange(count)
        return numbers[sampled_blocks(numbers, self.interval)]

    def sort(self) -> None:
        """Sort the rows, so that they do not depend on the order of blocks."""
        rows = self.rows
        self._rows = rows[np.lexsort([rows[:, 2], rows[:, 1], rows[:, 0]])].reshape(-1)
        self._slots = np.zeros(0, np.int32)

    def _grow(self) -> None:
        """Double the table, or halve the sampled blocks."""
        rows = self.rows
        while len(rows) >= MAX_ROWS:
            self.interval *= 2
            rows = rows[sampled_blocks(rows[:, 0], self.interval)]
        size = len(self._slots)
        if 4 * len(rows) > size:
            size *= 2
        self._rows, self._slots = np.zeros(size // 2 * ROW, np.int64), np.zeros(size, np.int32)
        self._rows[: rows.size] = rows.reshape(-1)
        self._used[0] = len(rows)
        _insert(self._table, len(rows))
