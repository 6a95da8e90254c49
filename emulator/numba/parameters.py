"""Parameters of a kernel as Numba flattens them, and the values of an argument in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.np import numpy_support

from ..errors import LaunchError
from ..ir import names
from ..language.types import BOOL, COMPLEX, I64, U8, Scalar, from_dtype
from ..llvmir.parameters import ArrayParameter, ConstantParameter, Parameter, ScalarParameter, UnusedPointer


@dataclass(frozen=True)
class Pointer:
    """The memory of an array argument. low: the lowest address of its elements; size: bytes from there to the end of the last."""

    address: int
    low: int
    size: int


def parameters_of(name: str, type: Any) -> list[Parameter]:
    """Return the parameters of the LLVM function for one argument. Raises LaunchError for an unsupported type."""
    match type:
        case types.Array():
            return _array(name, type)
        case types.BaseTuple():
            return [leaf for number, item in enumerate(type) for leaf in parameters_of(f"{name}@:{number}", item)]
        case types.Complex():
            scalar = _scalar(type.underlying_float)
            return [ScalarParameter(names.component(name, key), scalar) for key in ("real", "imag")]
        case types.Record():
            return [ArrayParameter(name, None, numpy_support.as_dtype(type).itemsize)]
        case types.EnumMember():
            return parameters_of(name, type.dtype)
        case types.NPDatetime() | types.NPTimedelta():
            return [ScalarParameter(name, I64)]
        case types.Number() | types.Boolean():
            return [ScalarParameter(name, _scalar(type))]
        case types.CPointer():
            return [ArrayParameter(name, _element(numpy_support.as_dtype(type.dtype)), _size(type.dtype))]
        case types.Omitted() | types.NoneType() | types.Function() | types.Dispatcher() | types.TypeRef():
            return [UnusedPointer(name)]  # without a value
    raise LaunchError(f"{name}: an argument of Numba's type {type} is not supported")


def _array(name: str, type: Any) -> list[Parameter]:
    size, dimensions = _size(type.dtype), range(type.ndim)
    return [
        UnusedPointer(), UnusedPointer(), ScalarParameter(f"{name}@.size", I64), ConstantParameter(size, I64),
        ArrayParameter(name, _element(numpy_support.as_dtype(type.dtype)), size, offset=type.layout == "A"),
        *(ScalarParameter(names.extent(name, axis), I64) for axis in dimensions),
        *(ScalarParameter(names.stride(name, axis), I64) for axis in dimensions),
    ]  # fmt: skip


def _size(type: Any) -> int:
    return int(numpy_support.as_dtype(type).itemsize)


def _scalar(type: Any) -> Scalar:
    scalar = from_dtype(numpy_support.as_dtype(type))
    if not isinstance(scalar, Scalar):
        raise LaunchError(f"a value of Numba's type {type} is not supported")
    return scalar


def _element(dtype: np.dtype[Any]) -> Scalar | None:
    """Return the type of an array's elements in the program; None for records and complex numbers, whose fields are accessed."""
    if dtype in COMPLEX.values() or dtype.names is not None or dtype.subdtype is not None:
        return None
    if dtype.kind in "mM":
        return I64
    scalar = from_dtype(dtype)
    if not isinstance(scalar, Scalar):
        raise LaunchError(f"an array of {dtype} is not supported")
    return U8 if scalar is BOOL else scalar


def pointer_to(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Pointer:
    """Return the memory of an array with strides in bytes."""
    if 0 in shape:
        return Pointer(address, address, 0)
    low = sum(min(0, (n - 1) * step) for n, step in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * step) for n, step in zip(shape, strides, strict=True))
    return Pointer(address, address + low, high - low + itemsize)
