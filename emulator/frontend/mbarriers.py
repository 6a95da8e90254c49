"""Calls of the functions of barriers in shared memory."""

import ast
from typing import Any, cast, get_args

from ..errors import CompileError, Diagnostic
from ..ir import mbarriers
from ..ir import nodes as ir
from ..ir.updates import reduced_types
from ..ir.wide import aligned_index, alignment_check
from ..language import forms
from ..language.intrinsics import Intrinsic
from ..language.tensor_maps import SHARED_ALIGNMENT, TensorMapForm
from ..language.types import I32, U32, U64, Scalar
from ..span import Span
from .atomics import choice
from .protocols import Args, Binder, FunctionReader
from .values import NOTHING, ArrayValue, SourceError, Tensor, Value, describe


def unsigned(value: ir.Expr) -> ir.Expr:
    """Return a number as u64."""
    if isinstance(value, ir.Const):
        return ir.Const(value.value, U64, value.span)
    return value if value.type is U64 else ir.Op("cast_u64", (value,), U64, value.span)


_OF_CLUSTER = ("mbarrier_arrive", "mbarrier_arrive_expect_tx", "mbarrier_expect_tx", "mbarrier_complete_tx")
"""Operations on barriers of other blocks of the cluster."""


def barrier(
    reader: FunctionReader, node: ast.expr, index: ast.expr, what: str, span: Span
) -> tuple[ArrayValue, ir.Expr]:
    """Return the array and the index of a barrier."""
    array = reader.array(node, of_cluster=what in _OF_CLUSTER)
    if array.type.space != "shared" or array.type.element is not U64:
        actual = f"{array.shown} is {array.type.space} {array.type.element}"
        raise SourceError(span, f"{what} works on a shared array of u64, {actual}", "write st.shared(st.u64, count)")
    return array, reader.index(array, index)


def _operate(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    op = cast(forms.MbarrierForm, word.form).op
    array, index = barrier(reader, cast(ast.expr, args["barriers"]), cast(ast.expr, args["index"]), word.name, span)
    if op is None:
        count = cast(ast.expr | None, args.get("count"))
        none = ir.Const(0, U64, span)
        initial = (
            none if count is None else mbarriers.initial(unsigned(reader.convert(count, I32, "a number of arrivals")))
        )
        reader.emit(ir.Store(array.name, index, initial, span, order="mbarrier"))
        return NOTHING
    value = next(args[name] for name in ("count", "bytes", "state", "parity") if name in args)
    type = U64 if "state" in args else I32
    operand = reader.convert(value, type, "an operand") if isinstance(value, ast.expr) else ir.Const(value, type, span)
    operand = unsigned(operand)
    if op.endswith("parity"):
        operand = mbarriers.state_of_parity(operand)
    order: forms.MemoryOrder = (
        "acquire" if op in mbarriers.WAITS else "relaxed" if op == "mbarrier_expect_tx" else "release"
    )
    update = ir.Atomic(op, array.name, index, operand, U64, span, order, "block", array.block)
    if array.block is not None:  # the state of a phase in another block has no use: PTX returns none
        reader.emit(ir.Let(None, update, span))
        return NOTHING
    old = reader.let(update, "barrier", span)
    if op in mbarriers.WAITS:
        return mbarriers.is_complete(old, operand)
    return NOTHING if op in ("mbarrier_expect_tx", "mbarrier_complete_tx") else old


def _unit(reader: FunctionReader, array: ArrayValue, node: ast.expr, span: Span, unit: int = 16) -> ir.Expr:
    """Return the index of an element in units of bytes, with a check that it is at a multiple of them."""
    place, size = reader.index(array, node), array.type.element.size
    offset = place.flat if isinstance(place, ir.Within) else place
    index, aligned = aligned_index(offset, size, unit)
    if aligned is not None:
        reader.emit(alignment_check(array.name, offset, size, unit, aligned, span))
    return index


def _reduction(
    reader: FunctionReader, node: ast.expr | None, element: Any, boxes: bool, span: Span
) -> forms.BulkReduction | None:
    """Return the operation of a reduction of elements, None for a copy."""
    if node is None:
        return None
    op = cast(forms.BulkReduction, choice(reader, node, "a reduction", get_args(forms.BulkReduction)))
    types = reduced_types(op, boxes)
    if element not in types:
        place = " in boxes" if boxes else ""
        advice = f"use {', '.join(map(str, types))}"
        raise SourceError(span, f"PTX has no bulk reduction {op} of {element}{place}", advice)
    return op


def _copy(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    nodes = {name: cast(ast.expr, node) for name, node in args.items()}
    stores = cast(forms.BulkCopyForm, word.form).stores
    target, source = (
        reader.array(nodes["target" if stores else "shared"]),
        reader.array(nodes["shared" if stores else "source"]),
    )
    spaces, elements = (target.type.space, source.type.space), (target.type.element, source.type.element)
    direction = ("shared", "global") if stores else ("global", "shared")
    if spaces != direction[::-1] or elements[0] != elements[1] or not reader.in_kernel:
        actual = f"{target.shown} is {spaces[0]} {elements[0]}, {source.shown} is {spaces[1]} {elements[1]}"
        message = (
            f"copies elements of one type from {direction[0]} to {direction[1]} memory, in the kernel itself; {actual}"
        )
        raise SourceError(span, f"{word.name} {message}")
    at, index = _unit(reader, target, nodes["i"], span), _unit(reader, source, nodes["j"], span)
    bytes = reader.convert(nodes["bytes"], I32, "a number of bytes")
    _, whole = aligned_index(bytes, 1, 16)
    if whole is not None:
        reader.emit(alignment_check(target.name, bytes, 1, 16, whole, span))
    own, other = (ir.ArrayRef(array.name, span) for array in (target, source))
    counted, which = None, cast(ir.Expr, ir.Const(0, I32, span))
    if not stores:
        barriers, which = barrier(reader, nodes["barriers"], nodes["index"], word.name, span)
        counted = ir.ArrayRef(barriers.name, span)
    op = _reduction(reader, nodes.get("reduce"), elements[0], False, span)
    element = cast(Scalar, elements[0]) if op else U32
    reader.emit(ir.BulkCopy(own, at, other, index, bytes, counted, which, span, op=op, element=element))
    return NOTHING


def tensor(name: str, form: Any, span: Span) -> Tensor:
    """Return the parameter of a tensor map for the form of its argument. Raises CompileError for an argument without one."""
    if not isinstance(form, TensorMapForm):
        raise CompileError([Diagnostic("compile", f"{name} is a tensor map: give st.tensor_map(array, box=...)", span)])
    return Tensor(name, form)


def _tensor_copy(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    nodes = {name: cast(ast.expr, node) for name, node in args.items()}
    stores = cast(forms.TensorCopyForm, word.form).stores
    tensor, shared = reader.value(nodes["tensor"]), reader.array(nodes["shared"])
    if not isinstance(tensor, Tensor):
        raise SourceError(
            span, f"{word.name} copies a tensor map, this is {describe(tensor)}", "write x: st.TensorMap[...]"
        )
    form, type = tensor.form, shared.type
    if type.space != "shared" or type.element is not form.element:
        actual = f"{shared.shown} is {type.space} {type.element}"
        raise SourceError(span, f"{word.name} copies {form.element}, as of {tensor.name}, in shared memory; {actual}")
    node = nodes["coordinates"]
    places = node.elts if isinstance(node, ast.Tuple) else [node]
    if len(places) != len(form.sizes):
        raise SourceError(span, f"{tensor.name} has {len(form.sizes)} axes, {len(places)} coordinates given")
    coordinates = tuple(reader.convert(place, I32, "a coordinate") for place in reversed(places))
    at = _unit(reader, shared, nodes["j" if stores else "i"], span, SHARED_ALIGNMENT)
    counted, which = None, cast(ir.Expr, ir.Const(0, I32, span))
    if not stores:
        barriers, which = barrier(reader, nodes["barriers"], nodes["index"], word.name, span)
        counted = ir.ArrayRef(barriers.name, span)
    own, other = (ir.ArrayRef(name, span) for name in (tensor.name, shared.name))
    op = _reduction(reader, nodes.get("reduce"), form.element, True, span)
    reader.emit(ir.TensorCopy(own, coordinates, form, other, at, counted, which, span, op=op))
    return NOTHING


BINDERS: dict[type, Binder] = {
    forms.MbarrierForm: _operate,
    forms.BulkCopyForm: _copy,
    forms.TensorCopyForm: _tensor_copy,
}
