"""The python engine: the answers of the feature kernels, sessions of pdb, faults at their lines, and calls of Python functions."""

import io
import logging
import pdb
import pickle
import re
import sys
import traceback
from typing import Any, NamedTuple

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.testing.conformance import cases

from tests.checkers.corpus import PAIRS
from tests.table_checks import check_each
from tests.texts import texts

MISTAKES = (
    "break_out_of_a_barrier_loop",
    "match_in_a_loop_that_lanes_leave",
    "off_by_one",
    "count_of_a_part_of_the_block",
)


@pytest.mark.slow
def test_features() -> None:
    """`tests/validation/test_python_engine.py` runs the other cases."""
    features = [case for case in cases("python") if case.name.startswith("feature")]
    check_each(features, lambda case: case.run(), str)


# ------------------------------------------------------------------ sessions of pdb
class Session:
    """Pdb with commands from a text. An instance is the global DEBUGGER of the kernels."""

    def __init__(self) -> None:
        self.output = io.StringIO()
        self.debugger: Any = None

    def start(self, *commands: str) -> None:
        self.output = io.StringIO()
        self.debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=self.output, nosigint=True)
        self.debugger.use_rawinput = False
        self.debugger.prompt = ""
        if sys.version_info >= (3, 13):  # it stops in the statement that starts it
            self.debugger.cmdqueue.append("next")

    def stop(self) -> None:
        self.debugger.set_trace(sys._getframe(1))

    def lines(self) -> list[str]:
        """Return the statements at which the debugger stopped, and the answers to its commands."""
        text = self.output.getvalue().splitlines()
        lines = [line.removeprefix("-> ") for line in text if not line.startswith(">")]
        return [line for line in lines if line != "DEBUGGER.stop()"]


DEBUGGER = Session()


@st.device
def half(x: f32) -> f32:
    y = x * 0.5
    return y


@st.kernel
def block_sum(x: Global[f32], out: Global[f32], n: i32, BLOCK: Const) -> None:
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    if t == 5:
        DEBUGGER.stop()
    partial[t] = half(x[i]) if i < n else f32(0)
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


def launch_sum() -> Any:
    args = {"x": np.arange(64, dtype=np.float32), "out": st.empty(1, f32), "n": 64, "BLOCK": 64}
    return st.launch(block_sum, grid=1, block=64, args=args, engine="python")


def test_variables_are_numpy_scalars_and_arrays() -> None:
    DEBUGGER.start("p i, t, type(i)", "p x.shape, partial.shape, partial.dtype", "p BLOCK, half", "continue")
    assert launch_sum().out[0] == 1008.0
    assert DEBUGGER.lines()[1:4] == [
        "(np.int32(5), np.int32(5), <class 'numpy.int32'>)",
        "((64,), (64,), dtype('float32'))",
        "(64, <DeviceFunction tests.language.test_python_engine.half>)",
    ]


def test_step_into_a_device_function_and_over_a_barrier() -> None:
    DEBUGGER.start("step", "next", "next", "p x, y", "next", "next", "next", "next", "p partial[63]", "continue")
    launch_sum()
    assert DEBUGGER.lines() == [
        "partial[t] = half(x[i]) if i < n else f32(0)",
        "--Call--",
        "def half(x: f32) -> f32:",
        "y = x * 0.5",
        "return y",
        "(np.float32(5.0), np.float32(2.5))",
        "--Return--",
        "return y",
        "st.sync()",
        "width = BLOCK // 2",
        "while width > 0:",
        "np.float32(31.5)",  # behind the barrier, the element of the last thread
    ]


def test_a_breakpoint_stops_in_every_thread() -> None:
    code = block_sum.function.__code__
    line = code.co_firstlineno + 6
    stop = f"break {code.co_filename}:{line + 2}"
    DEBUGGER.start(stop, "continue", "p t", "continue", "p t", "clear 1", "continue")
    launch_sum()
    assert [line for line in DEBUGGER.lines() if line.startswith("np.int32")] == ["np.int32(5)", "np.int32(6)"]


@st.kernel
def shift(x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    left = half(x[t])
    out[t] = left + x[t + 1]


def test_a_fault_is_an_exception_at_its_line() -> None:
    args = {"x": np.arange(64, dtype=np.float32), "out": st.empty(64, f32)}
    with pytest.raises(st.FaultError) as caught:
        st.launch(shift, grid=1, block=64, args=args, engine="python")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "out[t] = left + x[t + 1]"
    DEBUGGER.start("p t, left", "up", "quit")
    DEBUGGER.debugger.cmdqueue.clear()
    DEBUGGER.debugger.reset()
    DEBUGGER.debugger.interaction(None, caught.value.__traceback__)
    assert DEBUGGER.lines()[:2] == ["out[t] = left + x[t + 1]", "(np.int32(63), np.float32(31.5))"]
    assert pickle.loads(pickle.dumps(caught.value)).result.faults == caught.value.result.faults
    jit = st.launch(shift, grid=1, block=64, args=args, faults="return").faults
    assert caught.value.result.faults == jit


@pytest.mark.parametrize("name", [name for name in PAIRS if name in MISTAKES])
def test_findings_are_those_of_jit(name: str) -> None:
    pair = PAIRS[name]
    options: dict[str, Any] = {"grid": pair.grid, "block": pair.block, "device": pair.device, "step_limit": 200}
    for fixed in (False, True):
        args = {**pair.args, "FIXED": fixed}
        check = "bounds,alignment,uninitialised,barriers,arithmetic"
        python, jit = (
            st.launch(pair.kernel, args=args, check=check, engine=engine, faults="return", **options).faults
            for engine in ("python", "jit")
        )
        assert [_text(fault) for fault in python] == [_text(fault) for fault in jit[:1]]
        assert bool(python) == (not fixed)


def _text(fault: Any) -> str:
    """Return the text of a finding without the number of other lanes: this engine stops at the first."""
    return re.sub(r"; \d+ more lanes? of this warp too", "", str(fault))


# ------------------------------------------------------------------ Python functions
RECORDED: list[Any] = []


@st.kernel
def calling(out: Global[i32]) -> None:
    t = st.thread.x
    RECORDED.append((t, out.shape))
    if t == 1:
        logging.warning("thread %s", t)
    print(type(t).__name__, sep="")
    out[t] = t


def test_statements_call_python_functions(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    RECORDED.clear()
    st.launch(calling, grid=1, block=2, args={"out": st.empty(2, i32)}, engine="python")
    assert RECORDED == [(0, (2,)), (1, (2,))]
    assert caplog.messages == ["thread 1"]
    assert capsys.readouterr().out == "int32\nint32\n"


@st.kernel
def stopping(out: Global[i32]) -> None:
    breakpoint()
    pdb.set_trace()
    out[st.thread.x] = 1


def test_other_engines_name_this_one() -> None:
    with pytest.raises(st.CompileError) as caught:
        st.launch(stopping, grid=1, block=2, args={"out": st.empty(2, i32)})
    hint = 'the python engine calls it: launch with engine="python"'
    assert [d.notes for d in caught.value.diagnostics] == [(hint,), (hint,)]


RACES = ("blocks_share_an_output", "everybody_writes_one_cell", "syncwarp_of_the_wrong_half", "through_global_memory")


@pytest.mark.parametrize("name", RACES)
def test_races_are_found(name: str) -> None:
    """`tests/validation/test_python_engine.py` runs the other kernels of the corpus."""
    assert [fault.kind for fault in PAIRS[name].launch(False, "python").faults] == ["race"]
    assert PAIRS[name].launch(True, "python").faults == []


def test_a_read_before_a_write_without_a_barrier_is_one_race() -> None:
    """The reading thread runs first: the element is still unwritten then."""
    (fault,) = PAIRS["missing_barrier_after_the_load"].launch(False, "python").faults
    assert fault.kind == "race"


@pytest.mark.parametrize("name", ["flag_between_blocks", "release_that_a_store_ends", "last_block_without_an_acquire"])
def test_fences_and_releases_order_accesses(name: str) -> None:
    (fault,) = PAIRS[name].launch(False, "python").faults
    assert fault in PAIRS[name].launch(False, "jit").faults
    assert PAIRS[name].launch(True, "python").faults == []


# ------------------------------------------------------------------ tuples, structs and vectors
class Point(NamedTuple):
    x: f32
    y: f32


@st.device
def mirrored(p: Point) -> Point:
    RECORDED.append(p.y)
    return Point(p.y, p.x)


@st.kernel
def of_records(out: Global[f32], origin: Point) -> None:
    q = mirrored(origin)
    v = st.float2(q.x, 3.0)
    RECORDED.append((origin.x, q.x, q[1], v.y, v))
    out[st.thread.x] = q.x


def test_tuples_and_vectors_have_their_fields() -> None:
    RECORDED.clear()
    args = {"out": st.empty(1, f32), "origin": Point(1.0, 2.0)}
    st.launch(of_records, grid=1, block=1, args=args, engine="python")
    assert RECORDED == [2, (1, 2, 1, 3, (2, 3))]


# ------------------------------------------------------------------ suppressed findings
@st.kernel
def allowed(out: Global[i32]) -> None:
    t = st.thread.x
    out[t] = (t + 2147483600) >> 31  # simtbed: allow arithmetic - wraps on purpose


def test_an_allowed_finding_does_not_stop_the_launch() -> None:
    args = {"out": st.empty(64, i32)}
    results = [st.launch(allowed, grid=1, block=64, args=args, engine=e, check="arithmetic") for e in ("python", "jit")]
    assert results[0].out.tolist() == results[1].out.tolist() == [0] * 48 + [-1] * 16
    assert [r.kind for r in results[0].remarks] == [r.kind for r in results[1].remarks] == ["allowed"]


def test_returns_of_inlined_calls() -> None:
    """A return leaves the innermost call alone, through loops."""
    x = np.array([0, 2, 4, 6, 8, 1, 3, 5], np.int32)
    kernel = st.cuda_source(texts("cuda_cpp/texts.cu")["returns of inlined calls"])["k"]
    result = st.launch(kernel, grid=1, block=32, args=(x, st.empty(32, i32)), engine="python", check="all")
    expected = [-2] * 3 + [0, 1, 1, 2, 2, 3, 3, 4, 4] + [-3] * 3 + [7] * 17
    expected = [value + 10 * (thread != 3) for thread, value in enumerate(expected)]
    assert result.out.tolist() == expected
