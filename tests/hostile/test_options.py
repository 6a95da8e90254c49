"""Hostile values of every option of the file commands: they end with 0 or 2, and with one line."""

from pathlib import Path

import pytest

from tests.hostile.trial import command
from tests.table_checks import each_row

VALUES = (
    "", "0", "-1", "1e400", "nan", "inf", "-inf", "99999999999999999999", "\xb2", "x", "\x1b[31m", "a\nb", "1,2,3,4",
    "2147483647,-2147483647,-1,-1", "1-", "-5", "5-4", "0.5", "\udc80", "A" * 5000, "64M", "-", "/", "/dev/null", ".",
)  # fmt: skip
OPTIONS = {
    "sfs": ("--p-variable", "--epsilon", "--mode", "--format", "--max-memory", "--spectrum", "-o", "--variant"),
    "correct": ("--k", "--min-multiplicity", "--min-votes", "--max-trim", "--log", "--discarded", "-o", "--filter"),
    "align": ("--parameters", "--strategy", "--gpus", "--format", "--max-memory", "-o"),
    "pairhmm": ("--variant", "--gpus", "--max-memory", "-o"),
    "simulate": ("--genome", "--coverage", "--length", "--error-rate", "--seed", "--max-memory", "--truth"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), [(name, option) for name, given in OPTIONS.items() for option in given])
def test_options_are_handled(name: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    needed = ["-o", "reads", "--genome", "100"] if name == "simulate" else ["--example"]
    for value in VALUES:
        code, printed, message = command([name, *needed, option, value])
        assert code in (0, 2), (value, message)
        if code:
            assert printed == b""
            assert message.startswith("simtbed: ") and message.count("\n") == 1
            assert message.rstrip("\n").isprintable()


@each_row([
    ["pairhmm", "--example", "--dask", ""], ["pairhmm", "--example", "-o", ""], ["pairhmm", ""],
    ["profile", "--kernel", "", "sfs/iterative"], ["whatif", "--const", "", "sfs/iterative"], ["profile", ""],
])  # fmt: skip
def test_empty_values_are_refused(arguments: list[str]) -> None:
    """An unset variable of a shell is no value: `--dask "$SCHEDULER"` does not run on this machine."""
    code, printed, message = command(arguments)
    assert (code, printed) == (2, b"") and " is empty. " in message and message.count("\n") == 1
