"""Parameters of a kernel as Numba flattens them."""

from typing import Any

from numba.cuda import types
from numba.cuda.datamodel.models import OpaqueModel
from numba.cuda.descriptor import cuda_target
from numba.cuda.np import numpy_support

from ..errors import LaunchError
from ..ir import names
from ..language.types import I64
from ..llvmir.parameters import ArrayParameter, ConstantParameter, Parameter, ScalarParameter, UnusedPointer
from .element_types import element_type, scalar_type


def parameters_of(name: str, type: Any) -> list[Parameter]:
    """Return the parameters of the LLVM function for one argument. Raises LaunchError for an unsupported type."""
    match type:
        case types.Array():
            return _array(name, type)
        case types.BaseTuple():
            return [leaf for number, item in enumerate(type) for leaf in parameters_of(f"{name}@:{number}", item)]
        case types.Complex():
            scalar = scalar_type(numpy_support.as_dtype(type.underlying_float))
            return [ScalarParameter(names.component(name, key), scalar) for key in ("real", "imag")]
        case types.Record():
            return [ArrayParameter(name, None, numpy_support.as_dtype(type).itemsize)]
        case types.EnumMember():
            return parameters_of(name, type.dtype)
        case types.NPDatetime() | types.NPTimedelta():
            return [ScalarParameter(name, I64)]
        case types.Number() | types.Boolean():
            return [ScalarParameter(name, scalar_type(numpy_support.as_dtype(type)))]
        case types.CPointer():
            return [ArrayParameter(name, element_type(numpy_support.as_dtype(type.dtype)), _size(type.dtype))]
        case types.Omitted() | types.NoneType() | types.Function() | types.Dispatcher() | types.TypeRef():
            return [UnusedPointer(name)]  # without a value
    if _is_opaque(type):
        return [UnusedPointer(name)]
    raise LaunchError(f"{name}: an argument of Numba's type {type} is not supported")


def _is_opaque(type: Any) -> bool:
    """Return whether values of a type have no content: the argument is a pointer without a meaning."""
    return isinstance(cuda_target.target_context.data_model_manager[type], OpaqueModel)


def _array(name: str, type: Any) -> list[Parameter]:
    size, dimensions = _size(type.dtype), range(type.ndim)
    return [
        UnusedPointer(), UnusedPointer(), ScalarParameter(f"{name}@.size", I64), ConstantParameter(size, I64),
        ArrayParameter(name, element_type(numpy_support.as_dtype(type.dtype)), size, offset=type.layout == "A"),
        *(ScalarParameter(names.extent(name, axis), I64) for axis in dimensions),
        *(ScalarParameter(names.stride(name, axis), I64) for axis in dimensions),
    ]  # fmt: skip


def _size(type: Any) -> int:
    return int(numpy_support.as_dtype(type).itemsize)
