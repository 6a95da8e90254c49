"""Counting rules: the LLVM code that the jit engine emits counts what the rules of `machine` count.

Properties over random addresses, lane masks, strides and devices. The kernels are compiled once a device: addresses and
masks are data.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import simtbed as st
from hypothesis import given, settings
from hypothesis import strategies as hs
from simtbed import Global, devices, f32, f64, float4, i32, i64, u8, u16, u32, u64
from simtbed.ir.access import AccessKind
from simtbed.machine import transactions
from simtbed.profiler import events
from simtbed.runtime.launching import launch
from simtbed.runtime.prepared import prepare
from simtbed.runtime.request import prepare_request

DEVICES = {
    "H200": devices.H200,
    "K40": devices.K40,
    "C2070": devices.C2070,
    "16 banks": replace(devices.H200, banks=16),
    "64 banks": replace(devices.H200, banks=64),
    "8-byte banks": replace(devices.H200, bank_width=8),
    "wide sectors": replace(devices.H200, sector=64, load_sector=128, line=256),
}
GLOBAL_ELEMENTS, SHARED_ELEMENTS = 4096, 512
COLUMNS = {
    "global": [events.REQUESTS, events.SECTORS, events.LINES],
    "shared": [events.REQUESTS, events.WAVEFRONTS, events.CONFLICTS],
}

lane = hs.one_of(hs.integers(0, 40), hs.integers(0, GLOBAL_ELEMENTS - 1))
any_lanes = hs.one_of(
    hs.lists(lane, min_size=32, max_size=32),
    hs.builds(lambda start, step: [start + step * n for n in range(32)], hs.integers(0, 99), hs.integers(0, 40)),
    hs.permutations(range(32)),
)


@st.kernel
def scattered(  # noqa: PLR0913 - a kernel
    index: Global[i32], active: Global[u8], bytes_: Global[u8], shorts: Global[u16], words: Global[f32],
    doubles: Global[f64], quads: Global[float4], counts: Global[u32], long_counts: Global[i64],
) -> None:  # fmt: skip
    shared_bytes = st.shared(u8, 512)
    shared_shorts = st.shared(u16, 512)
    shared_words = st.shared(f32, 512)
    shared_doubles = st.shared(f64, 512)
    shared_quads = st.shared(float4, 512)
    shared_counts = st.shared(i32, 512)
    shared_long_counts = st.shared(u64, 512)
    t = st.thread.x
    i = index[t]
    j = i & 511
    if active[t] != 0:
        bytes_[i] = shared_bytes[j]
        shared_bytes[j] = bytes_[i]
        shorts[i64(i)] = shared_shorts[i64(j)]
        shared_shorts[i64(j)] = shorts[i64(i)]
        words[i] = shared_words[j]
        shared_words[j] = words[i]
        doubles[i] = shared_doubles[j]
        shared_doubles[j] = doubles[i]
        quads[i] = shared_quads[j]
        shared_quads[j] = quads[i]
        st.atomic_add(counts, i, 1)
        old = st.atomic_max(long_counts, i, i64(t))
        st.atomic_add(shared_counts, j, 1)
        st.atomic_add(shared_counts, j, i32(old))
        st.atomic_xor(shared_long_counts, j, u64(t))
        st.compare_swap(shared_counts, j, 1, t)


@st.kernel
def strided(words: Global[f32], doubles: Global[f64], bytes_: Global[u8], start: i32, stride: i32, limit: i32) -> None:
    shared_words = st.shared(f32, 2048)
    shared_doubles = st.shared(f64, 2048)
    t = st.thread.x
    words[start + stride * t] = shared_words[start + stride * t]
    doubles[start + stride * t] = shared_doubles[start + stride * t]
    if t < limit:
        words[start + stride * t] = shared_words[start + stride * t]
    for constant in (0, 1, 2, 3, 4, 8, 17, 32):
        shared_words[start + constant * t] = words[start + constant * t]
        shared_doubles[start + constant * t] = doubles[start + constant * t]
        bytes_[start + constant * t] = bytes_[start + constant * t] + u8(1)
        words[2000 - constant * t] = shared_words[2000 - constant * t]
        if t < limit:
            doubles[start + constant * t] = shared_doubles[start + constant * t]


def arguments(kernel: Any, **overrides: Any) -> dict[str, Any]:
    """The arguments of a kernel: the overrides, and zeros for other arrays."""
    types = {
        "bytes_": np.uint8, "shorts": np.uint16, "words": np.float32, "doubles": np.float64, "counts": np.uint32,
        "long_counts": np.int64,
    }  # fmt: skip
    names = kernel.function.__annotations__.keys() - {"return"}
    arrays: dict[str, Any] = {name: np.zeros(GLOBAL_ELEMENTS, types[name]) for name in names & types.keys()}
    if "quads" in names:
        arrays["quads"] = np.zeros((GLOBAL_ELEMENTS, 4), np.float32)
    return {**arrays, **overrides}


def expected(site: Any, index: npt.NDArray[np.int32], active: npt.NDArray[np.bool_], device: Any) -> list[int]:
    """The counts of one site by the rules of `machine`."""
    out = np.zeros(3, np.int64)
    index = index % SHARED_ELEMENTS if site.access.space == "shared" else index
    transactions.count(site.access.space, site.access.operation, index[None], active[None], site.size, device, out)
    return out.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVICES)
def test_scattered_accesses(name: str) -> None:
    device = DEVICES[name]

    @given(any_lanes, hs.integers(0, 2**32 - 1) | hs.just(2**32 - 1))
    def agrees(lanes: list[int], mask: int) -> None:
        index = np.array(lanes, np.int32)
        active = (mask >> np.arange(32) & 1).astype(np.bool_)
        args = arguments(scattered, index=index, active=active.astype(np.uint8))
        result = launch(scattered, grid=1, block=32, args=args, device=device, engine="jit")
        sites = prepare(prepare_request(scattered, grid=1, block=32, args=args).program).sites
        accesses = [(n, site) for n, site in enumerate(sites) if isinstance(site.action, AccessKind)]
        assert len(accesses) == 28
        for number, site in accesses:
            if site.array not in ("index", "active"):
                assert result.launch.counts is not None
                counted = result.launch.counts[number, COLUMNS[site.access.space]].tolist()
                assert counted == expected(site, index, active, device), f"{site.span.text}: {site.action}"

    agrees()


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVICES)
def test_strided_accesses(name: str) -> None:
    """Affine indices have code of their own. The numpy engine counts by `machine.transactions`."""
    device = DEVICES[name]

    @settings(max_examples=20)
    @given(hs.integers(0, 200), hs.sampled_from((0, 1, 2, 3, 8, 32)) | hs.integers(0, 50), hs.integers(0, 32))
    def agrees(start: int, stride: int, limit: int) -> None:
        args = arguments(strided, start=start, stride=stride, limit=limit)
        compiled, numpy = (
            launch(strided, grid=1, block=32, args=args, device=device, engine=engine).counts
            for engine in ("jit", "numpy")
        )
        np.testing.assert_array_equal(compiled, numpy)

    agrees()
