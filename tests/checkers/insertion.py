"""Corrected kernels: the statements of a finding's remedy inserted into the source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from simtbed.errors import Insertion

from tests.checkers.corpus.pair import PAIRS, Pair


def corrected(pair: Pair, insertions: Iterable[Insertion], folder: Path) -> Pair:
    """Return the pair of a copy of its module in a folder, with statements inserted."""
    function, chosen = pair.kernel.function, list(insertions)
    text = with_insertions(inspect.getsource(sys.modules[function.__module__]), chosen)
    path = folder / f"{pair.name}.py"
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": function.__module__, "__package__": function.__module__.rpartition(".")[0]}
    registered = dict(PAIRS)
    try:
        PAIRS.clear()
        exec(compile(text, str(path), "exec"), names)
        return PAIRS[pair.name]
    finally:
        PAIRS.clear()
        PAIRS.update(registered)


def with_insertions(text: str, insertions: Sequence[Insertion]) -> str:
    """Return source text with statements inserted; those of one place keep their order."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    places = [(*_place(tree, lines, insertion), insertion.statement) for insertion in insertions]
    for number, indent, statement in sorted(reversed(places), key=lambda place: place[0], reverse=True):
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
