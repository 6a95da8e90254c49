"""Kernels of Numba-CUDA on a GPU, as Numba and NVVM compile them, return the bits of the emulator."""

import pytest

from tests.numba.running import PROGRAMS, run

pytestmark = pytest.mark.usefixtures("gpu")


def test_the_programs_of_the_validation() -> None:
    pytest.importorskip("numba_cuda", reason="Numba-CUDA is not installed")
    report = run("-m", "simtbed", "verify", "--emulate", "numba", "--engine", "cuda", PROGRAMS).stderr
    rows = [line.split() for line in report.splitlines() if line.endswith(" agrees")]
    assert len(rows) == 11 and "differs" not in report, report
