"""GAMA-CPU as compiled scalar loops: Algorithm 1, the reduction with and without skipped zeros, and normalisation, in doubles.

The CPU reference of Lu 2012: sites in sequence on one core, or distributed over threads on all cores.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Work = Callable[[Floats], Floats]


@njit(nogil=True)
def iterative(vectors: Floats) -> Floats:
    """Algorithm 1. Return products of shape (sites, 2N + 1). vectors: (sites, N, 3), each triple with a sum of at most 1."""
    sites, individuals, _ = vectors.shape
    answer = np.zeros((sites, 2 * individuals + 1))
    for site in range(sites):
        h = answer[site]
        h[0], h[1], h[2] = vectors[site, 0]
        for i in range(2, individuals + 1):
            p0, p1, p2 = vectors[site, i - 1]
            h[2 * i] = p2 * h[2 * i - 2]
            h[2 * i - 1] = p2 * h[2 * i - 3] + p1 * h[2 * i - 2]
            for j in range(2 * i - 2, 1, -1):
                h[j] = p2 * h[j - 2] + p1 * h[j - 1] + p0 * h[j]
            h[1] = p1 * h[0] + p0 * h[1]
            h[0] = p0 * h[0]
    return answer


@njit(nogil=True)
def _zeros(values: Floats) -> int:
    zeros = 0
    for value in values:
        zeros += value == 0.0
    return zeros


@njit(nogil=True)
def _merge(a: Floats, b: Floats, c: Floats, skip: bool) -> None:
    """Algorithm 2: c = a (x) b. skip: the vector with more zeros is the outer one, and its zeros are skipped."""
    if skip and _zeros(b) > _zeros(a):
        a, b = b, a
    c[:] = 0.0
    for i in range(len(a)):
        x = a[i]
        if skip and x == 0.0:
            continue
        for j in range(len(b)):
            c[i + j] += x * b[j]


@njit(nogil=True)
def reduced(vectors: Floats, skip: bool, scaled: bool = False) -> Floats:
    """Return the products by pairwise merges.

    scaled: divide each vector by its maximum; the products of a site are then correct up to a factor. Otherwise, vectors with a sum
    other than 1 underflow for thousands of individuals.
    """
    sites, individuals, _ = vectors.shape
    answer = np.zeros((sites, 2 * individuals + 1))
    for site in range(sites):
        source, target = vectors[site].copy().reshape(-1), np.zeros(3 * individuals)
        group = 1
        while group < individuals:
            for first in range(0, individuals, 2 * group):
                a, c = first // group * (2 * group + 1), first // (2 * group) * (4 * group + 1)
                b = a + 2 * group + 1
                n = 2 * min(group, individuals - first) + 1
                m = 2 * min(group, max(individuals - first - group, 0)) + 1
                if m == 1:
                    target[c : c + n] = source[a : a + n]
                else:
                    whole = target[c : c + n + m - 1]
                    _merge(source[a : a + n], source[b : b + m], whole, skip)
                    largest = whole.max() if scaled else 0.0
                    if largest > 0.0:
                        whole /= largest
            source, target = target, source
            group *= 2
        answer[site] = source[: 2 * individuals + 1]
    return answer


@njit(nogil=True)
def normalised(h: Floats, t: Floats, fixed: Floats, variable: float) -> Floats:
    """Algorithms 4 and 5. Return the posteriors of products h e^t. fixed: log likelihood of an invariant site, for each site."""
    answer = np.zeros(h.shape)
    log_variable, log_invariant = math.log(variable), math.log(1 - variable)
    for site in range(len(h)):
        a = np.log(h[site]) + t[site]
        most = a.max()
        total = math.log(np.exp(a - most).sum()) + most
        x, y = log_variable + total, log_invariant + fixed[site]
        larger = max(x, y)
        b = math.log(math.exp(x - larger) + math.exp(y - larger)) + larger
        answer[site] = np.exp(a + log_variable - b)
        answer[site, 0] += math.exp(y - b)
    return answer


def normalised_in_long_doubles(h: Floats, t: Floats, fixed: Floats, variable: float) -> Floats:
    """Algorithm 3 in C's long doubles, with 15-bit exponents on x86."""
    a = h.astype(np.longdouble) * np.exp(t.astype(np.longdouble))[:, None]
    p = np.longdouble(variable)
    rest = (1 - p) * np.exp(fixed.astype(np.longdouble))
    b = p * a.sum(axis=1) + rest
    answer = p * a / b[:, None]
    answer[:, 0] += rest / b
    return np.asarray(answer, np.float64)


def normalised_as_printed(h: Floats, t: Floats, fixed: Floats, variable: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Algorithm 3 in doubles. Also return the sites with a division by zero."""
    a = h * np.exp(t)[:, None]
    rest = (1 - variable) * np.exp(fixed)
    b = variable * a.sum(axis=1) + rest
    with np.errstate(divide="ignore", invalid="ignore"):
        answer = variable * a / b[:, None]
        answer[:, 0] += rest / b
    return answer, b == 0


def on_all_cores(work: Work, vectors: Floats) -> Floats:
    """Apply `work` to all sites, with as many threads as cores."""
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as threads:
        return np.concatenate(list(threads.map(work, np.array_split(vectors, cores))))
