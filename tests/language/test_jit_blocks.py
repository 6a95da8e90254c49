"""Barriers inside loops, branches and calls, early exits of lanes, prints, functions: both emulators agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, Kernel, Shared, f32, f64, i32

from tests.language.test_jit import agree

X = np.arange(-200, 200, dtype=np.int32)


@st.kernel
def leaving_a_barrier_loop(x: Global[i32], out: Global[i32], n: i32) -> None:
    cell = st.shared(i32, 96)
    t = st.thread.x
    total = 0
    for iteration in range(n):
        cell[t] = x[t + iteration]
        st.sync()
        if iteration == 5:
            break
        total += cell[(t + 1) % 96]
        st.sync()
        if iteration % 2 == 1:
            continue
        total += 1000
    out[t] = total


@st.kernel
def returning_from_a_barrier_loop(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    width = 64
    while width > 0:
        if t >= width:
            out[t] = -width
            return
        st.sync()
        out[t] = x[t] + width
        width //= 2


@st.kernel
def barriers_under_uniform_branches(x: Global[i32], out: Global[i32], n: i32) -> None:
    cell = st.shared(i32, 64)
    t = st.thread.x
    mine = x[t]
    if n > 3:
        cell[t] = mine
        st.sync()
        mine = cell[63 - t]
    elif n > 1:
        mine = -mine
    else:
        if st.sync_or(mine == 3):
            mine += 7
    out[t] = mine


@st.kernel
def barriers_that_some_miss(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    count = 0
    for iteration in range(3):
        if x[t + 200] > 20 * iteration:
            count += st.sync_count(t % 2 == 0)
    out[t] = count


@st.kernel
def loop_by_warp(out: Global[i32]) -> None:
    t = st.thread.x
    iterations = 0
    while st.sync_or(iterations < st.warp + 1):
        iterations += 1
        if iterations > 2 and st.lane > 4:
            iterations += 1
    out[t] = iterations


@st.device
def exchange(cell: Shared[i32], value: i32, t: i32) -> i32:
    cell[t] = value
    st.sync()
    if t % 3 == 0:
        return cell[(t + 1) % 64]
    st.syncwarp(st.active_mask())
    return -value


@st.kernel
def barrier_in_a_call(x: Global[i32], out: Global[i32]) -> None:
    cell = st.shared(i32, 64)
    t = st.thread.x
    first = exchange(cell, x[t], t)
    st.sync()
    out[t] = first + exchange(cell, t, t)


@st.kernel
def endless_with_barriers(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    iterations = 0
    while x[t] < 0:
        iterations += 1
        st.sync()
        out[t] = iterations
    out[t] = -iterations


@st.kernel
def endless_for_some(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    iterations = 0
    for round in range(2):
        while x[2 * t] < 20:
            iterations += 1
            if iterations > 50 and t % 4 == 1:
                break
        out[t] = iterations + round
    out[t] += 1000


@st.kernel
def says(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    if x[t] % 3 == 0:
        print("thread", t, "of", st.block.x, f32(t) / 3, x[t] > -150)
    st.sync()
    if t == 35:
        print("after the barrier", f64(t) / 7)
    out[t] = 0


@st.kernel
def functions(x: Global[f32], single: Global[f32], double: Global[f64]) -> None:
    t = st.thread.x
    if t < 40:
        value = x[t]
        single[4 * t] = st.exp(value)
        single[4 * t + 1] = st.log(value)
        single[4 * t + 2] = st.log2(value) + st.exp(f32(2))
        single[4 * t + 3] = st.rsqrt(value)
        double[t] = st.exp(f64(value)) + st.log(f64(value))


KERNELS: dict[str, tuple[Kernel, dict[str, Any], int]] = {
    "leaving_a_barrier_loop": (leaving_a_barrier_loop, {"x": X, "out": st.empty(96, "i32"), "n": 9}, 96),
    "returning_from_a_barrier_loop": (returning_from_a_barrier_loop, {"x": X, "out": st.empty(64, "i32")}, 64),
    "barriers_that_some_miss": (barriers_that_some_miss, {"x": X, "out": st.empty(64, "i32")}, 64),
    "loop_by_warp": (loop_by_warp, {"out": st.empty(70, "i32")}, 70),
    "barrier_in_a_call": (barrier_in_a_call, {"x": X, "out": st.empty(64, "i32")}, 64),
    "endless_with_barriers": (endless_with_barriers, {"x": X[180:], "out": st.empty(40, "i32")}, 40),
    "endless_for_some": (endless_for_some, {"x": X[160:], "out": st.empty(64, "i32")}, 64),
    "says": (says, {"x": X, "out": st.empty(40, "i32")}, 40),
    "functions": (
        functions,
        {
            "x": np.geomspace(1e-30, 80, 40, dtype=np.float32),
            "single": st.empty(160, "f32"),
            "double": st.empty(40, "f64"),
        },
        64,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_agreement(name: str) -> None:
    kernel, args, block = KERNELS[name]
    agree(kernel, args, 3, block, step_limit=200)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_branches(n: int) -> None:
    agree(barriers_under_uniform_branches, {"x": X, "out": st.empty(64, "i32"), "n": n}, 2, 64)


def test_cut_off_lanes_end_and_the_others_continue() -> None:
    kernel, args, block = KERNELS["endless_for_some"]
    actual = agree(kernel, args, 1, block, step_limit=200)
    assert [fault.kind for fault in actual.faults] == ["step limit"]
    assert 0 < np.count_nonzero(actual.buffers["out"] >= 1000) < 64


def test_prints() -> None:
    kernel, args, block = KERNELS["says"]
    printed = agree(kernel, args, 2, block).printed
    assert printed[0] == "block (0, 0, 0), thread (2, 0, 0): thread 2 of 0 0.6666667 False" and printed[-1].endswith(
        ": after the barrier 5.0"
    )


@st.kernel
def awkward_names(entry: Global[i32], blocks: Global[i32], limit: i32, alive: i32, größe: i32, v: i32) -> None:
    mask = st.shared(i32, 64)
    counts = st.thread.x
    limit += 2
    v = v * limit + counts
    mask[counts] = v + alive
    st.sync()
    while größe > 0:
        größe -= 1 if counts < 40 else 2
        limit += mask[63 - counts]
    blocks[counts] = limit + v + entry[counts]


def test_parameters_are_variables_and_names_are_free() -> None:
    args = {"entry": X, "blocks": st.empty(64, "i32"), "limit": 5, "alive": -1, "größe": 7, "v": 3}
    agree(awkward_names, args, 2, 64)


@st.kernel
def one_variable_for_two_loops(x: Global[i32], out: Global[i32], n: i32) -> None:
    t = st.thread.x
    total = 0
    for k in range(t, n, 48):  # lanes leave at different iterations
        total += x[k]
    for k in range(0, n, 40):  # all lanes at once
        total += x[(t + k) % 96]
    out[t] = total


def test_a_loop_all_take_together_after_one_they_do_not() -> None:
    """Its variable is a vector, because of the first loop; its condition is uniform."""
    agree(one_variable_for_two_loops, {"x": X, "out": st.empty(96, "i32"), "n": 130}, block=96)
