"""Generator of genotype likelihoods: population allele frequencies and sequencing reads."""

from __future__ import annotations

import numpy as np

from .problem import Floats, Mode, Problem


def example() -> Problem:
    """Return a hundred sites, neither a multiple of a block nor a power of two individuals."""
    return generate(20, sites=100, individuals=45)


def likelihoods(seed: int, sites: int, individuals: int, depth: float = 3.0, error: float = 0.01) -> Floats:
    """Return (sites, individuals, 3): P(reads | genotype) with maximum 1, in integer Phred scores as reported by a caller.

    The probability of a minor allele count is proportional to its reciprocal. Genotypes are in Hardy-Weinberg
    proportions. Read numbers
    are Poisson distributed, so that some individuals have no reads and no information. Equal arguments give equal values.
    """
    draw = np.random.default_rng(seed)
    counts = np.arange(1, individuals + 1)
    frequency = draw.choice(counts, sites, p=(1 / counts) / (1 / counts).sum()) / (2 * individuals)
    genotype = draw.binomial(2, frequency[:, None], (sites, individuals))
    reads = draw.poisson(depth, (sites, individuals))
    chance = np.array([error, 0.5, 1 - error])
    minor = draw.binomial(reads, chance[genotype])
    logarithm = minor[..., None] * np.log10(chance) + (reads - minor)[..., None] * np.log10(1 - chance)
    phred = np.round(-10 * (logarithm - logarithm.max(axis=2, keepdims=True)))
    return np.asarray(10.0 ** (phred / -10.0))


def generate(seed: int, sites: int, individuals: int, mode: Mode = "saf", depth: float = 3.0) -> Problem:
    """Return a problem with such likelihoods, with a site every 100 bases."""
    values = likelihoods(seed, sites, individuals, depth)
    frequency = values[:, :, 2].mean(axis=1) / values.sum(axis=2).mean(axis=1) if mode == "gama" else np.empty(0)
    return Problem(values, ["1"] * sites, np.arange(1, sites + 1) * 100, mode, frequency)
