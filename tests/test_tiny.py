"""One kernel on each engine, under each checker, printed and profiled, in a few seconds: the tests before a commit."""

from typing import Literal

import numpy as np
import pytest
import simtbed as st


@st.kernel
def rotate(x: st.Global[st.f32], out: st.Global[st.f32], BARRIER: st.Const) -> None:
    """out[t] = the element of the next thread of the block, doubled."""
    tile = st.shared(st.f32, 64)
    t = st.thread.x
    tile[t] = 2.0 * x[t]
    if BARRIER:
        st.sync()
    out[t] = tile[(t + 1) % 64]


X = np.arange(64, dtype=np.float32)


Engine = Literal["numpy", "jit", "python"]
ENGINES: tuple[Engine, ...] = ("numpy", "jit", "python")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_kernel_has_its_values(engine: Engine) -> None:
    args = {"x": X, "out": st.empty(64, "f32"), "BARRIER": True}
    result = st.launch(rotate, grid=1, block=64, args=args, engine=engine, check="all")
    np.testing.assert_array_equal(result.out, 2 * np.roll(X, -1))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_barrier_is_a_race(engine: Engine) -> None:
    args = {"x": X, "out": st.empty(64, "f32"), "BARRIER": False}
    result = st.launch(rotate, grid=1, block=64, args=args, engine=engine, check="all", faults="return")
    assert [fault.kind for fault in result.faults] == ["race"]


def test_accesses_are_counted() -> None:
    args = {"x": X, "out": st.empty(64, "f32"), "BARRIER": True}
    totals = st.launch(rotate, grid=1, block=64, args=args).launch.counters.totals()
    assert (totals["global_load_sectors"], totals["shared_load_wavefronts"], totals["barriers"]) == (8, 2, 2)
