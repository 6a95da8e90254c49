"""`simtbed hardware`: comparison of the emulator and the time model with a GPU, and measurements on a GPU."""

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import click
from simtbed import SimtbedError, devices
from simtbed.kernels.files import write

from .. import tables
from ..hardware import compare as comparison
from ..hardware import record, text
from ..hardware.cases import VARIANTS, results_of
from ..printing import print_message, print_text
from ..terminal import progress
from .options import Cases, Json
from .parameters import Argument, Option, command

Launches = Annotated[
    list[str] | None,
    Option(
        ("--cases",), metavar="MODULE:FUNCTION", help="Launches to run; default: the validation launches of a checkout."
    ),
]


@command
def compare(
    device: Annotated[str, Option(metavar="NAME", help="A device with a record, or a record file (.json).")] = "H200",
    cases: Cases = None,
    markdown: Annotated[bool, Option(("--markdown",), help="Print the full report as Markdown.")] = False,
    json: Json = False,
) -> int:
    """Compare the counters of the emulator with a record, on any machine.

    The exit code is 1 if a counter is outside its tolerance without a known reason.

    \b
    simtbed hardware compare
    simtbed hardware compare --markdown --device h200.json
    """
    source = Path(device) if device.endswith(".json") else record.path_of(devices.find(device).name)
    with progress("the emulator"):
        result = comparison.compare(record.load(source), cases or [VARIANTS])
    print_text(
        tables.as_json(text.content(result)) if json else text.markdown(result) if markdown else text.table(result)
    )
    return int(not result.holds)


@command
def measure(
    target: Annotated[
        Path,
        Option(
            ("--output", "-o"),
            metavar="FILE.toml",
            help="Write the device to FILE.toml, all measured values to FILE.json.",
        ),
    ],
    device: Annotated[str, Option(metavar="NAME", help="Device of this GPU; its other fields are copied.")] = "H200",
) -> int:
    """Measure this GPU with microbenchmarks and write a device for --device.

    The microbenchmarks measure latencies, widths and rates of the time model in about two minutes. Both files are written
    after each microbenchmark; a failed one is reported, and the others run. The exit code is 3 without a GPU.

    \b
    simtbed hardware measure --device H200 -o h200.toml
    """
    from ..hardware.timing import Runner, device_row

    row, values_path = devices.find(device), target.with_suffix(".json")
    if target.suffix != ".toml":
        raise SimtbedError(f"--output: expected the name of a .toml file, got {target}")
    with progress("microbenchmarks") as show:

        def save(row_text: str, values: str) -> None:
            write(target, [row_text])
            write(values_path, [values])
            show("values written")

        device_row(row, Runner(), date.today().isoformat(), save)
    return 0


@command
def times(
    target: Annotated[Path, Option(("--output", "-o"), metavar="FILE", help="Write the record of times to FILE.")],
    device: Annotated[str, Option(metavar="NAME", help="Device of this GPU.")] = "H200",
    only: Annotated[str, Option(metavar="PATTERN", help="Select launches by name, such as 'matmul *'.")] = "*",
    counters: Annotated[
        bool, Option(("--counters",), help="Collect hit rates and bytes with Nsight Compute too.")
    ] = False,
    cases: Launches = None,
) -> int:
    """Time the validation launches of the time model on this GPU, with warm and cold caches.

    The times are medians of 15 warm launches and of 7 launches with an empty L2, after a check of the answer; clocks are
    recorded before and after. The command takes about four minutes, twice as long with --counters. The file is written
    after each launch; its times of unchanged kernels are reused. The exit code is 1 if a launch fails, 3 without a GPU.

    \b
    simtbed hardware times -o times_h200.json
    """
    from ..hardware import errors as of_times
    from ..hardware import launches, nsight, timing, traffic

    names = cases or [launches.TIMED]
    row, chosen = devices.find(device), launches.matching(results_of(names), only)
    older = of_times.load(target) if target.exists() else None
    if older and older.get("device") != row.name:
        raise SimtbedError(f"{target}: expected times of {row.name}, got those of {older.get('device')}")
    ncu = nsight.find_ncu() if counters else None
    with progress("times of launches") as show:
        record = timing.take(chosen, row, lambda record: timing.save(record, target), show, older)
        if ncu is not None:
            show("Nsight Compute")
            timed = record["launches"]
            uncounted = [launch.name for launch in chosen if "cold" not in timed.get(launch.name, {"cold": {}})]
            for counted in traffic.take(ncu, uncounted, names):
                for name, counters_of_launch in counted.items():
                    timed[name] |= counters_of_launch
                timing.save(record, target)
    for name, reason in record["failed"].items():
        print_message(f"{name}: {reason}")
    return int(bool(record["failed"]))


@command
def accesses(
    target: Annotated[Path, Option(("--output", "-o"), metavar="FILE", help="Write a CSV file for `simtbed access`.")],
    count: Annotated[int, Option(metavar="N", min=1, max=1_000_000, help="Number of accesses.")] = 2000,
    seed: Annotated[int, Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the random accesses.")] = 2026,
) -> int:
    """Count single warp accesses of every kind and width on this GPU with Nsight Compute.

    The command takes about three minutes and writes the file in batches of some hundred accesses. The exit code is 3
    without a GPU.

    \b
    simtbed hardware accesses -o accesses_h200.csv
    simtbed access accesses_h200.csv --compare
    """
    from simtbed.engines.cuda.engine import describe

    from ..hardware import nsight, single_accesses

    ncu, rows = nsight.find_ncu(), single_accesses.random_accesses(count, seed)
    with progress("single accesses") as show:
        show("nvcc")
        single_accesses.build(rows, describe()["arch"])
        show("Nsight Compute")
        single_accesses.take(ncu, rows, lambda counted: single_accesses.save(counted, target))
    return 0


@command
def errors(
    record: Annotated[Path, Argument(metavar="TIMES", help="A record of `simtbed hardware times`.")],
    device: Annotated[str, Option(metavar="NAME", help="Device of the GPU, or the TOML file of `measure`.")] = "H200",
    only: Annotated[str, Option(metavar="PATTERN", help="Select launches by name.")] = "*",
    cold: Annotated[bool, Option(("--cold",), help="Compare the times with empty caches.")] = False,
    cases: Launches = None,
    json: Json = False,
) -> int:
    """Compare the time model and a roofline with measured times, on any machine.

    The constants of the model are fitted without the compared kernel.

    \b
    simtbed hardware errors tests/validation/records/times/h200.json
    """
    from ..hardware import errors as of_times
    from ..hardware import launches

    times_record, row = of_times.load(record), devices.find(device)
    chosen = launches.matching(results_of(cases or [launches.TIMED]), only)
    with progress("the model") as show:
        rows = of_times.compare(chosen, times_record, row, cold, show)
    print_text(_errors_json(row.name, rows) if json else _errors_text(rows))
    return 0


def _error_summary(rows: list[Any]) -> dict[str, Any]:
    from ..hardware import errors as of_times

    held_out = of_times.left_out(rows)
    return {
        "model, kernel left out": of_times.Errors.from_pairs((time, launch.measured_us) for launch, time in held_out),
        "model, as it is": of_times.Errors.from_pairs(
            (launch.prediction.time_us, launch.measured_us) for launch in rows
        ),
        "model, source counted": of_times.Errors.from_pairs((launch.source_us, launch.measured_us) for launch in rows),
        "roofline": of_times.Errors.from_pairs((launch.roofline, launch.measured_us) for launch in rows),
    }


def _errors_json(device: str, rows: list[Any]) -> str:
    from ..hardware import errors as of_times
    from ..hardware.traffic import within

    held_out, constants = of_times.left_out(rows), of_times.fitted(rows)
    near = within((launch.model, launch.measured) for launch in rows if launch.measured is not None)
    errors = {name: asdict(error) for name, error in _error_summary(rows).items()}
    return tables.as_json({
        "device": device, "launches": len(rows), "errors": errors,
        "constants": dict(zip(("loaded", "factor"), constants, strict=True)),
        "lost": dict(of_times.lost_by_choices(held_out)), "within": near,
        "residuals": of_times.residuals(held_out), "covered": of_times.covered(held_out),
        "rows": [{
            "name": launch.name, "measured_us": launch.measured_us, "time_us": time, "source_us": launch.source_us,
            "roofline_us": launch.roofline, "bound": launch.prediction.bound, "model": launch.model,
            "measured": launch.measured,
        } for launch, time in held_out],
    })  # fmt: skip


def _errors_text(rows: list[Any]) -> str:
    from ..hardware import errors as of_times
    from ..hardware.traffic import within

    held_out, constants = of_times.left_out(rows), of_times.fitted(rows)
    cells = [
        [launch.name, f"{launch.measured_us:,.2f}", f"{time:,.2f}", f"{100 * (time / launch.measured_us - 1):+.1f} %",
         launch.prediction.bound, f"{launch.source_us:,.2f}", f"{launch.roofline:,.2f}"]
        for launch, time in held_out
    ]  # fmt: skip
    paragraphs = [tables.table(["launch", "measured us", "model", "error", "bound", "source", "roofline"], cells)]
    summary = [
        [name, *(f"{100 * n:.1f} %" for n in (error.mean, error.p90, error.worst))]
        for name, error in _error_summary(rows).items()
    ]
    paragraphs.append(tables.table([f"{len(rows)} launches", "mean", "p90", "worst"], summary))
    if lost := of_times.lost_by_choices(held_out):
        shares = [share for _, share in lost]
        paragraphs.append(
            f"time lost by the predicted block size, {len(lost)} sweeps: {100 * sum(shares) / len(shares):.1f} % on average, "
            f"{100 * max(shares):.1f} % at worst"
        )
    if near := within((launch.model, launch.measured) for launch in rows if launch.measured is not None):
        percents = ", ".join(f"{100 * share:.0f} %" for share in near.values())
        paragraphs.append(f"launches within 4 points of L1 hits, 5 of L2 hits, 10 % of DRAM bytes: {percents}")
    residuals = [
        f"bound by {bound}: 90 % of {count} measured times are {low:.2f} to {high:.2f} times the prediction"
        for bound, (low, high, count) in of_times.residuals(held_out).items()
    ]
    if residuals:
        paragraphs.append("\n".join(residuals))
    covered = 100 * of_times.covered(held_out)
    paragraphs.append(f"measured times in the interval of the other kernels: {covered:.0f} %")
    paragraphs.append(
        f"fitted to all: added latency of loaded memory {constants[0]:g}, factor of cycles {constants[1]:g}"
    )
    return "\n\n".join(paragraphs)


@click.group()
def hardware() -> None:
    """Compare the emulator with a GPU: counters, times, device constants.

    \b
    simtbed hardware compare
    simtbed hardware measure -o mine.toml
    """


for _command in (compare, measure, times, accesses, errors):
    hardware.add_command(_command)
