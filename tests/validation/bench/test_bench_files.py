"""`simtbed bench files`: rows are measured, inputs are what they say, what is missing is said."""

import json
import zlib
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels.alignment.host.files import table
from simtbed.kernels.files import write
from simtbed.kernels.sfs.host.files import read as read_sites
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.reports.bench import files, generated_inputs

from tests.reports.conftest import Simtbed


def test_rows_are_commands_that_run(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = files._simulated(1_000, 20, 36, "reads.fastq")
    small = (
        replace(files.ROWS[2], make=reads, records=556, peer="no-such-program {in}"),
        files.Row(
            "gzip", files._as_gzip(reads, "reads.gzip"), "correct {in} -o {out}.gz --engine {engine}", 556, "reads",
            peer="cat {in}",
        ),
        files.Row("absent", files._published("missing/x.in"), "pairhmm {in} -o {out}", 1, "pairs"),
    )  # fmt: skip
    monkeypatch.setattr(files, "ROWS", small)
    result = simtbed("bench", "files", "--repeat", "1", "--json")
    assert result.code == 0 and [*result.err.splitlines()] == [row.name for row in small], "a line for each command"
    correct, packed, absent = json.loads(result.out)["rows"]
    assert correct["command"].startswith("simtbed correct {in} -o {out}") and "peer seconds" not in correct
    for row in (correct, packed):
        assert 0 < row["seconds"] < 60 and row["processor seconds"] > 0 and 20 < row["MB resident"] < 2_000
        assert row["records/s"] == pytest.approx(556 / row["seconds"], rel=0.01, abs=1)
    assert packed["peer seconds"] < packed["seconds"]
    assert "SIMTBED_DATA names no folder with missing/x.in" in absent["missing"]
    table_of = simtbed("bench", "files", "--repeat", "1", "--only", "absent").out
    assert "absent: SIMTBED_DATA names no folder" in table_of


def test_a_failed_row_of_a_figure_keeps_the_other_rows(
    simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = tmp_path / "figures.json"
    observed = []

    def reads(folder: Path) -> Path:
        observed.append(json.loads(figures.read_text())["rows"] if figures.exists() else [])
        write(folder / "reads.fastq", ["@r\nACGT\n+\nIIII\n"])
        return folder / "reads.fastq"

    shared = files._simulated(1_000, 20, 36, "reads.fastq")
    line = "correct {in} -o {out} --engine {engine}"
    broken = files.Row("broken", reads, "correct {in} --k 99 -o {out}", 1, "reads", inputs="same")
    rows = (
        broken,
        replace(broken, name="good", command=line),
        files.Row("other", shared, line, 556, "reads", peer="false"),
    )
    monkeypatch.setattr(files, "ROWS", rows)
    result = simtbed("bench", "files", "--repeat", "2", "--output", str(figures))
    assert result.code == 3
    assert "broken: " in result.out and "--k" in result.out
    assert [len(found) for found in observed] == [0, 1]
    content = json.loads(figures.read_text())
    failed, good, other = content["rows"]
    assert content["repeat"] == 2 and content["engine"] == "jit"
    assert "ended with 2" in failed["failed"] and "seconds" not in failed
    assert len(good["runs"]) == 2 and min(good["runs"]) <= good["seconds"] <= max(good["runs"])
    assert other["name"] == "other" and "peer seconds" not in other
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_memory_is_the_programs_own() -> None:
    """Not that of the process that measures it, which may be large."""
    large = np.ones(300_000_000, np.uint8)
    usage = files._run(["true"])
    assert 0 < usage.memory < large.nbytes / 4 and usage.wall > 0


def test_output_is_a_file_and_of_files(simtbed: Simtbed, tmp_path: Path) -> None:
    assert "--output needs a file name" in simtbed("bench", "files", "--output", "-").refused()
    assert "--output of bench needs files" in simtbed("bench", "sfs", "--output", str(tmp_path / "x")).refused()


def test_gzip_is_one_member_of_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_inputs, "TOGETHER", 5_000)
    content = np.random.default_rng(1).integers(65, 70, 123_457).astype(np.uint8).tobytes()
    write(tmp_path / "plain", [content])
    packed = b"".join(generated_inputs.as_gzip(tmp_path / "plain"))
    decoder = zlib.decompressobj(wbits=31)
    assert decoder.decompress(packed) == content and decoder.eof and not decoder.unused_data
    assert len(packed) < len(content) / 2


def test_unknown_rows_are_refused(simtbed: Simtbed) -> None:
    assert (
        "bench files has no 'x'; it has start, simulate, correct" in simtbed("bench", "files", "--only", "x").refused()
    )
    assert "bench pairhmm has no section 'x'" in simtbed("bench", "pairhmm", "--only", "x").refused()


def test_pairs_have_one_to_eight_edits(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    write(path, islice(generated_inputs.aligned_pairs(), 200))
    lengths = [len(line.split("\t")[0]) for line in path.read_text().splitlines()]
    assert min(lengths) >= 300 and max(lengths) <= 520
    pairs = [line.split("\t") for line in path.read_text().splitlines()]
    assert sum(reference != alternate for reference, alternate in pairs) > 150  # a change may keep the letter
    assert all(abs(len(reference) - len(alternate)) <= 8 for reference, alternate in pairs)
    assert sum(len(problem) for problem in table(path)) == 200


def test_variants_are_a_vcf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_inputs, "SITES_AT_ONCE", 3)
    path = tmp_path / "few.vcf"
    write(path, generated_inputs.variants(7))
    problem = read_sites(path)
    assert problem.likelihoods.shape == (7, generated_inputs.SAMPLES, 3)
    first = likelihoods(1, 3, generated_inputs.SAMPLES)
    np.testing.assert_allclose(problem.likelihoods[:3], first, rtol=1e-5)


def test_the_same_seed_gives_the_same_file() -> None:
    first, other = (b"".join(islice(generated_inputs.aligned_pairs(), 20)) for _ in range(2))
    assert first == other
