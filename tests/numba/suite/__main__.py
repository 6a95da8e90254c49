"""numba-cuda's own installed tests, unmodified, on the emulator: each module in a process of its own, by unittest.

    python -m tests.numba.suite [MODULE ...] [--all] [--timeout SECONDS] [--results FOLDER]

MODULE: `cudapy`, `cudapy.test_atomics`. Without `--all`, the tests of `listed.toml` are skipped with their reasons. `--all` runs
them too and reports those that pass as stale entries. Exits with 1 for a failed test, a timeout or a stale entry.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click
from tabulate import tabulate

from .listing import PACKAGES, Reason, modules, reasons

ROOT = Path(__file__).parents[3]
PROCESSES = 2
OUTCOMES = ("passed", "expected failure", "skipped", "listed", "failed")
_HEADERS = ("module or package", "passed", "expected failures", "skipped by the suite", "skipped by reason", "failed")


class SuiteResult(NamedTuple):
    """The result of one test. details: a traceback or the reason of a skip."""

    test: str
    outcome: str
    details: str


@dataclass(frozen=True)
class Runner:
    """Runs modules. results: the folder for results and outputs. everything: run the listed tests too."""

    results: Path
    timeout: float
    everything: bool

    def run(self, module: str) -> list[SuiteResult]:
        """Run one module in a process of its own and return its results; a module without an end is a failed test."""
        file, output = self.results / f"{module}.jsonl", self.results / f"{module}.log"
        command = [sys.executable, "-m", "simtbed.numba", "-m", "tests.numba.suite.module", module, str(file)]
        command += ["--all"] if self.everything else []
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        }
        start = time.monotonic()
        file.unlink(missing_ok=True)  # of an earlier run
        with tempfile.TemporaryDirectory() as folder, open(output, "w") as stream:
            try:
                process = subprocess.run(
                    command,
                    stdout=stream,
                    stderr=stream,
                    timeout=self.timeout,
                    env=environment,
                    cwd=folder,
                    check=False,
                )
                end = f"exit code {process.returncode}"
            except subprocess.TimeoutExpired:
                end = f"no end after {self.timeout:.0f} s"
        print(f"{module}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
        rows = [SuiteResult(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
        return _completed(module, rows, f"{end}\n{output.read_text(errors='replace')[-2000:]}")


def _completed(module: str, rows: Sequence[SuiteResult], end: str) -> list[SuiteResult]:
    """Return the results of tests; the test that did not end, or a module without results, is a failed one."""
    results = [row for row in rows if row.outcome not in ("started", "end")]
    if not any(row.outcome == "end" for row in rows):
        ended = {row.test for row in results}
        running = [row.test for row in rows if row.outcome == "started" and row.test not in ended]
        results.append(SuiteResult(running[-1] if running else module, "failed", end))
    return results


def table(results: dict[str, list[SuiteResult]]) -> str:
    """Return the number of tests of each module and of each package by outcome."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for module, rows in results.items():
        outcomes = Counter(row.outcome for row in rows)
        for name in (module, module.partition(".")[0], "all"):
            counts[name] += outcomes
    names = [*results, *(package for package in PACKAGES if package in counts), "all"]
    return tabulate(
        [[name, *(counts[name][outcome] for outcome in OUTCOMES)] for name in names], _HEADERS, tablefmt="github"
    )


def reason_table(results: Sequence[SuiteResult], listed: Sequence[Reason]) -> str:
    """Return the number of skipped tests by reason, with the distributions that make them run."""
    counts = Counter(row.details for row in results if row.outcome == "listed")
    packages = {reason.text: ", ".join(reason.runs_with) for reason in listed}
    lines = [[count, text, packages.get(text, "")] for text, count in counts.most_common()]
    return tabulate(lines, ("tests", "reason", "runs with"), tablefmt="github")


def stale(results: Sequence[SuiteResult], listed: Sequence[Reason]) -> list[str]:
    """Return the tests that pass although they are listed."""
    applied = [reason for reason in listed if reason.applies()]
    return [
        row.test
        for row in results
        if row.outcome in ("passed", "expected failure") and any(reason.covers(row.test) for reason in applied)
    ]


@click.command()
@click.argument("names", metavar="MODULE", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Run the listed tests too; report those that pass.")
@click.option("--timeout", default=900.0, show_default=True, help="Seconds for a module.")
@click.option(
    "--results", type=click.Path(path_type=Path), help="Write results and outputs of the modules to this folder."
)
def main(names: tuple[str, ...], everything: bool, timeout: float, results: Path | None) -> None:
    """Run numba-cuda's own tests on the emulator. MODULE: cudapy, cudapy.test_atomics; all without one."""
    installed = modules()
    chosen = [module for module in installed if not names or {module, module.partition(".")[0]} & set(names)]
    for name in names:
        if name not in PACKAGES and name not in installed:
            raise click.BadParameter(f"{name}: no such module of numba.cuda.tests", param_hint="MODULE")
    start, listed = time.monotonic(), reasons()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner((results or Path(folder)).resolve(), timeout, everything)
        runner.results.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(PROCESSES) as executor:
            by_module = dict(zip(chosen, executor.map(runner.run, chosen), strict=True))
    rows = [row for module in chosen for row in by_module[module]]
    failed = [row for row in rows if row.outcome == "failed"]
    passing = stale(rows, listed) if everything else []
    if everything:
        failed = [row for row in failed if not any(reason.covers(row.test) and reason.applies() for reason in listed)]
    for row in failed:
        print(f"FAILED {row.test}\n{row.details}")
    for test in passing:
        print(f"STALE {test}: listed, but it passes")
    print(table(by_module), reason_table(rows, listed), f"{time.monotonic() - start:.0f} s", sep="\n\n")
    sys.exit(bool(failed or passing))


if __name__ == "__main__":
    main()
