"""Arrays that are full of a value: what is taken, what is refused, and what a host sees of them."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, LaunchError, f32, i32


@pytest.mark.parametrize(
    ("value", "type", "message"),
    [
        (300, "u8", "value is u8, which holds 0 to 255: 300 does not fit"),
        (1.0, "i32", "value is i32: a whole number is expected, not 1.0"),
        (True, "c64", r"value\[0\] is f32: a number is expected, not True"),
        (1j, "f32", "value is f32: a number is expected, not 1j"),
        ((1.0, 2.0), "float4", "value is float4: 4 numbers are expected, not 2"),
        ((1.0, 2.0), "f32", "value is f32: a number is expected"),
        (1, "int3", "'int3' is not a type"),
    ],
)
def test_what_does_not_fit_is_refused(value: Any, type: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        st.full(4, value, type)


class Pair(NamedTuple):
    x: f32
    y: f32


def test_structs_are_refused() -> None:
    with pytest.raises(LaunchError, match="fill an array of structs with NumPy"):
        st.full(4, 0, Pair)


@st.kernel
def last(x: Global[i32], out: Global[i32]) -> None:
    out[0] = x[len(x) - 1]


@pytest.mark.parametrize("check", ["", "all"])
def test_what_is_full_may_be_read(check: str) -> None:
    args = {"x": st.full(100, 9, i32), "out": st.empty(1, i32)}
    assert st.launch(last, grid=1, block=1, args=args, check=check).out.tolist() == [9]


def test_another_type_is_reported_with_the_call() -> None:
    args = {"x": st.full(100, 1.5, f32), "out": st.empty(1, i32)}
    with pytest.raises(LaunchError, match=r"x is Global\[i32\], not f32; give st.full\(shape, .*1.5.*, st.i32\)"):
        st.launch(last, grid=1, block=1, args=args)


def test_device_arrays_are_filled_before_their_use() -> None:
    stored = DeviceArray(st.full((2, 3), -0.0, "f64"))
    again = pickle.loads(pickle.dumps(stored))
    for array in (stored, again):
        assert array.numpy().tobytes() == np.full((2, 3), -0.0).tobytes()
    assert (stored.shape, stored.dtype) == ((2, 3), np.dtype("f8"))


class Far:
    """An array in the memory of a device."""

    def read(self) -> np.ndarray:
        return np.arange(6, dtype=np.int32)


@pytest.mark.parametrize("far", [False, True])
def test_the_first_elements_can_be_kept(far: bool) -> None:
    array = DeviceArray(np.arange(6, dtype=np.int32).reshape(3, 2))
    if far:
        array.remote = Far()
    array.keep(2)
    assert array.shape == (2, 2) and array.numpy().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(LaunchError, match="count"):
        array.keep(3)
