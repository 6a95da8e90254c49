"""Calls of the functions of barriers in shared memory."""

from __future__ import annotations

import ast
from typing import cast

from ..ir import mbarriers
from ..ir import nodes as ir
from ..language import forms
from ..language.intrinsics import Intrinsic
from ..language.types import I32, U64
from ..span import Span
from .protocols import Args, Binder, FunctionReader
from .values import NOTHING, SourceError, Value


def unsigned(value: ir.Expr) -> ir.Expr:
    """Return a number as u64."""
    if isinstance(value, ir.Const):
        return ir.Const(value.value, U64, value.span)
    return value if value.type is U64 else ir.Op("cast_u64", (value,), U64, value.span)


def barrier(reader: FunctionReader, node: ast.expr, index: ast.expr, what: str, span: Span) -> tuple[str, ir.Expr]:
    """Return the array and the index of a barrier."""
    array = reader.array(node)
    if array.type.space != "shared" or array.type.element is not U64:
        actual = f"{array.shown} is {array.type.space} {array.type.element}"
        raise SourceError(span, f"{what} works on a shared array of u64, {actual}", "write st.shared(st.u64, count)")
    return array.name, reader.index(array, index)


def _operate(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    op = cast(forms.MbarrierForm, word.form).op
    array, index = barrier(reader, cast(ast.expr, args["barriers"]), cast(ast.expr, args["index"]), word.name, span)
    if op is None:
        count = cast(ast.expr | None, args.get("count"))
        none = ir.Const(0, U64, span)
        initial = (
            none if count is None else mbarriers.initial(unsigned(reader.convert(count, I32, "a number of arrivals")))
        )
        reader.emit(ir.Store(array, index, initial, span, order="mbarrier"))
        return NOTHING
    given = next(args[name] for name in ("count", "bytes", "state", "parity") if name in args)
    type = U64 if "state" in args else I32
    operand = reader.convert(given, type, "an operand") if isinstance(given, ast.expr) else ir.Const(given, type, span)
    operand = unsigned(operand)
    if op.endswith("parity"):
        operand = mbarriers.state_of_parity(operand)
    order: forms.MemoryOrder = (
        "acquire" if op in mbarriers.WAITS else "relaxed" if op == "mbarrier_expect_tx" else "release"
    )
    old = reader.let(ir.Atomic(op, array, index, operand, U64, span, order, "block"), "barrier", span)
    if op in mbarriers.WAITS:
        return mbarriers.is_complete(old, operand)
    return NOTHING if op in ("mbarrier_expect_tx", "mbarrier_complete_tx") else old


BINDERS: dict[type, Binder] = {forms.MbarrierForm: _operate}
