"""The cheapest way through a compiled kernel that shows what a lane did in the source.

A lane's tokens stand in the order of the source. Each node on its way stands for the tokens from where the one before it left
off: what it shows too much or too little costs, and so does a token that no node stands for. The cheapest way is found
token by token: for each node, the cheapest one that comes there with so many tokens stood for, and what the next token costs
from there at least: leaving it out, or the nodes on the way to one that may stand for it. Those that cost more than the
cheapest by a beam are given up; the beam is widened until the way that is found costs less than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..native import Fixed, fixed
from .correspondence import Correspondence
from .expanded_cfg import ExpandedCfg
from .replay import ReplayError, WarpTrace
from .search_cache import SearchBuffers, SearchCache, SearchTables

BEAM, WIDER, SURE, WIDEST = 0.1, 4.0, 4.0, 10_000.0
"""The first beam, how much wider the next one is, how wide at least is one that confirms a way, and the widest."""
CONFIRMED = 16
"""For how many ways one after the other a wider beam must have found nothing cheaper before it is not tried for those that cost no
more."""
STATES_OF_ONE, STATES_TO_CONFIRM = 4_000_000, 500_000
"""Nodes that are gone on from for one lane's way, at most: about a tenth of a second of one core; and with a beam that only confirms it."""

Path = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ScoredPath:
    """path: nodes, one after the other. cost: of what it shows too much or too little."""

    path: Path
    cost: float


class PathSearch:
    """Searches the ways of one kernel's lanes. names: what anchors have tokens for, in the order of its numbers (`replay.Steps`).
    beam: the widest that was needed. visited: nodes that were gone on from."""

    def __init__(self, nodes: ExpandedCfg, anchors: Correspondence) -> None:
        self.nodes = nodes
        self.beam = BEAM
        self.confirmed, self.dearest = 0, 0.0
        self.closed = frozenset[tuple[int, int]]()
        self.names = sorted(anchors.tokens)
        # In the order of their code, in which most ways go: so a node is gone on from once all that leads to it was.
        self._order = np.argsort(nodes.blocks, kind="stable")
        self._shown = SearchTables(anchors, [anchors.tokens[name] for name in self.names], self._order)
        self._work = SearchBuffers(self._shown)
        self._jumps = self._onward()
        self._automata: dict[float, SearchCache] = {}

    @property
    def visited(self) -> int:
        return self._work.visited

    def close(self, ways: frozenset[tuple[int, int]]) -> None:
        """Search only what does not go these ways, from a block to another, besides those closed before."""
        self.reopen(self.closed | ways)

    def reopen(self, closed: frozenset[tuple[int, int]]) -> None:
        """Search all that does not go these ways."""
        if closed != self.closed:
            self.closed, self._automata = closed, {}
            self._jumps = self._onward()

    def _onward(self) -> tuple[Fixed, ...]:
        """The ways from each node, in order, and where those of each begin. From where a lane may leave the kernel one leads to the end,
        the last node, from which none leads anywhere."""
        targets, starts = self.nodes.jumps(self.closed)
        rank, end = np.argsort(self._order).astype(np.int32), np.array([len(self._order)], np.int32)
        onward = [
            np.concatenate([rank[targets[starts[node] : starts[node + 1]]], end[: int(self.nodes.ends[node])]])
            for node in self._order.tolist()
        ]
        return fixed(np.concatenate(onward), np.cumsum([0, *map(len, onward), 0]).astype(np.int32))

    def way(self, steps: WarpTrace, lane: int) -> ScoredPath:
        """The cheapest way that shows what a lane did, or nearly. steps: of `names`. Raises Lost where none leads to an end, or what it
        did is too long to look for."""
        count = self._work.expand(steps.told, steps.lanes, lane)
        found = self._within(count, self.beam, STATES_OF_ONE)
        while (found is None or self._doubtful(found)) and self.beam < WIDEST:
            wide = max(SURE, WIDER * self.beam)
            try:
                wider = self._within(count, wide, STATES_OF_ONE if found is None else STATES_TO_CONFIRM)
            except ReplayError:
                if found is None:
                    raise
                wider = found
            if found is not None and wider is not None and wider.cost >= found.cost - 1e-3:
                self.confirmed, self.dearest = self.confirmed + 1, max(self.dearest, found.cost)
                break
            while wider is not None and (found is None or wider.cost < found.cost - 1e-3) and self.beam < wide:
                self.beam, self.confirmed = WIDER * self.beam, 0
                found = self._within(count, self.beam, STATES_OF_ONE)
            if wider is None:
                self.beam = wide
        if found is None:
            raise ReplayError("no way leads to an end")
        return found

    def _doubtful(self, found: ScoredPath) -> bool:
        """Whether a wider beam might find a cheaper way: never where the way costs less than the beam; and not where it did not for so
        many others that cost as much for each of their tokens."""
        return found.cost > self.beam and (self.confirmed < CONFIRMED or found.cost > self.dearest)

    def _within(self, count: int, beam: float, most: int) -> ScoredPath | None:
        """The cheapest way that shows the expanded tokens, found within a beam. Raises Lost where more nodes would be gone on from."""
        if beam not in self._automata:
            self._automata[beam] = SearchCache(self._shown, self._jumps, beam)
        path = self._automata[beam].search(self._work, count, most)
        if path is None:
            return None
        return ScoredPath(self._order[path[path < len(self._order)]].astype(np.int32), self._work.cost)
