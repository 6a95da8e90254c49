"""Site frequency spectrum problem in memory: genotype likelihoods by site and individual, and the mode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from .problem_loops import by_largest

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Alleles = tuple[str, str, str]
Mode = Literal["product", "saf", "gama"]

P_VARIABLE, EPSILON = 0.015, 0.005
"""gama: the prior probability that a site varies and the error rate of a base, the defaults of realSFS and of its copy in SOAP.
"""


@dataclass(frozen=True)
class Problem:
    """Sites with the likelihoods of three genotypes for every individual.

    likelihoods: (sites, individuals, 3) in the order major/major, heterozygous, minor/minor; finite, not negative,
    not all zero. Three
    equal likelihoods are no information. chromosomes, positions: by site, positions from 1.
    mode: "product" of the vectors unchanged, "saf" as ANGSD's -doSaf, "gama" the posterior of realSFS and GAMA.
    frequency: in gama mode, of the minor allele at each site. variable: in gama mode, the prior probability that a site varies.
    scale: in product mode, the logarithm per site of a factor removed from the likelihoods.
    alleles: (ID, REF, ALT) of each site, and samples: names, if the input has them. swapped: whether the likelihoods
    of a site have ALT
    first; empty: none.
    """

    likelihoods: Floats
    chromosomes: list[str]
    positions: Counts
    mode: Mode = "saf"
    frequency: Floats = field(default_factory=lambda: np.empty(0))
    variable: float = P_VARIABLE
    scale: Floats = field(default_factory=lambda: np.empty(0))
    alleles: list[Alleles] = field(default_factory=list)
    samples: tuple[str, ...] = ()
    swapped: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    @property
    def sites(self) -> int:
        return len(self.likelihoods)

    @property
    def individuals(self) -> int:
        return int(self.likelihoods.shape[1])

    def vectors(self) -> tuple[Floats, Floats]:
        """Return (vectors, scale): the factors with maximum 1, and the logarithm per site of the removed factor."""
        vectors, middle = self.likelihoods, 2.0 if self.mode == "saf" else 1.0
        if self.mode == "gama":
            f = self.frequency[:, None]
            prior = np.stack([(1 - f) ** 2, 2 * f * (1 - f), f**2], axis=2)
            vectors = vectors / vectors.sum(axis=2, keepdims=True) * prior
        divided, largest = np.empty(vectors.shape), np.empty(vectors.shape[:2])
        by_largest(
            np.ascontiguousarray(vectors).reshape(-1), largest.size, middle, divided.reshape(-1), largest.reshape(-1)
        )
        with np.errstate(divide="ignore"):
            scale = np.log(largest).sum(axis=1)
        if self.mode == "product" and len(self.scale):
            scale = scale + self.scale
        return divided, scale

    def fixed(self) -> Floats:
        """Return the log likelihood of each site without the minor allele, for likelihoods with sum 1."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.likelihoods[:, :, 0] / self.likelihoods.sum(axis=2)).sum(axis=1))

    def subset(self, chosen: slice) -> Problem:
        """Return the problem of some of the sites."""
        return Problem(
            self.likelihoods[chosen], self.chromosomes[chosen], self.positions[chosen], self.mode,
            self.frequency[chosen], self.variable, self.scale[chosen], self.alleles[chosen], self.samples,
            self.swapped[chosen],
        )  # fmt: skip


Rows = Iterable[tuple[Problem, Floats]]
"""Problems and their answers, some sites at a time; at least one, possibly without sites."""
