"""Tuples and structs in a kernel: components stored in registers and parameters of their own.

A tuple has the types of its items. A struct is a named tuple or a dataclass of numbers, vectors, tuples and structs.
Only the result of a device function is a single value in the IR, `Results`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..ir import names
from ..ir import nodes as ir
from ..language.types import COMPLEX, I32, Array, Results, Vector
from ..language.types import Value as ValueType
from ..span import Span
from . import typing
from .constants import Tuple
from .protocols import FunctionReader
from .signature import RecordParameter
from .values import Host, SourceError, Struct, Value, describe, of_python


@dataclass(frozen=True)
class TupleType:
    """The types of a tuple's items."""

    items: tuple[Any, ...]

    def __str__(self) -> str:
        return f"tuple[{', '.join(map(str, self.items))}]"

    @property
    def components(self) -> Iterator[tuple[str, Any]]:
        return ((str(n), item) for n, item in enumerate(self.items))


@dataclass(frozen=True)
class StructType:
    """A struct: the Python class, and its fields with their types."""

    record: type
    fields: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return self.record.__name__

    @property
    def components(self) -> Iterator[tuple[str, Any]]:
        return iter(self.fields)


RecordType = TupleType | StructType


# ------------------------------------------------------------------ leaves
def leaf_types(type: ValueType | RecordType) -> list[Any]:
    """Return the types of the numbers, vectors and arrays in a value of this type, in order."""
    if isinstance(type, RecordType):
        return [leaf for _, component in type.components for leaf in leaf_types(component)]
    return [type]


def leaf_names(name: str, type: ValueType | RecordType) -> list[str]:
    """Return the register or parameter name of each leaf."""
    if isinstance(type, RecordType):
        return [
            leaf for key, component in type.components for leaf in leaf_names(names.component(name, key), component)
        ]
    return [name]


def leaf_paths(type: ValueType | RecordType) -> list[tuple[str, ...]]:
    """Return the path of fields and items to each leaf."""
    if isinstance(type, RecordType):
        return [(key, *path) for key, component in type.components for path in leaf_paths(component)]
    return [()]


def parameter(name: str, type: RecordType) -> RecordParameter:
    """Return the layout of a launch parameter of this type."""
    components = zip(leaf_names(name, type), leaf_paths(type), leaf_types(type), strict=True)
    return RecordParameter(_written(type) if isinstance(type, StructType) else str(type), tuple(components))


def leaves(value: Value) -> list[Value]:
    """Return the leaves of a value: its components other than tuples and structs."""
    if isinstance(value, Tuple | Struct):
        return [leaf for item in value.items for leaf in leaves(item)]
    return [value]


def filled(type: ValueType | RecordType, leaf_values: Iterator[Any]) -> Value:
    """Return a value of this type with these leaves."""
    if not isinstance(type, RecordType):
        return next(leaf_values)  # type: ignore[no-any-return]
    items = tuple(filled(component, leaf_values) for _, component in type.components)
    return Struct(type, items) if isinstance(type, StructType) else Tuple(items)


def type_of(value: Value, span: Span) -> ValueType | RecordType:
    """Return the type of a value; literals have their natural type."""
    if isinstance(value, Tuple):
        return TupleType(tuple(type_of(item, span) for item in value.items))
    return value.type if isinstance(value, Struct) else typing.expression(value, span).type


def refuse_arrays(type: ValueType | RecordType, span: Span) -> None:
    """Raise SourceError if a value of this type contains arrays."""
    if any(isinstance(leaf, Array) for leaf in leaf_types(type)):
        raise SourceError(span, f"{type} contains arrays: it is a parameter only", "pass it to a device function")


def results(type: RecordType) -> Results:
    """Return the IR result type of a device function of this type."""
    return Results(tuple(leaf_types(type)))


# ------------------------------------------------------------------ conversions
def converted(value: Value, type: ValueType | RecordType, span: Span, what: str) -> Value:
    """Return the value where `type` is expected; its leaves are typed."""
    if isinstance(type, Array):
        return value  # of a struct of the same type
    if not isinstance(type, RecordType):
        return typing.converted(value, type, span, what)
    items = _items(value, type)
    components = list(type.components)
    if items is None or len(items) != len(components):
        raise SourceError(span, f"{what} is {type}, this is {describe(value)}", f"write {_written(type)}")
    values = [
        converted(item, component, span, f"item {key} of {what}" if key.isdigit() else f"{what}'s {key}")
        for item, (key, component) in zip(items, components, strict=True)
    ]
    return Struct(type, tuple(values)) if isinstance(type, StructType) else Tuple(tuple(values))


def _items(value: Value, type: RecordType) -> tuple[Value, ...] | None:
    if isinstance(type, TupleType):
        return value.items if isinstance(value, Tuple) else None
    if isinstance(value, Struct):
        return value.items if value.type == type else None
    if isinstance(value, Host) and isinstance(value.object, type.record):
        return tuple(of_python(getattr(value.object, name)) for name, _ in type.fields)
    return None


def _written(type: RecordType) -> str:
    if isinstance(type, StructType):
        return f"{type}({', '.join(name for name, _ in type.fields)})"
    return f"({', '.join(map(str, type.items))}{',' if len(type.items) == 1 else ''})"


def called(reader: FunctionReader, type: RecordType, call: ir.Call, stem: str, span: Span) -> Value:
    """Return the components of a device function's result."""
    whole = reader.let(call, stem, span)
    index = ((ir.Const(n, I32, span), leaf) for n, leaf in enumerate(leaf_types(type)))
    return filled(type, (ir.Component(whole, at, leaf, span) for at, leaf in index))


def construct(reader: FunctionReader, type: StructType, arguments: dict[str, Any], span: Span) -> Value:
    """Read `Point(x, y)`. arguments: expressions, and the class's own defaults."""

    def field_value(name: str, kind: Any) -> Value:
        argument = arguments[name]
        if hasattr(argument, "lineno"):
            return converted(reader.value(argument), kind, reader.span(argument), f"{type}'s {name}")
        return converted(of_python(argument), kind, span, f"{type}'s {name}")

    return Struct(type, tuple(reader.together(*(partial(field_value, name, kind) for name, kind in type.fields))))


def field(value: Struct, name: str, span: Span) -> Value:
    """`p.x`."""
    names_of = [key for key, _ in value.type.fields]
    if name not in names_of:
        raise SourceError(span, f"{value.type} has no field {name}", f"it has {', '.join(names_of)}")
    return value.items[names_of.index(name)]  # type: ignore[no-any-return]


def as_tuple(value: Value, span: Span) -> Value:
    """Return the value where a tuple is expected: named tuples and vectors are unpacked."""
    if isinstance(value, Struct) and issubclass(value.type.record, tuple):
        return Tuple(value.items)
    if isinstance(value, ir.Expr) and isinstance(value.type, Vector) and value.type not in COMPLEX:
        return Tuple(tuple(typing.component(value, n, span) for n in range(value.type.lanes)))
    return value
