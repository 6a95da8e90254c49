"""Source files as read when their functions were defined: a file saved later does not change what a kernel means.

The text in `linecache` follows the file on disk; a traceback or a debugger may read it again at any time.
"""

import ast
import linecache
import os
import threading
import tokenize
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from io import BytesIO, StringIO, TextIOWrapper
from types import CodeType
from typing import Any

from .forking import call_in_child

MAX_VERSIONS = 4
"""Versions of a file among which the text of a function is searched."""
_parsing = threading.RLock()


@call_in_child
def _unlock() -> None:
    global _parsing
    _parsing = threading.RLock()


def parsed(text: str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a text, as `ast.parse`. One thread parses at a time: CPython 3.11 has one count of the depth of trees
    for all threads, and raises SystemError where two parse."""
    with _parsing:
        return ast.parse(text, file)


def parsed_expression(text: str) -> ast.expr:
    """Return the syntax tree of an expression, see `parsed`."""
    with _parsing:
        return ast.parse(text, mode="eval").body


class SourceFile:
    """One version of a source file. data: its bytes, or its text where no file on disk has it."""

    def __init__(self, name: str, data: bytes | str, identity: Sequence[int] | None = None) -> None:
        self.name, self.identity, self.data = name, identity, data
        self._functions: dict[int, dict[tuple[str, int], CodeType]] = {}

    @cached_property
    def lines(self) -> list[str]:
        """The lines, each with its newline. Raises SyntaxError for a wrong encoding."""
        return list(StringIO(self.data) if isinstance(self.data, str) else _decoded(self.data))

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises SyntaxError, ValueError, RecursionError and MemoryError."""
        return parsed("".join(self.lines), self.name)

    @cached_property
    def definitions(self) -> list[ast.FunctionDef]:
        """The definitions of functions. Raises the errors of `tree`."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]

    def functions(self, flags: int) -> dict[tuple[str, int], CodeType]:
        """Return the code objects of the functions by name and first line. flags: of the compiler, for __future__.

        Raises the errors of `tree`.
        """
        if flags not in self._functions:
            # The text and not the tree: a conversion of a deep tree needs more of Python's stack.
            of_cells = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            pending = [compile("".join(self.lines), self.name, "exec", of_cells, dont_inherit=True)]
            codes = self._functions[flags] = {}
            while pending:
                inner = [constant for constant in pending.pop().co_consts if isinstance(constant, CodeType)]
                codes |= {(code.co_name, code.co_firstlineno): code for code in inner}
                pending += inner
        return self._functions[flags]


@lru_cache(maxsize=64)
def functions_in(text: str) -> tuple[ast.FunctionDef, ...]:
    """Return the definitions of functions in a Python text; none in a text of another language."""
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _decoded(data: bytes) -> list[str]:
    """Return the lines of a file by Python's rules for encodings and newlines."""
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    try:
        return list(TextIOWrapper(BytesIO(data), encoding))
    except UnicodeDecodeError as error:
        raise SyntaxError(str(error)) from None


_versions: dict[str, tuple[SourceFile, ...]] = {}
"""By name, the last versions of each file, newest first."""
_shown: dict[str, SourceFile] = {}
"""By name, the version that messages quote."""


def capture(code: CodeType, names: Mapping[str, Any]) -> tuple[SourceFile, ...]:
    """Return the versions of the file of a function that is being defined, newest first; none without a text.

    names: the globals of the function. A file is read again only if it has changed on disk.
    """
    file = code.co_filename
    versions = _versions.get(file, ())
    try:
        status = os.stat(file)
        identity = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if versions and versions[0].identity == identity:
            return versions
        with open(file, "rb") as opened:
            newest = SourceFile(file, opened.read(), identity)
    except (OSError, ValueError):
        text = _text_in_memory(file, names)
        if not text or (versions and versions[0].data == text):
            return versions
        newest = SourceFile(file, text)
    _versions[file] = (newest, *versions[: MAX_VERSIONS - 1])
    return _versions[file]


def _text_in_memory(file: str, names: Mapping[str, Any]) -> str | None:
    """Return the text of a module in an archive, of a notebook's cell or of a doctest."""
    if file == "<string>":  # from 3.13 on Python keeps some text of this name, but not this function's
        return None
    get_source = getattr(names.get("__loader__"), "get_source", None)
    if get_source is not None and not file.startswith("<"):
        try:
            text = get_source(names.get("__name__"))
        except (ImportError, OSError, SyntaxError):
            text = None
        if isinstance(text, str):
            return text
    try:
        return "".join(linecache.getlines(file))
    except ValueError:  # no path: NUL, a surrogate
        return None


def quote(version: SourceFile) -> None:
    """Have messages quote this version of its file."""
    _shown[version.name] = version


def lines(file: str) -> Sequence[str]:
    """Return the lines of a file, of the version that messages quote; none for an unknown file, a pipe or a device."""
    version = _shown.get(file)
    try:
        if version is None and file not in linecache.cache and os.path.exists(file) and not os.path.isfile(file):
            return ()
        return linecache.getlines(file) if version is None else version.lines
    except ValueError:  # no path: NUL, a surrogate
        return ()


def line(file: str, number: int) -> str:
    """Return a line, counted from 1, without its newline; an empty text for a missing one."""
    text = lines(file)
    return text[number - 1].rstrip("\n") if 1 <= number <= len(text) else ""
