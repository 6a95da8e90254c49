"""Corrected kernels: the statements of a finding's remedy inserted into the source."""

import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from simtbed import Kernel
from simtbed.errors import Insertion


def corrected_module(kernel: Kernel, insertions: Iterable[Insertion], folder: Path) -> dict[str, Any]:
    """Execute a copy of a kernel's module in a folder, with statements inserted, and return its names."""
    module = sys.modules[kernel.function.__module__]
    text = with_insertions(inspect.getsource(module), list(insertions))
    path = folder / f"{kernel.__name__}.py"
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(text, str(path), "exec"), names)
    return names


def with_insertions(text: str, insertions: Sequence[Insertion]) -> str:
    """Return source text with statements inserted; those of one place keep their order."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    places = [(*_place(tree, lines, insertion), n, insertion.statement) for n, insertion in enumerate(insertions)]
    for number, indent, _, statement in sorted(places, key=lambda place: (place[0], place[2]), reverse=True):
        lines.insert(number, f"{' ' * indent}{statement}\n")
    return "".join(lines)


def _place(tree: ast.Module, lines: Sequence[str], insertion: Insertion) -> tuple[int, int]:
    """Return the index of the new line, and its indent."""
    if insertion.place == "before":
        before = lines[insertion.line - 1]
        return insertion.line - 1, len(before) - len(before.lstrip())
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While))
    loop = next(node for node in loops if node.lineno == insertion.line)
    first, last = loop.body[0], loop.body[-1]
    return (first.lineno - 1 if insertion.place == "start of loop" else last.end_lineno or 0), first.col_offset
