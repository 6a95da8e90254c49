"""Decisions of single warps by block, warp and site, equal on every engine, and the model's classes of warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import simtbed as st
from simtbed import Global, i32
from simtbed.model.launches import observe
from simtbed.model.time import estimate
from simtbed.profiler.warp_decisions import (
    ENTRIES,
    EXECUTIONS,
    FALSE_COUNT,
    ITERATIONS,
    MAX_ROWS,
    ROW,
    TRUE_COUNT,
    WarpDecisions,
)
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

Words = npt.NDArray[np.int64]


@st.kernel
def unequal(turns: Global[i32], out: Global[st.f32]) -> None:
    """Each warp executes its number of iterations; odd lanes of warps with iterations add one more."""
    warp = st.block.x * (st.block_dim.x // 32) + st.thread.x // 32
    total = st.f32(st.lane)
    for _ in range(turns[warp]):
        total = st.fma(total, total, st.f32(0.5))
    if turns[warp] > 0 and st.lane % 2 == 1:
        total += st.f32(1)
    out[st.block.x * st.block_dim.x + st.thread.x] = total


def _decided(engine: EngineName, iterations: Words) -> Words:
    args = {"turns": iterations.astype(np.int32), "out": st.empty(32 * len(iterations), "f32")}
    decisions = st.launch(
        unequal, grid=len(iterations) // 4, block=128, args=args, engine=engine, decisions=True
    ).decisions
    assert decisions is not None
    return decisions.warps.rows


def test_each_warp_has_a_row_for_each_of_its_branches() -> None:
    iterations = np.array([0, 3, 7, 1, 5, 0, 0, 2])
    for rows in (_decided("jit", iterations), _decided("numpy", iterations)):
        loop, branch = (rows[rows[:, 2] == site] for site in np.unique(rows[:, 2]))
        for site_rows in (loop, branch):
            assert (4 * site_rows[:, 0] + site_rows[:, 1]).tolist() == list(range(8)) and set(
                site_rows[:, EXECUTIONS]
            ) == {1}
        assert loop[:, ITERATIONS].tolist() == iterations.tolist()
        assert loop[:, ENTRIES].tolist() == (iterations > 0).tolist()
        assert branch[:, TRUE_COUNT].tolist() == (iterations > 0).tolist()
        assert branch[:, FALSE_COUNT].tolist() == [1] * 8  # the even lanes, or all lanes


def test_both_engines_keep_the_same() -> None:
    iterations = np.random.default_rng(3).integers(0, 9, 256)
    assert np.array_equal(_decided("jit", iterations), _decided("numpy", iterations))


def test_of_very_many_rows_every_second_block_is_kept() -> None:
    """The sampled blocks do not depend on the order of the notes, and are complete."""
    blocks = MAX_ROWS // 2
    notes = np.zeros((4 * blocks, 40), np.int32)
    notes[:, 0], notes[:, 2], notes[:, 5] = 1, np.repeat(np.arange(blocks), 4), np.tile(np.arange(4), blocks)
    notes[:, 8] = 1
    results = []
    for order in (np.arange(len(notes)), np.random.default_rng(1).permutation(len(notes))):
        decisions = WarpDecisions()
        for some in np.array_split(notes[order], 7):
            decisions.add(np.ascontiguousarray(some).reshape(-1))
        decisions.sort()
        assert decisions.interval > 1 and decisions.rows.shape[1] == ROW and len(decisions.rows) <= MAX_ROWS
        assert np.array_equal(np.unique(decisions.rows[:, 0]), decisions.blocks(blocks))
        assert (np.bincount(decisions.rows[:, 0])[decisions.blocks(blocks)] == 4).all()
        results.append(decisions.rows)
    first, second = results
    assert np.array_equal(first, second)


def test_one_long_warp_takes_longer_than_its_share() -> None:
    """The total of iterations is the same: in one warp of each block, or divided among its four warps."""
    times = []
    for iterations in (np.tile([4000, 0, 0, 0], 132), np.full(528, 1000)):
        args: dict[str, Any] = {"turns": iterations.astype(np.int32), "out": st.empty(32 * 528, "f32")}
        launch = observe(prepare_request(unequal, grid=132, block=128, args=args, decisions=True))
        kernel = launch.compiled(st.devices.H200)
        if isinstance(kernel, str):
            pytest.skip(kernel)
        times.append(estimate(launch, st.devices.H200).time_us)
    assert times[0] > 2 * times[1]
