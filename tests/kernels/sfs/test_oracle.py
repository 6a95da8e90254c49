"""The oracle against the sum over all genotypes in exact fractions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.oracles import sfs as oracle

Vectors = list[tuple[float, float, float]]


def enumerated(vectors: Vectors) -> list[Fraction]:
    """Add every combination of genotypes to its number of minor alleles."""
    h = [Fraction(0)] * (2 * len(vectors) + 1)
    for genotypes in product(range(3), repeat=len(vectors)):
        h[sum(genotypes)] += math.prod(
            (Fraction(v[g]) for v, g in zip(vectors, genotypes, strict=True)), start=Fraction(1)
        )
    return h


def logarithm(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator) if x else -math.inf


def assert_close(result: np.ndarray, expected: list[float]) -> None:
    for a, b in zip(result.tolist(), expected, strict=True):
        assert a == b or a == pytest.approx(b, abs=1e-9)


value = st.one_of(st.just(0.0), st.floats(1e-30, 1.0), st.just(1.0))
some = st.lists(st.tuples(value, value, value).filter(any), min_size=1, max_size=5)


@pytest.mark.slow
@given(some)
def test_product_is_the_sum_over_all_genotypes(vectors: Vectors) -> None:
    assert_close(oracle.product(np.array([vectors]))[0], [logarithm(x) for x in enumerated(vectors)])


@given(some)
def test_saf_weights_of_heterozygotes_and_choices(vectors: Vectors) -> None:
    h = enumerated([(a, 2 * b, c) for a, b, c in vectors])
    values = [logarithm(x / math.comb(len(h) - 1, j)) for j, x in enumerate(h)]
    best = max(values)
    assert_close(oracle.saf(np.array([vectors]))[0], [v - (best if math.isfinite(best) else 0) for v in values])


@given(some, st.just(0.0) | st.floats(1e-6, 1.0), st.sampled_from([0.0, 0.015, 0.5, 1.0]))
def test_gama_is_a_mixture_of_varying_and_not(vectors: Vectors, frequency: float, variable: float) -> None:
    f, p = Fraction(frequency), Fraction(variable)
    prior = ((1 - f) ** 2, 2 * f * (1 - f), f**2)
    whole = [sum(map(Fraction, v), Fraction(0)) for v in vectors]
    h = enumerated_exactly(
        [[Fraction(x) / w * q for x, q in zip(v, prior, strict=True)] for v, w in zip(vectors, whole, strict=True)]
    )
    fixed = math.prod((Fraction(v[0]) / w for v, w in zip(vectors, whole, strict=True)), start=Fraction(1))
    b = p * sum(h) + (1 - p) * fixed
    result = oracle.gama(np.array([vectors]), np.array([frequency]), variable)[0]
    expected = [p * x / b for x in h] if b else [Fraction(0)] * len(h)
    expected[0] += (1 - p) * fixed / b if b else 0
    assert result.tolist() == pytest.approx([float(x) for x in expected], abs=1e-9)


def enumerated_exactly(vectors: list[list[Fraction]]) -> list[Fraction]:
    h = [Fraction(1)]
    for v in vectors:
        h = [sum((v[g] * h[j - g] for g in range(3) if 0 <= j - g < len(h)), Fraction(0)) for j in range(len(h) + 2)]
    return h


def test_it_does_not_leave_the_range_of_doubles() -> None:
    """Without information all counts are equally likely, although C(2N, N) is e^1380."""
    np.testing.assert_allclose(oracle.saf(np.ones((1, 1000, 3))), 0.0, atol=1e-9)
