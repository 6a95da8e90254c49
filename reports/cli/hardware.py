"""`simtbed hardware`: the emulator's counters beside those that a GPU's record holds."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated

import click
from simtbed import devices
from simtbed.model.time import CHAIN, INSTRUCTIONS, SHARPNESS

from .. import tables
from ..hardware import compare as comparison
from ..hardware import record, text
from ..hardware.cases import VARIANTS
from ..terminal import progress
from .options import Cases, Json, Output
from .output import reports, write_lines
from .parameters import Argument, Option, command


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
    device: Annotated[str, Option(metavar="NAME", help="The row of this GPU, whose other figures are kept.")] = "H200",
    output: Output = None,
) -> int:
    """Measure this GPU with microbenchmarks, and write its row for --device.

    Latencies, widths and intervals of the time model: a minute on a GPU. 3 where there is none.

    \b
    simtbed hardware measure --device H200 -o h200.toml
    """
    from ..hardware.timing import Runner, device_row

    row = devices.find(device)
    with reports({"--output": output}, [], device) as outputs, progress("microbenchmarks"):
        text = device_row(row, Runner(), date.today().isoformat()).rstrip("\n")
        if (file := outputs.get("--output")) is not None:
            write_lines(file, text)
        else:
            print(text)
    return 0


@command
def times(
    target: Annotated[Path, Option(("--output", "-o"), metavar="FILE", help="The record of times.")],
    device: Annotated[str, Option(metavar="NAME", help="The row of this GPU.")] = "H200",
    only: Annotated[str, Option(metavar="PATTERN", help="Launches that fit, such as 'matmul *'.")] = "*",
    counters: Annotated[bool, Option(("--counters",), help="Hit rates and bytes too, by Nsight Compute.")] = False,
) -> int:
    """Time the launches that the model is held to, warm and cold, on this GPU.

    Medians of 15 warm launches and of 7 with an emptied L2; clocks are noted before and after. A few minutes. 3 where there is
    no GPU.

    \b
    simtbed hardware times -o times_h200.json
    """
    from ..hardware import nsight, timing, traffic
    from ..hardware.timed import every

    row, chosen = devices.find(device), timing.chosen(every(), only)
    ncu = nsight.find_ncu() if counters else None
    with progress("times of launches") as done:
        record = timing.take(chosen, row, done=done)
        timing.save(record, target)  # whatever becomes of the counters
        if ncu is not None:
            done("Nsight Compute")
            for name, found in traffic.take(ncu, chosen, only).items():
                record["launches"][name] |= found
            timing.save(record, target)
    return 0


@command
def errors(
    record: Annotated[Path, Argument(metavar="TIMES", help="A record of `simtbed hardware times`.")],
    device: Annotated[str, Option(metavar="NAME", help="The GPU's row, or the TOML file of `measure`.")] = "H200",
    only: Annotated[str, Option(metavar="PATTERN", help="Launches that fit.")] = "*",
    cold: Annotated[bool, Option(("--cold",), help="The times with empty caches.")] = False,
    json: Json = False,
) -> int:
    """The time model beside measured times, on any machine.

    Constants are fitted without the kernel that they are tried on. A roofline stands beside the model.

    \b
    simtbed hardware errors times_h200.json
    """
    from ..hardware import errors as of_times
    from ..hardware import timing
    from ..hardware.timed import every
    from ..hardware.traffic import within

    known, row, chosen = of_times.load(record), devices.find(device), timing.chosen(every(), only)
    with progress("the model") as done:
        rows = of_times.compare(chosen, known, row, cold, done)
    kept_back, constants = of_times.left_out(rows), of_times.fitted(rows)
    figures = {
        "model, kernel left out": of_times.Errors.of((time, one.measured_us) for one, time in kept_back),
        "model, as it is": of_times.Errors.of(
            (one.time(SHARPNESS, CHAIN, INSTRUCTIONS), one.measured_us) for one in rows
        ),
        "roofline": of_times.Errors.of((one.roofline, one.measured_us) for one in rows),
    }
    lost = of_times.lost_by_choices(kept_back)
    near = within((one.model, one.measured) for one in rows if one.measured is not None)
    if json:
        print(tables.as_json({
            "device": row.name, "launches": len(rows), "errors": {name: asdict(one) for name, one in figures.items()},
            "constants": dict(zip(("sharpness", "latency", "issue"), constants, strict=True)), "lost": dict(lost), "within": near,
            "rows": [{"name": one.name, "measured_us": one.measured_us, "time_us": time} for one, time in kept_back],
        }))  # fmt: skip
        return 0
    shown = [
        [one.name, f"{one.measured_us:,.2f}", f"{time:,.2f}", f"{100 * (time / one.measured_us - 1):+.1f} %", f"{one.roofline:,.2f}"]
        for one, time in kept_back
    ]  # fmt: skip
    print(tables.table(["launch", "measured us", "model", "error", "roofline"], shown))
    summary = [[name, *(f"{100 * n:.1f} %" for n in (one.mean, one.p90, one.worst))] for name, one in figures.items()]
    print("\n" + tables.table([f"{len(rows)} launches", "mean", "p90", "worst"], summary))
    if lost:
        shares = [share for _, share in lost]
        print(f"\ntime lost by the block that is named, {len(lost)} sweeps: {100 * sum(shares) / len(shares):.1f} % on average, "
              f"{100 * max(shares):.1f} % at worst")  # fmt: skip
    if near:
        shown_near = ", ".join(f"{100 * share:.0f} %" for share in near.values())
        print(f"\nlaunches within 4 points of L1's hits, 5 of L2's, 10 % of the bytes of device memory: {shown_near}")
    print(f"\nfitted to all: sharpness {constants[0]:g}, chain {constants[1]:g}, instructions {constants[2]:g}")
    return 0


@click.group()
def hardware() -> None:
    """The emulator beside hardware: counters, times, and the figures of a GPU.

    \b
    simtbed hardware compare
    simtbed hardware measure -o mine.toml
    """


for one in (compare, measure, times, errors):
    hardware.add_command(one)
