"""Shapes of arrays in a kernel: numbers, or one tuple of them; names of types and words on the host."""

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32
from simtbed.frontend.reader import specialise
from simtbed.machine.device import DEVICES

from tests.table_checks import check_each, each_row

SHAPE = (4, 8)


@st.kernel
def tuples(x: Global[f32], out: Global[f32], K: Const) -> None:
    """Copy through arrays whose shapes are tuples."""
    t = st.thread.x
    tile = st.shared(f32, (K, 8))
    own = st.local(f32, SHAPE)
    held = st.registers(f32, (4,))
    row = st.dynamic_shared(f32, (8,))
    tile[K - 1, t] = x[0, t]
    own[3, 7] = tile[K - 1, t]
    held[3] = own[3, 7]
    row[t] = held[3]
    out[t] = row[t]


def test_a_shape_is_a_tuple() -> None:
    for engine in ("jit", "numpy", "python"):
        x = np.arange(8, dtype=np.float32).reshape(1, 8)
        args = {"x": x, "out": st.empty((8,), f32), "K": 4}
        result = st.launch(tuples, grid=[1], block=[8], args=args, shared=32, engine=engine)  # type: ignore[arg-type]
        assert np.array_equal(result.out, x[0]), engine


LINES = [
    ("s = st.shared((4, 8), st.f32)", "the type precedes the shape", "write st.shared(st.f32, (4, 8))"),
    ("s = st.local(8, st.f16)", "the type precedes the shape", "write st.local(st.f16, 8)"),
    ("s = st.shared(st.f32, *(4, 8))", "`*` is not in the kernel language", "give the tuple itself"),
    ("s = st.shared(st.f32, (4, 8), 2)", "an extent is a number, this is a tuple", "write one tuple of numbers"),
    ("s = st.shared(st.f32, (4, st.lane))", "must be known at compile time, this is i32", "make it a Const parameter"),
    ("s = st.registers(st.f32, (4, 2))", "registers have one dimension, not 2", "write st.registers(st.f32, 8)"),
    ("s = st.shared(np.float32, 8)", "a type is expected here, this is float32", "write st.f32"),
    ("s = st.shared(float, 8)", "a type is expected here, this is float", "write st.f32 or st.f64"),
    ("s = st.warp_sum(x[0])", "warp_sum is a word of CUDA C++", "st.reduce_add(v)"),
    ("for i in st.unroll(4): x[i] = 0.0", "this is the literal 4", "write: for i in st.unroll(range(4))"),
    ("for i in 4: x[i] = 0.0", "this is the literal 4", "write: for i in range(4)"),
    ("x[0] = maths.sqrt(x[0])", "maths is not defined", "make it a parameter"),
]


@each_row(LINES)
def test_the_message_names_the_correction(case: tuple[str, str, str]) -> None:
    line, message, advice = case
    kernel = st.kernel(source=f"def k(x: st.Global[st.f32]) -> None:\n    {line}\n")
    with pytest.raises(st.CompileError) as caught:
        specialise(kernel, {})
    assert message in str(caught.value) and advice in str(caught.value), str(caught.value)


def test_a_module_that_is_not_imported() -> None:
    def root(x: Global[f32]) -> None:
        x[0] = math.sqrt(x[0])  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(st.CompileError, match=r"math is not defined(.|\n)*import math, or write st.sqrt\(x\)"):
        specialise(st.kernel(root), {})


def test_names_on_the_host() -> None:
    result = st.launch(
        tuples, grid=1, block=8, args={"x": np.ones((1, 8), np.float32), "out": st.empty(8, f32), "K": 4}, shared=32
    )
    cases = [
        (lambda: st.float32, "no attribute 'float32': write st.f32"),
        (lambda: st.syncthreads, "write st.sync()"),
        (lambda: st.lunch, "do you mean st.launch?"),
        (lambda: st.empty(4, float), "'float' is not a type; write st.f32 or st.f64"),
        (lambda: st.empty(4, "float64"), "write st.f64"),
        (lambda: st.devices.A10G, f"no device is called A10G; there are {', '.join(DEVICES)}"),
        (lambda: result.counters.total("global_load_sector"), "do you mean global_load_sectors?"),
        (lambda: result.counters.total("speed"), "there are warp_instructions, "),
    ]  # fmt: skip

    def check(case: tuple[object, str]) -> None:
        call, message = case
        with pytest.raises((AttributeError, st.SimtbedError)) as caught:
            call()  # type: ignore[operator]
        assert message in str(caught.value)

    check_each(cases, check)
    assert not hasattr(st, "_nothing")
    assert [st.zeros(4, t).type for t in (np.float32, np.dtype("i8"), np.complex64)] == ["f32", "i64", "c64"]
