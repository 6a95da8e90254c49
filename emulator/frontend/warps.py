"""Calls of the intrinsics for warps (shuffles, votes, matches, reductions, lane masks), barriers, fences and time."""

import ast
from itertools import zip_longest
from typing import cast

from ..ir import nodes as ir
from ..ir.effects import SHUFFLE_WIDTHS, TABLE
from ..language import forms
from ..language.intrinsics import FULL_MASK, Intrinsic
from ..language.types import BOOL, F32, F64, I32, I64, SCALARS, U32, U64, Scalar, Vector
from ..span import Span
from . import typing
from .constants import Tuple
from .protocols import Args, Binder, FunctionReader
from .values import NOTHING, SourceError, Value, written


def _mask(reader: FunctionReader, args: Args, span: Span) -> ir.Expr:
    mask = args["mask"]
    if isinstance(mask, ast.expr):
        return reader.convert(mask, U32, "a lane mask")
    return ir.Const(mask, U32, span)


def _effect(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    """A call of the word for an effect, whose row has the operands."""
    form = cast(forms.EffectForm, word.form)
    row = ROWS[form.node]
    operands: dict[str, ir.Expr] = {}
    for (name, operand), argument in zip_longest(row.operands.items(), args.values()):
        type = SCALARS[form.result] if operand.type == "result" else operand.type
        assert isinstance(type, Scalar)
        if not isinstance(argument, ast.expr):
            default = operand.default if argument is None else argument
            assert default is not None
            operands[name] = ir.Const(default, type, span)
        else:
            operands[name] = (
                reader.condition(argument) if type is BOOL else reader.convert(argument, type, operand.role)
            )
    of_form = {name: value for name, value in (("mode", form.mode), ("scope", form.scope)) if value}
    if row.is_statement:
        reader.emit(row.node(**operands, **of_form, span=span))
        return NOTHING
    effect = row.node(**operands, **of_form, type=SCALARS[form.result or "bool"], span=span)
    if form.result:
        return reader.let(effect, row.action or word.name, span)
    reader.emit(ir.Let(None, effect, span))
    return NOTHING


def _shuffle(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    form = cast(forms.ShuffleForm, word.form)
    value = reader.expr(args["value"])
    if isinstance(value.type, Vector) or value.type is BOOL:
        advice = "shuffle st.i32(flag)"
        if isinstance(value.type, Vector):
            advice = f"shuffle its components: {typing.component_names(value.type)}"
        raise SourceError(span, f"a shuffle moves a number, this is {value.type}", advice)
    source_lane = reader.convert(args[form.lane], I32, f"{form.lane} of a shuffle")
    width = args["width"]
    if isinstance(width, ast.expr):
        width = reader.constant_int(args["width"], "a shuffle's width")
    if width not in SHUFFLE_WIDTHS:
        raise SourceError(span, f"{width} is no width of a shuffle", "write 2, 4, 8, 16 or 32")
    return reader.let(
        ir.Shuffle(form.mode, value, source_lane, width, _mask(reader, args, span), value.type, span), "shuffled", span
    )


def _vote(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    form = cast(forms.VoteForm, word.form)
    mode = form.mode
    if mode == "active":
        value: ir.Expr = ir.Const(True, BOOL, span)
        mask: ir.Expr = ir.Const(FULL_MASK, U32, span)
    else:
        value = reader.condition(args["predicate"]) if mode != "match" else reader.expr(args["value"])
        mask = _mask(reader, args, span)
    if mode == "match" and value.type not in (I32, U32, I64, U64, F32, F64):
        raise SourceError(
            span, f"match_any compares 32- and 64-bit numbers, this is {value.type}", "cast it: st.i32(...)"
        )
    return reader.let(ir.Vote(mode, value, mask, SCALARS[form.result], span), mode, span)


def _match_all(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    value = reader.expr(args["value"])
    if value.type not in (I32, U32, I64, U64, F32, F64):
        raise SourceError(
            span, f"match_all compares 32- and 64-bit numbers, this is {value.type}", "cast it: st.i32(...)"
        )
    matching = reader.let(ir.Vote("match_all", value, _mask(reader, args, span), U32, span), "match_all", span)
    return Tuple((matching, ir.Op("ne", (matching, ir.Const(0, U32, span)), BOOL, span)))


def _reduction(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    op, value = cast(forms.ReductionForm, word.form).op, reader.expr(args["value"])
    types = (I32, U32) if op in ("add", "min", "max") else (U32,)
    if value.type not in types:
        expected = " or ".join(str(t) for t in types)
        raise SourceError(
            span, f"{word.name} combines {expected}, this is {value.type}", f"cast it: {written(types[-1])}(...)"
        )
    assert isinstance(value.type, Scalar)
    return reader.let(ir.Vote(op, value, _mask(reader, args, span), value.type, span), word.name, span)


def _lane_mask(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    """Return the mask of lanes relative to this lane, computed from its bit or the next one."""
    order = cast(forms.LaneMaskForm, word.form).order

    def op(name: str, *args: ir.Expr) -> ir.Expr:
        return ir.Op(name, args, U32, span)

    unit = ir.Const(1, U32, span)
    lane = op("cast_u32", ir.Special("lane", I32, span))
    bit = op("shl", ir.Const(2, U32, span) if order in ("le", "gt") else unit, lane)
    if order == "eq":
        return bit
    below = op("sub", bit, unit)
    return op("invert", below) if order in ("ge", "gt") else below


ROWS = {node.__name__: row for node, row in TABLE.items()}
"""Rows of the table of effects by the name of their node."""

BINDERS: dict[type, Binder] = {
    forms.EffectForm: _effect, forms.ShuffleForm: _shuffle, forms.VoteForm: _vote, forms.MatchAllForm: _match_all,
    forms.ReductionForm: _reduction, forms.LaneMaskForm: _lane_mask,
}  # fmt: skip
