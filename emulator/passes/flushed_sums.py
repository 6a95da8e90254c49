"""Atomic sums of f32 in global memory as those that flush subnormal numbers to zeros with their signs, on every GPU.

Source: PTX ISA, `atom.add.f32`; all sums of 16 numbers on an H200. In shared memory, and in bulk reductions, subnormal numbers remain.
"""

from dataclasses import replace

from ..ir import nodes as ir
from ..ir.updates import FLUSHED
from ..ir.walk import map_bodies, statements
from ..ir.wide import array_types
from ..language.types import F32, Vector


def flush_sums(program: ir.Program) -> ir.Program:
    """Return the program with these operations."""
    functions = (program.kernel, *program.functions)
    if not any(_is_sum(stmt) for function in functions for stmt in statements(function.body)):
        return program
    return ir.Program(_flushed(program.kernel), tuple(map(_flushed, program.functions)))


def _is_sum(stmt: ir.Stmt) -> bool:
    if not (isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic) and stmt.value.op in FLUSHED):
        return False
    type = stmt.value.type
    return (type.element if isinstance(type, Vector) else type) is F32


def _flushed(function: ir.Function) -> ir.Function:
    types = array_types(function)

    def own(stmt: ir.Stmt) -> ir.Stmt:
        if not _is_sum(stmt):
            return map_bodies(stmt, changed)
        assert isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic)
        is_global = types[stmt.value.array].space == "global"
        return replace(stmt, value=replace(stmt.value, op=FLUSHED[stmt.value.op])) if is_global else stmt

    def changed(body: ir.Body) -> ir.Body:
        return tuple(map(own, body))

    return replace(function, body=changed(function.body))
