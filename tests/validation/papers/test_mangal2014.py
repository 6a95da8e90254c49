"""The claims of Mangal and Jain 2014 that were open: settled by counts, and held here."""

import pytest
from simtbed import SimtbedError
from simtbed.kernels.correction.cuda_ec import BLOCK
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.problem import Parameters
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.oracles.correction import Bloom
from simtbed.reports.papers.mangal2014 import profiles
from simtbed.reports.papers.mangal2014.counting import (
    GPU,
    SOLID,
    Data,
    Probes,
    Work,
    corrected,
    counted,
    reads_and_filter,
    throughput,
)

SMALL = Data(600, 280, 0.04)


def test_a_split_is_three_or_more() -> None:
    assert Parameters(split=45).split == 45
    with pytest.raises(SimtbedError, match="split is 3 to 1048576, not 2"):
        Parameters(split=2)


def test_the_filter_may_be_split_anywhere() -> None:
    kmers = {"ACGTTGCATGACG", "TTGCATGACGAAC"}
    for split in (16, 45):
        bloom = Bloom(kmers, "split-first", split)
        assert bloom.region == (128 // split, 128 // split)
        assert all(kmer in bloom for kmer in kmers)


def test_a_smaller_first_region_is_queried_more_often() -> None:
    """The paper's 34 % more accesses are those of a region of about a 45th of the bits."""
    standard, wide, narrow = (
        Probes.from_counters(counted(Work(profiles.BEFORE, SMALL, "jit", split))) for split in (None, 16, 45)
    )
    assert standard.bits < wide.bits < narrow.bits
    assert narrow.bits / standard.bits == pytest.approx(91_551_531 / 68_381_701, abs=0.06)


def test_the_steps_change_no_read() -> None:
    answers = [corrected(Work(variant, SMALL, "jit"))[0].answer().tolist() for _, _, variant in profiles.STEPS]
    few = len(answers[1])  # one lane per warp: the first reads alone
    assert few == 128 and all(answer[:few] == answers[1] for answer in answers)
    assert all(answer == answers[0] for answer in answers[2:])


def test_the_filter_has_the_size_of_the_paper() -> None:
    """18 MB: most queries miss an L2 of 1.25 MB."""
    work = Work(profiles.BEFORE, SMALL, "jit")
    assert reads_and_filter(work)[1].size == 64 * SOLID == 8 * 18_000_000
    assert throughput(work, GPU).hits < 0.2


def test_a_block_has_the_threads_of_the_paper() -> None:
    assert pipeline.WARPS * WARP_SIZE == BLOCK == 256
    assert throughput(Work(profiles.AFTER, SMALL, "jit"), GPU).shared_bytes == pipeline.WARPS * 36 * (1 + 4) + 4 * BLOCK
