"""The compiled loop returns the oracle's likelihoods on one core and on several."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.oracles.pairhmm_loop import log10_likelihoods
from simtbed.reports.papers.ren2018.throughput import by_loop


@pytest.mark.parametrize("threads", [1, 3])
def test_the_loop_agrees_with_the_oracle(threads: int) -> None:
    problem = generate(7, records=2, read_length=(1, 60), haplotype_length=(1, 90), unknown=0.05)
    assert FAMILY.compare(by_loop(problem, threads), FAMILY.oracle(problem)).agrees


def test_what_a_float_cannot_hold_is_nothing() -> None:
    far = Problem.from_records([([(b"A" * 60, *([np.full(60, 40)] * 4))], [b"C" * 60])])
    assert by_loop(far)[0] == -np.inf
    assert FAMILY.oracle(far)[0] > -400  # finite in double


def test_no_pairs() -> None:
    no_bases, offsets, no_indices = np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64)
    assert len(log10_likelihoods(no_bases, [no_bases] * 4, offsets, no_bases, offsets, no_indices, no_indices)) == 0
