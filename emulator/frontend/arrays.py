"""Arrays in a kernel: indices by dimension, rows and slices as views, and `shape`, `size` and `ndim`.

A view is a description, not a statement: the array in the IR, the offset of its first element, and an extent and a
stride for each dimension. Values that may change later are computed where the view is created.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..ir import names
from ..ir import nodes as ir
from ..language.types import BOOL, FLAT, I32, I64, Array, ArrayLayout, Scalar, Vector
from ..span import Span
from . import typing
from .constants import Literal, Tuple
from .protocols import FunctionReader
from .values import NO_ACCESS, ArrayValue, Brackets, Choice, Number, SourceError, Value, view_as_number

ONE_LITERAL, ZERO_LITERAL = Literal(1), Literal(0)


# ------------------------------------------------------------------ whole arrays
def whole(name: str, type: Array, span: Span) -> ArrayValue:
    """Return an array declared in the kernel, or a contiguous parameter of one dimension."""
    shape: tuple[Number, ...] = (ir.Extent(name, I32, span),)
    if type.shape is not None:
        shape = tuple(Literal(extent) for extent in type.shape)
    shown = names.Name.parse(name).user
    return ArrayValue(name, type, shape, _row_major(shape, span), ZERO_LITERAL, shown, is_whole=len(shape) == 1)


def parameter(name: str, type: Array, layout: ArrayLayout, span: Span) -> tuple[ArrayValue, list[ir.Param]]:
    """Return a kernel's array parameter in its layout, with the integer parameters for its extents and strides."""
    if layout == FLAT:
        return whole(name, type, span), []
    kind = I64 if layout.wide else I32
    dimensions = range(layout.dimensions)
    extents = tuple(ir.Reg(names.extent(name, d), kind, span) for d in dimensions)
    params = list(extents)
    strides = tuple(_multiply(n, Literal(layout.step), span) for n in _row_major(extents, span))
    if not layout.contiguous:
        strides = own = tuple(ir.Reg(names.stride(name, d), kind, span) for d in dimensions)
        params += own
    is_long = layout == ArrayLayout(wide=True)
    shown = names.Name.parse(name).user
    value = ArrayValue(name, type, extents, strides, Literal(layout.begin), shown, is_whole=False, is_long=is_long)
    return value, [ir.Param(reg.name, kind, span) for reg in params]


def _row_major(extents: Sequence[Number], span: Span) -> tuple[Number, ...]:
    strides: list[Number] = [ONE_LITERAL]
    for extent in reversed(extents[1:]):
        strides.insert(0, _multiply(extent, strides[0], span))
    return tuple(strides)


# ------------------------------------------------------------------ indices
@dataclass(frozen=True)
class _Slice:
    """`start:stop` of one dimension; None for a missing bound."""

    start: Number | None
    stop: Number | None


@dataclass(frozen=True)
class _IndexItem:
    """The index or slice of one dimension."""

    value: Number | _Slice
    span: Span


def _index_items(reader: FunctionReader, array: ArrayValue, node: ast.expr | EvaluatedIndex) -> list[_IndexItem]:
    places = list(node.places) if isinstance(node, EvaluatedIndex) else read_index(reader, node)
    if len(places) > len(array.extents):
        has = f"{len(array.extents)} dimension{'s' if len(array.extents) > 1 else ''}"
        advice = f"give the kernel an array of {len(places)} dimensions: .reshape(...)"
        raise SourceError(
            node.span if isinstance(node, EvaluatedIndex) else reader.span(node),
            f"{array.shown} has {has}, {len(places)} indices given",
            advice if array.type.space == "global" else "declare it with as many extents",
        )
    return places


@dataclass(frozen=True)
class EvaluatedIndex:
    """An index evaluated once for several arrays: the fields of an array of structs."""

    places: tuple[_IndexItem, ...]
    span: Span
    text: str


def evaluate_index(reader: FunctionReader, node: ast.expr) -> EvaluatedIndex:
    """Evaluate an index once for its statement."""
    span = reader.span(node)

    def frozen(place: _IndexItem) -> _IndexItem:
        if isinstance(place.value, _Slice | ir.Reg | ir.Special):
            return place
        return _IndexItem(_frozen(reader, place.value, place.span, "index"), place.span)

    return EvaluatedIndex(tuple(frozen(place) for place in read_index(reader, node)), span, ast.unparse(node))


def read_index(reader: FunctionReader, node: ast.expr) -> list[_IndexItem]:
    """Return the evaluated items between the brackets."""
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]

    def place(child: ast.expr) -> list[_IndexItem]:
        span = reader.span(child)
        if isinstance(child, ast.Slice):
            return [_IndexItem(_slice(reader, child, span), span)]
        value = reader.value(child)
        values = value.items if isinstance(value, Tuple) and len(nodes) == 1 else (value,)
        return [_IndexItem(_integer(value, span), span) for value in values]

    return [item for value in reader.together(*(partial(place, child) for child in nodes)) for item in value]


def _slice(reader: FunctionReader, node: ast.Slice, span: Span) -> _Slice:
    if node.step is not None and not (isinstance(step := reader.value(node.step), Literal) and step.value == 1):
        raise SourceError(reader.span(node.step), "a slice has no step in a kernel", "give the kernel x[::step]")
    start, stop = (None if n is None else _integer(reader.value(n), reader.span(n)) for n in (node.lower, node.upper))
    for bound in (start, stop):
        if isinstance(bound, Literal) and bound.value < 0:
            raise SourceError(
                span, f"a slice at {bound.value}: arrays do not wrap around in a kernel", "write len(x) - 1"
            )
    return _Slice(start, stop)


def _integer(value: Value, span: Span) -> Number:
    """Return an index of at least 32 bits."""
    if isinstance(value, Literal):
        if isinstance(value.value, float | complex):
            raise SourceError(
                span, f"an index is an integer, this is {value.value!r}", "divide with //, or write st.i32(...)"
            )
        if isinstance(value.value, bool):
            raise SourceError(span, "an index is an integer, this is bool", "write st.i32(...)")
        return value
    result = typing.expression(value, span, I32 if isinstance(value, Choice) else None)
    if not (isinstance(result.type, Scalar) and result.type.is_integer):
        advice = "write a component: v.x" if isinstance(result.type, Vector) else "write st.i32(...)"
        raise SourceError(span, f"an index is an integer, this is {result.type}", advice)
    return typing.cast(result, I32, span) if result.type.size < 4 else result


def is_element(reader: FunctionReader, array: ArrayValue, node: ast.expr) -> bool:
    """Return whether the brackets name one element rather than a view."""
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    if any(isinstance(n, ast.Slice) for n in nodes):
        return False
    return len(nodes) >= len(array.extents) or (len(nodes) == 1 and _is_tuple(reader, nodes[0], len(array.extents)))


def refuse_slice(array: ArrayValue, node: ast.expr, span: Span) -> None:
    """Refuse a slice `array[node]` as an assignment target; the hint is a loop."""
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    if not any(isinstance(n, ast.Slice) for n in nodes) or len(nodes) > len(array.extents):
        return
    full = ast.Slice()
    letters, loops, indices = iter("jkmnp"), [], []
    for dimension in range(len(array.extents)):
        place = nodes[dimension] if dimension < len(nodes) else full
        if isinstance(place, ast.Slice):
            letter = next(letters)
            over = _range_of(place, array, dimension)
            loops.append(f"for {letter} in {f'st.unroll({over})' if array.type.space == 'register' else over}:")
            indices.append(letter)
        else:
            indices.append(ast.unparse(place))
    advice = f"write a loop: {' '.join(loops)} {array.shown}[{', '.join(indices)}] = ..."
    shown = ast.unparse(ast.Subscript(ast.Name(array.shown), node))
    raise SourceError(span, f"{shown} is a view of {array.shown}: an assignment stores one element", advice)


def _range_of(place: ast.Slice, array: ArrayValue, dimension: int) -> str:
    """Return the text of the `range` over a slice's indices."""
    length = f"{array.shown}.shape[{dimension}]" if len(array.extents) > 1 else f"len({array.shown})"
    bounds = [ast.unparse(place.upper) if place.upper else length]
    if place.lower or place.step:
        bounds.insert(0, ast.unparse(place.lower) if place.lower else "0")
    if place.step:
        bounds.append(ast.unparse(place.step))
    return f"range({', '.join(bounds)})"


def _is_tuple(reader: FunctionReader, node: ast.expr, items: int) -> bool:
    """Return whether a name refers to a tuple of at least `items` items."""
    value = reader.value(node) if isinstance(node, ast.Name) else None
    return isinstance(value, Tuple) and len(value.items) >= items


def index(reader: FunctionReader, array: ArrayValue, node: ast.expr | EvaluatedIndex) -> ir.Expr:
    """Return the index of the element `array[node]` in the IR's array."""
    places, span = _index_items(reader, array, node), _span(reader, node)
    if len(places) < len(array.extents) or any(isinstance(p.value, _Slice) for p in places):
        raise view_as_number(view(reader, array, node), span)
    values = [p.value for p in places if not isinstance(p.value, _Slice)]
    for dimension, place in enumerate(places):
        _check_constant(array, dimension, place)
    if array.is_whole:
        return typing.expression(values[0], span, I32)
    flat = _sum(array, [array.offset], [*zip(values, array.strides, strict=True)], span)
    if all(isinstance(v, Literal) for v in (*values, *array.extents)):
        return flat
    indices = tuple(typing.expression(v, p.span, I32) for v, p in zip(values, places, strict=True))
    extents = tuple(typing.expression(n, span, I32) for n in array.extents)
    assert isinstance(flat.type, Scalar)
    return ir.Within(flat, array.shown, indices, extents, flat.type, span)


def evaluate_once(reader: FunctionReader, array: ArrayValue, index: ir.Expr, span: Span) -> ir.Expr:
    """Return the index of an element to be read and then written, computed once."""
    if isinstance(index, ir.Within):
        indices = tuple(item and _in_register(reader, item, f"{array.name}_index", span) for item in index.index)
        flat = _in_register(reader, index.flat, f"{array.name}_index", span)
        return replace(index, flat=flat, index=indices)
    return index if isinstance(index, ir.Const | ir.Reg) else reader.let(index, f"{array.name}_index", span)


def _in_register(reader: FunctionReader, value: ir.Expr, stem: str, span: Span) -> ir.Expr:
    return value if isinstance(value, ir.Const | ir.Reg) else reader.let(value, stem, span)


def _check_constant(array: ArrayValue, dimension: int, place: _IndexItem) -> None:
    """Refuse a constant index out of bounds."""
    value, extent = place.value, array.extents[dimension]
    constant = value.value if isinstance(value, Literal | ir.Const) else None
    if constant is None:
        return
    if constant < 0:
        length = f"{array.shown}.shape[{dimension}]" if len(array.extents) > 1 else f"len({array.shown})"
        message = f"index {constant}: arrays do not wrap around in a kernel"
        raise SourceError(place.span, message, f"write {length} - {-constant}")
    if isinstance(extent, Literal) and constant >= extent.value:
        has = f"{extent.value} elements"
        raise SourceError(
            place.span,
            f"index {constant}, but {array.shown} has {has}{f' in dimension {dimension}' if len(array.extents) > 1 else ''}",
            f"its last index is {extent.value - 1}",
        )


# ------------------------------------------------------------------ views
def _span(reader: FunctionReader, node: ast.expr | EvaluatedIndex) -> Span:
    return node.span if isinstance(node, EvaluatedIndex) else reader.span(node)


def view(reader: FunctionReader, array: ArrayValue, node: ast.expr | EvaluatedIndex) -> ArrayValue:
    """Return the row, column or slice `array[node]`."""
    span = _span(reader, node)
    if array.type.space == "register":
        raise SourceError(span, f"{array.shown} is in registers, which have no slices", "index one register at a time")
    given = _index_items(reader, array, node)
    places = given + [_IndexItem(_Slice(None, None), span)] * (len(array.extents) - len(given))
    extents: list[Number] = []
    strides: list[Number] = []
    begins: list[tuple[Number, Number]] = []
    for dimension, place in enumerate(places):
        extent, stride = array.extents[dimension], array.strides[dimension]
        if isinstance(place.value, _Slice):
            start = _frozen(reader, place.value.start or ZERO_LITERAL, place.span)
            stop = None if place.value.stop is None else _frozen(reader, place.value.stop, place.span)
            _check_start(reader, start, place.span)
            extents.append(_length(start, stop, extent, place.span))
            strides.append(stride)
            begins.append((start, stride))
        else:
            _check_constant(array, dimension, place)
            begins.append((place.value, stride))
    _check_fixed(reader, array, places, span)
    inside = ast.Name(node.text.strip("()")) if isinstance(node, EvaluatedIndex) else node
    shown = ast.unparse(ast.Subscript(ast.Name(array.shown), inside))
    stem = f"{names.Name.parse(array.name).user.replace('.', '_')}_offset"
    offset = _frozen(reader, _simple(_sum(array, [array.offset], begins, span)), span, stem)
    is_row = not any(isinstance(place.value, _Slice) for place in given)
    brackets = Brackets(shown, array.shown, len(array.extents), is_row, span)
    return replace(
        array,
        extents=tuple(extents),
        strides=tuple(strides),
        offset=offset,
        shown=shown,
        is_whole=False,
        is_view=True,
        brackets=brackets,
    )


def _simple(value: ir.Expr) -> Number:
    return Literal(value.value) if isinstance(value, ir.Const) else value


def _length(start: Number, stop: Number | None, extent: Number, span: Span) -> Number:
    """Return the number of elements of a slice, clipped to its array as in Python."""
    if isinstance(start, Literal) and start.value == 0 and stop is None:
        return extent
    end = extent if stop is None else stop
    if isinstance(start, Literal) and isinstance(extent, Literal) and isinstance(end, Literal):
        return Literal(max(min(end.value, extent.value) - start.value, 0))
    kind = I64 if _is_wide(start, end, extent) else I32
    begins, ends, most = (typing.cast(v, kind, span) for v in (start, end, extent))
    if stop is not None:
        ends = ir.Op("min", (ends, most), kind, span)
    rest = ir.Op("sub", (ends, begins), kind, span)
    return ir.Op("max", (rest, ir.Const(0, kind, span)), kind, span)


def _check_start(reader: FunctionReader, start: Number, span: Span) -> None:
    """Emit a check that a slice starts inside its array."""
    if isinstance(start, Literal) or start.type.kind == "uint":  # type: ignore[union-attr]
        return
    assert isinstance(start.type, Scalar)
    holds = ir.Op("ge", (start, ir.Const(0, start.type, span)), BOOL, span)
    reader.emit(ir.Check("bounds", holds, start, (start,), span))


def _check_fixed(reader: FunctionReader, array: ArrayValue, places: Sequence[_IndexItem], span: Span) -> None:
    """Emit a check that the fixed indices of a row or a column are within their dimensions."""
    indices: list[ir.Expr | None] = []
    holds: list[ir.Expr] = []
    for place, extent in zip(places, array.extents, strict=True):
        if isinstance(place.value, _Slice):
            indices.append(None)
            continue
        index = typing.expression(place.value, place.span, I32)
        indices.append(index)
        if not (isinstance(place.value, Literal) and isinstance(extent, Literal)):
            holds += _inside(index, extent, place.span)
    if not holds:
        return
    condition = holds[0]
    for term in holds[1:]:
        condition = ir.Op("both", (condition, term), BOOL, span)
    extents = tuple(typing.expression(n, span, I32) for n in array.extents)
    within = ir.Within(ir.Const(0, I32, span), array.shown, tuple(indices), extents, I32, span)
    reader.emit(ir.Check("bounds", condition, within, (*(i for i in indices if i is not None), *extents), span))


def _inside(index: ir.Expr, extent: Number, span: Span) -> list[ir.Expr]:
    kind = I64 if _is_wide(index, extent) else I32
    at, wide = typing.cast(index, kind, span), typing.cast(extent, kind, span)
    return [ir.Op("ge", (at, ir.Const(0, kind, span)), BOOL, span), ir.Op("lt", (at, wide), BOOL, span)]


def _frozen(reader: FunctionReader, value: Number, span: Span, stem: str = "start") -> Number:
    """Return the current value: a constant, a temporary, or a new register."""
    if isinstance(value, Literal | ir.Const) or (isinstance(value, ir.Reg) and names.Name.parse(value.name).temporary):
        return value
    return reader.let(value, stem, span)


# ------------------------------------------------------------------ arithmetic of indices
def _is_wide(*values: Number) -> bool:
    return any(isinstance(v, ir.Expr) and v.type.size == 8 for v in values)


def _kind(values: Sequence[Number], layout: Sequence[Number]) -> Scalar:
    """Return the type of an index computation: the common type of all values, else i64 if any has 64 bits, else i32."""
    types = {v.type for v in values if isinstance(v, ir.Expr)}
    if len(types) == 1 and all(isinstance(v, Literal) for v in layout):
        (kind,) = types
        assert isinstance(kind, Scalar)
        return kind
    return I64 if _is_wide(*values, *layout) else I32


def _sum(array: ArrayValue, first: Sequence[Number], terms: Sequence[tuple[Number, Number]], span: Span) -> ir.Expr:
    kind = _kind([v for v, _ in terms], [*first, *(stride for _, stride in terms)])
    total: Number = ZERO_LITERAL
    for start in first:
        total = _add(total, _as(start, kind, span), span)
    for value, stride in terms:
        total = _add(total, _multiply(_as(value, kind, span), _as(stride, kind, span), span), span)
    return typing.expression(total, span, kind)


def _as(value: Number, kind: Scalar, span: Span) -> Number:
    return value if isinstance(value, Literal) else typing.cast(value, kind, span)


def _multiply(a: Number, b: Number, span: Span) -> Number:
    if isinstance(a, Literal) and isinstance(b, Literal):
        return Literal(a.value * b.value)
    if any(isinstance(v, Literal) and v.value == 0 for v in (a, b)):
        return ZERO_LITERAL
    for factor, other in ((a, b), (b, a)):
        if isinstance(factor, Literal) and factor.value == 1:
            return other
    return typing.operation("mul", typing.unified([(a, span), (b, span)], "*"), span, "*")


def _add(a: Number, b: Number, span: Span) -> Number:
    if isinstance(a, Literal) and isinstance(b, Literal):
        return Literal(a.value + b.value)
    for term, other in ((a, b), (b, a)):
        if isinstance(term, Literal) and term.value == 0:
            return other
    return typing.operation("add", typing.unified([(a, span), (b, span)], "+"), span, "+")


# ------------------------------------------------------------------ attributes of arrays
def extent(array: ArrayValue, dimension: int, span: Span) -> Number:
    """Return the number of elements in one dimension, an i32."""
    result = array.extents[dimension]
    if isinstance(result, Literal):
        return result
    if isinstance(result, ir.Extent):
        return replace(result, span=span)
    if array.is_long:
        raise _too_large(array, "pass it as an argument", span)
    return typing.cast(result, I32, span)


def attribute(array: ArrayValue, name: str, span: Span) -> Value:
    """Return `shape`, `size` or `ndim`."""
    if name == "ndim":
        return Literal(len(array.extents))
    extents = tuple(extent(array, d, span) for d in range(len(array.extents)))
    if name == "shape":
        return Tuple(extents)
    if name != "size":
        advice = f"write {array.shown}.shape, .size or .ndim, or a loop over {array.shown}[i]"
        raise SourceError(span, f"{array.shown} has no {name} in a kernel", advice)
    if _is_wide(*array.extents):
        raise _too_large(array, "multiply its extents: st.i64(x.shape[0]) * st.i64(x.shape[1])", span)
    total: Number = ONE_LITERAL
    for size in extents:
        total = _multiply(total, size, span)
    return total


def _too_large(array: ArrayValue, advice: str, span: Span) -> SourceError:
    return SourceError(span, f"{array.shown} has more elements than an i32 holds", advice)


# ------------------------------------------------------------------ device functions
def argument(name: str, array: ArrayValue, span: Span) -> tuple[ArrayValue, list[tuple[ir.Param, ir.Expr]]]:
    """Return an array argument as the parameter `name` of a device function, and the extra parameters with their values."""
    if array.block is not None:
        raise SourceError(span, *NO_ACCESS)
    type = Array(array.type.element, array.type.shape and (array.type.length or 0,), array.type.space)
    if array.is_whole:
        return replace(whole(name, type, span), type=type), []
    more: list[tuple[ir.Param, ir.Expr]] = []

    def pass_value(value: Number, own: str) -> Number:
        if isinstance(value, Literal):
            return value
        assert isinstance(value.type, Scalar)
        more.append((ir.Param(own, value.type, span), value))
        return ir.Reg(own, value.type, span)

    extents = tuple(pass_value(n, names.extent(name, d)) for d, n in enumerate(array.extents))
    passed = {id(old): new for old, new in zip(array.extents, extents, strict=True)}
    strides = tuple(
        passed[id(n)] if id(n) in passed else pass_value(n, names.stride(name, d)) for d, n in enumerate(array.strides)
    )
    offset = pass_value(array.offset, names.offset(name))
    return ArrayValue(
        name, type, extents, strides, offset, name, is_whole=False, is_view=array.is_view, is_long=array.is_long
    ), more


def layout_key(array: ArrayValue) -> tuple[object, ...]:
    """Return the key for specialising a device function on an array's extents and strides."""
    values = (array.offset, *array.extents, *array.strides)
    kinds = [value if isinstance(value, Literal) else str(value.type) for value in values]
    same = tuple(tuple(extent is stride for extent in array.extents) for stride in array.strides)
    return (array.is_whole, *kinds, same)
