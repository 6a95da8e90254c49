"""A signal at any moment of any command: the exit code is that of the signal, stderr is empty, and no file is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hostile import moments
from tests.table_checks import check_each, each_row

COMMANDS = (
    ("list",), ("explain", "sfs/iterative"), ("pairhmm", "--example"), ("align", "--example"), ("correct", "--example"),
    ("sfs", "--example"), ("simulate", "-o", "reads", "--genome", "1000"), ("profile", "sfs/iterative"), ("check", "sfs/iterative"),
    ("verify", "sfs/iterative"), ("cuda", "sfs/iterative"), ("whatif", "sfs/iterative"), ("diff", "sfs/iterative", "sfs/iterative"),
    ("report", "lu2012"), ("new", "smooth"), ("ci", "init", "github"), ("doctor",),
)  # fmt: skip
STEP = 37
"""Imports between two moments."""
NEARLY = 0.9
"""Fraction of the imports that every run of a command makes."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_signal_at_an_import(command: tuple[str, ...], tmp_path: Path) -> None:
    for _ in range(4):  # later runs find all code in the cache
        imports = moments.count(command, tmp_path)
        for path in sorted(tmp_path.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()

    def check(moment: int) -> None:
        number = SIGNALS[moment % len(SIGNALS)]
        code, errors = moments.run(moment, number, command, tmp_path)
        if code == 0 and moment > NEARLY * imports:  # threads that optimise import in some runs only
            assert int(errors.splitlines()[-1]) < moment
        else:
            assert (code, errors) == (128 + number, "")
        assert list(tmp_path.iterdir()) == []

    check_each(range(moments.FIRST, imports, STEP), check)


@pytest.mark.parametrize(
    "command", [("check", "--family", "sfs"), ("pairhmm", "--example", "--dask", "local")], ids=" ".join
)
@each_row([(number, seconds) for number in SIGNALS for seconds in (0.0, 0.3, 1.0, 2.0, 4.0)])
def test_a_signal_to_a_group_of_processes(
    row: tuple[signal.Signals, float], command: tuple[str, ...], tmp_path: Path
) -> None:
    number, seconds = row
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import sys; sys.argv[0] = 'simtbed'\n"
    )
    program += "from simtbed.reports.cli.app import main; sys.stdout.write('x'); sys.stdout.flush(); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *command],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout and process.stdout.read(1) == b"x"
    time.sleep(seconds)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=120)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert code in (0, 128 + number) and errors == b""
