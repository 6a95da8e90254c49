"""The jit engine against the numpy engine: barriers, early exits of lanes, atomic operations, memory, prints, erroneous kernels."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, Kernel, Shared, f32, f64, float4, i32, i64, int2, u8, u32
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime.engine import Outcome
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import assert_same

from tests.checkers.corpus import PAIRS
from tests.checkers.test_faults import FAULTY, OF_CORPUS


def agree(kernel: Kernel, args: Mapping[str, Any], grid: Any = 1, block: Any = 32, **rest: Any) -> Outcome:
    """Run a kernel on both engines, compare, and return the jit's outcome."""
    request = prepare_request(kernel, grid=grid, block=block, args=args, **rest)
    actual = LlvmEngine().run(request)
    assert_same(actual, NumpyEngine().run(request), request)
    return actual


@pytest.mark.parametrize(
    ("name", "fixed"), [(name, False) for name in (*FAULTY, *OF_CORPUS)] + [(name, True) for name in OF_CORPUS]
)
def test_faults(name: str, fixed: bool) -> None:
    if name in FAULTY:
        kernel, args, grid, block = FAULTY[name]
    else:
        pair = PAIRS[name]
        kernel, args, grid, block = pair.kernel, {**pair.args, "FIXED": fixed}, pair.grid, pair.block
    request = prepare_request(kernel, grid=grid, block=block, args=args, step_limit=1000)
    actual, expected = LlvmEngine().run(request), NumpyEngine().run(request)
    assert_same(actual, expected, request)
    assert bool(actual.faults) != fixed


def test_a_load_outside_gives_zero() -> None:
    """Independent of the array's contents."""
    kernel, args, grid, block = FAULTY["tree_over_the_end"]
    request = prepare_request(kernel, grid=grid, block=block, args=args)
    actual = LlvmEngine().run(request).buffers["out"]
    assert actual.tolist() == [2.0] * 32 + [1.0] * 32


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


PATTERNS: dict[str, Any] = {
    "random": np.random.default_rng(1).integers(0, 300, 64),
    "near": np.random.default_rng(2).integers(0, 20, 64),
    "descending": np.arange(64)[::-1] * 3,
    "columns": np.arange(64) * 32 % 301,
    "pairs": np.arange(64) // 2,
    "same": np.full(64, 7),
    "a row each": np.random.default_rng(3).integers(0, 9, 64) * 32 + np.arange(64) % 32,
}


@st.kernel
def results(
    index: Global[i32], counts: Global[i32], wide: Global[i64], previous: Global[i32], out: Global[i64]
) -> None:
    own = st.shared(i32, 64)
    t = st.thread.x
    own[t] = t
    st.sync()
    i = index[t]
    previous[t] = st.atomic_add(counts, i, 2)
    out[t] = st.atomic_exchange(wide, i, i64(t))
    if t % 3 != 0:
        previous[t] += st.atomic_min(own, i % 64, t // 2)
        out[t] += i64(st.compare_swap(own, i % 64, t, -t))
        previous[t] += i32(st.compare_swap(wide, i, i64(t), i64(-1)))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_results_of_atomics(pattern: str) -> None:
    args = {
        "index": PATTERNS[pattern].astype(np.int32),
        "counts": np.zeros(320, np.int32),
        "wide": np.zeros(320, np.int64),
    }
    agree(results, {**args, "previous": st.empty(64, "i32"), "out": st.empty(64, "i64")}, 2, 64)


@st.kernel
def own_memory(x: Global[i32], out: Global[i32]) -> None:
    pairs = st.local(int2, 5)
    flags = st.local(u8, 8)
    t = st.thread.x
    for k in range(5):
        pairs[(k + t) % 5] = int2(x[t] + k, k)
    flags[t % 8] = u8(x[t] & 255)
    total = 0
    for k in range(8):
        total += i32(flags[k])
    chosen = pairs[t % 5]
    out[t] = total + chosen.x * 3 + chosen.y + pairs[2].x


def test_local_memory() -> None:
    agree(own_memory, {"x": np.arange(70, dtype=np.int32) * 7, "out": st.empty(70, "i32")}, 2, 70)


@st.kernel
def strays(x: Global[f32], out: Global[f32], quads: Global[float4], at: Global[i64], sums: Global[i32]) -> None:
    table = st.constant(f32, (0.0, 2.0, 3.0))
    own = st.local(f32, 2)
    t = st.thread.x
    far = at[t]
    for iteration in range(2):
        if t % 2 == iteration:
            v = quads[far]
            out[t + iteration * 64] = v.y + x[t - 2]
            own[t % 3] = table[t % 4]
            st.atomic_add(sums, i32(far), 1)
    out[100] = own[0]
    out[t] += x[u32(t) - u32(1)] + table[t % 4]


def test_outside() -> None:
    at = np.array([0, 5, 2**40, -1, -(2**62), 3, 15, 16] * 5, np.int64)
    args = {"x": np.zeros(38, np.float32), "out": st.empty(41, "f32"), "quads": np.zeros((16, 4), np.float32), "at": at}
    actual = agree(strays, {**args, "sums": st.empty(9, "i32")}, 1, 40)
    assert {fault.kind for fault in actual.faults} == {"bounds"} and len(actual.faults) > 6
