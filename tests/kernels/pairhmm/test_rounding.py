"""Rounding: corrected sums of long reads in f32, the pairs computed in f64, likelihoods below the range of doubles."""

import numpy as np
import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host import pipeline
from simtbed.kernels.pairhmm.host.problem import Bytes, Problem
from simtbed.kernels.pairhmm.host.rounding import read_rounding, wide_pairs
from simtbed.reports.launchers import Runner

from tests.table_checks import check_each, each_row

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def read_of(bases: Bytes, base: int = 35, insertion: int = 40, deletion: int = 40) -> list[Bytes]:
    """Return a read with equal scores of all bases."""
    return [bases, *(np.full(len(bases), score, np.uint8) for score in (base, insertion, deletion, 10))]


def exact_copy(bases: int, columns: int, base: int = 35, insertion: int = 40, deletion: int = 40) -> Problem:
    """Return a read that is the beginning of its haplotype."""
    haplotype = np.random.default_rng(1).choice(LETTERS, columns)
    return Problem.from_records([([read_of(np.resize(haplotype, bases), base, insertion, deletion)], [haplotype])])


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["wavefront", "wavefront-rescaled", "intratask-warp"])
def test_factors_of_f32_do_not_add_up_along_a_read(variant: str, launcher: Launcher) -> None:
    """2e-8 per base in log10 exceed the tolerance of 1e-5 from 500 bases on."""
    problem = exact_copy(1000, 1004)
    expected = FAMILY.oracle(problem)
    sums = pipeline.VARIANTS[variant].whole(problem, launcher)
    uncorrected = np.log10(sums) - np.log10(pipeline.SCALE[np.float32])
    assert abs(uncorrected - expected) > 1.5e-5
    assert abs(FAMILY.solve(problem, variant, launcher) - expected) < 4e-6


@pytest.mark.slow
def test_equal_terms_of_a_haplotype_with_repeats(launcher: Launcher) -> None:
    letters = np.full(4000, ord("A"), np.uint8)
    problem = Problem.from_records([([read_of(letters[:40], 30, 45, 45)], [letters, letters[:1064], letters[:40]])])
    expected = FAMILY.oracle(problem)
    sums = pipeline.VARIANTS["wavefront"].whole(problem, launcher)
    assert abs(np.log10(sums[0]) - np.log10(pipeline.SCALE[np.float32]) - expected[0]) > 1e-5
    assert abs(FAMILY.solve(problem, "wavefront", launcher) - expected).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["wavefront-rescaled", "intratask-warp"])
def test_reads_in_f64_among_others(variant: str, launcher: Launcher) -> None:
    draw = np.random.default_rng(2)
    haplotypes = [draw.choice(LETTERS, n) for n in (300, 1500, 320)]
    reads = [read_of(haplotypes[0][:200], score, score, score) for score in (30, 60, 45)]
    problem = Problem.from_records([(reads, haplotypes), ([], haplotypes[:1]), (reads[1:2], haplotypes[:1])])
    _, errors = read_rounding(problem, np.zeros(4, np.bool_))
    assert wide_pairs(problem, errors).tolist() == [False, True, False, True, True, True, False, True, False, True]
    assert FAMILY.compare(FAMILY.solve(problem, variant, launcher), FAMILY.oracle(problem)).worst < 4e-6


@each_row(
    [
        # bases, columns, base quality, insertion, deletion, whether f64
        (128, 1152, 60, 60, 60, False),
        (129, 129, 60, 60, 60, True),
        (129, 129, 60, 45, 45, True),
        (129, 129, 45, 60, 60, True),
        (120, 1145, 35, 45, 45, True),
        (1000, 2024, 50, 50, 50, False),
        (1000, 1000, 93, 93, 93, False),
        (1000, 1000, 30, 10, 10, True),
        (32_000, 32_000, 35, 45, 45, False),
        (65_536, 65_536, 35, 45, 45, True),
    ]
)
def test_the_pairs_of_f64(case: tuple[int, int, int, int, int, bool]) -> None:
    problem = exact_copy(*case[:-1])
    _, errors = read_rounding(problem, np.zeros(1, np.bool_))
    assert wide_pairs(problem, errors).tolist() == [case[-1]]


def test_repeats_are_computed_in_f64() -> None:
    def wide(read: bytes, haplotype: bytes) -> list[bool]:
        scores = [np.full(len(read), score, np.uint8) for score in (35, 45, 45, 10)]
        problem = Problem.from_records([([(read, *scores)], [haplotype])])
        wide_flags: list[bool] = wide_pairs(problem, read_rounding(problem, np.zeros(1, np.bool_))[1]).tolist()
        return wide_flags

    other = np.random.default_rng(3).choice(LETTERS, 600).tobytes()
    cases = [
        (b"A" * 300, other, True),
        (b"N" * 300, other, True),
        (b"A" * 128, other, False),
        (b"AC" * 150, other, True),
        (b"AACCGTCG" * 50, other, True),
        (b"AACCGTCGT" * 50, other, False),
        ((b"A" * 16 + b"CTGC") * 30, other, False),
        ((b"A" * 60 + b"CTGCTAGCAGG") * 7, other, True),
        (other, other[:343] + b"N" * 257, True),
        (other, other[:345] + b"N" * 255, False),
        (other[:128], b"N" * 600, False),
    ]

    def check(case: tuple[bytes, bytes, bool]) -> None:
        assert wide(*case[:2]) == [case[2]]

    check_each(cases, check)


def test_cheap_gaps_of_the_rescaled_form_are_computed_in_f64() -> None:
    bases = np.random.default_rng(4).choice(LETTERS, 300)
    problem = Problem.from_records(
        [([[bases, *(np.full(300, score, np.uint8) for score in (35, 45, 45, 9))]], [bases])]
    )
    for is_rescaled in (False, True):
        _, errors = read_rounding(problem, np.array([is_rescaled]))
        assert wide_pairs(problem, errors).tolist() == [is_rescaled]


def test_the_factor_of_a_read_is_that_of_the_kernel() -> None:
    """The factors of each base in f32, multiplied exactly or rounded to f32."""
    problem = exact_copy(1000, 1000)
    rounded = np.float32(10**-3.5), np.float32(10**-4.0)
    match, alpha = np.float32(1) - rounded[0], np.float32(1) - (rounded[1] + rounded[1])
    exact = (1 - 10**-3.5) * (1 - 2 * 10**-4.0)
    for product, is_product in ((float(match) * float(alpha), False), (float(match * alpha), True)):
        factors, _ = read_rounding(problem, np.array([is_product]))
        np.testing.assert_allclose(np.log(factors), 1000 * np.log(exact / product), rtol=1e-6)
    clamped = read_rounding(exact_copy(200, 200, 0, 1, 1), np.zeros(1, np.bool_))[0]
    assert clamped.tolist() == [1.0]


FAINT = {
    "mismatches": ("ACGT" * 60, "TTTT" * 80, 93),
    # The first half matches the end of the haplotype, the second half its middle: rows differ by more than the range of doubles.
    "two parts": ("A" * 100 + "C" * 100, "G" * 100 + "C" * 100 + "A" * 100, 93),
    "gaps": ("G" * 300, "ACT" * 10, 40),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAINT)
def test_a_likelihood_below_the_range_of_doubles(name: str) -> None:
    read, haplotype, quality = FAINT[name]
    bases, letters = (np.frombuffer(text.encode(), np.uint8) for text in (read, haplotype))
    scores = [np.full(len(read), quality, np.uint8)] * 4
    problem = Problem.from_records([([(bases, *scores)], [letters, letters[:-1]])])
    expected = FAMILY.oracle(problem)
    assert (expected < -631).all() and np.isfinite(expected).all()
    for variant in ("intertask-naive", "intratask-warps", "wavefront", "wavefront-rescaled"):
        np.testing.assert_allclose(FAMILY.solve(problem, variant, Runner("jit")), expected, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_likelihood_of_zero_is_minus_infinity() -> None:
    """With a base quality of 0 a match has probability 0, and with gaps of quality 0 so has every way to a match."""
    bases, letters = np.frombuffer(b"AC", np.uint8), np.frombuffer(b"AC", np.uint8)
    zero = np.zeros(2, np.uint8)
    problem = Problem.from_records([([(bases, zero, zero, zero, zero)], [letters])])
    assert FAMILY.oracle(problem).tolist() == FAMILY.solve(problem, "wavefront", Runner("jit")).tolist() == [-np.inf]
