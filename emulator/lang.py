"""The words a kernel may use, typed for editors; each raises when it is called on the host.

To a type checker every integer type is `int` and every float type `float`: Python's checkers cannot state
wrapping or literal adaptation. The frontend does the real typing when the kernel is specialised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from .errors import HostCallError

T = TypeVar("T")
FULL_MASK = 0xFFFFFFFF
"""Every lane of a warp, the default mask of the warp words."""
WARP_SIZE = 32
"""Threads in a warp on every device the emulator knows."""


def _host(word: str) -> NoReturn:
    raise HostCallError(f"{word} is a word of the kernel language: use it inside @st.kernel or @st.device")


class Source:
    """A Python function kept as source: the frontend reads it, Python never runs it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise HostCallError(f"{self.__name__} runs on an engine: use launch({self.__name__}, grid=..., block=...)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.__module__}.{self.__name__}>"


class Kernel(Source):
    """What `@kernel` makes: an entry point for `launch`."""


class Device(Source):
    """What `@device` makes: a function that kernels and device functions may call."""


F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: Callable[..., None]) -> Kernel:
    """Mark a function as a kernel. Its parameters are annotated; it returns nothing."""
    return Kernel(function)


if TYPE_CHECKING:

    def device(function: F) -> F:
        """Mark a function as callable from kernels. Parameters and result are annotated."""

    i8: TypeAlias = int
    i16: TypeAlias = int
    i32: TypeAlias = int
    i64: TypeAlias = int
    u8: TypeAlias = int
    u16: TypeAlias = int
    u32: TypeAlias = int
    u64: TypeAlias = int
    f32: TypeAlias = float
    f64: TypeAlias = float
    Real: TypeAlias = float
    Const: TypeAlias = Any
else:

    class ScalarWord:
        """A scalar type: an annotation, an argument of `shared` and others, or a cast when called."""

        def __init__(self, name):
            self.name = name

        def __call__(self, value):
            _host(f"{self.name}()")

        def __repr__(self):
            return self.name

    def device(function):
        return Device(function)

    i8, i16, i32, i64 = (ScalarWord(n) for n in ("i8", "i16", "i32", "i64"))
    u8, u16, u32, u64 = (ScalarWord(n) for n in ("u8", "u16", "u32", "u64"))
    f32, f64 = ScalarWord("f32"), ScalarWord("f64")
    Real = ScalarWord("Real")  # f32 or f64: whichever the arrays given for Global[Real] hold

    class Const:
        """Annotation of a parameter whose value specialises the kernel: int, float, bool or a tuple of them."""


class _Parts2(Generic[T]):
    x: T
    y: T

    def __init__(self, x: T, y: T) -> None:
        _host(type(self).__name__)

    def __getitem__(self, index: int) -> T:
        _host(type(self).__name__)

    def __iter__(self) -> Iterator[T]:
        _host(type(self).__name__)


class _Parts4(Generic[T]):
    x: T
    y: T
    z: T
    w: T

    def __init__(self, x: T, y: T, z: T, w: T) -> None:
        _host(type(self).__name__)

    def __getitem__(self, index: int) -> T:
        _host(type(self).__name__)

    def __iter__(self) -> Iterator[T]:
        _host(type(self).__name__)


class char4(_Parts4[int]):
    """Four i8, one access of 4 bytes."""


class uchar4(_Parts4[int]):
    """Four u8, one access of 4 bytes."""


class short2(_Parts2[int]):
    """Two i16, one access of 4 bytes."""


class int2(_Parts2[int]):
    """Two i32, one access of 8 bytes."""


class int4(_Parts4[int]):
    """Four i32, one access of 16 bytes."""


class float2(_Parts2[float]):
    """Two f32, one access of 8 bytes."""


class float4(_Parts4[float]):
    """Four f32, one access of 16 bytes."""


class Memory(Generic[T]):
    """An array; as an annotation, a device function's parameter in whichever memory the caller's array is."""

    def __getitem__(self, index: int | tuple[int, ...]) -> T:
        _host("an array")

    def __setitem__(self, index: int | tuple[int, ...], value: T) -> None:
        _host("an array")

    def __len__(self) -> int:
        """Elements; of a global array, those of the buffer given at launch."""
        _host("len()")


class Global(Memory[T]):
    """A parameter in global memory."""


class Shared(Memory[T]):
    """Memory of a block; as an annotation, a device function's parameter."""


class Local(Memory[T]):
    """Memory of one thread, indexed at run time."""


class Registers(Memory[T]):
    """Registers of one thread: every index must be constant once loops are unrolled."""


class Constant(Memory[T]):
    """A read-only table known at compile time."""


class _Index3:
    x: int
    y: int
    z: int

    def __init__(self, name: str) -> None:
        self._name = name

    if not TYPE_CHECKING:

        def __getattr__(self, axis: str) -> NoReturn:
            if axis.startswith("__"):
                raise AttributeError(axis)
            _host(f"{self._name}.{axis}")


thread = _Index3("thread")
"""Index of the thread in its block."""
block = _Index3("block")
"""Index of the block in the grid."""
block_dim = _Index3("block_dim")
"""Threads in a block, by axis."""
grid_dim = _Index3("grid_dim")
"""Blocks in the grid, by axis."""

if TYPE_CHECKING:
    lane: int
    """Index of the thread in its warp: linear thread index mod 32."""
    warp: int
    """Index of the warp in its block: linear thread index // 32."""
else:

    class IndexWord:
        def __init__(self, name):
            self.name = name

        def __index__(self):
            _host(self.name)

        __int__ = __bool__ = __add__ = __radd__ = __sub__ = __mul__ = __mod__ = __floordiv__ = __lt__ = __index__

    lane, warp = IndexWord("lane"), IndexWord("warp")


# ------------------------------------------------------------------ memory
def shared(element: type[T], *shape: int) -> Shared[T]:
    """Shared memory of the block, uninitialised; more than one extent is row-major."""
    _host("shared()")


def dynamic_shared(element: type[T]) -> Shared[T]:
    """Shared memory whose size in bytes is given at launch; at most one a kernel."""
    _host("dynamic_shared()")


def local(element: type[T], *shape: int) -> Local[T]:
    """Local memory of the thread, uninitialised, indexed at run time."""
    _host("local()")


def registers(element: type[T], count: int) -> Registers[T]:
    """`count` registers of the thread, uninitialised; indices constant after unrolling."""
    _host("registers()")


def constant(element: type[T], values: tuple[Any, ...]) -> Constant[T]:
    """A table in constant memory, its values known at compile time."""
    _host("constant()")


def matrix(array: Memory[T], stride: int) -> Memory[T]:
    """The array seen in two dimensions: `m[i, j]` is `array[i * stride + j]`."""
    _host("matrix()")


# ------------------------------------------------------------------ block
def sync() -> None:
    """Barrier and memory fence of the block; every thread that has not returned must reach it."""
    _host("sync()")


def sync_count(predicate: bool) -> int:
    """`sync()`, and the number of threads whose predicate holds."""
    _host("sync_count()")


def sync_and(predicate: bool) -> bool:
    """`sync()`, and whether the predicate holds for all threads."""
    _host("sync_and()")


def sync_or(predicate: bool) -> bool:
    """`sync()`, and whether the predicate holds for any thread."""
    _host("sync_or()")


def fence_block() -> None:
    """Order this thread's memory accesses as seen by its block."""
    _host("fence_block()")


def fence() -> None:
    """Order this thread's memory accesses as seen by the whole device."""
    _host("fence()")


# ------------------------------------------------------------------ warp
def syncwarp(mask: int = FULL_MASK) -> None:
    """Barrier and memory fence of the named lanes."""
    _host("syncwarp()")


def shuffle(value: T, lane: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """The value of lane `lane` (modulo `width`) of this lane's group of `width` lanes."""
    _host("shuffle()")


def shuffle_up(value: T, delta: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """The value of the lane `delta` below; this lane's own where that leaves the group."""
    _host("shuffle_up()")


def shuffle_down(value: T, delta: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """The value of the lane `delta` above; this lane's own where that leaves the group."""
    _host("shuffle_down()")


def shuffle_xor(value: T, lane_mask: int, width: int = WARP_SIZE, mask: int = FULL_MASK) -> T:
    """The value of lane `lane ^ lane_mask`; this lane's own where that is in a later group."""
    _host("shuffle_xor()")


def ballot(predicate: bool, mask: int = FULL_MASK) -> int:
    """u32 whose bit i is lane i's predicate."""
    _host("ballot()")


def any(predicate: bool, mask: int = FULL_MASK) -> bool:
    """Whether the predicate holds for any named lane."""
    _host("any()")


def all(predicate: bool, mask: int = FULL_MASK) -> bool:
    """Whether the predicate holds for all named lanes."""
    _host("all()")


def active_mask() -> int:
    """u32 of the lanes that are active here."""
    _host("active_mask()")


def match_any(value: int, mask: int = FULL_MASK) -> int:
    """u32 of the named lanes whose value equals this lane's."""
    _host("match_any()")


# ------------------------------------------------------------------ atomics: each returns the old value
def atomic_add(array: Memory[T], index: int, value: T) -> T:
    """array[index] += value."""
    _host("atomic_add()")


def atomic_min(array: Memory[T], index: int, value: T) -> T:
    """array[index] = min(array[index], value)."""
    _host("atomic_min()")


def atomic_max(array: Memory[T], index: int, value: T) -> T:
    """array[index] = max(array[index], value)."""
    _host("atomic_max()")


def atomic_and(array: Memory[T], index: int, value: T) -> T:
    """array[index] &= value."""
    _host("atomic_and()")


def atomic_or(array: Memory[T], index: int, value: T) -> T:
    """array[index] |= value."""
    _host("atomic_or()")


def atomic_xor(array: Memory[T], index: int, value: T) -> T:
    """array[index] ^= value."""
    _host("atomic_xor()")


def atomic_exchange(array: Memory[T], index: int, value: T) -> T:
    """array[index] = value."""
    _host("atomic_exchange()")


def compare_swap(array: Memory[T], index: int, expected: T, value: T) -> T:
    """array[index] = value where it equals `expected`."""
    _host("compare_swap()")


# ------------------------------------------------------------------ arithmetic
def div(a: int, b: int) -> int:
    """Quotient truncated toward zero, as C's `/`; Python's `//` floors."""
    _host("div()")


def rem(a: int, b: int) -> int:
    """Remainder with the sign of `a`, as C's `%`; Python's `%` has the sign of `b`."""
    _host("rem()")


def viaddmax(a: int, b: int, c: int) -> int:
    """max(a + b, c) of i32: one instruction from Hopper on."""
    _host("viaddmax()")


def vimax3(a: int, b: int, c: int) -> int:
    """max(a, b, c) of i32: one instruction from Hopper on."""
    _host("vimax3()")


def fma(a: float, b: float, c: float) -> float:
    """a * b + c, rounded once."""
    _host("fma()")


def exp(x: float) -> float:
    """e ** x, within 2 ulp."""
    _host("exp()")


def log(x: float) -> float:
    """Natural logarithm, within 2 ulp."""
    _host("log()")


def log2(x: float) -> float:
    """Logarithm to base 2, within 2 ulp."""
    _host("log2()")


def sqrt(x: float) -> float:
    """Square root, correctly rounded."""
    _host("sqrt()")


def rsqrt(x: float) -> float:
    """1 / sqrt(x), within 2 ulp."""
    _host("rsqrt()")


def popcount(x: int) -> int:
    """Bits set in a 32- or 64-bit integer, as i32."""
    _host("popcount()")


def clz(x: int) -> int:
    """Leading zero bits of a 32- or 64-bit integer, as i32."""
    _host("clz()")


def bitcast(to: type[T], x: Any) -> T:
    """The same bits read as a type of the same size."""
    _host("bitcast()")


def unroll(indices: range) -> range:
    """`for k in st.unroll(range(K))`: the loop is unrolled, so `k` may index registers."""
    _host("unroll()")
