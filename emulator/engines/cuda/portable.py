"""Portable mathematics: functions of the library printed as device functions, with the bits of the emulators.

A function of the library takes arrays of f64. A wrapper of one value calls it, so that an expression can contain the call.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from ...ir import library
from ...ir import nodes as ir
from ...ir.maths import Computed
from ...ir.names import component
from ...ir.op import BITS
from ...ir.ops import TABLE
from ...ir.walk import expressions, rewrite, statements
from ...language.types import F64, I64, Array
from ...passes.counter_bounds import never_wrapping

_VALUE = Array(F64, (1,), "local")


def with_library(program: ir.Program) -> tuple[ir.Program, dict[str, str]]:
    """Return the program with device functions for its mathematical operations; and the function of each operation, by its row."""
    program = ir.Program(_rooted(program.kernel), tuple(map(_rooted, program.functions)))
    names = {
        node.name: row.meaning.name
        for function in (*program.functions, program.kernel)
        for stmt in statements(function.body)
        for node in expressions(stmt)
        if isinstance(node, ir.Op)
        and (row := TABLE[node.name]).policy is not BITS
        and isinstance(row.meaning, Computed)
    }
    added = [function for name in sorted(set(names.values())) for function in _functions(name)]
    return replace(program, functions=(*added, *program.functions)), {row: _symbol(name) for row, name in names.items()}


def _symbol(name: str) -> str:
    return component("portable", name)


@cache
def _functions(name: str) -> tuple[ir.Function, ...]:
    """Return the device functions of a function of the library: its callees, itself, and the wrapper last."""
    program = never_wrapping(library.program(name))
    names = {function.name: component(name, function.name) for function in program.functions}
    names[program.kernel.name] = component(name, "values")

    def renamed(node: Any) -> Any:
        return replace(node, function=names[node.function]) if isinstance(node, ir.Call) else node

    functions = [
        replace(f, name=names[f.name], body=tuple(rewrite(stmt, renamed) for stmt in f.body))
        for f in (*program.functions, program.kernel)
    ]
    return *functions, _wrapper(_symbol(name), functions[-1])


def _rooted(function: ir.Function) -> ir.Function:
    """Return the function with each reciprocal square root computed in f64, as on the emulators."""
    return replace(function, body=tuple(rewrite(stmt, _root) for stmt in function.body))


def _root(node: Any) -> Any:
    if not (isinstance(node, ir.Op) and node.name == "rsqrt"):
        return node
    span = node.span
    wide = node.args[0] if node.type is F64 else ir.Op("cast_f64", node.args, F64, span)
    root = ir.Op("fdiv", (ir.Const(1.0, F64, span), ir.Op("sqrt", (wide,), F64, span)), F64, span)
    return root if node.type is F64 else ir.Op(f"cast_{node.type}", (root,), node.type, span)


def _wrapper(name: str, values: ir.Function) -> ir.Function:
    """Return the function of one value of each operand that calls a function of arrays."""
    span = values.span
    *inputs, output, _ = values.params
    zero, count = ir.Const(0, I64, span), ir.Const(1, I64, span)
    params = tuple(ir.Param(param.name, F64, span) for param in inputs)
    arrays = {param.name: f"{param.name}_value" for param in (*inputs, output)}
    body: list[Any] = [ir.Alloc(array, _VALUE, (), span) for array in arrays.values()]
    body += [ir.Store(arrays[p.name], zero, ir.Reg(p.name, F64, span), span) for p in params]
    references = tuple(ir.ArrayRef(array, span) for array in arrays.values())
    body.append(ir.Let(None, ir.Call(values.name, (*references, count), None, span), span))
    result = ir.Reg("result", F64, span)
    body.append(ir.Let(result, ir.Load(arrays[output.name], zero, F64, span), span))
    return ir.Function(name, params, (*body, ir.Return(result, span)), F64, span)
