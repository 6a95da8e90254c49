"""Samples of a detailed launch: accesses by cost with an example, and lanes by iterations; equal for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.profiler import samples
from simtbed.profiler.samples import COSTS, EXACT, ITERATIONS, Samples, iteration, lanes_by_iterations, row_of
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request


@st.kernel
def strided(x: st.Global[st.f32], out: st.Global[st.f32], stride: st.i32) -> None:
    """out[i] = x[i * stride], summed over i iterations of a loop."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = st.f32(0)
    iterations = 0
    while iterations < i % 4:
        total += x[i * stride]
        iterations += 1
    out[i] = total


def request(stride: int = 2, blocks: int = 8) -> Request:
    n = 64 * blocks
    args = {"x": np.ones(n * stride, np.float32), "out": st.empty(n, st.f32), "stride": stride}
    return prepare_request(strided, grid=blocks, block=64, args=args, detail=True)


def samples_of(launch: Request, threads: int = 1) -> Samples:
    result = LlvmEngine(threads).run(launch).samples
    assert result is not None
    return result


def test_an_access_has_one_row_per_cost_at_first_execution() -> None:
    launch = request(stride=2, blocks=1)
    site = next(n for n, s in enumerate(launch.prepared.sites) if s.kind == "global_load")
    table = samples_of(launch).accesses[site]
    # Lanes 1, 2, 3 of every four; then 2, 3; then 3: lanes at a distance of 8 bytes, four to a sector of 32 bytes.
    assert np.flatnonzero(table["count"]).tolist() == [8] and table["count"][8] == 6
    first = table[8]
    assert (first["block"], first["warp"], first["phase"]) == (0, 0, 0)
    assert first["mask"] == 0xEEEEEEEE
    assert first["index"].tolist() == [0 if lane % 4 == 0 else 2 * lane for lane in range(32)]


def test_a_loop_counts_lanes_by_iterations() -> None:
    (table,) = samples_of(request(blocks=2)).loops.values()
    assert lanes_by_iterations(table) == [
        (1, 1, 32),
        (2, 2, 32),
        (3, 3, 32),
    ]  # of 128 lanes, a quarter has no iteration
    assert table["warps"][:4].tolist() == [4, 4, 4, 0]


def test_late_iterations_share_rows() -> None:
    rows = range(ITERATIONS - 1)
    assert [row_of(iteration(row)) for row in rows] == [*rows]
    assert row_of(EXACT + 1) is None
    table = np.zeros(ITERATIONS, samples.LOOP)
    for number in range(300):
        if (row := row_of(number)) is not None:
            table["lanes"][row] += 1
    assert lanes_by_iterations(table) == [(257, 512, 1)]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_keep_the_same_samples(threads: int) -> None:
    alone, shared = samples_of(request(blocks=40)), samples_of(request(blocks=40), threads)
    for first_table, second_table in ((alone.accesses, shared.accesses), (alone.loops, shared.loops)):
        assert first_table.keys() == second_table.keys()
        assert all((first_table[site] == second_table[site]).all() for site in first_table)


def test_merged_samples_start_at_the_lowest_block_phase_warp() -> None:
    def table(block: int, phase: int, warp: int, count: int) -> samples.Table:
        expected = np.zeros(COSTS, samples.ACCESS)
        expected[4] = (count, block, phase, warp, 1, 0, np.arange(32))
        return expected

    merged = samples.merge_tables(
        [table(3, 0, 0, 5), table(2, 1, 0, 7), table(2, 0, 9, 1), np.zeros(COSTS, samples.ACCESS)]
    )
    assert (merged[4]["count"], merged[4]["block"], merged[4]["phase"], merged[4]["warp"]) == (13, 2, 0, 9)


def test_a_plain_launch_keeps_none() -> None:
    assert LlvmEngine(1).run(replace(request(), detail=False)).samples is None
    with pytest.raises(st.LaunchError, match="detail=True records counted events"):
        prepare_request(strided, grid=1, block=1, args={}, detail=True, counters=False)
