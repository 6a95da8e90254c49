"""min and max of zeros of both signs: -0 is smaller than +0, in each order of the operands and on each engine."""

from typing import Any

import ml_dtypes
import numpy as np
import simtbed as st
from simtbed import Global, bf16, f16, f32, f64

PAIRS = ((-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0), (0.0, 0.0), (float("nan"), -0.0), (0.0, float("nan")), (1.0, -1.0))
LEAST, GREATEST = (-0.0, -0.0, -0.0, 0.0, -0.0, 0.0, -1.0), (0.0, 0.0, -0.0, 0.0, -0.0, 0.0, 1.0)
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@st.kernel
def extremes(  # noqa: PLR0913 - three arrays of each type
    f64_a: Global[f64], f64_b: Global[f64], f64_out: Global[f64],
    f32_a: Global[f32], f32_b: Global[f32], f32_out: Global[f32],
    f16_a: Global[f16], f16_b: Global[f16], f16_out: Global[f16],
    bf16_a: Global[bf16], bf16_b: Global[bf16], bf16_out: Global[bf16],
) -> None:  # fmt: skip
    i = st.lane
    f64_out[i], f64_out[32 + i] = min(f64_a[i], f64_b[i]), max(f64_a[i], f64_b[i])
    f32_out[i], f32_out[32 + i] = min(f32_a[i], f32_b[i]), max(f32_a[i], f32_b[i])
    f16_out[i], f16_out[32 + i] = min(f16_a[i], f16_b[i]), max(f16_a[i], f16_b[i])
    bf16_out[i], bf16_out[32 + i] = min(bf16_a[i], bf16_b[i]), max(bf16_a[i], bf16_b[i])


def test_minus_zero_is_smaller_than_plus_zero() -> None:
    args: dict[str, Any] = {}
    for name, dtype in TYPES.items():
        for place, operand in enumerate("ab"):
            args[f"{name}_{operand}"] = np.array([pair[place] for pair in PAIRS] + [0.0] * 25, dtype)
        args[f"{name}_out"] = st.zeros(64, name)
    results = [
        st.launch(extremes, grid=1, block=32, args=args, engine=engine).buffers for engine in ("numpy", "jit", "python")
    ]
    for result in results:
        for name in TYPES:
            out = result[f"{name}_out"].astype(np.float64).reshape(2, 32)[:, : len(PAIRS)]
            assert [[*map(str, row)] for row in out.tolist()] == [[*map(str, LEAST)], [*map(str, GREATEST)]], name


@st.kernel
def of_constants(out: Global[f32]) -> None:
    nan = f32(float("nan"))
    out[0] = min(-0.0, 0.0)
    out[1] = min(0.0, -0.0)
    out[2] = max(0.0, -0.0)
    out[3] = max(-0.0, 0.0)
    out[4] = min(nan, 2.0)


def test_constants_are_folded_by_the_same_rule() -> None:
    out = st.launch(of_constants, grid=1, block=1, args={"out": st.zeros(5, f32)}, engine="numpy").out
    assert [*map(str, out.tolist())] == ["-0.0", "-0.0", "0.0", "0.0", "2.0"]
