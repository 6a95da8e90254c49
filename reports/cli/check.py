"""`simtbed check`: variants under the checkers, and what these find, gathered over all launches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer
from simtbed import Device as DeviceRow
from simtbed import Diagnostic, Kernel, Result, launch
from simtbed.errors import render
from simtbed.kernels import Launcher
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer import checkers
from simtbed.sanitizer.suppressions import UNUSED

from .. import tables
from ..profile.annotate import short
from ..selection import find_device, find_problem, find_variants
from ..terminal import progress
from .options import Device, Engine, Input, Json, OnlyFamily, new_app

app = new_app()


@app.command()
def check(
    variant: Annotated[str | None, typer.Argument(metavar="VARIANT", help="See `simtbed list`; all if none.")] = None,
    family: OnlyFamily = None,
    what: Annotated[
        str,
        typer.Option(
            "--check", metavar="NAMES", help="all, or some of bounds,uninitialised,races,barriers,arithmetic."
        ),
    ] = "all",
    engine: Annotated[Engine, typer.Option(help="jit or numpy.")] = Engine.jit,
    device: Device = "H200",
    schedules: Annotated[
        int, typer.Option(metavar="N", min=0, help="Run each launch in N more orders of warps and blocks too.")
    ] = 0,
    source: Input = None,
    json: Json = False,
) -> int:
    """Variants over a whole input under the checkers.

    These look for races, unwritten words, barriers, indices, arithmetic.
    """
    wanted = checkers.parse(what)
    rows, bad = [], False
    for one, variants in find_variants(family, variant, source):
        problem, name = find_problem(one, source)
        for each in variants:
            checker = Checker(engine.value, find_device(device), wanted, tuple(range(1, schedules + 1)))
            with progress(f"{each} on {name}"):
                one.solve(problem, each, checker)
            faults, remarks = checker.findings()
            bad |= bool(faults)
            rows.append((each, name, checker.launches, faults, remarks))
    if json:
        entries = [
            {"variant": v, "input": n, "launches": k, "faults": [_row(d) for d in f], "remarks": [_row(d) for d in r]}
            for v, n, k, f, r in rows
        ]
        print(tables.as_json({"checks": sorted(wanted), "silent": not bad, "variants": entries}))
        return int(bad)
    cells = [[v, n, k, len(f), len(r)] for v, n, k, f, r in rows]
    print(tables.table(["variant", "input", "launches", "findings", "remarks"], cells, left=2))
    for variant_name, _, _, faults, remarks in rows:
        for title, found in (("found", faults), ("remarks", remarks)):
            if found:
                print(f"\n{variant_name}, {title}:")
                print("\n".join(f"{render(d)}\n      {d.count:,} time{'' if d.count == 1 else 's'}" for d in found))
    return int(bad)


@dataclass
class Checker(Launcher):
    """A launcher for `Family.solve` that checks every launch and goes on after a finding.

    schedules: seeds of further orders each launch is run in. faults, remarks: one a place, counted over the launches.
    """

    engine: EngineName
    device: DeviceRow
    check: frozenset[str]
    schedules: tuple[int, ...]
    launches: int = 0
    faults: dict[Any, Diagnostic] = field(default_factory=dict)
    remarks: dict[Any, Diagnostic] = field(default_factory=dict)

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        found: Result | None = None
        for seed in self.schedules or (None,):
            found = launch(
                kernel, engine=self.engine, device=self.device, counters=False, check=self.check, schedule=seed,
                faults="return", **arguments,
            )  # fmt: skip
            _gather(self.faults, found.faults)
            _gather(self.remarks, found.remarks)
        assert found is not None
        self.launches += 1
        return found

    def findings(self) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """Faults, and remarks. A comment that allowed something in one launch may allow nothing in another."""
        useful = {(d.span.file, d.span.line) for d in self.remarks.values() if d.kind != UNUSED}
        useful |= {(d.related.file, d.related.line) for d in self.remarks.values() if d.related}
        remarks = [d for d in self.remarks.values() if d.kind != UNUSED or (d.span.file, d.span.line) not in useful]
        return list(self.faults.values()), remarks


def _gather(known: dict[Any, Diagnostic], new: Iterable[Diagnostic]) -> None:
    for one in new:
        place = (one.kind, one.span, one.related)
        before = known.get(place)
        known[place] = replace(before, count=before.count + one.count) if before else one


def _row(found: Diagnostic) -> dict[str, Any]:
    """A finding as JSON."""
    related = found.related and {"file": short(found.related.file), "line": found.related.line}
    return {
        "kind": found.kind, "message": found.message, "file": short(found.span.file), "line": found.span.line,
        "column": found.span.column, "related": related or None, "notes": list(found.notes), "count": found.count,
    }  # fmt: skip
