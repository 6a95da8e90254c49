"""Feature kernels of clusters of blocks, which access the shared memory of each other. See features.py."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float4, i32, u64

from .feature import feature, out

VALUES = (np.arange(700) * 2654435761 >> 7) % 96


@feature(
    np.bincount(VALUES, minlength=96), grid=8, block=64, cluster=4, x=VALUES.astype(np.int32), out=np.zeros(96, np.int32), BINS=24
)  # fmt: skip
@st.kernel
def histogram_of_a_cluster(x: Global[i32], out: Global[i32], BINS: Const) -> None:
    """Each block of a cluster has a part of the bins."""
    bins = st.shared(i32, BINS)
    t = st.thread.x
    if t < BINS:
        bins[t] = 0
    st.cluster_sync()
    i = st.block.x * 64 + t
    while i < len(x):
        st.atomic_add(st.map_shared_rank(bins, x[i] // BINS), x[i] % BINS, 1)
        i += st.grid_dim.x * 64
    st.cluster_sync()
    if t < BINS:
        st.atomic_add(out, st.cluster_rank * BINS + t, bins[t])


@feature(
    [
        v
        for z, y, x in np.ndindex(2, 2, 4)
        for v in (
            x // 2 + 10 * z + 100 * 2 + 1000 * 2,
            x % 2 + 10 * y + 100 * (x % 2 + 2 * y) + 1000 * 4 + 10000 * 2 + 100000,
        )
    ],
    grid=(4, 2, 2),
    block=1,
    cluster=(2, 2),
    out=out(32),
)
@st.kernel
def indices_of_clusters(out: Global[i32]) -> None:
    b = st.block.x + st.grid_dim.x * (st.block.y + st.grid_dim.y * st.block.z)
    out[2 * b] = st.cluster_index.x + 10 * st.cluster_index.z + 100 * st.grid_clusters.x + 1000 * st.grid_clusters.z
    own = st.cluster_block.x + 10 * st.cluster_block.y + 100 * st.cluster_rank + 1000 * st.cluster_size
    out[2 * b + 1] = own + 10000 * st.cluster_dim.y + 100000 * st.cluster_dim.z


@feature(
    [40 * ((b + 5) % 3) + t + 1000 * (t % 3) for b in range(6) for t in range(40)],
    grid=6,
    block=40,
    cluster=3,
    out=out(240),
)
@st.kernel
def rotation_of_a_cluster(out: Global[i32]) -> None:
    """Each turn moves the elements by one block, in a loop with barriers of the cluster. At the end lanes read from several blocks."""
    own = st.shared(i32, 40)
    t = st.thread.x
    own[t] = 40 * st.cluster_rank + t
    for _ in range(5):
        st.cluster_arrive()
        right = (st.cluster_rank + 1) % st.cluster_size
        st.cluster_wait()
        moved = st.map_shared_rank(own, right)[t]
        st.cluster_sync()
        own[t] = moved
    mine = own[t]
    own[t] = st.cluster_rank
    st.cluster_sync()
    out[st.block.x * 40 + t] = mine + 1000 * st.map_shared_rank(own, t % 3)[t]
    st.cluster_sync()


@feature([4 * t + 100 * ((b ^ 1) % 2) + t for b in range(4) for t in range(32)], grid=4, cluster=2, out=out(128))
@st.kernel
def exchange_of_vectors(out: Global[i32]) -> None:
    """A block stores four floats at a time in the memory of another one."""
    received = st.shared(float4, 32)
    t = st.thread.x
    other = st.map_shared_rank(received, st.cluster_rank ^ 1)
    st.cluster_sync()
    x = f32(t)
    other[t] = float4(x, x, x, x + f32(100 * st.cluster_rank))
    st.cluster_sync()
    v = received[t]
    out[st.block.x * 32 + t] = i32(v.x + v.y + v.z + v.w) + t


@feature([100 + t * (b % 4) for b in range(8) for t in range(32)], grid=8, cluster=4, out=out(256))
@st.kernel
def chain_of_barriers(out: Global[i32]) -> None:
    """Each block waits for data and an arrival of the block with the rank before."""
    bar = st.shared(u64, 1)
    data = st.shared(i32, 32)
    t = st.thread.x
    rank = st.cluster_rank
    if t == 0:
        st.mbarrier_init(bar, 0, 1)
    st.cluster_sync()
    if rank == 0:
        data[t] = 100
    else:
        while not st.mbarrier_try_wait_parity(bar, 0, 0):
            pass
    v = data[t]
    if rank + 1 < st.cluster_size:
        st.map_shared_rank(data, rank + 1)[t] = v + t
        st.syncwarp()
        if t == 0:
            st.mbarrier_arrive(st.map_shared_rank(bar, rank + 1), 0)
    st.cluster_sync()
    out[st.block.x * 32 + t] = v


@feature([1, 0, 1, 0], grid=4, block=1, cluster=2, out=np.zeros(4, np.int32))
@st.kernel
def block_that_returns_early(out: Global[i32]) -> None:
    if st.cluster_rank == 1:
        return
    st.cluster_sync()
    out[st.block.x] = 1


@feature([(32 * b + (t * 5) % 32) for b in range(2) for t in range(32)], grid=2, out=out(64))
@st.kernel
def cluster_of_one_block(out: Global[i32]) -> None:
    """Without clusters in the launch, each block is a cluster."""
    own = st.shared(i32, 32)
    own[st.lane] = st.block.x * 32 + st.lane
    st.cluster_sync()
    out[st.block.x * 32 + st.lane] = st.map_shared_rank(own, st.cluster_size - 1)[st.lane * 5 % 32]
