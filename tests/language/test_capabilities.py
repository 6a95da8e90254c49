"""Words that not every device has are refused where it has not, with their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, LaunchError, devices, f64, float4, i32, u32
from simtbed.runtime.request import prepare_request


@st.kernel
def reduces(out: Global[i32]) -> None:
    out[st.lane] = st.reduce_add(st.lane)


@st.kernel
def matches(out: Global[u32]) -> None:
    out[st.lane], _ = st.match_all(st.lane)


@st.kernel
def multiplies_bytes(out: Global[i32]) -> None:
    out[st.lane] = st.dp4a(st.lane, 3, 4)


@st.kernel
def sleeps(out: Global[i32]) -> None:
    st.nanosleep(20)
    out[st.lane] = 1


@st.kernel
def adds_doubles(out: Global[f64]) -> None:
    st.atomic_add(out, 0, 1.0)


@st.kernel
def adds_vectors(out: Global[float4]) -> None:
    st.atomic_add(out, 0, float4(1.0, 2.0, 3.0, 4.0))


@st.kernel
def releases(out: Global[i32]) -> None:
    st.atomic_add(out, 0, 1, order="release")


@st.kernel
def reaches_the_host(out: Global[i32]) -> None:
    st.atomic_add(out, 0, 1, scope="system")


@st.kernel
def copies(out: Global[i32]) -> None:
    tile = st.shared(i32, 32)
    st.async_copy(tile, st.lane, out, st.lane)
    st.async_wait(0)
    out[st.lane] = tile[st.lane]


@st.kernel
def acquires(out: Global[i32]) -> None:
    out[st.lane] = st.load_acquire(out, 0)


NEEDS: list[tuple[st.Kernel, Any, str, str]] = [
    (reduces, np.int32, r"st\.reduce_add", "8.0"),
    (matches, np.uint32, r"st\.match_all", "7.0"),
    (multiplies_bytes, np.int32, r"st\.dp4a", "6.1"),
    (sleeps, np.int32, r"st\.nanosleep", "7.0"),
    (adds_doubles, np.float64, r"st\.atomic_add on f64", "6.0"),
    (adds_vectors, np.float32, r"st\.atomic_add on float4", "9.0"),
    (releases, np.int32, 'order="release"', "7.0"),
    (copies, np.int32, r"st\.async_copy", "8.0"),
    (acquires, np.int32, r"st\.load_acquire", "7.0"),
    (reaches_the_host, np.int32, 'scope="system"', "6.0"),
]


@pytest.mark.parametrize(("kernel", "type", "word", "capability"), NEEDS, ids=lambda v: getattr(v, "__name__", ""))
def test_older_devices_are_refused(kernel: st.Kernel, type: Any, word: str, capability: str) -> None:
    args = {"out": np.zeros((32, 4) if kernel is adds_vectors else 32, type)}
    prepare_request(kernel, grid=1, block=32, args=args, device=devices.H200)
    message = rf"test_capabilities\.py:\d+: {word} needs compute capability {capability}, K40 has 3.5"
    with pytest.raises(LaunchError, match=message):
        prepare_request(kernel, grid=1, block=32, args=args, device=devices.K40)
