"""What a host may give a kernel for a global array beside a NumPy array: a new one, or one that stays on the device."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..checked import shown, whole
from ..errors import LaunchError, OutOfMemory
from ..frontend.constants import is_struct
from ..language.types import COMPLEX, SCALARS, VECTORS, Scalar, Vector, from_dtype
from .memory import memory_of_machine
from .scalars import scalar_given

MOST_DIMENSIONS = 4

Buffer = npt.NDArray[Any]


@dataclass(frozen=True)
class NewArray:
    """A global array that a launch makes for the kernel; `empty`, `zeros` and `full` say how.

    shape: elements by dimension. type: a type of the language, or its name. readable: whether a kernel may read what it
    did not write. value: what each element holds: a number, or the numbers of a vector's or a complex number's parts.
    """

    shape: tuple[int, ...]
    type: str | Any
    readable: bool
    value: Any = 0

    @property
    def everywhere(self) -> Buffer:
        """What each element holds, () or (parts,) of the scalar type."""
        scalar, lanes = split(named(self.type))
        return np.full((lanes,) if lanes else (), self.value, scalar.dtype)

    @property
    def call(self) -> str:
        """How it is asked for, up to its type."""
        if self.value != 0:
            return f"full(shape, {shown(self.value)}"
        return f"{'zeros' if self.readable else 'empty'}(shape"

    def made(self) -> Buffer:
        """The array as the kernel finds it; of vectors, the last axis holds the lanes."""
        return filled_as(self.form(), self.everywhere)

    def form(self) -> Buffer:
        """An array of the same shape and type. It takes no memory until it is written."""
        type = named(self.type)
        scalar, lanes = split(type)
        needed = math.prod(self.shape) * named(self.type).size
        if needed > memory_of_machine():
            raise OutOfMemory(f"an array of {shown(self.shape)} {named(self.type)} does not fit this machine's memory")
        if type in COMPLEX:
            return np.zeros(self.shape, COMPLEX[type])
        return np.zeros((*self.shape, lanes) if lanes else self.shape, scalar.dtype)


def empty(shape: int | tuple[int, ...], type: str | Any) -> NewArray:
    """A global array of this shape for the kernel to fill; reading what it did not write is a mistake.

    `check="uninitialised"` finds such reads. A kernel that adds to the elements needs `zeros`.
    """
    return _new(shape, type, readable=False)


def zeros(shape: int | tuple[int, ...], type: str | Any) -> NewArray:
    """A global array of this shape whose elements are 0 until the kernel writes them."""
    return _new(shape, type, readable=True)


def full(shape: int | tuple[int, ...], value: Any, type: str | Any) -> NewArray:
    """A global array of this shape whose elements hold `value` until the kernel writes them.

    value: a number that the type holds; of a vector, one for all parts or a tuple of one for each. On a GPU it is filled
    there: nothing is copied.
    """
    if is_struct(type):
        raise LaunchError("full makes arrays of numbers: fill an array of structs with NumPy")
    chosen = named(type)
    scalar, lanes = split(chosen)
    if chosen in COMPLEX:
        value = (value.real, value.imag) if isinstance(value, complex | np.complexfloating) else (value, 0)
    if not (lanes and isinstance(value, tuple)):
        held: Any = scalar_given("value", scalar, value)
    elif len(value) == lanes:
        held = tuple(scalar_given(f"value[{n}]", scalar, part) for n, part in enumerate(value))
    else:
        raise LaunchError(f"value is {chosen}: {lanes} numbers are expected, not {len(value)}")
    return replace(_new(shape, type, readable=True), value=held)


def is_zero(element: Buffer) -> bool:
    """Whether all its bits are zero; those of -0.0 are not."""
    return not any(element.tobytes())


def filled_as(form: Buffer, element: Buffer) -> Buffer:
    """A new array of that shape and type that holds an element everywhere, () or (parts,). Zeros take no memory yet."""
    if is_zero(element):
        return np.zeros(form.shape, form.dtype)
    made = np.empty(form.shape, form.dtype)
    made[...] = element.view(form.dtype)
    return made


def _new(shape: Any, type: Any, readable: bool) -> NewArray:
    extents = shape if isinstance(shape, tuple) else (shape,)
    if not 1 <= len(extents) <= MOST_DIMENSIONS:
        raise LaunchError(f"shape has {len(extents)} dimensions, a kernel takes 1 to {MOST_DIMENSIONS}")
    one = len(extents) == 1
    sizes = (whole("shape" if one else f"shape[{d}]", n, 0, (1 << 63) - 1) for d, n in enumerate(extents))
    return NewArray(tuple(sizes), type if is_struct(type) else named(type).name, readable)


def array_given(name: str, given: Any) -> Buffer:
    """A NumPy array that a caller gave. Raises LaunchError for anything else, and for what no element type has."""
    # The exact type is asked first: numpy imports its masked arrays when they are named.
    masked = type(given) is not np.ndarray and isinstance(given, np.ma.MaskedArray)
    if not isinstance(given, np.ndarray) or masked:
        advice = (
            f"np.array({name}, np.float32) makes one"
            if isinstance(given, list | tuple)
            else "or st.empty, st.zeros, st.full"
        )
        raise LaunchError(f"{name} is a NumPy array, {advice}; not {shown(given)}")
    if from_dtype(given.dtype) is None:
        native = given.dtype.newbyteorder("=")
        swapped = from_dtype(native)
        why = f"byte-swapped {swapped}; convert it: .astype(np.{native})" if swapped else str(given.dtype)
        raise LaunchError(f"{name} is an array of numbers, the array given is {why}")
    if given.ndim == 0:
        raise LaunchError(f"{name} has 0 dimensions, a kernel takes 1 to {MOST_DIMENSIONS}; reshape it")
    return given


class RemoteArray(Protocol):
    """An array in the memory of a device."""

    def read(self) -> Buffer:
        """Its contents, copied to the host."""
        ...


class DeviceArray:
    """A global array that stays where its launches run, so that one kernel finds there what another one left.

    Given to a launch in place of `contents`, a NumPy array, `empty(...)`, `zeros(...)` or `full(...)`, which is copied, or
    made, the first time only; the kernel's changes stay in it and are not part of the launch's result. Launches that share one take turns,
    from whatever threads they come.

    written: bool by element, which of an `empty` one's were written; None for all, and where nobody looked: a launch keeps
    account of it under `check="uninitialised"`.
    """

    def __init__(self, contents: Buffer | NewArray) -> None:
        # what each element holds, as long as nothing is written
        self.everywhere = contents.everywhere if isinstance(contents, NewArray) else None
        self._host = contents.form() if isinstance(contents, NewArray) else array_given("contents", contents).copy("C")
        self.remote: RemoteArray | None = None
        self.written: Buffer | None = None
        if isinstance(contents, NewArray) and not contents.readable:
            self.written = np.broadcast_to(np.False_, contents.shape)  # of nothing yet, which takes no memory
        self.turn = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its contents, which another process finds on the host."""
        return DeviceArray, (self.numpy(),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element, of vectors that of one part."""
        return self._host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements by dimension, then, of vectors, their lanes."""
        return self._host.shape

    @property
    def host(self) -> Buffer:
        """An array of the same shape and type; its contents are those of `numpy` once they were fetched."""
        return self._host

    def numpy(self) -> Buffer:
        """The contents as the last launch left them."""
        if self.remote:
            return self.remote.read().view(self.dtype).reshape(-1)[: self._host.size].reshape(self.shape)
        return self._host.copy() if self.everywhere is None else filled_as(self._host, self.everywhere)

    def keep(self, count: int) -> None:
        """Have no more than the first `count` elements of the first dimension. Nothing is copied."""
        self._host = self._host[: whole("count", count, 0, len(self._host))]
        self.written = None if self.written is None else self.written[:count]

    def wrote(self, elements: Buffer | None) -> None:
        """Take note of what a launch that changed it has left written: bool by element, flat, or None where nobody looked."""
        if self.written is not None:
            self.written = None if elements is None or elements.all() else elements.reshape(self.written.shape)

    def hand_over(self, remote: RemoteArray) -> None:
        """Have the contents in a device's memory from now on."""
        self.remote, self.everywhere = remote, None

    def replace(self, contents: Buffer) -> None:
        """Take an array over as the contents, on the host."""
        self._host, self.remote, self.everywhere = contents, None, None

    def fetch(self) -> None:
        """Have the contents on the host, for an engine that works there."""
        if self.remote or (self.everywhere is not None and not is_zero(self.everywhere)):
            self.replace(self.numpy())


def named(type: Any) -> Scalar | Vector:
    """The type that a name, or a word of the language, stands for."""
    given = type if isinstance(type, str) else getattr(type, "name", "") or getattr(type, "__name__", "")
    name = given if isinstance(given, str) else ""
    found = SCALARS.get(name) or VECTORS.get(name)
    if found is None:
        raise LaunchError(f"{shown(name or type)} is not a type; there are {', '.join((*SCALARS, *VECTORS))}")
    return found


def split(type: Scalar | Vector) -> tuple[Scalar, int]:
    """An element's scalar type and its lanes, 0 where it is no vector."""
    return (type.element, type.lanes) if isinstance(type, Vector) else (type, 0)
