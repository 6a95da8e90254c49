"""Nsight Compute as a subprocess: how it is found and called, and how its report of each launch is read."""

from __future__ import annotations

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
    """One launch. metrics: by name. instructions: (text, executions by warps, by threads), in address order."""

    kernel: str
    metrics: dict[str, float]
    instructions: tuple[tuple[str, int, int], ...]


def find_ncu() -> Path:
    """The profiler on PATH or below CUDA_HOME or CUDA_PATH. Raises UnavailableError."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for folder in (os.environ.get("PATH", ""), *(os.path.join(home, "bin") for home in homes)):
        if found := shutil.which("ncu", path=folder):
            return Path(found)
    raise UnavailableError(MISSING)


def version(ncu: Path) -> str:
    """The version number that `ncu --version` prints last."""
    return _run([str(ncu), "--version"]).strip().splitlines()[-1].removeprefix("Version ")


LEFT = ("--cache-control", "none")
"""Caches hold what was there, and what Nsight Compute itself reads and writes when it makes a launch again for more metrics."""
WARM = (*LEFT, "--replay-mode", "application")
"""Caches hold what the launch before left: for more metrics the whole command is made again."""
COLD = ("--cache-control", "all")
"""Caches are emptied before each launch."""


def profile(ncu: Path, command: Sequence[str], metrics: Sequence[str]) -> list[Profile]:
    """Profile every launch that `command` makes, in order. Clocks and caches stay as they are: what is counted knows no caches.

    Raises LaunchError with what ncu or the command said where they fail.
    """
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        report = str(Path(folder, "launches.ncu-rep"))
        call = [
            str(ncu),
            "--clock-control",
            "none",
            *LEFT,
            "--target-processes",
            "all",
            "-o",
            report,
        ]
        _run([*call, "--section", "SourceCounters", "--metrics", ",".join(metrics), *command])
        export = [str(ncu), "--import", report, "--csv"]
        raw = _run([*export, "--page", "raw", "--print-units", "base"])
        source = _run([*export, "--page", "source", "--print-source", "sass", "--print-units", "base"])
    return parse(raw, source, metrics)


EVEN = ("--kernel-id", ":::.*[02468]")
"""The second, fourth, ... launch of each kernel."""


def known(ncu: Path, metrics: Iterable[str], chip: str) -> list[str]:
    """Those of the metrics that the profiler has for a chip, such as "gh100"."""
    there = set(_run([str(ncu), "--query-metrics", "--chips", chip]).split())
    return [metric for metric in metrics if metric.rpartition(".")[0] in there]


def measure(
    ncu: Path, command: Sequence[str], metrics: Sequence[str], which: Sequence[str] = EVEN, caches: Sequence[str] = LEFT
) -> list[dict[str, float]]:
    """Metrics of the launches that `command` makes, in order; what the GPU does not have is left out. which: options that choose
    some of the launches. caches: LEFT, WARM or COLD. Clocks stay as they are. Raises LaunchError with what ncu or the command
    said where they fail."""
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        report = str(Path(folder, "launches.ncu-rep"))
        keep = ["--clock-control", "none", *caches, "--target-processes", "all"]
        _run([str(ncu), *keep, *which, "-o", report, "--metrics", ",".join(metrics), *command])
        return parse_metrics(
            _run([str(ncu), "--import", report, "--csv", "--page", "raw", "--print-units", "base"]), metrics
        )


def parse_metrics(raw: str, metrics: Sequence[str]) -> list[dict[str, float]]:
    """Of the CSV of the raw page, the metrics of each launch that have a value."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(line for line in raw.splitlines() if line.startswith('"')))
    if not rows:
        raise LaunchError("Nsight Compute profiled no launch")
    found = []
    for row in rows[2:]:  # the second row holds units
        texts = {name: text.replace(",", "").split(" ")[0] for name, text in zip(rows[0], row, strict=True)}
        found.append({name: float(texts[name]) for name in metrics if texts.get(name, "")[:1].isdigit()})
    return found


def parse(raw: str, source: str, metrics: Sequence[str]) -> list[Profile]:
    """Profiles from the CSV of the raw page and of the source page."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(line for line in raw.splitlines() if line.startswith('"')))
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]  # the second row holds units
    listings = list(_listings(source))
    if len(table) != len(listings):
        raise LaunchError(f"Nsight Compute reports {len(table)} launches and the SASS of {len(listings)}")
    found = []
    for row, (kernel, instructions) in zip(table, listings, strict=True):
        missing = [name for name in metrics if not row.get(name, "n/a").replace(",", "").split(" ")[0][:1].isdigit()]
        if missing:
            raise LaunchError(f"Nsight Compute has no value of {', '.join(missing)} for {kernel}")
        values = {name: float(row[name].replace(",", "").split(" ")[0]) for name in metrics}
        found.append(Profile(kernel, values, tuple(instructions)))
    return found


def _listings(source: str) -> list[tuple[str, list[tuple[str, int, int]]]]:
    found: list[tuple[str, list[tuple[str, int, int]]]] = []
    columns: tuple[int, int, int] = (0, 0, 0)
    for row in csv.reader(line for line in source.splitlines() if line.startswith('"')):
        if row[0] == "Kernel Name":
            found.append((row[1], []))
        elif row[0] == "Address":
            names = ("Source", "Instructions Executed", "Thread Instructions Executed")
            columns = (row.index(names[0]), row.index(names[1]), row.index(names[2]))
        else:
            text, warps, threads = (row[column] for column in columns)
            found[-1][1].append((" ".join(text.split()), int(warps), int(threads)))
    return found


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UnavailableError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode or "==ERROR==" in done.stdout:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if "==ERROR==" in line] or lines[-3:]
        raise LaunchError(f"{Path(command[0]).name} failed: {' '.join(errors) or f'exit code {done.returncode}'}")
    return done.stdout
