"""Slow paths of divisions and roots: recorded by lane."""

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
    """Return, by statement with a division, the bits of its lanes."""
    result = st.launch(
        kernel,
        grid=1,
        block=len(args["a"]),
        args={**args, "out": np.zeros_like(args["a"])},
        engine=engine,
        decisions=True,
    )
    assert result.decisions is not None
    lanes_by_statement = []
    for site in result.decisions.sites.values():
        assert site.patterns["count"].tolist() == [1]
        lanes_by_statement.append(site.patterns["value"][0][: len(args["a"])].tolist())
    return lanes_by_statement


TINY = np.float32(2) ** -103
"""Smallest numerator with the fast path for divisors near 1 on an H200; half of it has the slow path."""
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
def test_unselected_divisions_are_not_recorded(engine: st.EngineName) -> None:
    a, b = np.array([1, 0, 0], np.float32), np.array([3, 0, 3], np.float32)
    lanes = noted(choosing, engine, a=a, b=b)
    assert lanes[-1] == [0, 0, 1]


@st.kernel
def dividing_long(a: Global[i64], b: Global[i64], out: Global[i64]) -> None:
    i = st.thread.x
    out[i] = a[i] // b[i] + a[i] % i64(1000)


@st.kernel
def remaining_long(a: Global[u64], b: Global[u64], out: Global[u64]) -> None:
    i = st.thread.x
    out[i] = a[i] % b[i]


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_64_bit_division_of_small_operands_has_32_bits(engine: st.EngineName) -> None:
    """A division by a constant is not counted as a division."""
    a, b = np.array([7, 2**32 - 1, 2**32, 7, -7]), np.array([2, 2**32 - 1, 3, 2**40, 3])
    assert noted(dividing_long, engine, a=a, b=b) == [[0, 0, 1, 1, 1]]
    unsigned = [each.astype(np.uint64) for each in (a, b)]
    assert noted(remaining_long, engine, a=unsigned[0], b=unsigned[1]) == [[0, 0, 1, 1, 1]]
