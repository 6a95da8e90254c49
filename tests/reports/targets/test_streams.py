"""Streams of a command on a program: the report on stdout, the output of the program on stderr."""

import json
from pathlib import Path

import pytest
from simtbed.reports.cli import app

from tests.table_checks import check_each

PROGRAM = """
import numpy as np
import simtbed as st

@st.kernel
def fill(out: st.Global[st.i32]) -> None:
    out[st.thread.x] = st.thread.x

print("spoken by the program")
st.launch(fill, grid=1, block=32, args=dict(out=st.empty(32, st.i32)))
"""
COMMANDS = ("profile", "check", "verify", "cuda", "whatif")


@pytest.mark.slow
def test_a_report_is_alone_on_stdout(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fill.py").write_text(PROGRAM)

    def run(*words: str) -> tuple[str, str]:
        assert app.run(words) == 0
        return capfd.readouterr()

    def check(command: str) -> None:
        out, err = run(command, "fill.py")
        assert "fill" in out and "spoken" not in out and err.count("spoken by the program") == 1
        out, err = run(command, "--json", "fill.py")
        json.loads(out)
        assert "spoken" in err
        out, err = run(command, "-o", "report.txt", "fill.py")
        assert out == "spoken by the program\n" and "fill" in Path("report.txt").read_text()
        out, _ = run(command, "-o", "/dev/stdout", "fill.py")
        assert "fill" in out and "spoken" not in out

    check_each(COMMANDS, check)
    assert run("cuda", "fill.py")[0].startswith("// fill, for blocks of 32 threads")
