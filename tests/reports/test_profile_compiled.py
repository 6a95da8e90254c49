"""`simtbed profile --compiled`: what compiled kernels execute, predicted where nvcc and nvdisasm are installed."""

import json
from pathlib import Path

import pytest
from simtbed.engines.cuda import nvcc

from tests.compilers import needs_sass
from tests.reports.conftest import Simtbed
from tests.texts import texts
from tests.validation.recorded import load_record


@pytest.mark.slow
@needs_sass
def test_instructions_are_those_that_the_hardware_executed(simtbed: Simtbed) -> None:
    (measured,) = load_record("h200").counters["pairhmm intertask-naive"]
    content = json.loads(simtbed("profile", "intertask-naive", "--compiled", "--json").out)
    (kernel,) = content["kernels"]
    assert kernel["warp_instructions"] == pytest.approx(measured.figures["warp_instructions"], rel=0.05)
    assert kernel["registers"] == measured.figures["registers"]
    for pipe, count in kernel["pipes"].items():
        assert count == pytest.approx(measured.pipes.get(pipe, 0), abs=0.02 * measured.figures["warp_instructions"])
    table = simtbed("profile", "intertask-naive", "--compiled")
    assert table.code == 0
    assert "compiled view, counted from the executed SASS" in table.out
    assert table.out.splitlines()[4].split() == ["compiled", "source"]


@needs_sass
def test_instructions_of_both_views_are_side_by_side(simtbed: Simtbed) -> None:
    rows = [line.split() for line in simtbed("profile", "tree").out.splitlines()]
    source, compiled = next((int(row[2]), int(row[3])) for row in rows if row[:2] == ["tree", "1"])
    content = json.loads(simtbed("profile", "tree", "--json").out)
    assert (source, compiled) == (content["totals"]["warp_instructions"], content["compiled"][0]["warp_instructions"])
    assert source != compiled > 0
    assert json.loads(simtbed("profile", "tree", "--source-only", "--json").out).keys() == content.keys() - {"compiled"}


CUBIN = """
import numpy as np
import simtbed as st

x = np.ones(1000, np.float32)
st.cubin("k.cubin")["weighted"].launch(x, x, 1000, grid=8, block=128)
"""


@pytest.mark.slow
@needs_sass
def test_launches_of_cubins_are_reported(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built = nvcc.build(texts("compiled/kernels.cu")["weighted"], "weighted", "sm_90")
    Path("k.cubin").write_bytes(built.cubin)
    Path("script.py").write_text(CUBIN, encoding="utf-8")
    report = simtbed("profile", "--device", "H100", "script.py").out
    assert "weighted: " in report and "us predicted on H100" in report and "LDG.E" in report
    (kernel,) = json.loads(simtbed("profile", "--json", "script.py").out)["cubins"]
    assert kernel["counters"]["global_load_sectors"] == 125 and kernel["registers"] >= 16


def test_the_report_says_why_it_has_no_compiled_instructions(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "warp instructions are those of the source, without the compiler's: "
    assert f"{line}today's nvcc does not compile for K40\n" in simtbed("profile", "tree", "--device", "K40").out
    monkeypatch.setattr(nvcc, "find_tool", lambda name: None)
    assert f"{line}the CUDA compiler nvcc is not found" in simtbed("profile", "tree").out
    content = json.loads(simtbed("profile", "tree", "--json").out)
    assert content["compiled"] is None and "nvcc is not found" in content["compiled_reason"]


def test_without_the_tools_one_line_says_what_to_install(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvcc, "find_tool", lambda name: None)
    assert 'pip install "simtbed[nvcc]"' in simtbed("profile", "intertask-naive", "--compiled").refused(3)


def test_without_them_costs_are_said_to_be_those_of_the_ir(simtbed: Simtbed) -> None:
    result = simtbed("profile", "intertask-naive")
    assert "instructions executed by warps, from the IR" in result.out
