"""Reruns of budgets with other Pythons, threads, workers, hash seeds and locales. None may be an alarm.

    python -m tests.testing.reruns --single 1000 --whole 20 [--python PYTHON ...]

--single: runs of one test with a budget. --whole: runs of every shipped variant against `.simtbed/variants.toml`. Each
PYTHON has simtbed, pytest and pytest-xdist. The values that vary between runs are sampled with a fixed seed.

A process has one hash seed and one locale. The number of threads is read at each launch: a process runs the one test with
several numbers of threads, and uses this module as its pytest plugin.
"""

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[2]
BASELINES = ROOT / ".simtbed/variants.toml"
TEST = "tests/testing/test_transpose.py"
LOCALES = ("C", "C.UTF-8", "tr_TR.UTF-8", "de_DE.UTF-8")
TOGETHER = 8
"""Runs of the one test in a process."""
COUNTS = "RERUN_WITH_THREADS"
"""Environment variable with the numbers of threads."""


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run the test once with each number of threads."""
    for count in os.environ[COUNTS].split():
        os.environ["SIMTBED_THREADS"] = count
        item._initrequest()  # type: ignore[attr-defined]
        runtestprotocol(item, nextitem=nextitem)
    return True


def singles(times: int, draw: random.Random, run: Callable[[list[str], dict[str, str], str], bool]) -> int:
    """Run the one test a number of times; return the number of alarms."""
    alarms = 0
    for first in range(0, times, TOGETHER):
        counts = [str(draw.randint(1, 8)) for _ in range(first, min(first + TOGETHER, times))]
        words = ["pytest", "-q", "-p", "no:cacheprovider", "-p", __spec__.name, "-n", str(draw.randint(0, 2)), TEST]
        if not run(words, {COUNTS: " ".join(counts)}, f"{len(counts)} passed"):
            alarms += len(counts)
        print(f"{first + len(counts)} of {times} single runs, {alarms} alarms", end="\r", file=sys.stderr, flush=True)
    return alarms


def wholes(times: int, draw: random.Random, run: Callable[[list[str], dict[str, str], str], bool]) -> int:
    """Run all budgets a number of times; return the number of alarms."""
    alarms = 0
    for number in range(times):
        threads = {"SIMTBED_THREADS": str(draw.randint(1, 8))}
        alarms += not run(["simtbed", "check", "--budget", str(BASELINES)], threads, "")
        print(f"{number + 1} of {times} whole runs, {alarms} alarms", end="\r", file=sys.stderr, flush=True)
    return alarms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--single", type=int, default=0)
    parser.add_argument("--whole", type=int, default=0)
    parser.add_argument("--python", action="append")
    options = parser.parse_args()
    pythons, draw = options.python or [sys.executable], random.Random(20)

    def run(words: list[str], more: dict[str, str], expected: str) -> bool:
        """Return whether a run exits with 0 and prints the expected text; otherwise print its output."""
        python, seed, place = draw.choice(pythons), str(draw.randint(0, 4_294_967_295)), draw.choice(LOCALES)
        other = {**more, "PYTHONHASHSEED": seed, "LC_ALL": place}
        process = subprocess.run(
            [python, "-m", *words], cwd=ROOT, env={**os.environ, **other}, capture_output=True, text=True
        )
        good = process.returncode == 0 and expected in process.stdout
        if not good:
            output = (process.stdout + process.stderr)[-2000:]
            print(f"{' '.join(words)}, {python} {other}: exit code {process.returncode}\n{output}", flush=True)
        return good

    total = singles(options.single, draw, run) + wholes(options.whole, draw, run)
    print(f"{total} alarms in {options.single} runs of one budget and {options.whole} of all")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
