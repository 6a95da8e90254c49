"""Uninitialised reads of device arrays: written elements are recorded across launches."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, i32, int2, launch, profiling
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer import tracking

engines = pytest.mark.parametrize("engine", ["numpy", "jit"])
N = 128


@st.kernel
def put(a: Global[i32], first: i32, last: i32) -> None:
    """a[i] = i, from first up to last."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= first and i < last:
        a[i] = i


@st.kernel
def take(a: Global[i32], out: Global[i32], n: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = a[i]


@st.kernel
def take_one(a: Global[i32], out: Global[i32], which: i32) -> None:
    """All threads read one element."""
    out[st.block.x * st.block_dim.x + st.thread.x] = a[which]


@st.kernel
def add_left(a: Global[i32], n: i32) -> None:
    """Reads elements of an array which other blocks write."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i > 0 and i < n:
        a[i] += a[i - 1]


@st.kernel
def double(a: Global[i32], n: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        for _ in range(8):
            a[i] *= 2


@st.kernel
def put_pairs(a: Global[int2], n: i32) -> None:
    if st.thread.x < n:
        a[st.thread.x] = int2(1, 2)


@st.kernel
def take_pairs(a: Global[int2], out: Global[i32]) -> None:
    out[st.thread.x] = a[st.thread.x].y


def run(kernel: Any, engine: EngineName, check: str = "all", **args: Any) -> list[tuple[str, str]]:
    """Return (kind, message) of each finding of a grid of 2 blocks of 64 threads."""
    if kernel in (take, take_one):
        args["out"] = st.empty(N, i32)
    result = launch(kernel, grid=2, block=64, args=args, engine=engine, check=check, faults="return")
    return [(fault.kind, fault.message) for fault in result.faults]


UNWRITTEN = [("uninitialised", "global read of a[96], which was never written")]


@engines
def test_elements_never_written_are_reported(engine: EngineName) -> None:
    array = DeviceArray(st.empty(N, i32))
    findings = run(take, engine, a=array, n=N)
    assert findings == [("uninitialised", "global read of a[0], which was never written")]
    assert run(put, engine, a=array, first=0, last=96) == []
    assert run(take, engine, a=array, n=96) == []
    assert run(take, engine, a=array, n=N) == UNWRITTEN
    assert run(take_one, engine, a=array, which=95) == []
    assert run(take_one, engine, a=array, which=96) == UNWRITTEN


@engines
def test_several_launches_may_write_an_array(engine: EngineName) -> None:
    array = DeviceArray(st.empty(N, i32))
    for first in range(0, N, 32):
        assert run(put, engine, a=array, first=first, last=first + 32) == []
    assert run(take, engine, a=array, n=N) == [] and array.written is None


@engines
def test_the_finding_says_where_it_should_have_been_written(engine: EngineName) -> None:
    array = DeviceArray(st.empty(N, i32))
    args = {"a": array, "out": st.empty(N, i32), "n": N}
    result = launch(take, grid=2, block=64, args=args, engine=engine, check="all", faults="return")
    assert result.faults[0].notes[-1] == "nothing in the kernel writes a; nor did a launch before this one"


@engines
@pytest.mark.parametrize("check", ["", "races"])
def test_after_an_unchecked_launch_nothing_is_reported(engine: EngineName, check: str) -> None:
    array = DeviceArray(st.empty(N, i32))
    assert run(put, engine, check, a=array, first=0, last=8) == []
    assert array.written is None and run(take, engine, a=array, n=N) == []


@engines
def test_a_launch_that_only_reads_it_changes_nothing(engine: EngineName) -> None:
    array = DeviceArray(st.empty(N, i32))
    assert run(put, engine, a=array, first=0, last=96) == []
    run(take, engine, "", a=array, n=N)
    assert run(take, engine, a=array, n=N) == UNWRITTEN


@engines
@pytest.mark.parametrize(
    "contents", [np.ones(N, np.int32), st.zeros(N, i32), st.full(N, 3, i32)], ids=["array", "zeros", "full"]
)
def test_arrays_with_contents_may_be_read(engine: EngineName, contents: Any) -> None:
    assert run(take, engine, a=DeviceArray(contents), n=N) == []


@engines
def test_vectors_are_written_whole(engine: EngineName) -> None:
    array = DeviceArray(st.empty(64, int2))
    how = partial(launch, grid=1, block=64, engine=engine, check="all", faults="return")
    how(put_pairs, args={"a": array, "n": 40})
    findings = how(take_pairs, args={"a": array, "out": st.empty(64, i32)}).faults
    assert [fault.message for fault in findings] == ["global read of a[40], which was never written"]
    array.keep(40)
    assert how(take_pairs, block=40, args={"a": array, "out": st.empty(64, i32)}).faults == []


@engines
def test_kept_arrays_change_no_race_of_a_launch(engine: EngineName) -> None:
    array, fresh = DeviceArray(st.empty(N, i32)), DeviceArray(np.arange(N, dtype=np.int32))
    assert run(put, engine, a=array, first=0, last=N - 1) == []
    assert run(double, engine, a=array, n=N - 1) == []
    assert run(add_left, engine, a=array, n=N - 1) == run(add_left, engine, a=fresh, n=N - 1)
    kinds = [kind for kind, _ in run(double, engine, a=array, n=N)]
    assert kinds == ["uninitialised", "arithmetic"]  # twice the poison overflows


@engines
def test_a_full_log_keeps_what_was_written_before(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "LOG_ROWS", 8)
    array = DeviceArray(st.empty(N, i32))
    assert run(put, engine, a=array, first=0, last=96) == []
    assert run(double, engine, a=array, n=96) == []
    assert array.written is not None and array.written.tolist() == [True] * 96 + [False] * 32


def test_an_observer_that_checks_takes_account_too() -> None:
    """After a finding, the program gets the answer of a second launch without checks."""
    array = DeviceArray(st.empty(N, i32))
    with profiling(check="all") as observer:
        for last in (64, 96):
            launch(put, grid=2, block=64, args={"a": array, "first": last - 64, "last": last})
        for _ in range(2):
            launch(take, grid=2, block=64, args={"a": array, "out": st.empty(N, i32), "n": N})
    assert [[fault.message for fault in one.faults] for one in observer.launches] == [[], [], *[[UNWRITTEN[0][1]]] * 2]
