"""Values of Numba's flattened parameters, from the arguments of a launch. Host arrays are copied to the device and back."""

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from numba.cuda import types
from numba.cuda.args import wrap_arg
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.np import numpy_support

from ..driver.memory import Pointer, pointer_to
from .launching import Available

CopyBack = Callable[[], object]


class ValueReader:
    """The arguments of one launch. extensions: of the dispatcher. copies: functions to call after the launch."""

    def __init__(self, extensions: Sequence[Any], stream: Any, available: Available) -> None:
        self.extensions, self.stream, self.available = extensions, stream, available
        self.copies: list[CopyBack] = []
        self.values: list[Any] = [None]  # the pointer to the result

    def read(self, type: Any, value: Any) -> None:
        """Append the values of one argument. Raises NotImplementedError for an unsupported type, as Numba."""
        for extension in reversed(self.extensions):
            type, value = extension.prepare_args(type, value, stream=self.stream, retr=self.copies)
        _method_for(type.__class__)(self, type, value)

    def _complex(self, type: Any, value: Any) -> None:
        self.values += [value.real, value.imag]

    def _integer(self, type: Any, value: Any) -> None:
        self.values.append(operator.index(value))  # as Numba: no float for an integer parameter

    def _number(self, type: Any, value: Any) -> None:
        self.values.append(value)

    def _tuple(self, type: Any, value: Any) -> None:
        for item_type, item in zip(type, value, strict=True):
            self.read(item_type, item)

    def _time(self, type: Any, value: Any) -> None:
        self.values.append(int(value.view("i8")))

    def _record(self, type: Any, value: Any) -> None:
        size = numpy_support.as_dtype(type).itemsize
        address = int(wrap_arg(value).to_device(self.copies, self.stream).ptr)
        self.values.append(Pointer(address, address, size))

    def _enumeration(self, type: Any, value: Any) -> None:
        self.read(type.dtype, value.value)

    def _pointer(self, type: Any, value: Any) -> None:
        self.values.append(Pointer(int(value), int(value), self.available(int(value))))

    def _other(self, type: Any, value: Any) -> None:
        raise NotImplementedError(type, value)

    def _array(self, type: Any, value: Any) -> None:
        on_device = isinstance(value, DeviceNDArray)
        view = value._strided_memory_view_shim if on_device else wrap_arg(value).to_device(self.copies, self.stream)
        shape, itemsize, layout = tuple(view.shape), view.dtype.itemsize, view._layout
        strides = layout.strides_in_bytes or numpy_support.strides_from_shape(
            shape=shape,
            itemsize=itemsize,
            c_contiguous=layout.is_contiguous_c,
            f_contiguous=layout.is_contiguous_f,
        )
        pointer = pointer_to(int(view.ptr or 0), shape, strides, itemsize)
        self.values += [0, 0, view.size, itemsize, pointer, *shape, *strides]


_METHODS = (
    (types.Array, ValueReader._array),
    (types.Complex, ValueReader._complex),
    (types.Integer, ValueReader._integer),
    ((types.Number, types.Boolean), ValueReader._number),
    (types.BaseTuple, ValueReader._tuple),
    ((types.NPDatetime, types.NPTimedelta), ValueReader._time),
    (types.Record, ValueReader._record),
    (types.EnumMember, ValueReader._enumeration),
    (types.CPointer, ValueReader._pointer),
)


@cache
def _method_for(kind: type) -> Callable[[ValueReader, Any, Any], None]:
    """Return the method for arguments of a class of Numba's types."""
    return next((method for base, method in _METHODS if issubclass(kind, base)), ValueReader._other)
