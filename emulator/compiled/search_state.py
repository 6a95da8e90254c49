"""Records of the beam search, its memo table, and the preparation of events and costs."""

from __future__ import annotations

from typing import NamedTuple

from .. import language as st
from ..language.hints import Global, f32, i32, i64, u32, u64
from ..native import native

SCALE = 1 << 24
UNREACHED = 1 << 60
"""Cost of an unreached node."""
END = 0
"""Symbol after the last event."""
NO_PATH, OUT_OF_SPACE, TOO_LONG = -1, -2, -3
"""Results of a failed search: no path within the beam, memo tables full, too many expanded nodes."""
HASH_FACTOR = 0x9E3779B97F4A7C15
"""Multiplier of the rolling hash over symbols."""
COUNTS = STATES, ENTRIES, STEPS, HOPS, KEYS = range(5)
"""Indices of memo counters: states, their entries, steps, hops of steps, hash keys."""
VISITED, COST = range(2)
"""Indices of `Search.totals`: expanded nodes, cost of the path."""
HOP_MARK = -(1 << 30)
"""Backlink of a node with a stored hop."""


class Symbols(NamedTuple):
    """Events by number. starts: first symbol of each event in `symbols`."""

    starts: Global[i32]
    symbols: Global[i32]


class Lane(NamedTuple):
    """Symbols of a lane, their prefix hashes, powers of HASH_FACTOR, and the number of symbols they have space for."""

    symbols: Global[i32]
    hashes: Global[u64]
    powers: Global[u64]
    capacity: i64


class Features(NamedTuple):
    """features, amounts, omit_costs: by symbol. unconditional, predicated: amounts by node and feature. price: of a
    predicated unit. weights: cost per unit of excess or missing feature."""

    features: Global[i32]
    amounts: Global[f32]
    omit_costs: Global[i64]
    unconditional: Global[f32]
    predicated: Global[f32]
    price: Global[f32]
    weights: Global[f32]
    number: i64


class Nodes(NamedTuple):
    """cost: of a node without matched events; missing_cost: its refundable component. event_capacity: amount a node can
    match; span: events it can match."""

    cost: Global[i64]
    missing_cost: Global[f32]
    event_capacity: Global[f32]
    span: Global[i32]
    number: i64


class Edges(NamedTuple):
    """Successors of the nodes, from `starts`. ahead: `costs_to_next`."""

    jumps: Global[i32]
    starts: Global[i32]
    ahead: Global[i64]


class Front(NamedTuple):
    """Reached nodes. least, state, following: by matched events (modulo `rows`, a power of two) and node: cost, index in
    this step, and the next node in the linked list that starts at `first`. node, backlinks: by index, the node and its
    predecessor's index, -1 for none in this step, -2 - index after an omitted event."""

    least: Global[i64]
    state: Global[i32]
    following: Global[i32]
    first: Global[i32]
    node: Global[i32]
    backlinks: Global[i32]
    rows: i64


class Memo(NamedTuple):
    """Memoized steps. keys, values: hash table from state contents, (state, symbol) for the lookahead, and (state,
    window) for the step. cells, costs: entries of states; entry_ends: end of each state's entries. successors,
    cost_deltas: by step. source_starts, sources: by step and entry of the next state, its hop, or -1 - entry of the
    state before. hop_nodes, hop_origins: the same for hops."""

    keys: Global[u64]
    values: Global[i32]
    counts: Global[i64]
    cells: Global[i32]
    costs: Global[i64]
    entry_ends: Global[i32]
    successors: Global[i32]
    cost_deltas: Global[i64]
    source_starts: Global[i32]
    sources: Global[i32]
    hop_nodes: Global[i32]
    hop_origins: Global[i32]
    capacity: i64


class Search(NamedTuple):
    """A search. gap_cost_share: surcharge, relative to their omission, for skipped events between events of one node.
    matched, queue: zeroed buffers, amounts by feature and a bit per node. totals: see VISITED. trace: steps of the path."""

    features: Features
    nodes: Nodes
    edges: Edges
    front: Front
    memo: Memo
    beam: i64
    gap_cost_share: f32
    matched: Global[f32]
    queue: Global[i64]
    totals: Global[i64]
    lane: Lane
    trace: Global[i32]
    path: Global[i32]


@st.device
def mix(a: u64, b: u64) -> u64:
    """Return a hash of two hashes."""
    mixed = (a ^ b * u64(HASH_FACTOR)) * u64(0xD6E8FEB86659FD93)
    return mixed ^ mixed >> 32


@st.device
def slot(memo: Memo, key: u64) -> i64:
    """Return the slot of a key in the hash table; empty slots have negative values."""
    mask = memo.capacity - 1
    at = i64(key & u64(mask))
    while memo.values[at] >= 0 and memo.keys[at] != key:
        at = at + 1 & mask
    return at


@st.device
def remember(memo: Memo, key: u64, value: i64) -> None:
    """Set the value of a key."""
    place = slot(memo, key)
    if memo.values[place] < 0:
        memo.counts[KEYS] += 1
    memo.keys[place], memo.values[place] = key, i32(value)


@native
def expand_events(
    events: Global[i32], masks: Global[u32], count: i64, number: i64, alphabet: Symbols, pad: i64, lane: Lane
) -> i64:
    """Return the number of symbols of a lane, written with their prefix hashes; `pad` END symbols follow. Writes no hash
    if there is too little space."""
    length = i64(0)
    for n in range(count):
        if (i64(masks[n]) >> number & 1) != 0:
            for k in range(i64(alphabet.starts[i64(events[n])]), i64(alphabet.starts[i64(events[n]) + 1])):
                if length < lane.capacity:
                    lane.symbols[length] = alphabet.symbols[k]
                length += 1
    if length + pad <= lane.capacity:
        lane.hashes[0] = u64(0)
        for n in range(length + pad):
            if n >= length:
                lane.symbols[n] = END
            lane.hashes[n + 1] = lane.hashes[n] * u64(HASH_FACTOR) + u64(lane.symbols[n]) + u64(1)
    return length


@native
def costs_to_next(features: Features, nodes: Nodes, edges: Edges) -> None:
    """Compute, by feature and node, the least node cost on a path to a node with this feature."""
    for feature in range(features.number):
        row = feature * nodes.number
        for n in range(nodes.number):
            cell = n * features.number + feature
            emits = features.unconditional[cell] + features.predicated[cell] > f32(0)
            edges.ahead[row + n] = i64(0) if emits else i64(UNREACHED)
        changed = True
        while changed:
            changed = False
            for behind in range(nodes.number):
                n = nodes.number - 1 - behind
                if edges.ahead[row + n] > 0:
                    for k in range(i64(edges.starts[n]), i64(edges.starts[n + 1])):
                        cost = nodes.cost[n] + edges.ahead[row + i64(edges.jumps[k])]
                        if cost < edges.ahead[row + n]:
                            edges.ahead[row + n] = cost
                            changed = True
