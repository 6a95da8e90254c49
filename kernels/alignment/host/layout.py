"""Memory layout of pairs for each alignment kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..packed import SCALE
from ..traceback import STRIP
from .files_scan import gathered
from .problem import Bytes, Offsets, Problem, Strategy, offsets

Arguments = dict[str, Any]
Table = npt.NDArray[np.int32]
"""Rows of four numbers, an int4 each."""

MARGIN = 32
"""Zeros before and after the alternates, for reads of lanes beyond the ends."""


def sequences(problem: Problem, chosen: Offsets) -> tuple[Bytes, Bytes, Table]:
    """Return (references, alternates, (first base, n, first base, m) of each pair) of the chosen pairs, concatenated."""
    n, m = problem.rows[chosen], problem.columns[chosen]
    first_reference, first_alternate = offsets(n), offsets(m) + MARGIN
    references = np.empty(first_reference[-1], np.uint8)
    alternates = np.empty(first_alternate[-1] + MARGIN, np.uint8)
    alternates[:MARGIN] = alternates[-MARGIN:] = 0
    gathered(problem.references, problem.reference_offsets, chosen, len(chosen), 0, references)
    gathered(problem.alternates, problem.alternate_offsets, chosen, len(chosen), MARGIN, alternates)
    return references, alternates, table(first_reference[:-1], n, first_alternate[:-1], m)


def table(*columns: Offsets | int) -> Table:
    """Return columns as vectors of a kernel."""
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.int32)


def ending(problem: Problem) -> Arguments:
    """Return the constants for the allowed end cells of the strategy."""
    return {"CORNER": problem.strategy is Strategy.INDEL, "LAST_ROW": not problem.strategy.borders_cost}


def scoring(problem: Problem) -> Arguments:
    """Return parameters and strategy for the kernels of the papers."""
    score, costly = problem.parameters, problem.strategy.borders_cost
    borders = {"first": score.opening if costly else 0, "further": score.extending if costly else 0}
    return {**score._asdict(), **borders, **ending(problem)}


def words_of_packed(n: Offsets, m: Offsets, lanes: int, rows_per_lane: int) -> Offsets:
    """Return the words of moves of each pair: one word per lane, step and 8 rows."""
    return -(-n // (lanes * rows_per_lane)) * (m + lanes - 1) * -(-rows_per_lane // 8) * lanes


def packed_arguments(problem: Problem, chosen: Offsets, lanes: int, rows_per_lane: int) -> tuple[int, Arguments, Table]:
    """Return (warps, arguments of `packed` without output arrays, places for `traceback`) with P = `lanes`, K = `rows_per_lane`.

    The last warp is filled with repetitions of the last pair.
    """
    warps = -(-len(chosen) * lanes // 32)
    filled = np.minimum(np.arange(warps * 32 // lanes), len(chosen) - 1)
    references, alternates, sizes = sequences(problem, chosen)
    pairs = sizes[filled]
    n, m = pairs[:, 1].astype(np.int64), pairs[:, 3].reshape(warps, -1).max(axis=1).astype(np.int64)
    tiles = -(-n // (lanes * rows_per_lane))
    steps = m + lanes - 1
    first = offsets(tiles.reshape(warps, -1).max(axis=1) * steps * -(-rows_per_lane // 8) * 32)
    warp, within = np.divmod(np.arange(len(chosen)), 32 // lanes)
    tiled = bool(tiles.max() > 1)
    score = problem.parameters
    skewed = score.opening - score.extending
    costly = problem.strategy.borders_cost
    free = score.match == score.extending == 0
    return (
        warps,
        {
            "pairs": pairs,
            "warps": np.stack([first[:-1], m], axis=1).astype(np.int32),
            "references": references,
            "alternates": alternates,
            "gain": SCALE * (score.match - 2 * score.extending) + 8,
            "loss": SCALE * (score.mismatch - 2 * score.extending) + 8,
            "opening": SCALE * skewed,
            "extending": score.extending,
            "first": SCALE * skewed if costly else 0,
            "slope": 0 if costly else -SCALE * score.extending,
            "stride": int(m.max()) if tiled else 0,
            **ending(problem),
            "UNEVEN": (costly and skewed > 0) or free,
            "TILED": tiled,
            "P": lanes,
            "K": rows_per_lane,
        },
        table(first[warp], within * lanes, steps[warp], (tiles * lanes * rows_per_lane - n)[: len(chosen)]),
    )


def words_of_intratask(n: Offsets, m: Offsets, diagonal_major: bool) -> Offsets:
    """Return the words of moves of each pair: rows, or anti-diagonals in whole sectors of 8 words."""
    return (n + m - 1 if diagonal_major else n) * -(-m // 8) * 8


def intratask_arguments(
    problem: Problem, chosen: Offsets, block: int, diagonal_major: bool, form: int
) -> tuple[Arguments, Table]:
    """Return (arguments of `intratask` without output arrays, places for `traceback`)."""
    n, m = problem.rows[chosen], problem.columns[chosen]
    references, alternates, pairs = sequences(problem, chosen)
    first = offsets(words_of_intratask(n, m, diagonal_major))[:-1]
    width = -(-m // 8) * 8
    carried = np.where(m > block, n, 0)
    places = table(first, width, width + 1 if diagonal_major else 1, offsets(carried)[:-1])
    edges = {f"{name}_edge": np.zeros(max(carried.sum(), 1), np.int32) for name in ("H", "insertion", "lengths")}
    return {
        "pairs": pairs,
        "places": places,
        "references": references,
        "alternates": alternates,
        **edges,
        **scoring(problem),
        "FORM": form,
        "BLOCK": block,
    }, places


def words_of_pairalign(n: Offsets, m: Offsets) -> Offsets:
    """Return the words of moves of each pair for `pairalign-global`: four bits per cell, 32 columns per word."""
    return n * -(-m // 32) * 4


def words_of_strips(n: Offsets, m: Offsets) -> Offsets:
    """Return the words of moves of each pair for `pairalign`: four bits per cell, the rows of a strip per word."""
    return -(-n // STRIP) * m


def pairalign_arguments(problem: Problem, chosen: Offsets, block: int, strips: bool) -> tuple[Arguments, int, Table]:
    """Return (arguments of `pairalign`'s kernels without output arrays, words of moves, places for `traceback`).

    The last block is filled with pairs without cells.
    """
    warps = -(-len(chosen) // block) * block // 32
    n, m = np.zeros((2, warps, 32), np.int64)
    n.flat[: len(chosen)], m.flat[: len(chosen)] = problem.rows[chosen], problem.columns[chosen]
    rows, columns = n.max(axis=1), m.max(axis=1)
    first_row, first_column = offsets(-(-rows // 4) * 32), offsets(-(-columns // 4) * 32)
    first = offsets((words_of_strips if strips else words_of_pairalign)(rows, columns) * 32)
    width = columns if strips else -(-columns // 32)
    warp, lane = np.divmod(np.arange(len(chosen)), 32)
    return (
        {
            "sizes": table(0, n.ravel(), 0, m.ravel()),
            "groups": table(first_row[:-1], first_column[:-1], first[:-1], width),
            "references": _interleaved([problem.reference(p) for p in chosen], first_row),
            "alternates": _interleaved([problem.alternate(p) for p in chosen], first_column),
            "row_above": np.zeros((first_column[-1] * 4, 2), np.int32),
            **scoring(problem),
        },
        int(first[-1]),
        table(first[warp] + lane, width[warp], 0, 0),
    )


def _interleaved(letters: list[Bytes], first: Offsets) -> npt.NDArray[np.uint32]:
    """Return words of 4 letters, interleaved for 32 sequences; a group starts at `first`."""
    words = np.zeros((first[-1], 4), np.uint8)
    for number, sequence in enumerate(letters):
        group, lane = divmod(number, 32)
        at = np.arange(len(sequence))
        words[first[group] + at // 4 * 32 + lane, at % 4] = sequence
    return words.view(np.uint32).ravel()
