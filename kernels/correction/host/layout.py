"""Layout of reads for the kernels, and the number of threads of a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import Global, empty, i32, i64, u8
from simtbed.native import native

from .problem import Bytes, Offsets, Reads

Places = npt.NDArray[np.int32]

SHARED = 48 * 1024
"""Shared memory of a block without opt-in, in bytes."""


@dataclass(frozen=True)
class ReadLayout:
    """Reads, the indices of those that can be corrected by k-mers of k bases, and (first letter, length) of each of these."""

    k: int
    reads: Reads
    chosen: Offsets
    places: Places


def arrange_reads(reads: Reads, k: int) -> ReadLayout:
    """Return the layout of reads: those of A, C, G, T that are not shorter than k are chosen."""
    chosen, places = np.empty(len(reads), np.int64), np.empty((len(reads), 2), np.int32)
    count = int(choose_reads(reads.offsets, reads.valid, len(reads), k, chosen, places.reshape(-1)))
    return ReadLayout(k, reads, chosen[:count], places[:count])


@native
def choose_reads(
    offsets: Global[i64], valid: Global[bool], reads: i64, k: i64, chosen: Global[i64], places: Global[i32]
) -> i64:
    """Find the reads that can be corrected, and their places; return their number."""
    count = i64(0)
    for read in range(reads):
        size = offsets[read + 1] - 1 - offsets[read]
        if valid[read] and size >= k:
            chosen[count] = read
            places[2 * count] = i32(offsets[read])
            places[2 * count + 1] = i32(size)
            count += 1
    return count


@native
def set_outcomes(
    offsets: Global[i64], reads: i64, k: i64, chosen: Global[i64], chosen_spans: Global[i32], count: i64, flags: Global[u8],
    spans: Global[i32],
) -> None:  # fmt: skip
    """Set the flags and spans of all reads from the spans of the chosen ones."""
    for read in range(reads):
        size = offsets[read + 1] - 1 - offsets[read]
        short = size < k
        flags[read] = 83 if short else u8(68)
        spans[2 * read] = 0
        spans[2 * read + 1] = i32(size) if short else 0
    for place in range(count):
        read = chosen[place]
        spans[2 * read] = chosen_spans[2 * place]
        spans[2 * read + 1] = chosen_spans[2 * place + 1]
        if chosen_spans[2 * place + 1] > 0:
            flags[read] = 70


def longest_read(places: Places) -> int:
    """Return the length of the longest read, rounded up to limit the number of compiled kernels: by at most an eighth,
    to a multiple of 4."""
    length = int(places[:, 1].max())
    step = max(4, 1 << max(length.bit_length() - 4, 0))
    return -(-length // step) * step


def read_arguments(text: Bytes, places: Places) -> dict[str, Any]:
    """Return the kernel arguments for reads. `text` and `spans` are outputs."""
    return {"text": text, "places": places, "spans": empty(len(places), "int2")}
