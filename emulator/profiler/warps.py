"""How often each warp took which way: its branches and loops, counted apart from those of the others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64
from ..native import native
from .drawing import drawn, is_drawn, number_of
from .folding import Words, pair

MOST = 1 << 18
"""Rows that are kept. Where there are more, only every second, fourth, ... block is: drawn by its number, so the same ones each time."""
EXECUTIONS, TURNS, HELD, FAILED, ENTERED = range(3, 8)
ROW = 8
"""Numbers of a row: block, warp, site; executions of a branch or loop; iterations that a loop's warp began, which says nothing of
a branch; executions of a branch in which the condition held for a lane, and in which it did not for one; and those of a loop in which
there was an iteration."""
_SLOTS = 1 << 10

Rows = npt.NDArray[np.int64]


@st.device
def _slot(rows: Global[i64], table: Global[i32], size: i64, block: i64, warp: i64, site: i64) -> i64:
    """Where a row is in the table, or where it would be."""
    slot = number_of(block * 1000003 + warp * 8191 + site) & size - 1
    while table[slot] != 0:
        row = ROW * (i64(table[slot]) - 1)
        if rows[row] == block and rows[row + 1] == warp and rows[row + 2] == site:
            break
        slot = slot + 1 & size - 1
    return slot


@native
def _add(
    notes: Global[i32], first: i64, count: i64, rows: Global[i64], table: Global[i32], size: i64, used: Global[i64], apart: i64,
    until: Global[i64],
) -> None:  # fmt: skip
    """Add notes from `first` on to their rows. until: where those end that were added; half of the slots are then in use."""
    for n in range(first, count):
        if 2 * used[0] >= size:
            until[0] = n
            return
        at = i64(40) * n
        block = pair(notes[at + 2], notes[at + 3])
        if is_drawn(block, apart):
            slot = _slot(rows, table, size, block, i64(notes[at + 5]), i64(notes[at + 4]))
            if table[slot] == 0:
                new = ROW * used[0]
                used[0] += 1
                table[slot] = i32(used[0])
                rows[new] = block
                rows[new + 1] = i64(notes[at + 5])
                rows[new + 2] = i64(notes[at + 4])
                for k in range(i64(EXECUTIONS), i64(ROW)):
                    rows[new + k] = i64(0)
            row = ROW * (i64(table[slot]) - 1)
            times = pair(notes[at], notes[at + 1])
            turns, held, failed = i64(0), i64(0), i64(0)
            for lane in range(i64(32)):
                value = i64(notes[at + 8 + lane])
                turns = max(turns, value)
                held |= value & 1
                failed |= (i64(notes[at + 6]) >> lane & 1) & ~value
            rows[row + EXECUTIONS] += times
            rows[row + TURNS] += times * turns
            rows[row + HELD] += times * held
            rows[row + FAILED] += times * failed
            rows[row + ENTERED] += times if turns > 0 else i64(0)
    until[0] = count


@native
def _enter(rows: Global[i64], count: i64, table: Global[i32], size: i64) -> None:
    """Enter rows, none twice, into an empty table."""
    for n in range(count):
        table[_slot(rows, table, size, rows[ROW * n], rows[ROW * n + 1], rows[ROW * n + 2])] = i32(n + 1)


@dataclass
class WarpDecisions:
    """Of the warps of a launch. apart: one of so many blocks is kept; none of a block whose warps decide nothing.

    rows: int64[n, ROW], by block, warp and site once all is noted.
    """

    apart: int = 1
    _rows: Rows = field(default_factory=lambda: np.zeros(_SLOTS // 2 * ROW, np.int64), repr=False)
    _table: Words = field(default_factory=lambda: np.zeros(_SLOTS, np.int32), repr=False)
    _used: Rows = field(default_factory=lambda: np.zeros(1, np.int64), repr=False)

    @property
    def rows(self) -> Rows:
        return self._rows.reshape(-1, ROW)[: int(self._used[0])]

    def add(self, words: Words) -> None:
        """Take in notes of whole executions, as `folding` has them."""
        count, until = len(words) // 40, np.zeros(1, np.int64)
        while until[0] < count:
            _add(
                words, int(until[0]), count, self._rows, self._table, len(self._table), self._used, self.apart, until
            )  # fmt: skip
            if until[0] < count:
                self._make_room()

    def blocks(self, count: int) -> npt.NDArray[np.int64]:
        """The blocks that are kept, of so many."""
        numbers = np.arange(count)
        return numbers[drawn(numbers, self.apart)]

    def sort(self) -> None:
        """Rows in an order that does not hang on that of blocks."""
        rows = self.rows
        self._rows = rows[np.lexsort([rows[:, 2], rows[:, 1], rows[:, 0]])].reshape(-1)
        self._table = np.zeros(0, np.int32)

    def _make_room(self) -> None:
        """A table of twice the size, or half of the blocks."""
        rows = self.rows
        while len(rows) >= MOST:
            self.apart *= 2
            rows = rows[drawn(rows[:, 0], self.apart)]
        size = len(self._table)
        if 4 * len(rows) > size:
            size *= 2
        self._rows, self._table = np.zeros(size // 2 * ROW, np.int64), np.zeros(size, np.int32)
        self._rows[: rows.size] = rows.reshape(-1)
        self._used[0] = len(rows)
        _enter(self._rows, len(rows), self._table, size)
