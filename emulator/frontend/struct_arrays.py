"""Arrays of structs: each field is a strided array, and each field access is one memory access."""

import ast
from collections.abc import Mapping
from dataclasses import replace

from ..ir import names
from ..ir import nodes as ir
from ..language.types import Array, ArrayLayout, Scalar
from ..span import Span
from . import arrays, records
from .protocols import FunctionReader
from .signature import RecordArrayParameter
from .values import ArrayValue, SourceError, Struct, StructArray, StructElement, Value

OF_FIELD = ArrayLayout(1, contiguous=False)


def record(name: str, type: records.StructType) -> RecordArrayParameter:
    """Return the layout of a launch parameter that is an array of structs."""
    layout = records.parameter(name, type)
    return RecordArrayParameter(layout.name, layout.components)


def parameter(
    name: str, type: records.StructType, layouts: Mapping[str, ArrayLayout], span: Span
) -> tuple[StructArray, list[ir.Param]]:
    """Return a kernel's parameter, and the program's own parameters for it."""
    items: list[ArrayValue | StructArray] = []
    params: list[ir.Param] = []
    for key, kind in type.fields:
        own = names.component(name, key)
        if isinstance(kind, records.StructType):
            inner, more = parameter(own, kind, layouts, span)
            items.append(inner)
        else:
            if not isinstance(kind, Scalar):
                raise SourceError(span, f"{type}.{key} is {kind}: the fields of an array are numbers and structs")
            array = Array(kind, None, "global")
            leaf, more = arrays.parameter(own, array, layouts.get(own, OF_FIELD), span)
            items.append(leaf)
            more = [ir.Param(own, array, span), *more]
        params += more
    return StructArray(type, tuple(items)), params


def leaves(array: StructArray | ArrayValue) -> list[ArrayValue]:
    """Return the arrays of the fields, in order."""
    return [leaf for item in array.items for leaf in leaves(item)] if isinstance(array, StructArray) else [array]


def filled(type: records.StructType, arrays_left: list[ArrayValue]) -> StructArray:
    """Return the array of structs with these arrays, which are consumed."""
    items: list[ArrayValue | StructArray] = []
    for _, kind in type.fields:
        items.append(filled(kind, arrays_left) if isinstance(kind, records.StructType) else arrays_left.pop(0))
    return StructArray(type, tuple(items))


def subscript(reader: FunctionReader, array: StructArray, node: ast.expr) -> StructElement | StructArray:
    """Return an element, with nothing loaded, or a view."""
    index = arrays.evaluate_index(reader, node)
    first = leaves(array)[0]
    if arrays.is_element(reader, first, node):
        return StructElement(array, index)
    return filled(array.type, [arrays.view(reader, leaf, index) for leaf in leaves(array)])


def field(element: StructElement, name: str, span: Span) -> StructElement | tuple[ArrayValue, arrays.EvaluatedIndex]:
    """Return a field of an element: an array with an index, or an element of structs."""
    result = member(element.array, name, span)
    return StructElement(result, element.index) if isinstance(result, StructArray) else (result, element.index)


def member(array: StructArray, name: str, span: Span) -> ArrayValue | StructArray:
    """Return `x.field`: the field of every element."""
    fields = [key for key, _ in array.type.fields]
    if name not in fields:
        raise SourceError(span, f"{array.type} has the fields {', '.join(fields)}, not {name}")
    return array.items[fields.index(name)]


def attribute(array: StructArray, name: str, span: Span) -> Value:
    """Return `shape`, `size` or `ndim`, or the field of every element."""
    if name in ("shape", "size", "ndim"):
        return arrays.attribute(leaves(array)[0], name, span)
    return member(array, name, span)


def load(reader: FunctionReader, element: StructElement, span: Span) -> Struct:
    """Load the whole element: one access per field, in order."""
    loaded = []
    for leaf in leaves(element.array):
        index = arrays.index(reader, leaf, element.index)
        loaded.append(reader.let(ir.Load(leaf.name, index, leaf.type.element, span), leaf.shown, span))
    struct = records.filled(element.array.type, iter(loaded))
    assert isinstance(struct, Struct)
    return struct


def renamed(array: StructArray | ArrayValue, shown: str) -> StructArray | ArrayValue:
    """Return the array with another name for messages."""
    if isinstance(array, ArrayValue):
        return replace(array, shown=shown)
    keys = (key for key, _ in array.type.fields)
    items = (renamed(item, f"{shown}.{key}") for item, key in zip(array.items, keys, strict=True))
    return replace(array, items=tuple(items))
