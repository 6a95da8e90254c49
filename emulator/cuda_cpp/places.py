"""Positions in a CUDA C++ text: in its own file, in the Python file with the text, or in the file of a `#line`."""

from __future__ import annotations

import linecache
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from .. import source_text
from ..span import Span
from .clang import ROOT, SOURCE
from .header_files import MAX_BYTES, source_of

_NAME = re.compile(r"[A-Za-z_]\w*|\d[\w.]*")
_OPERATOR = re.compile(r"[-+*/%&|^<>=!]+=?")
_PAIRS = {"(": ")", "[": "]"}


@dataclass(frozen=True)
class SourceText:
    """A text, and its position: the file, the lines before it there, and the characters before it in its first line. folder: of a text
    with a file of its own, the folder of its included files."""

    text: str
    file: str
    offset: int = 0
    indent: int = 0
    folder: str = ""

    @staticmethod
    def of_file(path: str) -> SourceText:
        """Return the text of a file. Raises SimtbedError."""
        return SourceText(source_of(path), path, folder=os.path.dirname(os.path.abspath(path)))

    @staticmethod
    def inside(text: str, caller: str) -> SourceText:
        """Return a text at its position in the file of its caller, if it is there exactly once; else as a file of its own."""
        whole = "".join(linecache.getlines(caller))
        if text.strip() and whole.count(text) == 1:
            before = whole[: whole.index(text)]
            return SourceText(text, caller, before.count("\n"), len(before) - before.rfind("\n") - 1)
        name = f"<cuda {sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return SourceText(text, name)

    def span(self, file: str, line: int, column: int) -> Span:
        """Return the position of the expression at a line and a column of a file of the compiler."""
        if file == SOURCE:
            column += self.indent * (line == 1)
            file, line = self.file, line + self.offset
        elif file.startswith(ROOT):
            file = f"<{file.removeprefix(f'{ROOT}/include/')}>"
        elif not _is_text(file):
            file = f"<{file}>"
        start, end = _range(source_text.line(file, line), max(column, 1) - 1)
        return Span(file, line, start + 1, line, end + 1)


@lru_cache(maxsize=256)
def _is_text(file: str) -> bool:
    """Whether messages may show lines of a file, which a `#line` may name: a regular one, or a text without a file."""
    return file in linecache.cache or (os.path.isfile(file) and os.path.getsize(file) <= MAX_BYTES)


def _range(text: str, at: int) -> tuple[int, int]:
    """Return the range of the expression at a place of a line: with its operands, if the place is that of an operator."""
    operator = _OPERATOR.match(text, at)
    if operator is None:
        return at, max(_end(text, at), at + 1)
    start = _start(text, at)
    if operator[0].endswith("=") and operator[0] not in ("==", "!=", "<=", ">="):
        rest = re.compile(r"[^;]*").match(text, operator.end())
        return start, operator.end() if rest is None else rest.end()
    operand = operator.end() + len(text[operator.end() :]) - len(text[operator.end() :].lstrip())
    return start, max(_end(text, operand), operator.end())


def _start(text: str, at: int) -> int:
    """Return the begin of the operand before a place: a name, members, indices and calls."""
    at = len(text[:at].rstrip())
    while at > 0:
        if text[at - 1] in ")]":
            opening = _opening(text, at - 1)
            if opening < 0:
                break
            at = opening
        elif text[at - 1].isalnum() or text[at - 1] in "_.":
            at -= 1
        elif text[:at].endswith("->"):
            at -= 2
        else:
            break
    return at


def _opening(text: str, at: int) -> int:
    """Return the place of the bracket that the one at `at` closes; -1 for none in this line."""
    depth = 0
    for place in range(at, -1, -1):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return -1


def _end(text: str, at: int) -> int:
    """Return the place after the expression that begins at a place: a name, then calls, indices and members."""
    name = _NAME.match(text, at)
    at = name.end() if name else at + 1
    while at < len(text):
        if text[at] in _PAIRS:
            close = _closing(text, at)
            if close < 0:
                break
            at = close + 1
        elif (member := re.compile(r"(\.|->)\w+").match(text, at)) is not None:
            at = member.end()
        else:
            break
    return at


def _closing(text: str, at: int) -> int:
    """Return the place of the bracket that closes the one at `at`; -1 for none in this line."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return -1
