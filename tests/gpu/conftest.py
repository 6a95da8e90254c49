"""The GPU of tests."""

import pytest
from simtbed import LaunchError
from simtbed.engines.cuda.engine import describe


@pytest.fixture(scope="session")
def obstacle() -> str:
    """Return the reason why this machine cannot run the cuda engine; empty if it can."""
    try:
        describe()
    except LaunchError as error:
        return str(error)
    return ""


@pytest.fixture
def gpu(obstacle: str, pytestconfig: pytest.Config) -> None:
    """Fail without a GPU if the engine was requested by name, skip otherwise."""
    if obstacle and pytestconfig.getoption("simtbed_engine") == "cuda":
        pytest.fail(obstacle)
    if obstacle:
        pytest.skip(obstacle)
