"""Memory accesses on devices with different rules: the jit's counts equal those of `machine`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, devices, f32, f64, float4, i32, i64, int2, u8, u16, u32, u64
from simtbed.machine.device import Device

from tests.language.test_jit import agree

DEVICES: dict[str, Device] = {
    "H200": devices.H200,
    "K40": devices.K40,
    "C2070": devices.C2070,
    "16 banks": replace(devices.H200, banks=16),
    "64 banks": replace(devices.H200, banks=64),
    "8-byte banks": replace(devices.H200, bank_width=8),
    "wide sectors": replace(devices.H200, sector=64, load_sector=128, line=256),
}
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
def everywhere(  # noqa: PLR0913 - a kernel
    index: Global[i32],
    bytes_: Global[u8],
    shorts: Global[u16],
    words: Global[f32],
    doubles: Global[f64],
    quads: Global[float4],
    counts: Global[u32],
    long_counts: Global[i64],
    limit: i32,
    stride: i32,
) -> None:
    b = st.shared(u8, 320)
    h = st.shared(u16, 320)
    w = st.shared(f32, 320)
    d = st.shared(f64, 320)
    q = st.shared(float4, 320)
    hits = st.shared(i32, 320)
    wide_hits = st.shared(u64, 320)
    t = st.thread.x
    for k in range(t, 320, 32):
        b[k] = bytes_[k]
        h[k] = shorts[k]
        w[k] = words[k]
        d[k] = doubles[k]
        q[k] = quads[k]
        hits[k] = k
        wide_hits[k] = u64(k)
    st.sync()
    double, quad = d[index[t]], q[index[t]]  # by all lanes
    for iteration in range(2):
        if iteration == 0 or t % 5 < limit:
            i = index[t]
            wide = i64(i)
            bytes_[i] = b[i] + u8(1)
            shorts[i] = h[i] + shorts[i]
            words[wide] = words[i] + w[wide]
            doubles[i] = doubles[i] * 2 + d[i]
            four = q[i]
            mine = quads[i]
            quads[i] = float4(four.x + mine.w, four.y, mine.z, four.w)
            st.atomic_add(counts, i, 1)
            st.atomic_max(long_counts, i, i64(t))
            st.atomic_add(hits, i, 1)
            st.atomic_xor(wide_hits, i, u64(t))
        if t * stride + 3 < 320:
            w[t * stride + 3] = words[t * stride + 2]
            doubles[319 - t * stride] = d[319 - t * stride]
            words[t * 4] = w[t * 5] + f32(b[t * 3]) + f32(h[t * 2])
    st.sync()
    for k in range(t, 320, 32):
        words[k] = w[k] + f32(hits[k]) + f32(wide_hits[k]) + f32(double) + quad.y


def arguments(pattern: str, stride: int) -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        "index": PATTERNS[pattern].astype(np.int32),
        "bytes_": random.integers(0, 255, 320).astype(np.uint8),
        "shorts": random.integers(0, 999, 320).astype(np.uint16),
        "words": random.random(320, np.float32),
        "doubles": random.random(320),
        "quads": random.random((320, 4), np.float32),
        "counts": np.zeros(320, np.uint32),
        "long_counts": np.zeros(320, np.int64),
        "limit": 3,
        "stride": stride,
    }


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str) -> None:
    """Lanes access common elements, and the last one wins: one warp, so both engines have the same order."""
    agree(everywhere, arguments(pattern, 4), 1, 32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pattern", ["random", "pairs"])
def test_devices(pattern: str, device: str) -> None:
    agree(everywhere, arguments(pattern, 3), 1, 32, device=DEVICES[device])


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
def transposed(x: Global[f32], out: Global[f32], n: i32, PITCH: Const) -> None:
    tile = st.shared(f32, 32 * PITCH)
    column, row = st.thread.x, st.thread.y
    for k in st.unroll(range(4)):
        tile[(row + 8 * k) * PITCH + column] = x[(row + 8 * k) * n + column]
    st.sync()
    for k in st.unroll(range(4)):
        out[(row + 8 * k) * n + column] = tile[column * PITCH + row + 8 * k]
        out[n * n + column * n + row] = f32(k)


@pytest.mark.parametrize("pitch", [32, 33, 34, 36])
def test_strides(pitch: int) -> None:
    x = np.arange(1024, dtype=np.float32)
    agree(transposed, {"x": x, "out": st.empty(2048, "f32"), "n": 32, "PITCH": pitch}, 1, (32, 8))


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
