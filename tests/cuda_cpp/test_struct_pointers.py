"""Pointers in structs passed by value: arrays of a launch, null, and the memory of other parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st

SOURCE = st.cuda_source("""
struct Args { float *out; int n; const float *in[2]; struct { double *count; } inner; };
__global__ void select(Args a, float f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    a.out[i] = a.in[i & 1][i] * f;
    if (a.inner.count) atomicAdd(a.inner.count, 1.0);
}
""")
X, Y = np.arange(40, dtype=np.float32), np.full(40, -1, np.float32)
EXPECTED = np.where(np.arange(40) % 2, Y, X) * 2


def launch(args: Any, **options: Any) -> Any:
    return st.launch(SOURCE.select, grid=2, block=32, args=(args, 2.0), **options)


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_pointers_take_arrays(engine: Any) -> None:
    fields = {"out": st.zeros(40, st.f32), "n": 40, "in": (X, Y), "inner": {"count": np.zeros(1)}}
    result = launch(fields, engine=engine, check="all")
    np.testing.assert_array_equal(result["a.out"], EXPECTED)
    assert result["a.inner.count"] == [40]
    device = st.DeviceArray(st.zeros(40, st.f32))
    launch((device, 40, (X, Y), (None,)), engine=engine)
    np.testing.assert_array_equal(device.numpy(), EXPECTED)


def test_pointers_share_memory() -> None:
    own = X.copy()
    np.testing.assert_array_equal(launch((own, 40, (own, Y), (None,)))["a.out"], EXPECTED)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (((5, 40, (X, Y), (None,))), r"a\.out is a NumPy array"),
        (((X, 40, (X.astype(np.int32), Y), (None,))), r"a\.in\.0 points to f32"),
        (((X, 40, X, (None,))), "a is f32"),
        (((X[:30].copy(), 40, (X, Y), (None,))), r"out of bounds: a\.out\[30\]"),
        (({"out": X}), r"a is Args: give \(out, n, in, inner\)"),
    ],
)
def test_wrong_arrays_are_errors(args: Any, message: str) -> None:
    with pytest.raises(st.SimtbedError, match=message):
        launch(args, check="bounds")
