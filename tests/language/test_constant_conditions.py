"""Conditions on constants: the arm that is not taken is not read, in conditional expressions as in `if`."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Global, i32
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.outcomes import engine_of

EXPRESSIONS = (
    "0 if k == 0 else r[k - 1]", "r[k + 1] if k < 3 else 0", "0 if k == 0 else (r[k + 1] if k < 3 else r[k - 1])",
    "(0 if k == 0 else r[k - 1]) + (r[k + 1] if k < 3 else 0)",
    "r[max(k - 1, 0)] + r[min(k + 1, 3)] + r[k - 1 if k > 0 else 0]", "12 // k if k != 0 else 7",
    "r[k - 1] if bool(k) else 0", "r[k - 1] if k in (1, 2, 3) else 0", "0 if k not in (1, 2, 3) else r[k - 1]",
    "0 if k == 0 else (w := r[k - 1]) + w", "0 if k == 0 else min(r[k - 1], x[k - 1])",
    "0 if k == 0 or x[0] < 0 else r[k - 1]", "r[k - 1] if k > 0 and x[lane] > 0 else 0",
    "5 if ZERO == 0 else r[ZERO - 1]",
)  # fmt: skip
CONDITIONS = (
    "k > 0 and r[k - 1] > 2", "k == 0 or r[k - 1] > 2", "not (k == 0 or r[k - 1] > 2)",
    "k > 0 and r[k - 1] > 2 and k < 3 and r[k + 1] > 0", "k > 0 and x[r[k - 1]] > 2 and x[r[k - 1] + 1] > 0",
    "x[0] >= 0 and k > 0 and x[r[k - 1]] > 2", "k == 0 or x[r[k - 1]] > 2 or x[r[k - 1] + 1] > 0",
    "0 < k <= r[k - 1]", "0 < k < x[r[k - 1]] < 100", "ZERO > 0 and r[ZERO - 1] > 0",
)  # fmt: skip
STATEMENTS = """
    for k in unroll(range(4)):
        assert k == 0 or r[k - 1] > 0
        while k > 3:
            s += r[k + 1]
        while k > 3 and x[r[k + 1]] > 0:
            s += r[k + 1]
        for j in range(k):
            s += j * r[k - 1]
        inside = k > 0 and r[k - 1] > 3
        if inside:
            s += r[k - 1]
        if k == 0:
            s += 1
        elif r[k - 1] > 3:
            s += 2
        elif k == 3:
            s += 4
        else:
            s += r[k + 1]
    while ZERO > 0:
        s += r[ZERO - 1]
    else:
        s += 1
"""


def body() -> str:
    lines = ["    for k in unroll(range(4)):"]
    lines += [f"        s = s * 3 % 1000 + ({expression})" for expression in EXPRESSIONS]
    for condition in CONDITIONS:
        lines += [f"        if {condition}:", "            s = s * 3 % 1000 + 1"]
    return "\n".join(lines) + STATEMENTS


def test_only_the_arm_taken_is_read() -> None:
    x = (np.arange(64) * 7 % 13).astype(np.int32)
    space: dict[str, Any] = {"unroll": iter, "ZERO": 0, "x": x.tolist()}
    exec(f"def plain(lane):\n    s, r = 0, [lane + q + 1 for q in range(4)]\n{body()}\n    return s\n", space)
    head = """def chosen(out: st.Global[i32], x: st.Global[i32], ZERO: st.Const) -> None:
    lane, s = st.lane, 0
    r = st.registers(i32, 4)
    for q in st.unroll(range(4)):
        r[q] = lane + q + 1
"""
    kernel = st.kernel(source=f"{head}{body().replace('unroll(', 'st.unroll(')}\n    out[st.lane] = s\n")
    args = {"out": st.empty(32, i32), "x": x, "ZERO": 0}
    request = prepare_request(kernel, grid=1, block=32, args=args)
    results = [engine_of(engine).run(request) for engine in ("numpy", "jit", "python")]
    assert [result.faults for result in results] == [[], [], []]
    expected = [space["plain"](lane) for lane in range(32)]
    outputs = [result.buffers["out"] for result in results]
    assert [o.tolist() for o in outputs] == [expected] * 3


@st.kernel
def chain(out: Global[i32], x: Global[i32], n: i32) -> None:
    out[st.lane] = 1 if 0 < n < x[n] < 100 else 0


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_a_chain_ends_at_the_first_false_comparison(engine: EngineName) -> None:
    for n, expected in ((0, 0), (1, 1), (2, 0)):
        args = {"out": st.empty(32, i32), "x": np.array([9, 7, 0], np.int32), "n": n}
        assert st.launch(chain, grid=1, block=32, args=args, engine=engine, check="bounds").out[0] == expected


@st.kernel
def read_at_run_time(out: Global[i32], n: i32) -> None:
    r = st.registers(i32, 2)
    for k in st.unroll(range(2)):
        r[k] = k
    for k in st.unroll(range(2)):
        out[k] = r[k - 1] if n > 0 else 0


def test_both_arms_of_a_run_time_condition_are_read() -> None:
    with pytest.raises(CompileError, match="index -1, but r has 2 registers"):
        st.launch(read_at_run_time, grid=1, block=32, args={"out": st.empty(2, i32), "n": 0})
