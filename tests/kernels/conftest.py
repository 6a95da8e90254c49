"""What the tests of all families share: a launcher, and the published data where it is."""

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
    """The folder of published inputs and values; tests that ask for it are skipped where SIMTBED_DATA is not set."""
    if "SIMTBED_DATA" not in os.environ:
        pytest.skip("SIMTBED_DATA names no folder of published data")
    return Path(os.environ["SIMTBED_DATA"])
