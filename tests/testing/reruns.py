"""Reruns of budgets elsewhere: other Pythons, threads, workers, hash seeds and locales. None may be an alarm.

    python -m tests.testing.reruns --single 1000 --whole 20 [--python PYTHON ...]

--single: runs of one test with a budget. --whole: runs of every shipped variant against `.simtbed/variants.toml`. Each
PYTHON has simtbed, pytest and pytest-xdist. What differs from run to run is drawn from a fixed seed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASELINES = ROOT / ".simtbed/variants.toml"
TEST = "tests/testing/test_transpose.py"
LOCALES = ("C", "C.UTF-8", "tr_TR.UTF-8", "de_DE.UTF-8")


def alarms(pythons: list[str], arguments: list[str], times: int, workers: bool) -> int:
    """How many of so many runs do not end with 0; the last lines of what they say are printed."""
    draw, found = random.Random(20), 0
    for number in range(times):
        python, threads = draw.choice(pythons), draw.randint(1, 8)
        seed, place = draw.randint(0, 4_294_967_295), draw.choice(LOCALES)
        words = [*arguments, *(["-n", str(draw.randint(0, 2))] if workers else [])]
        other = {"SIMTBED_THREADS": str(threads), "PYTHONHASHSEED": str(seed), "LC_ALL": place}
        done = subprocess.run(
            [python, "-m", *words], cwd=ROOT, env={**os.environ, **other}, capture_output=True, text=True
        )
        if done.returncode:
            found += 1
            said = (done.stdout + done.stderr)[-2000:]
            print(f"run {number}, {python} {other}: exit code {done.returncode}\n{said}", flush=True)
        print(f"{number + 1} of {times} runs, {found} alarms", end="\r", file=sys.stderr, flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--single", type=int, default=0)
    parser.add_argument("--whole", type=int, default=0)
    parser.add_argument("--python", action="append")
    options = parser.parse_args()
    pythons = options.python or [sys.executable]
    single = ["pytest", "-q", "-p", "no:cacheprovider", TEST]
    found = alarms(pythons, single, options.single, True)
    found += alarms(pythons, ["simtbed", "check", "--budget", str(BASELINES)], options.whole, False)
    print(f"{found} alarms in {options.single} runs of one budget and {options.whole} of all")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
