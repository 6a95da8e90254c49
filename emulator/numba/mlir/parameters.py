"""Parameters of a kernel as the lowering to MLIR flattens them, and their values from the arguments of a launch."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numba_cuda_mlir import types
from numba_cuda_mlir.numba_cuda.core.errors import NumbaNotImplementedError
from numba_cuda_mlir.numba_cuda.cudadrv.devicearray import auto_device
from numba_cuda_mlir.numba_cuda.np.numpy_support import as_dtype

from ...driver.memory import Pointer, pointer_to
from ...errors import LaunchError
from ...ir import names
from ...language.types import I64, Scalar
from ...llvmir.parameters import (
    ArrayParameter,
    ConstantParameter,
    Parameter,
    ScalarParameter,
    StructParameter,
    UnusedPointer,
)
from ..element_types import element_type, scalar_type

_OPAQUE = (types.Record, types.CharSeq, types.UnicodeCharSeq)
"""Types of elements that the package accesses as bytes."""


def flat_types(name: str, type: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and types of the numbers, records and arrays of one argument. None and defaults have no value."""
    if isinstance(type, types.BaseTuple):
        for number, item in enumerate(type):
            yield from flat_types(f"{name}@:{number}", item)
    elif not isinstance(type, types.NoneType | types.Omitted):
        yield name, type.dtype if isinstance(type, types.EnumMember) else type


def parameters_of(name: str, type: Any) -> list[Parameter]:
    """Return the parameters of the LLVM function for one of `flat_types`. Raises LaunchError for an unsupported type."""
    match type:
        case types.Array():
            return _array(name, type)
        case types.Record():
            return [ArrayParameter(name, None, as_dtype(type).itemsize)]
        case types.NPDatetime() | types.NPTimedelta():
            return [ScalarParameter(name, I64)]
        case types.Complex():
            scalar = scalar_type(as_dtype(type.underlying_float))
            items = [ScalarParameter(names.component(name, key), scalar) for key in ("real", "imag")]
            return [StructParameter(tuple(items))]
        case types.Number() | types.Boolean():
            return [ScalarParameter(name, scalar_type(as_dtype(type)))]
        case types.CPointer():
            return [ArrayParameter(name, *_element(type.dtype))]
    raise LaunchError(f"{name}: an argument of Numba's type {type} is not supported")


def _array(name: str, type: Any) -> list[Parameter]:
    """Two pointers, the offset, then extents and strides in elements; strides of opaque types are in bytes.

    The package launches one kernel for all layouts: strides are known at the launch.
    """
    (element, size), axes = _element(type.dtype), range(type.ndim)
    return [
        UnusedPointer(), ArrayParameter(name, element, size, offset=True),
        ConstantParameter(0, I64), *(ScalarParameter(names.extent(name, axis), I64) for axis in axes),
        *(ScalarParameter(names.stride(name, axis), I64) for axis in axes),
    ]  # fmt: skip


def _element(type: Any) -> tuple[Scalar | None, int]:
    """Return the type of elements in the program and their bytes; None for elements that NumPy does not have."""
    try:
        dtype = as_dtype(type)
    except NumbaNotImplementedError:
        if not hasattr(type, "bitwidth"):
            raise LaunchError(f"an array of Numba's type {type} is not supported") from None
        return None, -(-type.bitwidth // 8)
    return element_type(dtype), dtype.itemsize


class ValueReader:
    """The values of the parameters of one launch. available: bytes from an address to the end of its memory.

    items: of structures. copies: functions to call after the launch.
    """

    def __init__(self, available: Callable[[int], int]) -> None:
        self.available = available
        self.values: list[Any] = []
        self.items: list[Any] = []
        self.copies: list[Callable[[], object]] = []

    def read(self, type: Any, value: Any) -> None:
        """Append the values of one of `flat_types`."""
        match type:
            case types.Array():
                self._read_array(value, isinstance(type.dtype, _OPAQUE))
            case types.Record():
                record, is_copy = auto_device(value)
                address = int(record.device_ctypes_pointer.value)
                self.values.append(Pointer(address, address, as_dtype(type).itemsize))
                self.copies.append((lambda: record.copy_to_host(value)) if is_copy else lambda: record)
            case types.NPDatetime() | types.NPTimedelta():
                self.values.append(int(value.view("i8")))
            case types.CPointer():
                self.values.append(Pointer(int(value), int(value), self.available(int(value))))
            case types.Complex():
                self.values.append(value)
                self.items += [value.real, value.imag]
            case _:
                self.values.append(getattr(value, "value", value))  # of an enumeration

    def _read_array(self, value: Any, opaque: bool) -> None:
        """Append the values of an array with the CUDA array interface."""
        interface = value.__cuda_array_interface__
        shape, itemsize = interface["shape"], np.dtype(interface["typestr"]).itemsize
        address, strides = interface["data"][0], interface.get("strides")
        steps = strides or _compact(shape, itemsize)
        pointer = pointer_to(address, shape, steps, itemsize)
        # The package gives strides of opaque types in bytes, but in elements if the array is C-contiguous.
        unit = 1 if opaque and strides else itemsize
        self.values += [0, pointer, 0, *shape, *(step // unit for step in steps)]


def _compact(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a C-contiguous array."""
    return tuple(accumulate(reversed((*shape[1:], itemsize)), mul))[::-1] if shape else ()
