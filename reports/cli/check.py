"""`simtbed check`: findings of the checkers, the compiler and the budgets, by kernel or variant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from simtbed import Diagnostic, Launch, Run, SimtbedError, devices
from simtbed.escaping import Document
from simtbed.kernels.files import Outputs
from simtbed.profiler.run import merge_findings
from simtbed.runtime.recording import Recorder, parsed
from simtbed.testing.compiling import Compiling, architectures
from simtbed.testing.known_findings import Pin, read_file

from .. import tables
from ..selection import find_variants
from ..targets.findings import as_row, as_text, findings
from ..targets.formats import FORMATS, fingerprinted, summary
from ..targets.running import require_launches, run_shipped, run_target
from ..targets.stream import MakeObserver
from ..targets.target import RUN_SUFFIX, CudaProgram, Shipped, Target, find_target, is_program
from .budgets import BudgetCheck, is_among
from .options import (
    BudgetOptions,
    Device,
    Emulator,
    Input,
    Json,
    OnlyFamily,
    Report,
    SelectionOptions,
    TargetArguments,
    TargetOrAll,
    UpdateBudget,
)
from .output import program_output, warn, write_lines, write_report
from .parameters import Option, command


class Format(StrEnum):
    """Formats of findings."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"
    gitlab = "gitlab"
    junit = "junit"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of `simtbed check`."""

    family: OnlyFamily = None
    check: Annotated[
        str,
        Option(
            metavar="NAMES",
            help="Checkers to run: all, or some of bounds,alignment,uninitialised,races,barriers,arithmetic,nan.",
        ),
    ] = "all"
    selection: SelectionOptions
    engine: Annotated[Emulator, Option(help="Engine that runs the checkers.")] = Emulator.jit
    device: Device = "H200"
    schedules: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Repeat each launch in N random orders of warps and blocks.")
    ] = 0
    archs: Annotated[
        str | None,
        Option(
            ("--compile",),
            metavar="ARCHS",
            help="Compile the kernels for architectures such as sm_80,sm_90, or all; report spills.",
        ),
    ] = None
    budget: BudgetOptions
    compiled: Annotated[
        bool, Option(help="Compare registers, spills and local memory with the baselines too; needs nvcc, not a GPU.")
    ] = False
    update_budget: UpdateBudget = False
    known_file: Annotated[
        Path | None,
        Option(
            ("--known",), metavar="FILE", help="Report the findings that FILE pins as remarks; same file as pytest."
        ),
    ] = None
    coverage: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write the coverage of the kernels' lines and branches: LCOV to FILE.info, else into data of coverage.py.",
        ),
    ] = None
    input: Input = None
    output: Report = None
    json: Json = False
    format: Annotated[Format, Option(help="Format of the report.")] = Format.text

    @property
    def files(self) -> dict[str, Path | None]:
        """The output files, by option."""
        return {"--output": self.output, "--coverage": self.coverage}

    def observer(self) -> MakeObserver:
        """Return the constructor of the observer that runs the checkers."""
        return partial(
            Recorder,
            engine=self.engine.value,
            device=devices.find(self.device),
            check=parsed(self.check),
            seeds=tuple(range(1, self.schedules + 1)),
            counters=self.budget.budget is not None or self.coverage is not None,
            keep="program" if self.archs or self.compiled or self.coverage is not None else "nothing",
        )


@command
def check(target: TargetOrAll = None, arguments: TargetArguments = (), *, options: CheckOptions) -> int:
    """Run a target, or all shipped variants, under the checkers.

    The checkers find races, reads of unwritten memory, barrier errors, accesses out of bounds and arithmetic errors. A
    program continues after a finding if it would continue without the checkers. With --budget, kernels over their
    budget are findings; with --compile, kernels that nvcc rejects or that spill registers. The findings of a saved run
    (.json) are read from its file.

    \b
    simtbed check train.py --epochs 1
    simtbed check program.cu -- 1000
    simtbed check --check races --schedules 2 file.py:function
    simtbed check --family sfs
    simtbed check --format sarif -o findings.sarif train.py
    simtbed check --budget .simtbed/kernels.toml --update-budget train.py
    simtbed check --coverage kernels.info train.py
    """
    make = options.observer()
    check = Check(
        sorted(parsed(options.check)),
        Compiling(architectures(options.archs)) if options.archs else None,
        BudgetCheck.from_options(options.budget, options.compiled, options.update_budget),
        KnownFindings.read(options.known_file) if options.known_file else None,
    )
    if target is not None and target.endswith(RUN_SUFFIX):
        if arguments:
            raise SimtbedError(f"{target} is a saved run and takes no arguments, got {' '.join(arguments)}")
        return _check_saved_run(Path(target), check, options)
    if target is not None and options.family is None and is_program(target):
        program = find_target(target, arguments, options.input, options.selection.emulate)
        return _check_program(program, check, make, options)
    return _check_variants(target, check, make, options)


def _check_program(target: Target, check: Check, make: MakeObserver, options: CheckOptions) -> int:
    selection = options.selection
    with check.budgets.report_files(options.files, target.files, options.device) as outputs:
        completed = run_target(target, make, output=program_output(outputs), reported=selection.is_complete)
        if completed.code or not isinstance(target, CudaProgram):  # its copies and calls of libraries are checked too
            require_launches(completed, target)
        run = completed.run
        if run.launches:
            run = run.select(selection.kernel, selection.launch)
        check.budgets.add(target, run)
        check.add_kernels(run)
        check.add_host_code(completed.host_findings)
        _write_coverage(outputs, run.launches, options)
        check.budgets.finish(outputs, lambda name: selection.is_complete and name == str(target))
        heading = {"target": str(target)}
        code = _report(check, heading, "kernels", outputs, options)
        return completed.code or code


def _check_variants(variant: str | None, check: Check, make: MakeObserver, options: CheckOptions) -> int:
    selection = options.selection
    targets = [
        Shipped(family, name, options.input)
        for family, names in find_variants(options.family, variant, options.input)
        for name in names
    ]
    with check.budgets.report_files(options.files, targets[0].files, options.device) as outputs:
        launches: list[Launch] = []
        for target, complete_run in zip(targets, run_shipped(targets, make), strict=True):
            run = complete_run.select(selection.kernel, selection.launch)
            check.budgets.add(target, run)
            check.add({"variant": target.variant, "input": target.input}, run.launches)
            launches += run.launches if options.coverage is not None else []
        _write_coverage(outputs, launches, options)
        check.budgets.finish(
            outputs, lambda name: selection.is_complete and is_among(name, targets, complete=variant is None)
        )
        return _report(check, {}, "variants", outputs, options)


def _check_saved_run(path: Path, check: Check, options: CheckOptions) -> int:
    budgets, selection = check.budgets, options.selection
    if check.compiling or (budgets.budgets and budgets.budgets.compiled) or options.coverage is not None:
        raise SimtbedError(f"{path}: a saved run has no kernels to compile, and no programs for --coverage")
    with budgets.report_files({"--output": options.output}, [path]) as outputs:
        run = Run.load(path).select(selection.kernel, selection.launch)
        budgets.add(run.target, run)
        budgets.finish(outputs, lambda name: selection.is_complete and name == run.target)
        check.add_kernels(run)
        return _report(check, {"target": run.target}, "kernels", outputs, options)


HOST_CODE = "host code"
"""The name of a row of findings outside of kernels."""


@dataclass(frozen=True)
class KnownFindings:
    """Findings to report as remarks. root: the folder to which the files of the pins are relative."""

    pins: Sequence[Pin]
    root: Path

    @classmethod
    def read(cls, path: Path) -> KnownFindings:
        """Read a file in the folder .simtbed of a project. Raises SimtbedError, one line."""
        return cls(read_file(path), path.absolute().parent.parent)

    def covers(self, finding: Diagnostic) -> bool:
        return any(pin.covers(finding, self.root) for pin in self.pins)


class _Row:
    """The findings of some launches.

    names: the kernel, or the variant and its input. compiling: compiles the kernels, if requested. known: findings to report
    as remarks. host_findings: of host code.
    """

    def __init__(
        self,
        names: dict[str, str],
        launches: list[Launch],
        compiling: Compiling | None,
        known_findings: KnownFindings | None,
        host_findings: Sequence[Diagnostic] = (),
    ) -> None:
        self.names, self.launches = names, len(launches)
        self.faults, self.remarks = findings(launches, host_findings)
        if compiling is not None:
            self.faults += merge_findings(compiling.findings(launch.request for launch in launches))
        if known_findings is not None:
            self.remarks += [fault for fault in self.faults if known_findings.covers(fault)]
            self.faults = [fault for fault in self.faults if not known_findings.covers(fault)]

    def content(self) -> dict[str, Any]:
        faults, remarks = ([as_row(d) for d in diagnostics] for diagnostics in (self.faults, self.remarks))
        return {**self.names, "launches": self.launches, "faults": faults, "remarks": remarks}


@dataclass
class Check:
    """The requested checks and their findings. rows: findings by kernel or variant."""

    checkers: list[str]
    compiling: Compiling | None
    budgets: BudgetCheck
    accepted: KnownFindings | None = None
    rows: list[_Row] = field(default_factory=list)

    def add(self, names: dict[str, str], launches: list[Launch]) -> None:
        self.rows.append(_Row(names, launches, self.compiling, self.accepted))

    def add_kernels(self, run: Run) -> None:
        for name, launches in run.by_kernel().items():
            self.add({"kernel": name}, launches)

    def add_host_code(self, host_findings: Sequence[Diagnostic]) -> None:
        """Add the findings of a program's host code, if there are any or if it launched no kernel."""
        if host_findings or not self.rows:
            self.rows.append(_Row({"kernel": HOST_CODE}, [], None, self.accepted, host_findings))

    @property
    def has_faults(self) -> bool:
        return bool(self.budgets.faults) or any(row.faults for row in self.rows)

    def merged(self) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """Return the faults and remarks of all rows, one per place."""
        faults = merge_findings(chain(chain.from_iterable(row.faults for row in self.rows), self.budgets.faults))
        return faults, merge_findings(
            chain(chain.from_iterable(row.remarks for row in self.rows), self.budgets.remarks)
        )


def _write_coverage(outputs: Outputs, launches: list[Launch], options: CheckOptions) -> None:
    if (output := outputs.get("--coverage")) is None or options.coverage is None:
        return
    from ..targets import coverage  # late: few checks write it

    files = coverage.coverage_of(launches)
    if options.coverage.suffix in coverage.LCOV_SUFFIXES:
        write_lines(output, Document(coverage.as_lcov(files)))
        return
    output.write(coverage.merged_data(options.coverage, files))
    if other_files := [name for name in files if not name.endswith(".py")]:
        warn(f"{options.coverage} names Python files only: write .info for {', '.join(other_files)}")


def _report(check: Check, heading: dict[str, str], rows_key: str, outputs: Outputs, options: CheckOptions) -> int:
    """Write the report; return 1 if there are faults."""
    form = Format.json if options.json else options.format
    if form is Format.json:
        content: dict[str, Any] = {**heading, "checks": check.checkers, "silent": not check.has_faults}
        content |= {rows_key: [row.content() for row in check.rows]}
        content |= {"compiled": check.compiling.compilations} if check.compiling else {}
        text: str = tables.as_json(content | check.budgets.content())
    elif form is Format.text:
        text = _text(check)
    else:
        text = _for_service(check, form)
    write_report(outputs, text)
    return int(check.has_faults)


def _text(check: Check) -> str:
    rows = check.rows
    names = list(rows[0].names)
    cells = [[*row.names.values(), row.launches, len(row.faults), len(row.remarks)] for row in rows]
    paragraphs = [tables.table([*names, "launches", "findings", "remarks"], cells, left=len(names))]
    for row in rows:
        for title, diagnostics in (("findings", row.faults), ("remarks", row.remarks)):
            if diagnostics:
                paragraphs.append(f"{row.names[names[0]]}, {title}:\n{as_text(diagnostics)}")
    if check.compiling:
        archs = ", ".join(check.compiling.architectures)
        paragraphs.append(f"{check.compiling.compilations:,} kernels compiled, each for one of {archs}")
    return "\n\n".join([*paragraphs, *check.budgets.text()])


def _for_service(check: Check, form: Format) -> str:
    """Return the findings of all rows, one per place; for GitHub, append them to the summary of the step too."""
    rows = fingerprinted(*check.merged())
    if form is Format.github and (step := os.environ.get("GITHUB_STEP_SUMMARY")):
        with Path(step).open("a", encoding="utf-8") as page:  # other commands of the step may have written to it
            page.write(summary(rows))
    return FORMATS[form.value](rows)
