"""Compute capability required by a program, and the words that require it."""

from collections.abc import Iterator
from typing import Any

from ..ir import nodes as ir
from ..ir.effects import performed, row_of
from ..ir.walk import expressions, statements
from .needs import Capability, Needed

_OPERATIONS: dict[str, Capability] = {"dp4a": (6, 1)}
"""Operations missing on older devices and not replaced by nvcc."""
_FUSED: dict[str, Capability] = {"f16": (5, 3), "bf16": (8, 0)}


def needed(program: ir.Program) -> tuple[Needed, ...]:
    """Return the words that need more than the oldest device, with one place each."""
    words: dict[str, Needed] = {}
    for function in (*program.functions, program.kernel):
        for stmt in statements(function.body):
            for word, capability, node in _needs(stmt):
                words.setdefault(word, Needed(word, capability, node.span.place))
    return tuple(words.values())


def _needs(stmt: ir.Stmt) -> Iterator[tuple[str, Capability, Any]]:
    for expr in expressions(stmt):
        if isinstance(expr, ir.Op) and expr.name in _OPERATIONS:
            yield f"st.{expr.name}", _OPERATIONS[expr.name], expr
        if isinstance(expr, ir.Op) and expr.name == "fma" and str(expr.type) in _FUSED:
            yield f"st.fma of {expr.type}", _FUSED[str(expr.type)], expr
    if (row := row_of(stmt)) is not None:
        node = performed(stmt)
        yield from ((word, capability, node) for word, capability in row.needs(node))
