"""Words of the kernel language for asynchronous copies from global to shared memory."""

from __future__ import annotations

from typing import TypeVar

from .forms import AsyncCopy, AsyncWait, Effect
from .hints import Array, on_host
from .intrinsics import intrinsic

T = TypeVar("T")


@intrinsic(AsyncCopy())
def async_copy(shared: Array[T], i: int, source: Array[T], j: int) -> None:
    """shared[i] = source[j], of 4, 8 or 16 bytes, without waiting for it.

    It is there after an `async_wait`, and for other threads after a barrier that follows. Compute capability 8.0.
    """
    on_host("async_copy()")


@intrinsic(Effect("AsyncCommit"))
def async_commit() -> None:
    """The thread's copies since the last `async_commit` are a group."""
    on_host("async_commit()")


@intrinsic(AsyncWait())
def async_wait(pending: int = 0) -> None:
    """Wait until no more than the last `pending` groups of the thread's copies, 0 to 8, may be under way."""
    on_host("async_wait()")


__all__ = ["async_commit", "async_copy", "async_wait"]
