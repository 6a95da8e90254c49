"""The command line as a function."""

import pytest

from tests.reports.conftest import Simtbed, command_line


@pytest.fixture
def simtbed(capsys: pytest.CaptureFixture[str]) -> Simtbed:
    """The command line with the shipped families alone."""
    return command_line(capsys)
