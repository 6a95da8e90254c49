"""The oracle against the sum over all enumerated alignments in exact fractions, and its compiled loop on one core and on several."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.oracles.pairhmm import log10_likelihood
from simtbed.oracles.pairhmm_loop import log10_likelihoods
from simtbed.reports.papers.ren2018.throughput import by_loop

Qualities = tuple[list[int], list[int], list[int], list[int]]


def enumerated(read: str, qualities: Qualities, haplotype: str) -> Fraction:
    """Return the sum of the probabilities of all alignments: walks from row 0 to the last row."""
    m, n = len(read), len(haplotype)
    error, delta, zeta, epsilon = ([Fraction(10 ** (q / -10)) for q in column] for column in qualities)

    def emission(i: int, j: int) -> Fraction:
        match = read[i - 1] == haplotype[j - 1] or "N" in (read[i - 1], haplotype[j - 1])
        return 1 - error[i - 1] if match else error[i - 1] / 3

    def completions(i: int, j: int, state: str) -> Fraction:
        """Return the probability of all completions from a cell."""
        total = Fraction(i == m and j > 0 and state in "MI")
        if i < m and j < n:
            enter = max(Fraction(0), 1 - (delta[i] + zeta[i])) if state == "M" else 1 - epsilon[i]
            total += emission(i + 1, j + 1) * enter * completions(i + 1, j + 1, "M")
        if i < m and state in "MI":
            total += (delta[i] if state == "M" else epsilon[i]) * completions(i + 1, j, "I")
        if i > 0 and j < n and state in "MD":
            total += (zeta[i - 1] if state == "M" else epsilon[i - 1]) * completions(i, j + 1, "D")
        return total

    return sum((completions(0, j, "D") for j in range(n + 1)), Fraction(0)) / n


def oracle(read: str, qualities: Qualities, haplotype: str) -> float:
    base, insertion, deletion, continuation = (np.array(column, np.uint8) for column in qualities)
    bases, other = (np.frombuffer(text.encode(), np.uint8) for text in (read, haplotype))
    return float(log10_likelihood(bases, base, insertion, deletion, continuation, other))


@pytest.mark.slow
def test_one_base_against_one_base() -> None:
    """One alignment: from D(0,0) = 1 to M(1,1), beta (1 - e) or beta e / 3."""
    qualities = ([20], [45], [45], [10])
    assert oracle("A", qualities, "A") == pytest.approx(math.log10(0.9 * 0.99), abs=1e-12)
    assert oracle("A", qualities, "C") == pytest.approx(math.log10(0.9 * 0.01 / 3), abs=1e-12)
    assert oracle("N", qualities, "C") == oracle("A", qualities, "N") == oracle("A", qualities, "A")


@pytest.mark.slow
def test_alpha_is_not_negative() -> None:
    """delta + zeta > 1: the transition from M(1,1) to M(2,2) has probability 0, not a negative one; D(0,.) has no effect."""
    qualities = ([30, 30], [1, 1], [1, 1], [10, 10])
    assert oracle("AC", qualities, "AC") == pytest.approx(math.log10(enumerated("AC", qualities, "AC")), abs=1e-12)


@pytest.mark.slow
def test_what_cannot_be_is_minus_infinity() -> None:
    """A certain error (quality 0) never matches."""
    assert oracle("A", ([0], [45], [45], [10]), "A") == -math.inf


small = st.text("ACGTN", min_size=1, max_size=4)


@pytest.mark.slow
@given(small, small, st.data())
def test_the_sum_over_all_alignments(read: str, haplotype: str, data: st.DataObject) -> None:
    def column(least: int) -> list[int]:
        return data.draw(st.lists(st.integers(least, 93), min_size=len(read), max_size=len(read)))

    qualities = (column(1), column(1), column(1), column(1))
    expected = math.log10(enumerated(read, qualities, haplotype))
    assert oracle(read, qualities, haplotype) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_the_loop_agrees_with_the_oracle(threads: int) -> None:
    problem = generate(7, records=2, read_length=(1, 60), haplotype_length=(1, 90), unknown=0.05)
    assert FAMILY.compare(by_loop(problem, threads), FAMILY.oracle(problem)).agrees


@pytest.mark.slow
def test_what_a_float_cannot_hold_is_nothing() -> None:
    far = Problem.from_records([([(b"A" * 60, *([np.full(60, 40)] * 4))], [b"C" * 60])])
    assert by_loop(far)[0] == -np.inf
    assert FAMILY.oracle(far)[0] > -400  # finite in double


@pytest.mark.slow
def test_no_pairs() -> None:
    no_bases, offsets, no_indices = np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64)
    assert len(log10_likelihoods(no_bases, [no_bases] * 4, offsets, no_bases, offsets, no_indices, no_indices)) == 0
