"""Memory does not grow with the file."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.hostile.formats import BEAGLE, PAIRHMM, VCF_HEADER

GROWTH = 1.3
"""Maximum growth of the memory for a file eight times as large."""
PROGRAM = """
import sys
from simtbed.reports.cli.app import run
code = run(sys.argv[1:])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0], file=sys.stderr)
sys.exit(code)
"""
"""Prints its own peak: `ru_maxrss` would include that of the parent process."""


def _reads(count: int) -> bytes:
    return b"".join(b"@r%d\n%s\n+\n%s\n" % (r, b"ACGTTGCA" * 12, b"I" * 96) for r in range(count))


INPUTS: dict[str, tuple[Callable[[int], bytes], int, tuple[str, ...]]] = {
    "pairhmm": (lambda n: PAIRHMM * n, 4_000, ("pairhmm",)),
    "align": (lambda n: (b"ACGTTGCATT" * 30 + b"\t" + b"ACGTTGCATT" * 15 + b"\n") * n, 2_000, ("align",)),
    "correct": (_reads, 6_000, ("correct", "--k", "12")),
    "beagle": (lambda n: BEAGLE + b"X:9 0 1 0 .1 .001 1 0 0\n" * n, 20_000, ("sfs",)),
    "vcf": (lambda n: VCF_HEADER + b"1\t5\t.\tA\tG\t.\t.\t.\tPL\t0,10,30\t30,10,0\n" * n, 160_000, ("sfs",)),
}


def _most(arguments: list[str]) -> int:
    """Return the peak memory of a command in kilobytes, the least of three runs: one compiles, one optimises."""
    peaks = []
    for _ in range(3):
        completed = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
        )
        peaks.append(int(completed.stderr.splitlines()[-1]))
    return min(peaks)


@pytest.mark.parametrize("name", INPUTS)
def test_memory_does_not_grow_with_the_file(name: str, tmp_path: Path) -> None:
    make, count, (command, *options) = INPUTS[name]
    peaks = []
    for times in (1, 8):
        path = tmp_path / f"{times}.in"
        path.write_bytes(make(count * times))
        peaks.append(_most([command, str(path), "-o", str(tmp_path / "out"), "--max-memory", "64M", *options]))
    assert peaks[1] < GROWTH * peaks[0]


def test_the_stated_bounds_hold(tmp_path: Path) -> None:
    """Megabytes of `docs/limits.md` in addition to the 200 of Python and the compiler, for files of 40 and of 60."""
    pairs, sites = tmp_path / "pairs", tmp_path / "sites.npz"
    pairs.write_bytes((b"ACGTTGCATT" * 30 + b"\t" + b"ACG" + b"\n") * 130_000)
    np.savez(sites, P=np.random.default_rng(1).random((25_000, 100, 3)) + 0.1)
    for command, source, most in (("align", pairs, 12 + 8), ("sfs", sites, 24 * 2 * 8)):
        peak = _most([command, str(source), "-o", str(tmp_path / "out"), "--max-memory", "64M"])
        assert peak < (200 + most) * 1000


def test_simulate_streams(tmp_path: Path) -> None:
    few, many = (
        _most(["simulate", "-o", str(tmp_path / "reads"), "--genome", "200000", "--coverage", str(coverage)])
        for coverage in (25, 100)
    )
    assert many < GROWTH * few
