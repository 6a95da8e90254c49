"""Kernels of Numba-CUDA on a GPU, as Numba and NVVM compile them, return the bits of the emulator."""

from __future__ import annotations

import pytest
from simtbed import LaunchError
from simtbed.engines.cuda.engine import describe

from tests.numba.running import PROGRAMS, run


@pytest.fixture(autouse=True)
def gpu(pytestconfig: pytest.Config) -> None:
    """Fail without a GPU if the engine was requested by name, skip otherwise."""
    try:
        describe()
    except LaunchError as error:
        if pytestconfig.getoption("simtbed_engine") == "cuda":
            pytest.fail(str(error))
        pytest.skip(str(error))


def test_the_programs_of_the_validation() -> None:
    pytest.importorskip("numba_cuda", reason="Numba-CUDA is not installed")
    report = run("-m", "simtbed", "verify", "--emulate", "numba", "--engine", "cuda", PROGRAMS).stderr
    rows = [line.split() for line in report.splitlines() if line.endswith(" agrees")]
    assert len(rows) == 11 and "differs" not in report, report
