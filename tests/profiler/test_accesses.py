"""Memory accesses that a launch with decisions records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.profiler import accesses
from simtbed.profiler.accesses import AccessRecorder, WarpAccesses
from simtbed.profiler.block_sampling import sampled_blocks
from simtbed.profiler.trace import ENTRY, Entries


@st.kernel
def reversed_tile(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out = x with each 64 elements in reverse order."""
    tile = st.shared(st.f32, 64)
    t = st.thread.x
    tile[t] = x[st.block.x * 64 + t]
    st.sync()
    if t < 40:
        out[st.block.x * 64 + t] = tile[63 - t]


def accesses_of(engine: Any, blocks: int = 3, **how: Any) -> WarpAccesses:
    x = np.arange(64 * blocks, dtype=np.float32)
    result = st.launch(
        reversed_tile,
        grid=blocks,
        block=64,
        args={"x": x, "out": st.zeros(len(x), st.f32)},
        engine=engine,
        decisions=True,
        **how,
    )
    assert result.decisions is not None
    (only,) = result.decisions.accesses
    return only


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_launch_with_decisions_keeps_accesses_warp_by_warp(engine: str) -> None:
    recorded = accesses_of(engine)
    assert [*recorded.by_warp] == [(block, warp) for block in range(3) for warp in range(2)]
    last = recorded.by_warp[2, 1]
    assert last["mask"].tolist() == [0xFFFFFFFF, 0xFFFFFFFF, 0xFF, 0xFF]
    assert last["index"][1].tolist() == [*range(32, 64)]
    assert last["index"][2][:8].tolist() == [*range(31, 23, -1)]
    assert all(recorded.has(block) for block in range(3))


def test_engines_keep_the_same() -> None:
    mine, its = accesses_of("numpy", 40), accesses_of("jit", 40)
    assert mine.by_warp.keys() == its.by_warp.keys()
    assert all(mine.by_warp[name].tobytes() == its.by_warp[name].tobytes() for name in mine.by_warp)


def test_another_order_of_blocks_is_not_kept_too() -> None:
    mine, its = accesses_of("jit", schedule=1), accesses_of("jit")
    assert all(mine.by_warp[name].tobytes() == its.by_warp[name].tobytes() for name in its.by_warp)


def entries(blocks: range, sites: int) -> Entries:
    result = np.zeros(len(blocks) * sites, ENTRY)
    result["block"], result["site"] = np.repeat(blocks, sites), np.tile(np.arange(sites), len(blocks))
    return result


def test_above_the_limit_whole_blocks_are_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accesses, "MAX_ACCESSES", 100)
    recorder = AccessRecorder(1)
    for first in range(0, 200, 10):
        recorder.take(entries(range(first, first + 10), 5))
    recorded = recorder.finish()
    numbers = np.arange(200)
    assert recorded.interval > 1
    assert [block for block, _ in recorded.by_warp] == numbers[sampled_blocks(numbers, recorded.interval)].tolist()
    assert all(one["site"].tolist() == [*range(5)] for one in recorded.by_warp.values())
    assert sum(map(len, recorded.by_warp.values())) <= 100
    assert [recorded.has(n) for n in range(200)] == sampled_blocks(numbers, recorded.interval).tolist()


def test_a_block_of_too_many_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accesses, "MAX_ACCESSES", 100)
    recorder = AccessRecorder(1)
    recorder.take(entries(range(3, 4), 101))
    assert recorder.finish().by_warp == {}


def test_a_repeated_launch_records_its_second_run() -> None:
    recorder = AccessRecorder(1)
    recorder.take(entries(range(4), 2))
    recorder.begin_again()
    recorder.take(entries(range(2), 3))
    assert [*recorder.finish().by_warp] == [(0, 0), (1, 0)]


def test_nothing_is_kept_of_a_launch_without_them() -> None:
    assert not WarpAccesses().has(0) and not WarpAccesses().by_warp


def test_blocks_that_were_not_traced_have_none() -> None:
    recorder = AccessRecorder(1, ("global",))
    recorder.take(entries(range(4), 2))
    recorder.blocks = 3
    recorded = recorder.finish()
    assert [recorded.has(block) for block in range(5)] == [True, True, True, False, False] and recorded.spaces == (
        "global",
    )
