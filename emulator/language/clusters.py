"""Clusters of blocks: their indices and barriers, and the shared arrays of the other blocks of a cluster (distributed shared memory).

A launch with `cluster=(x, y, z)` divides its grid into clusters of x * y * z blocks; in any other launch each block is a cluster. The
barrier and the access to another block need compute capability 9.0. A block may access the memory of another one after that block has
started and before it ends: put a barrier of the cluster before the first access and after the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .forms import EffectForm, MappedSharedForm
from .hints import Shared
from .intrinsics import Index, Index3, intrinsic

T = TypeVar("T")

cluster_index = Index3("cluster_index")
"""Index of the cluster in the grid: `%clusterid`."""
cluster_block = Index3("cluster_block")
"""Index of the block in its cluster: `%cluster_ctaid`."""
cluster_dim = Index3("cluster_dim")
"""Blocks of a cluster, by axis: `%cluster_nctaid`."""
grid_clusters = Index3("grid_clusters")
"""Clusters of the grid, by axis: `%nclusterid`."""

if TYPE_CHECKING:
    cluster_rank: int
    """Rank of the block in its cluster, x first: `%cluster_ctarank`."""
    cluster_size: int
    """Number of blocks of a cluster: `%cluster_nctarank`."""
else:
    cluster_rank, cluster_size = Index("cluster_rank"), Index("cluster_size")


@intrinsic(EffectForm("Barrier", mode="cluster"))
def cluster_sync() -> None:
    """Barrier and memory fence of the cluster: `cluster_arrive` and `cluster_wait`. Every thread that has not returned must reach it."""


@intrinsic(EffectForm("Barrier", mode="cluster_arrive"))
def cluster_arrive() -> None:
    """Arrive at the barrier of the cluster, and release the accesses of the thread so far. A `cluster_wait` follows."""


@intrinsic(EffectForm("Barrier", mode="cluster_wait"))
def cluster_wait() -> None:
    """Wait until every thread of the cluster has arrived or returned, and acquire their accesses before the arrival."""


@intrinsic(MappedSharedForm())
def map_shared_rank(array: Shared[T], rank: int) -> Shared[T]:
    """Shared array `array` of the block of a rank in this cluster: for loads, stores, atomic operations, and arrivals at barriers."""


__all__ = [
    "cluster_arrive", "cluster_block", "cluster_dim", "cluster_index", "cluster_rank", "cluster_size", "cluster_sync",
    "cluster_wait", "grid_clusters", "map_shared_rank",
]  # fmt: skip
