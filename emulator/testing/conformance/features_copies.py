"""Feature kernels of barriers in shared memory, bulk copies and copies of boxes of tensors. See features.py."""

import numpy as np
import simtbed as st
from simtbed import Global, TensorMap, f16, f32, i32, u32

from ...runtime.arrays import zeros
from ...runtime.tensor_maps import tensor_map
from .feature import feature, out


@feature([sum(range(32)) * (k + 1) + x for k in range(4) for x in range(32)], block=64, out=out(128))
@st.kernel
def phases_of_barriers(out: Global[i32]) -> None:
    """Warp 0 fills a buffer four times; warp 1 reads it. No warp waits for a later one."""
    barriers = st.shared(st.u64, 2)
    buffer = st.shared(i32, 32)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 33)
        st.mbarrier_init(barriers, 1, 32)
    st.sync()
    for k in range(4):
        if st.warp == 0:
            if k > 0:
                while not st.mbarrier_try_wait_parity(barriers, 1, (k + 1) % 2):
                    pass
            buffer[st.lane] = st.lane * (k + 1)
            st.mbarrier_arrive(barriers, 0)
            if st.lane == 0:
                st.mbarrier_expect_tx(barriers, 0, 8)
                st.mbarrier_arrive_expect_tx(barriers, 0, 8)
                st.mbarrier_complete_tx(barriers, 0, 16)
        else:
            while not st.mbarrier_test_wait_parity(barriers, 0, k % 2):
                pass
            total = st.lane
            for i in range(32):
                total += buffer[i]
            out[32 * k + st.lane] = total
            st.mbarrier_arrive(barriers, 1)
        st.sync()
    if st.thread.x == 0:
        st.mbarrier_inval(barriers, 0)
        st.mbarrier_init(barriers, 0, 64)
    st.sync()
    state = st.mbarrier_arrive(barriers, 0)
    st.sync()
    while not st.mbarrier_test_wait(barriers, 0, state):
        pass


@feature(
    [float(256 * k + 255 - i) for k in range(2) for i in range(256)],
    block=64,
    x=np.arange(512, dtype=np.float32),
    n=512,
    out=out(512, "f32"),
)
@st.kernel
def bulk_copies(x: Global[f32], n: i32, out: Global[f32]) -> None:
    """Each phase has two copies of n bytes."""
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 2, 128)
    t = st.thread.x
    if t == 0:
        st.mbarrier_init(barriers, 0, 1)
        st.fence_async()
    st.sync()
    for k in range(2):
        if t == 0:
            st.mbarrier_arrive_expect_tx(barriers, 0, 2 * n)
            st.bulk_copy(buffer, (0, 0), x, 256 * k, n, barriers, 0)
            st.bulk_copy(buffer, (1, 0), x, 256 * k + 128, n, barriers, 0)
        while not st.mbarrier_try_wait_parity(barriers, 0, k):
            pass
        for i in range(t, 256, 64):
            out[256 * k + i] = buffer[1 - i // 128, 127 - i % 128]
        st.sync()


@feature(
    [float((64 * k + i) * 2) for k in range(4) for i in range(64)],
    block=64,
    x=np.arange(256, dtype=np.float32),
    out=out(256, "f32"),
)
@st.kernel
def bulk_stores(x: Global[f32], out: Global[f32]) -> None:
    """Two buffers; a copy reads one while threads fill the other."""
    buffer = st.shared(f32, 2, 64)
    t = st.thread.x
    for k in range(4):
        if t == 0:
            st.bulk_wait_read(1)
        st.sync()
        buffer[k % 2, t] = 2 * x[64 * k + t]
        st.fence_async()
        st.sync()
        if t == 0:
            st.bulk_store(out, 64 * k, buffer, (k % 2, 0), 256)
            st.bulk_commit()
    st.bulk_wait()


_TENSOR = np.arange(10 * 64, dtype=np.float16).reshape(10, 64) % 97


@feature(
    [0.0 if i < 2 or j < 8 else float(_TENSOR[i - 2, j - 8]) for i in range(8) for j in range(64)],
    block=64,
    x=tensor_map(_TENSOR, box=(8, 64), swizzle=128),
    out=out(512, "f16"),
)
@st.kernel
def tensor_copies(x: TensorMap[f16], out: Global[f16]) -> None:
    """A box with a swizzle that begins before the tensor."""
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f16, 8, 64)
    t = st.thread.x
    if t == 0:
        st.mbarrier_init(barriers, 0, 1)
        st.fence_async()
    st.sync()
    if t == 0:
        st.mbarrier_arrive_expect_tx(barriers, 0, 1024)
        st.tensor_copy(buffer, (0, 0), x, (-2, -8), barriers, 0)
    while not st.mbarrier_try_wait_parity(barriers, 0, 0):
        pass
    for i in range(8):
        out[64 * i + t] = buffer[i, (t // 8 ^ i) * 8 + t % 8]


@feature(
    [[[100 * z + 32 * y + x if z and y > 1 else 0 for x in range(32)] for y in range(6)] for z in range(3)],
    out=tensor_map(zeros((3, 6, 32), "i32"), box=(4, 8, 32)),
)
@st.kernel
def tensor_stores(out: TensorMap[i32]) -> None:
    """A box of three dimensions that ends beyond the tensor."""
    buffer = st.shared(i32, 4, 8, 32)
    for z in range(4):
        for y in range(8):
            buffer[z, y, st.lane] = 100 * (z + 1) + 32 * (y + 2) + st.lane
    st.fence_async()
    st.sync()
    if st.lane == 0:
        st.tensor_store(out, (1, 2, 0), buffer, (0, 0, 0))
        st.bulk_commit()
        st.bulk_wait()


@feature([float(13 * i + 300) for i in range(64)], block=64, out=np.arange(0, 640, 10, dtype=np.float32))
@st.kernel
def bulk_reductions(out: Global[f32]) -> None:
    """Two threads add a section, one of them twice."""
    buffer = st.shared(f32, 64)
    buffer[st.thread.x] = f32(st.thread.x + 100)
    st.fence_async()
    st.sync()
    if st.thread.x % 32 == 0:
        st.bulk_store(out, 0, buffer, 0, 256, reduce="add")
        if st.thread.x == 0:
            st.bulk_store(out, 0, buffer, 0, 256, reduce="add")
        st.bulk_commit()
    st.bulk_wait()


_COUNTS = np.arange(48, dtype=np.uint32).reshape(2, 24) % 14


@feature(
    [[max(a, b) if y == 0 else (a + 1) * (a < b) for a, b in zip(_COUNTS[y].tolist(), range(5, 29), strict=True)] for y in range(2)],
    out=tensor_map(_COUNTS, box=(1, 32)),
)  # fmt: skip
@st.kernel
def tensor_reductions(out: TensorMap[u32]) -> None:
    """A maximum, and an increment up to a limit, of boxes that end beyond the tensor."""
    buffer = st.shared(u32, 32)
    buffer[st.lane] = u32(st.lane + 5)
    st.fence_async()
    st.sync()
    if st.lane == 0:
        st.tensor_store(out, (0, 0), buffer, 0, reduce="max")
        st.tensor_store(out, (1, 0), buffer, 0, reduce="inc")
        st.bulk_commit()
        st.bulk_wait()
