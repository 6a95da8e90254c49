"""What a host may give a kernel for a global array beside a NumPy array: a new one, or one that stays on the device."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..checked import shown, whole
from ..errors import LaunchError, OutOfMemory
from ..frontend.constants import is_struct
from ..language.types import COMPLEX, SCALARS, VECTORS, Scalar, Vector, from_dtype

MOST_DIMENSIONS = 4

Buffer = npt.NDArray[Any]


@dataclass(frozen=True)
class NewArray:
    """A global array that a launch makes for the kernel; `empty` and `zeros` say how.

    shape: elements by dimension. type: a type of the language, or its name. readable: whether a kernel may read what it
    did not write.
    """

    shape: tuple[int, ...]
    type: str | Any
    readable: bool

    def made(self) -> Buffer:
        """The array as the kernel finds it: zeros; of vectors, the last axis holds the lanes."""
        type = named(self.type)
        scalar, lanes = split(type)
        needed = math.prod(self.shape) * named(self.type).size
        if needed > _memory_of_host():
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


def _new(shape: Any, type: Any, readable: bool) -> NewArray:
    extents = shape if isinstance(shape, tuple) else (shape,)
    if not 1 <= len(extents) <= MOST_DIMENSIONS:
        raise LaunchError(f"shape has {len(extents)} dimensions, a kernel takes 1 to {MOST_DIMENSIONS}")
    one = len(extents) == 1
    sizes = (whole("shape" if one else f"shape[{d}]", n, 0, (1 << 63) - 1) for d, n in enumerate(extents))
    return NewArray(tuple(sizes), type if is_struct(type) else named(type).name, readable)


def _memory_of_host() -> int:
    """Bytes of this machine's memory; without a limit where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def array_given(name: str, given: Any) -> Buffer:
    """A NumPy array that a caller gave. Raises LaunchError for anything else, and for what no element type has."""
    # The exact type is asked first: numpy imports its masked arrays when they are named.
    masked = type(given) is not np.ndarray and isinstance(given, np.ma.MaskedArray)
    if not isinstance(given, np.ndarray) or masked:
        advice = (
            f"np.array({name}, np.float32) makes one" if isinstance(given, list | tuple) else "or st.empty, st.zeros"
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

    Given to a launch in place of `contents`, a NumPy array, `empty(...)` or `zeros(...)`, which is copied the first time
    only; the kernel's changes stay in it and are not part of the launch's result. Launches that share one take turns,
    from whatever threads they come.
    """

    def __init__(self, contents: Buffer | NewArray) -> None:
        self.all_zero = isinstance(contents, NewArray)
        self._host = contents.made() if isinstance(contents, NewArray) else array_given("contents", contents).copy("C")
        self.remote: RemoteArray | None = None
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
        """An array of the same shape and type; its contents are those of `numpy` only where no device holds them."""
        return self._host

    def numpy(self) -> Buffer:
        """The contents as the last launch left them."""
        return self.remote.read().view(self.dtype).reshape(self.shape) if self.remote else self._host.copy()

    def replace(self, contents: Buffer) -> None:
        """Take an array over as the contents, on the host."""
        self._host, self.remote, self.all_zero = contents, None, False

    def fetch(self) -> None:
        """Have the contents on the host, for an engine that works there."""
        if self.remote:
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
