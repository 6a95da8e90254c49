"""Barriers that no thread reaches, because all of them continue with the next iteration or leave the loop."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each

ENGINES: tuple[EngineName, ...] = ("numpy", "jit")


@st.kernel
def tiles(x: Global[f32], out: Global[f32], GRID: Const, BREAK: Const, SKIPPED: Const) -> None:
    """Iteration SKIPPED ends before its second barrier."""
    i = st.block.x * 64 + st.thread.x
    neighbour = (i + 64) % 128 if GRID == 1 else i ^ 32
    total = f32(0)
    for a in range(4):
        x[i] = f32(a)
        if GRID == 1:
            st.grid_sync()
        else:
            st.sync()
        total += x[neighbour]
        if a == SKIPPED:
            if BREAK == 1:
                break
            else:
                continue
        if GRID == 1:
            st.grid_sync()
        else:
            st.sync()
    x[i] = total
    out[i] = total


@pytest.mark.parametrize("engine", ENGINES)
def test_a_barrier_that_no_thread_reaches_orders_nothing(engine: EngineName) -> None:
    def check(row: tuple[int, int, int, set[str]]) -> None:
        grid, leaves, skipped, kinds = row
        arguments = {"x": np.zeros(128, np.float32), "out": st.empty(128, f32)}
        constants = {"GRID": grid, "BREAK": leaves, "SKIPPED": skipped}
        how: dict[str, Any] = {"check": "races", "faults": "return", "cooperative": grid == 1, "engine": engine}
        result = st.launch(tiles, grid=2, block=64, args=arguments | constants, **how)
        assert {fault.kind for fault in result.faults} == kinds

    rows = [(grid, leaves, *end) for grid in (0, 1) for leaves in (0, 1) for end in ((1, {"race"}), (9, set()))]
    check_each(rows, check)
