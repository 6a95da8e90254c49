"""`simtbed sfs`, from file to file."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import sites
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.kernels.sfs.host.problem import Problem
from simtbed.oracles import sfs as oracle

from tests.reports.conftest import Simtbed

VCF = """##fileformat=VCFv4.2
##contig=<ID=1>
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Phred">
#CHROM	POS	ID	REF	ALT	QUAL	FILTER	INFO	FORMAT	A	B
1	5	.	A	G	.	.	.	PL	0,10,30	30,10,0
1	6	.	A	G,T	.	.	.	PL	0,1,2,3,4,5	0,1,2,3,4,5
1	7	.	A	G	.	.	.	PL	.	.
"""


@pytest.fixture
def source_file(tmp_path: Path) -> Path:
    path = tmp_path / "given.npz"
    np.savez(path, P=likelihoods(1, 12, 5), chrom=np.array(["1"] * 9 + ["X"] * 3), pos=np.arange(12) * 10)
    return path


def table(text: str) -> tuple[list[str], list[list[str]]]:
    header, *rows = [line.split("\t") for line in text.splitlines()]
    return header, rows


@pytest.mark.slow
def test_the_answer_is_all_of_stdout(simtbed: Simtbed, source_file: Path) -> None:
    result = simtbed("sfs", str(source_file))
    assert result.code == 0
    assert result.err.split() == ["12", "sites"]
    header, rows = table(result.out)
    assert header == ["chrom", "pos", *map(str, range(11))]
    assert [row[:2] for row in rows] == [["1" if at < 9 else "X", str(10 * at)] for at in range(12)]
    expected = FAMILY.oracle(FAMILY.read(source_file))
    np.testing.assert_allclose(np.array([row[2:] for row in rows], float), expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["product", "saf", "gama"])
def test_modes(simtbed: Simtbed, source_file: Path, mode: str) -> None:
    rows = table(simtbed("sfs", str(source_file), "--mode", mode, "--p-variable", "0.5").out)[1]
    values = np.array([row[2:] for row in rows], float)
    if mode == "product":
        problem = FAMILY.read(source_file)
        alone = Problem(problem.likelihoods, problem.chromosomes, problem.positions, "product")
        np.testing.assert_allclose(values, FAMILY.oracle(alone), atol=1e-8)
    elif mode == "saf":
        assert values.max(axis=1).tolist() == [0.0] * 12
    else:
        np.testing.assert_allclose(values.sum(axis=1), 1.0)


@pytest.mark.slow
def test_npz(simtbed: Simtbed, source_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "answer.npz"
    result = simtbed("sfs", str(source_file), "-o", str(target), "--format", "npz")
    assert (result.code, result.out.split(), result.err) == (0, ["12", "sites"], "")
    spectra = np.load(target)
    np.testing.assert_allclose(spectra["values"], FAMILY.oracle(FAMILY.read(source_file)), atol=1e-8)
    assert spectra["chromosomes"][spectra["chrom"]].tolist() == ["1"] * 9 + ["X"] * 3
    assert spectra["pos"].tolist() == list(range(0, 120, 10))


@pytest.mark.slow
def test_batches_change_nothing(
    simtbed: Simtbed, source_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spectrum = tmp_path / "spectrum.tsv"
    whole = simtbed("sfs", str(source_file), "--spectrum", str(spectrum)).out
    counts = spectrum.read_text()
    monkeypatch.setattr(sites, "SITES_AT_ONCE", 5)
    assert simtbed("sfs", str(source_file), "--spectrum", str(spectrum)).out == whole
    assert spectrum.read_text() == counts
    simtbed("sfs", str(source_file), "-o", str(tmp_path / "a.npz"), "--format", "npz")
    assert np.load(tmp_path / "a.npz")["values"].shape == (12, 11)


def test_counts_at_the_end(simtbed: Simtbed, tmp_path: Path) -> None:
    source, target = tmp_path / "given.vcf", tmp_path / "answer.tsv"
    source.write_text(VCF)
    result = simtbed("sfs", str(source), "-o", str(target))
    assert (result.code, result.err) == (0, "")
    assert [line.strip() for line in result.out.splitlines()] == [
        "1  sites",
        "1  left out: no individual has any information",
        "1  skipped: more than two alleles",
    ]
    counts = json.loads(simtbed("sfs", str(source), "-o", str(target), "--json").out)["counts"]
    assert counts == {"sites": 1, "left out: no individual has any information": 1, "skipped: more than two alleles": 1}
    assert len(target.read_text().splitlines()) == 2


def test_spectrum_and_picture(simtbed: Simtbed, source_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "spectrum.tsv"
    assert simtbed("sfs", str(source_file), "--spectrum", str(target)).code == 0
    header, rows = table(target.read_text())
    assert header == ["minor_alleles", "sites", "share"]
    assert [row[0] for row in rows] == [str(j) for j in range(11)]
    assert sum(float(row[1]) for row in rows) == pytest.approx(12)
    assert sum(float(row[2]) for row in rows) == pytest.approx(1)
    assert (tmp_path / "spectrum.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_the_example(simtbed: Simtbed) -> None:
    result = simtbed("sfs", "--example", "--mode", "gama")
    assert result.code == 0 and len(result.out.splitlines()) == 101


def test_bad_input_leaves_no_output(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for an error after batches were written."""
    monkeypatch.setattr(sites, "SITES_AT_ONCE", 3)
    values = likelihoods(1, 8, 3)
    values[7, 1, 2] = np.nan
    source, target = tmp_path / "given.npz", tmp_path / "answer.tsv"
    np.savez(source, P=values)
    for form in ("tsv", "npz"):
        assert "P[7], individual 2" in simtbed("sfs", str(source), "-o", str(target), "--format", form).refused()
    assert [path.name for path in tmp_path.iterdir()] == ["given.npz"]


def test_no_sites_is_a_warning(simtbed: Simtbed, tmp_path: Path) -> None:
    source = tmp_path / "given.vcf"
    source.write_text("\n".join(VCF.splitlines()[:4]) + "\n")
    result = simtbed("sfs", str(source))
    assert (result.code, result.out.splitlines()) == (0, ["chrom\tpos\t0\t1\t2\t3\t4"])
    assert f"{source} has no usable sites; the answer is empty" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--p-variable", "1.5"], "1.5 is not in the range 0.0<=x<=1.0"),
        (["--epsilon", "0.5"], "0.5 is not in the range 0.0<=x<0.5"),
        (["--variant", "wavefront"], "sfs has no variant 'wavefront'"),
        (["--format", "npz"], "--format npz needs a file"),
        (["--spectrum", "a.svg"], "--spectrum names the table"),
        (["-o", "missing/answer.tsv"], "there is no folder missing"),
        (["--example"], "sfs takes a file, or --example"),
    ],
)
def test_bad_use(simtbed: Simtbed, source_file: Path, options: list[str], message: str) -> None:
    assert message in simtbed("sfs", str(source_file), *options).refused()


def test_without_cyvcf2(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "given.vcf").write_text(VCF)
    monkeypatch.setitem(sys.modules, "cyvcf2", None)
    message = simtbed("sfs", str(tmp_path / "given.vcf")).refused(3)
    assert 'given.vcf is a VCF, which only cyvcf2 reads: pip install "simtbed[vcf]"' in message


@pytest.mark.slow
def test_the_oracle_and_the_counters(simtbed: Simtbed, source_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = simtbed("sfs", str(source_file), "--check", "--counters")
    assert result.code == 0 and "132 values and the oracle agree" in result.err and "warp_instructions" in result.err
    target = source_file.with_suffix(".tsv")
    content = json.loads(simtbed("sfs", str(source_file), "-o", str(target), "--check", "--counters", "--json").out)
    assert content["agreement"]["agrees"] and content["counters"]["global_load_sectors"] > 0
    assert content["counts"] == {"sites": 12} and target.read_text() == result.out
    assert "the cuda engine does not count" in simtbed("sfs", "--example", "--counters", "--engine", "cuda").refused()
    assert "--dask excludes" in simtbed("sfs", "--example", "--counters", "--dask", "local").refused()
    saf = oracle.saf
    monkeypatch.setattr(oracle, "saf", lambda likelihoods: saf(likelihoods) + 1)
    wrong = simtbed("sfs", str(source_file), "--check")
    assert wrong.code == 1 and "the oracle DISAGREE (132 differ)" in wrong.err


@pytest.mark.slow
def test_several_gpus_share_the_sites(simtbed: Simtbed, source_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the jit engine in the GPUs' place: the same answer in the same order."""
    assert "--gpus 2 needs --engine cuda" in simtbed("sfs", "--example", "--gpus", "2").refused()
    monkeypatch.setattr("simtbed.reports.cli.sfs.require_gpus", lambda gpus, engine: None)
    monkeypatch.setattr("simtbed.reports.cli.sfs.gpus_for_file", lambda path, gpus: gpus)
    np.savez(source_file, P=likelihoods(1, 3000, 20))  # several batches
    alone, shared = (simtbed("sfs", str(source_file), "--max-memory", "64M", "--gpus", str(gpus)) for gpus in (1, 3))
    assert (shared.code, shared.out) == (0, alone.out)
