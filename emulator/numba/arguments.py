"""Values of Numba's flattened parameters, from the arguments of a launch. Host arrays are copied to the device and back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from numba.cuda import types
from numba.cuda.args import wrap_arg
from numba.cuda.np import numpy_support

from ..errors import LaunchError
from .launching import Available
from .memory import Pointer, pointer_to
from .parameters import is_opaque

CopyBack = Callable[[], object]


class ValueReader:
    """The arguments of one launch. extensions: of the dispatcher. copies: functions to call after the launch."""

    def __init__(self, extensions: Sequence[Any], stream: Any, available: Available) -> None:
        self.extensions, self.stream, self.available = extensions, stream, available
        self.copies: list[CopyBack] = []
        self.values: list[Any] = [None]  # the pointer to the result

    def read(self, type: Any, value: Any) -> None:
        """Append the values of one argument. Raises LaunchError for an unsupported type."""
        for extension in reversed(self.extensions):
            type, value = extension.prepare_args(type, value, stream=self.stream, retr=self.copies)
        if isinstance(type, types.Array):
            self._read_array(value)
        elif isinstance(type, types.Complex):
            self.values += [value.real, value.imag]
        elif isinstance(type, types.Integer):
            self.values.append(operator.index(value))  # as Numba: no float for an integer parameter
        elif isinstance(type, types.Number | types.Boolean):
            self.values.append(value)
        elif isinstance(type, types.BaseTuple):
            for item_type, item in zip(type, value, strict=True):
                self.read(item_type, item)
        elif isinstance(type, types.NPDatetime | types.NPTimedelta):
            self.values.append(int(value.view("i8")))
        elif isinstance(type, types.Record):
            size = numpy_support.as_dtype(type).itemsize
            address = int(wrap_arg(value).to_device(self.copies, self.stream).ptr)
            self.values.append(Pointer(address, address, size))
        elif isinstance(type, types.EnumMember):
            self.read(type.dtype, value.value)
        elif isinstance(type, types.CPointer):
            self.values.append(Pointer(int(value), int(value), self.available(int(value))))
        elif is_opaque(type):
            self.values.append(None)  # without a value
        else:
            raise LaunchError(f"an argument of Numba's type {type} is not supported")

    def _read_array(self, value: Any) -> None:
        view = wrap_arg(value).to_device(self.copies, self.stream)
        shape, itemsize, layout = tuple(view.shape), view.dtype.itemsize, view._layout
        strides = layout.strides_in_bytes or numpy_support.strides_from_shape(
            shape=shape,
            itemsize=itemsize,
            c_contiguous=layout.is_contiguous_c,
            f_contiguous=layout.is_contiguous_f,
        )
        pointer = pointer_to(int(view.ptr or 0), shape, strides, itemsize)
        self.values += [0, 0, view.size, itemsize, pointer, *shape, *strides]
