"""`st.profiling`: recorded launches, unchanged results of the program, and run files."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, Result, f32, i32
from simtbed.runtime import observing
from simtbed.runtime.engine import Outcome

N = 256


@st.kernel
def backwards(x: Global[f32], out: Global[f32], n: i32, K: Const) -> None:
    """Each block's slice backwards, times K."""
    tile = st.shared(f32, 64)
    i = st.block.x * 64 + st.thread.x
    tile[st.thread.x] = x[i]
    st.sync()
    if i < n:
        out[i] = tile[63 - st.thread.x] * K


@st.kernel
def hasty(x: Global[f32], out: Global[f32]) -> None:
    """`backwards` without its barrier."""
    tile = st.shared(f32, 64)
    tile[st.thread.x] = x[st.thread.x]
    out[st.thread.x] = tile[63 - st.thread.x]


@st.kernel
def add_one(x: Global[i32]) -> None:
    x[st.thread.x] += 1


@st.kernel
def past_the_end(x: Global[i32]) -> None:
    x[st.thread.x + 1] = 1


def launch_backwards(times: int = 1, **how: Any) -> Result:
    args = {"x": np.arange(N, dtype=np.float32), "out": st.zeros(N, f32), "n": 250, "K": 2.0}
    return st.launch(backwards, grid=4, block=64, args=args, **how)


def launch_hasty(**how: Any) -> Result:
    args = {"x": np.arange(64, dtype=np.float32), "out": st.empty(64, f32)}
    return st.launch(hasty, grid=1, block=64, args=args, **how)


def test_every_form_of_launch_in_every_thread_is_caught() -> None:
    with st.profiling() as run:
        launch_backwards()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(launch_backwards, range(3)))
        how = {"grid": 1, "block": 64, "args": {"x": np.ones(64, np.float32), "out": st.empty(64, f32)}}
        with st.on_gpu(0):
            list(st.launch_concurrent([(hasty, how), (hasty, how)]))
        list(st.map_over_gpus(range(2), launch_backwards, 1))
    launch_backwards()
    assert [one.kernel.name for one in run.launches].count("backwards") == 6
    assert {name: len(launches) for name, launches in run.by_kernel().items()} == {"backwards": 6, "hasty": 2}


def test_a_launch_keeps_what_it_was_given() -> None:
    with st.profiling() as run:
        launch_backwards(counters=False)
    (profiled,) = run.launches
    assert (profiled.grid, profiled.block, profiled.shared_bytes, profiled.engine) == (
        (4, 1, 1),
        (64, 1, 1),
        256,
        "jit",
    )
    assert [(a.name, a.type, a.shape, a.value) for a in profiled.arguments] == [
        ("x", "Global[f32]", (N,), None),
        ("out", "Global[f32]", (N,), None),
        ("n", "i32", None, 250),
        ("K", "Const", None, 2.0),
    ]
    assert profiled.constants == {"K": 2.0}
    assert profiled.seconds > 0


class Pair(NamedTuple):
    first: i32
    second: f32


@st.kernel
def of_pair(out: Global[f32], pair: Pair, K: Const = 3) -> None:
    out[0, st.thread.x] = pair.second * f32(pair.first + K)


def test_structs_defaults_and_array_dimensions_are_kept(tmp_path: Path) -> None:
    with st.profiling() as run:
        st.launch(of_pair, grid=1, block=4, args={"out": np.zeros((2, 4), np.float32), "pair": Pair(1, 2.0)})
    actual = [(a.name, a.type, a.shape, a.value) for a in run.launches[0].arguments]
    assert actual == [
        ("out", "Global[f32]", (2, 4), None),
        ("pair", "Pair(first, second)", None, (1, 2.0)),
        ("K", "Const", None, 3),
    ]
    run.save(tmp_path / "run.json")
    assert st.Run.load(tmp_path / "run.json").launches[0].arguments == run.launches[0].arguments


def test_a_profile_groups_what_the_counters_say() -> None:
    result = launch_backwards()
    profile = result.profile()
    assert profile.totals() == result.counters.totals()
    assert profile.derived() == result.counters.derived()
    assert profile.by_line() == result.counters.by_line()
    # 8 warps: one load of x, one store and one load of the tile; the last warp of out has 26 lanes.
    arrays = profile.by_array()
    assert list(arrays) == ["x", "tile", "out"]
    assert (arrays["x"]["global_load_requests"], arrays["tile"]["shared_load_requests"]) == (8, 8)
    assert arrays["out"]["global_store_bytes"] == 4 * 250
    lines = {array: line for _, line, array in profile.by_line_and_array()}
    assert set(lines) == {"x", "tile", "out"} and lines["x"] < lines["out"]
    (branch,) = profile.branches().values()
    assert (branch["branches"], branch["divergent_branches"]) == (8, 1)


def test_launches_add_up_kernel_by_kernel() -> None:
    with st.profiling() as run:
        results = [launch_backwards(), launch_backwards(), launch_hasty()]
    assert run.profiles()["backwards"].totals() == (results[0].counters + results[1].counters).totals()
    assert run.profile.launches == 3
    assert run.profile.kernels == ("backwards", "hasty")
    assert run.select("ha*").profile.totals() == results[2].counters.totals()
    assert run.select("backwards", 1).profile.launches == 1
    with pytest.raises(st.SimtbedError, match=r"no launched kernel matches 'x\*'; there were backwards, hasty"):
        run.select("x*")
    with pytest.raises(st.SimtbedError, match="there is no launch 3; there are 0 to 2"):
        run.select(launch=3)


def test_the_observer_chooses_engine_and_device() -> None:
    with st.profiling(engine="numpy", device=st.devices.K40) as run:
        result = launch_backwards(engine="cuda")
    assert result.request.device is st.devices.K40
    assert [(one.engine, one.device.name) for one in run.launches] == [("numpy", "K40")]
    assert result.out[0] == 126


def test_of_two_observers_the_outer_one_chooses_and_both_see() -> None:
    with st.profiling(engine="numpy") as outer, st.profiling(engine="jit", device=st.devices.K40) as inner:
        launch_backwards()
    assert [one.engine for run in (outer, inner) for one in run.launches] == ["numpy", "numpy"]
    assert outer.launches[0].device is st.devices.K40


def test_what_is_found_does_not_reach_the_program() -> None:
    plain = launch_hasty()
    with st.profiling(check="all") as run:
        result = launch_hasty()
        launch_hasty()
    assert result.faults == [] and np.array_equal(result.out, plain.out)
    (fault,) = run.faults
    assert (fault.kind, fault.count) == ("race", 2 * run.launches[0].faults[0].count)


def test_what_a_plain_launch_raises_is_raised() -> None:
    with st.profiling(check="all") as run, pytest.raises(st.FaultError, match="out of bounds"):
        st.launch(past_the_end, grid=1, block=32, args={"x": np.zeros(32, np.int32)})
    assert [fault.kind for fault in run.faults] == ["bounds"]


def test_arrays_that_outlive_a_launch_change_once() -> None:
    stored = st.DeviceArray(np.zeros(64, np.int32))
    with st.profiling(check="all", schedules=2):
        st.launch(add_one, grid=1, block=64, args={"x": stored})
    with st.profiling(check="races"):  # the second block finds the first one's values: a race, so it runs again
        st.launch(add_one, grid=2, block=64, args={"x": stored})
    assert stored.numpy().tolist() == [3] * 64


def test_other_orders() -> None:
    @st.kernel
    def last(out: Global[i32]) -> None:
        out[0] = st.block.x

    with st.profiling(schedules=3) as run:
        result = st.launch(last, grid=4, block=1, args={"out": st.empty(1, i32)})
    assert [fault.kind for fault in run.faults] == ["schedule"]
    assert result.faults == []


def test_a_gpu_is_not_checked_in_silence() -> None:
    with st.profiling(check="all"), pytest.raises(st.LaunchError, match="nothing is checked on cuda"):
        launch_backwards(engine="cuda")


def test_a_missing_observer_file_means_no_observer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observing, "current", None)
    monkeypatch.setenv(observing.OBSERVER, str(tmp_path / "gone"))
    assert observing.observers() == ()


def test_arguments_are_recorded_on_request() -> None:
    with st.profiling() as without, st.profiling(keep_arguments=True) as run:
        launch_backwards()
    assert without.launches[0].request is None
    assert run.launches[0].request.arguments["x"][5] == 5


def test_a_run_is_a_file(tmp_path: Path) -> None:
    with st.profiling(check="all") as run:
        launch_backwards()
        launch_hasty()
    run.save(tmp_path / "run.json")
    actual = st.Run.load(tmp_path / "run.json")
    assert actual.profiles() == run.profiles()
    assert actual.faults == run.faults and str(actual.faults[0]) == str(run.faults[0])
    for loaded, original in zip(actual.launches, run.launches, strict=True):
        assert (loaded.grid, loaded.arguments, loaded.device, loaded.seconds) == (
            original.grid, original.arguments, original.device, original.seconds,
        )  # fmt: skip
    assert json.loads((tmp_path / "run.json").read_text())["version"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("[]", "there is no format 'simtbed run'"),
        ('{"format": "simtbed run", "version": 99}', "its version is 99, this simtbed reads version 1"),
        ('{"format": "simtbed run", "version": 1}', "expected a run that simtbed saved: missing key target"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(st.SimtbedError, match=r"other\.json: expected a run that simtbed saved: ") as refused:
        st.Run.load(file)
    assert message in str(refused.value)


def test_nothing_counted_is_said() -> None:
    with st.profiling(counters=False) as run:
        launch_backwards(counters=False)
    with pytest.raises(st.SimtbedError, match="nothing was counted"):
        run.launches[0].profile  # noqa: B018
    with pytest.raises(st.SimtbedError, match="nothing was counted"):
        run.profile  # noqa: B018
    with pytest.raises(st.SimtbedError, match="nothing was launched"):
        st.Run().profile  # noqa: B018


def test_a_result_without_profiling_is_that_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without observers, the request reaches the engine as the program specified it."""
    from simtbed.runtime.registry import engine_named

    observed = []
    engine = engine_named("jit")
    real = type(engine).run

    def spy(self: Any, request: Any) -> Outcome:
        observed.append(request.counters)
        return real(self, request)

    monkeypatch.setattr(type(engine), "run", spy)
    launch_backwards(counters=False)
    with st.profiling():
        launch_backwards(counters=False)
    assert observed == [False, True]
