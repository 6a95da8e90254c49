"""Smith-Waterman alignments of published pairs equal GATK's."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from simtbed import launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host import files
from simtbed.kernels.alignment.host.pipeline import WORDS_AT_ONCE, align
from simtbed.kernels.alignment.host.problem import Strategy
from simtbed.kernels.alignment.host.statistics import Statistics
from simtbed.reports.papers.ren2019 import figures

from tests.kernels.alignment.conftest import PUBLISHED

CASES = list(product(PUBLISHED, Strategy))


def expected(data: Path, name: str, parameters: str, strategy: Strategy) -> list[tuple[str, int]]:
    """Return GATK's CIGARs and offsets."""
    text = (data / "alignment" / f"{name}.{parameters}.{strategy.name}.gatk.out").read_text()
    rows = [line.split("\t") for line in text.splitlines()]
    return [(cigar, int(offset)) for cigar, offset in rows]


@pytest.mark.parametrize("name", ["edge", "ren64", "sit2_10s"])
def test_the_oracle(data: Path, name: str) -> None:
    problem = files.read(data / "alignment" / f"{name}.tsv")
    for parameters, strategy in CASES:
        answer = FAMILY.oracle(replace(problem, parameters=PUBLISHED[parameters], strategy=strategy))
        assert answer[["cigar", "offset"]].tolist() == expected(data, name, parameters, strategy)


@pytest.mark.parametrize("variant", FAMILY.variants)
@pytest.mark.parametrize("name", ["edge", "ren64", "sit2_10s"])
def test_variants(data: Path, launcher: Launcher, variant: str, name: str) -> None:
    problem = files.read(data / "alignment" / f"{name}.tsv")
    for parameters, strategy in CASES:
        chosen = replace(problem, parameters=PUBLISHED[parameters], strategy=strategy)
        answer = FAMILY.solve(chosen, variant, launcher)
        assert answer[["cigar", "offset"]].tolist() == expected(data, name, parameters, strategy)


def test_the_share_of_matches(data: Path) -> None:
    """The share that the report of Ren 2019 cites."""
    problem = files.read(data / "alignment" / "sit2_10s.tsv")
    statistics = Statistics()
    statistics.add(problem, align(problem, "packed", FunctionLauncher(launch), WORDS_AT_ONCE))
    assert (statistics.pairs, round(100 * statistics.share("M"), 2)) == (196, figures.PUBLISHED_M_SHARE)
