"""Barriers in shared memory that count arrivals of threads and bytes of asynchronous copies, and bulk copies: `mbarrier`, `cp.async.bulk`.

A barrier is an element of a shared array of u64. Its phases have the parities 0, 1, 0, ... A phase is complete when its arrivals have
arrived and its bytes have been copied; then the next one begins. An arrival is a release, a successful wait an acquire, for the block.
Wait in a loop: `while not st.mbarrier_try_wait_parity(barriers, i, parity): pass`. Needs compute capability 8.0, or 9.0 for bytes,
for `try_wait` and for several arrivals at once.
"""

from typing import Any

from .forms import AsyncWaitForm, BulkCopyForm, BulkReduction, EffectForm, MbarrierForm, TensorCopyForm
from .hints import Array, TensorMap
from .intrinsics import intrinsic


@intrinsic(MbarrierForm(None))
def mbarrier_init(barriers: Array[int], index: int, count: int) -> None:
    """Make barriers[index] a barrier with `count` arrivals a phase, 1 to 2^20 - 1. Other threads use it after a barrier of the block."""


@intrinsic(MbarrierForm(None))
def mbarrier_inval(barriers: Array[int], index: int) -> None:
    """End the use of barriers[index] as a barrier."""


@intrinsic(MbarrierForm("mbarrier_arrive"))
def mbarrier_arrive(barriers: Array[int], index: int, count: int = 1) -> int:
    """Arrive `count` times; return the state of the phase, of u64."""


@intrinsic(MbarrierForm("mbarrier_arrive_expect_tx"))
def mbarrier_arrive_expect_tx(barriers: Array[int], index: int, bytes: int) -> int:
    """Expect `bytes` more of the phase, then arrive; return the state of the phase, of u64."""


@intrinsic(MbarrierForm("mbarrier_expect_tx"))
def mbarrier_expect_tx(barriers: Array[int], index: int, bytes: int) -> None:
    """Expect `bytes` more of the phase, fewer than 2^20."""


@intrinsic(MbarrierForm("mbarrier_complete_tx"))
def mbarrier_complete_tx(barriers: Array[int], index: int, bytes: int) -> None:
    """Complete `bytes` of the phase, as a copy does."""


@intrinsic(MbarrierForm("mbarrier_test_wait"))
def mbarrier_test_wait(barriers: Array[int], index: int, state: int) -> bool:
    """Whether the phase of a state is complete."""


@intrinsic(MbarrierForm("mbarrier_test_wait_parity"))
def mbarrier_test_wait_parity(barriers: Array[int], index: int, parity: int) -> bool:
    """Whether the phase with a parity is complete: the present one, or the one before it."""


@intrinsic(MbarrierForm("mbarrier_try_wait_parity"))
def mbarrier_try_wait_parity(barriers: Array[int], index: int, parity: int) -> bool:
    """As `mbarrier_test_wait_parity`; a GPU suspends the thread for a time before it returns False."""


@intrinsic(BulkCopyForm())
def bulk_copy(
    shared: Array[Any],
    i: int | tuple[int, ...],
    source: Array[Any],
    j: int | tuple[int, ...],
    bytes: int,
    barriers: Array[int],
    index: int,
) -> None:
    """Copy `bytes` from source[j] on in global memory to shared[i] on, asynchronously: `cp.async.bulk`.

    The copy completes its bytes of the phase of barriers[index], and is visible to threads that have waited for the phase. The two
    places and `bytes` are multiples of 16 bytes. Each thread that calls it copies. Needs compute capability 9.0.
    """


@intrinsic(BulkCopyForm(stores=True))
def bulk_store(
    target: Array[Any],
    i: int | tuple[int, ...],
    shared: Array[Any],
    j: int | tuple[int, ...],
    bytes: int,
    reduce: BulkReduction | None = None,
) -> None:
    """Copy `bytes` from shared[j] on to target[i] on in global memory, asynchronously: `cp.async.bulk` with a group.

    Writes of threads are before an `st.fence_async` of theirs, and a barrier if another thread copies. Shared memory is unchanged until
    a `bulk_wait_read` of the thread. The two places and `bytes` are multiples of 16 bytes. Needs compute capability 9.0.

    reduce: combine each element with that of the target by a relaxed atomic operation of the device: `cp.reduce.async.bulk`. "add" of
    i32, u32, u64, f16, bf16, f32 and f64; "min" and "max" of i32, u32, i64, u64, f16 and bf16; "and", "or" and "xor" of the integers;
    "inc" and "dec" of u32, with the element in shared memory as limit.
    """


@intrinsic(TensorCopyForm())
def tensor_copy(
    shared: Array[Any],
    i: int | tuple[int, ...],
    tensor: TensorMap[Any],
    coordinates: int | tuple[int, ...],
    barriers: Array[int],
    index: int,
) -> None:
    """Copy the box of a tensor map to shared[i] on, asynchronously: `cp.async.bulk.tensor`.

    coordinates: of the first element of the box by axis of the tensor, also negative; the last is at a multiple of 16 bytes. Elements
    beyond the tensor are filled. The copy completes the bytes of the box of the phase of barriers[index], as `bulk_copy` does. shared[i]
    is at a multiple of 128 bytes. Each thread that calls it copies. Needs compute capability 9.0.
    """


@intrinsic(TensorCopyForm(stores=True))
def tensor_store(
    tensor: TensorMap[Any],
    coordinates: int | tuple[int, ...],
    shared: Array[Any],
    j: int | tuple[int, ...],
    reduce: BulkReduction | None = None,
) -> None:
    """Copy shared[j] on to the box of a tensor map, asynchronously: `cp.async.bulk.tensor` with a group of `bulk_commit`.

    Coordinates are not negative; elements beyond the end of the tensor are not written. Orders and addresses are those of `bulk_store`
    and `tensor_copy`. Needs compute capability 9.0.

    reduce: as in `bulk_store`, without f64, and without the logical operations of i64, at which an H200 ends the kernel:
    `cp.reduce.async.bulk.tensor`.
    """


@intrinsic(EffectForm("AsyncOrder", mode="bulk_commit"))
def bulk_commit() -> None:
    """Commit the thread's `bulk_store` since the last `bulk_commit` as a group. Needs compute capability 9.0."""


@intrinsic(AsyncWaitForm("bulk_wait"))
def bulk_wait(pending: int = 0) -> None:
    """Wait until at most the last `pending` groups of `bulk_store`, 0 to 8, are incomplete. Needs compute capability 9.0."""


@intrinsic(AsyncWaitForm("bulk_wait_read"))
def bulk_wait_read(pending: int = 0) -> None:
    """As `bulk_wait`, until the groups have read shared memory. Needs compute capability 9.0."""


__all__ = [
    "bulk_commit", "bulk_copy", "bulk_store", "bulk_wait", "bulk_wait_read",
    "mbarrier_arrive", "mbarrier_arrive_expect_tx", "mbarrier_complete_tx", "mbarrier_expect_tx", "mbarrier_init", "mbarrier_inval",
    "mbarrier_test_wait", "mbarrier_test_wait_parity", "mbarrier_try_wait_parity", "tensor_copy", "tensor_store",
]  # fmt: skip
