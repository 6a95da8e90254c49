"""`simtbed verify`: differential testing of engines, and of shipped variants against their oracles."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

from simtbed import Diagnostic, FaultError, Run, SimtbedError, devices, profiling
from simtbed.errors import render
from simtbed.escaping import printable
from simtbed.kernels import Family
from simtbed.profiler.run import merge_findings
from simtbed.runtime.registry import EngineName, row_of
from simtbed.runtime.tolerance import Tolerance
from simtbed.testing.comparing import REMARKS, TARGET, Comparison

from .. import tables
from ..launchers import ENGINES, Runner, require_engine, why_unavailable
from ..selection import find_problem, find_variants
from ..targets.findings import as_row
from ..targets.running import require_launches, run_target
from ..targets.target import Shipped, find_target, is_program
from ..targets.verifier import Verifier
from ..terminal import progress
from .budgets import BudgetCheck, is_among
from .options import (
    BudgetOptions,
    Device,
    Engine,
    Input,
    Json,
    OnlyFamily,
    Report,
    SelectionOptions,
    TargetArguments,
    TargetOrAll,
)
from .output import program_output, write_report
from .parameters import Option, command

Obstacles = Mapping[EngineName, str | None]
"""Engines, each with the reason why it cannot run on this machine, or None."""


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """The options of `simtbed verify`."""

    family: OnlyFamily = None
    variant: Annotated[str | None, Option(help="Select one variant.")] = None
    engine: Annotated[Engine | None, Option(help="Select one engine; fail if it cannot run.")] = None
    selection: SelectionOptions
    device: Device = "H200"
    rtol: Annotated[float, Option(min=0, max=1e30, help="Relative tolerance of floats.")] = 0.0
    atol: Annotated[float, Option(min=0, max=1e300, help="Absolute tolerance of floats.")] = 0.0
    ulp: Annotated[int, Option(help="Tolerance of floats in units in the last place.", min=0, max=1 << 62)] = 0
    any_order: Annotated[
        list[str] | None, Option(help="Compare the elements of this array in any order.", metavar="ARRAY")
    ] = None
    budget: BudgetOptions
    input: Input = None
    output: Report = None
    json: Json = False

    @property
    def comparison(self) -> Comparison:
        return Comparison(self.tolerance, tuple(self.any_order or ()))

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance(self.rtol, self.atol, self.ulp)


@command
def verify(target: TargetOrAll = None, arguments: TargetArguments = (), *, options: VerifyOptions) -> int:
    """Compare engines on a target, or all shipped variants with their oracles.

    Every launch of a program runs on the jit engine, whose answer the program receives, and on each other available
    engine. The answers are compared bit by bit, or within the given tolerance. The answers of shipped variants are
    compared with their oracles, within the tolerance of the family. With --budget, the counters of an emulator are
    compared with baselines too.

    \b
    simtbed verify saxpy.py --n 1000
    simtbed verify --engine numpy --ulp 1 file.py:function
    simtbed verify --family sfs
    """
    devices.find(options.device)
    budgets = BudgetCheck.from_options(options.budget)
    if options.engine is not None:
        require_engine(options.engine.value)
    engines: tuple[EngineName, ...] = ENGINES if options.engine is None else (options.engine.value,)
    obstacles = {name: why_unavailable(name) for name in engines}
    if target is not None and is_program(target):
        return _verify_program(target, arguments, obstacles, budgets, options)
    return _verify_variants(target or options.variant, obstacles, budgets, options, complete=target is None)


def _verify_program(
    name: str, arguments: Sequence[str], obstacles: Obstacles, budgets: BudgetCheck, options: VerifyOptions
) -> int:
    selection, tolerance = options.selection, options.tolerance
    target = find_target(name, arguments, options.input, selection.emulate)
    other_engines = tuple(
        name for name, reason in obstacles.items() if not reason and (name != "jit" or options.engine)
    )
    with budgets.report_files({"--output": options.output}, target.files, options.device) as outputs:
        make = partial(
            Verifier, engines=other_engines, comparison=options.comparison, device=devices.find(options.device)
        )
        completed = run_target(target, make, output=program_output(outputs))
        require_launches(completed, target)
        run = completed.run.select(selection.kernel, selection.launch)
        _require_arrays(run, options.any_order or ())
        budgets.add(target, run)
        budgets.finish(outputs, lambda name: selection.is_complete and name == str(target))
        text, differs = _program_report(run, obstacles, tolerance, options.json, budgets)
        write_report(outputs, text)
    return completed.code or int(differs or bool(budgets.faults))


def _require_arrays(run: Run, names: Sequence[str]) -> None:
    """Raise SimtbedError for a name without an array in a launch."""
    arrays = {one.name: None for launch in run.launches for one in launch.arguments if one.shape is not None}
    if unknown := [name for name in names if name not in arrays]:
        raise SimtbedError(
            f"--any-order {printable(unknown[0])}: no launch has this array; there are {', '.join(arrays)}"
        )


def _verify_variants(
    variant: str | None, obstacles: Obstacles, budgets: BudgetCheck, options: VerifyOptions, complete: bool
) -> int:
    """Verify the variants of all families, of one family, or one variant. complete: whether no TARGET is given."""
    if not options.selection.is_complete or options.comparison != Comparison():
        raise SimtbedError(
            "--kernel, --launch and tolerances need a program: the answer of a variant is compared as a whole"
        )
    if options.budget.budget is not None and not _counting_engine(obstacles):
        raise SimtbedError("--budget needs an emulator, --engine jit or numpy: a GPU has no counters")
    families = find_variants(options.family, variant, options.input)
    targets = [Shipped(family, name, options.input) for family, names in families for name in names]
    complete = complete and (options.family, options.variant) == (None, None)
    with budgets.report_files({"--output": options.output}, targets[0].files, options.device) as outputs:
        rows = [row for family, names in families for row in _variant_rows(family, names, obstacles, budgets, options)]
        budgets.finish(outputs, lambda name: is_among(name, targets, complete))
        wrong = any(row["result"] in ("differs", "faults") for row in rows)
        content = {"agrees": not wrong, "results": rows, **budgets.content()}
        text = tables.as_json(content) if options.json else "\n\n".join([_variant_table(rows), *budgets.text()])
        write_report(outputs, text)
    return int(wrong or bool(budgets.faults))


def _counting_engine(obstacles: Obstacles) -> EngineName | None:
    """Return the first available emulator. All emulators count the same."""
    return next((name for name, reason in obstacles.items() if not reason and row_of(name).complete), None)


def _variant_rows(
    family: Family[Any], variants: list[str], obstacles: Obstacles, budgets: BudgetCheck, options: VerifyOptions
) -> Iterator[dict[str, Any]]:
    """Yield a row for each variant and engine."""
    device = devices.find(options.device)
    problem, name = find_problem(family, options.input)
    counting = _counting_engine(obstacles) if budgets.budgets else None
    with progress(f"the oracle of {family.name} on {name}"):
        expected = family.oracle(problem)
    for variant in variants:
        for engine, reason in obstacles.items():
            row: dict[str, Any] = {"family": family.name, "variant": variant, "engine": engine, "input": name}
            if reason:
                yield {**row, "result": "not run", "reason": reason}
                continue
            solve = partial(_solve, family, variant, Runner(engine, device), problem, expected)
            with progress(f"{variant} on {name}, {engine}"):
                if engine == counting:
                    with profiling() as run:
                        row |= solve()
                    budgets.add(Shipped(family, variant, options.input), run)
                else:
                    row |= solve()
            yield row


def _program_report(
    run: Run, obstacles: Obstacles, tolerance: Tolerance, json: bool, budgets: BudgetCheck
) -> tuple[str, bool]:
    """Return the report on the launches of a program, and whether any answers differ."""
    groups = run.by_kernel()
    differences = {
        name: merge_findings(
            _with_target(diagnostic, number, run.target)
            for number, launch in enumerate(launches)
            for diagnostic in launch.disagreements
        )
        for name, launches in groups.items()
    }
    missing = {name: reason for name, reason in obstacles.items() if reason}
    engines = list(dict.fromkeys(("jit", *(name for name in obstacles if name not in missing))))
    launches = {name: len(group) for name, group in groups.items()}
    differs = any(one.kind not in REMARKS for found in differences.values() for one in found)
    if json:
        kernels = [
            {"kernel": name, "launches": count, "disagreements": [as_row(d) for d in differences[name]]}
            for name, count in launches.items()
        ]
        content = {"target": run.target, "agrees": not differs, "engines": engines, "not_run": missing}
        content |= {"tolerance": str(tolerance), "kernels": kernels, **budgets.content()}
        return tables.as_json(content), differs
    cells = [[name, count, verdict(differences[name])] for name, count in launches.items()]
    title = f"{run.target}: {' and '.join(engines)}, {tolerance}"
    paragraphs = [title, tables.table(["kernel", "launches", "result"], cells)]
    paragraphs += [f"{name}:\n" + "\n".join(map(render, found)) for name, found in differences.items() if found]
    if missing:
        paragraphs.append("\n".join(f"{name}: not run: {reason}" for name, reason in missing.items()))
    return "\n\n".join([*paragraphs, *budgets.text()]), differs


def _with_target(diagnostic: Diagnostic, number: int, target: str) -> Diagnostic:
    """Return a disagreement whose command for the debugger names the launch and the program."""
    notes = (
        note.replace(" --block ", f" --launch {number} --block ").removesuffix(TARGET) + target
        if note.startswith("to stop there: ")
        else note
        for note in diagnostic.notes
    )
    return replace(diagnostic, notes=tuple(notes))


def verdict(findings: Sequence[Diagnostic]) -> str:
    """Return the result of a kernel for the table."""
    kinds = {finding.kind for finding in findings}
    return "DIFFERS" if "disagreement" in kinds else "UNWRITTEN" if kinds - {*REMARKS} else "agrees"


def _solve(family: Family[Any], variant: str, runner: Runner, problem: Any, expected: Any) -> dict[str, Any]:
    """Return result, comparison and times of a variant; `reason` has the text of its faults."""
    start = time.perf_counter()
    try:
        answer = family.solve(problem, variant, runner)
    except FaultError as error:
        return {"result": "faults", "reason": str(error)}
    seconds = time.perf_counter() - start
    agreement = family.compare(answer, expected)
    return {
        "result": "agrees" if agreement.agrees else "differs",
        **asdict(agreement),
        "seconds": seconds,
        "kernel_milliseconds": runner.milliseconds,
    }


def _variant_table(rows: list[dict[str, Any]]) -> str:
    headers = [
        "variant", "engine", "input", "result", "compared", "differing", "worst", "tolerance", "seconds", "kernel ms",
    ]  # fmt: skip
    cells, notes = [], {}
    for row in rows:
        result = row["result"]
        cells.append([
            row["variant"], row["engine"], row["input"], result.upper() if result in ("differs", "faults") else result,
            row.get("compared", ""), row.get("differing", ""),
            f"{row['worst']:.2g} {row['unit']}" if "worst" in row else "",
            f"{row['tolerance']:.0e}" if "tolerance" in row else "",
            f"{row['seconds']:.2f}" if "seconds" in row else "",
            f"{row['kernel_milliseconds']:.3f}" if row.get("kernel_milliseconds") else "",
        ])  # fmt: skip
        if "reason" in row:
            key = row["engine"] if result == "not run" else f"{row['variant']} on {row['engine']}"
            notes[key] = f"{key}: {result}: {row['reason']}"
    return "\n".join([tables.table(headers, cells, left=4), *notes.values()])
