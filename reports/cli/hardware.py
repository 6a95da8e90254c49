"""`simtbed hardware`: the emulator's counters beside those that a GPU's record holds."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated

import click
from simtbed import SimtbedError, devices
from simtbed.kernels.files import write

from .. import tables
from ..hardware import compare as comparison
from ..hardware import record, text
from ..hardware.cases import VARIANTS, results_of
from ..terminal import progress
from .options import Cases, Json
from .parameters import Argument, Option, command

Launches = Annotated[
    list[str] | None,
    Option(("--cases",), metavar="MODULE:FUNCTION", help="Launches; default: the validated ones, in a checkout."),
]


@command
def compare(
    device: Annotated[str, Option(metavar="NAME", help="A device whose record is kept, or a record file.")] = "H200",
    cases: Cases = None,
    markdown: Annotated[bool, Option(("--markdown",), help="The full report, as Markdown.")] = False,
    json: Json = False,
) -> int:
    """The emulator beside a record, on any machine; 1 where a figure falls short and no reason is known.

    \b
    simtbed hardware compare
    simtbed hardware compare --markdown --device h200.json
    """
    source = Path(device) if device.endswith(".json") else record.path_of(devices.find(device).name)
    with progress("the emulator"):
        found = comparison.compare(record.load(source), cases or [VARIANTS])
    print(tables.as_json(text.content(found)) if json else text.markdown(found) if markdown else text.table(found))
    return int(not found.holds)


@command
def measure(
    target: Annotated[
        Path, Option(("--output", "-o"), metavar="FILE.toml", help="The row; all figures lie in FILE.json.")
    ],
    device: Annotated[str, Option(metavar="NAME", help="The row of this GPU, whose other figures are kept.")] = "H200",
) -> int:
    """Measure this GPU with microbenchmarks, and write its row for --device.

    Latencies, widths and rates of the time model: about two minutes on a GPU. Both files are written after each part; a part
    that fails is named and ends no other. 3 where there is no GPU.

    \b
    simtbed hardware measure --device H200 -o h200.toml
    """
    from ..hardware.timing import Runner, device_row

    row, figures = devices.find(device), target.with_suffix(".json")
    if target.suffix != ".toml":
        raise SimtbedError(f"--output: expected the name of a .toml file, got {target}")
    with progress("microbenchmarks") as done:

        def kept(text: str, found: str) -> None:
            write(target, [text])
            write(figures, [found])
            done("figures written")

        device_row(row, Runner(), date.today().isoformat(), kept)
    return 0


@command
def times(
    target: Annotated[Path, Option(("--output", "-o"), metavar="FILE", help="The record of times.")],
    device: Annotated[str, Option(metavar="NAME", help="The row of this GPU.")] = "H200",
    only: Annotated[str, Option(metavar="PATTERN", help="Launches that fit, such as 'matmul *'.")] = "*",
    counters: Annotated[bool, Option(("--counters",), help="Hit rates and bytes too, by Nsight Compute.")] = False,
    cases: Launches = None,
) -> int:
    """Time the launches that the model is held to, warm and cold, on this GPU.

    Medians of 15 warm launches and of 7 with an emptied L2, where the answer is right; clocks are noted before and after. About
    four minutes, and as much again with --counters. The file is written after each launch, and what it has of the same kernels
    is not taken again. 1 where a launch fails, 3 where there is no GPU.

    \b
    simtbed hardware times -o times_h200.json
    """
    from ..hardware import errors as of_times
    from ..hardware import launches, nsight, timing, traffic

    names = cases or [launches.TIMED]
    row, chosen = devices.find(device), launches.matching(results_of(names), only)
    known = of_times.load(target) if target.exists() else None
    if known and known.get("device") != row.name:
        raise SimtbedError(f"{target}: expected times of {row.name}, got those of {known.get('device')}")
    ncu = nsight.find_ncu() if counters else None
    with progress("times of launches") as done:
        record = timing.take(chosen, row, lambda record: timing.save(record, target), done, known)
        if ncu is not None:
            done("Nsight Compute")
            found = record["launches"]
            waiting = [one.name for one in chosen if "cold" not in found.get(one.name, {"cold": {}})]
            for counted in traffic.take(ncu, waiting, names):
                for name, figures in counted.items():
                    found[name] |= figures
                timing.save(record, target)
    for name, why in record["failed"].items():
        print(f"{name}: {why}", file=sys.stderr)
    return int(bool(record["failed"]))


@command
def accesses(
    target: Annotated[Path, Option(("--output", "-o"), metavar="FILE", help="CSV, as `simtbed access` reads it.")],
    count: Annotated[int, Option(metavar="N", min=1, max=1_000_000, help="So many accesses.")] = 2000,
    seed: Annotated[int, Option(metavar="N", min=0, max=2**32 - 1, help="What they are drawn from.")] = 2026,
) -> int:
    """Count single accesses of a warp on this GPU, by Nsight Compute: a launch each, of every kind and width.

    About three minutes; the file is written some hundred accesses at a time. 3 where there is no GPU.

    \b
    simtbed hardware accesses -o accesses_h200.csv
    simtbed access accesses_h200.csv --compare
    """
    from simtbed.engines.cuda.engine import describe

    from ..hardware import nsight, single_accesses

    ncu, rows = nsight.find_ncu(), single_accesses.random_accesses(count, seed)
    with progress("single accesses") as done:
        done("nvcc")
        single_accesses.build(rows, describe()["arch"])
        done("Nsight Compute")
        single_accesses.take(ncu, rows, lambda found: single_accesses.save(found, target))
    return 0


@command
def errors(
    record: Annotated[Path, Argument(metavar="TIMES", help="A record of `simtbed hardware times`.")],
    device: Annotated[str, Option(metavar="NAME", help="The GPU's row, or the TOML file of `measure`.")] = "H200",
    only: Annotated[str, Option(metavar="PATTERN", help="Launches that fit.")] = "*",
    cold: Annotated[bool, Option(("--cold",), help="The times with empty caches.")] = False,
    cases: Launches = None,
    json: Json = False,
) -> int:
    """The time model beside measured times, on any machine.

    Constants are fitted without the kernel that they are tried on. A roofline stands beside the model.

    \b
    simtbed hardware errors tests/validation/records/times/h200.json
    """
    from ..hardware import errors as of_times
    from ..hardware import launches
    from ..hardware.traffic import within

    known, row = of_times.load(record), devices.find(device)
    chosen = launches.matching(results_of(cases or [launches.TIMED]), only)
    with progress("the model") as done:
        rows = of_times.compare(chosen, known, row, cold, done)
    kept_back, constants = of_times.left_out(rows), of_times.fitted(rows)
    figures = {
        "model, kernel left out": of_times.Errors.from_pairs((time, one.measured_us) for one, time in kept_back),
        "model, as it is": of_times.Errors.from_pairs((one.prediction.time_us, one.measured_us) for one in rows),
        "model, source counted": of_times.Errors.from_pairs((one.source_us, one.measured_us) for one in rows),
        "roofline": of_times.Errors.from_pairs((one.roofline, one.measured_us) for one in rows),
    }
    lost, apart = of_times.lost_by_choices(kept_back), of_times.residuals(kept_back)
    near = within((one.model, one.measured) for one in rows if one.measured is not None)
    if json:
        print(tables.as_json({
            "device": row.name, "launches": len(rows), "errors": {name: asdict(one) for name, one in figures.items()},
            "constants": dict(zip(("loaded", "factor"), constants, strict=True)), "lost": dict(lost), "within": near,
            "residuals": apart, "covered": of_times.covered(kept_back),
            "rows": [{
                "name": one.name, "measured_us": one.measured_us, "time_us": time, "source_us": one.source_us,
                "roofline_us": one.roofline, "bound": one.prediction.bound, "model": one.model, "measured": one.measured,
            } for one, time in kept_back],
        }))  # fmt: skip
        return 0
    shown = [
        [one.name, f"{one.measured_us:,.2f}", f"{time:,.2f}", f"{100 * (time / one.measured_us - 1):+.1f} %", one.prediction.bound,
         f"{one.source_us:,.2f}", f"{one.roofline:,.2f}"]
        for one, time in kept_back
    ]  # fmt: skip
    print(tables.table(["launch", "measured us", "model", "error", "bound", "source", "roofline"], shown))
    summary = [[name, *(f"{100 * n:.1f} %" for n in (one.mean, one.p90, one.worst))] for name, one in figures.items()]
    print("\n" + tables.table([f"{len(rows)} launches", "mean", "p90", "worst"], summary))
    if lost:
        shares = [share for _, share in lost]
        print(f"\ntime lost by the block that is named, {len(lost)} sweeps: {100 * sum(shares) / len(shares):.1f} % on average, "
              f"{100 * max(shares):.1f} % at worst")  # fmt: skip
    if near:
        shown_near = ", ".join(f"{100 * share:.0f} %" for share in near.values())
        print(f"\nlaunches within 4 points of L1's hits, 5 of L2's, 10 % of the bytes of device memory: {shown_near}")
    for bound, (low, high, count) in apart.items():
        print(f"bound by {bound}: nine of ten of {count} times are {low:.2f} to {high:.2f} times what the model says")
    print(f"\nmeasured times in the interval that other kernels give: {100 * of_times.covered(kept_back):.0f} %")
    print(f"\nfitted to all: memory that is busy answers {constants[0]:g} later, cycles times {constants[1]:g}")
    return 0


@click.group()
def hardware() -> None:
    """The emulator beside hardware: counters, times, and the figures of a GPU.

    \b
    simtbed hardware compare
    simtbed hardware measure -o mine.toml
    """


for one in (compare, measure, times, accesses, errors):
    hardware.add_command(one)
