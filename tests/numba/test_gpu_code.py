"""The code of Numba's kernels for a GPU, without a GPU."""

import pytest

from tests.compilers import needs_nvcc
from tests.numba.running import FOLDER, run

pytestmark = pytest.mark.integration


@needs_nvcc
@pytest.mark.slow
def test_parameters_ptx_and_refusals() -> None:
    assert run("-m", "simtbed.numba", FOLDER / "gpu_code.py").stdout == "passed\n"
