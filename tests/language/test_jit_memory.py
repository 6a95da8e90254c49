"""Atomic operations with results, local memory, accesses outside of arrays: both emulators agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, float4, i32, i64, int2, u8, u32

from tests.language.test_jit import agree

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
