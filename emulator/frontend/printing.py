"""`print` in a kernel: texts, numbers, and f-strings with plain fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from ..ir import nodes as ir
from ..language.types import Vector
from ..span import Span
from . import typing
from .protocols import FunctionReader
from .values import NOTHING, ArrayValue, Host, SourceError, Value

Part = str | ir.Expr
_AS_IT_IS = (-1, ord("r"), ord("s"))  # numbers have one text


def print_call(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    """Emit what a call of print writes; its values are one space apart."""
    if node.keywords:
        raise SourceError(span, "print takes no keywords in a kernel", 'write one text: print(f"{a}, {b}")')
    given = reader.together(*(lambda n=n: list(_parts(reader, n)) for n in node.args))
    spaced = chain.from_iterable((" ", *parts) if at else parts for at, parts in enumerate(given))
    reader.emit(ir.Print(tuple(_joined(spaced)), span))
    return NOTHING


def _parts(reader: FunctionReader, node: ast.expr) -> Iterator[Part]:
    if not isinstance(node, ast.JoinedStr):
        yield _part(reader, node)
        return
    for field in node.values:
        if isinstance(field, ast.Constant):
            yield str(field.value)
            continue
        assert isinstance(field, ast.FormattedValue)
        if field.format_spec is not None or field.conversion not in _AS_IT_IS:
            message = "a format of an f-string is not in the kernel language"
            raise SourceError(reader.span(field.value), message, "write the field alone: {x}")
        yield _part(reader, field.value)


def _part(reader: FunctionReader, node: ast.expr) -> Part:
    value, span = reader.value(node), reader.span(node)
    if isinstance(value, Host) and isinstance(value.object, str):
        return value.object
    if isinstance(value, ArrayValue):
        raise SourceError(span, "print takes text and numbers, this is an array", f"print an element: {value.name}[i]")
    shown = typing.expression(value, span)
    if isinstance(shown.type, Vector):
        raise SourceError(
            span, f"print takes text and numbers, this is {shown.type}", f"print its parts: {typing.parts(shown.type)}"
        )
    return shown


def _joined(parts: Iterator[Part]) -> Iterator[Part]:
    """The parts with neighbouring texts made one."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        if text:
            yield text
        text = ""
        yield part
    if text:
        yield text
