"""Alignments of a problem as arrays: the operations of all pairs, with BAM's encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...family import Answer
from .files_scan import NUMBER, cigars, collect
from .problem import ANSWER, Offsets, offsets

Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Alignments:
    """Alignments of all pairs.

    operations: u32, length << 4 | letter, from the start to the end; those of pair p at [firsts[p], firsts[p + 1]).
    offsets, scores: first reference base of the alternate, and score of the end cell.
    """

    operations: npt.NDArray[np.uint32]
    firsts: Offsets
    offsets: Integers
    scores: Integers

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def cigar_capacity(self) -> int:
        """Upper bound of the characters of all CIGARs."""
        return len(self.operations) * NUMBER

    def answer(self) -> Answer:
        """Return an array of ANSWER, with CIGARs as text."""
        to, ends = np.empty(self.cigar_capacity, np.uint8), np.empty(len(self), np.int64)
        length = cigars(self.operations, self.firsts, len(self), to, ends)
        text, begins = to[:length].tobytes().decode("ascii"), [0, *ends.tolist()]
        rows = np.empty(len(self), ANSWER)
        rows["cigar"] = [text[first:last] for first, last in pairwise(begins)]
        rows["offset"], rows["score"] = self.offsets, self.scores
        return rows


@dataclass(frozen=True)
class Walked:
    """Output of a launch of `traceback`. pairs: its pairs in order. results: number of operations and offset of each."""

    pairs: Offsets
    operations: npt.NDArray[np.uint32]
    results: Integers
    capacity: int


def concatenate(walks: Sequence[Walked], scores: Integers) -> Alignments:
    """Return the alignments of all pairs. The last traceback of a pair has the capacity for its operations."""
    counts, begins = np.zeros(len(scores), np.int64), np.zeros(len(scores), np.int32)
    for walk in walks:
        counts[walk.pairs], begins[walk.pairs] = walk.results[:, 0], walk.results[:, 1]
    firsts = offsets(counts)
    operations = np.empty(firsts[-1], np.uint32)
    for walk in walks:
        collect(
            walk.operations, walk.results.reshape(-1), walk.pairs, len(walk.pairs), walk.capacity, firsts, operations
        )
    return Alignments(operations, firsts, begins, scores)
