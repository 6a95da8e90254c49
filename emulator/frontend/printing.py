"""`print` in a kernel: texts, numbers, and f-strings with plain fields."""

import ast
from collections.abc import Iterator
from itertools import chain

from ..ir import nodes as ir
from ..language.types import Vector
from ..span import Span
from . import typing
from .protocols import FunctionReader
from .values import NOTHING, ArrayValue, Host, SourceError, Value

PrintItem = str | ir.Expr
_AS_IT_IS = (-1, ord("r"), ord("s"))  # numbers have one text


def print_call(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    """Emit a print call; its values are separated by one space."""
    if node.keywords:
        raise SourceError(span, "print takes no keywords in a kernel", 'write one text: print(f"{a}, {b}")')
    pieces = reader.together(*(lambda n=n: items(reader, n) for n in node.args))
    spaced = chain.from_iterable((" ", *row) if at else row for at, row in enumerate(pieces))
    reader.emit(ir.Print(tuple(_joined(spaced)), span))
    return NOTHING


def items(reader: FunctionReader, node: ast.expr, what: str = "print") -> tuple[PrintItem, ...]:
    """Return the texts and numbers of an argument of print, or of the message of an assertion. what: the word for errors."""
    return tuple(_joined(_items(reader, node, what)))


def _items(reader: FunctionReader, node: ast.expr, what: str) -> Iterator[PrintItem]:
    if not isinstance(node, ast.JoinedStr):
        yield _item(reader, node, what)
        return
    for field in node.values:
        if isinstance(field, ast.Constant):
            yield str(field.value)
            continue
        assert isinstance(field, ast.FormattedValue)
        if field.format_spec is not None or field.conversion not in _AS_IT_IS:
            message = "a format of an f-string is not in the kernel language"
            raise SourceError(reader.span(field.value), message, "write the field alone: {x}")
        yield _item(reader, field.value, what)


def _item(reader: FunctionReader, node: ast.expr, what: str) -> PrintItem:
    value, span = reader.value(node), reader.span(node)
    if isinstance(value, Host) and isinstance(value.object, str):
        return value.object
    if isinstance(value, ArrayValue):
        raise SourceError(
            span, f"{what} takes text and numbers, this is an array", f"write an element: {value.shown}[i]"
        )
    shown = typing.expression(value, span)
    if isinstance(shown.type, Vector):
        raise SourceError(
            span,
            f"{what} takes text and numbers, this is {shown.type}",
            f"write its components: {typing.component_names(shown.type)}",
        )
    return shown


def _joined(items: Iterator[PrintItem]) -> Iterator[PrintItem]:
    """Yield the items with adjacent texts merged."""
    text = ""
    for item in items:
        if isinstance(item, str):
            text += item
            continue
        if text:
            yield text
        text = ""
        yield item
    if text:
        yield text
