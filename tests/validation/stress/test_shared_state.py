"""State that outlives a launch: arrays shared by threads, pickling, memory, and text forms of results."""

import gc
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, DeviceArray, FaultError, Global, LaunchError, f32, i32, launch


@st.kernel
def increment(total: Global[i32]) -> None:
    total[st.block.x] += 1


@st.kernel
def beyond(x: Global[f32], out: Global[f32]) -> None:
    out[st.thread.x] = x[st.thread.x + 1]


@st.kernel()
def with_parentheses(out: Global[f32]) -> None:
    out[0] = seven()


@st.device()
def seven() -> f32:
    return 7.0


ARGUMENTS = {"x": np.ones(64, np.float32), "out": st.empty(64, "f32")}


def test_parentheses_change_nothing() -> None:
    assert launch(with_parentheses, grid=1, block=1, args={"out": st.empty(1, f32)}).out[0] == 7


def test_threads_that_share_an_array_lose_no_update() -> None:
    totals = [DeviceArray(st.zeros(4, i32)) for _ in range(2)]

    @st.kernel
    def both(a: Global[i32], b: Global[i32]) -> None:
        a[st.block.x] += 1
        b[st.block.x] += 1

    def work(order: int) -> None:
        for _ in range(50):
            a, b = totals[::order]
            launch(both, grid=4, block=1, args={"a": a, "b": b}, counters=False)
            launch(increment, grid=4, block=1, args={"total": totals[0]}, counters=False)

    threads = [threading.Thread(target=work, args=(order,)) for order in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals[0].numpy().tolist() == [400] * 4
    assert totals[1].numpy().tolist() == [200] * 4


def faulty(number: int) -> None:
    launch(beyond, grid=1, block=64, args=ARGUMENTS)


def named(kernel: st.Kernel) -> str:
    return kernel.__name__


def test_faults_and_kernels_pass_between_processes() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(FaultError, match="global read out of bounds") as caught:
            pool.submit(faulty, 1).result(timeout=120)
        assert pool.submit(named, beyond).result(timeout=120) == "beyond"
    assert caught.value.result.faults[0].kind == "bounds"


def error_of(call: Callable[[], object]) -> Exception:
    with pytest.raises(st.SimtbedError) as caught:
        call()
    return caught.value


def test_every_error_is_pickled() -> None:
    @st.kernel
    def wrong(out: Global[f32]) -> None:
        out[0] = nothing  # type: ignore[name-defined]  # noqa: F821

    errors = [
        error_of(lambda: faulty(1)),
        error_of(lambda: launch(wrong, grid=1, block=1, args={"out": st.empty(1, f32)})),
        error_of(lambda: launch(beyond, grid=0, block=1, args=ARGUMENTS)),
    ]
    assert [type(error) for error in errors] == [FaultError, CompileError, LaunchError]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert {error: 1}[error] == 1  # as in tools for error reports


def test_results_and_arrays_are_pickled() -> None:
    result = launch(beyond, grid=1, block=32, args=ARGUMENTS)
    again = pickle.loads(pickle.dumps(result))
    assert again.counters.totals() == result.counters.totals()
    assert np.array_equal(again.out, result.out, equal_nan=True)  # elements without a value are NaN
    assert pickle.loads(pickle.dumps(DeviceArray(st.zeros(3, i32)))).numpy().tolist() == [0, 0, 0]


def test_a_result_is_one_line() -> None:
    result = launch(beyond, grid=1, block=64, args=ARGUMENTS, faults="return")
    assert (
        repr(result)
        == f"<Result of beyond: out float32[64]; faults 1; warp instructions {result.counters.total('warp_instructions')}>"
    )
    assert result._repr_html_().count("<tr>") == 3


def test_launches_do_not_grow_memory() -> None:
    """A leak grows in every round; memory retained by the allocator does not."""

    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("this system does not report the memory of a process")
    stored = DeviceArray(st.zeros(4, i32))

    def work(launches: int) -> None:
        for _ in range(launches):
            launch(increment, grid=4, block=1, args={"total": stored})
            launch(beyond, grid=1, block=32, args=ARGUMENTS)

    sizes = []
    for _ in range(5):
        work(1000)
        gc.collect()
        sizes.append(resident())
    assert min(after - before for before, after in pairwise(sizes)) < 1 << 16  # 32 bytes a launch
    assert stored.numpy()[0] == 5000
