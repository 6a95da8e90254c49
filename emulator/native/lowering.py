"""Lowering of a native function to IR: calls inlined, loops unrolled, warp and block operations refused."""

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
from ..passes.counter_bounds import never_wrapping
from ..passes.inline import inline
from ..passes.unroll import unroll

SINGLE_THREAD = "a native function is one thread on the host: it cannot synchronise or communicate"


def native_program(function: DeviceFunction, consts: Mapping[str, Any]) -> ir.Program:
    """Return the function for these Const values, in the kernel's role of a program. Raises CompileError."""
    return specialise_function(function, consts)


def lower_native(function: DeviceFunction, consts: Mapping[str, Any]) -> ir.Function:
    """Return the function without calls and unrolled loops. Raises CompileError if it needs more than one thread."""
    result = unroll(inline(never_wrapping(native_program(function, consts)))).kernel
    result = replace(result, body=_unchecked(result.body))
    diagnostics = [
        Diagnostic("compile", message, node.span, tuple(notes)) for node, message, *notes in _refused(result)
    ]
    if diagnostics:
        raise CompileError(diagnostics)
    return result


def _unchecked(body: ir.Body) -> ir.Body:
    """Return the statements without bounds checks."""
    remaining = (flattened(stmt) for stmt in body if not isinstance(stmt, ir.Check))
    return tuple(map_bodies(stmt, _unchecked) for stmt in remaining)


def stored_arrays(function: ir.Function) -> frozenset[str]:
    """Return the names of the arrays it stores to."""
    return frozenset(s.array for s in statements(function.body) if isinstance(s, ir.Store))


def _refused(function: ir.Function) -> Iterator[tuple[Any, ...]]:
    """Yield (node, message, notes) of operations without meaning on the host."""
    for param in function.params:
        if not isinstance(param.type.element if isinstance(param.type, Array) else param.type, Scalar):
            yield param, f"{param.name} is {param.type}: a native function takes numbers and arrays of numbers"
    for stmt in statements(function.body):
        row = row_of(stmt)
        if row is not None and not row.on_host:
            yield (stmt, SINGLE_THREAD, "write a load and a store") if row.spaces else (stmt, SINGLE_THREAD)
        match stmt:
            case ir.Alloc(type=Array(space="shared")):
                yield stmt, SINGLE_THREAD, "write st.local(...)"
            case ir.Assert() | ir.Print():
                yield (
                    stmt,
                    "a native function runs without Python: it cannot raise or print",
                    "return a number",
                )
            case ir.Let(target=ir.Reg(type=Vector(name=name))):
                yield stmt, f"a native function works on numbers, this is {name}", "work on its components"
        for expr in expressions(stmt):
            if isinstance(expr, ir.Special):
                yield expr, "a native function is one thread on the host: it has no place in a grid"
            elif isinstance(expr, ir.Extent):
                yield expr, "a native function is given no lengths", "make it a parameter, an i64"
