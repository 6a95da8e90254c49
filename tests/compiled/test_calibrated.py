"""Calibration of sample weights to known totals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.compiled.sample_weights import calibrate


def sample_of_population(
    seed: int, population: int, sample: int, events: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the event counts of a population, those of a sample, and the weights of the sample."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 50, (population, events)).astype(np.float64)
    chosen = random.choice(population, sample, replace=False)
    return counts, counts[chosen], np.full(sample, population / sample)


@given(some.integers(0, 1 << 30), some.integers(1, 6))
def test_what_follows_from_what_is_known_is_right(seed: int, events: int) -> None:
    """Each event executes a fixed number of blocks."""
    counts, sample, weights = sample_of_population(seed, 1000, 200, events)
    result = calibrate(weights, sample, counts.sum(axis=0))
    coefficients = np.random.default_rng(seed).random((events, 4))
    assert result.min() > 0
    assert result @ (sample @ coefficients) == pytest.approx((counts @ coefficients).sum(axis=0))
    assert weights @ (sample @ coefficients) != pytest.approx((counts @ coefficients).sum(axis=0), rel=1e-9)


def test_all_of_them_keep_their_weights() -> None:
    counts, _, _ = sample_of_population(3, 100, 10, 4)
    ones = np.ones(100)
    assert calibrate(ones, counts, counts.sum(axis=0)) is ones
    assert calibrate(ones, np.zeros((100, 0)), np.zeros(0)) is ones


def test_few_follow_no_chance() -> None:
    """With as many events as warps exact weights exist, but fit noise."""
    counts, sample, weights = sample_of_population(5, 1000, 16, 16)
    result = calibrate(weights, sample, counts.sum(axis=0))
    assert result == pytest.approx(weights, rel=0.5)
    assert abs(result.sum() / 1000 - 1) < 0.1


def test_totals_without_samples_are_ignored() -> None:
    counts, sample, weights = sample_of_population(4, 100, 20, 3)
    sample[:, 2] = 0
    result = calibrate(weights, sample, counts.sum(axis=0))
    assert result @ sample[:, :2] == pytest.approx(counts[:, :2].sum(axis=0))


def test_no_weight_is_below_none() -> None:
    sample = np.array([[1.0, 0.0], [0.0, 1.0], [9.0, 1.0]])
    assert calibrate(np.ones(3), sample, np.array([1.0, 30.0])).min() >= 0


def test_the_sum_of_weights_is_kept_if_one_becomes_zero() -> None:
    """Few warps limit the adjustment."""
    sample = np.array([[1.0, 0.0], [0.0, 1.0], [9.0, 1.0]])
    result = calibrate(np.ones(3), sample, np.array([1.0, 30.0]))
    assert result.sum() == pytest.approx(3) and result.min() == pytest.approx(0)
