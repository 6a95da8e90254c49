"""Tables, buffers and memoized transitions for `beam_search` on one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..native import Fixed, fixed, record
from .beam_search import search
from .correspondence import Correspondence, Event
from .matching_costs import GAP_COST_SHARE
from .replay import Int32Array, ReplayError
from .search_state import (
    COUNTS,
    END,
    HASH_FACTOR,
    OUT_OF_SPACE,
    SCALE,
    TOO_LONG,
    UNREACHED,
    Edges,
    Features,
    Front,
    Lane,
    Memo,
    Nodes,
    Search,
    Symbols,
    costs_to_next,
    expand_events,
)

_INITIAL_EVENTS, _INITIAL_CAPACITY, _MAX_CAPACITY = 1 << 10, 1 << 16, 1 << 21
"""Initial capacity for a lane's events and for memo entries, and the maximum (52 bytes an entry)."""


class SearchTables:
    """Read-only tables of `beam_search.search`; the last node is the end. rows: of `beam_search.Front`."""

    def __init__(
        self, correspondence: Correspondence, events: Sequence[Sequence[Event]], order: npt.NDArray[np.int64]
    ) -> None:
        """events: features and amounts by event name. order: of the nodes."""
        flat = [(one.feature, one.amount) for each in events for one in each]
        kinds = sorted(set(flat))
        numbers = {kind: number for number, kind in enumerate(kinds, END + 1)}
        symbols = np.array([numbers[kind] for kind in flat], np.int32)
        self.alphabet = record(Symbols, *fixed(np.cumsum([0, *map(len, events)]).astype(np.int32), symbols))
        weights = correspondence.weights * np.float32(SCALE)
        feature = np.array([0, *(feature for feature, _ in kinds)], np.int32)
        amounts = np.array([0, *(amount for _, amount in kinds)], np.float32)
        omit_costs = np.rint(weights[feature] * amounts) if len(weights) else np.zeros(1)
        node_count, feature_count = 1 + len(order), max(len(weights), 1)
        missing = (correspondence.unconditional * correspondence.weights).sum(axis=1)
        # Not a matrix product: BLAS of some processors raises spurious floating-point warnings.
        node_cost = np.rint((correspondence.cost + missing) * SCALE)
        scale, event_capacity = (
            np.float32(SCALE),
            (correspondence.unconditional + correspondence.predicated).sum(axis=1),
        )
        feature_arrays = (
            correspondence.unconditional,
            correspondence.predicated,
            correspondence.price * scale,
            missing * scale,
            event_capacity,
        )
        unconditional, predicated, price, missing_cost, event_capacity = (
            self._with_end(array[order], np.float32) for array in feature_arrays
        )
        symbol_tables = feature, amounts, omit_costs.astype(np.int64)
        feature_tables = unconditional, predicated, price, np.append(weights, np.float32(0))
        self.features = record(Features, *fixed(*symbol_tables, *feature_tables), feature_count)
        # Break ties by address.
        node_cost = node_cost[order] + np.arange(len(order))
        span = self._with_end(correspondence.span[order], np.int32)
        node_tables = fixed(self._with_end(node_cost, np.int64), missing_cost, event_capacity, span)
        self.nodes = record(Nodes, *node_tables, node_count)
        self.rows = 1 << int(correspondence.span.max(initial=0) + 1).bit_length()

    def _with_end(self, array: npt.NDArray[Any], type: Any) -> npt.NDArray[Any]:
        """Append a row of zeros for the end node."""
        wide = array.reshape(len(array), -1)
        return np.concatenate([wide, np.zeros((1, wide.shape[1]))]).astype(type).reshape(-1)


class SearchBuffers:
    """Buffers shared by the searches of one kernel. visited: expanded nodes so far. cost: of the last path."""

    def __init__(self, tables: SearchTables) -> None:
        nodes, rows = tables.nodes.number, tables.rows
        self.tables = tables
        cells = *(np.empty(rows * nodes, np.int32) for _ in range(2)), np.full(rows, -1, np.int32)
        indices = (np.empty(rows * nodes, np.int32) for _ in range(2))
        self.front = record(Front, *fixed(np.full(rows * nodes, UNREACHED, np.int64), *cells, *indices), rows)
        self._totals = np.zeros(2, np.int64)
        work = np.zeros(tables.features.number + 1, np.float32), np.zeros(nodes // 64 + 1, np.int64), self._totals
        self.work = fixed(*work)
        self._allocate(_INITIAL_EVENTS)

    def _allocate(self, capacity: int) -> None:
        powers = np.full(capacity + 1, HASH_FACTOR, np.uint64)
        powers[0] = 1
        hashes = np.zeros(capacity + 1, np.uint64), np.cumprod(powers, dtype=np.uint64)
        self.lane = record(Lane, *fixed(np.zeros(capacity, np.int32), *hashes), capacity)
        self.trace, self.path = fixed(np.zeros(capacity, np.int32)), np.zeros(capacity, np.int32)

    def expand(self, events: Int32Array, lanes: npt.NDArray[np.uint32], lane: int) -> int:
        """Fill `lane` with a lane's events and return their number."""
        pad = self.tables.rows
        while True:
            count: int = expand_events(events, lanes, len(events), lane, self.tables.alphabet, pad, self.lane)
            if count + pad <= self.lane.capacity:
                return count
            self._allocate(2 * (count + pad))

    @property
    def visited(self) -> int:
        return int(self._totals[0])

    @property
    def cost(self) -> float:
        return float(self._totals[1]) / SCALE


class SearchCache:
    """Memoized transitions of one kernel for one beam and one set of closed edges."""

    def __init__(self, tables: SearchTables, adjacency: tuple[Fixed, ...], beam: float) -> None:
        """adjacency: successors of the nodes and the start of each row."""
        self._tables, self._beam = tables, round(beam * SCALE)
        edges: Any = *adjacency, Fixed(np.zeros(tables.features.number * tables.nodes.number, np.int64))
        self._edges = Edges(*edges)
        costs_to_next(tables.features, tables.nodes, self._edges)
        self._reset(_INITIAL_CAPACITY)

    def _reset(self, capacity: int) -> None:
        """Drop all states and steps."""
        cells, entry_ends, successors, source_starts, sources, hops, origins = (
            np.empty(capacity, np.int32) for _ in range(7)
        )
        costs, cost_deltas = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        keys = np.empty(capacity, np.uint64), np.full(capacity, -1, np.int32), np.zeros(len(COUNTS), np.int64)
        arrays = cells, costs, entry_ends, successors, cost_deltas, source_starts, sources, hops, origins
        self._memo = record(Memo, *fixed(*keys, *arrays), capacity)

    def search(self, work: SearchBuffers, event_count: int, most: int) -> Int32Array | None:
        """Return the nodes of the cheapest path for the events in `work`, or None within this beam. Raises ReplayError
        after `most` expanded nodes or without space."""
        tables, restarted = self._tables, False
        while True:
            buffers: Any = *work.work, work.lane, *work.trace, work.path
            state = Search(
                tables.features, tables.nodes, self._edges, work.front, self._memo, self._beam, GAP_COST_SHARE, *buffers
            )
            length = search(state, event_count, most, len(work.path))
            if length == OUT_OF_SPACE:
                if self._memo.capacity > _MAX_CAPACITY // 4 and restarted:
                    raise ReplayError("the search is too long")
                self._reset(min(4 * self._memo.capacity, _MAX_CAPACITY))
                restarted = True
            elif length == TOO_LONG:
                raise ReplayError("the search is too long")
            elif length > len(work.path):
                work.path = np.zeros(2 * length, np.int32)
            else:
                return None if length < 0 else work.path[:length][::-1]
