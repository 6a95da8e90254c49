"""A native function as an IR program: read, without calls and unrolled loops, and held to what one thread can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import CompileError, Diagnostic
from ..frontend.reader import specialise_function
from ..ir import nodes as ir
from ..ir.effects import row_of
from ..ir.walk import expressions, flattened, map_bodies, statements
from ..language.functions import DeviceFunction
from ..language.types import Array, Scalar, Vector
from ..passes.inline import inline
from ..passes.unroll import unroll

NO_OTHERS = "a native function is one thread on the host: it has no others to meet"


def native_program(function: DeviceFunction, consts: Mapping[str, Any]) -> ir.Program:
    """The function for these Const values, in the kernel's place of a program. Raises CompileError."""
    return specialise_function(function, consts)


def prepared(function: DeviceFunction, consts: Mapping[str, Any]) -> ir.Function:
    """The function without calls and unrolled loops. Raises CompileError where it needs more than one thread."""
    found = unroll(inline(native_program(function, consts))).kernel
    found = replace(found, body=_unchecked(found.body))
    refused = [Diagnostic("compile", message, node.span, tuple(notes)) for node, message, *notes in _refused(found)]
    if refused:
        raise CompileError(refused)
    return found


def _unchecked(body: ir.Body) -> ir.Body:
    """The statements without checks: arrays are not checked for bounds."""
    kept = (flattened(stmt) for stmt in body if not isinstance(stmt, ir.Check))
    return tuple(map_bodies(stmt, _unchecked) for stmt in kept)


def written(function: ir.Function) -> frozenset[str]:
    """Names of the arrays it stores to."""
    return frozenset(s.array for s in statements(function.body) if isinstance(s, ir.Store))


def _refused(function: ir.Function) -> Iterator[tuple[Any, ...]]:
    """(node, message, notes) of what the host has nothing for."""
    for param in function.params:
        if not isinstance(param.type.element if isinstance(param.type, Array) else param.type, Scalar):
            yield param, f"{param.name} is {param.type}: a native function takes numbers and arrays of numbers"
    for stmt in statements(function.body):
        row = row_of(stmt)
        if row is not None and not row.on_host:
            yield (stmt, NO_OTHERS, "write a load and a store") if row.spaces else (stmt, NO_OTHERS)
        match stmt:
            case ir.Alloc(type=Array(space="shared")):
                yield stmt, NO_OTHERS, "write st.local(...)"
            case ir.Assert() | ir.Print():
                yield (
                    stmt,
                    "a native function runs aside from Python: it cannot stop, and has no output",
                    "return a number",
                )
            case ir.Let(target=ir.Reg(type=Vector(name=name))):
                yield stmt, f"a native function works on numbers, this is {name}", "work on its parts"
        for expr in expressions(stmt):
            if isinstance(expr, ir.Special):
                yield expr, "a native function is one thread on the host: it has no place in a grid"
            elif isinstance(expr, ir.Extent):
                yield expr, "a native function is given no lengths", "make it a parameter, an i64"
