"""The folder of published data, and a launcher."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from simtbed import launch
from simtbed.kernels import FunctionLauncher, Launcher


@pytest.fixture(scope="session")
def launcher() -> Launcher:
    return FunctionLauncher(partial(launch, counters=False))


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of published inputs and results. Skips the test if SIMTBED_DATA is not set."""
    if "SIMTBED_DATA" not in os.environ:
        pytest.skip("set SIMTBED_DATA to the folder of published data sets (docs/kernels.md lists them)")
    return Path(os.environ["SIMTBED_DATA"])
