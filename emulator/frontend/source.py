"""The source of a function: its syntax tree, the spans of its nodes, and the objects of its free names."""

import __future__

import ast
import builtins
import dis
import os
from collections.abc import Callable
from functools import reduce
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from operator import or_
from types import CodeType
from typing import Any
from zipimport import zipimporter

from .. import source_text
from ..errors import CompileError, Diagnostic
from ..language.functions import Kernel, SourceFunction
from ..source_text import SourceFile
from ..span import Span

MISSING = object()
_PLAIN_LOADERS = (type(None), type, SourceFileLoader, SourcelessFileLoader, zipimporter)
"""Loaders that compile the text of a file as it is. Others, such as pytest's, may rewrite the syntax tree before."""
_FUTURES = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
"""Flags of a code object for imports from __future__."""
_ADVICE = (
    "this is so at Python's prompt, and for python -c and exec",
    "put it into a file, use IPython or Jupyter, or give its text: k = st.kernel(source=text)",
)


class FunctionSource:
    """The source of one `@kernel` or `@device` function, as of its definition."""

    def __init__(self, function: SourceFunction) -> None:
        self.function: Callable[..., Any] = function.function
        self.of_kernel = isinstance(function, Kernel)
        self.file = self.function.__code__.co_filename
        self.tree, version = definition(function)
        self.lines = version.lines
        source_text.quote(version)

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


def definition(function: SourceFunction) -> tuple[ast.FunctionDef, SourceFile]:
    """Return the syntax tree of a function and the version of its file, found once. Raises CompileError."""
    result: tuple[ast.FunctionDef, SourceFile] | None = vars(function).get("_definition")
    if result is None:
        result = vars(function)["_definition"] = _find(function)
    return result


def _find(function: SourceFunction) -> tuple[ast.FunctionDef, SourceFile]:
    code = function.function.__code__
    span = Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1)
    if not function.versions:
        raise CompileError([_without_text(function.function, span)])
    if hasattr(function.function, "__wrapped__"):
        message = f"{function.__name__} is a wrapper, made by a decorator in this file"
        raise CompileError([Diagnostic("compile", message, span, ("write @st.kernel or @st.device next to def",))])
    if code.co_name == "<lambda>":
        message = "a kernel or device function is defined with def: a lambda has no annotations"
        raise CompileError([Diagnostic("compile", message, span)])
    exact = type(function.function.__globals__.get("__loader__")) in _PLAIN_LOADERS
    for version in function.versions:
        for node in _functions(version):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            same_place = node.name == code.co_name and first == code.co_firstlineno
            if same_place and (not exact or _is_text_of(version, code)):
                return node, version
    message = f"{code.co_name} is not the function in this file: the file was saved after Python read it"
    notes = "start the program again, or reload the module", "for a text given to exec: k = st.kernel(source=text)"
    raise CompileError([Diagnostic("compile", message, span, notes)])


def _without_text(function: Callable[..., Any], span: Span) -> Diagnostic:
    """Return the error of a function without a source text."""
    name, loader = function.__code__.co_name, function.__globals__.get("__loader__")
    message = f"Python does not keep the source of {name}, from which it is read here"
    if isinstance(loader, SourcelessFileLoader):
        notes = f"{loader.path} was loaded without its source", f"put {os.path.basename(span.file)} beside it"
        return Diagnostic("compile", message, span, notes)
    if not span.file.startswith("<"):
        return Diagnostic("compile", message, span, (f"there is no file {span.file}",))
    return Diagnostic("compile", message, span, _ADVICE)


def _functions(version: SourceFile) -> list[ast.FunctionDef]:
    try:
        return version.definitions
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ) as error:  # the file was changed, or is too deep for ast
        message = f"this file cannot be read as Python any more: {error}"
        raise CompileError([Diagnostic("compile", message, Span(version.name, 1, 1, 1, 1))]) from None


def _is_text_of(version: SourceFile, code: CodeType) -> bool:
    """Return whether Python compiles a version of a file to a module with the function `code`."""
    try:
        compiled = version.functions(code.co_flags & _FUTURES).get((code.co_name, code.co_firstlineno))
    except (SyntaxError, ValueError):
        return False
    if compiled is None or compiled.co_varnames != code.co_varnames:
        return False
    return meaning(compiled) == meaning(code) or _instructions(compiled) == _instructions(code)


_CALL_FORMS = {"LOAD_METHOD": "LOAD_ATTR", "CACHE": "", "EXTENDED_ARG": "", "PUSH_NULL": ""}
"""Instructions that depend on whether the module imports a called name. A shell compiles each statement for itself."""


def _instructions(code: CodeType) -> list[tuple[object, ...]]:
    """Return the instructions, in one form of calls: name, argument, and line from the first one."""
    numbers: dict[int, int] = {}
    remaining: list[dis.Instruction] = []
    for instruction in dis.get_instructions(code):
        numbers[instruction.offset] = len(remaining)
        if _CALL_FORMS.get(instruction.opname, instruction.opname):
            remaining.append(instruction)
    result: list[tuple[object, ...]] = []
    for instruction in remaining:
        jumps = instruction.opcode in (*dis.hasjrel, *dis.hasjabs)
        argument = numbers[instruction.argval] if jumps else _constant(instruction.argval)
        line = instruction.positions.lineno if instruction.positions else None
        name = _CALL_FORMS.get(instruction.opname, instruction.opname)
        result.append((name, argument, line and line - code.co_firstlineno))
    return result


def meaning(code: CodeType) -> tuple[object, ...]:
    """Return the content of a code object that does not depend on its place in the file, as values that compare by type."""
    lines = tuple(line and line - code.co_firstlineno for _, _, line in code.co_lines())
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, *names, lines, *map(_constant, code.co_consts)


def _constant(value: Any) -> object:
    if isinstance(value, CodeType):
        return meaning(value)
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    # Python limits the digits of a decimal text, but not of a hexadecimal one.
    return type(value).__name__, hex(value) if isinstance(value, int) else repr(value)
