"""`simtbed.testing.verify` and the strategies: agreement, disagreement, the writing thread, and shrunk examples."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import simtbed as st
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as hypothesis
from simtbed import Global, LaunchError, SimtbedError, f32, i32
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime.engine import Outcome, Request
from simtbed.runtime.tolerance import Tolerance
from simtbed.testing import Disagreement, strategies, verify
from simtbed.testing.writers import last_write

Floats = npt.NDArray[np.float32]


@st.kernel
def halves(x: Global[f32], out: Global[f32], count: Global[i32], n: i32) -> None:
    """out[i] = x[i] / 2, wrong at 70; count[0] = number of threads."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i] * 0.5
        if i == 70:
            out[i] = x[i]
        st.atomic_add(count, 0, 1)


@st.kernel
def right(x: Global[f32], out: Global[f32], n: i32) -> None:
    """out[i] = x[i] / 3."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i] / 3.0


@st.kernel
def neighbours(x: Global[i32], out: Global[i32]) -> None:
    """out[t] = x[t + 1] through shared memory; the barrier is missing."""
    tile = st.shared(i32, 64)
    tile[st.thread.x] = x[st.thread.x]
    out[st.thread.x] = tile[min(st.thread.x + 1, 63)]


@st.kernel
def successors(x: Global[i32], out: Global[i32]) -> None:
    """out[i, j] = x[i, j] + 1."""
    out[st.thread.y, st.thread.x] = x[st.thread.y, st.thread.x] + 1


@st.kernel
def last_block(out: Global[i32]) -> None:
    if st.thread.x == 0:
        st.atomic_exchange(out, 0, st.block.x)


@st.kernel
def clamp(x: Global[i32], out: Global[i32], n: i32) -> None:
    """out[i] = x[i], at most 100; wrong above 1000."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i] if x[i] < 100 or x[i] > 1000 else 100


def arguments(n: int = 100) -> dict[str, Any]:
    return {"x": np.arange(1, n + 1, dtype=np.float32), "out": st.empty(n, f32), "n": n}


def test_the_first_difference_has_thread_and_statement() -> None:
    args = {**arguments(), "count": st.zeros(1, i32)}
    with pytest.raises(Disagreement) as caught:
        verify(halves, grid=2, block=64, args=args, oracle=lambda x: {"out": x / 2})
    lines = str(caught.value).splitlines()
    line = halves.function.__code__.co_firstlineno + 7
    assert lines[0].endswith(f"test_verify.py:{line}:13: out[70] is 71.0 from jit, 35.5 from the oracle")
    assert "out[i] = x[i]" in lines[1]
    assert lines[3:] == [
        "      1 of 100 elements of out do not agree to the bit",
        "      written by block (1, 0, 0), thread (6, 0, 0) = warp 0 lane 6",
        f"      to stop there: simtbed debug --kernel halves --block 1,0,0 --thread 6,0,0 --line {line} SCRIPT",
    ]


def test_an_element_that_no_thread_writes() -> None:
    args = {**arguments(), "out": st.zeros(100, f32), "n": 90}
    with pytest.raises(Disagreement, match=r"out\[90\] is 0.0 from jit, 30.33.* from the oracle") as caught:
        verify(right, grid=2, block=64, args=args, oracle=lambda x: x / np.float32(3))
    assert "no thread writes out[90]" in str(caught.value)


def test_an_oracle_is_called_by_the_names_of_its_parameters() -> None:
    passed: dict[str, Any] = {}

    def whole(**by_name: Any) -> Any:
        passed.update(by_name)
        return by_name["x"] / np.float32(3)

    result = verify(right, grid=2, block=64, args=arguments(), oracle=whole, checked=True)
    assert list(passed) == ["x", "out", "n"] and passed["out"].shape == (100,)
    assert np.array_equal(result.out, verify(right, grid=1, block=128, args=arguments()).out)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_several_dimensions(order: Any) -> None:
    args = {
        "x": np.asarray(np.arange(12, dtype=np.int32).reshape(3, 4), order=order),
        "out": np.zeros((3, 4), np.int32, order),
    }
    wrong = np.arange(12, dtype=np.int32).reshape(3, 4) + 1
    verify(successors, grid=1, block=(4, 3), args=args, oracle=lambda x: x + 1, checked=True)
    wrong[2, 1] = 0
    with pytest.raises(Disagreement, match=r"out\[2, 1\] is 10 from jit, 0 from the oracle") as caught:
        verify(successors, grid=1, block=(4, 3), args=args, oracle=lambda: wrong)
    assert "thread (1, 2, 0)" in str(caught.value)


def test_a_tolerance_must_be_stated() -> None:
    def double(x: Floats) -> Any:
        return x * (1 / 3)

    near: dict[str, Any] = {
        "grid": 2,
        "block": 64,
        "args": arguments(),
        "oracle": lambda x: np.nextafter(x / np.float32(3), np.float32(0)),
    }
    with pytest.raises(Disagreement, match="100 of 100 elements of out do not agree to the bit"):
        verify(right, **near)
    verify(right, **near, ulp=1)
    verify(right, **near, rtol=1e-6)
    with pytest.raises(Disagreement, match="do not agree within rtol 1e-09, atol 0"):
        verify(right, **near, rtol=1e-9)
    verify(right, grid=2, block=64, args=arguments(), oracle=double, ulp=1)


def test_a_tolerance_is_of_one_kind() -> None:
    wrongs: tuple[dict[str, Any], ...] = ({"ulp": 1, "rtol": 0.1}, {"atol": -1.0})
    for wrong in wrongs:
        with pytest.raises(LaunchError, match="a tolerance is"):
            Tolerance(**wrong)
    left = np.array([0.0, np.nan, np.inf, 1.0], np.float32)
    right = np.array([-0.0, np.nan, np.inf, 1.5], np.float32)
    assert Tolerance().differing(left, right).tolist() == [[0], [3]]
    assert Tolerance(ulp=1).differing(left, right).tolist() == [[3]]
    assert Tolerance(atol=0.5).differing(left, right).tolist() == []


def test_two_engines_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    real = NumpyEngine.run

    def wrong(self: NumpyEngine, request: Request) -> Outcome:
        outcome = real(self, request)
        outcome.buffers["out"][65] += 1
        return outcome

    monkeypatch.setattr(NumpyEngine, "run", wrong)
    with pytest.raises(Disagreement, match=r"out\[65\] is 23.0 from numpy, 22.0 from jit") as caught:
        verify(right, grid=2, block=64, args=arguments())
    assert "block (1, 0, 0), thread (1, 0, 0) = warp 0 lane 1" in str(caught.value)


def test_checked_runs_the_checkers_and_other_orders() -> None:
    args = {"x": np.arange(64, dtype=np.int32), "out": st.empty(64, i32)}
    with pytest.raises(st.FaultError, match="race on shared memory"):
        verify(neighbours, grid=1, block=64, args=args, checked=True)
    verify(last_block, grid=1, block=32, args={"out": st.zeros(1, i32)}, checked=True)
    with pytest.raises(st.FaultError, match="depends on the order"):
        verify(last_block, grid=9, block=32, args={"out": st.zeros(1, i32)}, checked=True)


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (lambda x: {"y": x}, "the kernel does not write y; it writes out, count"),
        (lambda x: x, "the kernel writes out, count: the oracle returns a mapping"),
        (lambda x: {"out": x[1:]}, r"out has the shape \(100,\), the oracle's answer \(99,\)"),
    ],
)
def test_answers_that_do_not_fit(oracle: Any, message: str) -> None:
    args = {**arguments(), "count": st.zeros(1, i32)}
    with pytest.raises(SimtbedError, match=message):
        verify(halves, grid=2, block=64, args=args, oracle=oracle)


def test_arguments_that_cannot_be_used_twice() -> None:
    array = st.DeviceArray(np.zeros(4, np.int32))
    with pytest.raises(LaunchError, match="give arrays, not a DeviceArray, for out"):
        verify(last_block, grid=1, block=32, args={"out": array})
    with pytest.raises(LaunchError, match="at least one engine"):
        verify(last_block, grid=1, block=32, args={"out": st.zeros(1, i32)}, engines=())


def test_the_last_write_of_several() -> None:
    args = {**arguments(), "count": st.zeros(1, i32)}
    request = st.launch(halves, grid=2, block=64, args=args).request
    first, second = last_write(request, "out", 69), last_write(request, "out", 70)
    assert first is not None and second is not None
    assert (first.thread, second.thread) == ((5, 0, 0), (6, 0, 0))
    assert second.span.line == first.span.line + 2
    counted = last_write(request, "count", 0)
    assert counted is not None and counted.span.source.strip() == "st.atomic_add(count, 0, 1)"
    assert last_write(request, "count", 1) is None


# ------------------------------------------------------------------ strategies
KINDS: list[tuple[str, str, tuple[int, ...]]] = [
    ("bool", "?", ()), ("i8", "i1", ()), ("u8", "u1", ()), ("i32", "i4", ()), ("u64", "u8", ()), ("f32", "f4", ()),
    ("f64", "f8", ()), ("float4", "f4", (4,)), ("short2", "i2", (2,)),
    ("f16", "f2", ()), ("half2", "f2", (2,)), ("bf16", "bfloat16", ()), ("bfloat162", "bfloat16", (2,)),
    ("c64", "c8", ()),
]  # fmt: skip


@pytest.mark.slow
@given(hypothesis.data())
def test_arrays_fit_their_parameters(data: hypothesis.DataObject) -> None:
    name, dtype, lanes = data.draw(hypothesis.sampled_from(KINDS))
    array = data.draw(strategies.arrays(name, hypothesis.integers(0, 9)))
    assert (array.dtype, array.shape[1:]) == (np.dtype(dtype), lanes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f32", "float4"])
def test_few_examples_find_a_forgotten_last_element(name: str) -> None:
    def forgets(start: int) -> bool:
        """The examples of a seed also depend on the loaded modules: Hypothesis tries their constants."""
        failures = []

        @seed(start)
        @settings(max_examples=40, database=None, phases=[Phase.generate])
        @given(strategies.arrays(name, hypothesis.integers(1, 300)))
        def draw(x: npt.NDArray[Any]) -> None:
            failures.append(bool(x[-1].any()) and len(x) > 1)

        draw()
        return any(failures)

    assert all(map(forgets, range(8)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
@settings(max_examples=100)
@given(hypothesis.data())
def test_without_special_values_squares_are_finite(name: str, data: hypothesis.DataObject) -> None:
    array = data.draw(strategies.arrays(name, 16, special=False))
    assert np.isfinite((array * array).astype(np.float64)).all()


@pytest.mark.slow
def test_special_values_are_generated() -> None:
    kinds = set()

    @settings(max_examples=300)
    @given(strategies.elements(f32))
    def draw(value: float) -> None:
        kinds.update(
            ["nan"] if np.isnan(value) else ["inf"] if np.isinf(value) else ["-0"] if str(value) == "-0.0" else []
        )

    draw()
    assert kinds == {"nan", "inf", "-0"}


@given(strategies.launch_shapes(1000, multiple=32))
def test_shapes_have_the_requested_threads(shape: tuple[int, int]) -> None:
    grid, block = shape
    assert grid * block >= 1000 > (grid - 1) * block
    assert block % 32 == 0 and block <= 1024 and grid <= 8


def test_shapes_that_are_too_small() -> None:
    with pytest.raises(LaunchError, match="8 blocks of at most 64 threads are fewer than 1000 threads"):
        strategies.launch_shapes(1000, most_threads=64)


@pytest.mark.slow
@given(strategies.arrays("i32", 40), strategies.launch_shapes(40), strategies.schedules())
@settings(max_examples=15)
def test_a_right_kernel_in_any_shape_and_order(x: npt.NDArray[np.int32], shape: tuple[int, int], order: int) -> None:
    args = {"x": x.view(np.float32), "out": st.empty(40, f32), "n": 40}
    with np.errstate(all="ignore"):
        verify(
            right, grid=shape[0], block=shape[1], args=args, oracle=lambda x: x / np.float32(3), schedule=order,
        )  # fmt: skip


@pytest.mark.slow
def test_a_failing_example_shrinks() -> None:
    @settings(max_examples=300)
    @given(strategies.arrays(i32, 8))
    def hold(x: npt.NDArray[np.int32]) -> None:
        examples.append(x)
        args = {"x": x, "out": st.empty(8, i32), "n": 8}
        verify(clamp, grid=1, block=8, args=args, oracle=lambda x: np.minimum(x, 100), engines=["jit"])

    examples: list[npt.NDArray[np.int32]] = []
    with pytest.raises(Disagreement, match=r"out\[\d\] is 1001 from jit, 100 from the oracle"):
        hold()
    assert sorted(examples[-1].tolist()) == [0] * 7 + [1001]
