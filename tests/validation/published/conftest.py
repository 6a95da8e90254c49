"""The folder of published data, and a launcher."""

import os
from pathlib import Path

import pytest

from tests.kernels.conftest import launcher

__all__ = ["launcher"]


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of published inputs and results. Skips the test if SIMTBED_DATA is not set."""
    if "SIMTBED_DATA" not in os.environ:
        pytest.skip("set SIMTBED_DATA to the folder of published data sets (docs/kernels.md lists them)")
    return Path(os.environ["SIMTBED_DATA"])
