"""Site frequency spectra by definition: one individual at a time, in logarithms."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]


@njit()
def log_sum(a: float, b: float) -> float:
    """Return log(e^a + e^b)."""
    larger = max(a, b)
    if larger == -math.inf:
        return larger
    return larger + math.log1p(math.exp(min(a, b) - larger))


@njit()
def _log_product(log_vectors: Floats) -> Floats:
    """Return the log product of one site: (N, 3) to (2N + 1,)."""
    n = len(log_vectors)
    h = np.full(2 * n + 1, -np.inf)
    h[0] = 0.0
    for i in range(n):
        first, second, third = log_vectors[i]
        for j in range(2 * i + 2, -1, -1):
            total = first + h[j]
            if j >= 1:
                total = log_sum(total, second + h[j - 1])
            if j >= 2:
                total = log_sum(total, third + h[j - 2])
            h[j] = total
    return h


def _logarithms(values: npt.ArrayLike) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, np.float64))


def product(vectors: Floats) -> Floats:
    """Return the natural logarithm of each site's product of polynomials. vectors: (sites, N, 3); result: (sites, 2N + 1)."""
    logarithms = _logarithms(vectors)
    return np.array([_log_product(site) for site in logarithms]).reshape(len(vectors), 2 * vectors.shape[1] + 1)


def saf(likelihoods: Floats) -> Floats:
    """Return sample allele frequency likelihoods as ANGSD -doSaf: log, divided by C(2N, j), minus the maximum of the site.

    likelihoods: (sites, N, 3) of major/major, heterozygous, minor/minor. An impossible site is -inf.
    """
    h = product(likelihoods * np.array([1.0, 2.0, 1.0]))
    alleles = h.shape[1] - 1
    choices = [math.lgamma(alleles + 1) - math.lgamma(j + 1) - math.lgamma(alleles - j + 1) for j in range(alleles + 1)]
    h -= np.array(choices)
    best = h.max(axis=1, keepdims=True)
    return np.asarray(h - np.where(np.isfinite(best), best, 0.0))


def gama(likelihoods: Floats, frequency: Floats, variable: float) -> Floats:
    """Return the posterior of realSFS 2010 and GAMA: (sites, 2N + 1) probabilities of j minor alleles.

    likelihoods: as for `saf`. frequency: minor allele frequency of each site. variable: prior probability of a variable site.
    """
    G = likelihoods / likelihoods.sum(axis=2, keepdims=True)
    f = frequency[:, None]
    prior = np.stack([(1 - f) ** 2, 2 * f * (1 - f), f**2], axis=2)
    h = product(G * prior)  # division by the maximum, with its logarithm added again, has no effect here
    fixed = _logarithms(G[:, :, 0]).sum(axis=1)
    log_variable, log_invariant = _logarithms([variable, 1 - variable]).tolist()
    answer = np.zeros_like(h)
    for site, row in enumerate(h):
        total = -math.inf
        for value in row:
            total = log_sum(total, value)
        b = log_sum(log_variable + total, log_invariant + fixed[site])
        if b == -math.inf:
            continue
        answer[site] = np.exp(log_variable + row - b)
        answer[site, 0] += math.exp(log_invariant + fixed[site] - b)
    return answer
