"""Semi-global alignment with traceback as a compiled scalar loop: the CPU reference of speed comparisons.

Same matrices and rules as `alignment`, with 32-bit integers and one allocation. SOFTCLIP only.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Parameters = tuple[int, int, int, int]
"""Scores of a match, a mismatch, a gap opening and a gap extension."""
Offsets = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int32]


class Pairs(NamedTuple):
    """Concatenated sequences: pair p is [offsets[p], offsets[p + 1]) of both arrays."""

    references: Bytes
    reference_offsets: Offsets
    alternates: Bytes
    alternate_offsets: Offsets


FLOOR = -100_000_000
NEVER = -(2**30)
"""Score of a closed gap."""


def align_all(
    references: Bytes,
    reference_offsets: Offsets,
    alternates: Bytes,
    alternate_offsets: Offsets,
    parameters: Parameters,
    threads: int = 1,
    trace: bool = True,
) -> tuple[Integers, npt.NDArray[np.uint32]]:
    """Return (offset, score, number of operations) of every pair, and its operations in reverse order as length << 4 | BAM code.

    Pair p is [offsets[p], offsets[p + 1]) of both arrays. threads: each processes consecutive pairs. trace: run the second stage;
    otherwise only scores are computed. A row of the result limits the number of operations of a pair.
    """
    n, m = np.diff(reference_offsets), np.diff(alternate_offsets)
    results = np.zeros((len(n), 3), np.int32)
    operations = np.zeros((len(n), int((n + m).max(initial=0)) + 2 if trace else 1), np.uint32)
    bounds = np.linspace(0, len(n), max(threads, 1) + 1).astype(np.int64)
    pairs = Pairs(references, reference_offsets, alternates, alternate_offsets)

    def some(share: int) -> None:
        first, last = int(bounds[share]), int(bounds[share + 1])
        shape = int(n[first:last].max(initial=0)) + 1, int(m[first:last].max(initial=0)) + 1
        score, step = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        _align(pairs, parameters, first, last, (score, step), trace, results, operations)

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(some, range(max(threads, 1))))
    return results, operations


@njit(nogil=True)
def _align(
    pairs: Pairs,
    parameters: Parameters,
    first: int,
    last: int,
    matrices: tuple[Integers, Integers],
    trace: bool,
    results: Integers,
    operations: npt.NDArray[np.uint32],
) -> None:
    match, mismatch, opening, extending = parameters
    score, step = matrices
    for pair in range(first, last):
        reference = pairs.references[pairs.reference_offsets[pair] : pairs.reference_offsets[pair + 1]]
        alternate = pairs.alternates[pairs.alternate_offsets[pair] : pairs.alternate_offsets[pair + 1]]
        _fill(reference, alternate, match, mismatch, opening, extending, score, step)
        i, j = _end(score, len(reference), len(alternate))
        results[pair, 1] = score[i, j]
        if trace:
            results[pair, 0], results[pair, 2] = _walk(step, i, j, len(alternate), operations[pair])


@njit(nogil=True)
def _fill(
    reference: Bytes,
    alternate: Bytes,
    match: int,
    mismatch: int,
    opening: int,
    extending: int,
    score: Integers,
    step: Integers,
) -> None:
    """Compute the score and step matrices. Row 0 and column 0 are 0."""
    n, m = len(reference), len(alternate)
    deletion = np.full(m + 1, NEVER, np.int32)
    deletion_length = np.zeros(m + 1, np.int32)
    for i in range(1, n + 1):
        base = reference[i - 1]
        insertion, insertion_length = NEVER, 0
        left, corner = 0, score[i - 1, 0]
        for j in range(1, m + 1):
            up = score[i - 1, j]
            down, length = deletion[j] + extending, deletion_length[j] + 1
            if up + opening > down:
                down, length = up + opening, 1
            deletion[j], deletion_length[j] = down, length
            insertion, insertion_length = insertion + extending, insertion_length + 1
            if left + opening > insertion:
                insertion, insertion_length = left + opening, 1
            diagonal = corner + (match if base == alternate[j - 1] else mismatch)
            if diagonal >= down and diagonal >= insertion:
                left, size = diagonal, 0
            elif insertion >= down:
                left, size = insertion, -insertion_length
            else:
                left, size = down, length
            left = max(left, FLOOR)
            score[i, j], step[i, j] = left, size
            corner = up


@njit(nogil=True)
def _end(score: Integers, n: int, m: int) -> tuple[int, int]:
    """Return the end cell of the alignment."""
    row, column, best = 0, m, NEVER
    for i in range(1, n + 1):
        if score[i, m] >= best:
            row, best = i, score[i, m]
    for j in range(1, m + 1):
        if score[n, j] > best or (score[n, j] == best and abs(n - j) < abs(row - column)):
            row, column, best = n, j, score[n, j]
    return row, column


@njit(nogil=True)
def _walk(step: Integers, i: int, j: int, m: int, operations: npt.NDArray[np.uint32]) -> tuple[int, int]:
    """Trace back from the end cell, one match at a time. Return the offset and the number of operations."""
    state, length, count = 4, m - j, 0
    while i > 0 and j > 0:
        size = step[i, j]
        operation = 0 if size == 0 else 1 if size < 0 else 2
        moved = max(abs(size), 1)
        i -= 0 if operation == 1 else moved
        j -= 0 if operation == 2 else moved
        if operation != state:
            if length > 0:
                operations[count] = length << 4 | state
                count += 1
            state, length = operation, 0
        length += moved
    if length > 0:
        operations[count] = length << 4 | state
        count += 1
    if j > 0:
        operations[count] = j << 4 | 4
        count += 1
    return i, count
