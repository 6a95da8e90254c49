"""Posteriors as VCF: what cyvcf2 and pysam read is what the oracle computes, in the file's own alleles."""

import gzip
import math
from collections import Counter
from pathlib import Path

import cyvcf2
import numpy as np
import pysam
import pytest
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host import files, files_vcf_out
from simtbed.kernels.sfs.host.files import Options
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.kernels.sfs.host.problem import Problem

from tests.kernels.sfs.test_files import rewritten
from tests.reports.conftest import Simtbed

INDIVIDUALS = 7


def called(folder: Path, name: str = "calls.vcf") -> Path:
    """A VCF as a caller writes it: ALT is the major allele at every second site, one sample knows nothing."""
    values = likelihoods(4, 20, INDIVIDUALS)
    values[1::2] = values[1::2, :, ::-1]
    values[:, 3] = 1.0
    phred = np.round(-10 * np.log10(values)).astype(int)
    names = "\t".join(f"S{i}" for i in range(INDIVIDUALS))
    lines = ["##fileformat=VCFv4.2", "##contig=<ID=chr2,length=5000>"]
    lines += ['##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Phred">']
    lines += [f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}"]
    for site, row in enumerate(phred):
        samples = "\t".join(",".join(map(str, sample)) for sample in row)
        lines += [f"chr2\t{100 + site}\trs{site}\tA\tGT\t.\t.\t.\tPL\t{samples}"]
    text = "\n".join(lines) + "\n"
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


@pytest.mark.slow
def test_readers_find_the_oracles_posteriors(simtbed: Simtbed, tmp_path: Path) -> None:
    source, target = called(tmp_path), tmp_path / "posteriors.vcf"
    result = simtbed("sfs", str(source), "--mode", "gama", "--format", "vcf", "-o", str(target))
    assert (result.code, result.err) == (0, "")
    (problem,) = files.problems(source, Options("gama"), Counter())
    expected = FAMILY.oracle(problem)
    expected[problem.swapped] = expected[problem.swapped, ::-1]
    assert 5 < problem.swapped.sum() < 15
    with pysam.VariantFile(str(target)) as variants_file:
        assert list(variants_file.header.samples) == [f"S{i}" for i in range(INDIVIDUALS)]
        assert list(variants_file.header.contigs) == ["chr2"]
        records = list(variants_file)
    assert len(records) == 20
    for site, (record, shares) in enumerate(zip(records, expected, strict=True)):
        assert (record.chrom, record.pos, record.id) == ("chr2", 100 + site, f"rs{site}")
        assert record.alleles == ("A", "GT")
        assert record.qual == pytest.approx(-10 * math.log10(shares[0]), abs=0.01)
        assert record.info["AF"][0] == pytest.approx(shares @ np.arange(len(shares)) / (len(shares) - 1), abs=1e-5)
        assert record.info["MAPAC"][0] == shares.argmax()
        assert record.info["PVAR"] == pytest.approx(shares[1:-1].sum(), abs=1e-5)
        knows = (np.ptp(problem.likelihoods[site], axis=1) > 0).tolist()
        assert not knows[3]
        for sample, names in zip(record.samples.values(), knows, strict=True):
            assert sum(sample["GP"]) == pytest.approx(1, abs=2e-5)
            if not names:
                assert sample["GT"] == (None, None) and sample["GQ"] is None
                continue
            best = int(np.argmax(sample["GP"]))
            assert sample["GT"] == ((0, 0), (0, 1), (1, 1))[best]
            other = 1 - sample["GP"][best]
            assert sample["GQ"] == (
                pytest.approx(-10 * math.log10(other), abs=1) if other > 1e-4 else pytest.approx(70, abs=31)
            )
    with_cyvcf2 = cyvcf2.VCF(str(target))
    for item, other in zip(with_cyvcf2, records, strict=True):
        assert (other.pos, other.ref, list(other.alts or ())) == (item.POS, item.REF, item.ALT)
        assert item.format("GP").shape == (INDIVIDUALS, 3)


def test_genotypes_are_bayes_rule_by_hand() -> None:
    """Likelihoods (1, 0.1, 0.001) at f = 0.25: (0.5625, 0.0375, 0.0000625) of 0.6000625."""
    posteriors, names = files_vcf_out.genotype_posteriors(
        Problem(np.array([[[1, 0.1, 0.001], [1, 1, 1]]]), ["1"], np.array([1]), "gama", np.array([0.25]))
    )
    whole = 0.5625 + 0.0375 + 0.0000625
    np.testing.assert_allclose(posteriors[0, 0], np.array([0.5625, 0.0375, 0.0000625]) / whole)
    np.testing.assert_allclose(posteriors[0, 1], [0.5625, 0.375, 0.0625])
    assert names.tolist() == [[True, False]]
    text = files_vcf_out.sample_text(posteriors[0], names[0]).decode()
    assert text == "\t0/0:12:0.93740,0.06249,0.00010\t./.:.:0.56250,0.37500,0.06250"


def test_certain_genotypes() -> None:
    """GQ is at most 99; a genotype excluded by the frequency is called by its likelihoods."""
    problem = Problem(np.array([[[0, 0, 1.0], [1, 0, 0]]]), ["1"], np.array([1]), "gama", np.array([0.0]))
    posteriors, names = files_vcf_out.genotype_posteriors(problem)
    text = files_vcf_out.sample_text(posteriors[0], names[0]).decode()
    assert text == "\t1/1:99:0.00000,0.00000,1.00000\t0/0:99:1.00000,0.00000,0.00000"


def test_bcf_in_gives_the_same(simtbed: Simtbed, tmp_path: Path) -> None:
    source = called(tmp_path, "calls.vcf.gz")
    binary_source = rewritten(source, tmp_path / "calls.bcf", "wb")
    options = ("--mode", "gama", "--format", "vcf")
    text, binary = (simtbed("sfs", str(path), *options) for path in (source, binary_source))
    assert (text.code, text.out.count("\n")) == (0, 20 + 10)
    assert binary.out == text.out


def test_a_site_that_is_certain_to_vary() -> None:
    result = files_vcf_out.site_posteriors(np.array([[0.0, 0.25, 0.75], [0, 0, 0], [1, 0, 0]]))
    assert [values.tolist() for values in result] == [[3000, 0, 0], [0.875, 0, 0], [2, 0, 0], [0.25, 0, 0]]


def test_what_has_no_posteriors_or_no_alleles(simtbed: Simtbed, tmp_path: Path) -> None:
    source = called(tmp_path)
    assert "use --mode gama" in simtbed("sfs", str(source), "--format", "vcf").refused()
    np.savez(tmp_path / "given.npz", P=likelihoods(1, 3, 2))
    options = ("--mode", "gama", "--format", "vcf", "-o", str(tmp_path / "out.vcf"))
    assert "needs a VCF or a BCF" in simtbed("sfs", str(tmp_path / "given.npz"), *options).refused()
    assert not (tmp_path / "out.vcf").exists()
