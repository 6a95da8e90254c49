"""`simtbed bench`: its rows, the order of its measurements, and the results of the timed workloads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simtbed import SimtbedError
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.kernels import FAMILIES
from simtbed.reports.bench import emulation as benchmark
from simtbed.reports.bench import oclgrind
from simtbed.reports.bench.kernels import BLOCK, SMALL, Size, Work, matrix, pairs, works
from simtbed.reports.bench.start import started
from simtbed.reports.launchers import Runner

from tests.reports.conftest import Simtbed

TINY = Size(4, 2, 32)
GENERAL = ["transpose, pitch 33", "transpose, pitch 32", "block sum"]
NAMES = ["wavefront-loaded", "block sum"]
"""The measured workloads: two represent all."""


def _work(name: str, size: Size = TINY) -> Work:
    return next(work for work in works(size) if work.name == name)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One short sample of two workloads, started in this process."""
    monkeypatch.setattr(benchmark, "STARTS", 1)
    monkeypatch.setattr(benchmark, "SAMPLE", 0.001)
    monkeypatch.setattr(benchmark, "works", lambda size: [work for work in works(size) if work.name in NAMES])
    monkeypatch.setattr(benchmark, "_process", lambda module, words, **_: started(words[0], Size(*map(int, words[1:]))))


def test_every_work_has_a_row(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.bench(2, False, True, TINY) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["work"] for row in content["throughput"]] == NAMES == [row["work"] for row in content["starts"]]
    measured = [value for row in content["throughput"] for value in row.values() if isinstance(value, dict)]
    assert measured
    for row in measured:
        assert 0 < row["least"] <= row["median"] <= row["most"]


def test_peers_are_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(benchmark, "STARTS", 1)
    monkeypatch.setattr(benchmark, "SAMPLE", 0.001)
    names = ["intertask-naive", "wavefront-loaded", *GENERAL]
    monkeypatch.setattr(benchmark, "works", lambda size: [work for work in works(size) if work.name in names])
    monkeypatch.setattr(benchmark, "SMALL", TINY)
    monkeypatch.setattr(benchmark, "COMPILED_PEER", Size(4, 2, 256))
    assert benchmark.bench(2, True, True, TINY) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["work"] for row in content["throughput"]] == names == [row["work"] for row in content["starts"]]
    peers = ["CUDASIM", "Oclgrind"] if oclgrind.installed() else ["CUDASIM"]
    expected = [(peer, name) for peer in peers for name in ("intertask-naive", *GENERAL)]
    assert [(row["peer"], row["work"]) for row in content["peers"]] == expected
    for row in (*content["throughput"], *content["peers"]):
        for value in row.values():
            if isinstance(value, dict):
                assert 0 < value["least"] <= value["median"] <= value["most"]


def test_oclgrind_gets_the_launch() -> None:
    work = _work("block sum")
    lines = oclgrind._simulation(work.request()).splitlines()
    assert lines[:5] == ["kernels.cl", "block_sum", "1024 1 1", "256 1 1", "<size=4096 uint>"]
    assert lines[6:] == ["<size=16 uint dump>", " ".join(["4294967295"] * 4)]
    x = np.array(lines[5].split(), np.uint32).view(np.float32)
    assert np.array_equal(x, matrix(TINY))


def test_a_wrong_answer_of_oclgrind_is_no_figure(tmp_path: Path) -> None:
    program = tmp_path / "oclgrind-kernel"
    program.write_text(
        '#!/bin/sh\necho "Argument \'out\': 16 bytes"\nfor i in 0 1 2 3; do echo "  out[$i] = 0"; done\n'
    )
    program.chmod(0o755)
    with pytest.raises(SimtbedError, match="out of Oclgrind and of the jit engine differ"):
        oclgrind.simulated(str(program), _work("block sum"), 1)


def test_the_second_start_finds_what_the_first_compiled(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simtbed.reports.bench.start", "block sum", "4", "2", "32"]
    states = []
    for _ in range(2):
        completed = subprocess.run(
            command, env={**os.environ, "SIMTBED_CACHE": str(tmp_path)}, capture_output=True, check=True
        )
        assert json.loads(completed.stdout)["compile"] > 0
        states.append({file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()})
    assert states[0] and states[0] == states[1]


def test_the_tables_have_the_same_rows(short: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.bench(1, False, False, TINY) == 0
    out = capsys.readouterr().out
    assert all(sum(line.startswith(name + "  ") for line in out.splitlines()) == 2 for name in NAMES)
    assert "gap continuation quality 2" in out and "CUDASIM" not in out


def test_every_variant_is_measured() -> None:
    assert [work.name for work in works(TINY)] == [*FAMILIES["pairhmm"].variants, *GENERAL]


def test_rounds_cannot_be_none(simtbed: Simtbed) -> None:
    assert "--repeat" in simtbed("bench", "--repeat", "0").refused()


@pytest.mark.parametrize("name", GENERAL[:2])
def test_transposes(name: str) -> None:
    work, x = _work(name), matrix(TINY)
    expected = x.reshape(TINY.side, TINY.side).T.ravel()
    assert np.array_equal(LlvmEngine(threads=1).run(work.request()).buffers["out"], expected)
    work.scalar()
    assert np.array_equal(work.scalar.args[1], expected)  # type: ignore[attr-defined]


def test_block_sums() -> None:
    work, x = _work("block sum"), matrix(TINY)
    expected = x.reshape(-1, BLOCK).astype(np.float64).sum(axis=1)
    work.scalar()
    for result in (LlvmEngine(threads=1).run(work.request()).buffers["out"], work.scalar.args[1]):  # type: ignore[attr-defined]
        assert np.allclose(result, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", FAMILIES["pairhmm"].variants)
def test_one_launch_solves_all_pairs(name: str) -> None:
    """The timed work is the complete problem: one launch in float, none in double, and the partition of pairs."""
    family, runner, problem = FAMILIES["pairhmm"], Runner("jit", counting=True), pairs(TINY)
    answer = family.solve(problem, name, runner)
    assert family.compare(answer, family.oracle(problem)).agrees
    kernel = family.variants[name].kernel.__name__
    ((program, counters),) = [counted for counted in runner.counted if counted[0].kernel.name == kernel]
    request = _work(name).request()
    assert request.program is program
    assert benchmark.warp_instructions(LlvmEngine(threads=1), request) == counters.totals()["warp_instructions"]


def test_no_denormals() -> None:
    """The rows of the last cells, as intertask-naive leaves them, are zero or normal."""
    buffers = LlvmEngine(threads=1).run(_work("intertask-naive", SMALL).request()).buffers
    for name in ("match_row", "insertion_row", "deletion_row"):
        values = np.abs(buffers[name])
        assert not ((values > 0) & (values < np.finfo(np.float32).tiny)).any(), name
