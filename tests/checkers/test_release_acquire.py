"""Release and acquire between threads: the idioms of CUDA have no report, an incomplete idiom is reported, and no table is too small."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, Kernel, f32, i32, launch
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer import tracking
from simtbed.sanitizer.races import shadow

engines = pytest.mark.parametrize("engine", ["numpy", "jit"])


def run(kernel: Kernel, engine: EngineName, check: str = "all", grid: int = 2, block: int = 64, **args: Any) -> Any:
    return launch(kernel, grid=grid, block=block, args=args, engine=engine, check=check, faults="return")


@st.kernel
def wavefront(flag: Global[i32], data: Global[i32]) -> None:
    """Block b waits for b - 1, which waited for b - 2: the reads of both are ordered."""
    b = st.block.x
    if b > 0:
        if st.thread.x == 0:
            while st.load_acquire(flag, b - 1) == 0:
                pass
        st.sync()
    value = 1
    if b > 0:
        value += data[(b - 1) * 64 + (st.thread.x ^ 3)]
    if b > 1:
        value += data[(b - 2) * 64 + (st.thread.x ^ 5)]
    data[b * 64 + st.thread.x] = value
    st.sync()
    if st.thread.x == 0:
        st.store_release(flag, b, 1)


@st.kernel
def lanes_follow(flag: Global[i32], data: Global[i32], WIDTH: Const, MEET: Const) -> None:
    """The first lane of each group releases and acquires for the group; a syncwarp joins it with the others."""
    group = st.thread.x // WIDTH
    first = st.thread.x % WIDTH == 0
    mask = st.FULL_MASK if WIDTH == 32 else st.u32((1 << WIDTH) - 1) << st.u32(st.lane // WIDTH * WIDTH)
    if st.block.x == 0:
        data[st.thread.x] = st.thread.x
        if MEET:
            st.syncwarp(mask)
        if first:
            st.store_release(flag, group, 1)
    else:
        if first:
            while st.load_acquire(flag, group) == 0:
                pass
        st.syncwarp(mask)
        data[64 + st.thread.x] = data[st.thread.x ^ 1]


@st.kernel
def fence_then_barrier(flag: Global[i32], data: Global[i32], FENCED: Const) -> None:
    """Every thread fences its writes; after the barrier one of them raises the flag."""
    if st.block.x == 0:
        data[st.thread.x] = st.thread.x
        if FENCED or st.warp == 0:
            st.fence()
        st.sync()
        if st.thread.x == 0:
            st.volatile_store(flag, 0, 1)
    else:
        if st.thread.x == 0:
            while st.volatile_load(flag, 0) == 0:
                pass
            st.fence()
        st.sync()
        data[64 + st.thread.x] = data[st.thread.x ^ 1]


@st.kernel
def locked(lock: Global[i32], total: Global[i32], n: i32, ACQUIRE: Const, RELEASE: Const) -> None:
    """Each thread takes the lock n times."""
    done = 0
    while done < n:
        if st.compare_swap(lock, 0, 0, 1) == 0:
            if ACQUIRE:
                st.fence()
            total[0] += 1
            if RELEASE:
                st.fence()
            st.atomic_exchange(lock, 0, 0)
            done += 1


@st.kernel
def polls_and_reads(flag: Global[i32], data: Global[f32], out: Global[f32]) -> None:
    """A thread that only reads a flag releases no writes, with or without a fence."""
    if st.thread.x == 0:
        if st.block.x == 0:
            data[0] = 1.0
            st.fence()
            if st.load_acquire(flag, 0) == 0:
                out[0] = 1.0
        elif st.load_acquire(flag, 0) == 0:
            out[1] = data[0]


@st.kernel
def many_fences(count: Global[i32], total: Global[i32], n: i32) -> None:
    """One thread of each warp sums, and everything around it is fenced."""
    for _ in range(n):
        st.atomic_add(count, 0, 1)
        st.fence()
        if st.lane == 0:
            total[st.warp] += 1


FLAG, TOTAL = np.zeros(8, np.int32), np.zeros(8, np.int32)
IDIOMS: dict[str, tuple[Kernel, dict[str, Any]]] = {
    "wavefront": (wavefront, {"grid": 5, "flag": FLAG, "data": np.zeros(320, np.int32)}),
    "lanes of a warp": (lanes_follow, {"flag": FLAG, "data": np.zeros(128, np.int32), "WIDTH": 32, "MEET": True}),
    "lanes of a group": (lanes_follow, {"flag": FLAG, "data": np.zeros(128, np.int32), "WIDTH": 8, "MEET": True}),
    "fence, then barrier": (fence_then_barrier, {"flag": FLAG, "data": np.zeros(128, np.int32), "FENCED": True}),
    "lock": (locked, {"lock": FLAG, "total": TOTAL, "n": 2, "ACQUIRE": True, "RELEASE": True}),
}
MISTAKES: dict[str, tuple[Kernel, dict[str, Any]]] = {
    "lanes of a warp, no syncwarp": (lanes_follow, {"flag": FLAG, "data": np.zeros(128, np.int32), "WIDTH": 32, "MEET": False}),
    "lanes of a group, no syncwarp": (lanes_follow, {"flag": FLAG, "data": np.zeros(128, np.int32), "WIDTH": 8, "MEET": False}),
    "one warp fences": (fence_then_barrier, {"flag": FLAG, "data": np.zeros(128, np.int32), "FENCED": False}),
    "no fence before the release": (locked, {"lock": FLAG, "total": TOTAL, "n": 1, "ACQUIRE": True, "RELEASE": False}),
    "loads release nothing": (polls_and_reads, {"flag": FLAG, "data": np.zeros(1, np.float32), "out": np.zeros(2, np.float32)}),
}  # fmt: skip


@engines
@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_is_silent(engine: EngineName, name: str) -> None:
    kernel, args = IDIOMS[name]
    result = run(kernel, engine, **args)
    assert (result.faults, result.remarks) == ([], [])


@engines
@pytest.mark.parametrize("name", MISTAKES)
def test_an_incomplete_release_is_a_race(engine: EngineName, name: str) -> None:
    kernel, args = MISTAKES[name]
    assert {fault.kind for fault in run(kernel, engine, **args).faults} == {"race"}


@engines
def test_a_read_without_acquire_is_a_remark_or_a_fault(engine: EngineName) -> None:
    args: dict[str, Any] = {"lock": FLAG, "total": TOTAL, "n": 1, "ACQUIRE": False, "RELEASE": True}
    result = run(locked, engine, "races", **args)
    assert (result.faults, [remark.kind for remark in result.remarks]) == ([], ["unacquired race"])
    assert any('st.fence() after it, or order="acquire"' in note for note in result.remarks[0].notes)
    strict = run(locked, engine, "all", **args)
    assert ([fault.kind for fault in strict.faults], strict.remarks) == (["unacquired race"], [])


@pytest.mark.slow
@engines
def test_a_full_table_of_events_causes_no_false_report(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "MOST_EVENTS", 64)
    for kernel, args in IDIOMS.values():
        assert run(kernel, engine, "races", **args).faults == []
    result = run(locked, engine, "races", lock=FLAG, total=TOTAL, n=20, ACQUIRE=True, RELEASE=True)
    assert (result.faults, result.total[0]) == ([], 20 * 128)


@engines
def test_a_log_that_one_phase_fills_is_emptied(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows since the last barrier are from this phase."""
    monkeypatch.setattr(tracking, "LOG_ROWS", 128)
    result = run(many_fences, engine, "races", grid=1, count=FLAG, total=TOTAL, n=100)
    assert (result.faults, result.total[:2].tolist()) == ([], [100, 100])
    result = run(locked, engine, "races", grid=1, lock=FLAG, total=TOTAL, n=10, ACQUIRE=True, RELEASE=True)
    assert (result.faults, result.total[0]) == ([], 640)


def test_many_releases_take_no_longer_each() -> None:
    """128,000 releases of a lock, each acquired by the next thread."""
    result = run(locked, "jit", "races", grid=1, lock=FLAG, total=TOTAL, n=2000, ACQUIRE=True, RELEASE=True)
    assert (result.faults, result.total[0]) == ([], 128_000)


# ------------------------------------------------------------------ what is missing before a release
@st.kernel
def warps_hand_over(flag: Global[i32], data: Global[i32], out: Global[i32], LANES: Const, BARRIER: Const) -> None:
    """Warp 0 passes 32 numbers to warp 1 of its block by the release of its first lane, or of warp 2's."""
    if st.warp == 0:
        data[st.lane] = st.lane
        if LANES:
            st.syncwarp()
    if BARRIER:
        st.sync()
    releases = st.thread.x == (0 if LANES or not BARRIER else 64)
    if releases:
        st.store_release(flag, 0, 1)
    if st.warp == 1:
        while st.load_acquire(flag, 0) == 0:
            pass
        out[st.lane] = data[st.lane ^ 1]


@st.kernel
def another_warp_releases(flag: Global[i32], data: Global[i32], out: Global[i32]) -> None:
    """As above, without a barrier between warp 0 and the releasing warp."""
    if st.warp == 0:
        data[st.lane] = st.lane
    if st.thread.x == 32:
        st.store_release(flag, 0, 1)
    if st.warp == 2:
        while st.load_acquire(flag, 0) == 0:
            pass
        out[st.lane] = data[st.lane ^ 1]


@engines
def test_the_advice_is_a_syncwarp_where_another_lane_released(engine: EngineName) -> None:
    def run_with(LANES: bool) -> Any:
        arguments: Any = {"flag": np.zeros(1, np.int32), "data": st.empty(32, "i32"), "out": st.empty(32, "i32")}
        return run(warps_hand_over, engine, grid=1, block=64, **arguments, LANES=LANES, BARRIER=False).faults

    (race,) = run_with(False)
    line = race.related.line
    advice = f"another lane of the warp released it: st.syncwarp() after line {line}, before that release"
    assert race.kind == "race" and race.notes[-1] == advice and race.related.source.strip() == "data[st.lane] = st.lane"
    assert run_with(True) == []


@engines
def test_the_advice_for_other_blocks_too(engine: EngineName) -> None:
    arguments: Any = {"flag": np.zeros(2, np.int32), "data": st.empty(128, "i32")}
    (race,) = run(lanes_follow, engine, **arguments, WIDTH=32, MEET=False).faults
    assert "another lane of the warp released it: st.syncwarp() after line" in race.notes[-1]


@engines
def test_the_advice_is_a_barrier_where_another_warp_released(engine: EngineName) -> None:
    arguments: Any = {"flag": np.zeros(1, np.int32), "data": st.empty(32, "i32"), "out": st.empty(32, "i32")}
    (race,) = run(another_warp_releases, engine, grid=1, block=96, **arguments).faults
    assert race.notes[-1].startswith("another warp of the block released it: st.sync() after line")
