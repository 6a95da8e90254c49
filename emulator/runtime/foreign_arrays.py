"""Arrays of other libraries as NumPy arrays in the same memory, by the protocols that they offer: the buffer protocol,
DLPack, `__array_interface__` and `__array__`. No library is imported."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import LaunchError
from .poison import Buffer

_HOST_DEVICES = (1, 3, 11, 13)
"""Devices of DLPack with memory that a processor reads: CPU, page-locked of CUDA and of ROCm, managed."""


def as_array(name: str, value: Any) -> Any:
    """Return the memory of an array of any library as a NumPy array; other objects unchanged.

    A subclass of `np.ndarray` becomes an `np.ndarray`. Raises LaunchError for an array that NumPy cannot view without a
    copy, and for a masked one. name: of the argument, for the message.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise LaunchError(
                f"{name} is a masked array, and a kernel has no mask: give {name}.filled(value), or {name}.data"
            )
        return np.asarray(value)
    convert = _conversion(name, value)
    if convert is None:
        return value
    try:
        array = convert(value)
        copied = type(value).__name__ != "PyCapsule" and array.size and not np.may_share_memory(array, convert(value))
    except Exception as error:  # of another library
        if type(value).__name__ == "PyCapsule":
            raise LaunchError(
                f"{name} is a capsule that is not of DLPack, or that was used before: give np.asarray of the array itself"
            ) from None
        raise LaunchError(
            f"{name} is {kind_of(value)}, which NumPy cannot view: {line_of(error)}; give np.asarray({name})"
        ) from None
    if copied:
        raise LaunchError(
            f"{name} is {kind_of(value)}, which NumPy cannot view without a copy: give np.asarray({name})"
        )
    return array


def as_number(value: Any) -> Any:
    """Return the Python number of an array without dimensions of any library; other objects unchanged."""
    if isinstance(value, np.generic) or not hasattr(value, "item") or getattr(value, "shape", None) != ():
        return value
    return value.item() if not isinstance(value, np.ndarray) else value[()]


def _conversion(name: str, value: Any) -> Callable[[Any], Buffer] | None:
    """Return the function that views an object as an array; None for an object without a protocol."""
    kind = type(value)
    if isinstance(value, np.generic | type | str):
        return None
    if kind.__name__ == "PyCapsule":
        return lambda capsule: np.from_dlpack(_Exporter(capsule))
    in_gpu = has(value, "__cuda_array_interface__")
    if has(kind, "__dlpack__") and has(kind, "__dlpack_device__"):
        in_gpu |= value.__dlpack_device__()[0] not in _HOST_DEVICES
    if in_gpu:
        raise LaunchError(
            f"{name} is {kind_of(value)} in the memory of a GPU: give np.asarray of a copy on the host, such as {name}.cpu() "
            f"of PyTorch or {name}.get() of CuPy"
        )
    if _is_buffer(value):
        return lambda buffer: np.asarray(memoryview(buffer))
    if has(kind, "__dlpack__") and has(kind, "__dlpack_device__"):
        return np.from_dlpack
    if has(value, "__array_interface__") or has(value, "__array_struct__"):
        return np.asarray
    if has(kind, "__array__"):
        return lambda array: np.asarray(array.__array__())
    return None


class _Exporter:
    """The object that NumPy expects around a capsule of DLPack. NumPy checks the device in the capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def has(value: Any, name: str) -> bool:
    """Return whether an object of another library has an attribute."""
    try:
        return hasattr(value, name)
    except Exception:  # a property of another library, such as that of a tensor without memory
        return False


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except (TypeError, BufferError, ValueError):
        return False
    return True


def kind_of(value: Any) -> str:
    """Return the name of an object's type, with its package."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"


def line_of(error: Exception) -> str:
    """Return the first line of an error's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
