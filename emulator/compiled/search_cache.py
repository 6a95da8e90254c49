"""Tables, buffers and memoized transitions for `beam_search` on one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..native import Fixed, fixed
from .beam_search import (
    COUNTS,
    END,
    HASH_FACTOR,
    OUT_OF_SPACE,
    SCALE,
    TOO_LONG,
    UNREACHED,
    costs_to_next,
    expand_events,
    search,
)
from .correspondence import GAP_COST_SHARE, Correspondence, Event
from .replay import Int32Array, ReplayError

_INITIAL_EVENTS, _INITIAL_CAPACITY, _MAX_CAPACITY = 1 << 10, 1 << 16, 1 << 21
"""Initial capacity for a lane's events and for memo entries, and the maximum (52 bytes an entry)."""


class SearchTables:
    """Read-only tables of `beam_search.search`; the last node is the end.

    event_symbols: first symbol of each event, and the symbols. symbol_tables, feature_tables, node_tables: by symbol,
    by node and feature, and by node.
    """

    def __init__(
        self, correspondence: Correspondence, events: Sequence[Sequence[Event]], order: npt.NDArray[np.int64]
    ) -> None:
        """events: features and amounts by event name. order: of the nodes."""
        flat = [(one.feature, one.amount) for each in events for one in each]
        kinds = sorted(set(flat))
        numbers = {kind: number for number, kind in enumerate(kinds, END + 1)}
        symbols = np.array([numbers[kind] for kind in flat], np.int32)
        self.event_symbols = fixed(np.cumsum([0, *map(len, events)]).astype(np.int32), symbols)
        weights = correspondence.weights * np.float32(SCALE)
        feature = np.array([0, *(feature for feature, _ in kinds)], np.int32)
        amounts = np.array([0, *(amount for _, amount in kinds)], np.float32)
        omit_costs = np.rint(weights[feature] * amounts) if len(weights) else np.zeros(1)
        self.symbol_tables = fixed(feature, amounts, omit_costs.astype(np.int64))
        self.nodes, self.features = 1 + len(order), max(len(weights), 1)
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
        self.feature_tables = *fixed(unconditional, predicated, price, np.append(weights, np.float32(0))), self.features
        # Break ties by address.
        node_cost = node_cost[order] + np.arange(len(order))
        span = self._with_end(correspondence.span[order], np.int32)
        self.node_tables = *fixed(self._with_end(node_cost, np.int64), missing_cost, event_capacity, span), self.nodes
        self.rows = 1 << int(correspondence.span.max(initial=0) + 1).bit_length()

    def _with_end(self, array: npt.NDArray[Any], type: Any) -> npt.NDArray[Any]:
        """Append a row of zeros for the end node."""
        wide = array.reshape(len(array), -1)
        return np.concatenate([wide, np.zeros((1, wide.shape[1]))]).astype(type).reshape(-1)


class SearchBuffers:
    """Buffers shared by the searches of one kernel. visited: expanded nodes so far. cost: of the last path."""

    def __init__(self, tables: SearchTables) -> None:
        nodes, rows = tables.nodes, tables.rows
        self.tables = tables
        self.row_buffers = *fixed(
            np.full(rows * nodes, UNREACHED, np.int64), np.empty(rows * nodes, np.int32), np.empty(rows * nodes, np.int32),
            np.full(rows, -1, np.int32), np.empty(rows * nodes, np.int32), np.empty(rows * nodes, np.int32),
        ), rows  # fmt: skip
        self.step_buffers = fixed(np.zeros(tables.features + 1, np.float32), np.zeros(nodes // 64 + 1, np.int64))
        self._visited = np.zeros(2, np.int64)
        self.counted = Fixed(self._visited)
        self._allocate(_INITIAL_EVENTS)

    def _allocate(self, capacity: int) -> None:
        powers = np.full(capacity + 1, HASH_FACTOR, np.uint64)
        powers[0] = 1
        self.symbols, self.path = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        self.lane_buffers = fixed(self.symbols, np.zeros(capacity + 1, np.uint64), np.cumprod(powers, dtype=np.uint64))
        self.trace = Fixed(np.zeros(capacity, np.int32))

    def expand(self, events: Int32Array, lanes: npt.NDArray[np.uint32], lane: int) -> int:
        """Fill `lane_buffers` with a lane's events and return their number."""
        pad = self.tables.rows
        while True:
            capacity, (symbols, hashes, _) = len(self.symbols), self.lane_buffers
            count: int = expand_events(
                events, lanes, len(events), lane, *self.tables.event_symbols, capacity, pad, symbols, hashes
            )
            if count + pad <= capacity:
                return count
            self._allocate(2 * (count + pad))

    @property
    def visited(self) -> int:
        return int(self._visited[0])

    @property
    def cost(self) -> float:
        return float(self._visited[1]) / SCALE


class SearchCache:
    """Memoized transitions of one kernel for one beam and one set of closed edges."""

    def __init__(self, tables: SearchTables, adjacency: tuple[Fixed, ...], beam: float) -> None:
        """adjacency: successors of the nodes and the start of each row."""
        self._tables, self._adjacency, self._beam = tables, adjacency, round(beam * SCALE)
        self._costs_to_next = Fixed(np.zeros(tables.features * tables.nodes, np.int64))
        unconditional, predicated, *_ = tables.feature_tables
        costs_to_next(
            unconditional,
            predicated,
            tables.node_tables[0],
            tables.nodes,
            tables.features,
            *adjacency,
            self._costs_to_next,
        )
        self._reset(_INITIAL_CAPACITY)

    def _reset(self, capacity: int) -> None:
        """Drop all states and steps."""
        self._capacity = capacity
        cells, entry_ends, successors, source_starts, sources, hops, origins = (
            np.empty(capacity, np.int32) for _ in range(7)
        )
        costs, cost_deltas = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        arrays = cells, costs, entry_ends, successors, cost_deltas, source_starts, sources, hops, origins
        keys = fixed(np.empty(capacity, np.uint64), np.full(capacity, -1, np.int32))
        self._memo = *keys, capacity - 1, Fixed(np.zeros(len(COUNTS), np.int64)), capacity, *fixed(*arrays)

    def search(self, work: SearchBuffers, event_count: int, most: int) -> Int32Array | None:
        """Return the nodes of the cheapest path for the events in `work`, or None within this beam. Raises ReplayError
        after `most` expanded nodes or without space."""
        tables, restarted = self._tables, False
        while True:
            length = search(
                *work.lane_buffers, event_count, *tables.symbol_tables, *tables.feature_tables, *tables.node_tables,
                *self._adjacency, self._costs_to_next, GAP_COST_SHARE,
                self._beam, most, *work.row_buffers, *work.step_buffers, work.counted, *self._memo, work.trace, work.path, len(work.path),
            )  # fmt: skip
            if length == OUT_OF_SPACE:
                if self._capacity > _MAX_CAPACITY // 4 and restarted:
                    raise ReplayError("the search is too long")
                self._reset(min(4 * self._capacity, _MAX_CAPACITY))
                restarted = True
            elif length == TOO_LONG:
                raise ReplayError("the search is too long")
            elif length > len(work.path):
                work.path = np.zeros(2 * length, np.int32)
            else:
                return None if length < 0 else work.path[:length][::-1]
