"""What searches of one kernel's ways work with, and what they keep (`search`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..native import Fixed, fixed
from . import correspondence
from .beam_search import COUNTS, END, FACTOR, NEVER, NO_ROOM, SCALE, TOO_LONG, ahead_of, expand, search
from .correspondence import Correspondence, Event
from .replay import ReplayError, Words

_TOKENS, _ROOM, _MOST_ROOM = 1 << 10, 1 << 16, 1 << 21
"""Room at first for a lane's tokens, and for entries of states, and as many sources of steps and keys; and at most: 52 bytes each."""


class SearchTables:
    """What the nodes of a kernel show, the last of which is the end, and the symbols of what lanes show: parameters of `search`. of_told:
    by what is told, where its symbols begin, and these. of_symbols, of_nodes, of_each: by symbol, by node and anchor, and by node."""

    def __init__(self, of: Correspondence, tokens: Sequence[Sequence[Event]], order: npt.NDArray[np.int64]) -> None:
        """tokens: of each thing that is told. order: of the nodes."""
        flat = [(one.anchor, one.amount) for each in tokens for one in each]
        kinds = sorted(set(flat))
        numbers = {kind: number for number, kind in enumerate(kinds, END + 1)}
        symbols = np.array([numbers[kind] for kind in flat], np.int32)
        self.of_told = fixed(np.cumsum([0, *map(len, tokens)]).astype(np.int32), symbols)
        weights = of.weights * np.float32(SCALE)
        anchor = np.array([0, *(anchor for anchor, _ in kinds)], np.int32)
        amounts = np.array([0, *(amount for _, amount in kinds)], np.float32)
        left_out = np.rint(weights[anchor] * amounts) if len(weights) else np.zeros(1)
        self.of_symbols = fixed(anchor, amounts, left_out.astype(np.int64))
        self.nodes, self.anchors = 1 + len(order), max(len(weights), 1)
        missing = (of.sure * of.weights).sum(axis=1)
        # No product of matrices: those of some processors warn of what they computed beside the matrix.
        shown = np.rint((of.cost + missing) * SCALE)
        scale, holds = np.float32(SCALE), (of.sure + of.maybe).sum(axis=1)
        given = of.sure, of.maybe, of.price * scale, missing * scale, holds
        sure, maybe, price, hidden, holds = (self._with_end(array[order], np.float32) for array in given)
        self.of_nodes = *fixed(sure, maybe, price, np.append(weights, np.float32(0))), self.anchors
        # Of ways that are alike otherwise, the one through what comes first in the code.
        shown = shown[order] + np.arange(len(order))
        span = self._with_end(of.span[order], np.int32)
        self.of_each = *fixed(self._with_end(shown, np.int64), hidden, holds, span), self.nodes
        self.rows = 1 << int(of.span.max(initial=0) + 1).bit_length()

    def _with_end(self, array: npt.NDArray[Any], type: Any) -> npt.NDArray[Any]:
        """By node, with the end, which shows nothing."""
        wide = array.reshape(len(array), -1)
        return np.concatenate([wide, np.zeros((1, wide.shape[1]))]).astype(type).reshape(-1)


class SearchBuffers:
    """What searches of one kernel work with, one after the other. visited: nodes that were gone on from. cost: of the last way."""

    def __init__(self, shown: SearchTables) -> None:
        nodes, rows = shown.nodes, shown.rows
        self.shown = shown
        self.of_rows = *fixed(
            np.full(rows * nodes, NEVER, np.int64), np.empty(rows * nodes, np.int32), np.empty(rows * nodes, np.int32),
            np.full(rows, -1, np.int32), np.empty(rows * nodes, np.int32), np.empty(rows * nodes, np.int32),
        ), rows  # fmt: skip
        self.of_step = fixed(np.zeros(shown.anchors + 1, np.float32), np.zeros(nodes // 64 + 1, np.int64))
        self._visited = np.zeros(2, np.int64)
        self.counted = Fixed(self._visited)
        self._room(_TOKENS)

    def _room(self, room: int) -> None:
        powers = np.full(room + 1, FACTOR, np.uint64)
        powers[0] = 1
        self.symbols, self.path = np.zeros(room, np.int32), np.zeros(room, np.int32)
        self.of_lane = fixed(self.symbols, np.zeros(room + 1, np.uint64), np.cumprod(powers, dtype=np.uint64))
        self.trace = Fixed(np.zeros(room, np.int32))

    def expand(self, told: Words, lanes: npt.NDArray[np.uint32], lane: int) -> int:
        """How many tokens a lane shows; `of_lane` are those."""
        pad = self.shown.rows
        while True:
            room, (symbols, hashes, _) = len(self.symbols), self.of_lane
            count: int = expand(told, lanes, len(told), lane, *self.shown.of_told, room, pad, symbols, hashes)
            if count + pad <= room:
                return count
            self._room(2 * (count + pad))

    @property
    def visited(self) -> int:
        return int(self._visited[0])

    @property
    def cost(self) -> float:
        return float(self._visited[1]) / SCALE


class SearchCache:
    """Of one kernel, for ways within one beam that are not closed."""

    def __init__(self, shown: SearchTables, jumps: tuple[Fixed, ...], beam: float) -> None:
        """jumps: the nodes that follow each, and where those of each begin."""
        self._shown, self._jumps, self._beam = shown, jumps, round(beam * SCALE)
        self._ahead = Fixed(np.zeros(shown.anchors * shown.nodes, np.int64))
        sure, maybe, *_ = shown.of_nodes
        ahead_of(sure, maybe, shown.of_each[0], shown.nodes, shown.anchors, *jumps, self._ahead)
        self._clear(_ROOM)

    def _clear(self, room: int) -> None:
        """Forget all states and steps."""
        self._room = room
        cells, ends, next, begins, sources, hops, origins = (np.empty(room, np.int32) for _ in range(7))
        costs, more = np.empty(room, np.int64), np.empty(room, np.int64)
        arrays = cells, costs, ends, next, more, begins, sources, hops, origins
        keys = fixed(np.empty(room, np.uint64), np.full(room, -1, np.int32))
        self._made = *keys, room - 1, Fixed(np.zeros(len(COUNTS), np.int64)), room, *fixed(*arrays)

    def search(self, work: SearchBuffers, tokens: int, most: int) -> Words | None:
        """The nodes of the cheapest way that shows the tokens in `work`; None where none leads to the end within the beam. Raises Lost
        where more than `most` nodes would be gone on from, or there is no room for what is known of them."""
        shown, alone = self._shown, False
        while True:
            length = search(
                *work.of_lane, tokens, *shown.of_symbols, *shown.of_nodes, *shown.of_each, *self._jumps, self._ahead, correspondence.APART,
                self._beam, most, *work.of_rows, *work.of_step, work.counted, *self._made, work.trace, work.path, len(work.path),
            )  # fmt: skip
            if length == NO_ROOM:
                if self._room > _MOST_ROOM // 4 and alone:
                    raise ReplayError("its way is too long")
                self._clear(min(4 * self._room, _MOST_ROOM))
                alone = True
            elif length == TOO_LONG:
                raise ReplayError("its way is too long")
            elif length > len(work.path):
                work.path = np.zeros(2 * length, np.int32)
            else:
                return None if length < 0 else work.path[:length][::-1]
