"""Validation of scalar arguments against their type."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..checked import shown
from ..errors import LaunchError
from ..ir import halves
from ..language.types import F32, F64, HALVES, SCALARS, Scalar, Vector, holds_floats
from .foreign_arrays import as_number


def checked_scalar(name: str, type: Scalar | Vector, value: Any) -> np.generic:
    """Return a number as the parameter `name` of this type. Raises LaunchError if the type does not hold it."""
    if value.__class__ is int and (limits := _INTEGERS.get(type.name)) and limits[0] <= value <= limits[1]:
        return limits[2](value)
    if value.__class__ is float and (kind := _FLOATS.get(type.name)) and -kind[0] <= value <= kind[0]:
        return kind[1](value)
    value = as_number(value)
    if isinstance(type, Vector):
        raise LaunchError(f"{name} is {type}; a kernel takes vectors in arrays: give Global[{type}]")
    if isinstance(value, np.generic) and holds_floats(value.dtype) and value.dtype.itemsize <= 8:
        value = float(value)
    elif isinstance(value, np.integer | np.bool_):
        value = value.item()
    what, kinds = _EXPECTED[type.kind]
    if not isinstance(value, kinds) or isinstance(value, bool) != (type.kind == "bool"):
        raise LaunchError(f"{name} is {type}: {what} is expected, not {shown(value)}")
    if type.is_integer:
        low, high = type.range
        if not low <= value <= high:
            raise LaunchError(f"{name} is {type}, which holds {low:,} to {high:,}: {shown(value)} does not fit")
    elif type.is_float and abs(value) != math.inf and abs(value) > type.largest:
        raise LaunchError(f"{name} is {type}, which holds up to {type.largest:.8g}: {shown(value)} does not fit")
    return type.dtype.type(halves.number(value, type) if type in HALVES else value)  # type: ignore[no-any-return]


_INTEGERS: dict[str, tuple[int, int, Callable[[int], np.generic]]] = {
    name: (*type.range, type.dtype.type) for name, type in SCALARS.items() if type.is_integer
}
_FLOATS: dict[str, tuple[float, Callable[[float], np.generic]]] = {
    type.name: (type.largest, type.dtype.type) for type in (F32, F64)
}
_WHOLE: tuple[str, tuple[Any, ...]] = ("a whole number", (int,))
_EXPECTED = {"bool": ("True or False", (bool,)), "int": _WHOLE, "uint": _WHOLE, "float": ("a number", (int, float))}
"""By kind of type, the name of its values for messages, and their Python types."""
