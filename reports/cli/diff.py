"""`simtbed diff`: what changed from one run to another."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated

from simtbed import Device as DeviceRow
from simtbed import Run, SimtbedError, devices
from simtbed.runtime.recording import Recorder

from .. import tables
from ..profile.counter_tables import ratio
from ..profile.difference import Change, changes
from ..targets.budgets import Budgets
from ..targets.formats import COMMENT, markdown_table, markdown_text
from ..targets.running import require_launches, run_target
from ..targets.target import Target, find_target
from .budgets import Held
from .options import Budget, Device, Hard, Kernels, Soft
from .output import write_lines
from .parameters import Argument, Option, command


class Format(StrEnum):
    """How the changes are written."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"


STDERR = 2
_ONE = "A run that `simtbed profile --save` kept (.json), or a target; with its arguments, in quotes."


@command
def diff(
    before: Annotated[str, Argument(metavar="A", help=_ONE)],
    after: Annotated[str, Argument(metavar="B", help="The same.")],
    kernel: Kernels = "*",
    device: Device = "H200",
    format: Annotated[Format, Option(help="How the changes are written.")] = Format.text,
    budget: Budget = None,
    soft: Soft = 0.0,
    hard: Hard = 0.0,
    output: Annotated[Path | None, Option(("--output", "-o"), metavar="OUT", help="Instead of stdout.")] = None,
) -> int:
    """What changed from A to B, by kernel, line and counter.

    What the programs themselves print goes to stderr. A line that moved is the same line while its text is. With --budget
    the exit code is 1 where a kernel of B costs something else than its baseline says.

    \b
    simtbed profile --save before.json transpose.py --n 512
    simtbed diff before.json 'transpose.py --n 512'
    simtbed diff --format csv -o changes.csv before.json after.json
    simtbed diff --format markdown base.json head.json
    simtbed diff iterative reduction
    """
    row = devices.find(device)
    sides = [_found(name) for name in (before, after)]
    inputs = [path for side in sides for path in ([side] if isinstance(side, Path) else side.files)]
    held = Held(Budgets.asked(budget, soft, hard, compiled=False, update=False))
    with held.reports({"--output": output}, inputs, device) as outputs:
        runs = [_run(side, row) for side in sides]
        found = [change for change in changes(*runs) if fnmatchcase(change.kernel, kernel)]
        if budget is not None:
            held.add(runs[1].target if isinstance(sides[1], Path) else sides[1], runs[1].select(kernel))
        if (file := outputs.get("--output")) is not None:
            write_lines(file, _SHAPES[format](found, (before, after), held))
        else:
            print(_SHAPES[format](found, (before, after), held))
    return int(bool(held.faults))


def _found(name: str) -> Path | Target:
    """The file of a run, or a target."""
    if name.endswith(".json"):
        return Path(name)
    try:
        words = shlex.split(name)
    except ValueError as error:
        raise SimtbedError(f"{name}: a target and its arguments as a shell has them: {error}") from None
    if not words:
        raise SimtbedError("a run is a file or a target, not nothing")
    return find_target(words[0], words[1:])


def _run(side: Path | Target, device: DeviceRow) -> Run:
    if isinstance(side, Path):
        return Run.load(side)
    ran = run_target(side, partial(Recorder, engine="jit", device=device), output=STDERR)
    require_launches(ran, side)
    return ran.run


def _value(counter: str, value: float | None) -> str:
    if value is None:
        return "not there"
    return f"{value:,}" if isinstance(value, int) else ratio(counter, value)


def _row(change: Change) -> list[str]:
    times = "" if change.ratio is None else f"{change.ratio:.3g} x"
    return [change.counter, _value(change.counter, change.before), _value(change.counter, change.after), times]


def _text(found: Iterable[Change], names: tuple[str, str], held: Held) -> str:
    groups: dict[tuple[str, str, int, str], list[Change]] = {}
    for change in found:
        groups.setdefault((change.kernel, change.file, change.line, change.source), []).append(change)
    if not groups:
        return "\n\n".join([f"{names[0]} and {names[1]} counted the same", *held.text()])
    parts = []
    for (kernel, file, line, source), members in groups.items():
        title = f"{kernel}, {file}:{line}: {source}" if line else kernel
        parts.append(f"{title}\n{tables.table(['counter', 'A', 'B', 'B of A'], [_row(one) for one in members])}")
    return "\n\n".join([f"A: {names[0]}\nB: {names[1]}", *parts, *held.text()])


def _json(found: Iterable[Change], names: tuple[str, str], held: Held) -> str:
    content = {"a": names[0], "b": names[1], "changes": [asdict(change) for change in found]}
    return tables.as_json(content | held.content())


def _csv(found: Iterable[Change], names: tuple[str, str], held: Held) -> str:
    into = io.StringIO()
    writer = csv.writer(into, lineterminator="\n")
    writer.writerow(["kernel", "file", "line", "source", "counter", "a", "b"])
    writer.writerows([[*asdict(change).values()] for change in found])
    return into.getvalue().rstrip("\n")


def _markdown(found: Iterable[Change], names: tuple[str, str], held: Held) -> str:
    """A table for a pull request: what got worse first; the kernels' totals, then their lines."""
    ordered = sorted(found, key=lambda change: (change.line > 0, -change.worse))
    if not ordered:
        return f"Every kernel counts as in {markdown_text(names[0])}."
    rows = [
        [change.kernel, f"{change.file}:{change.line}" if change.line else "", *_row(change)[:3], _much(change)]
        for change in ordered
    ]
    head = ["kernel", "line", "counter", markdown_text(names[0]), markdown_text(names[1]), "change"]
    more = [f"\n\n```text\n{text}\n```" for text in held.text()] if held.faults else []
    return markdown_table(head, rows, align="lllrrl", most=COMMENT) + "".join(more)


def _much(change: Change) -> str:
    """By how much a counter changed, and whether that is worse."""
    if change.before is None or change.after is None:
        return "new" if change.before is None else "gone"
    word = "worse" if change.worse > 0 else "better" if change.worse < 0 else ""
    return (
        f"{100 * (change.ratio - 1):+,.1f} % {word}".strip() if change.ratio is not None else f"from 0 {word}".strip()
    )


_SHAPES = {Format.text: _text, Format.json: _json, Format.csv: _csv, Format.markdown: _markdown}
