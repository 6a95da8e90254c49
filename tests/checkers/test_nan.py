"""The NaN checker: operations with a NaN or an infinity as their result and finite operands."""

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f16, f32
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each

ENGINES: tuple[EngineName, ...] = ("numpy", "jit", "python")


@st.device
def ratio(a: f32, b: f32) -> f32:
    return a / b


@st.kernel
def operations(x: Global[f32], out: Global[f32], halves: Global[f16]) -> None:
    t = st.thread.x
    y = x[t] - 3.0
    guarded = 1.0 / y if t > 3 else f32(0)
    if t == 3:
        out[t] = ratio(y, y)  # NaN
    if t == 4:
        halves[t] = f16(x[t] * 1e5)  # infinity
    if t == 5:
        out[t] = st.exp(x[t] * 100.0) * 2.0  # infinity, whose product is silent
    if t == 6:
        out[t] = st.log(-x[t])  # simtbed: allow nan - tested
    if t == 7:
        out[t] = guarded


ARGUMENTS = {"x": np.arange(32, dtype=np.float32), "out": st.zeros(32, f32), "halves": st.zeros(32, f16)}


def findings(engine: EngineName, check: str) -> list[str]:
    result = st.launch(operations, grid=1, block=32, args=ARGUMENTS, engine=engine, check=check, faults="return")
    assert {fault.kind for fault in result.faults} <= {"nan"}
    return [fault.message for fault in result.faults]


def test_the_first_operation_and_its_operands() -> None:
    expected = [
        "NaN from finite operands: fdiv(0.0, 0.0) is nan",
        "an infinity from finite operands: cast_f16(400000.0) is inf",
        "an infinity from finite operands: exp(500.0) is inf",
    ]

    def check(engine: EngineName) -> None:
        assert findings(engine, "nan") == (expected[:1] if engine == "python" else expected)
        assert findings(engine, "all") == []

    check_each(ENGINES, check, str)


def test_the_text_has_the_call_and_the_thread() -> None:
    with pytest.raises(st.FaultError) as caught:
        st.launch(operations, grid=1, block=32, args=ARGUMENTS, check="nan")
    text = str(caught.value)
    assert "thread (3, 0, 0) = warp 0 lane 3" in text and "called from" in text and "ratio(y, y)" in text
