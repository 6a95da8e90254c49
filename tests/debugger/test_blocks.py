"""`debugging`: one block on the python engine, the launch on jit."""

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32

STOPS: list[tuple[int, int]] = []


def stop(block: i32, thread: i32) -> None:
    STOPS.append((int(block), int(thread)))


@st.kernel
def scaled(x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    block = st.block.x
    i = block * 4 + t
    stop(block, t)
    out[i] = 2.0 * x[i]


def run(kernel: st.Kernel) -> st.Result:
    args = {"x": np.arange(16, dtype=np.float32), "out": st.empty(16, f32)}
    return st.launch(kernel, grid=(2, 2), block=4, args=args)


def test_one_block_calls_python_functions() -> None:
    STOPS.clear()
    with st.debugging(block=1, kernel="sca*"):
        result = run(scaled)
    assert [(1, t) for t in range(4)] == STOPS
    assert result.out[:8].tolist() == [2.0 * n for n in range(8)]
    STOPS.clear()
    with st.debugging(block=(0, 1), kernel="other"):
        run(scaled)
    assert STOPS == []


@st.kernel
def asserted(x: Global[f32], out: Global[f32]) -> None:
    i = (st.block.x + 2 * st.block.y) * 4 + st.thread.x
    value = x[i + 1]
    out[i] = value


def test_a_finding_of_the_block_ends_at_its_line() -> None:
    args = {"x": np.arange(16, dtype=np.float32), "out": st.empty(16, f32)}
    with pytest.raises(st.FaultError) as caught, st.debugging(block=(1, 1)):
        st.launch(asserted, grid=(2, 2), block=4, args=args)
    trace = caught.value.trace
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    assert trace.tb_frame.f_code.co_name == "asserted" and trace.tb_frame.f_locals["i"] == 15


def test_wrong_blocks() -> None:
    with pytest.raises(st.SimtbedError, match="block 4: expected an index below 4"), st.debugging(block=4):
        run(scaled)


def double(x: i32) -> i32:
    return x + x


@st.kernel
def with_a_value(out: Global[i32]) -> None:
    t = st.thread.x
    value = double(t)
    out[t] = value


def test_the_value_of_a_python_call_is_refused() -> None:
    with pytest.raises(st.CompileError) as caught:
        st.launch(with_a_value, grid=1, block=1, args={"out": st.empty(1, i32)}, engine="python")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "the value of double has no type in a kernel"
    assert diagnostic.notes == ("call it as a statement of its own, or mark the function @st.device",)
