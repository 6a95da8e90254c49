"""Numbers on the command line: each option has bounds, and what is outside them ends with one line and exit code 2."""

from importlib import import_module

import click
import pytest
from simtbed.reports.cli.app import COMMANDS, run


def _numbers() -> list[tuple[str, str]]:
    """Each command with each of its options that takes a number."""
    result = []
    for command in COMMANDS:
        created: click.Command = getattr(import_module(f"simtbed.reports.cli.{command}"), command)
        for parameter in created.params:
            if isinstance(parameter, click.Option) and isinstance(parameter.type, click.IntRange | click.FloatRange):
                result.append((command, max(parameter.opts, key=len)))
            else:
                assert not isinstance(parameter.type, type(click.INT) | type(click.FLOAT)), (
                    f"{command} {parameter.opts} has no bounds"
                )
    return result


LARGE = ("1" + "0" * 5000, f"-{'9' * 20}")
WRONG = ("nan", "inf", "-inf", "1e400", "-1", "", "x", "0x10", *LARGE, "1.5.2", "²", "1 2", "1,5")


@pytest.mark.parametrize(("command", "option"), _numbers())
def test_numbers_are_checked(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for value in WRONG:
        assert run([command, f"{option}={value}"]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert option in message


def test_the_commands_have_numbers() -> None:
    assert len(_numbers()) > 15


@pytest.mark.parametrize("length", ["0", "-", "5-4", "²", "1-999999999999", "x", "1-2-3"])
def test_a_wrong_length_of_reads(length: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "-o", "never.fastq", f"--length={length}"]) == 2
    assert "--length: expected a number or a range" in capsys.readouterr().err
