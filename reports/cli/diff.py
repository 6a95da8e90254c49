"""`simtbed diff`: differences of counters between two runs."""

import csv
import io
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated

from simtbed import Device as DeviceRow
from simtbed import Run, SimtbedError, devices
from simtbed.escaping import Document, csv_cell, fenced, markdown, printable
from simtbed.runtime.recording import Recorder

from .. import tables
from ..printing import print_text
from ..profile.counter_tables import ratio
from ..profile.difference import Change, changes
from ..targets.formats import MAX_COMMENT, markdown_table
from ..targets.running import require_launches, run_target
from ..targets.target import RUN_SUFFIX, Target, find_target
from .budgets import BudgetCheck
from .options import BudgetOptions, Device, Kernels
from .output import STDERR, write_lines
from .parameters import Argument, Option, command


class Format(StrEnum):
    """Formats of a list of changes."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"


@dataclass(frozen=True, kw_only=True)
class DiffOptions:
    """The options of `simtbed diff`."""

    kernel: Kernels = "*"
    device: Device = "H200"
    format: Annotated[Format, Option(help="Format of the changes.")] = Format.text
    budget: BudgetOptions
    output: Annotated[
        Path | None, Option(("--output", "-o"), metavar="OUT", help="Write the changes to OUT instead of stdout.")
    ] = None


@command
def diff(
    before: Annotated[
        str,
        Argument(
            metavar="A", help="A run saved by `simtbed profile --save` (.json), or a target with its arguments, quoted."
        ),
    ],
    after: Annotated[str, Argument(metavar="B", help="The run or target to compare with A.")],
    *,
    options: DiffOptions,
) -> int:
    """Compare the counters of A and B by kernel, line and counter.

    The output of the programs is printed to stderr. Lines are matched by their text, so a line may move. With --budget
    the exit code is 1 if the counters of a kernel of B differ from its baseline.

    \b
    simtbed profile --save before.json transpose.py --n 512
    simtbed diff before.json 'transpose.py --n 512'
    simtbed diff --format csv -o changes.csv before.json after.json
    simtbed diff --format markdown base.json head.json
    simtbed diff iterative reduction
    """
    device = devices.find(options.device)
    sides = [_find(name) for name in (before, after)]
    inputs = [path for side in sides for path in ([side] if isinstance(side, Path) else side.files)]
    budgets = BudgetCheck.from_options(options.budget)
    with budgets.report_files({"--output": options.output}, inputs, options.device) as outputs:
        runs = [_run(side, device) for side in sides]
        listed = [change for change in changes(*runs) if fnmatchcase(change.kernel, options.kernel)]
        if options.budget.budget is not None:
            budgets.add(runs[1].target if isinstance(sides[1], Path) else sides[1], runs[1].select(options.kernel))
        text = _WRITERS[options.format](listed, (printable(before), printable(after)), budgets)
        if (file := outputs.get("--output")) is not None:
            write_lines(file, text)
        else:
            print_text(text)
    return int(bool(budgets.faults))


def _find(name: str) -> Path | Target:
    """Return the file of a saved run, or a target."""
    if name.endswith(RUN_SUFFIX):
        return Path(name)
    try:
        words = shlex.split(name)
    except ValueError as error:
        raise SimtbedError(
            f"{printable(name)}: expected a target and its arguments, quoted as in a shell: {error}"
        ) from None
    if not words:
        raise SimtbedError("expected a saved run or a target, got an empty name")
    return find_target(words[0], words[1:])


def _run(side: Path | Target, device: DeviceRow) -> Run:
    if isinstance(side, Path):
        return Run.load(side)
    completed = run_target(side, partial(Recorder, engine="jit", device=device), output=STDERR)
    require_launches(completed, side)
    return completed.run


def _value(counter: str, value: float | None) -> str:
    if value is None:
        return "absent"
    return f"{value:,}" if isinstance(value, int) else ratio(counter, value)


def _row(change: Change) -> list[str]:
    times = "" if change.ratio is None else f"{change.ratio:.3g} x"
    return [change.counter, _value(change.counter, change.before), _value(change.counter, change.after), times]


def _text(listed: Iterable[Change], names: tuple[str, str], budgets: BudgetCheck) -> str:
    groups: dict[tuple[str, str, int, str], list[Change]] = {}
    for change in listed:
        groups.setdefault((change.kernel, change.file, change.line, change.source), []).append(change)
    if not groups:
        return "\n\n".join([f"the counters of {names[0]} and {names[1]} are equal", *budgets.text()])
    paragraphs = []
    for (kernel, file, line, source), group in groups.items():
        title = f"{kernel}, {printable(file)}:{line}: {printable(source)}" if line else kernel
        paragraphs.append(f"{title}\n{tables.table(['counter', 'A', 'B', 'B / A'], map(_row, group))}")
    return "\n\n".join([f"A: {names[0]}\nB: {names[1]}", *paragraphs, *budgets.text()])


def _json(listed: Iterable[Change], names: tuple[str, str], budgets: BudgetCheck) -> str:
    content = {"a": names[0], "b": names[1], "changes": [asdict(change) for change in listed]}
    return tables.as_json(content | budgets.content())


def _csv(listed: Iterable[Change], names: tuple[str, str], budgets: BudgetCheck) -> str:
    into = io.StringIO()
    writer = csv.writer(into, lineterminator="\n")
    writer.writerow(["kernel", "file", "line", "source", "counter", "a", "b"])
    writer.writerows([map(csv_cell, asdict(change).values()) for change in listed])
    return Document(into.getvalue().rstrip("\n"))


def _markdown(listed: Iterable[Change], names: tuple[str, str], budgets: BudgetCheck) -> str:
    """Return a table for a pull request: totals of kernels, then lines, each with the largest regression first."""
    ordered = sorted(listed, key=lambda change: (change.line > 0, -change.regression))
    if not ordered:
        return Document(f"All counters are equal to those of {markdown(names[0])}.")
    rows = [
        [change.kernel, f"{change.file}:{change.line}" if change.line else "", *_row(change)[:3], _percent(change)]
        for change in ordered
    ]
    head = ["kernel", "line", "counter", *names, "change"]
    more = [f"\n\n{fenced(text)}" for text in budgets.text()] if budgets.faults else []
    return Document(markdown_table(head, rows, align="lllrrl", limit=MAX_COMMENT) + "".join(more))


def _percent(change: Change) -> str:
    """Return the change in percent, and whether it is a regression."""
    if change.before is None or change.after is None:
        return "added" if change.before is None else "removed"
    word = "worse" if change.regression > 0 else "better" if change.regression < 0 else ""
    percent = f"{100 * (change.ratio - 1):+,.1f} %" if change.ratio is not None else "from 0"
    return f"{percent} {word}".strip()


_WRITERS = {Format.text: _text, Format.json: _json, Format.csv: _csv, Format.markdown: _markdown}
