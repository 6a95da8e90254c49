"""`simtbed hardware compare`: differences, stale kernels, idle reasons, the command."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.reports.hardware import compare as comparing
from simtbed.reports.hardware import record, text
from simtbed.reports.hardware.compare import Executions, compare
from simtbed.reports.hardware.figures import FIGURES
from simtbed.reports.hardware.profiled import Profiled
from simtbed.sass.operands import UnsupportedInstruction

from tests.reports.conftest import Simtbed
from tests.validation.recorded import load_record

FEW, NAIVE = "tests.validation.cases:few", "pairhmm intertask-naive"


# ------------------------------------------------------------------ differences
@pytest.fixture(scope="module")
def few_recorded() -> record.Record:
    full = load_record("h200")
    names = ("pairhmm wavefront-loaded", NAIVE)
    return replace(full, counters={name: full.counters[name] for name in names})


def compared(recorded: record.Record, kernel: Profiled) -> comparing.Comparison:
    """Compare a record with other counters of the naive kernel."""
    return compare(replace(recorded, counters=recorded.counters | {NAIVE: (kernel,)}), [FEW])


def test_different_metric_is_unexplained(few_recorded: record.Record) -> None:
    kernel = few_recorded.counters[NAIVE][0]
    wrong = replace(kernel, figures=kernel.figures | {"global_load_sectors": kernel.figures["global_load_sectors"] + 1})
    comparison = compared(few_recorded, wrong)
    assert [(c.kernel, c.figure.name) for c in comparison.unexplained] == [(NAIVE, "global_load_sectors")]
    assert not comparison.holds
    assert "UNEXPLAINED" in text.table(comparison)


def test_changed_kernel_is_stale(few_recorded: record.Record) -> None:
    comparison = compared(few_recorded, replace(few_recorded.counters[NAIVE][0], source="0" * 64))
    assert comparison.stale == (NAIVE,)
    assert f"{NAIVE} is not in the record as it is printed now; record it again" in text.table(comparison)


def test_idle_reason_is_reported(few_recorded: record.Record, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = comparing.Reason((NAIVE,), ("global_load_sectors",), "none", "")
    monkeypatch.setattr(comparing, "reasons", lambda: (*real(), idle))
    comparison = compare(few_recorded, [FEW])
    assert comparison.idle == (idle,)
    assert f"{NAIVE}: the reason given for global_load_sectors explains nothing" in text.table(comparison)


def test_a_reason_is_idle_only_when_all_its_kernels_are_compared(
    few_recorded: record.Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = comparing.Reason(("pairhmm intertask-naive", "correction *"), ("global_load_sectors",), "none", "")
    monkeypatch.setattr(comparing, "reasons", lambda: (*real(), wide))
    assert compare(few_recorded, [FEW]).idle == ()


real = comparing.reasons


def test_a_kernel_that_is_not_emulated_is_named(few_recorded: record.Record, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(launched: KernelLaunches, *rest: Any) -> tuple[dict[str, float], Executions]:
        if launched.source.kernel == "intertask_naive":
            raise UnsupportedInstruction("HADD2.FOO R0, R1, R2 at 0x0080 is not emulated")
        return emulated_figures(launched, *rest)

    emulated_figures = comparing.emulated_figures
    monkeypatch.setattr(comparing, "emulated_figures", refuse)
    comparison = compare(few_recorded, [FEW])
    assert list(comparison.refused) == ["pairhmm intertask-naive"]
    assert {cell.kernel for cell in comparison.cells} == comparison.executions.keys()
    assert comparison.executions == {f"pairhmm wavefront-loaded, kernel {n}": (0, 0) for n in (1, 2, 3)}
    line = "pairhmm intertask-naive is not compared: HADD2.FOO R0, R1, R2 at 0x0080 is not emulated"
    assert line in text.table(comparison) and line in text.markdown(comparison)


def test_tolerances() -> None:
    def within(goal: str, emulated: float, measured: float) -> bool:
        figure = next(f for f in FIGURES if f.goal == goal)
        return comparing.Cell("kernel", figure, emulated, measured).within_tolerance

    assert [within("equal", 3, n) for n in (3, 4)] == [True, False]
    assert [within("5 %", n, 100) for n in (95, 105, 94, 106)] == [True, True, False, False]
    assert [within("2 points", n, 0.5) for n in (0.52, 0.48, 0.53)] == [True, True, False]
    assert within("shown", 0, 7)


# ------------------------------------------------------------------ the command line


def test_the_command_compares_on_any_machine(simtbed: Simtbed) -> None:
    plain = simtbed("hardware", "compare", "--cases", FEW)
    assert plain.code == 0
    assert plain.out.splitlines()[0].split() == ["figure", "goal", "met", "worst"]
    content = json.loads(simtbed("hardware", "compare", "--cases", FEW, "--json").out)
    assert (content["holds"], content["stale"]) == (True, [])
    assert {c["kernel"] for c in content["cells"]} >= {"pairhmm intertask-naive", "pairhmm wavefront-loaded, kernel 1"}


def test_another_record_may_be_named(simtbed: Simtbed, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    record.save(load_record("h200"), path)
    result = simtbed("hardware", "compare", "--device", str(path), "--cases", "tests.validation.cases:cases")
    assert result.code == 0
    assert "UNEXPLAINED" not in result.out


def test_a_device_without_a_record(simtbed: Simtbed) -> None:
    assert (
        "tests/validation/records/k40.json: no such file: run this in a checkout of simtbed, or name a record"
        in simtbed("hardware", "compare", "--device", "K40").refused()
    )
    assert "no device is called" in simtbed("hardware", "compare", "--device", "B300").refused()


def test_recording_needs_the_tools(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, "")
    assert "Nsight Compute (ncu) is not found" in simtbed("record").refused(3)
    assert "there is no folder" in simtbed("record", "-o", str(tmp_path / "no" / "x.json")).refused()
    assert "name its file with --output" in simtbed("record", "--only", "sfs *").refused()
    target = str(tmp_path / "x.json")
    assert "Nsight Compute (ncu) is not found" in simtbed("record", "--only", "sfs *", "-o", target).refused(3)
