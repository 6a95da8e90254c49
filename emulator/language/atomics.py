"""Atomic operations, and loads and stores that may race with other threads.

An atomic operation returns the old value.

`order`: "relaxed", or "acquire", "release" or "acq_rel", which need compute capability 7.0. `scope`: the threads for
which the operation is atomic and ordered: of the "block", of the "device" or of the whole "system".
"""

from typing import TypeAlias, TypeVar

from .forms import AtomicUpdateForm, CompareAndSwapForm, OrderedLoadForm, OrderedStoreForm
from .forms import MemoryOrder as Order
from .forms import MemoryScope as Scope
from .hints import Array
from .intrinsics import intrinsic

T = TypeVar("T")
Index: TypeAlias = int | tuple[int, ...]


@intrinsic(AtomicUpdateForm("add"))
def atomic_add(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] += value; component by component for float vectors; float2 and float4 in global memory need compute capability 9.0."""


@intrinsic(AtomicUpdateForm("sub"))
def atomic_sub(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] -= value."""


@intrinsic(AtomicUpdateForm("inc"))
def atomic_inc(array: Array[int], index: Index, limit: int, scope: Scope = "device") -> int:
    """array[index] = array[index] + 1, or 0 where it is `limit` or more, for u32."""


@intrinsic(AtomicUpdateForm("dec"))
def atomic_dec(array: Array[int], index: Index, limit: int, scope: Scope = "device") -> int:
    """array[index] = array[index] - 1, or `limit` where it is 0 or more than `limit`, for u32."""


@intrinsic(AtomicUpdateForm("min"))
def atomic_min(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] = min(array[index], value), for integers."""


@intrinsic(AtomicUpdateForm("max"))
def atomic_max(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] = max(array[index], value), for integers."""


@intrinsic(AtomicUpdateForm("and"))
def atomic_and(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] &= value."""


@intrinsic(AtomicUpdateForm("or"))
def atomic_or(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] |= value."""


@intrinsic(AtomicUpdateForm("xor"))
def atomic_xor(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] ^= value."""


@intrinsic(AtomicUpdateForm("exchange"))
def atomic_exchange(array: Array[T], index: Index, value: T, order: Order = "relaxed", scope: Scope = "device") -> T:
    """array[index] = value."""


@intrinsic(CompareAndSwapForm())
def compare_swap(
    array: Array[T], index: Index, expected: T, value: T, order: Order = "relaxed", scope: Scope = "device"
) -> T:
    """array[index] = value where it equals `expected`."""


@intrinsic(OrderedLoadForm("acquire"))
def load_acquire(array: Array[T], index: int, scope: Scope = "device") -> T:
    """Load array[index] with acquire order: the stores before the matching release are visible. Needs compute capability 7.0."""


@intrinsic(OrderedStoreForm("release"))
def store_release(array: Array[T], index: int, value: T, scope: Scope = "device") -> None:
    """Store array[index] = value with release order, after all earlier accesses of this thread. Needs compute capability 7.0."""


@intrinsic(OrderedLoadForm("volatile"))
def volatile_load(array: Array[T], index: int) -> T:
    """Load array[index] from memory at each execution, without ordering other accesses."""


@intrinsic(OrderedStoreForm("volatile"))
def volatile_store(array: Array[T], index: int, value: T) -> None:
    """Store array[index] = value to memory at each execution, without ordering other accesses."""


__all__ = [
    "atomic_add", "atomic_and", "atomic_dec", "atomic_exchange", "atomic_inc", "atomic_max", "atomic_min",
    "atomic_or", "atomic_sub", "atomic_xor", "compare_swap", "load_acquire", "store_release", "volatile_load",
    "volatile_store",
]  # fmt: skip
