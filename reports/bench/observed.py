"""Overhead of observation: scripts run alone, under `simtbed profile` and under `simtbed check`."""

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
from ..printing import print_text

COMMANDS = ("profile", "check")


def measure(line: str, folder: Path) -> tuple[float, list[tuple[float, float]]]:
    """Return the seconds in launches, and wall and processor seconds of the script alone and under each command.

    Each command is first run once to fill the caches.
    """
    words, saved = shlex.split(line), folder / "run.json"
    simtbed = [sys.executable, "-m", "simtbed"]
    report = ["-o", str(folder / "report.txt")]
    lines = [[sys.executable, *words], *([*simtbed, command, *report, *words] for command in COMMANDS)]
    for argv in lines:
        _seconds(argv)
    _seconds([*simtbed, "profile", "--save", str(saved), *report, *words])
    launches = sum(launch.seconds for launch in Run.load(saved).launches)
    return launches, [_seconds(argv) for argv in lines]


def _seconds(command: Sequence[str]) -> tuple[float, float]:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(lines: Sequence[str]) -> None:
    """Print a row per script, and the medians of the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        measurements = {line: measure(line, Path(folder)) for line in lines}
    for at, what in enumerate(("seconds", "seconds of processors")):
        rows, ratios = [], []
        for line, (launches, times) in measurements.items():
            alone, *under = (one[at] for one in times)
            ratios.append([one / alone for one in under])
            figures = (launches, alone, *under, *ratios[-1])
            rows.append([Path(shlex.split(line)[0]).stem, *(f"{figure:.2f}" for figure in figures)])
        headers = ["script", "in launches", "alone", *COMMANDS, *(f"{command} / alone" for command in COMMANDS)]
        medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
        print_text(f"{what}\n{tables.table(headers, rows)}")
        listed = (f"{command} {median:.2f}" for command, median in zip(COMMANDS, medians, strict=True))
        print_text(f"medians: {' '.join(listed)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
