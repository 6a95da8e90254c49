"""Source positions: file, lines, columns, and the inlined call sites."""

from __future__ import annotations

import linecache
import os
from dataclasses import dataclass, replace

from .escaping import printable


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text. Lines count from 1; columns count characters from 1, the end column is exclusive.

    `calls`: the inlined call sites of this position, outermost first.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    calls: tuple[Span, ...] = ()

    @property
    def name(self) -> str:
        """The file as a user would type it: relative below the current folder, printable."""
        relative = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return printable(self.file if relative.startswith("..") else relative)

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.name}:{self.line}"

    @property
    def source(self) -> str:
        """The text of the first line, without its newline; empty for a missing file."""
        try:
            return linecache.getline(self.file, self.line).rstrip("\n")
        except ValueError:  # no path: NUL, a surrogate
            return ""

    @property
    def text(self) -> str:
        """The source between the columns, up to the end of the first line."""
        end = self.end_column - 1 if self.end_line == self.line else None
        return self.source[self.column - 1 : end]

    def inside(self, call: Span) -> Span:
        """Return this span as inlined at `call`."""
        return replace(self, calls=(*call.calls, replace(call, calls=()), *self.calls))


GENERATED = Span("<generated>", 0, 1, 0, 1)
