"""Calls of atomic intrinsics."""

import ast
from typing import cast, get_args

from ..ir import nodes as ir
from ..ir.updates import UPDATES
from ..language import forms
from ..language.intrinsics import Intrinsic
from ..language.types import COMPLEX, F32, F64, HALVES, I32, I64, U32, U64, VECTORS, Scalar
from ..language.types import Value as ValueType
from ..span import Span
from .protocols import Args, Binder, FunctionReader
from .values import NOTHING, ArrayValue, Host, SourceError, Value

_NUMBERS = (I32, U32, I64, U64, F32, F64)
_HALF_VECTORS = (VECTORS["half2"], VECTORS["bfloat162"])
_FLOAT_VECTORS = (VECTORS["float2"], VECTORS["float4"])


def choice(reader: FunctionReader, node: ast.expr | str, subject: str, choices: tuple[str, ...]) -> str:
    """Return one of a few words written as a text literal. Raises SourceError for any other."""
    if isinstance(node, str):
        return node
    value = reader.value(node)
    if not (isinstance(value, Host) and value.object in choices):
        options = ", ".join(f'"{word}"' for word in choices)
        raise SourceError(reader.span(node), f"{subject} is not known", f"write one of {options}")
    return cast(str, value.object)


def ordering(reader: FunctionReader, args: Args) -> tuple[forms.MemoryOrder, forms.MemoryScope]:
    """Return the order and the scope of an atomic operation."""
    order = choice(reader, args["order"], "the order of an atomic operation", get_args(forms.MemoryOrder))
    scope = choice(reader, args["scope"], "a scope", get_args(forms.MemoryScope))
    return cast(forms.MemoryOrder, order), cast(forms.MemoryScope, scope)


def _target(reader: FunctionReader, args: Args, span: Span) -> tuple[ArrayValue, ir.Expr, ValueType]:
    array = reader.array(args["array"], of_cluster=True)
    if array.type.space not in ("global", "shared"):
        message = f"atomics work on global and shared memory, {array.name} is {array.type.space}"
        raise SourceError(span, message, "no other thread sees it: write a plain assignment")
    type = array.type.element
    if type not in (*_NUMBERS, *HALVES, *_HALF_VECTORS, *_FLOAT_VECTORS):
        message = f"atomics work on 32- and 64-bit numbers, {array.name} holds {type}"
        advice = "use arrays of the real and the imaginary parts" if type in COMPLEX else "use an array of i32 or u32"
        raise SourceError(span, message, advice)
    return array, reader.index(array, args["index"]), type


def _atomic(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    op = cast(forms.AtomicUpdateForm, word.form).op
    array, index, type = _target(reader, args, span)
    order, scope = ordering(reader, {"order": "relaxed", **args})
    if isinstance(type, Scalar):
        _check(op, type, span)
        if type in HALVES and (order, scope) != ("relaxed", "device"):
            raise SourceError(
                span, f"an atomic operation on {type} is relaxed, for the device", "work on an array of f32"
            )
    else:
        _check_vector(op, array, order, scope, span)
    operand = args["limit"] if op in ("inc", "dec") else args["value"]
    value = reader.convert(operand, type, f"{array.name}'s element")
    update = ir.Atomic(op, array.name, index, value, type, span, order, scope, array.block)
    return reader.let(update, f"{array.name}_old", span)


def _check(op: forms.AtomicOp, type: Scalar, span: Span) -> None:
    if type in UPDATES[op].types:
        return
    if not type.is_float:
        raise SourceError(span, f"CUDA's atomic {op} works on u32, this is {type}", "use an array of u32")
    advice = "an array of f32 or i32" if type in HALVES else "st.compare_swap on its bits, or an integer type"
    raise SourceError(span, f"CUDA has no atomic {op} on {type}", f"use {advice}")


def _check_vector(op: forms.AtomicOp, array: ArrayValue, order: str, scope: str, span: Span) -> None:
    halves = array.type.element in _HALF_VECTORS
    supported = halves or array.type.space == "global"
    if op != "add" or not supported or (order, scope) != ("relaxed", "device"):
        restriction = "" if halves else " to global memory"
        message = f"an atomic operation on {array.type.element} is a relaxed add{restriction}"
        raise SourceError(span, message, "work on an array of f32")


def _compare_and_swap(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    array, index, type = _target(reader, args, span)
    if not isinstance(type, Scalar) or type.is_float:
        raise SourceError(
            span,
            f"compare_swap works on integers, {array.name} holds {type}",
            "keep the bits in an integer array: st.bitcast",
        )
    expected = reader.convert(args["expected"], type, f"{array.name}'s element")
    value = reader.convert(args["value"], type, f"{array.name}'s element")
    swap = ir.CompareSwap(array.name, index, expected, value, type, span, *ordering(reader, args), array.block)
    return reader.let(swap, f"{array.name}_old", span)


def _in_memory(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> tuple[ArrayValue, ir.Expr, Scalar]:
    array = reader.array(args["array"], of_cluster=True)
    if array.type.space not in ("global", "shared") or array.type.element not in _NUMBERS:
        actual = f"{array.name} is {array.type.space} {array.type.element}"
        raise SourceError(span, f"{word.name} works on 32- and 64-bit numbers in global and shared memory, {actual}")
    assert isinstance(array.type.element, Scalar)
    return array, reader.index(array, args["index"]), array.type.element


def _scope(reader: FunctionReader, args: Args) -> forms.MemoryScope:
    return cast(forms.MemoryScope, choice(reader, args.get("scope", "device"), "a scope", get_args(forms.MemoryScope)))


def _ordered_load(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    array, index, type = _in_memory(reader, word, args, span)
    order = cast(forms.OrderedLoadForm, word.form).order
    load = ir.Load(array.name, index, type, span, order, _scope(reader, args), block=array.block)
    return reader.let(load, array.name, span)


def _ordered_store(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    array, index, type = _in_memory(reader, word, args, span)
    value = reader.convert(args["value"], type, f"{array.name}'s element")
    order, scope = cast(forms.OrderedStoreForm, word.form).order, _scope(reader, args)
    reader.emit(ir.Store(array.name, index, value, span, order=order, scope=scope, block=array.block))
    return NOTHING


BINDERS: dict[type, Binder] = {
    forms.AtomicUpdateForm: _atomic,
    forms.CompareAndSwapForm: _compare_and_swap,
    forms.OrderedLoadForm: _ordered_load,
    forms.OrderedStoreForm: _ordered_store,
}
