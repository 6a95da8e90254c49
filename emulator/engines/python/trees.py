"""Parts of Python functions of the IR: nodes without places, attributes, inlined calls, counters of loops, numbers of statements."""

import ast
from dataclasses import replace
from typing import Any

from ...ir import nodes as ir
from ...ir.walk import map_bodies
from ...source_text import parsed_expression
from .expressions import attribute, name


class FrameExit(Exception):
    """Leaves an inlined call, for its `return`."""


def inlined_call(body: list[ast.stmt], frame_exit: ast.expr) -> ast.stmt:
    """Return the statement of an inlined call. frame_exit: the expression of `FrameExit`."""
    return ast.Try(body or [ast.Pass()], [ast.ExceptHandler(frame_exit, None, [ast.Pass()])], [], [])


def assigned_register(stmt: ir.Stmt) -> ir.Reg | None:
    """Return the register that a statement assigns; None if there is none."""
    target = stmt.target if isinstance(stmt, ir.Let) else stmt.var if isinstance(stmt, ir.For) else None
    return target if isinstance(target, ir.Reg) else None


def loop_numbers(dtype: Any, start: Any, stop: Any, step: Any) -> Any:
    """Return the numbers of a loop whose step may be 0: then there are none."""
    return map(dtype, range(start, stop, step)) if step else ()


def attributes_of(node: ast.AST) -> Any:
    """Return a node; mypy knows the attributes of its position only by its class."""
    return node


def expression_of(source: str) -> ast.expr:
    """Return the tree of an expression without places, for `FunctionPrinter.at`."""
    tree = parsed_expression(source)
    for node in ast.walk(tree):
        for key in {"lineno", "end_lineno"} & vars(node).keys():
            delattr(node, key)
    return tree


def attribute_target(base: str, path: list[str]) -> ast.Attribute:
    return ast.Attribute(attribute(name(base), *path[:-1]), path[-1], ast.Store())


def counter_of(loop: ir.While | ir.For) -> str:
    return f"@iteration{loop.site}"


def numbered(function: ir.Function) -> ir.Function:
    """Return the function with its statements numbered in the order of execution."""
    count = iter(range(1 << 30))

    def body(stmts: ir.Body) -> ir.Body:
        return tuple(map_bodies(replace(stmt, site=next(count)), body) for stmt in stmts)

    return replace(function, body=body(function.body))
