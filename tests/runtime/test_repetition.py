"""Repeated launches on a GPU, against a recording driver: no validation, and everything that may change is noticed."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, Stream, i32, launch
from simtbed.runtime import launching, plans

from tests.language import test_cuda_run
from tests.language.test_cuda_run import Notes

notes = test_cuda_run.notes
AMOUNT = 1


@st.kernel
def moved(x: Global[i32], out: Global[i32], n: i32) -> None:
    out[st.thread.x] = x[st.thread.x] + n * AMOUNT


@pytest.fixture(autouse=True)
def forgotten() -> None:
    vars(moved).pop("_latest", None)


def run(args: Any, stream: Stream | None = None, **options: Any) -> st.Result:
    return launch(moved, **{"grid": 1, "block": 32, "engine": "cuda", **options}, args=args, stream=stream)


def arguments(n: int = 3000) -> dict[str, Any]:
    return {"x": DeviceArray(np.ones(32, np.int32)), "out": DeviceArray(np.zeros(32, np.int32)), "n": n}


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The searches for a plan: a repeated launch makes none."""
    vars(moved).pop("_facts", None)
    calls: list[Any] = []
    original = plans.find_plan

    def noted(*arguments: Any) -> Any:
        calls.append(arguments[1])
        return original(*arguments)

    monkeypatch.setattr(launching, "find_plan", noted)
    return calls


@pytest.mark.parametrize("queued", [False, True])
def test_a_launch_with_the_same_arguments_is_repeated(notes: Notes, searches: list[Any], queued: bool) -> None:
    args, stream = arguments(), Stream() if queued else None
    results = [run(args, stream) for _ in range(5)]
    assert len(searches) == 2  # the first is validated, the second has a plan
    assert len({values for values, _ in notes.launches}) == 1
    assert len({options["stream"] for _, options in notes.launches}) == 1
    last = results[-1].wait()
    assert (last.milliseconds, last.buffers, last.faults) == (None if queued else 0.25, {}, [])
    assert last.request.device_arrays["out"] is args["out"] and last.request.arguments["n"] == 3000
    assert last.resources is not None and last.resources.registers == 7
    assert set(last.launch.__getstate__()) >= {"request", "buffers"}


def test_alternating_arrays_are_repeated(notes: Notes, searches: list[Any]) -> None:
    args = arguments()
    swapped = {**args, "x": args["out"], "out": args["x"]}
    step = st.compile(moved, args=args, grid=1, block=32, engine="cuda")
    for _ in range(6):
        step(args["x"], args["out"])
        step(args["out"], args["x"])
    for _ in range(6):
        run(args)
        run(swapped)
    assert [values[:2] for values, _ in notes.launches] == [(4096, 8192), (8192, 4096)] * 12
    assert len(searches) < 8


CHANGES: dict[str, dict[str, Any]] = {
    "grid": {"grid": 2}, "grid of another type": {"grid": (1,)}, "shared": {"shared": 64}, "counters": {"counters": False},
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_other_options_are_another_launch(notes: Notes, case: str) -> None:
    args = arguments()
    for _ in range(3):
        run(args)
    run(args, **CHANGES[case])
    assert notes.launches[-1][1]["grid"][0] == (2 if case == "grid" else 1)
    assert notes.launches[-1][1]["shared"] == (64 if case == "shared" else 0)
    with pytest.raises(LaunchError, match="grid"):
        run(args, grid=True)
    with pytest.raises(LaunchError, match="check and schedule need an emulator"):
        run(args, check="bounds")


def test_other_numbers_and_arrays_are_noticed(notes: Notes) -> None:
    args = arguments()
    for n in (3000, 3000, 3000, 5000):
        run({**args, "n": n})
    run({**args, "out": DeviceArray(np.zeros(32, np.int32))})
    assert [values[2] for values, _ in notes.launches] == [3000] * 3 + [5000, 3000]
    assert notes.launches[-1][0][1] == 12288
    with pytest.raises(LaunchError, match="no parameter m"):
        run({"x": args["x"], "out": args["out"], "m": args["n"]})


def test_a_moved_array_is_noticed(notes: Notes) -> None:
    args = arguments()
    for _ in range(3):
        run(args)
    args["out"].fetch()
    run(args)
    assert [values[1] for values, _ in notes.launches] == [8192] * 3 + [12288]


def test_a_changed_kernel_is_noticed(notes: Notes, monkeypatch: pytest.MonkeyPatch, searches: list[Any]) -> None:
    args = arguments()
    for _ in range(3):
        run(args)
    monkeypatch.setitem(globals(), "AMOUNT", 2)
    run(args)
    assert len(searches) == 3


@st.kernel
def listed(ends: Global[i32], out: Global[i32]) -> None:
    for k in range(st.lane, ends[st.block.x], 32):
        out[k] = 1


def test_contents_that_decide_the_code_are_read_each_launch(notes: Notes, searches: list[Any]) -> None:
    """The counter of a loop gets a limit if the contents may be near the end of its type."""
    args = {"ends": DeviceArray(np.ones(1, np.int32)), "out": DeviceArray(np.zeros(32, np.int32))}
    for _ in range(4):
        launch(listed, grid=1, block=32, args=args, engine="cuda")
    assert len(searches) == 4


def test_observers_and_graphs_see_repeated_launches(notes: Notes) -> None:
    args = arguments()
    for _ in range(3):
        run(args)
    with st.capture() as graph:
        run(args)
    assert len(notes.launches) == 3 and len(graph.launches) == 1


def test_a_repetition_keeps_no_array_alive(notes: Notes) -> None:
    args = arguments()
    for _ in range(3):
        run(args)
    del args
    gc.collect()
    assert notes.freed == 2


def test_a_failed_repetition_is_named_with_its_place(notes: Notes) -> None:
    args, stream = arguments(), Stream()
    results = [run(args, stream) for _ in range(4)]
    notes.driver.fails_later = True
    with pytest.raises(
        LaunchError,
        match=r"^moved \([^)]*test_repetition.py:32\) failed on the GPU: an illegal memory access was encountered$",
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
