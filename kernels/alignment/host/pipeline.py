"""Stages of an alignment: batches of sorted pairs, stage 1 (moves), stage 2 (traceback), CIGARs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from simtbed import DeviceArray, Kernel, empty, zeros

from ...family import Answer, Launcher
from ..intratask import intratask
from ..intratask_vectors import intratask_vectors
from ..packed import packed
from ..pairalign import pairalign_strips
from ..pairalign_global import pairalign
from ..traceback import BOOLEANS, FLAGS, RUNS, STEPS, STRIPS, traceback
from . import limits
from .answer import Alignments, Walked, concatenate
from .layout import (
    Table,
    intratask_arguments,
    packed_arguments,
    pairalign_arguments,
    words_of_intratask,
    words_of_packed,
    words_of_pairalign,
    words_of_strips,
)
from .problem import Offsets, Problem

WORDS_AT_ONCE = 1 << 30
"""Default limit of the words of moves of a launch: 4 GiB."""

OPERATIONS = 16
"""Initial capacity in operations per CIGAR; pairs with more are traced again with a sufficient capacity."""

BINS = (
    (4, 8), (4, 16), (4, 24), (4, 32), (8, 24), (8, 32), (16, 20), (16, 24), (16, 28), (16, 32), (32, 20), (32, 32),
)  # fmt: skip
"""(P, K) of `packed` by the number of rows; longer references are computed in tiles of the last size."""

SMALL_PROBLEM, SMALL_PROBLEM_BINS = 1_000, ((32, 2), (32, 4), (32, 8), (32, 12), (32, 16), (32, 20), (32, 32))
"""Pairs of a small problem, and its (P, K). Such a problem leaves much of a GPU idle; latency dominates: all pairs are launched
together, each with a whole warp."""

PASS = 128
"""Threads of a block of `passes`."""

PAIRALIGN_BLOCK = 128
"""Threads of a block of `pairalign`, as in the paper."""

THREADS = 64
"""Threads of a block of stage 2."""


@dataclass(frozen=True)
class Moves:
    """The result of stage 1: the moves on the device, and location, sizes and end cell of each pair.

    form: of the moves, see `traceback`. lanes, rows_per_lane: P and K of `packed`.
    """

    moves: DeviceArray
    places: Table
    sizes: Table
    ends: Table
    form: int
    lanes: int = 1
    rows_per_lane: int = 1


Batch = tuple[Offsets, Callable[[], Moves]]
Memory = Callable[[int], DeviceArray]
"""Allocator of at least that many words of moves, with undefined content."""


def fresh(words: int) -> DeviceArray:
    """Allocate new memory for each launch."""
    return DeviceArray(empty(words, "u32"))


class ReusedMemory(threading.local):
    """Allocator with one reused buffer per thread, enlarged on demand: the system clears new memory page by page.

    least: initial words; an emulator touches only the words that it uses.
    """

    def __init__(self, least: int = 0) -> None:
        self._least = least
        self._moves = fresh(0)

    def __reduce__(self) -> tuple[type[ReusedMemory], tuple[int]]:
        """Pickle without the buffer: each process allocates its own."""
        return ReusedMemory, (self._least,)

    def __call__(self, words: int) -> DeviceArray:
        """Return the buffer. The previous result becomes invalid."""
        if len(self._moves.host) < words:
            self._moves = fresh(0)  # release the old memory first
            self._moves = fresh(max(words, self._least))
        return self._moves


def solve(problem: Problem, variant: str, launcher: Launcher, words: int = WORDS_AT_ONCE) -> Answer:
    """Return CIGAR, offset and score of every pair, in order. words: limit of the moves of a launch of more than one pair.

    Raises SimtbedError if a pair exceeds a limit of the variant.
    """
    return align(problem, variant, launcher, words).answer()


def align(
    problem: Problem, variant: str, launcher: Launcher, words: int = WORDS_AT_ONCE, memory: Memory = fresh
) -> Alignments:
    """Return the result of `solve` as arrays. memory: allocator of the moves."""
    limits.check(problem, variant)
    walks: list[Walked] = []
    scores = np.empty(len(problem), np.int32)
    for chosen, stage_1 in VARIANTS[variant](problem, launcher, words, memory):
        moves = stage_1()
        walks += _stage_2(moves, chosen, problem, launcher)
        scores[chosen] = moves.ends[:, 2]
    return concatenate(walks, scores)


# ------------------------------------------------------------------ stage 1
def _packed(problem: Problem, launcher: Launcher, at_once: int, memory: Memory) -> Iterator[Batch]:
    n, m = problem.rows, problem.columns
    small = len(problem) <= SMALL_PROBLEM
    shapes = SMALL_PROBLEM_BINS if small else BINS
    longest = np.full_like(n, n.max(initial=0)) if small else n
    bins = np.minimum(
        np.searchsorted([lanes * rows_per_lane for lanes, rows_per_lane in shapes], longest), len(shapes) - 1
    )
    for number in np.flatnonzero(np.bincount(bins)):
        lanes, rows_per_lane = shapes[number]
        members = np.flatnonzero(bins == number)
        for chosen in _batches(
            members[np.argsort(m[members], kind="stable")], words_of_packed(n, m, lanes, rows_per_lane), at_once
        ):

            def stage_1(chosen: Offsets = chosen, lanes: int = lanes, rows_per_lane: int = rows_per_lane) -> Moves:
                warps, args, places = packed_arguments(problem, chosen, lanes, rows_per_lane)
                words = int(words_of_packed(n[chosen], m[chosen], lanes, rows_per_lane).max()) * warps * 32 // lanes
                moves = memory(words)
                edges = np.zeros((max(warps * args["stride"], 1), 2), np.int32)
                args |= {"edges": edges, "moves": moves, "ends": empty(len(args["pairs"]), "int4")}
                ends = launcher.launch(packed, grid=warps, block=32, args=args)["ends"]
                return Moves(
                    moves, places, args["pairs"][: len(chosen)], ends[: len(chosen)], FLAGS, lanes, rows_per_lane
                )

            yield chosen, stage_1


class Blocks(NamedTuple):
    """A variant with a block per pair. wide: one thread per column, in whole warps. form: of the moves."""

    kernel: Kernel
    wide: bool
    diagonal_major: bool
    form: int


def _intratask(blocks: Blocks, problem: Problem, launcher: Launcher, at_once: int, memory: Memory) -> Iterator[Batch]:
    """Launch pairs of one block size at a time."""
    kernel, wide, diagonal_major, form = blocks
    n, m = problem.rows, problem.columns
    sizes = -(-m // 32) * 32 if wide else np.full_like(m, PASS)
    for block in np.flatnonzero(np.bincount(sizes)):
        for chosen in _batches(np.flatnonzero(sizes == block), words_of_intratask(n, m, diagonal_major), at_once):

            def stage_1(chosen: Offsets = chosen, block: int = int(block)) -> Moves:
                args, places = intratask_arguments(problem, chosen, block, diagonal_major, form)
                moves = memory(int(words_of_intratask(n[chosen], m[chosen], diagonal_major).sum()))
                args |= {"moves": moves, "ends": empty(len(chosen), "int4")}
                ends = launcher.launch(kernel, grid=len(chosen), block=block, args=args)["ends"]
                return Moves(moves, places, args["pairs"], ends, form)

            yield chosen, stage_1


def _pairalign(problem: Problem, launcher: Launcher, at_once: int, memory: Memory, strips: bool) -> Iterator[Batch]:
    n, m = problem.rows, problem.columns
    words_of, form = (words_of_strips, STRIPS) if strips else (words_of_pairalign, BOOLEANS)
    kernel, block = (pairalign_strips, PAIRALIGN_BLOCK) if strips else (pairalign, 32)
    own = {"BLOCK": block} if strips else {}
    for chosen in _batches(np.lexsort((m, n)), words_of(n, np.full_like(m, m.max(initial=0))), at_once):

        def stage_1(chosen: Offsets = chosen) -> Moves:
            args, words, places = pairalign_arguments(problem, chosen, block, strips)
            moves = memory(words)
            args |= {"moves": moves, "ends": empty(len(args["sizes"]), "int4"), **own}
            ends = launcher.launch(kernel, grid=len(args["sizes"]) // block, block=block, args=args)["ends"]
            return Moves(moves, places, args["sizes"], ends[: len(chosen)], form)

        yield chosen, stage_1


def _batches(order: Offsets, words: Offsets, at_once: int) -> Iterator[Offsets]:
    """Split `order` into launches with at most `at_once` words of moves, or one pair."""
    at = 0
    while at < len(order):
        largest = np.maximum.accumulate(words[order[at:]])
        fitting = int(np.searchsorted(largest * np.arange(1, len(largest) + 1), at_once, "right"))
        yield order[at : at + max(fitting, 1)]
        at += max(fitting, 1)


VARIANTS: dict[str, Callable[[Problem, Launcher, int, Memory], Iterator[Batch]]] = {
    **{
        f"{blocks}-{layout}-{moves}{suffix}": partial(
            _intratask, Blocks(kernel, blocks == "wide", layout == "diagonal-major", form)
        )
        for suffix, kernel in (("", intratask_vectors), ("-double-buffered", intratask))
        for blocks in ("wide", "passes")
        for layout in ("diagonal-major", "row-major")
        for moves, form in (("runs", RUNS), ("steps", STEPS))
    },
    "pairalign": partial(_pairalign, strips=True),
    "pairalign-global": partial(_pairalign, strips=False),
    "packed": _packed,
}
"""Stage 1 of each variant: the batches of a problem, each with its launch function."""


# ------------------------------------------------------------------ stage 2
def _stage_2(moves: Moves, pairs: Offsets, problem: Problem, launcher: Launcher) -> Iterator[Walked]:
    """Trace the pairs of a batch. Pairs with more than OPERATIONS operations are traced twice."""
    chosen, capacity = np.arange(len(moves.places), dtype=np.int32), OPERATIONS
    while len(chosen):
        result = launcher.launch(
            traceback,
            grid=-(-len(chosen) * (32 if moves.form == FLAGS else 1) // THREADS),
            block=THREADS,
            args={
                "chosen": chosen,
                "places": moves.places,
                "sizes": moves.sizes,
                "ends": moves.ends,
                "moves": moves.moves,
                "operations": zeros(capacity * len(chosen), "u32"),
                "results": empty(len(chosen), "int2"),
                "capacity": capacity,
                "STRATEGY": int(problem.strategy),
                "FORM": moves.form,
                "P": moves.lanes,
                "K": moves.rows_per_lane,
            },
        )
        count = result["results"][:, 0]
        yield Walked(pairs[chosen], result["operations"], result["results"], capacity)
        chosen, capacity = chosen[count > capacity], int(count.max())
