"""Semi-global alignment as a plain compiled loop, what GPUs are compared with: GATK's two stages, a pair after the other.

The same matrices and rules as `alignment`, with 32-bit integers in memory that is taken once. SOFTCLIP only.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Parameters = tuple[int, int, int, int]
"""Match, mismatch, opening a gap, extending it by one: what each adds to a score."""
Offsets = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int32]

FLOOR = -100_000_000
NEVER = -(2**30)
"""A gap that is not open yet."""


def align_all(
    references: Bytes,
    reference_offsets: Offsets,
    alternates: Bytes,
    alternate_offsets: Offsets,
    parameters: Parameters,
    threads: int = 1,
    trace: bool = True,
) -> tuple[Integers, npt.NDArray[np.uint32]]:
    """((offset, score, operations) of every pair, its operations from the end as length << 4 | BAM's number).

    Pair p is [offsets[p], offsets[p + 1]) of both. threads: each takes pairs that follow each other. trace: whether the
    second stage runs; without it there are scores only. A pair has at most as many operations as a row of the answer.
    """
    n, m = np.diff(reference_offsets), np.diff(alternate_offsets)
    found = np.zeros((len(n), 3), np.int32)
    operations = np.zeros((len(n), int((n + m).max(initial=0)) + 2 if trace else 1), np.uint32)
    bounds = np.linspace(0, len(n), max(threads, 1) + 1).astype(np.int64)

    def some(share: int) -> None:
        first, last = int(bounds[share]), int(bounds[share + 1])
        shape = int(n[first:last].max(initial=0)) + 1, int(m[first:last].max(initial=0)) + 1
        score, step = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        _align(
            references, reference_offsets, alternates, alternate_offsets, *parameters, first, last, score, step, trace,
            found, operations,
        )  # fmt: skip

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(some, range(max(threads, 1))))
    return found, operations


@njit(nogil=True)
def _align(
    references: Bytes,
    reference_offsets: Offsets,
    alternates: Bytes,
    alternate_offsets: Offsets,
    match: int,
    mismatch: int,
    opening: int,
    extending: int,
    first: int,
    last: int,
    score: Integers,
    step: Integers,
    trace: bool,
    found: Integers,
    operations: npt.NDArray[np.uint32],
) -> None:
    for pair in range(first, last):
        reference = references[reference_offsets[pair] : reference_offsets[pair + 1]]
        alternate = alternates[alternate_offsets[pair] : alternate_offsets[pair + 1]]
        _fill(reference, alternate, match, mismatch, opening, extending, score, step)
        i, j = _end(score, len(reference), len(alternate))
        found[pair, 1] = score[i, j]
        if trace:
            found[pair, 0], found[pair, 2] = _walk(step, i, j, len(alternate), operations[pair])


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
    """The first stage; row 0 and column 0 are 0."""
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
    """The cell that the alignment ends in."""
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
    """The second stage: (offset, operations); single matches are walked one by one."""
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
