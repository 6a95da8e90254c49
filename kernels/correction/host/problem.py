"""Correction problem in memory: reads as one text, parameters, corrected reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError

from .files_scan import find_valid_reads

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
FilterName = Literal["exact", "bloom", "split-first", "blocked"]

SHORTEST_K, LONGEST_K = 12, 31
MOST_MULTIPLICITY = 255
"""Maximum multiplicity: the histogram of counts has this number of bins."""
LEAST_SPLIT = 3
"""Minimum number of fractions of a split filter; smaller numbers denote other filters in the kernels."""

_UPPER = np.arange(256, dtype=np.uint8)
_UPPER[ord("a") : ord("z") + 1] -= ord("a") - ord("A")
_UPPER[[ord("u"), ord("U")]] = ord("T")


def in_upper_case(text: Bytes) -> Bytes:
    """Return ASCII letters in upper case, U as T."""
    return _UPPER[text]


@dataclass(frozen=True)
class Parameters:
    """Parameters of error correction.

    k: bases of a k-mer. min_multiplicity: minimum count of a solid k-mer, over reads and reverse complements.
    min_votes: a change needs more
    votes. max_trim: maximum bases removed by trimming at either end. split: number of equal fractions of the bits of the filter
    split-first; the first hash function has one of them.

    Raise SimtbedError if one is out of range.
    """

    k: int = 20
    min_multiplicity: int = 6
    min_votes: int = 2
    max_trim: int = 20
    trim: bool = True
    filter: FilterName = "exact"
    split: int = 16

    def __post_init__(self) -> None:
        ranges = {
            "split": (LEAST_SPLIT, 1 << 20),
            "k": (SHORTEST_K, LONGEST_K),
            "min_multiplicity": (1, MOST_MULTIPLICITY),
            "min_votes": (0, 255),
        }
        for name, (least, most) in {**ranges, "max_trim": (0, 2**31 - 1)}.items():
            if not least <= getattr(self, name) <= most:
                raise SimtbedError(f"{name} is {least} to {most}, not {getattr(self, name)}")


@dataclass(frozen=True)
class Reads:
    """Reads, stored as one text.

    text: ASCII, upper case without U, a newline after each read; read r is text[offsets[r]] to text[offsets[r + 1] - 1].
    validity: whether all letters of each read are A, C, G or T; None if not yet computed.
    """

    text: Bytes
    offsets: Offsets
    validity: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> Offsets:
        return np.diff(self.offsets) - 1

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Whether all letters of each read are A, C, G or T."""
        if self.validity is not None:
            return self.validity
        edits_of_reads = np.empty(len(self), np.bool_)
        find_valid_reads(self.text, self.offsets, len(self), edits_of_reads)
        return edits_of_reads

    def strings(self) -> list[str]:
        return self.text.tobytes().decode("ascii").split("\n")[:-1]

    def subset(self, first: int, last: int) -> Reads:
        """Return the reads [first, last), as a view."""
        begin = self.offsets[first]
        validity = None if self.validity is None else self.validity[first:last]
        return Reads(self.text[begin : self.offsets[last]], self.offsets[first : last + 1] - begin, validity)

    @staticmethod
    def from_strings(sequences: Sequence[str]) -> Reads:
        """Return reads of these sequences of letters."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        text = "".join([s for sequence in sequences for s in (sequence, "\n")]).encode("ascii")
        return Reads(in_upper_case(np.frombuffer(text, np.uint8)), np.concatenate([[0], np.cumsum(lengths + 1)]))

    @staticmethod
    def concatenate(batches: Sequence[Reads]) -> Reads:
        """Concatenate reads in order."""
        lengths = np.concatenate([np.empty(0, np.int64), *(batch.lengths for batch in batches)])
        text = np.concatenate([np.empty(0, np.uint8), *(batch.text for batch in batches)])
        return Reads(text, np.concatenate([[0], np.cumsum(lengths + 1)]))


@dataclass(frozen=True)
class Problem:
    """Reads to correct by the spectrum of all of them."""

    reads: Reads
    parameters: Parameters = field(default_factory=Parameters)


@dataclass(frozen=True)
class Corrected:
    """Corrected reads, in input order.

    text: the reads' text with its changes, before trimming. flags: F (retained), D (discarded) or S (shorter than k:
    retained unchanged)
    for each read. spans: int32[reads, 2], the retained [start, end), (0, 0) for a discarded read.
    """

    reads: Reads
    text: Bytes
    flags: Bytes
    spans: npt.NDArray[np.int32]

    def sequence(self, read: int) -> str:
        """Return a read after correction and, if it is retained, trimming."""
        begin, end = self.reads.offsets[read], self.reads.offsets[read + 1] - 1
        if self.flags[read] != ord("D"):
            begin, end = begin + self.spans[read, 0], begin + self.spans[read, 1]
        return self.text[begin:end].tobytes().decode("ascii")

    def edits(self) -> dict[int, list[tuple[int, str, str]]]:
        """Return the changes of each changed read: (position from 0, base before, base after)."""
        places = np.flatnonzero(self.text != self.reads.text)
        owners = np.searchsorted(self.reads.offsets, places, "right") - 1
        edits_of_reads: dict[int, list[tuple[int, str, str]]] = {}
        for place, owner in zip(places.tolist(), owners.tolist(), strict=True):
            change = (place - int(self.reads.offsets[owner]), chr(self.reads.text[place]), chr(self.text[place]))
            edits_of_reads.setdefault(owner, []).append(change)
        return edits_of_reads

    def answer(self) -> npt.NDArray[Any]:
        """Return one string per read: its flag and its sequence."""
        whole = [f"{chr(flag)} {self.sequence(r)}" for r, flag in enumerate(self.flags.tolist())]
        return strings(whole)


def strings(values: Iterable[str]) -> npt.NDArray[Any]:
    """Return an array of strings of any length."""
    listed = list(values)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array
