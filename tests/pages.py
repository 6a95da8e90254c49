"""Pages of the documentation: fenced blocks, their marks, and the output of a block.

A mark is an HTML comment on the line above a fence, invisible to the reader of the page:

    <!-- output -->                 output of the Python block before it
    <!-- output of X.py -->         output of the script
    <!-- output of simtbed X -->    output of the command
    <!-- session of simtbed X -->   a session of `simtbed debug` in the folder examples/debugging, with its commands
    <!-- excerpt of simtbed X -->   some lines of that output, found by their text after ` | `
    <!-- file: X.py -->             verbatim excerpt of the file
    <!-- needs a GPU -->            Python that the tests only compile
    <!-- needs nvcc -->             Python that the tests only compile without nvcc 13 and nvdisasm; its output is not compared then

One mark needs no block; `docs/hooks.py` replaces it by a whole file:

    <!-- source of X.py -->
"""

import contextlib
import io
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from simtbed.engines.cuda.nvcc import find_tool, version

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / f"{page}.md" for page in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/papers").glob("*.md")),
]
GPU, NVCC = "needs a GPU", "needs nvcc"
SOURCE = re.compile(r"^<!-- source of (.*) -->$", re.MULTILINE)
_MARK = re.compile(r"<!-- (.*) -->")


@dataclass(frozen=True)
class Block:
    """Fenced block. first: number of the first line of its text in the page, from 0."""

    language: str
    mark: str
    text: str
    first: int


def name(page: Path) -> str:
    """Return the path of a page below the root, the name of the page in test IDs."""
    return str(page.relative_to(ROOT))


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
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
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def inline_code(text: str) -> list[str]:
    """Return the texts between single backticks."""
    return re.findall(r"`([^`\n]+)`", prose(text))


class Script:
    """The Python blocks of a page as one file, in the order of the page."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.file = f"{page.stem.lower()}.py"
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        python = [block for block in blocks(page.read_text(encoding="utf-8")) if block.language == "python"]
        (folder / self.file).write_text("\n".join(block.text for block in python), encoding="utf-8")
        self.line = 0

    def run(self, block: Block) -> str | None:
        """Run the next block of the page and return its output; None for a block that is only compiled here."""
        code = compile("\n" * self.line + block.text, self.file, "exec")
        self.line += block.text.count("\n") + 1
        if block.mark == GPU or (block.mark == NVCC and not has_nvcc()):
            return None
        return printed(lambda: exec(code, self.namespace))


@cache
def has_nvcc() -> bool:
    """Return whether nvcc 13, whose SASS the pages describe, and nvdisasm are installed."""
    nvcc = find_tool("nvcc")
    return nvcc is not None and find_tool("nvdisasm") is not None and "release 13" in version(nvcc)


def matching_lines(shown: str, whole: str) -> str:
    """Return the lines of `whole` that equal a line of `shown` after ` | `, or in full if they have no ` | `. Omit lines of
    `shown` without an equal."""
    lines = {line.partition(" | ")[2] or line: line for line in whole.splitlines()}
    keys = (line.partition(" | ")[2] or line for line in shown.splitlines())
    return "".join(f"{lines[line]}\n" for line in keys if line in lines)


def printed(run: Any) -> str:
    """Return the output of calling `run`, stderr included: a report on a script is written there."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run()
    return out.getvalue()


PROMPT = "(simtbed) "


def session_of(what: str, shown: str) -> str:
    """Return a session of `simtbed debug` with the commands of the page's session."""
    commands = [line.removeprefix(PROMPT) for line in shown.splitlines() if line.startswith(PROMPT)]
    completed = subprocess.run(
        [sys.executable, "-m", "simtbed", *shlex.split(what)[1:]],
        cwd=ROOT / "examples/debugging",
        input="".join(f"{command}\n" for command in commands),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return completed.stdout


def output_of(what: str) -> str:
    """Return the output of a command line, or of a script of the repository, run in its own folder."""
    if what.startswith("simtbed "):
        from simtbed.reports.cli import app

        with contextlib.chdir(ROOT):
            return printed(lambda: app.run(shlex.split(what)[1:]))
    script = ROOT / what
    with contextlib.chdir(script.parent), mock.patch.object(sys, "argv", [script.name]):
        return printed(lambda: runpy.run_path(script.name, run_name="__main__"))
