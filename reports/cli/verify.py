"""`simtbed verify`: variants on engines against their oracles."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from simtbed import Device as DeviceRow
from simtbed import FaultError, Run, SimtbedError, devices, profiling
from simtbed.errors import render
from simtbed.kernels import Family
from simtbed.profiler.run import merge_findings
from simtbed.runtime.registry import EngineName, row_of
from simtbed.testing.tolerance import Tolerance

from .. import tables
from ..launchers import ENGINES, Runner, require_engine, why_unavailable
from ..selection import find_problem, find_variants
from ..targets.budgets import Budgets
from ..targets.findings import as_row
from ..targets.running import require_launches, run_target
from ..targets.target import Shipped, find_target, is_program
from ..targets.verifier import Verifier
from ..terminal import progress
from .budgets import Held, is_among, is_whole
from .options import (
    Budget,
    Device,
    Engine,
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
)
from .output import report_on
from .parameters import Option, command

Obstacles = Mapping[EngineName, str | None]
"""Engines, and why those that cannot run here cannot."""


@command
def verify(
    target: TargetOrAll = None,
    arguments: TargetArguments = (),
    family: OnlyFamily = None,
    variant: Annotated[str | None, Option(help="Only this variant.")] = None,
    engine: Annotated[Engine | None, Option(help="Only this engine, which then must be able to run.")] = None,
    kernel: Kernels = "*",
    launch: Number = None,
    device: Device = "H200",
    rtol: Annotated[float, Option(min=0, max=1e30, help="Relative distance allowed between floats.")] = 0.0,
    atol: Annotated[float, Option(min=0, max=1e300, help="Absolute distance allowed between floats.")] = 0.0,
    ulp: Annotated[int, Option(help="Units in the last place allowed between floats.", min=0, max=1 << 62)] = 0,
    budget: Budget = None,
    soft: Soft = 0.0,
    hard: Hard = 0.0,
    source: Input = None,
    output: Report = None,
    json: Json = False,
) -> int:
    """A target on several engines, or every shipped variant against its oracle.

    Every launch of a program is made on the jit engine, whose answer the program gets, and on each other engine that
    can run here. They agree to the bit, or within a tolerance that is stated. Shipped variants are held to their
    oracles, each with the tolerance of its family. With --budget, what an emulator counts is held to baselines too.

    \b
    simtbed verify saxpy.py --n 1000
    simtbed verify --engine numpy --ulp 1 file.py:function
    simtbed verify --family sfs
    """
    row, tolerance = devices.find(device), Tolerance(rtol, atol, ulp)
    held = Held(Budgets.asked(budget, soft, hard, compiled=False, update=False))
    if engine is not None:
        require_engine(engine.value)
    wanted: tuple[EngineName, ...] = ENGINES if engine is None else (engine.value,)
    obstacles = {name: why_unavailable(name) for name in wanted}
    if target is not None and is_program(target):
        found = find_target(target, arguments, source)
        others = tuple(name for name in wanted if not obstacles[name] and (name != "jit" or engine))
        with held.reports({"--output": output}, found.files, device) as outputs:
            ran = run_target(found, partial(Verifier, engines=others, tolerance=tolerance, device=row))
            require_launches(ran, found)
            run = ran.run.select(kernel, launch)
            held.add(found, run)
            held.end(outputs, lambda name: is_whole(kernel, launch) and name == str(found))
            text, bad = _program(run, obstacles, tolerance, json, held)
            report_on(found, outputs.get("--output"), text)
        return ran.code or int(bad or bool(held.faults))
    if (kernel, launch, tolerance) != ("*", None, Tolerance()):
        raise SimtbedError(
            "--kernel, --launch and tolerances are for programs: a variant is held to its oracle as a whole"
        )
    if budget is not None and not _counting(obstacles):
        raise SimtbedError("nothing is counted on a GPU: --budget needs an emulator, --engine jit or numpy")
    chosen = find_variants(family, target or variant, source)
    targets = [Shipped(one, each, source) for one, variants in chosen for each in variants]
    with held.reports({"--output": output}, targets[0].files, device) as outputs:
        rows = [one for each in chosen for one in _shipped(*each, source, obstacles, row, held)]
        held.end(outputs, lambda name: is_among(name, targets, (target, family, variant) == (None, None, None)))
        bad = any(one["result"] in ("differs", "faults") for one in rows)
        content = {"agrees": not bad, "results": rows, **held.content()}
        text = tables.as_json(content) if json else "\n\n".join([_verify_table(rows), *held.text()])
        report_on(targets[0], outputs.get("--output"), text)
    return int(bad or bool(held.faults))


def _counting(obstacles: Obstacles) -> EngineName | None:
    """The first emulator that runs: its launches are held to budgets, as others count the same."""
    return next((name for name, reason in obstacles.items() if not reason and row_of(name).emulates), None)


def _shipped(
    family: Family[Any],
    variants: list[str],
    source: Path | None,
    obstacles: Obstacles,
    device: DeviceRow,
    held: Held,
) -> Iterator[dict[str, Any]]:
    """A row for each variant and engine."""
    problem, name = find_problem(family, source)
    counting = _counting(obstacles) if held.budgets else None
    with progress(f"the oracle of {family.name} on {name}"):
        expected = family.oracle(problem)
    for variant in variants:
        for engine, reason in obstacles.items():
            row: dict[str, Any] = {"family": family.name, "variant": variant, "engine": engine, "input": name}
            if reason:
                yield {**row, "result": "not run", "reason": reason}
                continue
            solved = partial(_verified, family, variant, Runner(engine, device), problem, expected)
            with progress(f"{variant} on {name}, {engine}"):
                if engine == counting:
                    with profiling() as run:
                        done = solved()
                    held.add(Shipped(family, variant, source), run)
                else:
                    done = solved()
            yield {**row, **done}


def _program(run: Run, obstacles: Obstacles, tolerance: Tolerance, json: bool, held: Held) -> tuple[str, bool]:
    """The report on the launches of a program, and whether any disagree."""
    wrong = {
        name: merge_findings(d for one in made for d in one.disagreements) for name, made in run.by_kernel().items()
    }
    missing = {name: reason for name, reason in obstacles.items() if reason}
    engines = list(dict.fromkeys(("jit", *(name for name in obstacles if name not in missing))))
    made = {name: len(launches) for name, launches in run.by_kernel().items()}
    bad = any(wrong.values())
    if json:
        kernels = [
            {"kernel": name, "launches": made[name], "disagreements": [as_row(d) for d in wrong[name]]} for name in made
        ]
        content = {"target": run.target, "agrees": not bad, "engines": engines, "not_run": missing}
        return tables.as_json({**content, "tolerance": str(tolerance), "kernels": kernels, **held.content()}), bad
    cells = [[name, made[name], "DIFFERS" if wrong[name] else "agrees"] for name in made]
    title = f"{run.target}: {' and '.join(engines)}, {tolerance}"
    parts = [title, tables.table(["kernel", "launches", "result"], cells)]
    parts += [f"{name}:\n" + "\n".join(render(d) for d in found) for name, found in wrong.items() if found]
    parts += ["\n".join(f"{name}: not run: {reason}" for name, reason in missing.items())] if missing else []
    return "\n\n".join([*parts, *held.text()]), bad


def _verified(family: Family[Any], variant: str, runner: Runner, problem: Any, expected: Any) -> dict[str, Any]:
    """Result, comparison and times of one run; `reason` holds the faults, if there are any."""
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


def _verify_table(rows: list[dict[str, Any]]) -> str:
    headers = [
        "variant",
        "engine",
        "input",
        "result",
        "compared",
        "differing",
        "worst",
        "tolerance",
        "seconds",
        "kernel ms",
    ]
    cells, notes = [], {}
    for row in rows:
        cells.append([
            row["variant"], row["engine"], row["input"], row["result"].upper() if row["result"] in ("differs", "faults") else row["result"],
            row.get("compared", ""), row.get("differing", ""),
            f"{row['worst']:.2g} {row['unit']}" if "worst" in row else "",
            f"{row['tolerance']:.0e}" if "tolerance" in row else "",
            f"{row['seconds']:.2f}" if "seconds" in row else "",
            f"{row['kernel_milliseconds']:.3f}" if row.get("kernel_milliseconds") else "",
        ])  # fmt: skip
        if "reason" in row:
            key = row["engine"] if row["result"] == "not run" else f"{row['variant']} on {row['engine']}"
            notes[key] = f"{key}: {row['result']}: {row['reason']}"
    return "\n".join([tables.table(headers, cells, left=4), *notes.values()])
