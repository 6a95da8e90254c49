"""Standard streams that are closed or full: the exit code reports it, without a crash."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.hostile.trial import BEFORE

LINES = (
    ("list",), ("--help",), ("nosuch",), ("doctor",), ("sfs", "--example"), ("sfs", "-"), ("sfs", "--example", "-o", "out"),
    ("align", "--example", "--check", "-o", "out"), ("correct", "--example"), ("profile", "iterative"), ("list", "--json"),
)  # fmt: skip
STATES = ("open", "closed", "full")
COMBINED = [states for states in itertools.product(STATES[:2], STATES, STATES) if states != ("open",) * 3]
SINGLE = [states for states in COMBINED if states.count("open") == 2]
COMBINATIONS: dict[tuple[str, ...], list[tuple[str, str, str]]] = {
    line: COMBINED if line in (("list",), ("sfs", "--example", "-o", "out")) else SINGLE for line in LINES
}
CLOSED, FULL = ("open", "closed", "open"), ("open", "full", "open")
SELECTED = {
    ("list",): SINGLE,
    ("nosuch",): [("open", "open", "full")],
    ("doctor",): [CLOSED],
    ("sfs", "--example", "-o", "out"): [CLOSED, FULL],
    ("profile", "iterative"): [FULL],
}
"""Combinations for the tests; tests/validation runs all."""


REDIRECTIONS = {
    "open": ("</dev/null", ">1", "2>2"),
    "closed": ("<&-", ">&-", "2>&-"),
    "full": ("", ">/dev/full", "2>/dev/full"),
}
"""Exit code, by state and number of the stream."""
INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
"""The oracle of one small example takes longer to compile than to run."""


def _ended(line: tuple[str, ...], states: tuple[str, ...], folder: Path) -> tuple[int, bytes]:
    """Exit code, and stderr where it is open."""
    (folder / "2").write_bytes(b"")
    redirected = " ".join(REDIRECTIONS[state][number] for number, state in enumerate(states))
    completed = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "simtbed", *line],
        cwd=folder,
        env={**os.environ, **INTERPRETED},
        timeout=120,
        check=False,
    )
    return completed.returncode, (folder / "2").read_bytes()


def _wrong(line: tuple[str, ...], states: tuple[str, ...], folder: Path) -> str:
    (folder / "out").write_bytes(BEFORE)
    code, message = _ended(line, states, folder)
    _, stdout, stderr = states
    unchanged = (folder / "out").read_bytes() == BEFORE
    expected = {2} if line[0] == "nosuch" or line[1:] == ("-",) else {"open": {0}, "closed": {2}, "full": {3}}[stdout]
    wrong = [] if code in expected else [f"exit code {code}"]
    if "out" in line and unchanged:  # that the report is lost takes nothing from the answer
        wrong.append("the exit code says something else than the file")
    if code and stderr == "open" and (message.count(b"\n") != 1 or not message.startswith(b"simtbed: ")):
        wrong.append(f"not one line: {message!r}")
    if b"defect" in message or b"Traceback" in message or b"Exception" in message:
        wrong.append(repr(message))
    return "; ".join(wrong)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("line", SELECTED, ids=" ".join)
def test_streams_that_are_closed_or_full(line: tuple[str, ...], tmp_path: Path) -> None:
    assert_handled(line, SELECTED[line], tmp_path)


def assert_handled(line: tuple[str, ...], combinations: Iterable[tuple[str, ...]], folder: Path) -> None:
    wrong = [(states, result) for states in combinations if (result := _wrong(line, states, folder))]
    assert wrong == []
