"""Arguments of a program on a command line: options of the command among them, and --."""

import pytest
from simtbed.reports.cli.app import COMMANDS, simtbed

from tests.table_checks import each_row

CASES = [
    ("x.py", [], []),
    ("x.py --n 3", ["--n", "3"], []),
    ("--device K40 x.py --device 3 -o y", ["--device", "3", "-o", "y"], ["--device", "-o"]),
    ("x.py --device=3 --json-lines", ["--device=3", "--json-lines"], ["--device"]),
    ("x.py -- --device 3", ["--device", "3"], []),
    ("x.py -- -- --device", ["--", "--device"], []),
    ("x.py 1 -- --device", ["1", "--", "--device"], ["--device"]),
    ("-- x.py --device 3", ["--device", "3"], []),
    ("a.b:c --json", ["--json"], ["--json"]),
    ("tree --json", [], []),
]


@each_row(CASES)
def test_options_of_the_command_get_a_note(
    case: tuple[str, list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    words, expected, noted = case
    command = simtbed.get_command(simtbed.make_context("simtbed", ["list"]), "profile")
    assert command is not None
    context = command.make_context("profile", words.split())
    target = context.params["target"]
    notes = capsys.readouterr().err.splitlines()
    assert list(context.params["arguments"]) == expected
    assert [note.partition(":")[2].split()[1] for note in notes] == noted
    assert all(f"is an argument of {target}: write options of simtbed before {target}" in note for note in notes)


@each_row(COMMANDS)
def test_every_command_on_programs_has_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = simtbed.get_command(simtbed.make_context("simtbed", ["list"]), name)
    assert command is not None
    if not any(parameter.nargs == -1 for parameter in command.params):
        return
    command.make_context(name, ["x.py", "--help"])
    assert "note: --help is an argument of x.py" in capsys.readouterr().err
