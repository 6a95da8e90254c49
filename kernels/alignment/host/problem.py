"""Semi-global alignment problem: pairs of a reference and an alternate, scores, and treatment of overhanging ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...files.letters import folded

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]

ANSWER = np.dtype([("cigar", object), ("offset", np.int32), ("score", np.int32)])
"""Result of a pair: CIGAR, first reference base of the alternate, score of the end cell."""


class Parameters(NamedTuple):
    """Scores of a match, a mismatch, the first base of a gap and each further base."""

    match: int
    mismatch: int
    opening: int
    extending: int


class Strategy(IntEnum):
    """Treatment of the overhanging ends of the alternate, by GATK's names."""

    SOFTCLIP = 0
    INDEL = 1
    LEADING_INDEL = 2
    IGNORE = 3

    @property
    def borders_cost(self) -> bool:
        """Whether row 0 and column 0 have gap costs; otherwise they are 0."""
        return self in (Strategy.INDEL, Strategy.LEADING_INDEL)


NEW = Parameters(200, -150, -260, -11)
"""GATK's parameters for haplotypes and reads, used in the paper."""


@dataclass(frozen=True)
class Problem:
    """Pairs of a reference, the rows i = 1..n, and an alternate, the columns j = 1..m.

    references, alternates: concatenated bases A, C, G, T and N; sequence p is [offsets[p], offsets[p+1]). names: of reference and
    alternate, if the input has them. before: number of preceding pairs of the same input.
    """

    references: Bytes
    reference_offsets: Offsets
    alternates: Bytes
    alternate_offsets: Offsets
    parameters: Parameters = NEW
    strategy: Strategy = Strategy.SOFTCLIP
    names: tuple[tuple[str, str], ...] = ()
    before: int = 0

    def __len__(self) -> int:
        return len(self.reference_offsets) - 1

    @cached_property
    def rows(self) -> Offsets:
        """n of every pair."""
        return np.diff(self.reference_offsets)

    @cached_property
    def columns(self) -> Offsets:
        """m of every pair."""
        return np.diff(self.alternate_offsets)

    @property
    def cells(self) -> int:
        """Total number of cells of all matrices."""
        return int((self.rows * self.columns).sum())

    def subset(self, first: int, last: int) -> Problem:
        """Return the pairs [first, last)."""
        r, a = self.reference_offsets[first : last + 1], self.alternate_offsets[first : last + 1]
        return replace(
            self,
            references=self.references[r[0] : r[-1]],
            reference_offsets=r - r[0],
            alternates=self.alternates[a[0] : a[-1]],
            alternate_offsets=a - a[0],
            names=self.names[first:last],
            before=self.before + first,
        )

    def shares(self, count: int) -> list[Problem]:
        """Split into at most `count` consecutive problems with similar numbers of cells."""
        cells_until = np.cumsum(self.rows * self.columns) / max(self.cells, 1)
        ends = np.unique(np.searchsorted(cells_until, np.arange(1, count) / count, "right")).tolist()
        bounds = [0, *(end for end in ends if 0 < end < len(self)), len(self)]
        return [self.subset(first, last) for first, last in pairwise(bounds)]

    def pairs(self) -> Iterator[tuple[Bytes, Bytes]]:
        """Yield every reference with its alternate, as views."""
        for p in range(len(self)):
            yield self.reference(p), self.alternate(p)

    def reference(self, pair: int) -> Bytes:
        return self.references[self.reference_offsets[pair] : self.reference_offsets[pair + 1]]

    def alternate(self, pair: int) -> Bytes:
        return self.alternates[self.alternate_offsets[pair] : self.alternate_offsets[pair + 1]]

    @staticmethod
    def from_pairs(
        pairs: Iterable[tuple[Any, Any]], parameters: Parameters = NEW, strategy: Strategy = Strategy.SOFTCLIP
    ) -> Problem:
        """Create a problem from pairs of bytes or arrays of uint8. Letters: see `files.letters`.

        Raises SimtbedError for another character.
        """
        references, alternates = [], []
        for reference, alternate in pairs:
            references.append(folded(_bytes(reference)))
            alternates.append(folded(_bytes(alternate)))
        return Problem(*_joined(references), *_joined(alternates), parameters, strategy)


def offsets(lengths: Offsets) -> Offsets:
    """Return the start of each of several consecutive items, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def concatenate(problems: Sequence[Problem]) -> Problem:
    """Concatenate at least one problem."""
    first = problems[0]
    return replace(
        first,
        references=np.concatenate([part.references for part in problems]),
        reference_offsets=offsets(np.concatenate([part.rows for part in problems])),
        alternates=np.concatenate([part.alternates for part in problems]),
        alternate_offsets=offsets(np.concatenate([part.columns for part in problems])),
        names=tuple(names for part in problems for names in part.names),
    )


def _joined(sequences: list[Bytes]) -> tuple[Bytes, Offsets]:
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    return np.concatenate([np.empty(0, np.uint8), *sequences]), offsets(lengths)


def _bytes(sequence: Any) -> Bytes:
    return np.frombuffer(sequence, np.uint8) if isinstance(sequence, bytes) else np.asarray(sequence, np.uint8)
