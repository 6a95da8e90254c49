"""Positions in a CUDA C++ text: in its own file, in the Python file that contains it, or where `#line` refers to."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from ..documents import text_of
from ..errors import SimtbedError
from ..escaping import printable
from ..span import Span
from . import clang
from .header_files import included


@dataclass(frozen=True)
class SourceText:
    """A text, and its position: the file, the lines before it there, and the characters before it in its first line. folder: of a text
    that is a file of its own, in which it may include others."""

    text: str
    file: str
    offset: int = 0
    indent: int = 0
    folder: str = ""

    @staticmethod
    def of_file(path: str) -> SourceText:
        """Return the text of a file. Raises SimtbedError."""
        try:
            return SourceText(text_of(path), path, folder=os.path.dirname(os.path.abspath(path)))
        except ValueError:
            raise SimtbedError(f"{printable(path)}: expected UTF-8") from None

    @staticmethod
    def inside(text: str, caller: str) -> SourceText:
        """Return a text at its position in the file of its caller, if it is there exactly once; else as a file of its own."""
        whole = "".join(linecache.getlines(caller))
        if text.strip() and whole.count(text) == 1:
            before = whole[: whole.index(text)]
            return SourceText(text, caller, before.count("\n"), len(before) - before.rfind("\n") - 1)
        name = f"<cuda {sha256(text.encode()).hexdigest()[:8]}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return SourceText(text, name)

    @cached_property
    def _encoded(self) -> bytes:
        return self.text.encode()

    def content(self, name: str) -> str:
        """Return the text of a file of the translation unit."""
        if name == clang.SOURCE:
            return self.text
        from .header import device_header  # late: it reads the table of operations

        if name == clang.HEADER:
            return device_header()
        inside = f"{clang.ROOT}/include/"
        return included(name.removeprefix(inside)) if name.startswith(inside) else text_of(name)

    def text_of(self, cursor: Any) -> str:
        """Return the text of an expression."""
        if cursor.location.file is None:
            return ""
        name = cursor.location.file.name
        encoded = self._encoded if name == clang.SOURCE else self.content(name).encode()
        return encoded[cursor.extent.start.offset : cursor.extent.end.offset].decode(errors="replace")

    def span(self, extent: Any) -> Span:
        """Return the position of a range of libclang."""
        start, end = extent.start, extent.end
        file, line = clang.presumed(start)
        last = line + max(end.line - start.line, 0)
        column, end_column = start.column, end.column if end.line > start.line else max(end.column, start.column + 1)
        if file == clang.SOURCE:
            column, end_column = column + self.indent * (line == 1), end_column + self.indent * (last == 1)
            return Span(self.file, line + self.offset, column, last + self.offset, end_column)
        if file.startswith(clang.ROOT):
            file = f"<{file.removeprefix(f'{clang.ROOT}/include/')}>"
        return Span(file, line, column, last, end_column)
