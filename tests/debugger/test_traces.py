"""Traces: the assignments and stores of a thread or a warp, their table and CSV, and their first difference."""

import csv
import io
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32, i32


@st.device
def half(v: f32) -> f32:
    w = v * 0.5
    return w


@st.kernel
def block_sum(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = half(x[t])
    st.sync()
    pair = (t, 2.0)
    for k in range(2):
        half(pair[1] + f32(k))
    total = st.reduce_add(t) if BLOCK == 32 else i32(0)
    if t == 0:
        out[st.block.x] = partial[0] + f32(total)


def traced(kernel: Any = block_sum, start: int = 0, block: int = 8, **options: Any) -> st.Trace:
    x = np.arange(start, start + block, dtype=np.float32)
    args = {"x": x, "out": st.empty(1, f32), "BLOCK": block}
    return st.trace(kernel, grid=1, block=block, args=args, **options)


def test_assignments_and_stores_of_a_thread() -> None:
    trace = traced(thread=(3,))
    assert [(step.step, step.name, str(step.value)) for step in trace.steps] == [
        (1, "t", "3"),
        (2, "w", "1.5"),
        (3, "partial[3]", "1.5"),
        (4, "pair.0", "3"),
        (5, "pair.1", "2.0"),
        (6, "k", "0"),
        (7, "w", "1.0"),
        (8, "k", "1"),
        (9, "w", "1.5"),
        (10, "total", "0"),
    ]
    assert {step.thread for step in trace.steps} == {3} and trace.fault is None
    assert len(trace.steps[1].span.calls) == 1


def test_the_table_and_the_csv_have_the_same_cells() -> None:
    trace = traced(thread=0)
    rows = list(csv.reader(io.StringIO(trace.csv())))
    assert rows[0] == ["thread", "step", "place", "name", "value", "source"]
    assert rows[3][3:] == ["partial[0]", "0.0", "partial[t] = half(x[t])"]
    lines = str(trace).splitlines()
    assert len(lines) == len(rows) and lines[3].split() == " ".join(rows[3]).split()
    assert "<td>partial[0]</td>" in trace._repr_html_() and "block_sum, block 0" in trace._repr_html_()


def test_a_warp_has_the_steps_of_its_threads() -> None:
    trace = traced(block=40, warp=1)
    assert sorted({step.thread for step in trace.steps}) == list(range(32, 40))
    trace = traced(block=32, warp=0)
    assert {str(step.value) for step in trace.steps if step.name == "total"} == {"496"}


def test_the_first_difference() -> None:
    first = traced(thread=3)
    assert first.diff(traced(thread=3)) is None
    difference = first.diff(traced(thread=3, start=1))
    assert difference is not None and difference.first is not None and difference.second is not None
    assert (difference.first.step, difference.first.value, difference.second.value) == (2, 1.5, 2.0)
    assert str(difference).startswith("thread 3, step 2: w = 1.5 (")
    longer = traced(thread=0).diff(traced(block=32, thread=0))
    assert longer is not None and "total" in str(longer)


@st.kernel
def stored(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    value = x[st.thread.x + 5]
    out[0] = value


def test_a_trace_ends_at_a_finding_and_at_a_shorter_one() -> None:
    trace = traced(stored, thread=3)
    assert [step.name for step in trace.steps] == [] and trace.fault is not None
    assert str(trace).splitlines()[1].endswith("global read out of bounds: x[8], but x has 8 elements")
    difference = traced(stored, thread=0).diff(traced(stored, thread=0, start=1, check="bounds"))
    assert difference is not None
    other = traced(stored, thread=0).diff(trace)
    assert other is not None and str(other).splitlines()[1] == "the trace has ended"


@st.kernel
def cooperative(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    st.grid_sync()
    out[0] = x[0]


def test_wrong_use() -> None:
    for match, options in (
        ("expected thread or warp, got both", {"thread": 1, "warp": 0}),
        ("warp 1: expected a warp below 1", {"warp": 1}),
        ("thread 8: expected an index below 8", {"thread": 8}),
        ("block 1: expected an index below 1", {"of_block": 1}),
    ):
        with pytest.raises(st.SimtbedError, match=match):
            traced(**options)
    with pytest.raises(st.LaunchError, match="a block of a cooperative kernel"):
        traced(cooperative, cooperative=True)
