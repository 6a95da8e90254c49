"""Arrays that stay with an engine from launch to launch."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed import DeviceArray, LaunchError, empty, launch
from simtbed.testing.conformance.device_arrays import FILL, doubled


def test_what_is_read_is_a_copy() -> None:
    kept = DeviceArray(FILL)
    kept.numpy()[0] = 99
    assert kept.numpy()[0] == 0


class Far:
    """An array in the memory of a device."""

    def read(self) -> np.ndarray:
        return FILL + 1


def test_an_emulator_fetches_what_a_device_holds() -> None:
    x, between = DeviceArray(np.zeros(64, np.int32)), empty(64, "i32")
    x.remote = Far()
    result = launch(doubled, grid=2, block=32, args={"x": x, "between": between, "pairs": empty(64, "int2")})
    assert np.array_equal(result.between, 2 * FILL + 2)


def test_one_array_for_two_parameters_is_refused() -> None:
    both = DeviceArray(FILL)
    with pytest.raises(LaunchError, match="one DeviceArray is given for two parameters"):
        launch(doubled, grid=2, block=32, args={"x": both, "between": both, "pairs": empty(64, "int2")})


def test_its_type_is_checked() -> None:
    args = {"x": DeviceArray(FILL.astype(np.int64)), "between": empty(64, "i32"), "pairs": empty(64, "int2")}
    with pytest.raises(LaunchError, match="x is Global"):
        launch(doubled, grid=2, block=32, args=args)
