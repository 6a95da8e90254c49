"""Types of the kernel language as annotations and casts.

A type checker sees every integer type as `int`, every float type as `float` and every complex type as `complex`:
Python's checkers cannot state wrapping or literal adaptation. The front end checks types at specialisation.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from ..errors import HostCallError

T = TypeVar("T")
A = TypeVar("A", bound="Array[Any]")


def on_host(name: str, instead: str = "") -> NoReturn:
    """Raise HostCallError for a name of the kernel language evaluated by Python. instead: hint for host code."""
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
        """A scalar or complex type: an annotation, an element type, or a cast when called."""

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
    Real = ScalarType("Real")  # f32 or f64: the element type of the Global[Real] arguments

    class Const:
        """Annotation of a parameter with a compile-time value: int, float, bool or a tuple of them."""


class _Components(Generic[T]):
    x: T
    y: T

    def __getitem__(self, index: int) -> T:
        on_host(type(self).__name__)

    def __setitem__(self, index: int, value: T) -> None:
        on_host(type(self).__name__)

    def __iter__(self) -> Iterator[T]:
        on_host(type(self).__name__)


class _Components2(_Components[T]):
    def __init__(self, x: T, y: T) -> None:
        on_host(type(self).__name__)


class _Components4(_Components[T]):
    z: T
    w: T

    def __init__(self, x: T, y: T, z: T, w: T) -> None:
        on_host(type(self).__name__)


class char4(_Components4[int]):
    """Four i8, one access of 4 bytes."""


class uchar4(_Components4[int]):
    """Four u8, one access of 4 bytes."""


class short2(_Components2[int]):
    """Two i16, one access of 4 bytes."""


class ushort2(_Components2[int]):
    """Two u16, one access of 4 bytes."""


class int2(_Components2[int]):
    """Two i32, one access of 8 bytes."""


class int4(_Components4[int]):
    """Four i32, one access of 16 bytes."""


class uint2(_Components2[int]):
    """Two u32, one access of 8 bytes."""


class uint4(_Components4[int]):
    """Four u32, one access of 16 bytes."""


class half2(_Components2[float]):
    """Two f16, one access of 4 bytes."""


class bfloat162(_Components2[float]):
    """Two bf16, one access of 4 bytes."""


class float2(_Components2[float]):
    """Two f32, one access of 8 bytes."""


class float4(_Components4[float]):
    """Four f32, one access of 16 bytes."""


class double2(_Components2[float]):
    """Two f64, one access of 16 bytes."""


class Array(Generic[T]):
    """An array. As an annotation: a parameter of a device function in any memory space."""

    shape: tuple[int, ...]
    """Extents, an i32 each; compile-time constants except for global arrays."""
    size: int
    """Number of elements, an i32."""
    ndim: int
    """Number of dimensions."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item):
            # the front end reports wrong types with their position
            return super().__class_getitem__(item[0] if isinstance(item, tuple) and item else item)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: tuple[int, ...]) -> T: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self: A, index: slice | tuple[int | slice, ...]) -> A: ...
    def __getitem__(self, index: Any) -> Any:
        """Return an element, or a view for a slice or for fewer indices than dimensions."""
        on_host("an array")

    def __setitem__(self, index: int | tuple[int, ...], value: T) -> None:
        on_host("an array")

    def __len__(self) -> int:
        """Number of elements in the first dimension."""
        on_host("len()")


class Global(Array[T]):
    """A parameter in global memory, with the dimensions of its launch argument."""


class TensorMap(Generic[T]):
    """A kernel parameter: an array in global memory whose boxes `st.tensor_copy` and `st.tensor_store` copy: `st.tensor_map`."""

    shape: tuple[int, ...]
    """Extents, compile-time constants."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item):
            # as that of an array
            return super().__class_getitem__(item[0] if isinstance(item, tuple) and item else item)


class Shared(Array[T]):
    """Shared memory of a block. As an annotation: a parameter of a device function."""


class Local(Array[T]):
    """Local memory of one thread, indexed at run time."""


class Registers(Array[T]):
    """Registers of one thread, with indices constant after unrolling."""


class Constant(Array[T]):
    """A read-only table of compile-time values. As a kernel parameter: the launch argument specialises the kernel."""


__all__ = [
    "Array", "Const", "Constant", "Global", "Local", "Real", "Registers", "Shared", "TensorMap",
    "bf16", "bfloat162", "c64", "c128", "char4", "double2", "f16", "f32", "f64", "float2", "float4", "half2", "i8", "i16", "i32",
    "i64", "int2", "int4", "short2",
    "u8", "u16", "u32", "u64", "uchar4", "uint2", "uint4", "ushort2",
]  # fmt: skip
