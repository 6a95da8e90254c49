"""What a host may give a kernel for a global array beside a NumPy array: a new one, or one that stays on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import LaunchError
from ..language.types import SCALARS, VECTORS, Scalar, Vector

Buffer = npt.NDArray[Any]


@dataclass(frozen=True)
class NewArray:
    """A global array that a launch makes for the kernel; `empty` and `zeros` say how.

    length: elements. type: a type of the language, or its name. readable: whether a kernel may read what it did not
    write.
    """

    length: int
    type: str | Any
    readable: bool

    def made(self) -> Buffer:
        """The array as the kernel finds it: zeros of shape (length,), or (length, lanes) for vectors."""
        scalar, lanes = split(named(self.type))
        return np.zeros((self.length, lanes) if lanes else self.length, scalar.dtype)


def empty(length: int, type: str | Any) -> NewArray:
    """A global array of `length` elements for the kernel to fill; reading what it did not write is a mistake.

    `check="uninitialised"` finds such reads. A kernel that adds to the elements needs `zeros`.
    """
    return NewArray(length, type, readable=False)


def zeros(length: int, type: str | Any) -> NewArray:
    """A global array of `length` elements that are 0 until the kernel writes them."""
    return NewArray(length, type, readable=True)


class RemoteArray(Protocol):
    """An array in the memory of a device."""

    def read(self) -> Buffer:
        """Its contents, copied to the host."""
        ...


class DeviceArray:
    """A global array that stays where its launches run, so that one kernel finds there what another one left.

    Given to a launch in place of `contents`, a NumPy array, `empty(...)` or `zeros(...)`, which is copied the first time
    only; the kernel's changes stay in it and are not part of the launch's result.
    """

    def __init__(self, contents: Buffer | NewArray) -> None:
        self.all_zero = isinstance(contents, NewArray)
        self._host = contents.made() if isinstance(contents, NewArray) else np.array(contents)
        self.remote: RemoteArray | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element, of vectors that of one part."""
        return self._host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """(length,), or (length, lanes) for vectors."""
        return self._host.shape

    @property
    def host(self) -> Buffer:
        """An array of the same shape and type; its contents are those of `numpy` only where no device holds them."""
        return self._host

    def numpy(self) -> Buffer:
        """The contents as the last launch left them."""
        return self.remote.read() if self.remote else self._host.copy()

    def replace(self, contents: Buffer) -> None:
        """Take an array over as the contents, on the host."""
        self._host, self.remote, self.all_zero = contents, None, False

    def fetch(self) -> None:
        """Have the contents on the host, for an engine that works there."""
        if self.remote:
            self.replace(self.remote.read())


def named(type: Any) -> Scalar | Vector:
    """The type that a name, or a word of the language, stands for."""
    name: str = type if isinstance(type, str) else getattr(type, "name", "") or getattr(type, "__name__", "")
    found = SCALARS.get(name) or VECTORS.get(name)
    if found is None:
        raise LaunchError(f"{name or type!r} is not a type; there are {', '.join((*SCALARS, *VECTORS))}")
    return found


def split(type: Scalar | Vector) -> tuple[Scalar, int]:
    """An element's scalar type and its lanes, 0 where it is no vector."""
    return (type.element, type.lanes) if isinstance(type, Vector) else (type, 0)
