"""The types of the kernel language as annotations and casts, typed for editors.

To a type checker every integer type is `int`, every float type `float` and every complex type `complex`: Python's checkers cannot state
wrapping or literal adaptation. The front end does the real typing when the kernel is specialised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from ..errors import HostCallError

T = TypeVar("T")
A = TypeVar("A", bound="Array[Any]")


def on_host(name: str, instead: str = "") -> NoReturn:
    """Raise the error of a name of the kernel language that Python itself evaluates. instead: what does it outside of kernels."""
    raise HostCallError(f"{name} belongs to the kernel language: use it inside @st.kernel or @st.device{instead}")


if TYPE_CHECKING:
    i8: TypeAlias = int
    i16: TypeAlias = int
    i32: TypeAlias = int
    i64: TypeAlias = int
    u8: TypeAlias = int
    u16: TypeAlias = int
    u32: TypeAlias = int
    u64: TypeAlias = int
    f16: TypeAlias = float
    bf16: TypeAlias = float
    f32: TypeAlias = float
    f64: TypeAlias = float
    c64: TypeAlias = complex
    c128: TypeAlias = complex
    Real: TypeAlias = float
    Const: TypeAlias = Any
else:

    class ScalarType:
        """A scalar or complex type: an annotation, an argument of `shared` and others, or a cast when called."""

        def __init__(self, name):
            self.name = name

        def __call__(self, *values):
            on_host(f"{self.name}()", "; an argument of a launch is a plain number, and takes the parameter's type")

        def __repr__(self):
            return self.name

    i8, i16, i32, i64 = (ScalarType(n) for n in ("i8", "i16", "i32", "i64"))
    u8, u16, u32, u64 = (ScalarType(n) for n in ("u8", "u16", "u32", "u64"))
    f16, bf16, f32, f64 = (ScalarType(n) for n in ("f16", "bf16", "f32", "f64"))
    c64, c128 = ScalarType("c64"), ScalarType("c128")
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

    def __setitem__(self, index: int, value: T) -> None:
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

    def __setitem__(self, index: int, value: T) -> None:
        on_host(type(self).__name__)

    def __iter__(self) -> Iterator[T]:
        on_host(type(self).__name__)


class char4(_Parts4[int]):
    """Four i8, one access of 4 bytes."""


class uchar4(_Parts4[int]):
    """Four u8, one access of 4 bytes."""


class short2(_Parts2[int]):
    """Two i16, one access of 4 bytes."""


class ushort2(_Parts2[int]):
    """Two u16, one access of 4 bytes."""


class int2(_Parts2[int]):
    """Two i32, one access of 8 bytes."""


class int4(_Parts4[int]):
    """Four i32, one access of 16 bytes."""


class uint2(_Parts2[int]):
    """Two u32, one access of 8 bytes."""


class uint4(_Parts4[int]):
    """Four u32, one access of 16 bytes."""


class half2(_Parts2[float]):
    """Two f16, one access of 4 bytes."""


class bfloat162(_Parts2[float]):
    """Two bf16, one access of 4 bytes."""


class float2(_Parts2[float]):
    """Two f32, one access of 8 bytes."""


class float4(_Parts4[float]):
    """Four f32, one access of 16 bytes."""


class double2(_Parts2[float]):
    """Two f64, one access of 16 bytes."""


class Array(Generic[T]):
    """An array; as an annotation, a device function's parameter in whichever memory the caller's array is."""

    shape: tuple[int, ...]
    """Its extents, an i32 each; known at compile time but for global arrays."""
    size: int
    """Its elements, an i32."""
    ndim: int
    """Its dimensions."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item):
            # the front end refuses what is no type, and names its place
            return super().__class_getitem__(item[0] if isinstance(item, tuple) and item else item)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: tuple[int, ...]) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self: A, index: slice | tuple[int | slice, ...]) -> A: ...
    def __getitem__(self, index: Any) -> Any:
        """An element; or a view, where an index is a slice, or there are fewer than dimensions."""
        on_host("an array")

    def __setitem__(self, index: int | tuple[int, ...], value: T) -> None:
        on_host("an array")

    def __len__(self) -> int:
        """Elements in the first dimension."""
        on_host("len()")


class Global(Array[T]):
    """A parameter in global memory, of as many dimensions as the array given at launch."""


class Shared(Array[T]):
    """Memory of a block; as an annotation, a device function's parameter."""


class Local(Array[T]):
    """Memory of one thread, indexed at run time."""


class Registers(Array[T]):
    """Registers of one thread: every index must be constant once loops are unrolled."""


class Constant(Array[T]):
    """A read-only table known at compile time; as a kernel's parameter, one whose values the launch gives, of which each set makes
    a kernel of its own."""


__all__ = [
    "Array", "Const", "Constant", "Global", "Local", "Real", "Registers", "Shared",
    "bf16", "bfloat162", "c64", "c128", "char4", "double2", "f16", "f32", "f64", "float2", "float4", "half2", "i8", "i16", "i32",
    "i64", "int2", "int4", "short2",
    "u8", "u16", "u32", "u64", "uchar4", "uint2", "uint4", "ushort2",
]  # fmt: skip
