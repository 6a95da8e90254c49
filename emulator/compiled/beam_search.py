"""Memoized beam search over (node, matched events), as an automaton built on demand.

A state is the set of reached nodes, with matched events and relative costs, before the next event. Transitions depend
on a window of following events only; loops repeat these windows, so most transitions are table lookups. Costs are
integers in units of 1 / SCALE: equal states compare equal.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import language as st
from ..language import maths
from ..language.hints import f32, i32, i64, u64
from ..native import native
from .search_state import (
    COST,
    END,
    ENTRIES,
    HOP_MARK,
    HOPS,
    KEYS,
    NO_PATH,
    OUT_OF_SPACE,
    STATES,
    STEPS,
    TOO_LONG,
    UNREACHED,
    VISITED,
    Memo,
    Search,
    mix,
    remember,
    slot,
)


class _Match(NamedTuple):
    """Events matched by a node. past: after the last one. gap_cost: of skipped events after the last useful one."""

    past: i64
    cost: i64
    unmatched_cost: f32
    capacity: f32
    useful: bool
    matched_any: bool
    gap_cost: i64
    skipped_cost: i64


# ------------------------------------------------------------------ expansion
@st.device
def _row(s: Search, i: i64) -> i64:
    """Return the row of nodes with `i` matched events."""
    return i & s.front.rows - 1


@st.device
def _reach_node(s: Search, row: i64, to: i64, cost: i64, origin: i64, count: i64) -> i64:
    """Record a cheaper path to a node; return the number of nodes reached in this step."""
    cell = row * s.nodes.number + to
    if s.front.least[cell] >= UNREACHED:
        s.front.following[cell] = s.front.first[row]
        s.front.first[row] = i32(to)
        s.front.state[cell] = i32(count)
        s.front.node[count] = i32(to)
        count += 1
    s.front.least[cell] = cost
    s.front.backlinks[i64(s.front.state[cell])] = i32(origin)
    return count


@st.device
def _estimate(s: Search, i: i64, n: i64) -> i64:
    """Return the least cost from a node on until event `i` is matched or omitted."""
    symbol = i64(s.lane.symbols[i])
    return min(s.edges.ahead[i64(s.features.features[symbol]) * s.nodes.number + n], s.features.omit_costs[symbol])


@st.device
def _bound(s: Search, i: i64) -> i64:
    """Return the highest cost within the beam; add the nodes within it to the queue."""
    row, best = _row(s, i), i64(UNREACHED)
    cells = row * s.nodes.number
    n = i64(s.front.first[row])
    while n >= 0:
        best = min(best, s.front.least[cells + n] + _estimate(s, i, n))
        n = i64(s.front.following[cells + n])
    n = i64(s.front.first[row])
    while n >= 0:
        if s.front.least[cells + n] + _estimate(s, i, n) <= best + s.beam:
            s.queue[n >> 6] |= i64(1) << (n & 63)
        n = i64(s.front.following[cells + n])
    return best + s.beam


@st.device
def _follow_edges(s: Search, i: i64, bound: i64, count: i64) -> i64:
    """Reach nodes without a match of event `i`, lower nodes first; return the number of reached nodes."""
    row, word = _row(s, i), i64(0)
    cells = row * s.nodes.number
    while word < s.nodes.number + 63 >> 6:
        if s.queue[word] == 0:
            word += 1
            continue
        n = 64 * word + i64(st.ffs(s.queue[word])) - 1
        s.queue[word] &= s.queue[word] - 1
        s.totals[VISITED] += i64(1)
        cost, origin = s.front.least[cells + n] + s.nodes.cost[n], i64(s.front.state[cells + n])
        if cost <= bound:
            for k in range(i64(s.edges.starts[n]), i64(s.edges.starts[n + 1])):
                to = i64(s.edges.jumps[k])
                if cost < s.front.least[cells + to] and cost + _estimate(s, i, to) <= bound:
                    count = _reach_node(s, row, to, cost, origin, count)
                    s.queue[to >> 6] |= i64(1) << (to & 63)
                    word = min(word, to >> 6)
    return count


@st.device
def _match_event(s: Search, n: i64, m: _Match) -> _Match:
    """Match the next event with a node. An omission may be cheaper than the excess."""
    event = i64(s.lane.symbols[m.past])
    feature = i64(s.features.features[event])
    cell, weight = n * s.features.number + feature, s.features.weights[feature]
    before = s.matched[feature]
    after = before + s.features.amounts[event]
    required = s.features.unconditional[cell]
    most = required + s.features.predicated[cell]
    resolved = weight * (max(required - before, f32(0)) - max(required - after, f32(0)))
    added = weight * (max(after - most, f32(0)) - max(before - most, f32(0))) - resolved
    added += s.features.price[cell] * (min(max(after, required), most) - min(max(before, required), most))
    cost, gap_cost, omit_cost = m.cost + i64(maths.rint(added)), m.gap_cost, s.features.omit_costs[event]
    useful = i64(maths.rint(added)) < omit_cost
    if useful:
        cost += i64(maths.rint(f32(gap_cost) * s.gap_cost_share))
        gap_cost = i64(0)
    elif m.matched_any:
        gap_cost += omit_cost
    s.matched[feature] = after
    return _Match(
        m.past + 1,
        cost,
        m.unmatched_cost - resolved,
        m.capacity - (min(after, most) - min(before, most)),
        useful,
        m.matched_any or useful,
        gap_cost,
        m.skipped_cost + omit_cost,
    )


@st.device
def _leave_node(s: Search, i: i64, n: i64, m: _Match, count: i64) -> i64:
    """Reach the successors of a node after its matched events; return the number of reached nodes."""
    row, origin = _row(s, m.past), i64(s.front.state[_row(s, i) * s.nodes.number + n])
    for k in range(i64(s.edges.starts[n]), i64(s.edges.starts[n + 1])):
        to = i64(s.edges.jumps[k])
        # Omitting these events at the successor may be cheaper.
        least_here = s.front.least[_row(s, i) * s.nodes.number + to] + m.skipped_cost
        if m.cost < min(s.front.least[row * s.nodes.number + to], least_here):
            count = _reach_node(s, row, to, m.cost, origin, count)
    return count


@st.device
def _match_events(s: Search, i: i64, n: i64, bound: i64, count: i64) -> tuple[i64, i64]:
    """Match events from `i` on with a node; return the number of reached nodes, and that of read symbols.

    A node continues after the last event that is cheaper to match than to omit.
    """
    lookahead = i64(1)
    m = _Match(
        i,
        s.front.least[_row(s, i) * s.nodes.number + n] + s.nodes.cost[n],
        s.nodes.missing_cost[n],
        s.nodes.event_capacity[n],
        False,
        False,
        i64(0),
        i64(0),
    )
    continues = True
    while continues:
        s.totals[VISITED] += i64(1)
        if m.useful:
            count = _leave_node(s, i, n, m, count)
        full = m.past == i + i64(s.nodes.span[n]) or m.capacity <= f32(1e-6)
        too_costly = f32(m.cost) - m.unmatched_cost > f32(bound)
        continues = not (full or too_costly or (m.past == i + 1 and not m.useful))
        if continues:
            lookahead = max(lookahead, m.past + 1 - i)
            continues = s.lane.symbols[m.past] != END
        if continues:
            m = _match_event(s, n, m)
    for k in range(i, m.past):
        s.matched[i64(s.features.features[i64(s.lane.symbols[k])])] = f32(0)
    return count, lookahead


@st.device
def _advance(s: Search, i: i64, count: i64) -> i64:
    """Expand all nodes reached with `i` matched events; return the lookahead: number of symbols read."""
    row, lookahead = _row(s, i), i64(1)
    cells, last, following = row * s.nodes.number, s.nodes.number - 1, _row(s, i + 1)
    bound = _bound(s, i)
    count = _follow_edges(s, i, bound, count)
    if s.lane.symbols[i] != END:
        omit_cost = s.features.omit_costs[i64(s.lane.symbols[i])]
        n = i64(s.front.first[row])
        while n >= 0:
            cost, origin = s.front.least[cells + n], i64(s.front.state[cells + n])
            if cost + _estimate(s, i, n) <= bound:
                if cost + omit_cost < s.front.least[following * s.nodes.number + n]:
                    count = _reach_node(s, following, n, cost + omit_cost, -2 - origin, count)
                count, examined = _match_events(s, i, n, bound, count)
                lookahead = max(lookahead, examined)
            n = i64(s.front.following[cells + n])
    elif s.front.least[cells + last] < UNREACHED:
        origin = i64(s.front.state[cells + last])
        count = _reach_node(s, following, last, s.front.least[cells + last], -2 - origin, count)
    return lookahead


@st.device
def _clear_row(s: Search, row: i64) -> None:
    """Clear the row of reached nodes."""
    n = i64(s.front.first[row])
    s.front.first[row] = -1
    while n >= 0:
        s.front.least[row * s.nodes.number + n] = UNREACHED
        n = i64(s.front.following[row * s.nodes.number + n])


@st.device
def _prune_row(s: Search, row: i64, most: i64) -> None:
    """Remove the nodes of a row above a cost."""
    n, before = i64(s.front.first[row]), i64(-1)
    while n >= 0:
        cell = row * s.nodes.number + n
        if s.front.least[cell] <= most:
            before = cell
        elif before < 0:
            s.front.first[row], s.front.least[cell] = s.front.following[cell], UNREACHED
        else:
            s.front.following[before], s.front.least[cell] = s.front.following[cell], UNREACHED
        n = i64(s.front.following[cell])


@st.device
def _prune(s: Search, i: i64, lookahead: i64, max_ahead: i64) -> i64:
    """Remove nodes beyond the best alternative by more than the beam; return the lookahead. max_ahead: highest reached row."""
    bound = i64(UNREACHED)
    for ahead in range(1, max_ahead + 1):
        row = _row(s, i + ahead)
        omit_cost = s.features.omit_costs[i64(s.lane.symbols[i + ahead - 1])]
        bound = min(bound + omit_cost, UNREACHED)
        n = i64(s.front.first[row])
        if n >= 0:
            lookahead = max(lookahead, ahead + 1)
        while n >= 0:
            bound = min(bound, s.front.least[row * s.nodes.number + n])
            n = i64(s.front.following[row * s.nodes.number + n])
        _prune_row(s, row, bound + s.features.omit_costs[i64(s.lane.symbols[i + ahead])] + s.beam)
    return lookahead


# ------------------------------------------------------------------ memory of steps
@st.device
def _lowest(s: Search, i: i64, max_ahead: i64) -> tuple[i64, i64]:
    """Return the lowest cost of the next state, and the number of its nodes."""
    lowest, count = i64(UNREACHED), i64(0)
    for ahead in range(1, max_ahead + 1):
        row = _row(s, i + ahead)
        n = i64(s.front.first[row])
        while n >= 0:
            lowest = min(lowest, s.front.least[row * s.nodes.number + n])
            count += 1
            n = i64(s.front.following[row * s.nodes.number + n])
    return lowest, count


@st.device
def _has_space(memo: Memo, count: i64) -> bool:
    """Return whether a step and a state of so many entries fit."""
    step, state = memo.counts[STEPS], memo.counts[STATES]
    return (
        memo.counts[ENTRIES] + count <= memo.capacity
        and i64(memo.source_starts[step]) + count <= memo.capacity
        and max(step, state) + 2 <= memo.capacity
        and 2 * memo.counts[KEYS] + 4 <= memo.capacity - 1
    )


@st.device
def _store_source(s: Search, number: i64, source: i64) -> bool:
    """Store the hops to a reached node, up to stored ones; return whether there was space."""
    owner, has_hop = i64(-1), True  # hop with an unresolved origin, -1 for the entry itself
    while has_hop:
        while s.front.backlinks[number] <= -2 and s.front.backlinks[number] > HOP_MARK:
            number = i64(-2 - s.front.backlinks[number])
        has_hop = s.front.backlinks[number] >= 0
        hop = s.memo.counts[HOPS]
        origin = -1 - number
        if has_hop:
            if hop >= s.memo.capacity:
                return False
            origin = hop
        elif s.front.backlinks[number] == HOP_MARK:
            origin = i64(s.front.node[number])
        if owner < 0:
            s.memo.sources[source] = i32(origin)
        else:
            s.memo.hop_origins[owner] = i32(origin)
        if has_hop:
            owner, before = hop, i64(s.front.backlinks[number])
            s.memo.hop_nodes[hop] = s.front.node[number]
            s.front.node[number], s.front.backlinks[number] = i32(hop), HOP_MARK
            number = before
            s.memo.counts[HOPS] += 1
    return True


@st.device
def _memoize(s: Search, i: i64, max_ahead: i64) -> bool:
    """Store a step and its resulting state; return whether there was space. Makes costs relative to the lowest one."""
    lowest, count = _lowest(s, i, max_ahead)
    if not _has_space(s.memo, count):
        return False
    step, into, at = s.memo.counts[STEPS], s.memo.counts[STATES], s.memo.counts[ENTRIES]
    source, key = i64(s.memo.source_starts[step]), u64(1)
    for ahead in range(1, max_ahead + 1):
        row = _row(s, i + ahead)
        n = i64(s.front.first[row])
        while n >= 0:
            cell = row * s.nodes.number + n
            s.front.least[cell] -= lowest
            number = i64(s.front.state[cell])
            s.front.state[cell] = i32(at - s.memo.counts[ENTRIES])
            s.memo.cells[at] = i32((ahead - 1) * s.nodes.number + n)
            s.memo.costs[at] = s.front.least[cell]
            key = mix(mix(key, u64(s.memo.cells[at])), u64(s.memo.costs[at]))
            at += 1
            if not _store_source(s, number, source):
                return False
            source += 1
            n = i64(s.front.following[cell])
    s.memo.cost_deltas[step], s.memo.source_starts[step + 1] = i64(0), i32(source)
    s.memo.counts[STEPS] = step + 1
    s.memo.successors[step] = -1
    if count != 0:
        s.memo.cost_deltas[step] = lowest
        place = slot(s.memo, key)
        if s.memo.values[place] < 0:
            s.memo.keys[place], s.memo.values[place] = key, i32(into)
            s.memo.counts[KEYS] += 1
            s.memo.counts[STATES], s.memo.counts[ENTRIES], s.memo.entry_ends[into + 1] = into + 1, at, i32(at)
        s.memo.successors[step] = s.memo.values[place]
    return True


@st.device
def _load_state(s: Search, i: i64, number: i64) -> i64:
    """Restore the rows from a stored state before event `i`; return the highest reached row."""
    for row in range(s.front.rows):
        _clear_row(s, row)
    begin, past, max_ahead = i64(s.memo.entry_ends[number]), i64(s.memo.entry_ends[number + 1]), i64(0)
    for back in range(past - begin):
        entry = past - 1 - back
        ahead, n = i64(s.memo.cells[entry]) // s.nodes.number, i64(s.memo.cells[entry]) % s.nodes.number
        row = _row(s, i + ahead)
        cell = row * s.nodes.number + n
        s.front.least[cell], s.front.state[cell] = s.memo.costs[entry], i32(entry - begin)
        s.front.following[cell] = s.front.first[row]
        s.front.first[row] = i32(n)
        max_ahead = max(max_ahead, ahead)
    return max_ahead


@st.device
def _step_key(s: Search, number: i64, i: i64, lookahead: i64) -> u64:
    """Return the key of the step from a state with a window of events."""
    window = s.lane.hashes[i + lookahead] - s.lane.hashes[i] * s.lane.powers[lookahead]
    return mix(mix(u64(3), u64(number)), window)


@st.device
def _expand(s: Search, number: i64, i: i64, max_ahead: i64, known_lookahead: i64) -> tuple[i64, i64]:
    """Compute the step from the loaded state; return it, -1 without space, and the highest reached row."""
    begin = i64(s.memo.entry_ends[number])
    count = i64(s.memo.entry_ends[number + 1]) - begin
    for entry in range(count):
        s.front.node[entry] = i32(i64(s.memo.cells[begin + entry]) % s.nodes.number)
        s.front.backlinks[entry] = -1
    lookahead, step = _advance(s, i, count), i64(-1)
    _clear_row(s, _row(s, i))
    max_ahead = max(max_ahead, lookahead)
    lookahead = _prune(s, i, lookahead, max_ahead)
    if _memoize(s, i, max_ahead):
        step = s.memo.counts[STEPS] - 1
        if lookahead > known_lookahead:
            remember(s.memo, mix(mix(u64(2), u64(number)), u64(s.lane.symbols[i])), lookahead)
        # Not by `remember`: the step of this window is missing.
        key = _step_key(s, number, i, max(lookahead, known_lookahead))
        place = slot(s.memo, key)
        s.memo.keys[place], s.memo.values[place] = key, i32(step)
        s.memo.counts[KEYS] += 1
    return step, max_ahead


@st.device
def _find_steps(s: Search, event_count: i64, most: i64) -> i64:
    """Find the steps of the cheapest path; return 0, or NO_PATH, OUT_OF_SPACE or TOO_LONG."""
    number, i, loaded_state, loaded_at = i64(0), i64(0), i64(-1), i64(0)
    limit, result, max_ahead = s.totals[VISITED] + most, i64(0), i64(0)
    s.totals[COST] = i64(0)
    while i <= event_count and result == 0:
        key = mix(mix(u64(2), u64(number)), u64(s.lane.symbols[i]))
        lookahead, step = i64(s.memo.values[slot(s.memo, key)]), i64(-1)
        if lookahead > 0:
            step = i64(s.memo.values[slot(s.memo, _step_key(s, number, i, lookahead))])
        s.totals[VISITED] += i64(1)
        if step < 0:
            if loaded_state != number or loaded_at != i:
                max_ahead = _load_state(s, i, number)
            else:
                max_ahead -= 1
            step, max_ahead = _expand(s, number, i, max_ahead, lookahead)
            loaded_state = i64(-1)
            if step < 0:
                result = i64(OUT_OF_SPACE)
            else:
                loaded_state, loaded_at = i64(s.memo.successors[step]), i + 1
                if s.totals[VISITED] > limit:
                    result = i64(TOO_LONG)
        if step >= 0:
            s.trace[i] = i32(step)
            s.totals[COST] += s.memo.cost_deltas[step]
            number = i64(s.memo.successors[step])
            if number < 0:
                result = i64(NO_PATH)
        i += 1
    return result


@native
def search(s: Search, event_count: i64, most: i64, max_length: i64) -> i64:
    """Return the number of nodes of the cheapest path, or NO_PATH, OUT_OF_SPACE or TOO_LONG.

    Writes the nodes to `path`, last one first, at most `max_length`. most: limit of expanded nodes.
    """
    if s.memo.counts[STATES] == 0:
        s.memo.cells[0], s.memo.costs[0], s.memo.source_starts[0] = 0, 0, 0
        s.memo.entry_ends[0], s.memo.entry_ends[1] = 0, 1
        s.memo.counts[STATES], s.memo.counts[ENTRIES] = i64(1), i64(1)
    result = _find_steps(s, event_count, most)
    for row in range(s.front.rows):
        _clear_row(s, row)
    if result != 0:
        return result
    length, entry = i64(0), i64(0)
    for before in range(event_count + 1):
        step = i64(s.trace[event_count - before])
        origin = i64(s.memo.sources[i64(s.memo.source_starts[step]) + entry])
        while origin >= 0:
            if length < max_length:
                s.path[length] = s.memo.hop_nodes[origin]
            length += 1
            origin = i64(s.memo.hop_origins[origin])
        entry = -1 - origin
    if length < max_length:
        s.path[length] = 0
    return length + 1
