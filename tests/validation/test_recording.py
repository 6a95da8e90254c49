"""Records of GPU counters: calls of Nsight Compute, parsed pages, stored values, refused files."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simtbed import LaunchError, SimtbedError
from simtbed.compiled.instruction_counts import LocatedInstruction
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.sass import Instruction
from simtbed.reports.hardware import answers, nsight, profiled, profiled_process, record
from simtbed.reports.hardware.cases import VARIANTS, Case, data_set_cases, find
from simtbed.reports.hardware.figures import FIGURES
from simtbed.reports.hardware.nsight import Profile, parse
from simtbed.reports.hardware.recording import RecordingLauncher
from simtbed.runtime.engine import Resources
from simtbed.runtime.registry import EngineName

from tests.reports.conftest import Simtbed
from tests.validation.recorded import load_record

FEW = "tests.validation.cases:few"
RECORD = load_record("h200")
RAW = """==PROF== noise
"ID","Kernel Name","a.sum","b"
"","","inst",""
"0","first","1,234","16 (16)"
"1","second","5","0"
"""
SOURCE = """"Kernel Name","first"
"Address","Source","Instructions Executed","Thread Instructions Executed"
"0x10","      S2R R0,  SR_TID.X","6","120"
"0x20","@P0 BRA 0x10","5","100"
"Kernel Name","second"
"Address","Source","# Samples","Instructions Executed","Thread Instructions Executed"
"0x10","EXIT","0","1","32"
"""


# ------------------------------------------------------------------ Nsight Compute
def test_pages_are_read_launch_by_launch() -> None:
    first, second = parse(RAW, SOURCE, ["a.sum", "b"])
    assert first == Profile("first", {"a.sum": 1234, "b": 16}, (("S2R R0, SR_TID.X", 6, 120), ("@P0 BRA 0x10", 5, 100)))
    assert second == Profile("second", {"a.sum": 5, "b": 0}, (("EXIT", 1, 32),))


def test_missing_metric() -> None:
    with pytest.raises(LaunchError, match=r"no value of a\.sum for second"):
        parse(RAW.replace('"5"', '"n/a"'), SOURCE, ["a.sum", "b"])
    with pytest.raises(LaunchError, match="reports 2 launches and the SASS of 0"):
        parse(RAW, "", ["a.sum"])


def _ncu(folder: Path, script: str) -> Path:
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_ncu_does_not_control_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raw").write_text(RAW)
    (tmp_path / "source").write_text(SOURCE)
    pages = "".join(f'*"--page {page}"*) cat {tmp_path}/{page};; ' for page in ("raw", "source"))
    script = f'echo "$*" >> {tmp_path}/calls\ncase "$*" in {pages}esac'
    _ncu(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    profiles = nsight.profile(nsight.find_ncu(), ["python", "-m", "worker"], ["a.sum", "b"])
    assert [p.kernel for p in profiles] == ["first", "second"]
    profiled = (tmp_path / "calls").read_text().splitlines()[0]
    assert "--clock-control none" in profiled and profiled.endswith("--metrics a.sum,b python -m worker")


def test_errors_of_ncu_are_one_line(tmp_path: Path) -> None:
    ncu = _ncu(tmp_path, 'echo "==ERROR== ERR_NVGPUCTRPERM: no permission to read counters"; exit 1')
    with pytest.raises(LaunchError, match=r"^ncu failed: ==ERROR== ERR_NVGPUCTRPERM: no permission"):
        nsight.profile(ncu, ["true"], ["a.sum"])


def test_without_ncu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, "")
    with pytest.raises(LaunchError, match=r"Nsight Compute \(ncu\) is not found"):
        record.take([FEW])


# ------------------------------------------------------------------ taking a record
def _profiles(names: list[str], only: str) -> list[Profile]:
    """Return ncu's report of the cases' launches according to the stored record; sums are assigned to the first launch."""
    profiles = []
    metrics = {figure.name: figure.metric for figure in FIGURES if figure.metric}
    for case in find(names, only):
        launcher = RecordingLauncher("jit")
        case.run(launcher)
        by_digest = {counters.source: counters for counters in RECORD.counters[case.name]}
        launched_before = set()
        for launched in launcher.order:
            counters, first = by_digest[launched.digest], launched.digest not in launched_before
            launched_before.add(launched.digest)
            per_launch = ("registers", "occupancy")
            values = {m: counters.figures[n] if first or n in per_launch else 0.0 for n, m in metrics.items()}
            values |= {m: float(counters.pipes[p]) if first else 0.0 for p, m in profiled.PIPE_METRICS.items()}
            sass = tuple((r.placed.instruction.text, r.warps * first, r.threads * first) for r in counters.sass)
            profiles.append(Profile(launched.source.kernel, values, sass))
    return profiles


def _with_places(launched: KernelLaunches, placed: LocatedInstruction) -> Instruction:
    """Return an instruction as nvdisasm prints it, with the places of its line in the source, innermost first."""
    place_of = {line: place for place, line in launched.lines.items()}
    return replace(placed.instruction, places=tuple(place_of[line] for line in placed.place if line))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a GPU and tools that answer with the stored record."""

    def profile(ncu: Path, command: list[str], metrics: list[str]) -> list[Profile]:
        monkeypatch.setattr(profiled_process, "RecordingLauncher", lambda engine: RecordingLauncher("jit"))
        profiled_process.main(command[3], command[4], command[5:])
        return _profiles(command[5:], command[4])

    def built(launched: KernelLaunches, arch: str) -> Any:
        counters = next(o for kernels in RECORD.counters.values() for o in kernels if o.source == launched.digest)
        resources = Resources(counters.registers, counters.shared_bytes, 0, 0, 0, 0)
        return nvcc.Built(b"", resources, "nvcc"), tuple(_with_places(launched, ran.placed) for ran in counters.sass)

    monkeypatch.setattr(answers, "GPU", "jit")
    monkeypatch.setattr(record, "_compile", lambda *how: None)
    monkeypatch.setattr(nsight, "find_ncu", lambda: Path("ncu"))
    monkeypatch.setattr(nsight, "version", lambda ncu: RECORD.profiler)
    monkeypatch.setattr(nsight, "profile", profile)
    monkeypatch.setattr(record, "describe", lambda: {"device": "NVIDIA H200", "arch": "sm_90", "driver": RECORD.driver})
    monkeypatch.setattr(profiled, "_built", built)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(nvcc, "version", lambda nvcc: RECORD.toolkit)


@pytest.mark.usefixtures("gpu")
def test_a_record_is_taken_case_by_case() -> None:
    recorded, differences = record.take([FEW])
    assert (recorded.device, differences) == ("H200", [])
    assert list(recorded.answers) == list(recorded.counters)
    assert recorded.counters == {case.name: RECORD.counters[case.name] for case in find([FEW])}


@pytest.mark.usefixtures("gpu")
def test_some_cases_are_recorded_again() -> None:
    recorded, _ = record.take([FEW], "*naive")
    assert list(recorded.counters) == ["pairhmm intertask-naive"]
    spoilt = {**RECORD.counters, "pairhmm intertask-naive": ()}
    assert record.merged(replace(RECORD, counters=spoilt), recorded).counters == RECORD.counters
    with pytest.raises(SimtbedError, match="taken with NVIDIA H100, not with NVIDIA H200: take all of it again"):
        record.merged(replace(RECORD, gpu="NVIDIA H100"), recorded)
    with pytest.raises(SimtbedError, match="no case fits 'none'"):
        record.take([FEW], "none")


@pytest.mark.usefixtures("gpu")
def test_rows_of_the_op_table_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not profiled: ncu fails without a launch."""
    monkeypatch.setattr(nsight, "profile", lambda *how: pytest.fail("profiled"))
    recorded, differences = record.take(["tests.validation.cases:operations"], "bool-*")
    assert differences == [] and len(recorded.operations) > 1
    assert recorded.operations == {name: RECORD.operations[name] for name in recorded.operations}
    assert record.merged(replace(RECORD, operations={}), recorded).operations == recorded.operations


@pytest.mark.usefixtures("gpu")
def test_data_sets_are_recorded_with_their_times(tmp_path: Path) -> None:
    """The data set `example` is the shipped one; its case no longer waits for a GPU."""
    naive = "correction thread-per-read-lean"
    cases = {case.name: case for case in data_set_cases(tmp_path, naive)}
    emulated = {name: answers.answers_of(case, "jit") for name, case in cases.items()}
    recorded, differences = answers.take_answers(cases, emulated, frozenset(cases))
    name = f"{naive} example"
    assert (list(recorded), differences) == ([name], [])
    assert (
        set(recorded[name])
        == set(RECORD.answers[name])
        == {"sources", "output", "launches", "registers", "milliseconds", "rounding"}
    )
    same = ("sources", "output", "launches")
    assert [recorded[name][key] for key in same] == [RECORD.answers[name][key] for key in same]
    waiting = replace(RECORD, waiting=(naive, "bit_casts"))
    assert record.merged(waiting, replace(RECORD, answers=recorded)).waiting == ("bit_casts",)


@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_rounding_is_in_units_of_the_type(type: Any) -> None:
    """A difference of thousands of units in the last place is too large, one of ten is not. Integers are not rounded."""
    ones = np.ones(2, type)
    for units, fits in ((0, True), (10, True), (10_000, False)):
        launchers = (
            answers.AnswerLauncher("jit", rounded=[a]) for a in (ones, ones + type(units * np.finfo(type).eps))
        )
        a, b = launchers
        assert (a.rounding(b) <= answers.ROUNDING) == fits
    whole = (answers.AnswerLauncher("jit", rounded=[np.array([n])]) for n in (1, 2))
    assert next(whole).rounding(next(whole)) > answers.ROUNDING


@pytest.mark.usefixtures("gpu")
def test_different_answer_is_a_finding(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this case no launch is profiled and no file is written."""

    def wrong(case: Case, engine: EngineName) -> answers.AnswerLauncher:
        launcher = answers_of(case, engine)
        launcher.outputs = launcher.outputs[1:]
        return launcher

    answers_of = answers.answers_of
    monkeypatch.setattr(answers, "answers_of", wrong)
    monkeypatch.setattr(nsight, "profile", lambda *how: pytest.fail("profiled"))
    target = tmp_path / "h200.json"
    result = simtbed("record", "--cases", FEW, "-o", str(target))
    assert (result.code, result.out) == (1, "")
    assert result.err == "".join(f"{case.name}: output differs\n" for case in find([FEW]))
    assert not target.exists()


@pytest.mark.usefixtures("gpu")
def test_the_command_writes_one_file(simtbed: Simtbed, tmp_path: Path) -> None:
    target = tmp_path / "mine.json"
    assert simtbed("record", "--cases", FEW, "-o", str(target)).out == f"wrote {target}\n"
    written = record.load(target)
    assert written.counters == {case.name: RECORD.counters[case.name] for case in find([FEW])}
    assert simtbed("record", "--cases", FEW, "--only", "*naive", "-o", str(target)).code == 0
    assert record.load(target) == written
    path = tmp_path / "single.json"
    assert simtbed("record", "--cases", FEW, "--only", "*naive", "-o", str(path)).code == 0
    assert list(record.load(path).counters) == ["pairhmm intertask-naive"]
    assert "no such folder" in simtbed("record", "--data", str(tmp_path / "none")).refused()


@pytest.mark.usefixtures("gpu")
def test_launches_that_do_not_match_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "describe", lambda: {"device": "NVIDIA GeForce RTX 9999", "arch": "sm_90"})
    with pytest.raises(LaunchError, match="NVIDIA GeForce RTX 9999 is none of the devices known"):
        record.take([FEW])
    monkeypatch.setattr(record, "describe", lambda: {"device": "NVIDIA H200", "arch": "sm_90", "driver": RECORD.driver})
    complete = nsight.profile
    monkeypatch.setattr(nsight, "profile", lambda *how: complete(*how)[1:])
    with pytest.raises(LaunchError, match=r"\d+ launches were made, Nsight Compute reports \d+"):
        record.take([FEW])

    def other_code(*how: Any) -> list[Profile]:
        return [replace(p, instructions=p.instructions[1:]) for p in complete(*how)]

    monkeypatch.setattr(nsight, "profile", other_code)
    with pytest.raises(LaunchError, match="the SASS that ran is not what nvdisasm shows"):
        record.take([FEW])


# ------------------------------------------------------------------ files
def test_a_record_survives_its_file(tmp_path: Path) -> None:
    assert any(ran.placed.calls for kernels in RECORD.counters.values() for one in kernels for ran in one.sass)
    record.save(RECORD, tmp_path / "again.json")
    assert record.load(tmp_path / "again.json") == RECORD
    assert [p.name for p in tmp_path.iterdir()] == ["again.json"]


@pytest.mark.parametrize("content", ["[]", "{}", '{"counters": {"a": [{}]}}', "no", json.dumps({"counters": 3})])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(SimtbedError, match=r"record\.json: expected a record that `simtbed record` wrote") as caught:
        record.load(path)
    assert "\n" not in str(caught.value)


def test_missing_record(tmp_path: Path) -> None:
    with pytest.raises(SimtbedError, match=r"none\.json: No such file"):
        record.load(tmp_path / "none.json")


# ------------------------------------------------------------------ cases
def test_cases_are_found_by_name() -> None:
    names = [case.name for case in find([VARIANTS, "tests.validation.cases:cases"])]
    assert {"pairhmm wavefront-loaded", "pairhmm intertask-naive", "block_reduction"} <= set(names)
    with pytest.raises(SimtbedError, match=r"^missing:cases: expected module:function"):
        find(["missing:cases"])
    with pytest.raises(SimtbedError, match=r"^tests\.validation\.cases:none: expected module:function"):
        find(["tests.validation.cases:none"])
    for wrong in ("", ":x", "::", "os:sep", "os:path", "os:getcwd", "a b:c", "\0:x"):
        with pytest.raises(SimtbedError, match=r"expected (module:function|functions that give cases)"):
            find([wrong])
    with pytest.raises(SimtbedError, match=r"^two cases are called .*pairhmm wavefront"):
        find([VARIANTS, VARIANTS])


def test_without_a_checkout_cases_and_records_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simtbed: Simtbed
) -> None:
    """An installed package has no validation kernels and no records."""
    missing = ModuleNotFoundError("No module named 'tests'", name="tests")
    monkeypatch.setattr("simtbed.reports.hardware.cases.importlib.import_module", Raises(missing))
    monkeypatch.chdir(tmp_path)
    times = simtbed("hardware", "errors", "times.json", "--cases", "tests.validation.launches:timed")
    assert "times.json: No such file" in times.refused()
    (tmp_path / "times.json").write_text(
        json.dumps({"device": "H200", "launches": {"a": {"warm_us": 1, "cold_us": 1}}})
    )
    for result in (simtbed("hardware", "errors", "times.json"), simtbed("hardware", "compare")):
        assert "run this in a checkout of simtbed, or name" in result.refused()


class Raises:
    """A function with one outcome, an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, *arguments: object) -> object:
        raise self.error
