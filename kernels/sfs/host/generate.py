"""Realistic genotype likelihoods from a seed: allele frequencies as in a population, reads as a sequencer makes them."""

from __future__ import annotations

import numpy as np

from .problem import Floats, Mode, Problem


def example() -> Problem:
    """A hundred sites, neither a multiple of a block nor a power of two individuals."""
    return generate(20, sites=100, individuals=45)


def likelihoods(seed: int, sites: int, individuals: int, depth: float = 3.0, error: float = 0.01) -> Floats:
    """(sites, individuals, 3): P(reads | genotype) as a caller reports it, the largest 1, in whole Phred scores.

    Minor allele frequencies are as likely as the reciprocal of their count; genotypes are in Hardy-Weinberg
    proportions; reads are Poisson, so that some individuals have none and know nothing. Equal arguments, equal values.
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
    """A problem of such likelihoods; sites 100 bases apart."""
    values = likelihoods(seed, sites, individuals, depth)
    frequency = values[:, :, 2].mean(axis=1) / values.sum(axis=2).mean(axis=1) if mode == "gama" else np.empty(0)
    return Problem(values, ["1"] * sites, np.arange(1, sites + 1) * 100, mode, frequency)
