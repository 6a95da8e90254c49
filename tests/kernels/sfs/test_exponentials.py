"""Exponential function on the host."""

import math

import numpy as np
import simtbed as st
from simtbed import Global, f64
from simtbed.kernels.sfs.host.exponentials import exponentials


@st.kernel
def of_the_engines(x: Global[f64], out: Global[f64]) -> None:
    out[st.thread.x] = st.exp(x[st.thread.x])


def test_values_equal_the_engines_on_every_processor() -> None:
    values = np.concatenate([[0.0, -0.0, 1.0, -745.2, -800.0, -np.inf], np.linspace(-40, 0, 506)])
    powers = exponentials(values.reshape(-1, 2)).reshape(-1)
    result = st.launch(
        of_the_engines, grid=1, block=len(values), args={"x": values, "out": st.empty(len(values), st.f64)}
    )
    np.testing.assert_array_equal(powers, result.out)
    assert powers[:3].tolist() == [1.0, 1.0, math.e] and not powers[4:6].any()
    np.testing.assert_allclose(powers, [math.exp(x) for x in values], rtol=3e-16)


def test_shapes_are_unchanged_and_views_are_read() -> None:
    values = -np.arange(12.0).reshape(3, 4)[:, ::2]
    assert exponentials(values).shape == (3, 2)
    np.testing.assert_allclose(exponentials(values), np.exp(values), rtol=3e-16)
    assert exponentials(np.empty((0, 3))).shape == (0, 3)
