"""Calls in a kernel: intrinsics by their form, casts, device functions, and Python's min, max, abs, len and print."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Hashable
from typing import Any, cast

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language import forms, hints
from ..language.functions import DeviceFunction, Kernel
from ..language.intrinsics import FULL_MASK, INTRINSICS, Intrinsic
from ..language.types import BOOL, F32, F64, I32, I64, SCALARS, U32, U64, VECTORS, Array, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from . import typing
from .protocols import FunctionReader, ProgramReader
from .values import ArrayValue, Host, Literal, SourceError, Tuple, Value, describe

Args = dict[str, Any]
Binder = Callable[[FunctionReader, Intrinsic, Args, Span], Value]
"""Reads a call of an intrinsic: its arguments by parameter name."""
NOTHING = Host(None)


def call(reader: FunctionReader, node: ast.Call, target: Any) -> Value:
    """The value of a call, its effects emitted."""
    span = reader.span(node)
    if isinstance(target, DeviceFunction):
        return reader.program.call(reader, node, target)
    if isinstance(target, Kernel):
        raise SourceError(
            span, f"{target.__name__} is a kernel: only launch can run it", "mark it @st.device to call it"
        )
    type = value_type(reader.program, target, span)
    if isinstance(type, Scalar):
        return typing.cast(_only(reader, node), type, span)
    if isinstance(type, Vector):
        return _pack(reader, node, type)
    if target in _BUILTINS:
        return _BUILTINS[target](reader, node, span)
    word = intrinsic_of(target)
    if word is None:
        name = getattr(target, "__name__", None) or repr(target)
        raise SourceError(span, f"{name} is not in the kernel language", *_instead(target))
    binder = _BINDERS[word.form.__class__]
    return binder(reader, word, _bind(reader, node, word), span)


def intrinsic_of(target: Any) -> Intrinsic | None:
    """The row of the intrinsic that a Python object is."""
    return INTRINSICS.get(target) if isinstance(target, Hashable) else None


def value_type(program: ProgramReader, target: Any, span: Span) -> ValueType | None:
    """The type that an object such as `f32`, `float4`, `bool` or `Real` names."""
    if target is bool:
        return BOOL
    if isinstance(target, hints.ScalarType):  # type: ignore[attr-defined]
        return program.real_type(span) if target is hints.Real else SCALARS[target.name]
    if isinstance(target, type) and target.__module__ == hints.__name__:
        return VECTORS.get(target.__name__)
    return None


def _instead(target: Any) -> tuple[str, ...]:
    if target is int or target is float:
        return ("write the type you mean: i32(...), i64(...), f32(...), f64(...)",)
    if getattr(target, "__module__", "") in ("math", "numpy"):
        return ("the language has st.exp, st.log, st.sqrt and others: see simtbed.language.intrinsics",)
    if inspect.isfunction(target):
        return ("mark the function @st.device",)
    return ()


def _bind(reader: FunctionReader, node: ast.Call, word: Intrinsic) -> Args:
    """Argument nodes by parameter name; defaults as literals."""
    span = reader.span(node)
    for argument in (*node.args, *(k.value for k in node.keywords)):
        if isinstance(argument, ast.Starred):
            raise SourceError(span, "`*` is not in the kernel language")
    if any(k.arg is None for k in node.keywords):
        raise SourceError(span, "`**` is not in the kernel language")
    try:
        bound = word.signature.bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
    except TypeError as error:
        raise SourceError(span, f"{word.name}: {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _only(reader: FunctionReader, node: ast.Call) -> Value:
    if len(node.args) != 1 or node.keywords:
        raise SourceError(reader.span(node), "a cast takes one value")
    return reader.value(node.args[0])


def _pack(reader: FunctionReader, node: ast.Call, type: Vector) -> Value:
    if len(node.args) != type.lanes or node.keywords:
        raise SourceError(reader.span(node), f"{type} takes {type.lanes} values")
    args = tuple(reader.convert(a, type.element, f"a part of {type}") for a in node.args)
    return ir.Pack(args, type, reader.span(node))


# ------------------------------------------------------------------ Python's own
def _extreme(name: str, python: Callable[..., Any]) -> Callable[[FunctionReader, ast.Call, Span], Value]:
    def word(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
        if len(node.args) < 2 or node.keywords:
            raise SourceError(span, f"{name} takes two or more numbers")
        values = [(reader.value(a), reader.span(a)) for a in node.args]
        literals = [v for v, _ in values if isinstance(v, Literal)]
        if len(literals) == len(values):
            return typing.fold(python, literals, span)
        args = typing.unified(values, name)
        result: ir.Expr = args[0]
        for arg in args[1:]:
            result = typing.operation(name, [result, arg], span, name)
        return result

    return word


def _abs(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    value = _only(reader, node)
    if isinstance(value, Literal):
        return typing.fold(abs, [value], span)
    return typing.operation("abs", typing.unified([(value, span)], "abs"), span, "abs")


def _len(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    value = _only(reader, node)
    if isinstance(value, Tuple):
        return Literal(len(value.items))
    if not isinstance(value, ArrayValue):
        raise SourceError(span, f"len takes an array, this is {describe(value)}")
    length = value.type.length
    return ir.Extent(value.name, I32, span) if length is None else Literal(length)


def _print(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    if node.keywords:
        raise SourceError(span, "print takes no keywords in a kernel")
    parts: list[str | ir.Expr] = []
    for argument in node.args:
        value = reader.value(argument)
        parts.append(
            value.object
            if isinstance(value, Host) and isinstance(value.object, str)
            else typing.expression(value, reader.span(argument))
        )
    if any(not isinstance(p, str) and isinstance(p.type, Vector) for p in parts):
        raise SourceError(span, "print takes text and numbers", "print a vector's parts: v.x, v.y ...")
    reader.emit(ir.Print(tuple(parts), span))
    return NOTHING


def _range(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    raise SourceError(span, "range stands only in `for ... in range(...)`")


_BUILTINS: dict[Any, Callable[[FunctionReader, ast.Call, Span], Value]] = {
    builtins.min: _extreme("min", min), builtins.max: _extreme("max", max), builtins.abs: _abs,
    builtins.len: _len, builtins.print: _print, builtins.range: _range,
}  # fmt: skip


# ------------------------------------------------------------------ memory
def _not_declaring(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    name = word.name
    raise SourceError(span, f"st.{name} stands alone on the right of an assignment", f"write: name = st.{name}(...)")


def declared(reader: FunctionReader, name: str, node: ast.Call, target: Any) -> ArrayValue | None:
    """The array that `name = st.shared(...)` and similar calls declare; None for any other call."""
    word = intrinsic_of(target)
    if word is None or not isinstance(word.form, forms.Allocation | forms.View):
        return None
    args, span = _bind(reader, node, word), reader.span(node)
    if isinstance(word.form, forms.View):
        array = reader.array(args["array"])
        stride = reader.value(args["stride"])
        if isinstance(stride, ir.EXPRESSIONS) and not isinstance(stride, ir.Reg):
            stride = reader.let(stride, f"{name}_stride", span)
        assert isinstance(stride, Literal | ir.Expr)
        return ArrayValue(array.name, array.type, (stride, Literal(1)))
    element = reader.type_of(args["element"])
    values: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    match word.form:
        case forms.Allocation(dynamic=True):
            pass
        case forms.Allocation("register"):
            shape = (_extent(reader, args["count"]),)
        case forms.Allocation("constant"):
            values = _table(reader, args["values"], element)
            shape = (len(values),)
        case _:
            shape = tuple(_extent(reader, n) for n in args["shape"])
            if not shape:
                raise SourceError(span, f"st.{word.name} needs its size", f"write st.{word.name}({element}, 64)")
    return reader.declare(name, Array(element, shape, word.form.space), values, span)


def _extent(reader: FunctionReader, node: ast.expr) -> int:
    extent = reader.known(node, "an array's size")
    if extent < 1:
        raise SourceError(reader.span(node), f"an array needs at least one element, not {extent}")
    return extent


def _table(reader: FunctionReader, node: ast.expr, element: ValueType) -> tuple[Any, ...]:
    value, span = reader.value(node), reader.span(node)
    if not isinstance(value, Tuple) or not value.items or not isinstance(element, Scalar):
        raise SourceError(span, "a constant table is a tuple of numbers of a scalar type")
    if not all(isinstance(item, Literal) for item in value.items):
        raise SourceError(span, "a constant table's values must be known at compile time")
    return tuple(typing.cast(item, element, span).value for item in value.items)  # type: ignore[union-attr]


# ------------------------------------------------------------------ block and warp
def _block_barrier(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    form = cast(forms.BlockBarrier, word.form)
    value = reader.condition(args["predicate"]) if args else ir.Const(True, BOOL, span)
    barrier = ir.Barrier(form.mode, value, SCALARS[form.result], span)
    if form.mode == "sync":
        reader.emit(ir.Let(None, barrier, span))
        return NOTHING
    return reader.let(barrier, "barrier", span)


def _fence(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    reader.emit(ir.Fence(cast(forms.Fence, word.form).scope, span))
    return NOTHING


def _mask(reader: FunctionReader, args: Args, span: Span) -> ir.Expr:
    given = args["mask"]
    if isinstance(given, ast.expr):
        return reader.convert(given, U32, "a lane mask")
    return ir.Const(given, U32, span)


def _warp_barrier(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    reader.emit(ir.WarpBarrier(_mask(reader, args, span), span))
    return NOTHING


def _shuffle(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    form = cast(forms.Shuffle, word.form)
    value = reader.expr(args["value"])
    if isinstance(value.type, Vector) or value.type is BOOL:
        raise SourceError(
            span,
            f"a shuffle moves a number, this is {value.type}",
            "shuffle i32(flag), or a vector's parts one by one",
        )
    where = reader.convert(args[form.lane], I32, f"{form.lane} of a shuffle")
    width = args["width"]
    if isinstance(width, ast.expr):
        width = reader.known(args["width"], "a shuffle's width")
    if width not in (2, 4, 8, 16, 32):
        raise SourceError(span, f"a shuffle's width is 2, 4, 8, 16 or 32, not {width}")
    return reader.let(
        ir.Shuffle(form.mode, value, where, width, _mask(reader, args, span), value.type, span), "shuffled", span
    )


def _vote(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    form = cast(forms.Vote, word.form)
    mode = form.mode
    if mode == "active":
        value: ir.Expr = ir.Const(True, BOOL, span)
        mask: ir.Expr = ir.Const(FULL_MASK, U32, span)
    else:
        value = reader.condition(args["predicate"]) if mode != "match" else reader.expr(args["value"])
        mask = _mask(reader, args, span)
    if mode == "match" and value.type not in (I32, U32, I64, U64, F32, F64):
        raise SourceError(span, f"match_any compares 32- and 64-bit numbers, this is {value.type}", "cast it: i32(...)")
    return reader.let(ir.Vote(mode, value, mask, SCALARS[form.result], span), mode, span)


def _target(reader: FunctionReader, args: Args, span: Span) -> tuple[ArrayValue, ir.Expr, Scalar]:
    array = reader.array(args["array"])
    if array.type.space not in ("global", "shared"):
        raise SourceError(span, f"atomics work on global and shared memory, {array.name} is {array.type.space}")
    type = array.type.element
    if type not in (I32, U32, I64, U64, F32, F64):
        raise SourceError(span, f"atomics work on 32- and 64-bit numbers, {array.name} holds {type}")
    assert isinstance(type, Scalar)
    index = args["index"]
    return array, reader.index(array, index), type


def _atomic(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    op = cast(forms.AtomicUpdate, word.form).op
    array, index, type = _target(reader, args, span)
    if type.is_float and op not in ("add", "exchange"):
        raise SourceError(
            span, f"CUDA has no atomic {op} on {type}", "use st.compare_swap on its bits, or an integer type"
        )
    value = reader.convert(args["value"], type, f"{array.name}'s element")
    return reader.let(ir.Atomic(op, array.name, index, value, type, span), f"{array.name}_old", span)


def _compare_and_swap(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    array, index, type = _target(reader, args, span)
    if type.is_float:
        raise SourceError(
            span,
            f"compare_swap works on integers, {array.name} holds {type}",
            "keep the bits in an integer array: st.bitcast",
        )
    expected = reader.convert(args["expected"], type, f"{array.name}'s element")
    value = reader.convert(args["value"], type, f"{array.name}'s element")
    return reader.let(ir.CompareSwap(array.name, index, expected, value, type, span), f"{array.name}_old", span)


# ------------------------------------------------------------------ arithmetic
def _operation(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    values = [(reader.value(given), reader.span(given)) for given in args.values()]
    unified = typing.unified(values, f"st.{word.name}")
    return typing.operation(cast(forms.Operation, word.form).op, unified, span, f"st.{word.name}")


def _bitcast(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    target, value = reader.type_of(args["to"]), reader.expr(args["x"])
    if target == value.type:
        return value
    row = f"as_{target}"
    if (
        isinstance(target, Scalar)
        and target.is_integer
        and value.type in (I32, U32, I64, U64)
        and target.size == value.type.size
    ):
        return typing.cast(value, target, span)
    return (
        typing.operation(row, [value], span, f"st.bitcast to {target}")
        if row in TABLE
        else _no_bitcast(value, target, span)
    )


def _no_bitcast(value: ir.Expr, target: ValueType, span: Span) -> Value:
    raise SourceError(
        span,
        f"{value.type} and {target} have no common bits",
        "bitcast joins f32 with i32 and u32, f64 with i64 and u64",
    )


def _unrolled_range(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    raise SourceError(span, "st.unroll stands only in `for ... in st.unroll(range(...))`")


_BINDERS: dict[type, Binder] = {
    forms.Allocation: _not_declaring,
    forms.View: _not_declaring,
    forms.BlockBarrier: _block_barrier,
    forms.WarpBarrier: _warp_barrier,
    forms.Fence: _fence,
    forms.Shuffle: _shuffle,
    forms.Vote: _vote,
    forms.AtomicUpdate: _atomic,
    forms.CompareAndSwap: _compare_and_swap,
    forms.Operation: _operation,
    forms.Bitcast: _bitcast,
    forms.UnrolledRange: _unrolled_range,
}
