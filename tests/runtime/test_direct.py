"""Direct launches of a plan on a GPU, against a recording driver: no binding, and everything that may change is noticed."""

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, Stream, f32, i32, launch
from simtbed.runtime import plans

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Notes

notes = test_cuda_run.notes
AMOUNT = 1


@st.kernel
def moved(x: Global[i32], out: Global[i32], n: i32) -> None:
    out[st.thread.x] = x[st.thread.x] + n * AMOUNT


@pytest.fixture(autouse=True)
def without_plans() -> None:
    for kernel in (moved, scaled, counted, listed):
        vars(kernel).pop("_facts", None)


def run(args: Any, stream: Stream | None = None, **options: Any) -> st.Result:
    return launch(moved, **{"grid": 1, "block": 32, "engine": "cuda", **options}, args=args, stream=stream)


def arguments(n: int = 3000) -> dict[str, Any]:
    return {"x": DeviceArray(np.ones(32, np.int32)), "out": DeviceArray(np.zeros(32, np.int32)), "n": n}


def launched() -> dict[str, Any]:
    """Return arguments after three launches, of which the last is direct."""
    args = arguments()
    for _ in range(3):
        run(args)
    return args


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The numbers bound by a plan: a direct launch binds none."""
    calls: list[Any] = []
    original = plans.LaunchPlan.bind

    def noted(plan: plans.LaunchPlan, args: Any) -> Any:
        calls.append(args.get("n"))
        return original(plan, args)

    monkeypatch.setattr(plans.LaunchPlan, "bind", noted)
    return calls


@pytest.mark.parametrize("queued", [False, True])
def test_a_plan_has_a_direct_launch(notes: Notes, bound: list[Any], queued: bool) -> None:
    args, stream = arguments(), Stream() if queued else None
    results = [run(args, stream) for _ in range(5)]
    assert len(bound) == 1  # the first is validated, the second has a plan
    assert len({values for values, _ in notes.launches}) == 1
    assert len({options["stream"] for _, options in notes.launches}) == 1
    last = results[-1].wait()
    assert (last.milliseconds, last.buffers, last.faults) == (None if queued else 0.25, {}, [])
    assert last.request.device_arrays["out"] is args["out"] and last.request.arguments["n"] == 3000
    assert last.resources is not None and last.resources.registers == 7
    assert set(last.launch.__getstate__()) >= {"request", "buffers"}


Change = Callable[[dict[str, Any]], tuple[Any, dict[str, Any]]]
SAME_PLAN: dict[str, Change] = {
    "a scalar": lambda args: ({**args, "n": 5000}, {}),
    "a new tuple of the grid": lambda args: (args, {"grid": tuple(map(int, "11"))}),
    "a tuple of arguments": lambda args: ((*args.values(),), {}),
    "other arrays": lambda args: ({**args, "x": args["out"], "out": args["x"]}, {}),
    "a compiled launch": lambda args: (args, {"compiled": True}),
}


@pytest.mark.parametrize("case", SAME_PLAN)
def test_values_and_objects_are_not_in_the_key(notes: Notes, bound: list[Any], case: str) -> None:
    args, grid = arguments(), (1, 1)
    for _ in range(3):
        run(args, grid=grid)
    other, options = SAME_PLAN[case](args)
    if options.pop("compiled", False):
        st.compile(moved, args=other, grid=grid, block=32, engine="cuda")()
        bound.pop()
    else:
        run(other, **{"grid": grid, **options})
    assert len(bound) == 1
    named = other if isinstance(other, dict) else args
    assert notes.launches[-1][0] == (*(named[name].remote.address for name in ("x", "out")), named["n"])


def test_numbers_have_the_bits_of_a_bound_launch(notes: Notes) -> None:
    """A direct launch packs a number as the plan converts it, or leaves it to the plan, which refuses it."""
    array = DeviceArray(np.zeros(32, np.float32))
    value: Any
    values = (0.1, -0.0, math.inf, -math.nan, 1e-46, 3.4028234e38, 7, np.float32(0.3), np.float64(0.1), np.int16(-3))
    for value in values:
        launches = [launch(scaled, grid=1, block=32, args=(array, value), engine="cuda") for _ in range(3)]
        assert len({values for values, _ in notes.launches[-3:]}) == 1, value
        assert launches[-1].request.arguments["a"].tobytes() == launches[0].request.arguments["a"].tobytes()
    for value, message in ((1e39, "holds up to"), (3.40282355e38, "holds up to"), ("1", "a number is expected")):
        with pytest.raises(LaunchError, match=message):
            launch(scaled, grid=1, block=32, args=(array, value), engine="cuda")
    args = launched()
    for number, message in ((1 << 31, "does not fit"), (True, "whole number"), (1.0, "whole number")):
        with pytest.raises(LaunchError, match=message):
            run({**args, "n": number})


@st.kernel
def scaled(x: Global[f32], a: f32) -> None:
    x[st.thread.x] = x[st.thread.x] * a


@st.kernel
def counted(x: Global[i32], n: i32, step: i32) -> None:
    for i in range(0, n, step):
        x[i] = 1


def test_a_bound_of_a_loop_is_checked_each_launch(notes: Notes, bound: list[Any]) -> None:
    """The counter of a loop gets a limit near the end of its type."""
    array = DeviceArray(np.zeros(32, np.int32))
    for n in (3, 3, 3, 4, 4, (1 << 31) - 1, (1 << 31) - 1):
        launch(counted, grid=1, block=32, args=(array, n, 2), engine="cuda")
    assert bound == [3, 4, (1 << 31) - 1, (1 << 31) - 1]


CHANGES: dict[str, dict[str, Any]] = {
    "grid": {"grid": 2}, "grid of another type": {"grid": (1,)}, "shared": {"shared": 64}, "counters": {"counters": False},
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_other_options_are_another_launch(notes: Notes, case: str) -> None:
    args = launched()
    run(args, **CHANGES[case])
    assert notes.launches[-1][1]["grid"][0] == (2 if case == "grid" else 1)
    assert notes.launches[-1][1]["shared"] == (64 if case == "shared" else 0)
    with pytest.raises(LaunchError, match="grid"):
        run(args, grid=True)
    with pytest.raises(LaunchError, match="check and schedule need an emulator"):
        run(args, check="bounds")


def test_another_name_is_refused(notes: Notes) -> None:
    args = launched()
    with pytest.raises(LaunchError, match="no parameter m"):
        run({"x": args["x"], "out": args["out"], "m": args["n"]})
    with pytest.raises(LaunchError, match="one DeviceArray is given for two parameters"):
        run({**args, "out": args["x"]})


def test_a_moved_array_is_noticed(notes: Notes) -> None:
    args = launched()
    args["out"].fetch()
    run(args)
    assert [values[1] for values, _ in notes.launches] == [8192] * 3 + [12288]


def test_a_changed_kernel_is_noticed(notes: Notes, monkeypatch: pytest.MonkeyPatch, bound: list[Any]) -> None:
    args = launched()
    monkeypatch.setitem(globals(), "AMOUNT", 2)
    run(args)
    assert len(bound) == 1 and vars(moved)["_facts"].plans.keys()
    assert notes.launches[-1][0][1] == 8192


@st.kernel
def listed(ends: Global[i32], out: Global[i32]) -> None:
    for k in range(st.lane, ends[st.block.x], 32):
        out[k] = 1


def test_contents_that_decide_the_code_are_read_each_launch(notes: Notes, bound: list[Any]) -> None:
    """The counter of a loop gets a limit if the contents may be near the end of its type."""
    args = {"ends": DeviceArray(np.ones(1, np.int32)), "out": DeviceArray(np.zeros(32, np.int32))}
    for _ in range(4):
        launch(listed, grid=1, block=32, args=args, engine="cuda")
    assert len(bound) == 3


def test_observers_and_graphs_see_direct_launches(notes: Notes) -> None:
    args = launched()
    with st.capture() as graph:
        run(args)
    assert len(notes.launches) == 3 and len(graph.launches) == 1


@pytest.mark.slow
def test_a_direct_launch_keeps_no_array_alive(notes: Notes) -> None:
    args = launched()
    del args
    gc.collect()
    assert notes.freed == 2


def test_a_failed_direct_launch_is_named_with_its_place(notes: Notes) -> None:
    args, stream = arguments(), Stream()
    results = [run(args, stream) for _ in range(4)]
    notes.driver.fails_later = True
    with pytest.raises(
        LaunchError,
        match=r"^moved \([^)]*test_direct.py:33\) failed on the GPU: an illegal memory access was encountered$",
    ):
        results[-1].wait()
    notes.driver.fails_later = False
    stream.synchronize()
    notes.fails = True
    with pytest.raises(
        LaunchError, match=r"^moved does not run on the GPU: before it, moved \(.*\) failed on the GPU: an illegal"
    ):
        run(args)
    notes.fails = False


class Foreign:
    """An array of another library in the memory of the GPU."""

    def __init__(self, address: int, count: int = 32, readonly: bool = False, stream: int = 1) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<i4", "data": (address, readonly), "strides": None, "version": 3, "stream": stream,
        }  # fmt: skip


def test_arrays_of_another_library_have_a_direct_launch(notes: Notes, bound: list[Any]) -> None:
    own = arguments()
    run(own)
    x, out = (own[name].remote.address for name in ("x", "out"))
    for address in (x, x, out + 4096):
        run({"x": Foreign(address), "out": Foreign(out), "n": 1})
    assert len(bound) == 1
    assert notes.launches[-1][0] == (out + 4096, out, 1)
    run({"x": Foreign(x, stream=7), "out": Foreign(out), "n": 1})  # whose operations the launch waits for
    assert len(bound) == 2
    for other, message in (
        (Foreign(out, readonly=True), "read only"),
        (Foreign(out + 2), "not aligned"),
        (Foreign(x + 64), "share memory"),
    ):
        with pytest.raises(LaunchError, match=message):
            run({"x": Foreign(x), "out": other, "n": 1})
