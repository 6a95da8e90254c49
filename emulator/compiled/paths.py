"""Beam search for the cheapest path of a lane through the expanded control flow graph, given its source events.

Events are in source order. Each node on the path matches the next events; excess, missing and skipped events cost. A
node is expanded with a lower bound on its next event: skip it, or walk to a node that emits it. Nodes beyond the
cheapest by more than the beam are pruned; the beam grows until the path costs less than the beam.
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

INITIAL_BEAM, BEAM_GROWTH, MIN_CONFIRMING_BEAM, MAX_BEAM = 0.1, 4.0, 4.0, 10_000.0
"""Cost units: first beam, growth factor, minimum of a confirming beam, maximum."""
CONFIRMATIONS = 16
"""Consecutive confirmations by a wider beam after which paths of no higher cost are accepted unconfirmed."""
MAX_STATES_PER_LANE, MAX_STATES_TO_CONFIRM = 4_000_000, 500_000
"""Expanded nodes for one lane (about 0.1 s on one core), and for a confirming search."""

NodePath = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ScoredPath:
    """A path of a lane with its cost.

    path: its nodes in order. cost: of excess and missing events.
    """

    path: NodePath
    cost: float


class PathSearch:
    """Path search of one kernel. names: event names in the order of the traces. beam: widest beam so far. visited:
    expanded nodes."""

    def __init__(self, nodes: ExpandedCfg, correspondence: Correspondence) -> None:
        self.nodes = nodes
        self.beam = INITIAL_BEAM
        self.confirmations, self.max_confirmed_cost = 0, 0.0
        self.closed = frozenset[tuple[int, int]]()
        self.names = sorted(correspondence.events)
        # Address order is nearly topological, so most nodes are expanded once.
        self._order = np.argsort(nodes.blocks, kind="stable")
        self._tables = SearchTables(correspondence, [correspondence.events[name] for name in self.names], self._order)
        self._buffers = SearchBuffers(self._tables)
        self._adjacency = self._compress_adjacency()
        self._caches: dict[float, SearchCache] = {}

    @property
    def visited(self) -> int:
        return self._buffers.visited

    def close_edges(self, edges: frozenset[tuple[int, int]]) -> None:
        """Exclude edges (source block, target block) from the search."""
        self.set_closed_edges(self.closed | edges)

    def set_closed_edges(self, closed: frozenset[tuple[int, int]]) -> None:
        """Exclude exactly these edges from the search."""
        if closed != self.closed:
            self.closed, self._caches = closed, {}
            self._adjacency = self._compress_adjacency()

    def _compress_adjacency(self) -> tuple[Fixed, ...]:
        """Return the successors of each node in compressed rows. Nodes with an exit lead to the end node, the last one."""
        targets, starts = self.nodes.adjacency(self.closed)
        rank, end = np.argsort(self._order).astype(np.int32), np.array([len(self._order)], np.int32)
        successors = [
            np.concatenate([rank[targets[starts[node] : starts[node + 1]]], end[: int(self.nodes.may_exit[node])]])
            for node in self._order.tolist()
        ]
        return fixed(np.concatenate(successors), np.cumsum([0, *map(len, successors), 0]).astype(np.int32))

    def find(self, steps: WarpTrace, lane: int) -> ScoredPath:
        """Return the cheapest path of a lane. Raises ReplayError if no path reaches an exit or the search is too long."""
        count = self._buffers.expand(steps.events, steps.lanes, lane)
        best = self._within(count, self.beam, MAX_STATES_PER_LANE)
        while (best is None or self._may_improve(best)) and self.beam < MAX_BEAM:
            wide_beam = max(MIN_CONFIRMING_BEAM, BEAM_GROWTH * self.beam)
            try:
                challenger = self._within(
                    count, wide_beam, MAX_STATES_PER_LANE if best is None else MAX_STATES_TO_CONFIRM
                )
            except ReplayError:
                if best is None:
                    raise
                challenger = best
            if best is not None and challenger is not None and challenger.cost >= best.cost - 1e-3:
                self.confirmations, self.max_confirmed_cost = (
                    self.confirmations + 1,
                    max(self.max_confirmed_cost, best.cost),
                )
                break
            while (
                challenger is not None
                and (best is None or challenger.cost < best.cost - 1e-3)
                and self.beam < wide_beam
            ):
                self.beam, self.confirmations = BEAM_GROWTH * self.beam, 0
                best = self._within(count, self.beam, MAX_STATES_PER_LANE)
            if challenger is None:
                self.beam = wide_beam
        if best is None:
            raise ReplayError("no path reaches an exit")
        return best

    def _may_improve(self, best: ScoredPath) -> bool:
        """Return whether a wider beam could find a cheaper path."""
        return best.cost > self.beam and (self.confirmations < CONFIRMATIONS or best.cost > self.max_confirmed_cost)

    def _within(self, count: int, beam: float, most: int) -> ScoredPath | None:
        """Return the cheapest path within a beam, or None. Raises ReplayError after `most` expanded nodes."""
        if beam not in self._caches:
            self._caches[beam] = SearchCache(self._tables, self._adjacency, beam)
        path = self._caches[beam].search(self._buffers, count, most)
        if path is None:
            return None
        return ScoredPath(self._order[path[path < len(self._order)]].astype(np.int32), self._buffers.cost)
