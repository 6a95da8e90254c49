"""Divisions and roots note which lanes take their slow path."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.language.hints import Global, f32, f64, i64, u64


@st.kernel
def dividing(a: Global[f32], b: Global[f32], out: Global[f32]) -> None:
    i = st.thread.x
    out[i] = a[i] / b[i]


@st.kernel
def rooting(a: Global[f32], out: Global[f32]) -> None:
    i = st.thread.x
    root = st.sqrt(a[i])
    out[i] = f32(1) / root


@st.kernel
def dividing_doubles(a: Global[f64], b: Global[f64], out: Global[f64]) -> None:
    i = st.thread.x
    out[i] = a[i] / b[i]


@st.kernel
def choosing(a: Global[f32], b: Global[f32], out: Global[f32]) -> None:
    i = st.thread.x
    out[i] = a[i] / b[i] if b[i] != f32(0) else f32(0)


def noted(kernel: st.Kernel, engine: st.EngineName, **args: np.ndarray) -> list[list[int]]:
    """By statement that divides, the bits of its lanes."""
    result = st.launch(
        kernel,
        grid=1,
        block=len(args["a"]),
        args={**args, "out": np.zeros_like(args["a"])},
        engine=engine,
        decisions=True,
    )
    assert result.decisions is not None
    found = []
    for one in result.decisions.sites.values():
        assert one.patterns["count"].tolist() == [1]
        found.append(one.patterns["value"][0][: len(args["a"])].tolist())
    return found


TINY = np.float32(2) ** -103
"""Its remainders by numbers near 1 are the smallest normal ones that were seen to take no slow path on an H200; half of it took one."""
DIVISIONS = {
    (1.0, 3.0): 0,
    (0.0, 3.0): 1,
    (1.0, 0.0): 1,
    (-np.inf, 3.0): 1,
    (np.nan, 3.0): 1,
    (1.0, 1e-40): 1,
    (1.0, 3e38): 1,
    (1e30, 1e-20): 1,
    (TINY * 2, 1.0): 0,
    (TINY / 2, 1.0): 1,
}


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_division_is_slow_for_operands_that_are_not_normal(engine: st.EngineName) -> None:
    a, b = (np.array(each, np.float32) for each in zip(*DIVISIONS, strict=True))
    assert noted(dividing, engine, a=a, b=b) == [list(DIVISIONS.values())]


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_root_is_slow_for_zero_and_what_has_none(engine: st.EngineName) -> None:
    a = np.array([1, 0, -4, np.inf, 1e-38, 4e-38, 1e30, 1e-20], np.float32)
    root, reciprocal = noted(rooting, engine, a=a)
    assert root == [0, 1, 1, 1, 1, 1, 0, 0]
    assert reciprocal == [0, 1, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_doubles_have_exponents_of_their_own(engine: st.EngineName) -> None:
    a, b = np.array([1, 0, 1e-295, 1, 1e-200]), np.array([3, 3, 3, np.inf, 1e200])
    assert noted(dividing_doubles, engine, a=a, b=b) == [[0, 1, 1, 1, 1]]


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_what_is_not_chosen_is_not_divided(engine: st.EngineName) -> None:
    a, b = np.array([1, 0, 0], np.float32), np.array([3, 0, 3], np.float32)
    found = noted(choosing, engine, a=a, b=b)
    assert found[-1] == [0, 0, 1]


@st.kernel
def dividing_long(a: Global[i64], b: Global[i64], out: Global[i64]) -> None:
    i = st.thread.x
    out[i] = a[i] // b[i] + a[i] % i64(1000)


@st.kernel
def remaining_long(a: Global[u64], b: Global[u64], out: Global[u64]) -> None:
    i = st.thread.x
    out[i] = a[i] % b[i]


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_division_of_64_bits_is_one_of_32_where_no_operand_has_more(engine: st.EngineName) -> None:
    """That by a constant is no division at all."""
    a, b = np.array([7, 2**32 - 1, 2**32, 7, -7]), np.array([2, 2**32 - 1, 3, 2**40, 3])
    assert noted(dividing_long, engine, a=a, b=b) == [[0, 0, 1, 1, 1]]
    unsigned = [each.astype(np.uint64) for each in (a, b)]
    assert noted(remaining_long, engine, a=unsigned[0], b=unsigned[1]) == [[0, 0, 1, 1, 1]]
