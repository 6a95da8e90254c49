"""Semi-global alignment with traceback as defined by GATK: full score matrices, then a traceback."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Parameters = tuple[int, int, int, int]
"""Scores of a match, a mismatch, a gap opening and a gap extension."""

STRATEGIES = ("SOFTCLIP", "INDEL", "LEADING_INDEL", "IGNORE")
LETTERS = "MIDS"
FLOOR = -100_000_000
NEVER = -(2**30)
"""Score of a closed gap: half of the smallest 32-bit integer."""


def align(pairs: Iterable[tuple[Bytes, Bytes]], parameters: Parameters, strategy: str) -> list[tuple[str, int, int]]:
    """Return (CIGAR, offset, score) of every pair of a reference and an alternate."""
    alignments = []
    for reference, alternate in pairs:
        moves, offset, score = align_pair(reference, alternate, *parameters, STRATEGIES.index(strategy))
        alignments.append((cigar(moves.tolist()), int(offset), int(score)))
    return alignments


def cigar(backwards: list[list[int]]) -> str:
    """Return the CIGAR of (length, letter) operations in reverse order. Equal neighbours are merged, empty operations omitted."""
    merged: list[list[int]] = []
    for length, letter in reversed(backwards):
        if merged and merged[-1][1] == letter:
            merged[-1][0] += length
        elif length:
            merged.append([length, letter])
    return "".join(f"{length}{LETTERS[letter]}" for length, letter in merged)


@njit()
def align_pair(
    reference: Bytes, alternate: Bytes, match: int, mismatch: int, opening: int, extending: int, strategy: int
) -> tuple[npt.NDArray[np.int64], int, int]:
    """Return the operations (length, letter) in reverse order, the offset, and the score of one pair."""
    n, m = len(reference), len(alternate)
    score = np.zeros((n + 1, m + 1), np.int64)
    step = np.zeros((n + 1, m + 1), np.int64)  # 0 diagonal, -length insertion, +length deletion
    if strategy in (1, 2):
        for k in range(1, n + 1):
            score[k, 0] = opening + (k - 1) * extending
        for k in range(1, m + 1):
            score[0, k] = opening + (k - 1) * extending
    deletion = np.full(m + 1, NEVER)  # best gap that ends above each column, and its length
    deletion_length = np.zeros(m + 1, np.int64)
    for i in range(1, n + 1):
        insertion, insertion_length = NEVER, 0
        for j in range(1, m + 1):
            deletion[j] += extending
            deletion_length[j] += 1
            if score[i - 1, j] + opening > deletion[j]:
                deletion[j], deletion_length[j] = score[i - 1, j] + opening, 1
            insertion += extending
            insertion_length += 1
            if score[i, j - 1] + opening > insertion:
                insertion, insertion_length = score[i, j - 1] + opening, 1
            diagonal = score[i - 1, j - 1] + (match if reference[i - 1] == alternate[j - 1] else mismatch)
            if diagonal >= deletion[j] and diagonal >= insertion:
                score[i, j] = max(FLOOR, diagonal)
            elif insertion >= deletion[j]:
                score[i, j] = max(FLOOR, insertion)
                step[i, j] = -insertion_length
            else:
                score[i, j] = max(FLOOR, deletion[j])
                step[i, j] = deletion_length[j]
    i, j = _end(score, strategy)
    moves, offset = _traceback(step, i, j, strategy)
    return moves, offset, score[i, j]


@njit()
def _traceback(step: npt.NDArray[np.int64], i: int, j: int, strategy: int) -> tuple[npt.NDArray[np.int64], int]:
    """Follow the steps from cell (i, j) to a border. Return the operations in reverse order, and the offset."""
    n, m = step.shape[0] - 1, step.shape[1] - 1
    moves = np.zeros((n + m + 3, 2), np.int64)
    lengths, letters = moves[:, 0], moves[:, 1]
    lengths[0], letters[0] = m - j, 3 if strategy == 0 else 0
    count = 1
    while i > 0 and j > 0:
        length = step[i, j]
        if length == 0:
            i, j = i - 1, j - 1
            lengths[count], letters[count] = 1, 0
        elif length < 0:
            j += length
            lengths[count], letters[count] = -length, 1
        else:
            i -= length
            lengths[count], letters[count] = length, 2
        count += 1
    offset = 0
    if strategy == 0:
        lengths[count], letters[count] = j, 3
        offset = i
    elif strategy == 3:
        lengths[count], letters[count] = j, letters[count - 1]
        offset = i - j
    elif i > 0:
        lengths[count], letters[count] = i, 2
    else:
        lengths[count], letters[count] = j, 1
    return moves[: count + 1], offset


@njit()
def _end(score: npt.NDArray[np.int64], strategy: int) -> tuple[int, int]:
    """Return the end cell of the alignment."""
    n, m = score.shape[0] - 1, score.shape[1] - 1
    if strategy == 1:
        return n, m
    row, column = 0, m
    best = NEVER
    for i in range(1, n + 1):
        if score[i, m] >= best:
            row, best = i, score[i, m]
    if strategy == 2:
        return row, column
    for j in range(1, m + 1):
        nearer = abs(n - j) < abs(row - column)
        if score[n, j] > best or (score[n, j] == best and nearer):
            row, column, best = n, j, score[n, j]
    return row, column
