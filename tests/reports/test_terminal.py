"""Progress without a terminal."""

import pytest
from simtbed.reports.terminal import announced, progress


def test_a_step_of_a_benchmark_is_a_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with announced("saxpy: throughput\x1b"):
        assert capsys.readouterr() == ("", "saxpy: throughput\\x1b\n")
    with progress("what if") as show:
        show("1 of 2")
    assert capsys.readouterr() == ("", "")
