"""A number that a host gives: it must fit its type of the language."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checked import shown
from ..errors import LaunchError
from ..ir import halves
from ..language.types import HALVES, Scalar, Vector, holds_floats


def scalar_given(name: str, type: Scalar | Vector, given: Any) -> np.generic:
    """A number as the parameter `name` of this type takes it. Raises LaunchError for what the type does not hold."""
    if isinstance(type, Vector):
        raise LaunchError(f"{name} is {type}; a kernel's vectors come in arrays: give Global[{type}]")
    if isinstance(given, np.generic) and holds_floats(given.dtype) and given.dtype.itemsize <= 8:
        given = float(given)
    elif isinstance(given, np.integer | np.bool_):
        given = given.item()
    what, kinds = _EXPECTED[type.kind]
    if not isinstance(given, kinds) or isinstance(given, bool) != (type.kind == "bool"):
        raise LaunchError(f"{name} is {type}: {what} is expected, not {shown(given)}")
    if type.is_integer:
        low, high = type.range
        if not low <= given <= high:
            raise LaunchError(f"{name} is {type}, which holds {low:,} to {high:,}: {shown(given)} does not fit")
    elif type.is_float and abs(given) != math.inf and abs(given) > type.largest:
        raise LaunchError(f"{name} is {type}, which holds up to {type.largest:.8g}: {shown(given)} does not fit")
    return type.dtype.type(halves.number(given, type) if type in HALVES else given)  # type: ignore[no-any-return]


_WHOLE: tuple[str, tuple[Any, ...]] = ("a whole number", (int,))
_EXPECTED = {"bool": ("True or False", (bool,)), "int": _WHOLE, "uint": _WHOLE, "float": ("a number", (int, float))}
"""By kind of type, what a message calls its values, and Python's types of them."""
