"""Selection of checks, suppressed findings, schedules, and the log of timestamps at its limit."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, Kernel, LaunchError, devices, f32, i32, launch, profiling
from simtbed.reports.targets.findings import as_text, findings
from simtbed.reports.targets.formats import fingerprinted
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer import checkers, tracking
from simtbed.sanitizer.races import shadow

from tests.checkers.corpus import PAIRS

ENGINES: tuple[EngineName, ...] = ("numpy", "jit")
engines = pytest.mark.parametrize("engine", ENGINES)
X = np.arange(64, dtype=np.float32)


def run(
    kernel: Kernel, engine: EngineName, check: Any = "all", grid: int = 1, device: Any = devices.H200, **args: Any
) -> Any:
    return launch(kernel, grid=grid, block=64, args=args, engine=engine, device=device, check=check, faults="return")


@engines
def test_a_barrier_counts_the_threads_that_have_not_returned(engine: EngineName) -> None:
    """CUDA specifies this from compute capability 7.0 on; below 7.0, all threads must reach the barrier."""
    pair = PAIRS["early_return_before_the_barrier"]
    for device in devices.DEVICES.values():
        result = run(pair.kernel, engine, check="barriers", device=device, **pair.args, FIXED=False)
        assert [fault.kind for fault in result.faults] == ["barrier"] * (device.compute_capability < (7, 0))
        assert result.out[:50].tolist() == pair.args["x"][49::-1].tolist()


# ------------------------------------------------------------------ names
def test_checks_by_name() -> None:
    assert checkers.parse("all") == set(checkers.BY_NAME) - {"nan"} | {"acquire"}
    assert checkers.parse(["races, arithmetic", "bounds"]) == {"races", "arithmetic", "bounds"}
    assert checkers.parse(()) == set()
    with pytest.raises(LaunchError, match="no check is called 'race'"):
        checkers.parse("race")


@pytest.mark.slow
@engines
@pytest.mark.parametrize(("name", "check"), [("scan_in_place", "races"), ("mean_of_nothing", "arithmetic"),
    ("local_table_partly_set", "uninitialised"), ("register_set_in_one_arm", "uninitialised"),
    ("early_return_before_the_barrier", "barriers")])  # fmt: skip
def test_each_check_alone_finds_its_own(engine: EngineName, name: str, check: str) -> None:
    pair = PAIRS[name]
    for selected in checkers.BY_NAME:
        result = run(pair.kernel, engine, check=selected, device=pair.device, **pair.args, FIXED=False)
        assert {f.kind for f in result.faults} == ({pair.fault} if selected == check else set())


def test_a_gpu_checks_nothing() -> None:
    with pytest.raises(LaunchError, match="need an emulator"):
        launch(doubled, grid=1, block=64, args={"out": st.empty(64, "f32")}, engine="cuda", check="all")


@pytest.mark.parametrize("name", ["missing_barrier_after_the_load", "last_warp_of_a_reduction", "sum_into_one_cell",
    "atomic_beside_a_plain_read", "everybody_writes_one_cell", "local_table_partly_set", "sum_overflows",
    "wrong_row_of_a_tile", "early_return_before_the_barrier", "places_by_ticket", "stale_tile_in_the_next_turn"])  # fmt: skip
def test_the_text(name: str, golden: Callable[[str, str], None]) -> None:
    faults = PAIRS[name].launch(False, "jit").faults
    golden(f"check_{name}.txt", "\n".join(f"{f}\n      ({f.kind}, {f.count} times)" for f in faults) + "\n")


@pytest.mark.slow
def test_without_checks_nothing_is_kept() -> None:
    """Warp barriers, fences and atomics in blocks of several warps, without checks."""
    for pair in PAIRS.values():
        args = {**pair.args, "FIXED": True}
        assert launch(pair.kernel, args=args, step_limit=200, **pair.shape).remarks == []


# ------------------------------------------------------------------ benign and allowed
@st.kernel
def doubled(out: Global[f32]) -> None:
    out[st.thread.x] = 2


@st.kernel
def same_flag(x: Global[f32], found: Global[i32]) -> None:
    if x[st.thread.x] > 10:
        found[0] = 1


@st.kernel
def other_values(x: Global[f32], found: Global[i32]) -> None:
    if x[st.thread.x] > 10:
        found[0] = i32(x[st.thread.x])  # simtbed: allow race - any witness will do


@st.kernel
def comment_before(x: Global[f32], found: Global[i32]) -> None:
    if x[st.thread.x] > 10:
        # simtbed: allow race - any witness will do
        found[0] = i32(x[st.thread.x])


@st.kernel
def nothing_to_allow(x: Global[f32], found: Global[i32]) -> None:
    found[st.thread.x] = i32(x[st.thread.x])  # simtbed: allow race - there is none


@st.kernel
def no_reason(x: Global[f32], found: Global[i32]) -> None:
    found[st.thread.x // 2] = st.thread.x  # simtbed: allow race


@engines
def test_writes_of_one_value_are_benign(engine: EngineName) -> None:
    result = run(same_flag, engine, x=X, found=np.zeros(1, np.int32))
    assert result.faults == []
    assert [r.kind for r in result.remarks] == ["benign race"]
    strict = run(same_flag, engine, check="benign", x=X, found=np.zeros(1, np.int32))
    assert [f.kind for f in strict.faults] == ["benign race"]


@engines
def test_a_comment_lets_a_race_pass(engine: EngineName) -> None:
    same_line, line_above = (run(k, engine, x=X, found=np.zeros(1, np.int32)) for k in (other_values, comment_before))
    assert line_above.faults == [] and [r.kind for r in line_above.remarks] == ["allowed"]
    assert same_line.faults == []
    assert [r.kind for r in same_line.remarks] == ["allowed"]
    assert "any witness will do" in same_line.remarks[0].message


@engines
def test_a_comment_that_suppresses_nothing_is_reported(engine: EngineName) -> None:
    result = run(nothing_to_allow, engine, x=X, found=np.zeros(64, np.int32))
    assert [r.kind for r in result.remarks] == ["unused suppression"]
    assert run(nothing_to_allow, engine, check="arithmetic", x=X, found=np.zeros(64, np.int32)).remarks == []
    result = run(no_reason, engine, x=X, found=np.zeros(64, np.int32))
    assert [f.kind for f in result.faults] == ["race"]
    assert "a reason is missing" in result.remarks[0].message


def test_over_several_launches_a_comment_is_used_or_not() -> None:
    with profiling(check="all") as checked:
        for x in (X, np.zeros(64, np.float32)):  # the second has nothing to allow
            launch(other_values, grid=1, block=64, args={"x": x, "found": np.zeros(1, np.int32)})
        faults, remarks = findings(checked.launches)
        assert faults == [] and [r.kind for r in remarks] == ["allowed"]
        assert as_text(remarks).count("\n") == 0 and "any witness will do" in as_text(remarks)
        assert fingerprinted([], remarks) == []
        launch(nothing_to_allow, grid=1, block=64, args={"x": X, "found": np.zeros(64, np.int32)})
    assert [r.kind for r in findings(checked.launches)[1]] == ["allowed", "unused suppression"]


# ------------------------------------------------------------------ other orders
@pytest.mark.slow
@engines
def test_an_order_depends_on_its_seed_alone(engine: EngineName) -> None:
    pair = PAIRS["places_by_ticket"]
    orders = [
        launch(pair.kernel, grid=4, block=64, args={**pair.args, "FIXED": False}, engine=engine, schedule=seed,
               faults="return").faults for seed in (1, 1, 2)
    ]  # fmt: skip
    assert orders[0] == orders[1]
    assert orders[0][0].kind == "schedule"


@engines
def test_order_independent_results_are_not_reported(engine: EngineName) -> None:
    for seed in range(5):
        result = launch(doubled, grid=1, block=64, args={"out": st.empty(64, "f32")}, engine=engine, schedule=seed)
        assert result.faults == [] and (result.out == 2).all()


@engines
def test_the_first_order_with_a_finding_is_reported_and_replayed(engine: EngineName) -> None:
    """The order of blocks does not matter: one is preempted between its two steps."""
    pair = PAIRS["ticket_drawn_in_two_steps"]

    def run(**orders: Any) -> Any:
        arguments = {**pair.args, "FIXED": False}
        return launch(pair.kernel, grid=4, block=32, args=arguments, engine=engine, faults="return", **orders).faults

    faults = run(schedules=20)
    number = next(number for number in range(1, 21) if run(schedule=number))
    assert faults == run(schedule=number) and f"schedule={number}" in faults[0].notes[1]
    with pytest.raises(st.LaunchError, match="give one of the two"):
        run(schedule=1, schedules=2)


# ------------------------------------------------------------------ the log of timestamps
@st.kernel
def long_way(x: Global[f32], out: Global[f32], turns: i32) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    value = x[t]
    for turn in range(turns):
        tile[t] = value
        st.sync()
        value = tile[63 - t] + 1
        st.syncwarp()
        out[st.block.x * 64 + t] = value
        st.sync()
    out[(st.block.x * 64 + t + 64) % len(out)] = value


@engines
def test_a_full_log_is_shortened_and_nothing_is_missed(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    """The races between blocks are found through merged rows; only the blocks' numbers are lost."""
    args = {"x": X, "out": st.empty(256, "f32"), "turns": 40}
    whole = run(long_way, engine, check="races", grid=4, **args).faults
    monkeypatch.setattr(tracking, "LOG_ROWS", 64)
    short = run(long_way, engine, check="races", grid=4, **args).faults
    assert [(f.span, f.related, f.count) for f in whole] == [(f.span, f.related, f.count) for f in short]
    assert len(whole) > 0 and any("an earlier block" in note for note in short[0].notes)


@engines
def test_a_short_log_causes_no_false_report(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "LOG_ROWS", 128)
    for name in ("stale_tile_in_the_next_turn", "last_warp_of_a_reduction", "scan_of_a_warp", "double_buffer_slip"):
        assert PAIRS[name].launch(True, engine).faults == []


def test_a_shadow_takes_at_most_16_bytes_a_word() -> None:
    """Three or four epochs of four bytes an element, and elements that are checked have four bytes or more; of bytes
    and shorts the same, an element each."""
    for planes in (3, 4):
        layout = shadow.layout({"a": 100_000}, {"a": planes}, {"a": 1})
        assert 4 * layout.size <= 16 * 100_000 + 16 * planes * 4 * shadow.PADDING


# ------------------------------------------------------------------ the record
def test_the_table_of_compute_sanitizer_is_of_this_corpus() -> None:
    from pathlib import Path

    table = json.loads((Path(__file__).parent / "sanitizer_h200.json").read_text())
    measured = {name: row["kind"] for name, row in table["pairs"].items()}
    waiting = table.get("waiting", [])  # written after the last GPU run
    assert {p.name: p.fault for p in PAIRS.values() if p.name not in waiting} == measured
