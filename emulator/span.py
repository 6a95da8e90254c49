"""Source positions: file, lines, columns, and the inlined call sites."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from . import source_text
from .escaping import printable


def name_of(file: str) -> str:
    """Return the printable text that names a file, or a cell of IPython, to a user."""
    if (cell := _cell(file)) is not None:
        return f"In[{cell}]"
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return printable(file if relative.startswith("..") else relative)


def _cell(file: str) -> int | None:
    """Return the number of the last execution of a cell of IPython; None for other files."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    number = numbers.get(file)
    return number if isinstance(number, int) else None


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
        """The file as a user would type it: relative below the current folder, printable. A cell of a notebook: In[3]."""
        return name_of(self.file)

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.name}:{self.line}"

    @property
    def source(self) -> str:
        """The text of the first line, without its newline; empty for a missing file."""
        return source_text.line(self.file, self.line)

    @property
    def text(self) -> str:
        """The source between the columns, up to the end of the first line."""
        end = self.end_column - 1 if self.end_line == self.line else None
        return self.source[self.column - 1 : end]

    @property
    def without_calls(self) -> Span:
        """The position without its call sites."""
        return replace(self, calls=()) if self.calls else self

    def inside(self, call: Span) -> Span:
        """Return this span as inlined at `call`."""
        return replace(self, calls=(*call.calls, call.without_calls, *self.calls))


GENERATED = Span("<generated>", 0, 1, 0, 1)
