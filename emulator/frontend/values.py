"""Values of Python expressions in a kernel: typed IR expressions, or compile-time values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np

from ..ir import nodes as ir
from ..language.intrinsics import Index3
from ..language.tensor_maps import TensorMapForm
from ..language.types import C64, F32, Array, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from .constants import MAX_TUPLE, Literal, Tuple, is_record


@dataclass(frozen=True)
class Choice:
    """`yes if condition else no` of untyped numbers."""

    condition: ir.Expr
    yes: Literal | Choice
    no: Literal | Choice

    @property
    def natural(self) -> Scalar | Vector:
        """The type without other constraints."""
        kinds = self.yes.natural, self.no.natural
        return next((wide for wide in (C64, F32) if wide in kinds), kinds[0])


@dataclass(frozen=True)
class Struct:
    """A named tuple or a dataclass by its fields. type: a `records.StructType`."""

    type: Any
    items: tuple[Any, ...]


@dataclass(frozen=True)
class StructArray:
    """A global array of structs, or a view of one: one array per field. type: a `records.StructType`."""

    type: Any
    items: tuple[ArrayValue | StructArray, ...]


@dataclass(frozen=True)
class StructElement:
    """An element of an array of structs, not yet loaded. index: the evaluated index."""

    array: StructArray
    index: Any


Number = ir.Expr | Literal


@dataclass(frozen=True)
class Brackets:
    """The brackets that create a view. text: with the array, as x[i]. dimensions: of the array. is_row: without slices."""

    text: str
    array: str
    dimensions: int
    is_row: bool
    span: Span


@dataclass(frozen=True)
class ArrayValue:
    """An array, or a view of one.

    name, type: of the array in the IR. extents, strides: by dimension, in elements. offset: of the view's first
    element. shown: the user's name. is_whole: whether it is one-dimensional and covers the whole IR array. is_long: whether it
    is, or is a slice of, one dimension with more elements than an i32 holds. brackets: of a view that this function creates. block: the
    rank of the block of the cluster that has the array; None for the block of the thread.
    """

    name: str
    type: Array
    extents: tuple[Number, ...]
    strides: tuple[Number, ...]
    offset: Number
    shown: str
    is_whole: bool
    is_view: bool = False
    is_long: bool = False
    brackets: Brackets | None = None
    block: ir.Expr | None = None


@dataclass(frozen=True)
class Tensor:
    """A parameter with a tensor map. name: of the array in the IR."""

    name: str
    form: TensorMapForm


@dataclass(frozen=True)
class Host:
    """A Python object: a module, an intrinsic, a type, a device function."""

    object: Any

    @property
    def is_index(self) -> bool:
        """Whether the object is `st.thread` or a similar index with axes."""
        return isinstance(self.object, Index3)

    @property
    def name(self) -> str:
        """The name in messages."""
        target = self.object
        if isinstance(target, Index3):
            return f"st.{target._name}"
        if target is None:
            return "nothing"
        if isinstance(target, str):
            return f"the text {target!r}"
        named = getattr(target, "__name__", None)
        if isinstance(named, str):
            return f"the module {named}" if isinstance(target, ModuleType) else named
        words = {list: "a list", dict: "a dict", set: "a set", np.ndarray: "a NumPy array"}
        return words.get(type(target), f"an object of {type(target).__name__}")


NOTHING = Host(None)
"""The value of a call without a result."""

NO_ACCESS = (
    "the array of another block takes loads, stores, atomic operations and arrivals at barriers, in the function that maps it",
    "pass the rank, and write st.map_shared_rank(array, rank) there",
)
"""The message about any other use of an array of another block, and what to write."""

Value = ir.Expr | Literal | Choice | Tuple | Struct | StructArray | ArrayValue | Tensor | Host


class SourceError(Exception):
    """An error in the user's source. Reading continues with the next statement."""

    def __init__(self, span: Span, message: str, *notes: str) -> None:
        super().__init__(message)
        self.span, self.message, self.notes = span, message, notes


class TypeConflict(SourceError):
    """An error resolved by another type: pairs of an expression and an acceptable type."""

    def __init__(self, span: Span, message: str, *notes: str, pairs: tuple[tuple[ir.Expr, Any], ...]) -> None:
        super().__init__(span, message, *notes)
        self.pairs = pairs


class NeedsConstants(Exception):
    """Raised if the variable of an unrolled loop must be a number: the loop is then read once per value."""


class AlreadyReported(Exception):
    """Raised at a use of an erroneous value; the error is reported already."""


def of_python(value: Any) -> Value:
    """Return the compile-time value of a Python object."""
    if isinstance(value, Enum):
        return of_python(value.value)
    if isinstance(value, bool):
        return Literal(value)
    if isinstance(value, int | float):
        return Literal(int(value) if isinstance(value, int) else float(value))
    if isinstance(value, complex):
        return Literal(complex(value))
    if isinstance(value, np.bool_ | np.integer | np.floating | np.complexfloating):
        return Literal(value.item())
    if isinstance(value, Literal | Choice | Tuple | ArrayValue | Host | ir.Expr):
        return value
    if is_record(value):
        return Host(value)
    if isinstance(value, tuple | bytes) and len(value) <= MAX_TUPLE:
        return Tuple(tuple(of_python(v) for v in value))
    return Host(value)


def describe(value: Value) -> str:
    """Return the name of a value's type for messages."""
    match value:
        case Literal():
            return f"the literal {value.value!r}"
        case Choice():
            return f"{describe(value.yes)} or {describe(value.no)}"
        case Tuple():
            return "a tuple"
        case StructArray():
            return f"an array of {value.type}"
        case Struct():
            return f"a {value.type}"
        case ArrayValue(is_view=True):
            return f"a view of {value.name} ({_form(value)})"
        case ArrayValue():
            return f"a {value.type.space} array"
        case Tensor():
            return "a tensor map"
        case Host():
            return value.name
    return str(value.type)


def written(type: ValueType) -> str:
    """Return the text of a type in a kernel."""
    return f"st.{type}"


def view_as_number(value: ArrayValue, span: Span) -> SourceError:
    """Return the error of a view used as a number: at its brackets, or at the use of a parameter of a device function."""
    brackets = value.brackets
    if brackets is not None and brackets.is_row:
        text, array = brackets.text, brackets.array
        return SourceError(
            brackets.span,
            f"{array} has {brackets.dimensions} dimensions: {text} is a row of it, not an element",
            element_advice(value, brackets),
        )
    text = value.shown if brackets is None else brackets.text
    more = ", ".join("jkmnp"[: len(value.extents)])
    message = f"{text} is a view of {value.name} ({_form(value)})"
    return SourceError(span if brackets is None else brackets.span, message, f"write {text}[{more}]")


def element_advice(value: ArrayValue, brackets: Brackets) -> str:
    """Return the hint for a row where an element is expected."""
    flat = f", or give the kernel {value.name}.ravel()" if value.type.space == "global" else ""
    return f"write {brackets.array}[{', '.join('ijkmn'[: brackets.dimensions])}]{flat}"


def _form(value: ArrayValue) -> str:
    count = len(value.extents)
    return f"{value.type.element}, {count} dimension{'s' if count > 1 else ''}"
