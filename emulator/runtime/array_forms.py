"""Memory layouts of a launch's arrays: specialisation keys, and flat buffers for engines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..ir import names
from ..language.types import C64, C128, COMPLEX, F32, F64, FLAT, SCALARS, ArrayLayout, Scalar, Vector
from .arrays import MAX_DIMENSIONS, Buffer, split

MAX_EXTENT = (1 << 31) - 1
"""The largest extent, and the largest 32-bit index."""


@dataclass(frozen=True)
class ArrayForm:
    """The layout of one global array argument.

    lanes: of vectors, in the last axis; 0 for scalars. strides: in elements. length: elements from first to last,
    gaps included. dtype: of complex numbers, which have two lanes. begin: for a field of structs, the offset of its
    first element; step: elements from one struct to the next, for contiguous structs. own: dtype and shape of an argument
    in whose memory the kernel accesses other elements.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    length: int
    lanes: int
    contiguous: bool
    dtype: np.dtype[Any] | None = None
    begin: int | None = None
    step: int | None = None
    own: tuple[np.dtype[Any], tuple[int, ...]] | None = None

    @staticmethod
    def for_array(name: str, array: Buffer, element: Scalar | Vector) -> ArrayForm:
        """Return the layout of an array of this element type. Raises LaunchError for an unsupported layout."""
        _, lanes = split(element)
        shape, steps = array.shape, array.strides
        if lanes:
            if array.ndim < 2 or shape[-1] != lanes:
                raise LaunchError(
                    f"{name} is Global[{element}], its array has the shape (n, {lanes}), not {array.shape}"
                )
            shape, steps = shape[:-1], steps[:-1]
        _check(name, array, shape, steps, element, lanes)
        strides = tuple(step // element.size for step in steps)
        last = 0 if 0 in shape else 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        contiguous = array.flags.c_contiguous
        return ArrayForm(
            shape,
            strides,
            math.prod(shape) if contiguous else last,
            lanes,
            contiguous,
            COMPLEX.get(element),
        )

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape of the argument: for vectors, with lanes."""
        return (*self.shape, self.lanes) if self.lanes and self.dtype is None else self.shape

    @property
    def layout(self) -> ArrayLayout:
        """The specialisation key of the array."""
        if len(self.shape) == 1 and self.contiguous:
            return FLAT if self.length <= MAX_EXTENT else ArrayLayout(wide=True)
        contiguous, step, begin = self.contiguous or self.step is not None, self.step or 1, self.begin or 0
        wide = max(self.length, math.prod(self.shape)) > MAX_EXTENT  # a stride of 0 repeats elements
        return ArrayLayout(len(self.shape), contiguous, wide, step, begin)

    def numbers(self, name: str) -> Iterator[tuple[str, np.generic]]:
        """Yield the parameters for the extents and strides of the array `name`."""
        layout = self.layout
        number = np.int64 if layout.wide else np.int32
        if layout != FLAT:
            yield from ((names.extent(name, d), number(n)) for d, n in enumerate(self.shape))
        if not layout.contiguous:
            yield from ((names.stride(name, d), number(n)) for d, n in enumerate(self.strides))

    def flat(self, array: Buffer) -> Buffer:
        """Return the array's memory from first to last element, one-dimensional, or (elements, lanes); never a copy."""
        if self.contiguous:
            return (
                array
                if array.ndim == (2 if self.lanes else 1)
                else array.reshape((-1, self.lanes) if self.lanes else -1)
            )
        shape = (self.length, self.lanes) if self.lanes else (self.length,)
        steps = (array.itemsize * (self.lanes or 1), array.itemsize)[: len(shape)]
        return np.lib.stride_tricks.as_strided(array, shape, steps)

    def shaped(self, flat: Buffer) -> Buffer:
        """Return memory such as `flat` returns in the array's own shape."""
        if self.own is not None:
            dtype, own_shape = self.own
            return flat.reshape(-1).view(dtype).reshape(own_shape)
        if self.dtype is not None:
            size = flat.itemsize * self.lanes
            steps = tuple(stride * size for stride in self.strides)
            return np.lib.stride_tricks.as_strided(flat.view(self.dtype), self.shape, steps)
        shape = self.whole_shape
        if self.contiguous:
            return flat if flat.shape == shape else flat.reshape(shape)
        size = flat.itemsize * (self.lanes or 1)
        if self.begin is not None:
            flat = flat[self.begin :]
        steps = (*(stride * size for stride in self.strides), *([flat.itemsize] if self.lanes else []))
        return np.lib.stride_tricks.as_strided(flat, shape, steps)


def as_elements(name: str, array: Buffer, element: Scalar | Vector, accepts: tuple[str, ...]) -> Buffer:
    """Return the memory of a contiguous array as elements of another type. accepts: as in `KernelParameter`.

    Raises LaunchError for other element types, gaps, and bytes that are not a whole number of elements.
    """
    dtype = array.dtype
    scalars = {SCALARS[one].dtype for one in accepts if one in SCALARS}
    complex_of = {COMPLEX[C64]: F32.dtype, COMPLEX[C128]: F64.dtype}
    sized = f"V{dtype.itemsize}" in accepts and (dtype.names is not None or complex_of.get(dtype) in scalars)
    if dtype not in scalars and not sized:
        expected = ", ".join(f"structs of {one[1:]} bytes" if one.startswith("V") else one for one in accepts)
        raise LaunchError(f"{name} points to {expected}; the array given is {dtype}")
    if not array.flags.c_contiguous:
        raise LaunchError(f"{name} is a pointer: give a contiguous array, np.ascontiguousarray({name})")
    if array.nbytes % element.size:
        raise LaunchError(f"{name} has {array.nbytes} bytes, not a whole number of elements of {element.size} bytes")
    own, lanes = split(element)
    if dtype == own.dtype and not lanes:
        return array
    flat = array.reshape(-1).view(own.dtype)
    return flat.reshape(-1, lanes) if lanes else flat


def fill_of_elements(fill: Buffer, element: Scalar | Vector) -> Buffer | None:
    """Return the value of each element of filled memory as that of elements of another type; None if these differ."""
    own, lanes = split(element)
    pattern, size = fill.tobytes(), element.size
    pattern *= max(size // len(pattern), 1)
    if any(pattern[at : at + size] != pattern[:size] for at in range(0, len(pattern), size)):
        return None
    return np.frombuffer(pattern[:size], own.dtype).reshape((lanes,) if lanes else ())


def real_view(array: Buffer) -> Buffer:
    """Return the memory of complex numbers as real numbers: the last axis holds the real and the imaginary part."""
    real = array.real
    return np.lib.stride_tricks.as_strided(real, (*real.shape, 2), (*real.strides, real.itemsize))


def struct_field(name: str, array: Buffer, path: tuple[str, ...], type: Scalar) -> tuple[ArrayForm, Buffer]:
    """Return the layout of a field of an array of structs, and the memory of the structs as numbers of its type."""
    dtype, offset = array.dtype, 0
    for key in path:
        if not dtype.fields or key not in dtype.fields:
            raise LaunchError(f"{name} has no field {'.'.join(path)}; its dtype is {array.dtype}")
        dtype, inner = dtype.fields[key][:2]
        offset += inner
    label = f"{name}'s {'.'.join(path)}"
    if dtype != type.dtype:
        raise LaunchError(f"{label} is {type}, the array given has {dtype}; its dtype is {array.dtype}")
    if not 1 <= array.ndim <= MAX_DIMENSIONS or min(array.strides) < 0:
        raise LaunchError(f"{name} has 1 to {MAX_DIMENSIONS} dimensions and no backward strides in a kernel; copy it")
    _check_extents(name, array.shape)
    if any(n % type.size for n in (offset, array.itemsize, *array.strides, array.ctypes.data)):
        raise LaunchError(f"{label} is not aligned to {type.size} bytes; make the dtype with align=True")
    strides = tuple(step // type.size for step in array.strides)
    length = 0
    memory = np.empty(0, type.dtype)
    if array.size:
        last = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
        length = (last + array.itemsize) // type.size
        first = array[(slice(0, 1),) * array.ndim].reshape(1).view(type.dtype)
        memory = np.lib.stride_tricks.as_strided(first, (length,), (type.size,))
    step = array.itemsize // type.size if array.flags.c_contiguous else None
    return ArrayForm(array.shape, strides, length, 0, False, None, offset // type.size, step), memory


def _check(
    name: str, array: Buffer, shape: tuple[int, ...], steps: tuple[int, ...], element: Scalar | Vector, lanes: int
) -> None:
    copied = f"give np.ascontiguousarray({name})"
    if not 1 <= len(shape) <= MAX_DIMENSIONS:
        raise LaunchError(f"{name} has {len(shape)} dimensions, a kernel takes 1 to {MAX_DIMENSIONS}; reshape it")
    if not array.flags.aligned:
        raise LaunchError(f"the elements of {name} are not aligned to {array.itemsize} bytes; give {name}.copy()")
    if array.flags.c_contiguous:
        if len(shape) > 1 and max(shape) > MAX_EXTENT:
            raise LaunchError(f"{name} has the shape {shape}, an extent is at most {MAX_EXTENT}; reshape it")
        return
    _check_extents(name, shape)
    if min(steps) < 0:
        raise LaunchError(f"{name} runs backwards, its strides are {array.strides} bytes; {copied}")
    if any(step % element.size for step in steps) or (lanes and array.strides[-1] != array.itemsize):
        raise LaunchError(
            f"{name} has strides of {array.strides} bytes, not multiples of the {element.size} bytes of {element}; {copied}"
        )


def _check_extents(name: str, shape: tuple[int, ...]) -> None:
    if max(shape) > MAX_EXTENT:
        section = f"{name}[:{MAX_EXTENT}]"
        raise LaunchError(
            f"{name} has the shape {shape}, an extent is at most {MAX_EXTENT}; launch on sections, such as {section}"
        )
