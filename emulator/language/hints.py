"""The types of the kernel language as annotations and casts, typed for editors.

To a type checker every integer type is `int` and every float type `float`: Python's checkers cannot state
wrapping or literal adaptation. The front end does the real typing when the kernel is specialised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from ..errors import HostCallError

T = TypeVar("T")


def on_host(name: str) -> NoReturn:
    """Raise the error of a name of the kernel language that Python itself evaluates."""
    raise HostCallError(f"{name} belongs to the kernel language: use it inside @st.kernel or @st.device")


if TYPE_CHECKING:
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

    class ScalarType:
        """A scalar type: an annotation, an argument of `shared` and others, or a cast when called."""

        def __init__(self, name):
            self.name = name

        def __call__(self, value):
            on_host(f"{self.name}()")

        def __repr__(self):
            return self.name

    i8, i16, i32, i64 = (ScalarType(n) for n in ("i8", "i16", "i32", "i64"))
    u8, u16, u32, u64 = (ScalarType(n) for n in ("u8", "u16", "u32", "u64"))
    f32, f64 = ScalarType("f32"), ScalarType("f64")
    Real = ScalarType("Real")  # f32 or f64: whichever the arrays given for Global[Real] hold

    class Const:
        """Annotation of a parameter whose value specialises the kernel: int, float, bool or a tuple of them."""


class _Parts2(Generic[T]):
    x: T
    y: T

    def __init__(self, x: T, y: T) -> None:
        on_host(type(self).__name__)

    def __getitem__(self, index: int) -> T:
        on_host(type(self).__name__)

    def __iter__(self) -> Iterator[T]:
        on_host(type(self).__name__)


class _Parts4(Generic[T]):
    x: T
    y: T
    z: T
    w: T

    def __init__(self, x: T, y: T, z: T, w: T) -> None:
        on_host(type(self).__name__)

    def __getitem__(self, index: int) -> T:
        on_host(type(self).__name__)

    def __iter__(self) -> Iterator[T]:
        on_host(type(self).__name__)


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


class Array(Generic[T]):
    """An array; as an annotation, a device function's parameter in whichever memory the caller's array is."""

    def __getitem__(self, index: int | tuple[int, ...]) -> T:
        on_host("an array")

    def __setitem__(self, index: int | tuple[int, ...], value: T) -> None:
        on_host("an array")

    def __len__(self) -> int:
        """Elements; of a global array, those of the buffer given at launch."""
        on_host("len()")


class Global(Array[T]):
    """A parameter in global memory."""


class Shared(Array[T]):
    """Memory of a block; as an annotation, a device function's parameter."""


class Local(Array[T]):
    """Memory of one thread, indexed at run time."""


class Registers(Array[T]):
    """Registers of one thread: every index must be constant once loops are unrolled."""


class Constant(Array[T]):
    """A read-only table known at compile time."""


__all__ = [
    "Array", "Const", "Constant", "Global", "Local", "Real", "Registers", "Shared",
    "char4", "f32", "f64", "float2", "float4", "i8", "i16", "i32", "i64", "int2", "int4", "short2",
    "u8", "u16", "u32", "u64", "uchar4",
]  # fmt: skip
