"""How pairs are laid out in a GPU's memory, for each way of aligning them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .packed import SCALE
from .problem import Bytes, Offsets, Problem, offsets

Arguments = dict[str, Any]
Table = npt.NDArray[np.int32]
"""Rows of four numbers, an int4 each."""

MARGIN = np.zeros(32, np.uint8)
"""What stands around the alternates, so that lanes may read before and after one."""


def sequences(problem: Problem, chosen: Offsets) -> tuple[Bytes, Bytes, Table]:
    """(references, alternates, (first base, n, first base, m) of each pair) of some pairs, one after the other."""
    n, m = problem.rows[chosen], problem.columns[chosen]
    references = np.concatenate([problem.reference(p) for p in chosen])
    alternates = np.concatenate([MARGIN, *(problem.alternate(p) for p in chosen), MARGIN])
    return references, alternates, table(offsets(n)[:-1], n, offsets(m)[:-1] + len(MARGIN), m)


def table(*columns: Offsets | int) -> Table:
    """Columns side by side, as vectors of a kernel."""
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.int32)


def words_of_packed(n: Offsets, m: Offsets, lanes: int, each: int) -> Offsets:
    """Words of moves that a pair fills: a word a lane, step and 8 rows."""
    return -(-n // (lanes * each)) * (m + lanes - 1) * -(-each // 8) * lanes


def packed_arguments(problem: Problem, chosen: Offsets, lanes: int, each: int) -> tuple[int, Arguments, Table]:
    """(warps, arguments of `packed` save its arrays for output, places for `traceback`) with P = `lanes`, K = `each`.

    The last warp is filled up with repetitions of the last pair.
    """
    warps = -(-len(chosen) * lanes // 32)
    filled = np.minimum(np.arange(warps * 32 // lanes), len(chosen) - 1)
    references, alternates, sizes = sequences(problem, chosen)
    pairs = sizes[filled]
    n, m = pairs[:, 1].astype(np.int64), pairs[:, 3].reshape(warps, -1).max(axis=1).astype(np.int64)
    tiles = -(-n // (lanes * each))
    steps = m + lanes - 1
    first = offsets(tiles.reshape(warps, -1).max(axis=1) * steps * -(-each // 8) * 32)
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
            "STRATEGY": int(problem.strategy),
            "UNEVEN": (costly and skewed > 0) or free,
            "TILED": tiled,
            "P": lanes,
            "K": each,
        },
        table(first[warp], within * lanes, steps[warp], (tiles * lanes * each - n)[: len(chosen)]),
    )


def lines(m: Offsets) -> Offsets:
    """Words that a row of moves takes: whole sectors of 8 words."""
    return -(-m // 8) * 8
