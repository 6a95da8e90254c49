"""Memory of a GPU that another library owns: read from `__cuda_array_interface__` and DLPack, and given in both.

No library is imported. An array is described by the address of its first element, its shape, strides and dtype.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import LaunchError
from .foreign_arrays import has, kind_of, line_of
from .poison import Buffer

CUDA_DEVICES = (2, 13)
"""Devices of DLPack in the memory of a CUDA GPU: its own, and managed."""
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
"""Kinds of NumPy's types by DLPack's codes; 4 is bfloat16."""
_LEGACY_STREAM = 1
"""The number of the default stream in both protocols."""


@dataclass(eq=False, slots=True)
class ExternalMemory:
    """An array in the memory of a GPU, owned by another library.

    form: an array of the same shape, type and strides, with any contents. layout: these, one object for equal arrays.
    stream: of its pending operations; 0 for none. readonly: whether kernels must not write it. owner, capsule: keep the
    memory.
    """

    address: int
    form: Buffer
    layout: tuple[Any, ...]
    stream: int
    readonly: bool
    owner: Any
    capsule: Any = None

    @property
    def end(self) -> int:
        """The address after the last element."""
        if not self.form.size:
            return self.address
        last = sum((n - 1) * step for n, step in zip(self.form.shape, self.form.strides, strict=True))
        return self.address + int(last) + self.form.itemsize

    def read(self) -> Buffer:
        """Raise LaunchError: an emulator does not read it."""
        raise LaunchError(
            f"{kind_of(self.owner)} in the memory of a GPU: give np.asarray of a copy on the host, such as x.cpu() of PyTorch or "
            'x.get() of CuPy, or engine="cuda"'
        )


def external_memory(name: str, value: Any) -> ExternalMemory | None:
    """Return the memory of an array on a GPU of any library; None for other objects. Raises LaunchError for an unsupported array."""
    try:
        interface = _interface(value)
        if type(interface) is dict or isinstance(interface, Mapping):
            return _of_interface(name, value, interface)
        if has(type(value), "__dlpack_device__") and value.__dlpack_device__()[0] in CUDA_DEVICES:
            return _of_capsule(name, value)
    except LaunchError:
        raise
    except Exception as error:  # of another library
        raise LaunchError(f"{name} is {kind_of(value)}, whose memory is not given: {line_of(error)}") from None
    return None


def _interface(value: Any) -> Any:
    """Return the description of an array, which some libraries make anew at each use; None for an object without one."""
    try:
        return value.__cuda_array_interface__
    except Exception:  # of another library, such as for a tensor without memory
        return None


def _of_interface(name: str, value: Any, interface: Mapping[str, Any]) -> ExternalMemory:
    if interface.get("mask") is not None:
        raise LaunchError(f"{name} is masked, and a kernel has no mask: give its data")
    address, readonly = interface["data"]
    stream = interface.get("stream") or 0
    form = _form(tuple(interface["shape"]), interface.get("strides"), interface["typestr"])
    return ExternalMemory(address or 0, *form, 0 if stream == _LEGACY_STREAM else stream, bool(readonly), value)


@lru_cache(256)
def _form(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, type: str | np.dtype[Any]
) -> tuple[Buffer, tuple[Any, ...]]:
    """Return form and layout: an array that nothing accesses; its memory is not allocated by the system until then."""
    form = _array(shape, strides, np.dtype(type))
    return form, (ExternalMemory, form.dtype, form.shape, form.strides)


def _array(shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Buffer:
    if strides is None or 0 in shape:
        return np.empty(shape, dtype)
    if min(strides, default=0) < 0:
        raise LaunchError(f"an array with the strides {strides} runs backwards: give a contiguous copy")
    size = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + dtype.itemsize
    return np.ndarray(shape, dtype, np.empty(size, np.uint8), strides=strides)


# ------------------------------------------------------------------ DLPack
class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _ManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_NAME = b"dltensor"
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.restype, _is_capsule.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _of_capsule(name: str, value: Any) -> ExternalMemory:
    capsule = value.__dlpack__(stream=_LEGACY_STREAM)  # the default stream waits for pending operations
    tensor = _ManagedTensor.from_address(_get_pointer(capsule, _NAME)).tensor
    kind, size = tensor.type, tensor.type.bits // 8
    if kind.lanes != 1 or (kind.code != 4 and kind.code not in _KINDS):
        raise LaunchError(
            f"{name} has elements of DLPack's code {kind.code} with {kind.bits} bits, which no type of a kernel has"
        )
    if kind.code == 4:
        from ml_dtypes import bfloat16  # late: few programs use it

        dtype = np.dtype(bfloat16)
    else:
        dtype = np.dtype(f"{_KINDS[kind.code]}{size}")
    shape = tuple(tensor.shape[: tensor.dimensions])
    strides = tuple(step * size for step in tensor.strides[: tensor.dimensions]) if tensor.strides else None
    form = _form(shape, strides, dtype)
    return ExternalMemory((tensor.data or 0) + tensor.offset, *form, 0, False, value, capsule)


_exported: dict[int, tuple[Any, ...]] = {}
"""The owners of exported tensors, by the address of the tensor, until their last user ends."""


def _drop(address: int) -> None:
    _exported.pop(address, None)


_release = _Deleter(_drop)


def _drop_unused(capsule: int) -> None:
    """Release the tensor of a capsule that no library has used."""
    if _is_capsule(capsule, _NAME):
        _drop(_pointer_of(capsule, _NAME))


_end_capsule = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop_unused)


def new_capsule(address: int, form: Buffer, device: int, owner: Any) -> Any:
    """Return a DLPack capsule of a contiguous array in the memory of CUDA device `device`. owner: keeps the memory."""
    codes = {kind: code for code, kind in _KINDS.items()}
    code = 4 if form.dtype.name == "bfloat16" else codes[form.dtype.kind]
    shape = (ctypes.c_int64 * max(1, form.ndim))(*form.shape)
    managed = _ManagedTensor(
        _Tensor(address, _Device(2, device), form.ndim, _Type(code, 8 * form.itemsize, 1), shape, None, 0),
        None,
        _release,
    )
    at = ctypes.addressof(managed)
    _exported[at] = managed, shape, owner
    return _new_capsule(at, _NAME, ctypes.cast(_end_capsule, ctypes.c_void_p))
