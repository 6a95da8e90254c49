"""Feature kernels of atomic operations: kinds, orders and scopes. See features.py."""

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, f32, f64, float2, float4, i32, i64, u32

from .feature import feature, out


@feature([-64, 1000 - 3 * 64], grid=2, out=np.array([0, 1000], np.int32))
@st.kernel
def atomic_subtraction(out: Global[i32]) -> None:
    st.atomic_sub(out, 0, 1)
    st.atomic_sub(out, 1, 3)


@feature([-64.0, -128.0], block=64, out=np.zeros(2))
@st.kernel
def atomic_subtraction_of_other_types(out: Global[f64]) -> None:
    totals = st.shared(i64, 1)
    t = st.thread.x
    if t == 0:
        totals[0] = 0
    st.sync()
    st.atomic_sub(out, 0, 1.0)
    st.atomic_sub(totals, 0, i64(2))
    st.sync()
    if t == 0:
        out[1] = f64(totals[0])


@feature([64 % 10, 10 - 64 % 10, 3 - 63 % 4], block=64, out=np.array([0, 0, 100], np.uint32))
@st.kernel
def atomic_wrapping(out: Global[u32]) -> None:
    st.atomic_inc(out, 0, 9)
    st.atomic_dec(out, 1, 9)
    st.atomic_dec(out, 2, 3)


@feature([32.0, 64.0, 96.0, 128.0], out=np.zeros((1, 4), np.float32))
@st.kernel
def vector_addition(out: Global[float4]) -> None:
    st.atomic_add(out, 0, float4(1.0, 2.0, 3.0, 4.0))


@feature([v for x in range(32) for v in (x + 1.0, 2.0 * x)], out=np.zeros((32, 2), np.float32))
@st.kernel
def vector_addition_with_its_result(out: Global[float2]) -> None:
    old = st.atomic_add(out, st.lane, float2(f32(st.lane), 2.0))
    if st.lane % 2 == 0:
        old = st.atomic_add(out, st.lane, float2(1.0, 2.0 * f32(st.lane) - 2.0))
    else:
        st.atomic_add(out, st.lane, float2(1.0 + old.x, 2.0 * f32(st.lane) - 2.0))


_SMALL = np.array([0, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800001, 0x1000000, 0x80000000], np.uint32).view(np.float32)
_LEFT, _RIGHT = np.repeat(_SMALL, 8), np.tile(_SMALL, 8)


def _flushed(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(np.abs(values) < np.float32(2.0**-126), np.copysign(np.float32(0), values), values)


@feature(
    np.concatenate([_flushed(_flushed(_LEFT) + _flushed(_RIGHT)), _LEFT + _RIGHT]),
    block=64, x=_LEFT, y=_RIGHT, out=np.concatenate([_LEFT, _LEFT]),
)  # fmt: skip
@st.kernel
def sums_of_subnormal_numbers(x: Global[f32], y: Global[f32], out: Global[f32]) -> None:
    """Sums in global memory flush subnormal numbers to zero, those in shared memory do not."""
    own = st.shared(f32, 64)
    t = st.thread.x
    own[t] = x[t]
    st.sync()
    st.atomic_add(out, t, y[t])
    st.atomic_add(own, t, y[t])
    st.sync()
    out[64 + t] = own[t]


@feature([64, 64, 64, 64, 64], grid=2, out=np.zeros(5, np.int32))
@st.kernel
def orders_and_scopes(out: Global[i32]) -> None:
    st.atomic_add(out, 0, 1, scope="system")
    st.atomic_add(out, 1, 1, order="release")
    st.atomic_sub(out, 2, -1, order="acq_rel", scope="system")
    old = st.atomic_add(out, 3, 1, order="acquire")
    st.atomic_max(out, 4, old + 1, order="acq_rel")


@feature([8, 9, 28, 1], block=8, out=out(4))
@st.kernel
def orders_within_a_block(out: Global[i32]) -> None:
    counts = st.shared(i32, 4)
    t = st.thread.x
    if t < 4:
        counts[t] = 0
    st.sync()
    st.atomic_add(counts, 0, 1, scope="block")
    st.atomic_exchange(counts, 1, 9, order="release", scope="block")
    st.atomic_add(counts, 2, t, order="acq_rel", scope="block")
    st.compare_swap(counts, 3, 0, 1, order="acquire", scope="block")
    st.sync()
    if t < 4:
        out[t] = counts[t]


@feature([1, 2, 3, 4, 5, 6, 7], out=np.zeros(7, np.int64))
@st.kernel
def ordered_exchanges(out: Global[i64]) -> None:
    if st.lane == 0:
        st.atomic_exchange(out, 0, 1, order="acquire")
        st.compare_swap(out, 1, 0, 2, order="acquire")
        st.compare_swap(out, 2, 0, 3, order="release")
        st.compare_swap(out, 3, 0, 4, order="acq_rel", scope="system")
        st.compare_swap(out, 4, 0, 5, scope="system")
        st.atomic_exchange(out, 5, 6, scope="block")
        st.atomic_or(out, 6, 7, order="release", scope="block")


@feature([5, 6, 7, 8], out=np.zeros(4, np.int32))
@st.kernel
def ordered_loads_and_stores(out: Global[i32]) -> None:
    flags = st.shared(i32, 2)
    if st.lane == 0:
        st.volatile_store(flags, 0, 4)
        st.store_release(flags, 1, 6, scope="block")
        st.store_release(out, 0, 5)
        st.volatile_store(out, 1, st.volatile_load(flags, 0) + 2)
        seen = st.load_acquire(flags, 1, scope="block")
        st.store_release(out, 2, seen + 1, scope="system")
        out[3] = st.load_acquire(out, 2) + st.volatile_load(out, 0) - 4
