"""Files of a project with a wrong value: each is refused with one line that names file, key and expectation."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import simtbed as st
from simtbed import SimtbedError
from simtbed.testing import answers
from simtbed.testing.budgets import Baselines
from simtbed.testing.known_findings import read_file

from tests.hostile.trial import command
from tests.table_checks import check_each

BASELINE = """[t.k]
device = "H200"
rules = 4
lines = [
    { function = "k", line = 1, source = "x = 1", warp_instructions = 7 },
]

[t.k.figures]
launches = 1
warp_instructions = 7
branch_efficiency = 1.0
global_load_sectors_per_request = 4.5
occupancy = 50.0
shared_bytes = 0
"""
REGISTERS = "registers = 3\nspill_stores = 0\nspill_loads = 0\nlocal_bytes = 0\ncompiled_occupancy = 100.0\n"
COMPILED = BASELINE.replace("rules = 4", 'rules = 4\ncompiler = "V1"') + REGISTERS
BASELINES = {
    "NaN": ("launches = 1", "launches = nan", "t.k.figures.launches: expected a whole number"),
    "NaN of a ratio": ("_request = 4.5", "_request = nan", "per_request: expected a number"),
    "infinity": ("occupancy = 50.0", "occupancy = inf", "t.k.figures.occupancy: expected a number <= 100"),
    "negative infinity": ("occupancy = 50.0", "occupancy = -inf", "t.k.figures.occupancy: expected a number >= 0"),
    "infinite ratio": ("_request = 4.5", "_request = inf", "per_request: expected a number <= "),
    "negative": ("warp_instructions = 7\nb", "warp_instructions = -7\nb", "figures.warp_instructions: expected a whole"),
    "no launch": ("launches = 1", "launches = 0", "t.k.figures.launches: expected a whole number >= 1"),
    "text for a number": ("launches = 1", 'launches = "1"', "expected a whole number, got a text"),
    "text for a ratio": ("occupancy = 50.0", 'occupancy = "50 %"', "expected a number, got a text"),
    "truth for a number": ("launches = 1", "launches = true", "expected a whole number, got true or false"),
    "truth for a ratio": ("occupancy = 50.0", "occupancy = false", "expected a number, got true or false"),
    "half a count": ("shared_bytes = 0", "shared_bytes = 0.5", "shared_bytes: expected a whole number, got a number"),
    "too large": ("shared_bytes = 0", "shared_bytes = 99999999999999999999", "shared_bytes: "),
    "a table": ("launches = 1", "launches = {}", "launches: expected a whole number, got a table"),
    "a list": ("launches = 1", "launches = [1]", "launches: expected a whole number, got a list"),
    "a date": ("launches = 1", "launches = 2026-01-01", "launches: expected a whole number"),
    "percent for a fraction": ("efficiency = 1.0", "efficiency = 100.0", "branch_efficiency: expected a number <= 1"),
    "percent above 100": ("occupancy = 50.0", "occupancy = 5000.0", "occupancy: expected a number <= 100"),
    "missing figure": ("launches = 1\n", "", "t.k.figures: missing key launches"),
    "unknown figure": ("shared_bytes = 0", "shared_bytes = 0\nwarps = 1", "t.k.figures: unknown key warps"),
    "misspelled figure": ("shared_bytes", "shared bytes", ""),
    "no figures": ("[t.k.figures]", "[t.k.figure]", "t.k: unknown key figure"),
    "figures as a number": ("[t.k.figures]", "[t.k]", ""),
    "empty figures": (BASELINE.partition("[t.k.figures]\n")[2], "", "t.k.figures: missing key launches"),
    "no device": ('device = "H200"\n', "", "t.k: missing key device"),
    "empty device": ('"H200"', '""', "t.k.device: expected a text of length >= 1"),
    "device as a number": ('"H200"', "200", "t.k.device: expected a text, got a whole number"),
    "no rules": ("rules = 4\n", "", "t.k: missing key rules"),
    "rules as a text": ("rules = 4", 'rules = "4"', "t.k.rules: expected a whole number, got a text"),
    "later rules": ("rules = 4", "rules = 4000", "t.k.rules: expected a whole number <= "),
    "rules 0": ("rules = 4", "rules = 0", "t.k.rules: expected a whole number >= 1"),
    "unknown key": ("rules = 4", "rules = 4\nunit = 1", "t.k: unknown key unit"),
    "repeated key": ("rules = 4", "rules = 4\nrules = 4", ""),
    "repeated table": ("[t.k.figures]", "[t.k]\n[t.k.figures]", ""),
    "lines as a table": ("lines = [\n", "lines = [[\n", ""),
    "a line without a source": (', source = "x = 1"', "", "t.k.lines[0]: missing key source"),
    "a line that counts NaN": ("= 7 }", "= nan }", "t.k.lines[0].warp_instructions: expected a whole number"),
    "a line before its function": ("line = 1", "line = -1", "t.k.lines[0].line: expected a whole number >= 0"),
    "unknown counter of a line": ("= 7 }", "= 7, warps = 1 }", "t.k.lines[0]: unknown key warps"),
    "registers alone": ("shared_bytes = 0", "shared_bytes = 0\nregisters = 3", "t.k: missing key compiler"),
    "empty test": (BASELINE, "[t]\n", "t: expected at least one baseline"),
    "a number for a test": (BASELINE, "t = 1\n", "t: expected a table, got 1"),
    "a number for a baseline": (BASELINE, "[t]\nk = 1\n", "t.k: expected a table, got a whole number"),
    "an empty baseline": (BASELINE, "[t.k]\n", "t.k: missing key device"),
    "a list of tests": (BASELINE, "[[t]]\nk = 1\n", "t: expected a table, got [{'k': 1}]"),
    "deep": (BASELINE, f"t = {'[' * 100_000}\n", "nested too deep"),
    "JSON": (BASELINE, "{}", ""),
}  # fmt: skip
"""Old and new text of a valid file, and words of the message; "" for a message of the reader of TOML."""
PIN = '[[known]]\nkind = "race"\nfile = "a.py"\nline = "x = 1"\nreason = "known"\n'
PINS = {
    "a number for the list": (PIN, "known = 1\n", "known: expected a list, got a whole number"),
    "a text for the list": (PIN, 'known = "race"\n', "known: expected a list, got a text"),
    "a table for the list": ("[[known]]", "[known]", "known: expected a list, got a table"),
    "a list of numbers": (PIN, "known = [1]\n", "known[0]: expected a table, got a whole number"),
    "misspelled list": ("[[known]]", "[[knwon]]", "unknown key knwon"),
    "missing": ('kind = "race"\n', "", "known[0]: missing key kind"),
    "unknown": ("reason", "reasons", "known[0]: unknown key reasons"),
    "number": ('"a.py"', "1", "known[0].file: expected a text, got a whole number"),
    "blank reason": ('"known"', '" "', "known[0].reason: expected a text matching"),
    "deep": (PIN, f"known = {'[' * 100_000}", "nested too deep"),
    "not TOML": (PIN, "known", ""),
}
LAUNCHES = '{"format": "simtbed launches", "version": 1, "tests": {"t": {"jit": ["k (1, 1, 1) (1, 1, 1): rounds"]}}}'
RECORDS = {
    "version": ('"version": 1', '"version": 2', "version: invalid enum value 2"),
    "truth": ('"version": 1', '"version": true', "version: "),
    "format": ("simtbed launches", "simtbed run", "format: invalid enum value"),
    "missing": ('"version": 1, ', "", "missing key version"),
    "tests": ('{"t": ', '[{"t": ', ""),
    "lines": ('["k', '[1, "k', "tests[...][...][0]: expected a text, got a whole number"),
    "repeated": ('"version": 1', '"version": 1, "version": 1', "the key 'version' is repeated"),
    "NaN": ('"version": 1', '"version": NaN', "expected a finite number, got NaN"),
    "deep": (LAUNCHES, "[" * 100_000, "nested too deep"),
}


def _check_refused(path: Path, read: Callable[[Path], Any], good: str, expected: str, old: str, new: str) -> None:
    """Check that the file is read, and that the changed file is refused with one line."""
    assert old in good
    assert read(_written(path, good))
    with pytest.raises(SimtbedError) as caught:
        read(_written(path, good.replace(old, new, 1)))
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and expected in text, text
    assert "\n" not in text and len(text) < 400, text


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("read", "good", "cases"),
    [(Baselines.read, BASELINE, BASELINES), (read_file, PIN, PINS), (answers.read, LAUNCHES, RECORDS)],
)
def test_wrong_files_are_refused(
    read: Callable[[Path], Any], good: str, cases: dict[str, tuple[str, str, str]], tmp_path: Path
) -> None:
    def check(name: str) -> None:
        old, new, expected = cases[name]
        _check_refused(tmp_path / "file", read, good, expected, old, new)

    check_each(cases, check)


def test_values_of_a_compiler_are_complete(tmp_path: Path) -> None:
    for key, line in (("figures.registers", "registers = 3\n"), ("compiler", 'compiler = "V1"\n')):
        _check_refused(tmp_path / "file", Baselines.read, COMPILED, f"t.k: missing key {key}", line, "")


@pytest.mark.parametrize("words", [["--budget"], ["--known"]])
def test_a_command_with_a_wrong_file_exits_with_2(words: list[str], tmp_path: Path) -> None:
    path = _written(tmp_path / "file.toml", BASELINE.replace("launches = 1", "launches = nan"))
    code, printed, message = command(["check", *words, str(path), "iterative"])
    assert (code, printed) == (2, b"")
    assert message.startswith(f"simtbed: {path}: ") and message.count("\n") == 1


def test_a_pipe_is_no_file_of_a_project(tmp_path: Path) -> None:
    """Opening a pipe without a writer would wait for one."""
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    for read in (Baselines.read, read_file, answers.read, st.devices.find, st.Run.load):
        with pytest.raises(SimtbedError, match=r"pipe\.toml: expected a regular file"):
            read(str(path) if read is st.devices.find else path)  # type: ignore[arg-type]
