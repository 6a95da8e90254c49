"""Types of the language: scalars, short vectors, and arrays in a memory space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Space = Literal["global", "shared", "local", "constant", "register", "texture"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar type of CUDA. kind: "bool", "int" (signed), "uint" or "float"."""

    name: str
    kind: Literal["bool", "int", "uint", "float"]
    size: int  # bytes

    @property
    def bits(self) -> int:
        return 1 if self.kind == "bool" else 8 * self.size

    @property
    def dtype(self) -> np.dtype[Any]:
        if self.name == "bf16":
            from ml_dtypes import bfloat16  # late: few programs use it

            result: np.dtype[Any] = np.dtype(bfloat16)
            return result
        return np.dtype(_DTYPES[self.name])

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        signed = self.kind == "int"
        return (-(1 << (self.bits - 1)) if signed else 0, (1 << (self.bits - signed)) - 1)

    @property
    def largest(self) -> float:
        """The largest finite value of a float type."""
        return _LARGEST[self.name]

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: each type has one object."""
        return _named, (self.name,)


def _named(name: str) -> Value:
    return SCALARS.get(name) or VECTORS[name]


@dataclass(frozen=True, slots=True)
class Vector:
    """A built-in short vector of CUDA, loaded and stored by one access."""

    name: str
    element: Scalar
    lanes: int

    @property
    def size(self) -> int:
        return self.element.size * self.lanes

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """As that of a scalar."""
        return _named, (self.name,)


@dataclass(frozen=True, slots=True)
class Results:
    """The result type of a device function with several results. Inlining replaces it by its items."""

    items: tuple[Any, ...]

    @property
    def name(self) -> str:
        return f"({', '.join(map(str, self.items))})"

    @property
    def size(self) -> int:
        return sum(item.size for item in self.items)

    def __str__(self) -> str:
        return self.name


Value = Scalar | Vector
"""The type of a variable; a call may also have `Results`."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array type. shape: None if only the launch knows the length."""

    element: Value
    shape: tuple[int, ...] | None
    space: Space

    @property
    def length(self) -> int | None:
        """Number of elements over all dimensions."""
        if self.shape is None:
            return None
        length = 1
        for extent in self.shape:
            length *= extent
        return length

    def __str__(self) -> str:
        extents = "" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.space} {self.element}[{extents}]"


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """The memory layout of a global array argument, as a specialisation key.

    contiguous: row-major without gaps. wide: whether it has more elements than a 32-bit index reaches. Both have
    their default for one contiguous dimension. For a field of structs, step: elements from one struct to the next;
    begin: elements from the start of the struct.
    """

    dimensions: int = 1
    contiguous: bool = True
    wide: bool = False
    step: int = 1
    begin: int = 0


FLAT = ArrayLayout()
"""One contiguous dimension."""

Type = Scalar | Vector | Array

_DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip

_LARGEST = {
    "f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127,
    "f32": float(np.finfo(np.float32).max), "f64": float(np.finfo(np.float64).max),
}  # fmt: skip

BOOL = Scalar("bool", "bool", 1)
I8, I16, I32, I64 = (Scalar(f"i{8 * n}", "int", n) for n in (1, 2, 4, 8))
U8, U16, U32, U64 = (Scalar(f"u{8 * n}", "uint", n) for n in (1, 2, 4, 8))
F16, F32, F64 = (Scalar(f"f{8 * n}", "float", n) for n in (2, 4, 8))
BF16 = Scalar("bf16", "float", 2)

SIGNED = (I8, I16, I32, I64)
UNSIGNED = (U8, U16, U32, U64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (F32, F64)
HALVES = (F16, BF16)
NUMBERS = INTEGERS + FLOATS + HALVES
SCALARS = {t.name: t for t in (BOOL, *NUMBERS)}
VECTORS = {
    v.name: v
    for v in (
        Vector("char4", I8, 4),
        Vector("uchar4", U8, 4),
        Vector("short2", I16, 2),
        Vector("ushort2", U16, 2),
        Vector("int2", I32, 2),
        Vector("int4", I32, 4),
        Vector("uint2", U32, 2),
        Vector("uint4", U32, 4),
        Vector("half2", F16, 2),
        Vector("bfloat162", BF16, 2),
        Vector("float2", F32, 2),
        Vector("float4", F32, 4),
        Vector("double2", F64, 2),
        Vector("c64", F32, 2),
        Vector("c128", F64, 2),
    )
}
C64, C128 = VECTORS["c64"], VECTORS["c128"]
COMPLEX: dict[Value, np.dtype[Any]] = {C64: np.dtype(np.complex64), C128: np.dtype(np.complex128)}
"""Complex types, vectors of the real and the imaginary part, with their NumPy dtypes."""


def from_dtype(dtype: np.dtype[Any]) -> Value | None:
    """Return the scalar or complex type of a NumPy dtype; None for other dtypes."""
    scalar = next((t for t in SCALARS.values() if t.dtype == dtype), None)
    return scalar or next((t for t, own in COMPLEX.items() if own == dtype), None)


def from_numpy(target: object) -> Value | None:
    """Return the type of a NumPy dtype or scalar class; None for other objects and for abstract classes such as np.floating."""
    if not isinstance(target, np.dtype) and not (isinstance(target, type) and issubclass(target, np.generic)):
        return None
    try:
        return from_dtype(np.dtype(target))
    except TypeError:  # an abstract class
        return None


def holds_floats(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a float type; NumPy does not classify bfloat16 as one."""
    return dtype.kind == "f" or dtype.name == "bfloat16"
