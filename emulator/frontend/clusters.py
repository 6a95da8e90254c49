"""Calls of `map_shared_rank`: shared arrays of other blocks of the cluster."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import cast

from ..language import forms
from ..language.intrinsics import Intrinsic
from ..language.types import I32
from ..span import Span
from .protocols import Args, Binder, FunctionReader
from .values import SourceError, Value


def _map(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    node = cast(ast.expr, args["array"])
    array = reader.array(node)
    if array.type.space != "shared":
        raise SourceError(span, f"st.map_shared_rank takes a shared array, {array.shown} is {array.type.space}")
    rank = reader.convert(cast(ast.expr, args["rank"]), I32, "a rank of a block")
    return replace(array, block=reader.let(rank, f"{array.name}_block", span), is_view=True)


BINDERS: dict[type, Binder] = {forms.MappedSharedForm: _map}
