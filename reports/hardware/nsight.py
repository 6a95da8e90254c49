"""Nsight Compute as a subprocess: search, command lines, parsers of its reports."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from simtbed import LaunchError, UnavailableError

MISSING = "Nsight Compute (ncu) is not found: put it on PATH or set CUDA_HOME"


@dataclass(frozen=True)
class Profile:
    """One launch. metrics: values by name. instructions: (text, warp executions, thread executions), in address order."""

    kernel: str
    metrics: dict[str, float]
    instructions: tuple[tuple[str, int, int], ...]


def find_ncu() -> Path:
    """Return the profiler on PATH or below CUDA_HOME or CUDA_PATH. Raises UnavailableError."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for folder in (os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes)):
        if path := shutil.which("ncu", path=folder):
            return Path(path)
    raise UnavailableError(MISSING)


def version(ncu: Path) -> str:
    """Return the version number, the last word of `ncu --version`."""
    return _run([str(ncu), "--version"]).strip().splitlines()[-1].removeprefix("Version ")


LEFT = ("--cache-control", "none")
"""Do not flush caches: they hold the data of the launch before, and the data of Nsight Compute's own replays."""
WARM = (*LEFT, "--replay-mode", "application")
"""Caches hold the data of the launch before: the whole command runs again for more metrics."""
COLD = ("--cache-control", "all")
"""Flush caches before each launch."""


def profile(ncu: Path, command: Sequence[str], metrics: Sequence[str]) -> list[Profile]:
    """Profile every launch of `command`, in order, without control of clocks and caches: the metrics do not depend on them.

    Raises LaunchError with the error of ncu or of the command.
    """
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        report = str(Path(folder, "launches.ncu-rep"))
        call = [str(ncu), "--clock-control", "none", *LEFT, "--target-processes", "all", "-o", report]
        _run([*call, "--section", "SourceCounters", "--metrics", ",".join(metrics), *command])
        export = [str(ncu), "--import", report, "--csv"]
        raw = _run([*export, "--page", "raw", "--print-units", "base"])
        source = _run([*export, "--page", "source", "--print-source", "sass", "--print-units", "base"])
    return parse(raw, source, metrics)


EVEN = ("--kernel-id", ":::.*[02468]")
"""Options for the second, fourth, ... launch of each kernel."""


def supported_metrics(ncu: Path, metrics: Iterable[str], chip: str) -> list[str]:
    """Return the metrics that the profiler knows for a chip, such as "gh100"."""
    names = set(_run([str(ncu), "--query-metrics", "--chips", chip]).split())
    return [metric for metric in metrics if metric.rpartition(".")[0] in names]


def measure(
    ncu: Path, command: Sequence[str], metrics: Sequence[str], which: Sequence[str] = EVEN, caches: Sequence[str] = LEFT
) -> list[dict[str, float]]:
    """Return metrics of the launches of `command`, in order, without metrics unknown to the GPU. which: options that
    select launches. caches: LEFT, WARM or COLD. Clocks are not controlled. Raises LaunchError with the error of ncu
    or of the command."""
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        report = str(Path(folder, "launches.ncu-rep"))
        keep = ["--clock-control", "none", *caches, "--target-processes", "all"]
        _run([str(ncu), *keep, *which, "-o", report, "--metrics", ",".join(metrics), *command])
        return parse_metrics(
            _run([str(ncu), "--import", report, "--csv", "--page", "raw", "--print-units", "base"]), metrics
        )


def parse_metrics(raw: str, metrics: Sequence[str]) -> list[dict[str, float]]:
    """Return the metrics of each launch that have a value, from the CSV of the raw page."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(line for line in raw.splitlines() if line.startswith('"')))
    if not rows:
        raise LaunchError("Nsight Compute profiled no launch")
    launches = []
    for row in rows[2:]:  # the second row holds units
        texts = {name: text.replace(",", "").split(" ")[0] for name, text in zip(rows[0], row, strict=True)}
        launches.append({name: float(texts[name]) for name in metrics if texts.get(name, "")[:1].isdigit()})
    return launches


def parse(raw: str, source: str, metrics: Sequence[str]) -> list[Profile]:
    """Return profiles from the CSV of the raw page and of the source page."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(line for line in raw.splitlines() if line.startswith('"')))
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]  # the second row holds units
    listings = list(_listings(source))
    if len(table) != len(listings):
        raise LaunchError(f"Nsight Compute reports {len(table)} launches and the SASS of {len(listings)}")
    profiles = []
    for row, (kernel, instructions) in zip(table, listings, strict=True):
        missing = [name for name in metrics if not row.get(name, "n/a").replace(",", "").split(" ")[0][:1].isdigit()]
        if missing:
            raise LaunchError(f"Nsight Compute has no value of {', '.join(missing)} for {kernel}")
        values = {name: float(row[name].replace(",", "").split(" ")[0]) for name in metrics}
        profiles.append(Profile(kernel, values, tuple(instructions)))
    return profiles


def _listings(source: str) -> list[tuple[str, list[tuple[str, int, int]]]]:
    listings: list[tuple[str, list[tuple[str, int, int]]]] = []
    columns: tuple[int, int, int] = (0, 0, 0)
    for row in csv.reader(line for line in source.splitlines() if line.startswith('"')):
        if row[0] == "Kernel Name":
            listings.append((row[1], []))
        elif row[0] == "Address":
            names = ("Source", "Instructions Executed", "Thread Instructions Executed")
            columns = (row.index(names[0]), row.index(names[1]), row.index(names[2]))
        else:
            text, warps, threads = (row[column] for column in columns)
            listings[-1][1].append((" ".join(text.split()), int(warps), int(threads)))
    return listings


def _run(command: list[str]) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be run: {error.strerror}") from None
    if process.returncode or "==ERROR==" in process.stdout:
        lines = [line for line in (process.stderr + process.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if "==ERROR==" in line] or lines[-3:]
        raise LaunchError(f"{Path(command[0]).name} failed: {' '.join(errors) or f'exit code {process.returncode}'}")
    return process.stdout
