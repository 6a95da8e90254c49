"""Commands in processes of their own, with a locale, a cache and an environment."""

import os
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "pairhmm": ("pairhmm", "--example", "--counters"),
    "align": ("align", "--example", "--counters"),
    "correct": ("correct", "--example"),
    "sfs": ("sfs", "--example"),
    "profile": ("profile", "sfs/iterative", "--json", "--source-only"),
    "check": ("check", "sfs/iterative", "--json"),
}
PROGRAM = """
import locale, sys
locale.setlocale(locale.LC_ALL, "")
from simtbed.reports.cli.app import run
sys.exit(run(sys.argv[1:]))
"""
Answer = tuple[int, bytes, bytes]


def start(words: tuple[str, ...], cache: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start a command in a process that adopts the locale of its environment, as an embedding program may."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "SIMTBED_"))}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**inherited, "SIMTBED_CACHE": str(cache), **environment},
    )  # fmt: skip


def answer(process: subprocess.Popen[bytes]) -> Answer:
    out, err = process.communicate()
    return process.returncode, out, err


def run_alone(name: str, cache: Path) -> Answer:
    """Return the answer of a command with one thread in the plainest environment."""
    process = start(COMMANDS[name], cache, SIMTBED_THREADS="1", LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0")
    code, out, err = answer(process)
    assert code == 0 and out, err
    return code, out, err


def checked_kernels(cache: Path) -> set[str]:
    """Return the names of cached kernels. Cached code also depends on time: code that runs for long is optimised."""
    return {path.name for path in cache.glob("*.object")}
