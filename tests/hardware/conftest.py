"""The command line as a function."""

from __future__ import annotations

import pytest
from simtbed.reports.cli.app import run

from tests.reports.conftest import CommandResult, Simtbed


@pytest.fixture
def simtbed(capsys: pytest.CaptureFixture[str]) -> Simtbed:
    """The command line with the shipped families alone."""

    def command(*arguments: str) -> CommandResult:
        code = run(arguments)
        printed = capsys.readouterr()
        return CommandResult(code, printed.out, printed.err)

    return command
