"""Launches in place: arrays that share memory, copies for repeated launches, refusals."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from hypothesis import given
from hypothesis import strategies as some
from simtbed import Global, f32, i32
from simtbed.frontend.launchable import ProgramKernel
from simtbed.frontend.reader import specialise
from simtbed.runtime.common_memory import copies_of

from tests.table_checks import check_each


@st.kernel
def shift(x: Global[i32], y: Global[i32]) -> None:
    y[st.thread.x] = x[st.thread.x] + 1


@st.kernel
def halve(x: Global[f32], bits: Global[i32]) -> None:
    bits[st.thread.x] = bits[st.thread.x] + 1
    x[st.thread.x] = x[st.thread.x] * f32(0.5)


@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize(
    "options", [{}, {"check": "bounds"}, {"schedule": 3}, {"step_limit": 100}, {"counters": False}], ids=str
)
def test_arrays_may_share_memory(engine: Any, options: dict[str, Any]) -> None:
    memory = np.arange(10, dtype=np.int32)
    x, y = memory[:8], memory[2:]
    result = st.launch(shift, grid=1, block=8, args=(x, y), in_place=True, engine=engine, **options)
    assert memory.tolist() == [0, 1, 1, 2, 3, 4, 5, 6, 7, 8]
    assert np.array_equal(result.y, y)


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_one_memory_has_elements_of_two_types(engine: Any) -> None:
    x = np.ones(8, np.float32)
    st.launch(halve, grid=1, block=8, args=(x, x.view(np.int32)), in_place=True, engine=engine)
    assert np.array_equal(x, np.nextafter(np.ones(8, np.float32), 2, dtype=np.float32) / 2)


def test_observers_see_a_launch_on_copies() -> None:
    memory = np.arange(10, dtype=np.int32)
    with st.profiling(check="bounds", schedules=2) as run:
        st.launch(shift, grid=1, block=8, args=(memory[:8], memory[2:]), in_place=True)
    assert memory.tolist() == [0, 1, 1, 2, 3, 4, 5, 6, 7, 8] and not run.launches[0].faults


def test_a_program_of_the_ir_runs_in_place() -> None:
    kernel = ProgramKernel(specialise(shift, {}).program)
    x = np.zeros(8, np.int32)
    st.launch(kernel, grid=1, block=8, args=(x, x), in_place=True)
    assert x.tolist() == [1] * 8


def test_refusals() -> None:
    x = np.zeros(8, np.int32)
    with pytest.raises(st.LaunchError, match="x and y share memory, and the kernel writes y"):
        st.launch(shift, grid=1, block=8, args=(x, x))
    with pytest.raises(st.LaunchError, match="y: a launch in place modifies NumPy arrays"):
        st.launch(shift, grid=1, block=8, args=(x, st.empty(8, i32)), in_place=True)
    with pytest.raises(st.LaunchError, match="a compiled launch does not modify arrays in place"):
        st.compile(shift, grid=1, block=8, args=(x, x), in_place=True)
    with pytest.raises(st.LaunchError, match="in_place"):
        st.launch(shift, grid=1, block=8, args=(x, x), in_place="yes")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Pair:
    a: i32
    b: i32


@st.kernel
def add_pairs(pairs: Global[Pair], x: Global[i32]) -> None:
    pairs[st.thread.x] = Pair(x[st.thread.x], 1)


def _foreign(data: Any) -> Any:
    interface = {"shape": (8,), "typestr": "<i4", "data": (data.ctypes.data, True), "version": 3}
    return SimpleNamespace(__array_interface__=interface, data=data)


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_read_only_arrays_are_not_written(engine: Any, tmp_path: Path) -> None:
    """A `bytes` object is not changed, and a map opened for reading does not end the process."""
    x, file, text = np.zeros(8, np.int32), tmp_path / "x", bytes(32)
    x.tofile(file)
    hidden = x.view()
    hidden.flags.writeable = False
    pairs = np.zeros(8, [("a", "i4"), ("b", "i4")])
    pairs.flags.writeable = False

    def check(row: tuple[Any, str, Any]) -> None:
        kernel, name, args = row
        for options in ({}, {"check": "bounds"}, {"schedule": 1}):
            with pytest.raises(st.LaunchError, match=f"{name} is read only, and the kernel writes it: give a copy"):
                st.launch(kernel, grid=1, block=8, args=args, in_place=True, engine=engine, **options)

    check_each(
        [
            (shift, "y", (x, np.frombuffer(text, np.int32))),
            (shift, "y", (x, np.memmap(file, np.int32, "r"))),
            (shift, "y", (x, memoryview(text).cast("i"))),
            (shift, "y", (x, np.broadcast_to(np.int32(1), 8))),
            (shift, "y", (x, _foreign(x))),
            (shift, "y", (x, hidden)),
            (add_pairs, "pairs", (pairs, x)),
        ],
        check,
    )
    assert text == bytes(32) and not x.any()
    st.launch(shift, grid=1, block=8, args=(hidden, np.memmap(file, np.int32, "c")), in_place=True, engine=engine)
    view = st.device_view(x)
    x.flags.writeable = False
    st.launch(shift, grid=1, block=8, args=(np.ones(8, np.int32), view), engine=engine)
    assert x.tolist() == [2] * 8


@given(some.lists(some.tuples(some.integers(0, 30), some.integers(0, 12)), min_size=1, max_size=6), some.data())
def test_copies_overlap_as_the_arrays_do(places: list[tuple[int, int]], data: some.DataObject) -> None:
    memory = np.arange(48, dtype=np.int32)
    arrays = {str(n): memory[start : start + size] for n, (start, size) in enumerate(places)}
    changed = data.draw(some.sets(some.sampled_from(sorted(arrays))))
    copies = copies_of(arrays, changed)
    for name in changed:
        assert not np.shares_memory(copies[name], memory)
        copies[name] += 100
    expected = np.arange(48, dtype=np.int32)
    for name in changed:
        start, size = places[int(name)]
        expected[start : start + size] += 100
    assert memory.tolist() == list(range(48))
    for number, (start, size) in enumerate(places):
        assert copies[str(number)].tolist() == expected[start : start + size].tolist()
