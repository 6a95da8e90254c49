"""The documentation as data: pages, their fenced blocks with the marks above them, and what running a block prints.

A mark is a comment on the line above a fence, which a reader of the page does not see:

    <!-- output -->                 what the Python block before it prints
    <!-- output of X.py -->         what that script prints
    <!-- output of simtbed X -->    what that command prints
    <!-- part of simtbed X -->      some lines of it, found again by their text after ` | `
    <!-- file: X.py -->             a part of that file, word for word
    <!-- needs a GPU -->            Python that is only compiled here

One mark stands alone, and `docs/hooks.py` puts a whole file in its place:

    <!-- source of X.py -->
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{page}.md" for page in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/papers").glob("*.md")),
]
GPU = "needs a GPU"
SOURCE = re.compile(r"^<!-- source of (.*) -->$", re.MULTILINE)
_MARK = re.compile(r"<!-- (.*) -->")


@dataclass(frozen=True)
class Block:
    """One fenced block. first: the number of the line in the page that its text begins with, from 0."""

    language: str
    mark: str
    text: str
    first: int


def name(page: Path) -> str:
    """A page as tests name it."""
    return str(page.relative_to(ROOT))


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = text.splitlines()
    opened: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if opened is None:
            opened = number
            continue
        mark = _MARK.fullmatch(lines[opened - 1]) if opened else None
        content = "".join(f"{inner}\n" for inner in lines[opened + 1 : number])
        yield Block(lines[opened][3:].strip(), mark[1] if mark else "", content, opened + 1)
        opened = None


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def inline_code(text: str) -> list[str]:
    """What stands between single backticks."""
    return re.findall(r"`([^`\n]+)`", prose(text))


class Script:
    """The Python blocks of a page as one file, as if a reader had pasted them one below the other."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.file = f"{page.stem.lower()}.py"
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        python = [block for block in blocks(page.read_text(encoding="utf-8")) if block.language == "python"]
        (folder / self.file).write_text("\n".join(block.text for block in python), encoding="utf-8")
        self.line = 0

    def run(self, block: Block) -> str:
        """Run the next block of the page; what it prints. One that needs a GPU is compiled alone."""
        code = compile("\n" * self.line + block.text, self.file, "exec")
        self.line += block.text.count("\n") + 1
        if block.mark == GPU:
            return ""
        return printed(lambda: exec(code, self.namespace))


def part(shown: str, whole: str) -> str:
    """The lines of `whole` that say the same after ` | ` as those of `shown`, or all the same; what is not found is left out."""
    known = {line.partition(" | ")[2] or line: line for line in whole.splitlines()}
    wanted = (line.partition(" | ")[2] or line for line in shown.splitlines())
    return "".join(f"{known[line]}\n" for line in wanted if line in known)


def printed(run: Any) -> str:
    """What calling `run` writes: a report on a script goes to stderr."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run()
    return out.getvalue()


def output_of(what: str) -> str:
    """What a script of the repository, run in its own folder, or a command line prints."""
    if what.startswith("simtbed "):
        from simtbed.reports.cli import app

        with contextlib.chdir(ROOT):
            return printed(lambda: app.run(shlex.split(what)[1:]))
    script = ROOT / what
    with contextlib.chdir(script.parent), mock.patch.object(sys, "argv", [script.name]):
        return printed(lambda: runpy.run_path(script.name, run_name="__main__"))
