"""`simtbed profile`: what a variant costs on a device, in all and line by line."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from simtbed import SimtbedError

from .. import tables
from ..launchers import Runner
from ..profile.annotate import annotated, hottest, short
from ..profile.memory_traffic import Traffic, memory_traffic
from ..selection import find_device, find_problem, find_variant
from ..terminal import progress
from .options import Device, Input, Json, VariantArgument, new_app

app = new_app()


@app.command()
def profile(
    variant: VariantArgument,
    source: Input = None,
    device: Device = "H200",
    sass: Annotated[
        bool, typer.Option("--sass", help="What its compiled kernels execute; needs nvcc and nvdisasm, not a GPU.")
    ] = False,
    json: Json = False,
) -> int:
    """What a variant would cost on a device.

    Totals, efficiencies, and its source line by line. Instructions are the IR's; with --sass they are the
    compiled kernels', estimated from what the emulator counts.
    """
    if sass:
        return _profile_sass(variant, source, device, json)
    family, variant = find_variant(variant)
    problem, name = find_problem(family, source)
    runner = Runner("jit", find_device(device), counting=True, uncounted=family.preparing())
    with progress(f"{variant} on {name}"):
        family.solve(problem, variant, runner)
    counters = runner.counters
    if counters is None:
        raise SimtbedError(f"{variant} launches no kernel on {name}")
    moved = memory_traffic(runner.counted)
    if json:
        lines = [{"file": short(file), "line": line, **row} for (file, line), row in counters.by_line().items()]
        content = {
            "variant": variant,
            "input": name,
            "device": runner.device.name,
            "launches": runner.launches,
            "totals": counters.totals(),
            "derived": counters.derived(),
            "hottest": [
                {"what": h.what, "file": short(h.place[0]), "line": h.place[1], "count": h.count}
                for h in hottest(counters)
            ],
            "traffic": [{**asdict(t), "file": short(t.file), "apart": t.apart} for t in moved],
            "lines": lines,
        }
        print(tables.as_json(content))
        return 0
    launches = f"{runner.launches:,} launch{'' if runner.launches == 1 else 'es'}"
    print(f"{variant} on {name}, {runner.device.name}, {launches}\n")
    print(tables.totals(counters) + "\n")
    print(tables.derived(counters) + "\n")
    print("\n".join(str(line) for line in hottest(counters)) + "\n")
    if moved:
        print(_traffic(moved) + "\n")
    print(annotated(counters))
    return 0


def _traffic(moved: list[Traffic]) -> str:
    """Global memory line by line, as it is and as it would be with one row a lane."""
    headers = ["global memory", "access", "bytes a lane", "requests", "sectors", "a request", "used", "sectors apart"]
    rows = [
        [
            f"{short(t.file)}:{t.line}", t.kind.removeprefix("global_"), t.size, t.requests, t.sectors,
            f"{t.sectors / t.requests:.2f}", f"{100 * t.used:.1f} %", "" if t.apart is None else t.apart,
        ]
        for t in moved
    ]  # fmt: skip
    text = tables.table(headers, rows, left=2)
    if any(t.apart is None for t in moved):
        text += "\nused above 100 %: lanes ask for the same bytes, which no layout changes"
    spread = [t for t in moved if t.apart is not None]
    if not spread:
        return text
    sectors, apart, asked = (
        sum(t.sectors for t in spread),
        sum(t.apart or 0 for t in spread),
        sum(t.bytes for t in spread),
    )
    used = 100 * asked / (apart * spread[0].sector)
    return (
        f"{text}\napart: with a row of its own for each lane (for pairs: pair-major), these accesses would move {apart:,} sectors\n"
        f"instead of {sectors:,}, {apart / sectors:.1f} times as many, of which {used:.1f} % would be used"
    )


def _profile_sass(variant: str, source: Path | None, device: str, json: bool) -> int:
    """Instructions of the compiled kernels, estimated from the emulator's counts."""
    from ..hardware.cases import RecordingLauncher
    from ..hardware.mix import mixes

    (family, variant), row = find_variant(variant), find_device(device)
    problem, name = find_problem(family, source)
    launcher = RecordingLauncher("jit", row)
    with progress(f"{variant} on {name}"):
        family.solve(problem, variant, launcher)
        found = mixes(launcher.kernels, "sm_{}{}".format(*row.compute_capability))
    if json:
        print(
            tables.as_json(
                {"variant": variant, "input": name, "device": row.name, "kernels": [m.content() for m in found]}
            )
        )
        return 0
    print(
        f"{variant} on {name}, {row.name}: instructions of the compiled kernels, estimated from the emulator's counts\n"
    )
    print(tables.table(list(found[0].row()), [list(m.row().values()) for m in found]))
    return 0
