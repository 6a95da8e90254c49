"""Python constants in kernels: numbers, tuples, and classes of constants or structs.

A launch needs them before it reads the kernel, so this module does not import the IR.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from ..language.types import BOOL, C64, F32, I32, Scalar, Vector

MAX_TUPLE = 1 << 17
"""Maximum items of a compile-time tuple; larger than any constant table."""


@dataclass(frozen=True)
class Literal:
    """A compile-time bool, int, float or complex without a type: it adapts to the other operand."""

    value: Any

    @property
    def natural(self) -> Scalar | Vector:
        """The type without other constraints: bool, i32, f32 or c64."""
        if isinstance(self.value, complex):
            return C64
        return BOOL if isinstance(self.value, bool) else I32 if isinstance(self.value, int) else F32


@dataclass(frozen=True)
class Tuple:
    """A compile-time tuple."""

    items: tuple[Any, ...]


def is_record(value: Any) -> bool:
    """Return whether an object's attributes are constants: an enumeration, a named tuple, a frozen dataclass."""
    if isinstance(value, type):
        return issubclass(value, Enum)
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    return is_dataclass(value) and bool(value.__dataclass_params__.frozen)  # type: ignore[union-attr]


def is_struct(value: Any) -> bool:
    """Return whether an object is a struct class: a named tuple or a dataclass."""
    if not isinstance(value, type):
        return False
    if issubclass(value, tuple):
        return hasattr(value, "_fields")
    return is_dataclass(value)


def field_annotations(record: type, user: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotation of each field. Text is evaluated in the class's module, then in the user's names.

    Raises NameError.
    """
    annotations: dict[str, Any] = {}
    for base in reversed(record.__mro__):
        annotations |= vars(base).get("__annotations__", {})
    own = sys.modules.get(record.__module__)
    space = {**user, **(vars(own) if own else {})}
    fields = getattr(record, "_fields", None) or tuple(getattr(record, "__dataclass_fields__", ()))
    return {name: _evaluated(annotations.get(name), space) for name in fields}


def _evaluated(annotation: Any, space: dict[str, Any]) -> Any:
    text = getattr(annotation, "__forward_arg__", annotation)
    return eval(text, space) if isinstance(text, str) else annotation


def exact(value: Any) -> Any:
    """Return a key with exact types for constants: True, 1 and 1.0 differ, and so do 0.0 and -0.0."""
    if isinstance(value, Tuple | tuple):
        return tuple(exact(item) for item in (value.items if isinstance(value, Tuple) else value))
    number = value.value if isinstance(value, Literal) else value.item() if isinstance(value, np.generic) else value
    if isinstance(number, complex):
        return "complex", exact(number.real), exact(number.imag)
    return type(number).__name__, number.hex() if isinstance(number, float) else number
