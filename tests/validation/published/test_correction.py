"""Corrections of published reads equal CUDA-EC's."""

import gzip
from pathlib import Path

import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import files
from simtbed.kernels.correction.host.problem import Parameters, Problem
from simtbed.oracles import correction as oracle

PUBLISHED = [
    ("correction_1000g/reads100.fq", 3, "correction_1000g/expected_k20_m3_v2_exact.tsv"),
    ("correction_1000g/reads100.fq", 6, "correction_1000g/expected_k20_m6_v2_exact.tsv"),
    ("correction_ecoli/ecoli1k_first36.fa.gz", 6, "correction_ecoli/expected_first36_k20_m6_exact.tsv.gz"),
]
"""Reads, min_multiplicity, CUDA-EC's results."""
every_data_set = pytest.mark.parametrize(("reads", "least", "expected"), PUBLISHED)


def answers(path: Path) -> list[str]:
    """Return `flag sequence` of every row of a file of `sequence flag length`."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [line.split("\t") for line in text.decode().splitlines()]
    assert all(len(sequence) == int(length) for sequence, _, length in rows)
    return [f"{flag} {sequence}" for sequence, flag, _ in rows]


@pytest.mark.parametrize("bloom", [None, "standard", "split-first"])
@every_data_set
def test_the_oracle(data: Path, reads: str, least: int, expected: str, bloom: str | None) -> None:
    corrected = oracle.corrected(files.read(data / reads).reads.strings(), min_multiplicity=least, bloom=bloom)
    assert [f"{read.flag} {read.sequence}" for read in corrected] == answers(data / expected)


@pytest.mark.parametrize("variant", FAMILY.variants)
@every_data_set
def test_variants(data: Path, reads: str, least: int, expected: str, variant: str, launcher: Launcher) -> None:
    problem = Problem(files.read(data / reads).reads, Parameters(min_multiplicity=least))
    assert FAMILY.solve(problem, variant, launcher).tolist() == answers(data / expected)


def test_a_bloom_filter(data: Path, launcher: Launcher) -> None:
    reads, least, expected = PUBLISHED[0]
    problem = Problem(files.read(data / reads).reads, Parameters(min_multiplicity=least, filter="bloom"))
    assert FAMILY.solve(problem, "warp-per-read", launcher).tolist() == answers(data / expected)
