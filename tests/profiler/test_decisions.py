"""Decisions of branches and loops: recorded values, their limits, and unchanged counters."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed import LaunchError
from simtbed.engines.llvm import decision_buffers
from simtbed.profiler import decisions as keeping
from simtbed.profiler.decisions import NOTE, Decisions, SiteDecisions, merge

ENGINES: tuple[st.EngineName, ...] = ("jit", "numpy")


@st.kernel
def turning(x: st.Global[st.i32], out: st.Global[st.i32], n: st.i32) -> None:
    """out[i] = the sum of 0 ... x[i] - 1, less the limits of negative elements."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n and x[i] >= 0:
        total = 0
        for j in range(x[i]):
            total += j
        out[i] = total


@st.device
def steps_to(limit: st.i32) -> st.i32:
    """Steps of 3 until the limit is reached."""
    at = 0
    while True:
        if at >= limit:
            return at
        at += 3


@st.kernel
def returning(out: st.Global[st.i32]) -> None:
    """out[i] = steps of a loop that lanes leave by a return."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = steps_to(i & 7)


@st.kernel
def either(x: st.Global[st.i32], out: st.Global[st.i32]) -> None:
    """One branch with a condition of two comparisons."""
    i = st.thread.x
    value = x[i]
    if value > 5 and value < 9:
        out[i] = 1


def decisions_of(result: st.Result, text: str) -> SiteDecisions:
    """Return the decisions of the site with a text in its source."""
    assert result.decisions is not None
    (site,) = (n for n in result.decisions.sites if text in result.request.prepared.sites[n].span.text)
    return result.decisions.sites[site]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_keeps_the_iterations_of_every_lane(engine: st.EngineName) -> None:
    x = np.tile(np.arange(32, dtype=np.int32), 3)
    args = {"x": x, "out": st.zeros(96, st.i32), "n": 96}
    decisions = decisions_of(st.launch(turning, grid=3, block=32, args=args, engine=engine, decisions=True), "range")
    assert decisions.patterns["value"].tolist() == [list(range(32))]
    assert (decisions.patterns["count"].tolist(), decisions.patterns["mask"].tolist()) == ([3], [0xFFFFFFFF])
    assert decisions.runs.tolist() == [(0, block, 0, 0, 0, 1) for block in range(3)]
    assert decisions.executions == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_a_branch_keeps_each_condition_it_is_made_of(engine: st.EngineName) -> None:
    x = np.arange(32, dtype=np.int32)
    result = st.launch(
        either, grid=1, block=32, args={"x": x, "out": st.zeros(32, st.i32)}, engine=engine, decisions=True
    )
    (codes,) = decisions_of(result, "value > 5").patterns["value"].tolist()
    assert codes == [4 * (n < 9) + 2 * (n > 5) + (5 < n < 9) for n in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_that_return_from_a_loop_share_its_execution(engine: st.EngineName) -> None:
    result = st.launch(returning, grid=2, block=32, args={"out": st.empty(64, st.i32)}, engine=engine, decisions=True)
    decisions = decisions_of(result, "True")
    assert decisions.patterns["value"].tolist() == [[1 + -(-(n & 7) // 3) for n in range(32)]]
    assert decisions.patterns["count"].tolist() == [2]


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_of_a_warp_are_in_the_order_of_execution(engine: st.EngineName) -> None:
    @st.kernel
    def alternating(out: st.Global[st.i32]) -> None:
        total = 0
        for j in range(7):
            if j < 4 and j != 2:
                total += j
        out[st.thread.x] = total

    result = st.launch(alternating, grid=1, block=32, args={"out": st.empty(32, st.i32)}, engine=engine, decisions=True)
    decisions = decisions_of(result, "j < 4")
    codes = [decisions.patterns["value"][run["pattern"], 0].item() for run in decisions.runs]
    assert list(zip(codes, decisions.runs["count"].tolist(), strict=True)) == [(7, 2), (2, 1), (7, 1), (4, 3)]


def test_without_counters_there_are_no_decisions() -> None:
    with pytest.raises(LaunchError, match="decisions=True records counted events"):
        st.launch(either, grid=1, block=32, args={}, counters=False, decisions=True)
    x = np.arange(32, dtype=np.int32)
    assert st.launch(either, grid=1, block=32, args={"x": x, "out": st.zeros(32, st.i32)}).decisions is None


def test_many_notes_are_recorded_like_few() -> None:
    """The notes overflow a buffer and are from several threads."""
    blocks = 3 * decision_buffers.NOTES
    x = np.random.default_rng(1).integers(0, 5, 32 * blocks).astype(np.int32)
    args = {"x": x, "out": st.zeros(len(x), st.i32), "n": len(x)}
    result = st.launch(turning, grid=blocks, block=32, args=args, decisions=True)
    decisions = decisions_of(result, "range")
    assert decisions.executions == blocks
    began = int((decisions.patterns["count"] * decisions.patterns["value"].sum(axis=1)).sum()) + decisions.excess[1]
    assert began == int(x.sum())
    assert result.decisions is not None
    assert decisions.runs["block"].tolist() == result.decisions.blocks(0, blocks)


def test_of_many_runs_whole_blocks_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MAX_RUNS", 1000)
    blocks = 6000
    x = np.random.default_rng(1).integers(-2, 5, 32 * blocks).astype(np.int32)
    args = {"x": x, "out": st.zeros(len(x), st.i32), "n": len(x)}
    first, second = (
        st.launch(turning, grid=blocks, block=32, args=args, decisions=True, engine=engine).decisions
        for engine in ENGINES
    )
    assert first is not None and second is not None
    sampled = first.blocks(0, blocks)
    assert first.intervals == second.intervals and first.intervals[0] > 1
    assert 100 < len(sampled) < 1000
    for site, decisions in first.sites.items():
        assert sorted({*decisions.runs["block"].tolist()}) == sampled
        assert np.array_equal(decisions.runs, second.sites[site].runs)
        assert int(decisions.patterns["count"].sum()) + decisions.excess[0] == blocks


def noted(values: list[int], block: int = 0, count: int = 1) -> np.ndarray:
    """Return a note of a loop at site 4, of the first lanes of warp 0."""
    note = np.zeros(1, NOTE)
    note["count"], note["block"], note["site"], note["mask"] = count, block, 4, (1 << len(values)) - 1
    note["value"][0, : len(values)] = values
    return note


def test_warps_of_sampled_blocks_have_all_their_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampled blocks are complete in any position of the launch, even if most patterns are only counted."""
    monkeypatch.setattr(keeping, "MAX_PATTERNS", 10)
    recorder = Decisions.for_warps(64 * keeping.SAMPLED_WARPS)
    blocks = 64 * keeping.SAMPLED_WARPS // 100
    for some in np.array_split(np.arange(blocks), 9):
        recorder.add(np.concatenate([noted([int(n), 1], block=int(n)) for n in some]))
    (decisions,) = recorder.finish().sites.values()
    sampled = recorder.blocks(0, blocks)
    assert 2 < len(sampled) < 40 and sampled[-1] > blocks // 2
    pattern_of_block = dict(zip(decisions.runs["block"].tolist(), decisions.runs["pattern"].tolist(), strict=True))
    assert [int(decisions.patterns["value"][pattern_of_block[block], 0]) for block in sampled] == sampled
    assert decisions.excess[0] == blocks - len({*range(10), *sampled})


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MAX_PATTERNS", 2)
    monkeypatch.setattr(keeping, "MAX_SAMPLED_PATTERNS", 2)
    recorder = Decisions()
    recorder.add(np.concatenate([noted([n, 1], block=n, count=2) for n in range(5)]))
    (decisions,) = recorder.finish().sites.values()
    assert decisions.patterns["count"].tolist() == [2, 2]
    assert decisions.excess == (6, 2 * (2 + 3 + 4 + 3), 2 * (2 + 3 + 4))
    assert decisions.executions == 10


def test_launches_add_up() -> None:
    def decisions_of_launch(*values: list[int]) -> Decisions:
        decisions = Decisions()
        decisions.add(np.concatenate([noted(v) for v in values]))
        return decisions.finish()

    (merged,) = merge([decisions_of_launch([1], [2]), decisions_of_launch([2], [3])]).sites.values()
    counts = zip(merged.patterns["value"][:, 0].tolist(), merged.patterns["count"].tolist(), strict=True)
    assert sorted(counts) == [(1, 1), (2, 2), (3, 1)]
    assert [int(merged.patterns["value"][p, 0]) for p in merged.runs["pattern"]] == [1, 2, 2, 3]


def test_patterns_are_counted_as_a_dictionary_would() -> None:
    """More patterns than the initial size of a table, in several batches; some counts have more than 32 bits."""
    rng = np.random.default_rng(5)
    recorder, expected = Decisions(), dict[tuple[int, ...], int]()
    for _ in range(4):
        notes = np.zeros(1500, NOTE)
        notes["site"], notes["mask"] = rng.integers(0, 3, 1500), rng.integers(1, 4, 1500)
        notes["value"][:, :2], notes["count"] = rng.integers(0, 40, (1500, 2)), rng.integers(1, 1 << 35, 1500)
        recorder.add(notes)
        for note in notes:
            key = (int(note["site"]), int(note["mask"]), *note["value"].tolist())
            expected[key] = expected.get(key, 0) + int(note["count"])
    counts = {
        (site, int(row["mask"]), *row["value"].tolist()): int(row["count"])
        for site, one in recorder.finish().sites.items()
        for row in one.patterns
    }
    assert len(expected) > 2000
    assert counts == expected


def test_lanes_that_leave_early_wait_for_all_warps() -> None:
    """In each of 3,000 blocks lane 0 leaves first, then lane 1, then the rest; in every third block all leave early, twice."""
    notes = np.zeros(0, NOTE)
    blocks = 3000
    for mask, value in ((1, 5), (2, 6), (12, 7)):
        some = np.zeros(blocks, NOTE)
        some["count"], some["block"], some["mask"] = 1, np.arange(blocks), mask
        some["site"] = -1 - 4 if mask != 12 else np.where(np.arange(blocks) % 3, 4, -1 - 4)
        for lane in range(4):
            some["value"][:, lane] = value if mask >> lane & 1 else 0
        notes = np.concatenate([notes, some])
    again = notes[(notes["block"] % 3 == 0)]
    recorder = Decisions()
    for first in range(0, len(notes), 1000):
        recorder.add(notes[first : first + 1000])
    recorder.add(again)
    (decisions,) = recorder.finish().sites.values()
    assert decisions.patterns["value"][:, :4].tolist() == [[5, 6, 7, 7]]
    assert decisions.patterns["count"].tolist() == [blocks + blocks // 3]
