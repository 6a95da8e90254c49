"""Asynchronous copies from global to shared memory."""

from typing import TypeVar

from .forms import AsyncCopyForm, AsyncWaitForm, EffectForm
from .hints import Array
from .intrinsics import intrinsic

T = TypeVar("T")


@intrinsic(AsyncCopyForm())
def async_copy(shared: Array[T], i: int, source: Array[T], j: int) -> None:
    """Copy shared[i] = source[j], of 4, 8 or 16 bytes, asynchronously.

    The element is visible to this thread after an `async_wait`, and to other threads after a later barrier. Needs
    compute capability 8.0.
    """


@intrinsic(EffectForm("AsyncCommit"))
def async_commit() -> None:
    """Commit the thread's copies since the last `async_commit` as a group."""


@intrinsic(AsyncWaitForm())
def async_wait(pending: int = 0) -> None:
    """Wait until at most the last `pending` groups of the thread's copies, 0 to 8, are incomplete."""


__all__ = ["async_commit", "async_copy", "async_wait"]
