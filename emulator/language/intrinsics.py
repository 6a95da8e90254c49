"""Intrinsics of the kernel language, one row each: typed signature, documentation and form.

The front end reads a call by its form (`frontend/calls.py`). A new intrinsic of an existing form is one row here.
Called by Python, every intrinsic raises HostCallError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from .forms import (
    AllocationForm,
    BitcastForm,
    ConjugateForm,
    EffectForm,
    Form,
    OperationForm,
    ShuffleForm,
    UnrolledRangeForm,
    VoteForm,
)
from .hints import Constant, Local, Registers, Shared, on_host

if TYPE_CHECKING:
    from inspect import Signature

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
FULL_MASK = 0xFFFFFFFF
"""Mask of all lanes of a warp: the default of warp operations."""
WARP_SIZE = 32
"""Threads of a warp on every emulated device."""


@dataclass(frozen=True)
class Intrinsic:
    """One intrinsic: its Python stub and its form."""

    stub: Callable[..., Any]
    form: Form

    @property
    def name(self) -> str:
        return self.stub.__name__

    @cached_property
    def signature(self) -> Signature:
        import inspect  # late: `import simtbed` does not need it

        return inspect.signature(self.stub)


INTRINSICS: dict[Any, Intrinsic] = {}
"""Intrinsics by their stub."""


def intrinsic(form: Form) -> Callable[[F], F]:
    """Return a decorator that registers an intrinsic. A stub has no body: its name raises HostCallError when Python calls it."""

    def enter(stub: F) -> F:
        @wraps(stub)
        def raising(*args: Any, **named: Any) -> NoReturn:
            on_host(f"{stub.__name__}()")

        INTRINSICS[raising] = Intrinsic(raising, form)
        return cast(F, raising)

    return enter


# ------------------------------------------------------------------ indices
class Index3:
    """An index with the axes x, y and z."""

    x: int
    y: int
    z: int

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"st.{self._name}"

    if not TYPE_CHECKING:

        def __getattr__(self, axis: str) -> NoReturn:
            if axis.startswith("__"):
                raise AttributeError(axis)
            on_host(f"{self._name}.{axis}")


thread = Index3("thread")
"""Index of the thread in its block."""
block = Index3("block")
"""Index of the block in the grid."""
block_dim = Index3("block_dim")
"""Threads of a block, by axis."""
grid_dim = Index3("grid_dim")
"""Blocks of the grid, by axis."""


class Index:
    """An index that is a number in kernels and an error on the host."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __index__(self, *operands: object) -> NoReturn:
        on_host(self.name)

    __int__ = __bool__ = __add__ = __radd__ = __sub__ = __mul__ = __mod__ = __floordiv__ = __lt__ = __index__


if TYPE_CHECKING:
    lane: int
    """Index of the thread in its warp: linear thread index mod 32."""
    warp: int
    """Index of the warp in its block: linear thread index // 32."""
else:
    lane, warp = Index("lane"), Index("warp")


# ------------------------------------------------------------------ memory
@intrinsic(AllocationForm("shared"))
def shared(element: type[T], *shape: int | tuple[int, ...]) -> Shared[T]:
    """Allocate shared memory of the block, uninitialised; several extents, or a tuple of them, are row-major."""


@intrinsic(AllocationForm("shared", dynamic=True))
def dynamic_shared(element: type[T], count: int | tuple[int] | None = None) -> Shared[T]:
    """Allocate an array in the dynamic shared memory of the launch (`shared=` bytes).

    The arrays of a kernel are placed in the order of their calls, each aligned to its element.
    `count`: elements, of constants, parameters, `block_dim` and `grid_dim`; only the last array may omit it, and
    gets the remaining bytes.
    """


@intrinsic(AllocationForm("local"))
def local(element: type[T], *shape: int | tuple[int, ...]) -> Local[T]:
    """Allocate local memory of the thread, uninitialised, indexed at run time."""


@intrinsic(AllocationForm("register"))
def registers(element: type[T], count: int | tuple[int]) -> Registers[T]:
    """Allocate `count` registers of the thread, uninitialised, with indices constant after unrolling."""


@intrinsic(AllocationForm("constant"))
def constant(element: type[T], values: tuple[Any, ...]) -> Constant[T]:
    """Declare a table in constant memory with compile-time values."""


# ------------------------------------------------------------------ block
@intrinsic(EffectForm("Barrier", mode="sync"))
def sync() -> None:
    """Barrier and memory fence of the block; every thread that has not returned must reach it."""


@intrinsic(EffectForm("Barrier", mode="count", result="i32"))
def sync_count(predicate: bool) -> int:
    """`sync()`; return the number of threads with a true predicate."""


@intrinsic(EffectForm("Barrier", mode="and", result="bool"))
def sync_and(predicate: bool) -> bool:
    """`sync()`; return whether the predicate is true for all threads."""


@intrinsic(EffectForm("Barrier", mode="or", result="bool"))
def sync_or(predicate: bool) -> bool:
    """`sync()`; return whether the predicate is true for any thread."""


@intrinsic(EffectForm("Barrier", mode="grid"))
def grid_sync() -> None:
    """Barrier and memory fence of the grid, in a launch with cooperative=True; every thread must reach it."""


@intrinsic(EffectForm("Fence", scope="block"))
def fence_block() -> None:
    """Memory fence for the threads of the block."""


@intrinsic(EffectForm("Fence", scope="device"))
def fence() -> None:
    """Memory fence for the threads of the device."""


# ------------------------------------------------------------------ warp
@intrinsic(EffectForm("WarpBarrier"))
def syncwarp(mask: int = FULL_MASK) -> None:
    """Barrier and memory fence of the named lanes."""


@intrinsic(ShuffleForm("idx", "lane"))
def shuffle(value: T, lane: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """Value of lane `lane` (modulo `width`) of this lane's group of `width` lanes."""


@intrinsic(ShuffleForm("up", "delta"))
def shuffle_up(value: T, delta: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """Value of the lane `delta` below; this lane's own at the edge of the group."""


@intrinsic(ShuffleForm("down", "delta"))
def shuffle_down(value: T, delta: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """Value of the lane `delta` above; this lane's own at the edge of the group."""


@intrinsic(ShuffleForm("xor", "lane_mask"))
def shuffle_xor(value: T, lane_mask: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """Value of lane `lane ^ lane_mask`; this lane's own if it is in a later group."""


@intrinsic(VoteForm("ballot", "u32"))
def ballot(predicate: bool, mask: int = FULL_MASK) -> int:
    """u32 mask of the named lanes with a true predicate."""


@intrinsic(VoteForm("any", "bool"))
def any(predicate: bool, mask: int = FULL_MASK) -> bool:
    """Whether the predicate is true for any named lane."""


@intrinsic(VoteForm("all", "bool"))
def all(predicate: bool, mask: int = FULL_MASK) -> bool:
    """Whether the predicate is true for all named lanes."""


@intrinsic(VoteForm("active", "u32"))
def active_mask() -> int:
    """u32 mask of the active lanes."""


@intrinsic(VoteForm("match", "u32"))
def match_any(value: int, mask: int = FULL_MASK) -> int:
    """u32 mask of the named lanes with this lane's value."""


# ------------------------------------------------------------------ arithmetic
@intrinsic(OperationForm("div"))
def div(a: int, b: int) -> int:
    """Quotient truncated toward zero, as C's `/`; Python's `//` floors."""


@intrinsic(OperationForm("rem"))
def rem(a: int, b: int) -> int:
    """Remainder with the sign of `a`, as C's `%`; Python's `%` has the sign of `b`."""


@intrinsic(OperationForm("viaddmax"))
def viaddmax(a: int, b: int, c: int) -> int:
    """max(a + b, c), for i32: one instruction on Hopper and later."""


@intrinsic(OperationForm("vimax3"))
def vimax3(a: int, b: int, c: int) -> int:
    """max(a, b, c), for i32: one instruction on Hopper and later."""


@intrinsic(OperationForm("fma"))
def fma(a: float, b: float, c: float) -> float:
    """a * b + c, rounded once."""


@intrinsic(OperationForm("sqrt"))
def sqrt(x: float) -> float:
    """Square root, correctly rounded."""


@intrinsic(OperationForm("rsqrt"))
def rsqrt(x: float) -> float:
    """1 / sqrt(x), within 2 ulp."""


@intrinsic(ConjugateForm())
def conj(z: complex) -> complex:
    """Complex conjugate, for c64 and c128."""


@intrinsic(BitcastForm())
def bitcast(to: type[T], x: Any) -> T:
    """Bits of x as a type of the same size."""


@intrinsic(UnrolledRangeForm())
def unroll(indices: range) -> range:
    """Unroll a loop: `for k in st.unroll(range(K))`; `k` may index registers."""


__all__ = [
    "FULL_MASK", "WARP_SIZE", "active_mask", "all", "any", "ballot", "bitcast", "block", "block_dim", "conj",
    "constant", "div", "dynamic_shared", "fence", "fence_block", "fma", "grid_dim", "grid_sync", "lane", "local",
    "match_any", "registers", "rem", "rsqrt", "shared", "shuffle", "shuffle_down", "shuffle_up", "shuffle_xor",
    "sqrt", "sync", "sync_and", "sync_count", "sync_or", "syncwarp", "thread", "unroll", "viaddmax", "vimax3", "warp",
]  # fmt: skip
