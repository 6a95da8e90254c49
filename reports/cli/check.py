"""`simtbed check`: targets under the checkers, and what these find, gathered over all launches."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from simtbed import Launch, devices
from simtbed.profiler.run import gathered
from simtbed.runtime.recording import Recorder, parsed

from .. import tables
from ..selection import find_variants
from ..targets.findings import as_row, as_text, findings
from ..targets.formats import FORMATS, named, summary
from ..targets.running import require_launches, run_target
from ..targets.stream import MakeObserver
from ..targets.target import Shipped, Target, find_target, is_program
from .options import Device, Emulator, Input, Json, Kernels, Number, OnlyFamily, Report, TargetArguments, TargetOrAll
from .output import report_on, reports
from .parameters import Option, command


class Format(StrEnum):
    """How findings are reported."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"
    gitlab = "gitlab"
    junit = "junit"


@command
def check(
    target: TargetOrAll = None,
    arguments: TargetArguments = (),
    family: OnlyFamily = None,
    what: Annotated[
        str,
        Option(("--check",), metavar="NAMES", help="all, or some of bounds,uninitialised,races,barriers,arithmetic."),
    ] = "all",
    kernel: Kernels = "*",
    launch: Number = None,
    engine: Annotated[Emulator, Option(help="What checks.")] = Emulator.jit,
    device: Device = "H200",
    schedules: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Run each launch in N more orders of warps and blocks too.")
    ] = 0,
    source: Input = None,
    output: Report = None,
    json: Json = False,
    format: Annotated[Format, Option(("--format",), help="For whom the report is.")] = Format.text,
) -> int:
    """A target under the checkers, or all shipped variants.

    These look for races, unwritten words, barriers, indices, arithmetic. A finding does not stop a program that would
    go on without the checkers.

    \b
    simtbed check train.py --epochs 1
    simtbed check --check races --schedules 2 file.py:function
    simtbed check --family sfs
    simtbed check --format sarif -o findings.sarif train.py
    """
    shape = Format.json if json else format
    wanted, row = parsed(what), devices.find(device)
    seeds = tuple(range(1, schedules + 1))
    make = partial(Recorder, engine=engine.value, device=row, check=wanted, seeds=seeds, counters=False)
    if target is not None and family is None and is_program(target):
        found = find_target(target, arguments, source)
        with reports({"--output": output}, found.files, device) as outputs:
            return _check_program(found, make, kernel, launch, sorted(wanted), outputs.get("--output"), shape)
    rows: list[_Row] = []
    chosen = [
        Shipped(one, each, source) for one, variants in find_variants(family, target, source) for each in variants
    ]
    with reports({"--output": output}, chosen[0].files, device) as outputs:
        for shipped in chosen:
            run = run_target(shipped, make, faults="return").run.select(kernel, launch)
            rows.append(_Row({"variant": shipped.variant, "input": shipped.input}, run.launches))
        return _report(chosen[0], rows, {}, "variants", sorted(wanted), outputs.get("--output"), shape)


def _check_program(
    target: Target,
    make: MakeObserver,
    kernel: str,
    launch: int | None,
    checks: list[str],
    output: BinaryIO | None,
    shape: Format,
) -> int:
    ran = run_target(target, make)
    require_launches(ran, target)
    groups = ran.run.select(kernel, launch).by_kernel()
    rows = [_Row({"kernel": name}, launches) for name, launches in groups.items()]
    bad = _report(target, rows, {"target": str(target)}, "kernels", checks, output, shape)
    return ran.code or bad


class _Row:
    """What was found in some launches. names: what they are the launches of."""

    def __init__(self, names: dict[str, str], launches: list[Launch]) -> None:
        self.names, self.launches = names, len(launches)
        self.faults, self.remarks = findings(launches)

    def content(self) -> dict[str, Any]:
        faults, remarks = ([as_row(d) for d in found] for found in (self.faults, self.remarks))
        return {**self.names, "launches": self.launches, "faults": faults, "remarks": remarks}


def _report(
    target: Target,
    rows: list[_Row],
    heading: dict[str, str],
    what: str,
    checks: list[str],
    output: BinaryIO | None,
    shape: Format,
) -> int:
    """Give the report out; 1 where something was found."""
    bad = any(row.faults for row in rows)
    if shape is Format.json:
        content = {**heading, "checks": checks, "silent": not bad, what: [row.content() for row in rows]}
        report_on(target, output, tables.as_json(content))
        return int(bad)
    if shape is not Format.text:
        report_on(target, output, _for_services(rows, shape))
        return int(bad)
    names = list(rows[0].names)
    cells = [[*row.names.values(), row.launches, len(row.faults), len(row.remarks)] for row in rows]
    parts = [tables.table([*names, "launches", "findings", "remarks"], cells, left=len(names))]
    for row in rows:
        for title, found in (("found", row.faults), ("remarks", row.remarks)):
            if found:
                parts.append(f"{row.names[names[0]]}, {title}:\n{as_text(found)}")
    report_on(target, output, "\n\n".join(parts))
    return int(bad)


def _for_services(rows: list[_Row], shape: Format) -> str:
    """The findings of all rows, one a place; for GitHub, the table of the step is written too."""
    faults, remarks = (
        gathered(chain.from_iterable(found)) for found in zip(*((r.faults, r.remarks) for r in rows), strict=True)
    )
    found = named(faults, remarks)
    if shape is Format.github and (step := os.environ.get("GITHUB_STEP_SUMMARY")):
        with Path(step).open("a", encoding="utf-8") as page:  # to which others may have written too
            page.write(summary(found))
    return FORMATS[shape.value](found)
