"""Batches of sites, the common result of the readers of all formats, with checked likelihoods."""

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
"""Maximum bytes of a batch's likelihoods."""
SECTION_BYTES = 1 << 21
"""Bytes of a section of a file: its likelihoods are about two batches at most."""
LARGEST = 1e300
"""Maximum likelihood: sums and products with small numbers remain finite."""
SITES_AT_ONCE = 1 << 14
"""Maximum sites of a batch."""

SiteCounts = Counter[str]
"""Number of sites by outcome, as text for the user; "sites" counts the sites of the answer."""


@dataclass(frozen=True)
class Sites:
    """A batch of sites of a file. likelihoods: (sites, N, 3) of first/first, first/second, second/second allele.

    scale: logarithm per site of a factor removed from them. reads: of the second allele and of both, (sites, N)
    each, if the file has
    read counts; 0 of both if an individual has none. alleles: (ID, REF, ALT) of each site, and samples: names, if the file has them.
    """

    likelihoods: Floats
    chromosomes: list[str]
    positions: Counts
    scale: Floats
    reads: tuple[Counts, Counts] | None = None
    alleles: list[Alleles] = field(default_factory=list)
    samples: tuple[str, ...] = ()


SectionReader = Callable[[SiteCounts], Iterable[Sites]]
"""Reads a section of a file in any thread, in batches of sites; counts skipped sites. Raises InputError if it is malformed."""


def loaded_section(sites: Sites) -> SectionReader:
    """Return the section of sites that are already read."""
    return lambda counts: [sites]


def position(text: bytes) -> int | None:
    """Return a position of at most 18 ASCII digits, None for other texts."""
    if not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def batch_size(individuals: int) -> int:
    """Return the number of sites of a batch."""
    return max(1, min(SITES_AT_ONCE, BYTES_AT_ONCE // (24 * individuals)))


def check_likelihoods(path: Path, likelihoods: Floats, places: Callable[[int], str], what: str = "likelihood") -> None:
    """Raise InputError if a number is no likelihood. places: returns the position of a site in the file."""
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
