"""Paths from a kernel's body to an access, in the syntax trees of its source files."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass

from ...source_text import functions_in
from ...span import Span

Loop = ast.For | ast.While


@dataclass(frozen=True)
class Step:
    """A statement on the path to an access.

    body: the list of statements that contains it, at `index`. file: of the source. calls: the inlined calls of its function.
    """

    node: ast.stmt
    body: list[ast.stmt]
    index: int
    file: str
    calls: tuple[Span, ...]

    def same(self, other: Step) -> bool:
        """Return whether both are one statement, inlined by one call."""
        return self.node is other.node and self.calls == other.calls


def path_to(span: Span) -> tuple[Step, ...]:
    """Return the statements that contain a position, outermost first, through inlined calls; empty without the source."""
    steps: list[Step] = []
    for number, place in enumerate((*span.calls, span)):
        own = list(_steps(place, span.calls[:number]))
        if not own:
            return ()
        steps += own
    return tuple(steps)


def _steps(place: Span, calls: tuple[Span, ...]) -> Iterator[Step]:
    """Yield the statements of the innermost function that contain a position."""
    body = _function_body(place)
    while body is not None:
        containing = [(n, stmt) for n, stmt in enumerate(body) if _contains(stmt, place)]
        if not containing:
            return
        index, node = containing[0]
        yield Step(node, body, index, place.file, calls)
        body = next((inner for inner in bodies(node) if any(_contains(stmt, place) for stmt in inner)), None)


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements directly in a statement."""
    for name in ("body", "orelse"):
        if inner := getattr(node, name, None):
            yield inner


def _function_body(place: Span) -> list[ast.stmt] | None:
    """Return the body of the innermost function that contains a position."""
    text = "".join(linecache.getlines(place.file))
    functions = [node for node in functions_in(text) if _contains(node, place)]
    if not functions:
        return None
    innermost = max(functions, key=lambda node: node.lineno)
    # A position inside a text is one of another language, such as a CUDA C++ kernel in a Python function.
    texts = (node for node in ast.walk(innermost) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return None if any(_contains(node, place) for node in texts) else innermost.body


def _contains(node: ast.stmt | ast.expr, place: Span) -> bool:
    first = (node.lineno, node.col_offset + 1)
    end = (node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1)
    return first <= (place.line, place.column) < end
