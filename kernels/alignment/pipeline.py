"""From an alignment problem to its answer: pairs sorted and batched, stage 1 and stage 2 launched, CIGARs decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed.emulator import Kept, Out, SimtbedError

from ..family import Answer, Launcher
from .layout import Table, packed_arguments, words_of_packed
from .packed import packed
from .problem import ANSWER, Offsets, Problem
from .traceback import FLAGS, traceback

WORDS_AT_ONCE = 1 << 30
"""Words of moves that a launch may fill, beyond one pair: bounds the memory a batch takes, here to 4 GiB."""

OPERATIONS = 16
"""Operations of a CIGAR there is room for at first; pairs that need more are walked again with room for all."""

BINS = ((8, 8), (8, 16), (16, 16), (32, 12), (32, 16), (32, 20))
"""(P, K) of `packed`, by the rows they hold."""

THREADS = 64
"""Of a block of stage 2."""


@dataclass(frozen=True)
class Found:
    """What stage 1 leaves: the moves on the device, and for each pair where they are, its sizes, its end cell."""

    moves: Kept
    places: Table
    sizes: Table
    ends: Table
    form: int
    lanes: int = 1
    each: int = 1


Batch = tuple[Offsets, Callable[[], Found]]


def solve(problem: Problem, variant: str, launcher: Launcher) -> Answer:
    """CIGAR, offset and score of every pair, in order. Raises SimtbedError where the variant cannot hold a pair."""
    answer = np.empty(len(problem), ANSWER)
    for chosen, stage_1 in _packed(problem, launcher):
        found = stage_1()
        cigars, offset = _stage_2(found, problem, launcher)
        answer["cigar"][chosen] = cigars
        answer["offset"][chosen] = offset
        answer["score"][chosen] = found.ends[:, 2]
    return answer


# ------------------------------------------------------------------ stage 1
def _packed(problem: Problem, launcher: Launcher) -> Iterator[Batch]:
    n, m = problem.rows, problem.columns
    bins = np.minimum(np.searchsorted([lanes * each for lanes, each in BINS], n), len(BINS) - 1)
    for number in np.unique(bins):
        lanes, each = BINS[number]
        members = np.flatnonzero(bins == number)
        for chosen in _batches(members[np.argsort(m[members], kind="stable")], words_of_packed(n, m, lanes, each)):

            def stage_1(chosen: Offsets = chosen, lanes: int = lanes, each: int = each) -> Found:
                warps, args, places = packed_arguments(problem, chosen, lanes, each)
                words = int(words_of_packed(n[chosen], m[chosen], lanes, each).max()) * warps * 32 // lanes
                moves = Kept(Out(words, "u32"))
                edges = np.zeros((max(warps * args["stride"], 1), 2), np.int32)
                args |= {"edges": edges, "moves": moves, "ends": Out(len(args["pairs"]), "int4")}
                ends = launcher(packed, grid=warps, block=32, args=args)["ends"]
                return Found(moves, places, args["pairs"][: len(chosen)], ends[: len(chosen)], FLAGS, lanes, each)

            yield chosen, stage_1


def _batches(order: Offsets, words: Offsets) -> Iterator[Offsets]:
    """`order` cut into launches of at most WORDS_AT_ONCE words of moves beyond one pair."""
    at = 0
    while at < len(order):
        largest = np.maximum.accumulate(words[order[at:]])
        fitting = int(np.searchsorted(largest * np.arange(1, len(largest) + 1), WORDS_AT_ONCE, "right"))
        yield order[at : at + max(fitting, 1)]
        at += max(fitting, 1)


# ------------------------------------------------------------------ stage 2
def _stage_2(found: Found, problem: Problem, launcher: Launcher) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """(CIGARs, offsets) of a batch."""
    cigars = np.empty(len(found.places), object)
    offset = np.empty(len(found.places), np.int32)
    chosen, capacity = np.arange(len(found.places), dtype=np.int32), OPERATIONS
    while len(chosen):
        result = launcher(
            traceback,
            grid=-(-len(chosen) // THREADS),
            block=THREADS,
            args={
                "chosen": chosen,
                "places": found.places,
                "sizes": found.sizes,
                "ends": found.ends,
                "moves": found.moves,
                "operations": Out(capacity * len(chosen), "u32"),
                "results": Out(len(chosen), "int2"),
                "capacity": capacity,
                "STRATEGY": int(problem.strategy),
                "FORM": found.form,
                "P": found.lanes,
                "K": found.each,
            },
        )
        count = result["results"][:, 0]
        whole = count <= capacity
        operations = result["operations"].reshape(capacity, -1).T[whole]
        cigars[chosen[whole]] = _texts(operations, count[whole])
        offset[chosen] = result["results"][:, 1]
        chosen, capacity = chosen[~whole], int(count.max())
    return cigars, offset


def _texts(operations: npt.NDArray[np.uint32], counts: npt.NDArray[np.int32]) -> list[str]:
    """Rows of operations, from the end to the start, as CIGARs."""
    words, which = np.unique(operations, return_inverse=True)
    parts = np.array([f"{word >> 4}{'MIDNS'[word & 15]}" for word in words.tolist()], object)[which]
    parts = parts.reshape(operations.shape).tolist()
    return ["".join(row[:count][::-1]) for row, count in zip(parts, counts.tolist(), strict=True)]
