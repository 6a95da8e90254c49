"""What observing costs: scripts run alone, under `simtbed profile` and under `simtbed check`, one after another."""

from __future__ import annotations

import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from simtbed import Run

from .. import tables

COMMANDS = ("profile", "check")


def measure(line: str, folder: Path) -> tuple[float, list[tuple[float, float]]]:
    """Seconds in launches; then those of the whole process, and of the processors: alone, and under each command. Each is
    run once before to fill the caches."""
    words, kept = shlex.split(line), folder / "run.json"
    simtbed = [sys.executable, "-m", "simtbed"]
    report = ["-o", str(folder / "report.txt")]
    lines = [[sys.executable, *words], *([*simtbed, command, *report, *words] for command in COMMANDS)]
    for one in lines:
        _seconds(one)
    _seconds([*simtbed, "profile", "--save", str(kept), *report, *words])
    launches = sum(one.seconds for one in Run.load(kept).launches)
    return launches, [_seconds(one) for one in lines]


def _seconds(command: Sequence[str]) -> tuple[float, float]:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(lines: Sequence[str]) -> None:
    """Print a row for each script with its arguments, and the medians of the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        found = {line: measure(line, Path(folder)) for line in lines}
    for at, what in enumerate(("seconds", "seconds of processors")):
        rows, ratios = [], []
        for line, (launches, times) in found.items():
            alone, *under = (one[at] for one in times)
            ratios.append([one / alone for one in under])
            figures = (launches, alone, *under, *ratios[-1])
            rows.append([Path(shlex.split(line)[0]).stem, *(f"{figure:.2f}" for figure in figures)])
        headers = ["script", "in launches", "alone", *COMMANDS, *(f"{command} / alone" for command in COMMANDS)]
        medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
        print(f"{what}\n{tables.table(headers, rows)}")
        print("medians:", *(f"{command} {median:.2f}" for command, median in zip(COMMANDS, medians, strict=True)), "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
