"""Frequency of an allele at a site, from genotype likelihoods or from read counts."""

from __future__ import annotations

import numpy as np
from simtbed import Global, f64, i64
from simtbed.native import native

from .problem import EPSILON, Counts, Floats

TOLERANCE = 1e-10
MAX_ITERATIONS = 1000


@native
def _by_em(likelihoods: Global[f64], individuals: i64, sites: i64, to: Global[f64]) -> None:
    for site in range(sites):
        f = f64(0.5)
        for _iteration in range(MAX_ITERATIONS):
            alleles = f64(0)
            informed = i64(0)
            for i in range(individuals):
                at = 3 * (site * individuals + i)
                g0 = likelihoods[at]
                g1 = likelihoods[at + 1]
                g2 = likelihoods[at + 2]
                if g0 == g1 and g1 == g2:
                    continue
                heterozygous = g1 * 2 * f * (1 - f)
                homozygous = g2 * f * f
                whole = g0 * (1 - f) * (1 - f) + heterozygous + homozygous
                if whole > 0:
                    alleles += (heterozygous + 2 * homozygous) / whole
                    informed += 1
            if informed == 0:
                break
            previous = f
            f = alleles / f64(2 * informed)
            if abs(f - previous) < TOLERANCE:
                break
        to[site] = f


def by_em(likelihoods: Floats) -> Floats:
    """Return the maximum likelihood frequency of the second allele under Hardy-Weinberg; (sites, N, 3) to (sites,).

    Individuals without information are ignored; the result is 0.5 if no individual has any.
    """
    sites, individuals = likelihoods.shape[:2]
    result = np.empty(sites, np.float64)
    _by_em(np.ascontiguousarray(likelihoods, np.float64).reshape(-1), individuals, sites, result)
    return result


def by_reads(minor: Counts, reads: Counts, epsilon: float = EPSILON) -> Floats:
    """Return the mean share of minor reads of the individuals, corrected for the error rate, with weights 2n / (n + 1) (realSFS 2010).

    minor, reads: (sites, N). The result is between 0 and 1; NaN for a site without reads.
    """
    n = np.maximum(reads, 1)
    share = (minor - epsilon * n) / (n * (1 - 2 * epsilon))
    weight = np.where(reads > 0, 2 * n / (n + 1), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.clip((weight * share).sum(axis=1) / weight.sum(axis=1), 0.0, 1.0))
