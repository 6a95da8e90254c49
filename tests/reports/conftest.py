"""Fixture to run command lines in this process, with a small kernel family in addition to the shipped ones."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from simtbed.kernels import FAMILIES
from simtbed.reports.cli.app import run

from tests.reports.sums import SUMS


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command line."""

    code: int
    out: str
    err: str

    def refused(self, code: int = 2) -> str:
        """Check that the command printed one error line, or the same error as JSON, and return the line.

        `code` is 3 if the command could not run on this machine.
        """
        assert self.code == code
        assert self.err.startswith("simtbed: ") and self.err.count("\n") == 1
        assert self.out == "" or json.loads(self.out) == {"error": self.err.removeprefix("simtbed: ").rstrip("\n")}
        return self.err


Simtbed = Callable[..., CommandResult]


def command_line(capsys: pytest.CaptureFixture[str]) -> Simtbed:
    """Return a function that runs a command line in this process and captures its output."""

    def command(*arguments: str) -> CommandResult:
        code = run(arguments)
        printed = capsys.readouterr()
        return CommandResult(code, printed.out, printed.err)

    return command


@pytest.fixture
def simtbed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Simtbed:
    """`simtbed("verify", "--json")` runs that command line here."""
    monkeypatch.setitem(FAMILIES, "sums", SUMS)
    return command_line(capsys)
