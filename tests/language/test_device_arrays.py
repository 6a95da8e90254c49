"""Arrays that persist on an engine between launches."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, empty, i32, launch, profiling, zeros
from simtbed.runtime import engine as limits
from simtbed.runtime.registry import EngineName
from simtbed.testing.conformance.device_arrays import FILL, doubled


def test_what_is_read_is_a_copy() -> None:
    stored = DeviceArray(FILL)
    stored.numpy()[0] = 99
    assert stored.numpy()[0] == 0


class Far:
    """An array in the memory of a device."""

    def read(self) -> np.ndarray:
        return FILL + 1


def test_an_emulator_fetches_what_a_device_holds() -> None:
    x, persistent = DeviceArray(np.zeros(64, np.int32)), zeros(64, "i32")
    x.remote = Far()
    result = launch(doubled, grid=2, block=32, args={"x": x, "between": persistent, "pairs": empty(64, "int2")})
    assert np.array_equal(result.between, 2 * FILL + 2)


@st.kernel
def waiting(x: Global[i32], flag: Global[i32]) -> None:
    """x gains 1, then waits for a flag that is never set."""
    x[st.lane] += 1
    while st.volatile_load(flag, 0) == 0:
        pass


@st.kernel
def counting(x: Global[i32], n: i32) -> None:
    """x gains 1 n times."""
    finished = 0
    while finished < n:
        x[st.lane] += 1
        finished += 1


def stored() -> dict[str, DeviceArray]:
    return {"x": DeviceArray(FILL), "between": DeviceArray(FILL), "pairs": DeviceArray(zeros(64, "int2"))}


@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize("how", [{"schedule": 3}, {"check": "all"}, {"step_limit": 50}, {}])
def test_what_may_run_again_finds_what_was_there(engine: EngineName, how: dict[str, Any]) -> None:
    args = stored()
    for times in (1, 2):
        launch(doubled, grid=2, block=32, args=args, engine=engine, **how)
        assert np.array_equal(args["between"].numpy(), FILL + 2 * times * FILL)
    with profiling():
        launch(doubled, grid=2, block=32, args=args, engine=engine)
    assert np.array_equal(args["between"].numpy(), 7 * FILL)


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_a_loop_that_waits_is_run_again_from_the_beginning(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SPIN_ITERATIONS", 20)
    x = DeviceArray(FILL)
    result = launch(
        waiting, grid=1, block=32, args={"x": x, "flag": np.zeros(1, np.int32)}, engine=engine, faults="return"
    )
    assert [fault.kind for fault in result.faults] == ["step limit"]
    assert np.array_equal(x.numpy()[:32], FILL[:32] + 1)


def test_a_loop_of_too_many_iterations_says_what_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ITERATIONS", 30)
    x = DeviceArray(zeros(32, i32))
    with pytest.raises(
        LaunchError, match=r"counting: a loop does not end; .*check=\"bounds\".* what it has done to x is not undone"
    ):
        launch(counting, grid=1, block=32, args={"x": x, "n": 31}, engine="jit")
    assert x.fill is None and (x.numpy() == 30).all()


def test_one_array_for_two_parameters_is_refused() -> None:
    both = DeviceArray(FILL)
    with pytest.raises(LaunchError, match="one DeviceArray is given for two parameters"):
        launch(doubled, grid=2, block=32, args={"x": both, "between": both, "pairs": empty(64, "int2")})


def test_its_type_is_checked() -> None:
    args = {"x": DeviceArray(FILL.astype(np.int64)), "between": empty(64, "i32"), "pairs": empty(64, "int2")}
    with pytest.raises(LaunchError, match="x is Global"):
        launch(doubled, grid=2, block=32, args=args)


def test_numpy_reads_a_device_array() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = DeviceArray(values)
    assert np.array_equal(np.asarray(array), values) and np.allclose(array, values)
    assert np.asarray(array, np.float64).dtype == np.float64 and np.array(array).shape == (3, 4)
    np.asarray(array)[0, 0] = 7  # a copy
    assert array.numpy()[0, 0] == 0
    with pytest.raises(ValueError, match="a DeviceArray is copied"):
        array.__array__(copy=False)
    assert repr(array) == "<DeviceArray: float32[3, 4], host>"
    assert repr(DeviceArray(empty(5, "i32"))) == "<DeviceArray: int32[5], host>"
