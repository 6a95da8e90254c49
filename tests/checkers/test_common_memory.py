"""Races between arrays that share memory: every engine against the bytes that two threads access."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import simtbed as st
from hypothesis import given
from hypothesis import strategies as some
from simtbed import Const, Global, i32, i64
from simtbed.runtime.common_memory import overlapping_arrays

ENGINES = ["jit", "numpy", "python"]
THREADS, BYTES = 8, 256


@st.kernel
def narrow(x: Global[i32], y: Global[i32]) -> None:
    y[st.thread.x] = x[st.thread.x] + 1


@st.kernel
def wide(x: Global[i64], y: Global[i32]) -> None:
    y[st.thread.x] = i32(x[st.thread.x])


@st.kernel
def narrow_read(x: Global[i32], y: Global[i64]) -> None:
    y[st.thread.x] = i64(x[st.thread.x])


KERNELS = {narrow: (4, 4), wide: (8, 4), narrow_read: (4, 8)}
"""The bytes of an element of x and of y."""


def races(x: int, y: int, sizes: tuple[int, int]) -> bool:
    """Whether one thread writes bytes that another one reads. x, y: the first bytes of the arrays."""
    for reader, writer in permutations(range(THREADS), 2):
        read, written = x + reader * sizes[0], y + writer * sizes[1]
        if read < written + sizes[1] and written < read + sizes[0]:
            return True
    return False


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@given(some.integers(0, 20), some.integers(0, 20))
def test_races_are_those_of_common_bytes(engine: Any, kernel: Any, x: int, y: int) -> None:
    sizes = KERNELS[kernel]
    memory = np.zeros(BYTES // 8, np.int64).view(np.uint8)
    arrays = {
        name: memory[first * size :][: THREADS * size].view(f"i{size}")
        for name, first, size in zip("xy", (x, y), sizes, strict=True)
    }
    options: dict[str, Any] = {"grid": 1, "block": THREADS, "in_place": True, "check": "races", "faults": "return"}
    result = st.launch(kernel, args=arrays, engine=engine, **options)
    messages = [fault.message for fault in result.faults]
    assert bool(messages) == races(x * sizes[0], y * sizes[1], sizes), messages
    assert all("x[" in message and "y[" in message for message in messages)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_checked_plan_serves_launches_with_other_overlaps(engine: Any) -> None:
    """The arrays of consecutive launches overlap or not."""
    memory = np.zeros(32, np.int32)
    options: dict[str, Any] = {"grid": 1, "block": 8, "in_place": True, "check": "races", "faults": "return"}
    counts = []
    for first in (8, 1, 0, 4, 8):
        args = {"x": memory[:8], "y": memory[first:][:8]}
        counts.append(len(st.launch(narrow, args=args, engine=engine, **options).faults))
    assert counts == [0, 1, 0, 1, 0]


@st.kernel
def exchange(x: Global[i32], y: Global[i32], GRID: Const) -> None:
    tile = st.shared(i32, 32)
    t = st.thread.x
    tile[t] = t
    st.sync()
    x[st.block.x * 32 + t] = tile[31 - t]
    if GRID:
        st.grid_sync()
    else:
        st.sync()
    y[(st.block.x * 32 + t + 32) % 96] += tile[t]
    st.grid_sync()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_grid_barrier_orders_blocks_that_share_memory(engine: Any) -> None:
    """Shared arrays have shadow memory for each block, arrays with common memory one for all blocks."""
    memory = np.zeros(96, np.int32)
    options: dict[str, Any] = {"grid": 3, "block": 32, "cooperative": True, "in_place": True, "faults": "return"}
    for grid in (True, False):
        result = st.launch(exchange, args=(memory, memory, grid), check="all", engine=engine, **options)
        assert len(result.faults) == (not grid)
        assert all("x[" in fault.message and "as y[" in fault.message for fault in result.faults)


def test_units_divide_elements_and_distances() -> None:
    memory = np.zeros(64, np.int64)
    small = memory.view(np.int16)[6:20]
    pairs = memory.view(np.float32)[2:18].reshape(-1, 2)
    (common,) = overlapping_arrays({"x": memory[:8], "small": small, "pairs": pairs, "alone": memory[20:]})
    assert common.starts == {"x": 0, "small": 6, "pairs": 4}
    assert common.units == {"x": 4, "small": 1, "pairs": 4} and common.length == 36
    assert overlapping_arrays({"x": memory[:8], "y": memory[8:]}) == []
