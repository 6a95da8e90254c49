"""Interleaving of warps that wait for each other: endless waits are reported, and plain loads may observe no store."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, Kernel, f32, i32, launch
from simtbed.runtime.registry import EngineName

engines = pytest.mark.parametrize("engine", ["numpy", "jit"])
X = np.arange(192, dtype=np.float32)


def run(kernel: Kernel, engine: EngineName, *, grid: int = 1, block: int = 64, check: Any = "all", **args: Any) -> Any:
    return launch(kernel, grid=grid, block=block, args=args, engine=engine, check=check, faults="return")


@st.kernel
def produce_and_consume(x: Global[f32], out: Global[f32], STEPS: Const, RENDEZVOUS: Const, READY: Const) -> None:
    """The first warp fills two buffers alternately, the second empties them; flags in shared memory mark full buffers."""
    buffer = st.shared(f32, 2, 32)
    full = st.shared(i32, 2)
    empty = st.shared(i32, 2)
    if st.thread.x < 2:
        full[st.thread.x] = 0
        empty[st.thread.x] = READY
    st.sync()
    for step in range(STEPS):
        b = step & 1
        if st.warp == 0:
            while st.load_acquire(empty, b, scope="block") == 0:
                pass
            st.syncwarp()
            buffer[b, st.lane] = x[step * 32 + st.lane] * 2.0
            if RENDEZVOUS:
                st.syncwarp()
            if st.lane == 0:
                st.store_release(empty, b, 0, scope="block")
                st.store_release(full, b, 1, scope="block")
        else:
            while st.load_acquire(full, b, scope="block") == 0:
                pass
            st.syncwarp()
            out[step * 32 + st.lane] = buffer[b, 31 - st.lane]
            st.syncwarp()
            if st.lane == 0:
                st.store_release(full, b, 0, scope="block")
                st.store_release(empty, b, 1, scope="block")
        st.syncwarp()


@st.kernel
def barrier_of_counters(x: Global[f32], out: Global[f32]) -> None:
    """A barrier of warps 1 to 3, made of a counter, between two barriers of the block."""
    tile = st.shared(f32, 128)
    count = st.shared(i32, 1)
    t = st.thread.x
    if t == 0:
        count[0] = 0
    st.sync()
    if st.warp > 0:
        tile[t] = x[t]
        st.syncwarp()
        if st.lane == 0:
            st.fence_block()
            st.atomic_add(count, 0, 1)
            while st.atomic_add(count, 0, 0) < 3:
                pass
            st.fence_block()
        st.syncwarp()
        out[t] = tile[160 - t - 1]
    st.sync()
    if st.warp == 0:
        out[t] = x[t]


@st.kernel
def waits_for_the_last(flag: Global[i32], out: Global[i32], PLAIN: Const, AFTER: Const) -> None:
    """Each warp but the last waits for a flag raised by the last one; AFTER: some lanes reach a barrier that others skip."""
    if st.warp == 3:
        st.atomic_exchange(flag, 0, 1)
    elif PLAIN:
        while flag[0] == 0:
            pass
    else:
        while st.volatile_load(flag, 0) == 0:
            pass
    if AFTER and st.warp != 1:
        st.sync()
    out[st.thread.x] = st.warp


@engines
@pytest.mark.parametrize("schedule", [None, 5])
def test_a_producer_and_a_consumer(engine: EngineName, schedule: int | None) -> None:
    result = launch(
        produce_and_consume,
        grid=2,
        block=64,
        args={"x": X, "out": X * 0, "STEPS": 6, "RENDEZVOUS": True, "READY": 1},
        engine=engine,
        check="uninitialised,arithmetic",
        schedule=schedule,
        faults="return",
    )
    assert result.faults == []
    assert result.out.tolist() == (2 * X).reshape(6, 32)[:, ::-1].ravel().tolist()


@engines
def test_its_accesses_are_judged(engine: EngineName) -> None:
    args: dict[str, Any] = {"x": X, "out": st.empty(192, f32), "STEPS": 6, "READY": 1}
    assert run(produce_and_consume, engine, RENDEZVOUS=True, **args).faults == []
    assert {f.kind for f in run(produce_and_consume, engine, RENDEZVOUS=False, **args).faults} == {"race"}


@engines
def test_a_barrier_made_of_a_counter(engine: EngineName) -> None:
    result = run(barrier_of_counters, engine, block=128, x=X, out=st.empty(128, f32))
    assert result.faults == []
    assert result.out.tolist() == [*range(32), *range(127, 31, -1)]


def test_both_engines_count_the_same() -> None:
    args: dict[str, Any] = {"x": X, "out": st.empty(192, f32), "STEPS": 6, "RENDEZVOUS": True, "READY": 1}
    first, second = (run(produce_and_consume, engine, check=(), **args) for engine in ("numpy", "jit"))
    assert np.array_equal(first.counts, second.counts)
    assert first.counters.total("shared_load_requests") > 0


@engines
def test_endless_waits_are_reported(engine: EngineName) -> None:
    """Both warps wait: no warp marks a buffer as empty."""
    args: dict[str, Any] = {"x": X, "out": st.empty(192, f32), "STEPS": 6, "RENDEZVOUS": True, "READY": 0}
    result = run(produce_and_consume, engine, check=(), **args)
    assert [fault.kind for fault in result.faults] == ["step limit", "step limit"]
    assert "or that waits too" in result.faults[0].notes[-1]


@engines
def test_a_plain_load_may_see_no_store(engine: EngineName) -> None:
    """nvcc moves it out of the loop."""
    args: dict[str, Any] = {"flag": np.zeros(1, np.int32), "out": st.empty(128, i32), "AFTER": False}
    plain = run(waits_for_the_last, engine, block=128, check=(), PLAIN=True, **args)
    assert [fault.kind for fault in plain.faults] == ["step limit"]
    volatile = run(waits_for_the_last, engine, block=128, check=(), PLAIN=False, **args)
    assert volatile.faults == []
    assert volatile.out.tolist() == np.repeat(np.arange(4), 32).tolist()


@engines
def test_a_barrier_that_a_warp_misses(engine: EngineName) -> None:
    args: dict[str, Any] = {"flag": np.zeros(1, np.int32), "out": st.empty(128, i32), "AFTER": True, "PLAIN": False}
    result = run(waits_for_the_last, engine, block=128, check=(), **args)
    assert [fault.kind for fault in result.faults] == ["barrier"]
    assert "96 of 128 threads" in result.faults[0].message
