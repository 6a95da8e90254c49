"""Endless loops end with one fault; long loops and waits for a lock that is released are not reported."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, Kernel, LaunchError, i32, launch
from simtbed.runtime.engine import MAX_FAULTS_PER_LOOP, MAX_SPIN_ITERATIONS
from simtbed.runtime.registry import EngineName

engines = pytest.mark.parametrize("engine", ["numpy", "jit"])


def run(
    kernel: Kernel,
    engine: EngineName,
    check: str = "",
    grid: int = 2,
    block: int = 32,
    device: str = "H200",
    **args: Any,
) -> Any:
    how: Any = {"grid": grid, "block": block, "device": device, "engine": engine, "check": check, "faults": "return"}
    return launch(kernel, args=args, **how)


# ------------------------------------------------------------------ out of bounds
@st.kernel
def seek(x: Global[i32], out: Global[i32]) -> None:
    """Searches the thread's own number, which is not always present."""
    t = st.block.x * st.block_dim.x + st.thread.x
    i = 0
    while x[i] != t:
        i += 1
    out[t] = i


@st.kernel
def strays_in_two(x: Global[i32], out: Global[i32], n: i32) -> None:
    """No row is far out of bounds; together they are."""
    t = st.block.x * st.block_dim.x + st.thread.x
    for _ in range(n):
        for k in range(2):
            out[t] += x[k]
    out[t] = -1


@st.kernel
def long_and_once_astray(x: Global[i32], out: Global[i32], n: i32) -> None:
    t = st.block.x * st.block_dim.x + st.thread.x
    total = x[len(x)]
    for k in range(n):
        total += x[k % len(x)]
    out[t] = total


@engines
@pytest.mark.parametrize("check", ["", "all"])
def test_a_search_beyond_an_array_ends_with_that_fault_alone(engine: EngineName, check: str) -> None:
    """The lanes with a successful search have a result."""
    result = run(seek, engine, check, x=np.arange(40, dtype=np.int32), out=st.zeros(64, "i32"))
    (fault,) = result.faults
    assert fault.message == "global read out of bounds: x[40], but x has 40 elements"
    assert fault.count == 24 * MAX_FAULTS_PER_LOOP
    assert result.out.tolist() == [*range(40), *[0] * 24]


@engines
@pytest.mark.parametrize(("rows", "ended"), [(MAX_FAULTS_PER_LOOP - 1, False), (MAX_FAULTS_PER_LOOP + 5, True)])
def test_accesses_out_of_bounds_count_for_all_enclosing_loops(engine: EngineName, rows: int, ended: bool) -> None:
    result = run(strays_in_two, engine, grid=1, x=np.ones(1, np.int32), out=st.zeros(32, "i32"), n=rows)
    assert result.out.tolist() == [MAX_FAULTS_PER_LOOP if ended else -1] * 32
    assert [fault.kind for fault in result.faults] == ["bounds"]


@engines
def test_a_loop_after_an_access_out_of_bounds_completes(engine: EngineName) -> None:
    result = run(
        long_and_once_astray, engine, x=np.ones(7, np.int32), out=st.empty(64, "i32"), n=MAX_FAULTS_PER_LOOP + 9
    )
    assert result.out.tolist() == [MAX_FAULTS_PER_LOOP + 9] * 64 and [fault.count for fault in result.faults] == [64]


def test_counters_are_the_same_on_both_engines() -> None:
    arguments: Any = {"x": np.arange(40, dtype=np.int32), "out": st.zeros(64, "i32")}
    numpy, jit = (run(seek, engine, **arguments).counters.totals() for engine in ("numpy", "jit"))
    assert numpy == jit


def test_changed_device_arrays_are_reported() -> None:
    array = st.DeviceArray(st.zeros(64, "i32"))
    with pytest.raises(LaunchError, match='a loop does not end; with check="bounds" the launch says why'):
        run(seek, "jit", x=np.arange(40, dtype=np.int32), out=array)
    array = st.DeviceArray(st.zeros(64, "i32"))
    (fault,) = run(seek, "jit", "bounds", x=np.arange(40, dtype=np.int32), out=array).faults
    assert fault.kind == "bounds"


# ------------------------------------------------------------------ locks
@st.kernel
def locked(lock: Global[i32], data: Global[i32], FORGETS: Const) -> None:
    """data[0] = number of threads."""
    done = False
    while not done:
        if st.compare_swap(lock, 0, 0, 1) == 0:
            data[0] = data[0] + 1
            st.fence()
            if not FORGETS:
                st.atomic_exchange(lock, 0, 0)
            done = True


@st.kernel
def backs_off(lock: Global[i32], data: Global[i32]) -> None:
    pause = 8
    while st.compare_swap(lock, 0, 0, 1) != 0:
        if pause < 256:
            pause *= 2
    data[0] = data[0] + 1
    st.fence()
    st.atomic_exchange(lock, 0, 0)


@st.kernel
def slow_owner(flag: Global[i32], data: Global[i32], n: i32) -> None:
    """The first warp waits for a long computation of the second one, and records whether it had work to do."""
    if st.warp == 0:
        while st.load_acquire(flag, 0) == 0:
            if st.load_acquire(flag, 1) > 1:
                data[0] = 1
    elif st.lane == 0:
        total = 0
        for k in range(n):
            total += k
        data[1] = total
        st.store_release(flag, 0, 1)


@st.kernel
def now_and_then(x: Global[i32], data: Global[i32], n: i32) -> None:
    """It progresses once in n tries: no wait is long."""
    tries, found = 0, 0
    while found < 1:
        tries = st.atomic_add(x, 0, 1)
        if tries % n == n - 1:
            data[found] = tries
            found += 1


STALLS = "this loop ran 10,000 iterations without getting any further"


@engines
@pytest.mark.parametrize("check", ["", "all"])
def test_a_lock_that_is_not_released_ends(engine: EngineName, check: str) -> None:
    result = run(locked, engine, check, lock=np.zeros(1, np.int32), data=np.zeros(1, np.int32), FORGETS=True)
    assert [(fault.kind, fault.message, fault.count) for fault in result.faults] == [("step limit", STALLS, 63)]
    assert result.data.tolist() == [1]


@engines
@pytest.mark.parametrize("block", [32, 96])
def test_a_released_lock_is_acquired(engine: EngineName, block: int) -> None:
    arguments: Any = {"lock": np.zeros(1, np.int32), "data": np.zeros(1, np.int32)}
    result = run(locked, engine, "races", block=block, **arguments, FORGETS=False)
    assert result.faults == [] and result.data.tolist() == [2 * block]


@engines
def test_pauses_that_grow_to_a_limit_are_no_progress(engine: EngineName) -> None:
    """Before 7.0 the lane with the lock waits for the other lanes of the warp to leave the loop, and these never leave it."""
    results = {
        device: run(backs_off, engine, device=device, lock=np.zeros(1, np.int32), data=np.zeros(1, np.int32))
        for device in ("K40", "H200")
    }
    assert [fault.message for fault in results["K40"].faults] == [STALLS]
    assert results["H200"].faults == [] and results["H200"].data.tolist() == [64]


@engines
def test_a_wait_for_another_warp_may_be_long(engine: EngineName) -> None:
    n = 20
    arguments: Any = {"flag": np.zeros(2, np.int32), "data": np.zeros(2, np.int32)}
    result = run(slow_owner, engine, grid=1, block=64, **arguments, n=n)
    assert result.faults == [] and result.data.tolist() == [0, n * (n - 1) // 2]


@engines
def test_a_loop_that_counts_its_tries_is_no_wait(engine: EngineName) -> None:
    n = MAX_SPIN_ITERATIONS + 9
    result = run(now_and_then, engine, grid=1, block=1, x=np.zeros(1, np.int32), data=np.zeros(1, np.int32), n=n)
    assert result.faults == [] and result.data.tolist() == [n - 1]
