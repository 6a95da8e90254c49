"""Whole CUDA C++ programs that crash, do not end, fork, exec, or end without a return from `main`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.table_checks import each_row
from tests.texts import texts

pytest.importorskip("ziglang")

PROGRAM = texts("host_apis/programs.cu")["ends of programs"]
ENDS = {
    "crash": (139, "crash: ended by SIGSEGV"), "abort": (134, "abort: ended by SIGABRT"), "throw": (134, "throw: ended by SIGABRT"),
    "divide": (136, "divide: ended by SIGFPE"), "deep": (139, "deep: ended by SIGSEGV"), "loop": (142, ""),
    "limit": (152, "limit: ended by SIGXCPU"), "kill": (137, "kill: ended by SIGKILL"), "terminate": (143, ""), "handler": (6, ""),
    "kernel": (7, "without ending"), "fork": (4, ""), "exec": (8, "other"), "system": (9, ""), "quick": (10, ""), "callback": (5, ""),
    "thread": (11, ""), "leaving thread": (12, ""), "many": (13, ""), "kept": (14, "20,000 bytes in 20,000 allocations are not freed"),
    "stdin": (97, ""), "end": (16, "after the end"), "closed": (17, ""), "large": (18, ""), "none": (0, ""),
}  # fmt: skip
"""Exit code and text of the output by the program's argument."""


def _command(folder: Path, word: str) -> tuple[list[str], dict[str, str]]:
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "program.cu").write_text(PROGRAM)
    words = [sys.executable, "-m", "simtbed", "check", "program.cu", "--", word]
    return words, {**os.environ, "TMPDIR": str(folder / "tmp")}


@pytest.mark.slow
@pytest.mark.integration
@each_row(ENDS)
def test_ends_of_programs(word: str, tmp_path: Path) -> None:
    code, expected = ENDS[word]
    words, environment = _command(tmp_path, word)
    result = subprocess.run(
        words, cwd=tmp_path, env=environment, input="a\n", capture_output=True, text=True, timeout=600, check=False
    )
    output = result.stdout + result.stderr
    assert (result.returncode, expected in output, "Traceback" in output) == (code, True, False), result
    assert result.stderr.count("simtbed:") <= 1 and "k  " in result.stdout, result
    assert not [*(tmp_path / "tmp").iterdir()]


@pytest.mark.slow
@pytest.mark.integration
def test_signal_during_a_build(tmp_path: Path) -> None:
    """The command forwards it to the process that builds the program, which removes its files."""
    words, environment = _command(tmp_path, "none")
    (tmp_path / "program.cu").write_text(PROGRAM.replace("started", str(os.getpid())))
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not [*(tmp_path / "tmp").glob("*/include")] and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=100)
    assert (process.returncode, output) == (143, b"")
    assert not [*(tmp_path / "tmp").iterdir()]
