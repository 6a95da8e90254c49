"""Failed assertions: the values of the condition, and messages with values, on each engine and in the printed program."""

from collections.abc import Callable

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Const, Global, f16, f32, i32
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

LIMIT_TEXT = "a text outside"
X = np.arange(32, dtype=np.float32) / 4


@st.kernel
def asserting(x: Global[f32], out: Global[f32], n: i32, LIMIT: Const) -> None:
    v = x[st.lane] * 2.0
    assert v < LIMIT
    assert f16(v) < f16(2.0) or n < 0, LIMIT_TEXT
    assert x[n] > 100.0 and n > 0
    w = st.float2(v, 1.0)
    inside = n < 2
    assert w.y < 1.0 or inside, f"{n * 2} of {st.lane}: x = {x[st.lane + 1]}, {v < 3.0}"
    out[st.lane] = v


FINDINGS = [
    ("assertion failed", "v = 5.0, LIMIT = 5"),
    ("assertion failed: a text outside", "v = 2.0, n = 3"),
    ("assertion failed", "x[n] = 0.75, n = 3"),
    ("assertion failed: 6 of 0: x = 0.25, True", "w.y = 1.0, inside = False"),
]


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_finding_has_the_values_of_the_condition(engine: EngineName) -> None:
    args = {"x": X, "out": st.empty(32, f32), "n": 3, "LIMIT": 5}
    result = st.launch(asserting, grid=1, block=8, args=args, engine=engine, faults="return")
    assert [(fault.message, fault.notes[1]) for fault in result.faults] == FINDINGS[1:]
    result = st.launch(asserting, grid=1, block=16, args=args, engine=engine, faults="return")
    assert [(fault.message, fault.notes[1]) for fault in result.faults] == FINDINGS


def test_a_message_is_computed_only_where_the_condition_fails() -> None:
    args = {"x": X, "out": st.empty(32, f32), "n": 1, "LIMIT": 5}
    result = st.launch(asserting, grid=1, block=32, args=args, engine="numpy", check="bounds", faults="return")
    assert {fault.kind for fault in result.faults} == {"assertion"}  # x[lane + 1] is out of bounds in the last lane


def test_assertions_as_they_are_printed(golden: Callable[[str, str], None]) -> None:
    args = {"x": X, "out": st.empty(32, f32), "n": 3, "LIMIT": 5}
    request = prepare_request(asserting, grid=1, block=32, args=args)
    golden("cuda/asserting.cu", cuda_source(request.program, request.block).text)


@st.kernel
def decided(n: i32, LIMIT: Const) -> None:
    assert LIMIT > 3, f"LIMIT is {LIMIT}, not {n}"


def test_an_assertion_that_fails_at_compile_time() -> None:
    with pytest.raises(CompileError, match=r'assertion failed at compile time: f"LIMIT is {LIMIT}, not {n}"'):
        st.launch(decided, grid=1, block=1, args={"n": 1, "LIMIT": 2})
