"""Calls of Python functions as statements of a kernel, for engines that run Python: `breakpoint()`, `logging.info("...", x)`."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from ..language.functions import SourceFunction
from . import calls, foreign
from .constants import is_struct
from .protocols import FunctionReader
from .source import MISSING


def is_host_call(reader: FunctionReader, node: ast.Call, target: Any) -> bool:
    """Return whether a call is one of a Python function that is no word of the language. target: of `called`."""
    is_word = (
        isinstance(target, SourceFunction)
        or calls.intrinsic_of(target) is not None
        or calls.is_builtin(target)
        or calls.value_type(reader.program, target, reader.span(node)) is not None
        or (isinstance(target, type) and (issubclass(target, np.generic) or is_struct(target)))
    )
    return callable(target) and not is_word


def called(reader: Any, node: ast.Call) -> Any:
    """Return the object that a call names, outside of the kernel; MISSING for a variable of the kernel and for other expressions."""
    names = foreign.dotted(node.func)
    if not names or names[0] in {*reader.names, *reader.types, *reader.local}:
        return MISSING
    target = reader.program.external(reader.source, names[0])
    for name in names[1:]:
        target = getattr(target, name, MISSING)
    return target
