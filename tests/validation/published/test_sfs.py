"""Site frequency likelihoods of published data equal ANGSD's."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.sfs import FAMILY
from simtbed.kernels.sfs.host.compare import NEGLIGIBLE, TOLERANCE
from simtbed.kernels.sfs.host.files import Options, concatenate_problems, problems
from simtbed.kernels.sfs.host.problem import Floats, Problem

VARIANTS = sorted(FAMILY.variants)


def assert_like(actual: Floats, expected: Floats) -> None:
    above = expected > NEGLIGIBLE
    assert above.sum() > len(expected)
    assert np.abs(actual[above] - expected[above]).max() <= TOLERANCE


Rows = dict[tuple[str, int], list[str]]


@pytest.fixture(scope="module")
def rows(data: Path) -> Rows:
    """Return the major allele, minor allele and ANGSD's values of each site, by chromosome and position."""
    with gzip.open(data / "sfs_1000g" / "angsd_doSaf5.saf.tsv.gz", "rt") as lines:
        fields = [line.split("\t") for line in lines if not line.startswith("#")]
    return {(row[0], int(row[1])): row[2:] for row in fields}


@pytest.fixture(scope="module")
def real(data: Path, rows: Rows) -> tuple[Problem, Floats]:
    """Return 5,417 sites of 33 people of the 1000 Genomes with the default minor allele, and the results of ANGSD -doSaf 5."""
    problem = FAMILY.read(data / "sfs_1000g" / "small.vcf.gz")
    places = list(zip(problem.chromosomes, problem.positions.tolist(), strict=True))
    assert sorted(places) == sorted(rows)
    return problem, np.array([rows[place][2:] for place in places], np.float64)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_thousand_genomes(real: tuple[Problem, Floats], variant: str, launcher: Launcher) -> None:
    """Values above e^-80, the range of ANGSD's floats, agree to 1e-5. ALT is the major allele at 1,185 sites."""
    problem, expected = real
    answer = FAMILY.solve(problem, variant, launcher)
    assert_like(answer, expected)
    assert FAMILY.compare(answer, FAMILY.oracle(problem)).agrees


@pytest.mark.parametrize("variant", VARIANTS)
def test_beagle(data: Path, variant: str, launcher: Launcher) -> None:
    """ANGSD -doSaf 4 on its own test; three sites of eight have no data."""
    problem = concatenate_problems(list(problems(data / "sfs_angsd" / "beagle.txt", Options(), Counter())))
    expected = np.loadtxt(data / "sfs_angsd" / "true.saf.print", usecols=range(2, 9))
    assert problem.positions.tolist() == [1, 2, 3, 7, 8]
    answer = FAMILY.solve(problem, variant, launcher)
    np.testing.assert_array_equal(np.isneginf(answer), np.isneginf(expected))
    assert_like(answer, expected)


def test_the_default_names_the_minor_allele_that_angsd_does(
    data: Path, rows: Rows, real: tuple[Problem, Floats]
) -> None:
    """The names agree at all 5,417 sites."""
    path = data / "sfs_1000g" / "small.vcf.gz"
    as_it_is = concatenate_problems(list(problems(path, Options(polarise="alt"), Counter())))
    exchanged = (real[0].likelihoods != as_it_is.likelihoods).any(axis=(1, 2))
    with gzip.open(path, "rt") as lines:
        sites = [line.split("\t")[:5] for line in lines if not line.startswith("#")]
    assert [rows[site[0], int(site[1])][0] == site[4] for site in sites] == exchanged.tolist()
    assert exchanged.sum() == 1185
