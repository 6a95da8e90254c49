"""Fixtures of all families: a launcher, and the published data if available."""

from functools import partial

import pytest
from simtbed import launch
from simtbed.kernels import FunctionLauncher, Launcher


@pytest.fixture(scope="session")
def launcher() -> Launcher:
    return FunctionLauncher(partial(launch, counters=False))
