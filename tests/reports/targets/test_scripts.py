"""Ordinary scripts run under profile, check and verify without a change; tests/validation runs all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pages import ROOT
from tests.reports.conftest import Simtbed

SCRIPTS = sorted((ROOT / "examples/scripts").glob("*.py"))
LAUNCHES = {
    "histogram": 2, "mandelbrot": 1, "matmul": 2, "monte_carlo_pi": 4, "nearest_neighbours": 2, "prefix_sum": 5,
    "reduction": 3, "saxpy": 1, "stencil": 4, "transpose": 3,
}  # fmt: skip


def test_there_are_ten() -> None:
    assert [script.stem for script in SCRIPTS] == sorted(LAUNCHES)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), [("profile", "transpose"), ("check", "reduction"), ("verify", "saxpy")])
def test_a_script(command: str, name: str, simtbed: Simtbed, tmp_path: Path) -> None:
    assert_launches(command, ROOT / f"examples/scripts/{name}.py", simtbed, tmp_path)


@pytest.mark.slow
def test_an_array_that_no_launch_has_is_refused(simtbed: Simtbed) -> None:
    result = simtbed("verify", "--any-order", "slots", str(ROOT / "examples/scripts/saxpy.py"))
    assert "--any-order slots: no launch has this array; there are " in result.refused()


def assert_launches(command: str, script: Path, simtbed: Simtbed, folder: Path) -> None:
    """The command succeeds and reports all launches of the script."""
    report = folder / "report.json"
    result = simtbed(command, "--json", "-o", str(report), str(script))
    assert (result.code, result.err) == (0, "")
    content = json.loads(report.read_text(encoding="utf-8"))
    assert sum(row["launches"] for row in content["kernels"]) == LAUNCHES[script.stem]
