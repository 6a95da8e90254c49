"""Sites as the readers of all formats give them: checked likelihoods, a batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...family import InputError
from .problem import Alleles, Counts, Floats
from .problem_loops import first_wrong

BYTES_AT_ONCE = 1 << 23
"""Most bytes of a batch's likelihoods."""
SECTION_BYTES = 1 << 21
"""Of a file, which are read at a time: as likelihoods two batches or so at most."""
LARGEST = 1e300
"""Likelihood: their sums and products with small numbers stay finite."""
SITES_AT_ONCE = 1 << 14
"""Most sites of a batch."""

SiteCounts = Counter[str]
"""Sites by what became of them, in words for people; "sites" counts those that are in the answer."""


@dataclass(frozen=True)
class Sites:
    """A batch of sites of a file. likelihoods: (sites, N, 3) of first/first, first/second, second/second allele.

    scale: a logarithm a site, of what was divided out of them. reads: of the second allele and of both, (sites, N)
    each, where the file counts them; 0 of both: it does not for this individual. alleles: (ID, REF, ALT) of each site,
    and samples: their names, where the file has them.
    """

    likelihoods: Floats
    chromosomes: list[str]
    positions: Counts
    scale: Floats
    reads: tuple[Counts, Counts] | None = None
    alleles: list[Alleles] = field(default_factory=list)
    samples: tuple[str, ...] = ()


SectionReader = Callable[[SiteCounts], Iterable[Sites]]
"""Reads a part of a file, a batch of sites at a time, in any thread; counts the sites that it skips. Raises InputError."""


def loaded_section(sites: Sites) -> SectionReader:
    """A part that is read already."""
    return lambda counts: [sites]


@dataclass
class SiteBatch:
    """Collects sites, one after the other, until they make a batch.

    where: the place of each site in the file, for messages. The other fields are those of `Sites`, site by site.
    """

    individuals: int
    likelihoods: list[Floats] = field(default_factory=list)
    chromosomes: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    reads: list[tuple[Counts, Counts]] = field(default_factory=list)
    alleles: list[Alleles] = field(default_factory=list)
    samples: tuple[str, ...] = ()

    def add(self, likelihoods: Floats, chromosome: str, position: int, places: str, scale: float = 0.0) -> None:
        self.likelihoods.append(likelihoods)
        self.chromosomes.append(chromosome)
        self.positions.append(position)
        self.places.append(places)
        self.scale.append(scale)

    @property
    def full(self) -> bool:
        return len(self.likelihoods) >= batch_size(self.individuals)

    def sites(self, path: Path, what: str = "likelihood") -> Sites:
        """The sites collected so far. Raises InputError where a number is not `what`."""
        likelihoods = np.array(self.likelihoods, np.float64).reshape(-1, self.individuals, 3)
        check_likelihoods(path, likelihoods, self.places.__getitem__, what)
        reads = (np.array([a for a, _ in self.reads]), np.array([n for _, n in self.reads])) if self.reads else None
        return Sites(
            likelihoods, self.chromosomes, np.array(self.positions, np.int64), np.array(self.scale), reads, self.alleles,
            self.samples,
        )  # fmt: skip


def position(text: bytes) -> int | None:
    """A position of ASCII digits that fits; None where it is something else."""
    if not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def batch_size(individuals: int) -> int:
    """Sites of a batch."""
    return max(1, min(SITES_AT_ONCE, BYTES_AT_ONCE // (24 * individuals)))


def check_likelihoods(path: Path, likelihoods: Floats, places: Callable[[int], str], what: str = "likelihood") -> None:
    """Raise InputError where a number is no likelihood; `places` gives the place of a site in the file."""
    sites, individuals = likelihoods.shape[:2]
    wrong = int(first_wrong(np.ascontiguousarray(likelihoods).reshape(-1), sites * individuals, LARGEST))
    if wrong < 0:
        return
    site, individual = divmod(wrong, individuals)
    shown = " ".join(f"{value:g}" for value in likelihoods[site, individual])
    raise InputError(
        f"{path}: {places(site)}, individual {individual + 1}: '{shown}' are no {what}s, expected three numbers from 0 to "
        f"{LARGEST:g}, not all zero"
    )
