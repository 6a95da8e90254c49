"""Calls of asynchronous copy intrinsics."""

from typing import cast

from ..ir import nodes as ir
from ..language import forms
from ..language.intrinsics import Intrinsic
from ..span import Span
from .protocols import Args, Binder, FunctionReader
from .values import NOTHING, SourceError, Value

MAX_PENDING = 8


def _copy(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    target, source = reader.array(args["shared"]), reader.array(args["source"])
    if (target.type.space, source.type.space) != ("shared", "global"):
        spaces = f"{target.shown} is {target.type.space}, {source.shown} is {source.type.space}"
        raise SourceError(span, f"async_copy copies from global to shared memory, {spaces}", "write an assignment")
    element = target.type.element
    if element != source.type.element or element.size not in (4, 8, 16):
        actual = f"{target.shown} holds {element}, {source.shown} {source.type.element}"
        message = f"async_copy copies elements of one type of 4, 8 or 16 bytes, {actual}"
        raise SourceError(span, message, "write an assignment")
    to, at = reader.index(target, args["i"]), reader.index(source, args["j"])
    copied = reader.let(ir.Load(source.name, at, element, span), "copied", span)
    reader.emit(ir.Store(target.name, to, copied, span, order="async"))
    return NOTHING


def _wait(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    argument = args["pending"]
    pending = (
        argument
        if isinstance(argument, int)
        else reader.constant_int(argument, "the number of groups that may be pending")
    )
    if not 0 <= pending <= MAX_PENDING:
        message = f"0 to {MAX_PENDING} groups may be pending, not {pending}"
        raise SourceError(span, message, f"wait for fewer groups, or for all of them: st.{word.name}()")
    mode = cast(forms.AsyncWaitForm, word.form).mode
    reader.emit(ir.AsyncWait(pending, span) if mode is None else ir.AsyncOrder(mode, span, pending=pending))
    return NOTHING


BINDERS: dict[type, Binder] = {forms.AsyncCopyForm: _copy, forms.AsyncWaitForm: _wait}
