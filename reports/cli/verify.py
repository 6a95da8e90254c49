"""`simtbed verify`: variants on engines against their oracles."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer
from simtbed import FaultError
from simtbed.kernels import Family
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import ENGINES, Runner, require_engine, why_unavailable
from ..selection import find_problem, find_variants
from ..terminal import progress
from .options import Engine, Input, Json, OnlyFamily, new_app

app = new_app()


@app.command()
def verify(
    family: OnlyFamily = None,
    variant: Annotated[str | None, typer.Option(help="Only this variant.")] = None,
    engine: Annotated[Engine | None, typer.Option(help="Only this engine, which then must be able to run.")] = None,
    source: Input = None,
    json: Json = False,
) -> int:
    """Every variant on every engine, against its oracle."""
    chosen = find_variants(family, variant, source)
    if engine is not None:
        require_engine(engine.value)
    names: tuple[EngineName, ...] = ENGINES if engine is None else (engine.value,)
    obstacles = {name: why_unavailable(name) for name in names}
    rows: list[dict[str, Any]] = []
    for one, variants in chosen:
        problem, name = find_problem(one, source)
        with progress(f"the oracle of {one.name} on {name}"):
            expected = one.oracle(problem)
        for each in variants:
            for engine_name, reason in obstacles.items():
                row: dict[str, Any] = {"family": one.name, "variant": each, "engine": engine_name, "input": name}
                if reason:
                    rows.append({**row, "result": "not run", "reason": reason})
                    continue
                with progress(f"{each} on {name}, {engine_name}"):
                    rows.append({**row, **_verified(one, each, engine_name, problem, expected)})
    bad = any(row["result"] in ("differs", "faults") for row in rows)
    if json:
        print(tables.as_json({"agrees": not bad, "results": rows}))
        return int(bad)
    print(_verify_table(rows))
    return int(bad)


def _verified(family: Family[Any], variant: str, engine: EngineName, problem: Any, expected: Any) -> dict[str, Any]:
    """Result, comparison and times of one run; `reason` holds the faults, if there are any."""
    runner, start = Runner(engine), time.perf_counter()
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
