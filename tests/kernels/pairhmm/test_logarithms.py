"""Likelihoods below the range of doubles."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.reports.launchers import Runner

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


def test_a_likelihood_of_zero_is_minus_infinity() -> None:
    """With a base quality of 0 a match has probability 0, and with gaps of quality 0 so has every way to a match."""
    bases, letters = np.frombuffer(b"AC", np.uint8), np.frombuffer(b"AC", np.uint8)
    zero = np.zeros(2, np.uint8)
    problem = Problem.from_records([([(bases, zero, zero, zero, zero)], [letters])])
    assert FAMILY.oracle(problem).tolist() == FAMILY.solve(problem, "wavefront", Runner("jit")).tolist() == [-np.inf]
