"""Results that depend on the order of threads: the arrays that a kernel's atomic operations reach, and their comparison."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32
from simtbed.passes.thread_order import order_dependent_arrays
from simtbed.runtime.registry import EngineName, row_of
from simtbed.runtime.request import prepare_request
from simtbed.testing import Disagreement, verify, verifying


@st.kernel
def histogram(x: Global[i32], bins: Global[i32], n: i32) -> None:
    """Integer sums commute, in shared memory too."""
    own = st.shared(i32, 8)
    t = st.thread.x
    if t < 8:
        own[t] = 0
    st.sync()
    st.atomic_add(own, x[t] % 8, 1)
    st.sync()
    if t < 8:
        st.atomic_add(bins, t, own[t])


@st.kernel
def compact(x: Global[i32], out: Global[i32], count: Global[i32], doubled: Global[i32]) -> None:
    """A ticket chooses the place."""
    i = st.thread.x
    doubled[i] = 2 * x[i]
    if x[i] > 0:
        place = st.atomic_add(count, 0, 1)
        out[place] = x[i]


@st.kernel
def insert(keys: Global[i32], slots: Global[i32], steps: Global[i32], total: Global[i32]) -> None:
    """Compare-and-swap chooses the slot; the number of steps depends on it, the number of keys does not."""
    key = keys[st.thread.x]
    slot = key % 64
    taken = 0
    while True:
        old = st.compare_swap(slots, slot, -1, key)
        if old == -1 or old == key:
            break
        slot = (slot + 1) % 64
        taken += 1
    steps[st.thread.x] = taken
    st.atomic_add(total, 0, 1)


@st.kernel
def float_sum(x: Global[f32], total: Global[f32], largest: Global[f32]) -> None:
    i = st.thread.x
    largest[i] = max(x[i], 0.0)
    st.atomic_add(total, 0, x[i])


@st.kernel
def first_thread(taken: Global[i32], winners: Global[i32]) -> None:
    """An old value chooses which thread performs an atomic operation."""
    if st.atomic_add(taken, 0, 1) == 0:
        st.atomic_add(winners, st.thread.x, 1)


@dataclass
class Case:
    kernel: Any
    args: dict[str, Any]
    dependent: set[str]


def cases() -> Iterator[Case]:
    values = np.arange(-16, 16, dtype=np.int32)
    zero = np.zeros(1, np.int32)
    yield Case(histogram, {"x": abs(values), "bins": np.zeros(8, np.int32), "n": 32}, set())
    out = np.zeros(32, np.int32)
    yield Case(compact, {"x": values, "out": out, "count": zero, "doubled": out.copy()}, {"out"})
    slots = np.full(64, -1, np.int32)
    yield Case(insert, {"keys": values + 64, "slots": slots, "steps": out.copy(), "total": zero}, {"slots", "steps"})
    yield Case(first_thread, {"taken": zero, "winners": out.copy()}, {"winners"})
    floats = values.astype(np.float32)
    yield Case(float_sum, {"x": floats, "total": np.zeros(1, np.float32), "largest": floats.copy()}, {"total"})


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: str(case.kernel.__name__))
def test_arrays_that_depend_on_the_order(case: Case) -> None:
    request = prepare_request(case.kernel, grid=1, block=32, args=case.args)
    kernel = request.prepared.program.kernel
    assert set(order_dependent_arrays(kernel)) & {p.name for p in kernel.params} == case.dependent


@pytest.fixture
def another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the numpy engine stand for a GPU, with the elements of `out` in another order."""
    original = st.launch

    def launched(kernel: Any, *, engine: EngineName, **how: Any) -> Any:
        result = original(kernel, engine=engine, **how)
        if engine == "numpy":
            result.buffers["out"] = result.buffers["out"][::-1].copy()
        return result

    monkeypatch.setattr(verifying, "launch", launched)
    rows: dict[str, Any] = {"jit": row_of("jit")}
    rows["numpy"] = type("Row", (), {"emulates": False, "complete": False})()
    monkeypatch.setattr(verifying, "row_of", rows.__getitem__)


def arguments() -> dict[str, Any]:
    values, out = np.arange(-16, 16, dtype=np.int32), np.zeros(32, np.int32)
    return {"x": values, "out": out, "count": np.zeros(1, np.int32), "doubled": out.copy()}


@pytest.mark.usefixtures("another_order")
def test_a_difference_by_the_order_is_a_remark() -> None:
    result = verify(compact, grid=1, block=32, args=arguments())
    (remark,) = result.remarks
    assert remark.kind == "order" and "out depends on the order of threads" in remark.message
    assert "atomic_add(count, 0, 1)" in remark.span.text
    assert verify(compact, grid=1, block=32, args=arguments(), any_order=["out"]).remarks == []


def test_emulators_have_one_order() -> None:
    assert verify(compact, grid=1, block=32, args=arguments()).remarks == []


def test_elements_in_any_order_are_compared() -> None:
    def oracle(x: Any) -> dict[str, Any]:
        expected = np.zeros(32, np.int32)
        expected[:15] = x[x > 0][::-1]
        return {"out": expected}

    verify(compact, grid=1, block=32, args=arguments(), oracle=oracle, any_order=["out"])
    with pytest.raises(Disagreement, match=r"out\[0\] is 1 from jit, 15 from the oracle"):
        verify(compact, grid=1, block=32, args=arguments(), oracle=oracle)
    with pytest.raises(Disagreement, match="out: 1 of 32 elements from jit are not among those from the oracle"):
        verify(
            compact,
            grid=1,
            block=32,
            args=arguments(),
            any_order=["out"],
            oracle=lambda x: {"out": oracle(x)["out"] + (np.arange(32) == 31)},
        )


@pytest.mark.parametrize(
    ("any_order", "message"),
    [
        (["slots"], r"any_order: the kernel does not write 'slots'; it writes out, count, doubled"),
        ("out", r"any_order is a list of arrays: any_order=\['out'\]"),
    ],
)
def test_unknown_arrays_are_refused(any_order: Any, message: str) -> None:
    with pytest.raises(st.LaunchError, match=message):
        verify(compact, grid=1, block=32, args=arguments(), any_order=any_order)
