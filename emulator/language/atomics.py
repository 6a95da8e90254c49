"""Atomic operations, and loads and stores that may race with other threads.

An atomic operation returns the old value.

`order`: "relaxed", or "acquire", "release" or "acq_rel", which need compute capability 7.0. `scope`: the threads for
which the operation is atomic and ordered: of the "block", of the "device" or of the whole "system".
"""

from __future__ import annotations

from typing import TypeVar

from .forms import AtomicUpdateForm, CompareAndSwapForm, MemoryOrder, MemoryScope, OrderedLoadForm, OrderedStoreForm
from .hints import Array, on_host
from .intrinsics import intrinsic

T = TypeVar("T")


@intrinsic(AtomicUpdateForm("add"))
def atomic_add(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] += value; component by component for float vectors; float2 and float4 in global memory need compute capability 9.0."""
    on_host("atomic_add()")


@intrinsic(AtomicUpdateForm("sub"))
def atomic_sub(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] -= value."""
    on_host("atomic_sub()")


@intrinsic(AtomicUpdateForm("inc"))
def atomic_inc(array: Array[int], index: int | tuple[int, ...], limit: int, scope: MemoryScope = "device") -> int:
    """array[index] = array[index] + 1, or 0 where it is `limit` or more, for u32."""
    on_host("atomic_inc()")


@intrinsic(AtomicUpdateForm("dec"))
def atomic_dec(array: Array[int], index: int | tuple[int, ...], limit: int, scope: MemoryScope = "device") -> int:
    """array[index] = array[index] - 1, or `limit` where it is 0 or more than `limit`, for u32."""
    on_host("atomic_dec()")


@intrinsic(AtomicUpdateForm("min"))
def atomic_min(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] = min(array[index], value), for integers."""
    on_host("atomic_min()")


@intrinsic(AtomicUpdateForm("max"))
def atomic_max(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] = max(array[index], value), for integers."""
    on_host("atomic_max()")


@intrinsic(AtomicUpdateForm("and"))
def atomic_and(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] &= value."""
    on_host("atomic_and()")


@intrinsic(AtomicUpdateForm("or"))
def atomic_or(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] |= value."""
    on_host("atomic_or()")


@intrinsic(AtomicUpdateForm("xor"))
def atomic_xor(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] ^= value."""
    on_host("atomic_xor()")


@intrinsic(AtomicUpdateForm("exchange"))
def atomic_exchange(
    array: Array[T],
    index: int | tuple[int, ...],
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] = value."""
    on_host("atomic_exchange()")


@intrinsic(CompareAndSwapForm())
def compare_swap(
    array: Array[T],
    index: int | tuple[int, ...],
    expected: T,
    value: T,
    order: MemoryOrder = "relaxed",
    scope: MemoryScope = "device",
) -> T:
    """array[index] = value where it equals `expected`."""
    on_host("compare_swap()")


@intrinsic(OrderedLoadForm("acquire"))
def load_acquire(array: Array[T], index: int, scope: MemoryScope = "device") -> T:
    """Load array[index] with acquire order: the stores before the matching release are visible. Needs compute capability 7.0."""
    on_host("load_acquire()")


@intrinsic(OrderedStoreForm("release"))
def store_release(array: Array[T], index: int, value: T, scope: MemoryScope = "device") -> None:
    """Store array[index] = value with release order, after all earlier accesses of this thread. Needs compute capability 7.0."""
    on_host("store_release()")


@intrinsic(OrderedLoadForm("volatile"))
def volatile_load(array: Array[T], index: int) -> T:
    """Load array[index] from memory at each execution, without ordering other accesses."""
    on_host("volatile_load()")


@intrinsic(OrderedStoreForm("volatile"))
def volatile_store(array: Array[T], index: int, value: T) -> None:
    """Store array[index] = value to memory at each execution, without ordering other accesses."""
    on_host("volatile_store()")


__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_dec",
    "atomic_exchange",
    "atomic_inc",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "compare_swap",
    "load_acquire",
    "store_release",
    "volatile_load",
    "volatile_store",
]
