"""The source of a function: its syntax tree, the spans of its nodes, and the objects of its free names."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import CompileError, Diagnostic
from ..language.functions import Kernel, SourceFunction
from ..span import Span

MISSING = object()
_ADVICE = (
    "this is so at Python's prompt, and for python -c and exec",
    "put it into a file, use IPython or Jupyter, or give its text: k = st.kernel(source=text)",
)


class FunctionSource:
    """The source of one `@kernel` or `@device` function."""

    def __init__(self, function: SourceFunction) -> None:
        self.function: Callable[..., Any] = function.function
        self.of_kernel = isinstance(function, Kernel)
        self.file = inspect.getsourcefile(self.function) or self.function.__code__.co_filename
        # From 3.13 on Python keeps some text for "<string>", but not this function's.
        self.lines = [] if self.file == "<string>" else linecache.getlines(self.file)
        self.tree = self._find()

    def _find(self) -> ast.FunctionDef:
        code = self.function.__code__
        span = Span(self.file, code.co_firstlineno, 1, code.co_firstlineno, 1)
        if not self.lines:
            message = f"Python does not keep the source of {code.co_name}, from which it is read here"
            raise CompileError([Diagnostic("compile", message, span, _ADVICE)])
        for node in _functions("".join(self.lines), self.file):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
        if code.co_name == "<lambda>":
            message = "a kernel or device function is defined with def: a lambda has no annotations"
            raise CompileError([Diagnostic("compile", message, span)])
        message = f"{code.co_name} is not where its file says; was the file changed since it was imported?"
        raise CompileError([Diagnostic("compile", message, span)])

    def span(self, node: ast.AST) -> Span:
        """The span of a node of this function; `col_offset` counts UTF-8 bytes, a span characters."""
        line, end_line = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
        start = self._characters(line, node.col_offset)  # type: ignore[attr-defined]
        return Span(self.file, line, start, end_line, self._characters(end_line, node.end_col_offset))  # type: ignore[attr-defined]

    def _characters(self, line: int, offset: int) -> int:
        return len(self.lines[line - 1].encode()[:offset].decode()) + 1

    def lookup(self, name: str) -> Any:
        """Return the object of a free name in the function's scope, or MISSING."""
        return free_value(self.function, name)


def free_value(function: Callable[..., Any], name: str) -> Any:
    """Return the object of a function's free name, or MISSING."""
    code = function.__code__
    if function.__closure__ and name in code.co_freevars:
        cell = function.__closure__[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # a name of the enclosing function, not yet bound
            return MISSING
    space = function.__globals__
    return space[name] if name in space else getattr(builtins, name, MISSING)


@cache
def _functions(text: str, file: str) -> list[ast.FunctionDef]:
    try:
        tree = ast.parse(text, file)
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ) as error:  # the file was changed, or is too deep for ast
        message = f"this file cannot be read as Python any more: {error}"
        raise CompileError([Diagnostic("compile", message, Span(file, 1, 1, 1, 1))]) from None
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
