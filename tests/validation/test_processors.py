"""Tests with inputs from NumPy pass with the instructions of older processors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.validation.inputs import ROOT
from tests.validation.test_inputs import environment_of

TESTS = (
    "counters", "kernels/sfs/test_exponentials.py", "kernels/sfs/test_oracle.py",
    "kernels/sfs/test_spectrum.py", "machine", "ops/test_halves.py",
)  # fmt: skip
"""Tests with functions of NumPy (exp, log, matmul, normal) whose last bit depends on the processor."""


@pytest.mark.parametrize("processor", ["sse", "avx2"])
def test_results_do_not_depend_on_the_processor(processor: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        *(f"tests/{name}" for name in TESTS),
    ]
    process = subprocess.run(command, cwd=ROOT, env=environment_of(processor), capture_output=True, text=True)
    assert process.returncode == 0, process.stdout[-3000:]
