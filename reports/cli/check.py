"""`simtbed check`: targets under the checkers, within their budgets and past the compiler; what is found, merge_findings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from simtbed import Diagnostic, Launch, Run, SimtbedError, devices
from simtbed.profiler.run import merge_findings
from simtbed.runtime.recording import Recorder, parsed
from simtbed.testing.compiling import Compiling, architectures
from simtbed.testing.known import Pin, read_file

from .. import tables
from ..selection import find_variants
from ..targets.budgets import Budgets
from ..targets.findings import as_row, as_text, findings
from ..targets.formats import FORMATS, named, summary
from ..targets.running import require_launches, run_shipped, run_target
from ..targets.target import KEPT, Shipped, Target, find_target, is_program
from .budgets import Held, is_among, is_whole
from .options import (
    Budget,
    Compiled,
    Device,
    Emulator,
    Hard,
    Input,
    Json,
    Kernels,
    Number,
    OnlyFamily,
    Report,
    Soft,
    TargetArguments,
    TargetOrAll,
    UpdateBudget,
)
from .output import report_on
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
    archs: Annotated[
        str | None,
        Option(
            ("--compile",), metavar="ARCHS", help="Compile for these, such as sm_80,sm_90, or all; spills are findings."
        ),
    ] = None,
    budget: Budget = None,
    soft: Soft = 0.0,
    hard: Hard = 0.0,
    compiled: Compiled = False,
    update: UpdateBudget = False,
    known: Annotated[
        Path | None,
        Option(("--known",), metavar="FILE", help="Findings pinned there, as pytest has them, are remarks."),
    ] = None,
    source: Input = None,
    output: Report = None,
    json: Json = False,
    format: Annotated[Format, Option(("--format",), help="For whom the report is.")] = Format.text,
) -> int:
    """A target under the checkers, or all shipped variants.

    These look for races, unwritten words, barriers, indices, arithmetic. A finding does not stop a program that would
    go on without the checkers. Kernels over their budget, and kernels that nvcc refuses or that spill registers, are
    findings where --budget and --compile ask for it. Of a run that was kept (.json) it reports what was found in it.

    \b
    simtbed check train.py --epochs 1
    simtbed check --check races --schedules 2 file.py:function
    simtbed check --family sfs
    simtbed check --format sarif -o findings.sarif train.py
    simtbed check --budget .simtbed/kernels.toml --update-budget train.py
    """
    shape = Format.json if json else format
    wanted, row = parsed(what), devices.find(device)
    held = Held(Budgets.asked(budget, soft, hard, compiled, update))
    compiling = Compiling(architectures(archs)) if archs else None
    make = partial(
        Recorder,
        engine=engine.value,
        device=row,
        check=wanted,
        seeds=tuple(range(1, schedules + 1)),
        counters=budget is not None,
        keep="program" if compiling or compiled else "nothing",
    )
    looked = _Looked(sorted(wanted), compiling, held, Known.of(known) if known else None)
    if target is not None and target.endswith(KEPT):
        if arguments:
            raise SimtbedError(f"{target} is a run that was kept: it takes no arguments, not {' '.join(arguments)}")
        return _check_kept(Path(target), looked, kernel, launch, output, shape)
    if target is not None and family is None and is_program(target):
        found = find_target(target, arguments, source)
        with held.reports({"--output": output}, found.files, device) as outputs:
            ran = run_target(found, make, reported=is_whole(kernel, launch))
            require_launches(ran, found)
            run = ran.run.select(kernel, launch)
            held.add(found, run)
            for name, launches in run.by_kernel().items():
                looked.add({"kernel": name}, launches)
            held.end(outputs, lambda name: is_whole(kernel, launch) and name == str(found))
            bad = _report(found, looked, {"target": str(found)}, "kernels", outputs.get("--output"), shape)
            return ran.code or bad
    chosen = [
        Shipped(one, each, source) for one, variants in find_variants(family, target, source) for each in variants
    ]
    with held.reports({"--output": output}, chosen[0].files, device) as outputs:
        for shipped, whole in zip(chosen, run_shipped(chosen, make), strict=True):
            run = whole.select(kernel, launch)
            held.add(shipped, run)
            looked.add({"variant": shipped.variant, "input": shipped.input}, run.launches)
        held.end(outputs, lambda name: is_whole(kernel, launch) and is_among(name, chosen, target is None))
        return _report(chosen[0], looked, {}, "variants", outputs.get("--output"), shape)


def _check_kept(
    path: Path, looked: _Looked, kernel: str, launch: int | None, output: Path | None, shape: Format
) -> int:
    """What was found in a run that was kept."""
    if looked.compiling or (looked.held.budgets and looked.held.budgets.compiled):
        raise SimtbedError(f"{path}: a run that was kept has no kernels to compile")
    with looked.held.reports({"--output": output}, [path]) as outputs:
        run = Run.load(path).select(kernel, launch)
        looked.held.add(run.target, run)
        looked.held.end(outputs, lambda name: is_whole(kernel, launch) and name == run.target)
        for name, launches in run.by_kernel().items():
            looked.add({"kernel": name}, launches)
        return _report(None, looked, {"target": run.target}, "kernels", outputs.get("--output"), shape)


@dataclass(frozen=True)
class Known:
    """Findings that are let pass. root: the folder that their files count from."""

    pins: Sequence[Pin]
    root: Path

    @classmethod
    def of(cls, path: Path) -> Known:
        """Of a file in the folder .simtbed of a project. Raises SimtbedError, one line."""
        return cls(read_file(path), path.absolute().parent.parent)

    def covers(self, found: Diagnostic) -> bool:
        return any(pin.covers(found, self.root) for pin in self.pins)


class _Row:
    """What was found in some launches. names: what they are the launches of. compiling: what else is asked of them.
    known: what of it is a remark."""

    def __init__(
        self, names: dict[str, str], launches: list[Launch], compiling: Compiling | None, known: Known | None
    ) -> None:
        self.names, self.launches = names, len(launches)
        self.faults, self.remarks = findings(launches)
        if compiling is not None:
            self.faults += merge_findings(compiling.findings(one.request for one in launches))
        if known is not None:
            self.remarks += [fault for fault in self.faults if known.covers(fault)]
            self.faults = [fault for fault in self.faults if not known.covers(fault)]

    def content(self) -> dict[str, Any]:
        faults, remarks = ([as_row(d) for d in found] for found in (self.faults, self.remarks))
        return {**self.names, "launches": self.launches, "faults": faults, "remarks": remarks}


@dataclass
class _Looked:
    """What was looked for, and what was found. rows: of kernels or variants. held: to budgets. known: what is let pass."""

    checks: list[str]
    compiling: Compiling | None
    held: Held
    known: Known | None = None
    rows: list[_Row] = field(default_factory=list)

    def add(self, names: dict[str, str], launches: list[Launch]) -> None:
        self.rows.append(_Row(names, launches, self.compiling, self.known))

    @property
    def bad(self) -> bool:
        return bool(self.held.faults) or any(row.faults for row in self.rows)

    def merge_findings(self) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """Faults and remarks of everything, one a place."""
        faults = merge_findings(chain(chain.from_iterable(row.faults for row in self.rows), self.held.faults))
        return faults, merge_findings(chain(chain.from_iterable(row.remarks for row in self.rows), self.held.remarks))


def _report(
    target: Target | None, looked: _Looked, heading: dict[str, str], what: str, output: BinaryIO | None, shape: Format
) -> int:
    """Give the report out; 1 where something was found."""
    rows = looked.rows
    if shape is Format.json:
        content: dict[str, Any] = {**heading, "checks": looked.checks, "silent": not looked.bad}
        content |= {what: [row.content() for row in rows]}
        content |= {"compiled": looked.compiling.made} if looked.compiling else {}
        report_on(target, output, tables.as_json(content | looked.held.content()))
        return int(looked.bad)
    if shape is not Format.text:
        report_on(target, output, _for_services(looked, shape))
        return int(looked.bad)
    names = list(rows[0].names)
    cells = [[*row.names.values(), row.launches, len(row.faults), len(row.remarks)] for row in rows]
    parts = [tables.table([*names, "launches", "findings", "remarks"], cells, left=len(names))]
    for row in rows:
        for title, found in (("found", row.faults), ("remarks", row.remarks)):
            if found:
                parts.append(f"{row.names[names[0]]}, {title}:\n{as_text(found)}")
    if looked.compiling:
        archs = ", ".join(looked.compiling.architectures)
        parts.append(f"{looked.compiling.made:,} kernels compiled, each for one of {archs}")
    report_on(target, output, "\n\n".join([*parts, *looked.held.text()]))
    return int(looked.bad)


def _for_services(looked: _Looked, shape: Format) -> str:
    """The findings of all rows, one a place; for GitHub, the table of the step is written too."""
    found = named(*looked.merge_findings())
    if shape is Format.github and (step := os.environ.get("GITHUB_STEP_SUMMARY")):
        with Path(step).open("a", encoding="utf-8") as page:  # to which others may have written too
            page.write(summary(found))
    return FORMATS[shape.value](found)
