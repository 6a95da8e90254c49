"""`simtbed pairhmm`, from file to file, on the shipped example."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simtbed.kernels import FAMILIES, Launcher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host import files, files_gatk, pipeline
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.problem import Problem

from tests.reports.conftest import Simtbed


@pytest.mark.slow
def test_the_answer_is_all_of_stdout(simtbed: Simtbed) -> None:
    plain, reported = simtbed("pairhmm", "--example"), simtbed("pairhmm", "--example", "--check", "--counters")
    assert (plain.code, plain.err) == (0, "")
    assert (reported.code, reported.out) == (0, plain.out)
    reads, haplotypes = map(int, plain.out.splitlines()[0].split())
    rows = plain.out.splitlines()[1 : 1 + reads]
    assert [len(row.split()) for row in rows] == [haplotypes] * reads
    assert all(float(value) < 0 for row in rows for value in row.split())
    assert " values and the oracle agree: worst " in reported.err
    assert "global_load_sectors" in reported.err


@pytest.mark.slow
def test_the_table_form_has_the_same_values(simtbed: Simtbed) -> None:
    table = [line.split("\t") for line in simtbed("pairhmm", "--example", "--format", "tsv").out.splitlines()]
    assert table[0] == ["record", "read", "haplotype", "log10"]
    matrix = simtbed("pairhmm", "--example").out.splitlines()
    haplotypes = int(matrix[0].split()[1])
    assert [float(row[3]) for row in table[1 : 1 + haplotypes]] == [float(value) for value in matrix[1].split()]


def test_bad_input_leaves_no_output(simtbed: Simtbed, tmp_path: Path) -> None:
    source, target = tmp_path / "short.in", tmp_path / "short.out"
    source.write_text("2 1\nACGT IIII IIII IIII ++++\n")
    assert f"{source}:" in simtbed("pairhmm", str(source), "-o", str(target)).refused()
    assert not target.exists()


def _mixed(path: Path) -> Path:
    """A file of several records."""
    problem = generate(5, records=7, reads=(1, 4), haplotypes=(1, 3), read_length=(10, 30), haplotype_length=(30, 50))
    path.write_text("".join(files.records(problem)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["gpupairhmm", "tsv"])
def test_a_file_is_solved_in_pieces(
    form: str, simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much at a time as is read at a time: memory does not grow with the file."""
    source = _mixed(tmp_path / "some.in")
    options = ("pairhmm", str(source), "--format", form, "--check", "--json")
    whole, solved = simtbed(*options), []

    def noted(problem: Problem, variant: str, launcher: Launcher) -> Any:
        solved.append(len(problem.bases))
        return pipeline.solve(problem, variant, launcher)

    monkeypatch.setattr(files, "BLOCK", 256)
    monkeypatch.setitem(FAMILIES, "pairhmm", replace(FAMILY, solve=noted))
    pieces = simtbed(*options)
    assert (pieces.code, pieces.out) == (whole.code, whole.out) == (0, whole.out)
    assert len(solved) > 3
    assert json.loads(pieces.err)["agreement"] == json.loads(whole.err)["agreement"]


@pytest.mark.slow
def test_a_mistake_far_into_a_file_leaves_no_output(
    simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK", 256)
    source, target = _mixed(tmp_path / "some.in"), tmp_path / "some.out"
    lines = source.read_text().splitlines()
    source.write_text("\n".join([*lines, "1 1", "A I I I"]))
    for options in ((), ("-o", str(target))):
        assert f"{source}:{len(lines) + 1}: expected 1 reads" in simtbed("pairhmm", str(source), *options).refused()
    assert [path.name for path in tmp_path.iterdir()] == ["some.in"]


def test_an_output_that_cannot_be_written_is_one_line(simtbed: Simtbed, tmp_path: Path) -> None:
    target = tmp_path / "no folder" / "answer.out"
    assert "no folder" in simtbed("pairhmm", "--example", "-o", str(target)).refused()


@pytest.mark.slow
def test_several_gpus_share_the_file(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the jit engine in the GPUs' place: the same answer in the same order."""
    assert "--gpus 2 needs --engine cuda" in simtbed("pairhmm", "--example", "--gpus", "2").refused()
    source = tmp_path / "many.in"
    files_of_example = "".join(files.records(FAMILY.example())) * 3
    source.write_text(files_of_example)
    monkeypatch.setattr(files, "BLOCK", len(files_of_example) // 7)
    monkeypatch.setattr("simtbed.reports.cli.pairhmm.require_gpus", lambda gpus, engine: None)
    monkeypatch.setattr("simtbed.reports.gpu_count.BYTES_PER_GPU", 1)
    alone, shared = (simtbed("pairhmm", str(source), "--gpus", str(gpus)) for gpus in (1, 3))
    assert (shared.code, shared.out) == (0, alone.out)


@pytest.mark.slow
def test_a_dump_of_gatk_in_and_out(simtbed: Simtbed, tmp_path: Path) -> None:
    problem = generate(5, records=2)
    path, target = tmp_path / "dump", tmp_path / "again"
    path.write_bytes(b"".join(files_gatk.lines(problem, np.zeros(len(problem.pairs[0])))))
    result = simtbed("pairhmm", str(path), "--format", "gatk", "--check", "-o", str(target))
    assert (result.code, result.err) == (0, "")
    ((_, answers),) = files_gatk.batches(target)
    assert np.abs(answers - FAMILY.oracle(problem)).max() < 1e-5
    assert files.read(path).record_reads.tolist() == problem.record_reads.tolist()
