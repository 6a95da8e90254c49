"""Refused arguments of a launch: all of them in one error, with the errors of the compilation."""

from typing import Any

import numpy as np
import pytest
import simtbed as st

from tests.table_checks import each_row


@st.kernel
def scaled(
    x: st.Global[st.f32], v: st.Global[st.float2], out: st.Global[st.f32], n: st.i32, a: st.f32, K: st.Const
) -> None:
    """out = a x K where i < n."""
    i = st.thread.x
    if i < n:
        out[i] = a * x[i] * K + v[i].x


@st.kernel
def mixed(x: st.Global[st.f32], y: st.Global[st.f64], out: st.Global[st.f32]) -> None:
    """A kernel of two dimensions with a mistake."""
    out[st.thread.x, 0] = x[st.thread.x, 0] + y[st.thread.x]


def arguments(**changed: Any) -> dict[str, Any]:
    good = {"x": np.ones(8, np.float32), "v": np.ones((8, 2), np.float32), "out": st.empty(8, st.f32)}
    return {**good, "n": 8, "a": 1.0, "K": 2, **changed}


CASES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"x": np.ones(8)}, {}, ["x is Global[f32], the array given is float64"]),
    (
        {"x": np.ones(8), "v": np.ones((8, 3), np.float32), "out": st.empty(8, st.i32), "n": 2.5, "a": "x", "K": [2]},
        {},
        ["x is Global[f32], the array", "v is Global[float2], its array", "out is Global[f32], not i32", "n is i32",
         "a is f32", "K is Const: give a tuple"],
    ),
    (
        {"x": [1.0]},
        {"grid": 0, "shared": -1, "check": "rases", "schedule": -2, "detail": True, "counters": False},
        ["grid is 0", "shared is -1", "schedule is -2", "no check is called 'rases'", "detail=True records",
         "x is a NumPy array"],
    ),
    ({"m": 1, "n": 1 << 40}, {}, ["scaled has no parameter m", "n is i32, which holds"]),
]  # fmt: skip


@each_row(CASES)
def test_all_refusals_are_one_error(case: tuple[dict[str, Any], dict[str, Any], list[str]]) -> None:
    changed, options, expected = case
    with pytest.raises(st.LaunchError) as caught:
        st.launch(scaled, **{"grid": 1, "block": 8, "args": arguments(**changed), **options})
    lines = str(caught.value).split("\n")
    assert len(lines) == len(expected), lines
    assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True)), lines


def test_missing_arguments_do_not_hide_others() -> None:
    with pytest.raises(st.LaunchError, match=r"^scaled needs n\na is f32: a number is expected, not 'x'$"):
        st.launch(scaled, grid=1, block=8, args={k: v for k, v in arguments(a="x").items() if k != "n"})


def test_errors_of_the_compilation_are_added() -> None:
    args = {"x": np.ones((8, 2)), "y": np.ones(8), "out": st.empty((8, 2), st.f32)}
    with pytest.raises(st.LaunchError) as caught:
        st.launch(mixed, grid=1, block=8, args=args)
    refusal, error = str(caught.value).split("\n")[:2]
    assert refusal.startswith("x is Global[f32]") and error.endswith("+ of f32 and f64: nothing is converted silently")
    with pytest.raises(st.CompileError):
        st.launch(mixed, grid=1, block=8, args={**args, "x": np.ones((8, 2), np.float32)})
