"""The value of a Python expression in a kernel: a typed IR expression, or something known at compile time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import nodes as ir
from ..language.types import BOOL, F32, I32, Array, Scalar
from ..span import Span


@dataclass(frozen=True)
class Literal:
    """A compile-time number without a type yet: it takes the type of the other operand."""

    value: bool | int | float

    @property
    def natural(self) -> Scalar:
        """The type it has where nothing else decides: bool, i32 or f32."""
        return BOOL if isinstance(self.value, bool) else I32 if isinstance(self.value, int) else F32


@dataclass(frozen=True)
class Tuple:
    """A compile-time tuple."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class ArrayValue:
    """An array, seen in one dimension or, with strides, in several."""

    name: str
    type: Array
    strides: tuple[ir.Expr | Literal, ...] = (Literal(1),)


@dataclass(frozen=True)
class Host:
    """A Python object: a module, an intrinsic, a type, a device function."""

    object: Any


Value = ir.Expr | Literal | Tuple | ArrayValue | Host


class SourceError(Exception):
    """An error in the user's source. Reading goes on with the next statement."""

    def __init__(self, span: Span, message: str, *notes: str) -> None:
        super().__init__(message)
        self.span, self.message, self.notes = span, message, notes


class AlreadyReported(Exception):
    """A place that depends on an error that was reported already, and so is not reported itself."""


def of_python(value: Any) -> Value:
    """The compile-time value of a Python object."""
    if isinstance(value, bool | int | float):
        return Literal(value)
    if isinstance(value, np.generic):
        return Literal(value.item())
    if isinstance(value, tuple):
        return Tuple(tuple(of_python(v) for v in value))
    return Host(value)


def describe(value: Value) -> str:
    """How a message names a value's type."""
    match value:
        case Literal():
            return f"the literal {value.value!r}"
        case Tuple():
            return "a tuple"
        case ArrayValue():
            return f"a {value.type.space} array"
        case Host():
            return getattr(value.object, "__name__", None) or repr(value.object)
    return str(value.type)
