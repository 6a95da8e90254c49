"""Calls of Python functions as statements of a kernel, for engines that run Python: `breakpoint()`, `logging.info("...", x)`."""

import ast
from typing import Any

import numpy as np

from ..ir import nodes as ir
from ..language.functions import SourceFunction
from . import calls, foreign
from .constants import Literal, Tuple, is_struct
from .protocols import FunctionReader
from .source import MISSING
from .values import Value


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


def host_function(reader: Any) -> ir.HostFunction:
    """Return the Python function that a reader has read."""
    function: Any = reader.source.function
    outside = {name: reader.source.lookup(name) for name in function.__code__.co_freevars}
    known = {name: _python_value(v) for name, v in reader.names.items() if isinstance(v, Literal | Tuple)}
    known = {name: value for name, value in known.items() if name not in reader.types}
    return ir.HostFunction(function, {n: v for n, v in {**outside, **known}.items() if v is not MISSING})


def _python_value(value: Value) -> Any:
    """Return a compile-time value as a Python object; MISSING for one that has no Python object."""
    if isinstance(value, Literal):
        return value.value
    items = tuple(map(_python_value, value.items)) if isinstance(value, Tuple) else (MISSING,)
    return MISSING if any(item is MISSING for item in items) else items
