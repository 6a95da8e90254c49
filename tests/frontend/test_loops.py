"""Loops and the types of literals: printed programs, faults, refused loops."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Const, Global, Kernel, f32, f64, i32, u32
from simtbed.engines.cuda.printer import cuda_source
from simtbed.frontend.reader import specialise
from simtbed.runtime.registry import EngineName
from simtbed.testing.conformance import FEATURES

Golden = Callable[[str, str], None]
PRINTED = ("grid_stride", "step_of_either_sign", "for_else", "names_used_again", "unrolled_numbers_are_constants")


@pytest.mark.parametrize("name", PRINTED)
def test_loops_as_they_are_printed(name: str, golden: Golden) -> None:
    feature = next(f for f in FEATURES if f.name == name)
    golden(f"cuda/{name}.cu", cuda_source(specialise(feature.kernel, {}).program, (32, 1, 1)).text)


@st.kernel
def strided(out: Global[i32], step: i32) -> None:
    total = 0
    for i in range(0, 10, step):
        total += i
    out[st.lane] = total


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_step_of_zero_is_a_fault_at_its_place(engine: EngineName) -> None:
    with pytest.raises(st.FaultError, match=r"test_loops.py:\d+:27: assertion failed: a range's step is not 0"):
        st.launch(strided, grid=1, block=32, args={"out": st.empty(32, i32), "step": 0}, engine=engine)
    result = st.launch(strided, grid=1, block=32, args={"out": st.empty(32, i32), "step": -1}, engine=engine)
    assert not result.out.any()


@st.device
def first_or_double(x: Global[f32], FIRST: Const) -> f32:  # type: ignore[return]
    for i in range(3):
        if FIRST == 1:
            return x[i]
        return 2 * x[i]


@st.kernel
def loops_that_return(x: Global[f32], out: Global[f32], FIRST: Const) -> None:
    """For FIRST = 1, the first iteration of each loop returns."""
    value = first_or_double(x, FIRST)
    for i in range(len(x)):
        out[st.lane] = x[i] + value
        if FIRST == 1:
            return
    for i in range(2):
        if FIRST == 1:
            return
        last = x[i]
    out[st.lane] = last


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_the_first_iteration_may_always_return(engine: EngineName) -> None:
    x = np.arange(5, 9, dtype=np.float32)
    for first, expected in ((1, 10), (0, 6)):
        args = {"x": x, "out": st.empty(32, f32), "FIRST": first}
        assert (st.launch(loops_that_return, grid=1, block=32, args=args, engine=engine).out == expected).all()


def message(kernel: Kernel, **consts: Any) -> list[str]:
    """Return line and message of each error, without the caret, and its hint."""
    with pytest.raises(CompileError) as caught:
        specialise(kernel, consts)
    first = min(d.span.line for d in caught.value.diagnostics)
    return [f"{d.span.line - first}: {d.message}" for d in caught.value.diagnostics]


@st.kernel
def several_in_one_expression(x: Global[f32], n: i32) -> None:
    x[0] = f32(absent) + x[elsewhere] * (x[n] + n)  # type: ignore[name-defined] # noqa: F821
    x[1] = st.fma(x[0] + n, missing, x[absent])  # type: ignore[name-defined] # noqa: F821


def test_all_errors_of_an_expression_are_reported() -> None:
    actual = message(several_in_one_expression)
    assert [re.sub(r".*: ", "", f) if "defined" in f else f for f in actual] == [
        "absent is not defined",
        "elsewhere is not defined",
        "0: + of f32 and i32: nothing is converted silently",
        "1: + of f32 and i32: nothing is converted silently",
        "missing is not defined",
        "absent is not defined",
    ]


@st.device
def bad_signature(x, y: i32):  # type: ignore[no-untyped-def]
    return x


@st.device
def bad_result(x: i32) -> np.ndarray:
    return x  # type: ignore[return-value]


@st.kernel
def calls_them_twice(out: Global[i32]) -> None:
    out[0] = bad_signature(1, 2) + bad_result(1)
    out[1] = bad_signature(1, 2) + bad_result(1)


def test_a_bad_signature_is_reported_once() -> None:
    assert message(calls_them_twice) == ["0: x needs a type", "5: a type is expected here, this is ndarray"]


@st.kernel
def ambiguous(x: Global[f32], d: Global[f64], n: i32) -> None:
    total = 0.0
    total += x[n]
    total += d[n]


@st.kernel
def whole_start(x: Global[f32], n: i32) -> None:
    total = 0
    for i in range(n):
        total += x[i]  # type: ignore[assignment]
    x[0] = total


def test_only_what_is_ambiguous_is_refused() -> None:
    assert message(ambiguous) == ["0: + of f64 and f32: nothing is converted silently"]
    with pytest.raises(CompileError, match="total starts as a whole number: start it as a float"):
        specialise(whole_start, {})


@st.kernel
def loops_that_are_not_here(x: Global[i32], n: i32) -> None:
    for i in range(3):
        for i in range(4):
            x[i] = 1
    for value in x:  # type: ignore[attr-defined]
        x[0] = value
    for a, b in ((1, 2), (3,)):  # type: ignore[misc]
        x[a] = b
    for j in st.unroll(range(5000)):
        x[(1, 2)[j]] = j
    while n > 0:
        x[0] = i
        for i in range(n):
            x[i] = 2


def test_loops_that_are_refused() -> None:
    assert message(loops_that_are_not_here) == [
        "0: i is the variable of a loop around this one",
        "2: a loop runs over indices",
        "4: 2 values are expected here, this is a tuple",
        "6: this loop would be written out 5000 times, at most 4096 are",
        "9: i ends with its loop",
    ]


@st.kernel
def decided_by_constants(out: Global[i32], MODE: Const) -> None:
    if MODE == 0:
        out[st.lane] = 1
        return
    out[st.lane] = 2


def test_what_follows_a_constant_return_is_no_error() -> None:
    for mode, expected in ((0, 1), (1, 2)):
        result = st.launch(decided_by_constants, grid=1, block=32, args={"out": st.empty(32, i32), "MODE": mode})
        assert (result.out == expected).all()


@st.kernel
def halves(x: Global[u32], out: Global[u32]) -> None:
    out[st.lane] = x[st.lane] // 2 + x[st.lane] % 8


def test_a_division_that_is_a_shift_is_counted_as_one() -> None:
    arguments = {"x": np.arange(32, dtype=np.uint32), "out": st.empty(32, u32)}
    totals = st.launch(halves, grid=1, block=32, args=arguments).counters.totals()
    assert (totals["warp_instructions.idiv"], totals["warp_instructions.alu"]) == (0, 3)
