"""Memoized beam search over (node, matched events), as an automaton built on demand.

A state is the set of reached nodes, with matched events and relative costs, before the next event. Transitions depend
on a window of following events only; loops repeat these windows, so most transitions are table lookups. Costs are
integers in units of 1 / SCALE: equal states compare equal.
"""

from __future__ import annotations

from .. import language as st
from ..language import maths
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
COUNTS = _STATES, _ENTRIES, _STEPS, _HOPS, _KEYS = range(5)
"""Indices of memo counters: states, their entries, steps, hops of steps, hash keys."""
_HOP_MARK = -(1 << 30)
"""Backlink of a node with a stored hop."""


@native
def expand_events(
    events: Global[i32], lanes: Global[u32], count: i64, lane: i64, starts: Global[i32], symbols_of_event: Global[i32],
    capacity: i64, pad: i64,
    symbols: Global[i32], hashes: Global[u64],
) -> i64:  # fmt: skip
    """Return the number of a lane's events, with their symbols and prefix hashes; `pad` END symbols follow.

    starts: first symbol of each event in `symbols_of_event`. Writes nothing if the buffers are too small.
    """
    length = i64(0)
    for n in range(count):
        if (i64(lanes[n]) >> lane & 1) != 0:
            for k in range(i64(starts[i64(events[n])]), i64(starts[i64(events[n]) + 1])):
                if length < capacity:
                    symbols[length] = symbols_of_event[k]
                length += 1
    if length + pad <= capacity:
        hashes[0] = u64(0)
        for n in range(length + pad):
            if n >= length:
                symbols[n] = END
            hashes[n + 1] = hashes[n] * u64(HASH_FACTOR) + u64(symbols[n]) + u64(1)
    return length


@native
def costs_to_next(
    unconditional: Global[f32], predicated: Global[f32], node_cost: Global[i64], node_count: i64, feature_count: i64,
    jumps: Global[i32], starts: Global[i32],
    ahead: Global[i64],
) -> None:  # fmt: skip
    """Compute, by feature and node, the least node cost on a path to a node with this feature. Parameters: see `_advance`."""
    for feature in range(feature_count):
        for n in range(node_count):
            emits = unconditional[n * feature_count + feature] + predicated[n * feature_count + feature] > f32(0)
            ahead[feature * node_count + n] = i64(0) if emits else i64(UNREACHED)
        changed = True
        while changed:
            changed = False
            for behind in range(node_count):
                n = node_count - 1 - behind
                if ahead[feature * node_count + n] > 0:
                    for k in range(i64(starts[n]), i64(starts[n + 1])):
                        cost = node_cost[n] + ahead[feature * node_count + i64(jumps[k])]
                        if cost < ahead[feature * node_count + n]:
                            ahead[feature * node_count + n] = cost
                            changed = True


@native
def _mix(a: u64, b: u64) -> u64:
    """Return a hash of two hashes."""
    mixed = (a ^ b * u64(HASH_FACTOR)) * u64(0xD6E8FEB86659FD93)
    return mixed ^ mixed >> 32


@native
def _slot(keys: Global[u64], values: Global[i32], mask: i64, key: u64) -> i64:
    """Return the slot of a key in an open-addressing hash table; empty slots have negative values."""
    at = i64(key & u64(mask))
    while values[at] >= 0 and keys[at] != key:
        at = at + 1 & mask
    return at


@native
def _reach_node(
    row: i64, to: i64, cost: i64, origin: i64, count: i64, nodes: i64,
    least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], node: Global[i32], backlinks: Global[i32],
) -> i64:  # fmt: skip
    """Record a cheaper path to a node; return the number of nodes reached in this step. Parameters: see `_advance`."""
    cell = row * nodes + to
    if least[cell] >= UNREACHED:
        following[cell] = first[row]
        first[row] = i32(to)
        state[cell] = i32(count)
        node[count] = i32(to)
        count += 1
    least[cell] = cost
    backlinks[i64(state[cell])] = i32(origin)
    return count


@native
def _advance(
    i: i64, symbols: Global[i32], features: Global[i32], amounts: Global[f32], omit_costs: Global[i64],
    unconditional: Global[f32], predicated: Global[f32], price: Global[f32], weights: Global[f32], kinds: i64,
    node_cost: Global[i64], missing_cost: Global[f32], event_capacity: Global[f32], span: Global[i32], nodes: i64,
    jumps: Global[i32], starts: Global[i32], ahead: Global[i64], gap_cost_share: f32, beam: i64,
    least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], rows: i64,
    node: Global[i32], backlinks: Global[i32], count: i64, amounts_held: Global[f32], queue: Global[i64], visited: Global[i64],
) -> i64:  # fmt: skip
    """Expand all nodes reached with `i` matched events; return the lookahead: number of symbols read.

    features, amounts, omit_costs: by symbol. weights: cost per unit of excess or missing feature. price: by node and
    feature, additional cost per unit of predicated instructions. node_cost: cost of a node without matched events;
    missing_cost: its refundable component. event_capacity: events a node can match. ahead: `costs_to_next`.
    gap_cost_share: surcharge, relative to their omission, for skipped events between events of one node. least, state,
    following: by matched events (modulo `rows`, a power of two) and node: cost, index in this step, and the next node
    in the linked list that starts at `first`. node, backlinks: by index, the node and its predecessor's index, -1 for
    none in this step, -2 - index after an omitted event. made: nodes reached before this step. amounts_held, queue:
    zeroed buffers, by feature and a bit per node. visited: counter of expanded nodes.

    A node continues after the last event that is cheaper to match than to omit. Lower nodes are expanded first.
    """
    row = i & rows - 1
    cells, lookahead, symbol = row * nodes, i64(1), i64(symbols[i])
    best, word = i64(UNREACHED), i64(0)
    omit_cost, feature_row = omit_costs[symbol], i64(features[symbol]) * nodes
    n = i64(first[row])
    while n >= 0:
        best = min(best, least[cells + n] + min(ahead[feature_row + n], omit_cost))
        n = i64(following[cells + n])
    n = i64(first[row])
    while n >= 0:
        if least[cells + n] + min(ahead[feature_row + n], omit_cost) <= best + beam:
            queue[n >> 6] |= i64(1) << (n & 63)
        n = i64(following[cells + n])
    while word < nodes + 63 >> 6:
        if queue[word] == 0:
            word += 1
            continue
        n = 64 * word + i64(st.ffs(queue[word])) - 1
        queue[word] &= queue[word] - 1
        visited[0] += i64(1)
        cost, origin = least[cells + n] + node_cost[n], i64(state[cells + n])
        if cost <= best + beam:
            for k in range(i64(starts[n]), i64(starts[n + 1])):
                to = i64(jumps[k])
                if cost < least[cells + to] and cost + min(ahead[feature_row + to], omit_cost) <= best + beam:
                    count = _reach_node(
                        row, to, cost, origin, count, nodes, least, state, following, first, node, backlinks
                    )
                    queue[to >> 6] |= i64(1) << (to & 63)
                    word = min(word, to >> 6)
    if symbol != END:
        n = i64(first[row])
        while n >= 0:
            before, origin = least[cells + n], i64(state[cells + n])
            if before + min(ahead[feature_row + n], omit_cost) <= best + beam:
                then = i + 1 & rows - 1
                if before + omit_cost < least[then * nodes + n]:
                    count = _reach_node(
                        then,
                        n,
                        before + omit_cost,
                        -2 - origin,
                        count,
                        nodes,
                        least,
                        state,
                        following,
                        first,
                        node,
                        backlinks,
                    )
                cost = before + node_cost[n]
                unmatched_cost, open_capacity, useful, skipped_cost = missing_cost[n], event_capacity[n], False, i64(0)
                matched_any, gap_cost = False, i64(0)
                j = i
                while True:
                    visited[0] += i64(1)
                    if useful:
                        then = j & rows - 1
                        for k in range(i64(starts[n]), i64(starts[n + 1])):
                            to = i64(jumps[k])
                            # Omitting these events at the successor may be cheaper.
                            if cost < min(least[then * nodes + to], least[cells + to] + skipped_cost):
                                count = _reach_node(
                                    then,
                                    to,
                                    cost,
                                    origin,
                                    count,
                                    nodes,
                                    least,
                                    state,
                                    following,
                                    first,
                                    node,
                                    backlinks,
                                )
                    if (
                        j == i + i64(span[n])
                        or open_capacity <= f32(1e-6)
                        or f32(cost) - unmatched_cost > f32(best + beam)
                    ):
                        break
                    if j == i + 1 and not useful:
                        break
                    lookahead = max(lookahead, j + 1 - i)
                    event = i64(symbols[j])
                    if event == END:
                        break
                    feature = i64(features[event])
                    amount_before = amounts_held[feature]
                    amount_after = amount_before + amounts[event]
                    required = unconditional[n * kinds + feature]
                    most = required + predicated[n * kinds + feature]
                    resolved = weights[feature] * (
                        max(required - amount_before, f32(0)) - max(required - amount_after, f32(0))
                    )
                    unmatched_cost -= resolved
                    added = (
                        weights[feature] * (max(amount_after - most, f32(0)) - max(amount_before - most, f32(0)))
                        - resolved
                    )
                    added += price[n * kinds + feature] * (
                        min(max(amount_after, required), most) - min(max(amount_before, required), most)
                    )
                    cost += i64(maths.rint(added))
                    open_capacity -= min(amount_after, most) - min(amount_before, most)
                    useful = i64(maths.rint(added)) < omit_costs[event]
                    if useful:
                        cost += i64(maths.rint(f32(gap_cost) * gap_cost_share))
                        matched_any, gap_cost = True, i64(0)
                    elif matched_any:
                        gap_cost += omit_costs[event]
                    amounts_held[feature] = amount_after
                    skipped_cost += omit_costs[event]
                    j += 1
                for k in range(i, j):
                    amounts_held[i64(features[i64(symbols[k])])] = f32(0)
            n = i64(following[cells + n])
    elif least[cells + nodes - 1] < UNREACHED:
        origin = i64(state[cells + nodes - 1])
        count = _reach_node(
            i + 1 & rows - 1, nodes - 1, least[cells + nodes - 1], -2 - origin, count, nodes, least, state, following, first, node,
            backlinks
        )  # fmt: skip
    return lookahead


@native
def _clear_row(row: i64, nodes: i64, least: Global[i64], following: Global[i32], first: Global[i32]) -> None:
    """Clear the row of reached nodes."""
    n = i64(first[row])
    first[row] = -1
    while n >= 0:
        least[row * nodes + n] = UNREACHED
        n = i64(following[row * nodes + n])


@native
def _prune(
    i: i64, symbols: Global[i32], omit_costs: Global[i64], nodes: i64, beam: i64, lookahead: i64,
    least: Global[i64], following: Global[i32], first: Global[i32], rows: i64, max_ahead: i64,
) -> i64:  # fmt: skip
    """Remove nodes beyond the best alternative by more than the beam; return the lookahead. max_ahead: highest reached row."""
    bound = i64(UNREACHED)
    for ahead in range(1, max_ahead + 1):
        row = i + ahead & rows - 1
        bound = min(bound + omit_costs[i64(symbols[i + ahead - 1])], UNREACHED)
        n = i64(first[row])
        if n >= 0:
            lookahead = max(lookahead, ahead + 1)
        while n >= 0:
            bound = min(bound, least[row * nodes + n])
            n = i64(following[row * nodes + n])
        most, before = bound + omit_costs[i64(symbols[i + ahead])] + beam, i64(-1)
        n = i64(first[row])
        while n >= 0:
            cell = row * nodes + n
            if least[cell] <= most:
                before = cell
            elif before < 0:
                first[row], least[cell] = following[cell], UNREACHED
            else:
                following[before], least[cell] = following[cell], UNREACHED
            n = i64(following[cell])
    return lookahead


@native
def _memoize(
    i: i64, nodes: i64, least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], rows: i64, max_ahead: i64,
    node: Global[i32], backlinks: Global[i32], keys: Global[u64], values: Global[i32], mask: i64, counts: Global[i64], capacity: i64,
    cells: Global[i32], costs: Global[i64], entry_ends: Global[i32], successors: Global[i32], cost_deltas: Global[i64],
    source_starts: Global[i32],
    sources: Global[i32], hop_nodes: Global[i32], hop_origins: Global[i32],
) -> bool:  # fmt: skip
    """Store a step and its resulting state; return whether there was space. Makes costs relative to the lowest one."""
    lowest, count = i64(UNREACHED), i64(0)
    for ahead in range(1, max_ahead + 1):
        row = i + ahead & rows - 1
        n = i64(first[row])
        while n >= 0:
            lowest = min(lowest, least[row * nodes + n])
            count += 1
            n = i64(following[row * nodes + n])
    step, into, at = counts[_STEPS], counts[_STATES], counts[_ENTRIES]
    source, hop = i64(source_starts[step]), counts[_HOPS]
    if (
        at + count > capacity
        or source + count > capacity
        or max(step, into) + 2 > capacity
        or 2 * counts[_KEYS] + 4 > mask
    ):
        return False
    key = u64(1)
    for ahead in range(1, max_ahead + 1):
        row = i + ahead & rows - 1
        n = i64(first[row])
        while n >= 0:
            cell = row * nodes + n
            least[cell] -= lowest
            number = i64(state[cell])
            state[cell] = i32(at - counts[_ENTRIES])
            cells[at] = i32((ahead - 1) * nodes + n)
            costs[at] = least[cell]
            key = _mix(_mix(key, u64(cells[at])), u64(costs[at]))
            at += 1
            owner, has_hop = i64(-1), True  # hop with an unresolved origin, -1 for the entry itself
            while has_hop:
                while backlinks[number] <= -2 and backlinks[number] > _HOP_MARK:
                    number = i64(-2 - backlinks[number])
                has_hop = backlinks[number] >= 0
                origin = -1 - number
                if has_hop:
                    if hop >= capacity:
                        return False
                    origin = hop
                elif backlinks[number] == _HOP_MARK:
                    origin = i64(node[number])
                if owner < 0:
                    sources[source] = i32(origin)
                else:
                    hop_origins[owner] = i32(origin)
                if has_hop:
                    owner, before = hop, i64(backlinks[number])
                    hop_nodes[hop] = node[number]
                    node[number], backlinks[number] = i32(hop), _HOP_MARK
                    number = before
                    hop += 1
            source += 1
            n = i64(following[cell])
    cost_deltas[step], source_starts[step + 1], counts[_STEPS], counts[_HOPS] = i64(0), i32(source), step + 1, hop
    successors[step] = -1
    if count != 0:
        cost_deltas[step] = lowest
        slot = _slot(keys, values, mask, key)
        if values[slot] < 0:
            keys[slot], values[slot], counts[_KEYS] = key, i32(into), counts[_KEYS] + 1
            counts[_STATES], counts[_ENTRIES], entry_ends[into + 1] = into + 1, at, i32(at)
        successors[step] = values[slot]
    return True


@native
def _load_state(
    i: i64, number: i64, nodes: i64, least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], rows: i64,
    entry_ends: Global[i32], cells: Global[i32], costs: Global[i64],
) -> i64:  # fmt: skip
    """Restore the rows from a stored state before event `i`; return the highest reached row."""
    for row in range(rows):
        _clear_row(row, nodes, least, following, first)
    begin, past, max_ahead = i64(entry_ends[number]), i64(entry_ends[number + 1]), i64(0)
    for back in range(past - begin):
        entry = past - 1 - back
        ahead, n = i64(cells[entry]) // nodes, i64(cells[entry]) % nodes
        row = i + ahead & rows - 1
        cell = row * nodes + n
        least[cell], state[cell] = costs[entry], i32(entry - begin)
        following[cell] = first[row]
        first[row] = i32(n)
        max_ahead = max(max_ahead, ahead)
    return max_ahead


@native
def search(
    symbols: Global[i32], hashes: Global[u64], powers: Global[u64], event_count: i64,
    features: Global[i32], amounts: Global[f32], omit_costs: Global[i64],
    unconditional: Global[f32], predicated: Global[f32], price: Global[f32], weights: Global[f32], feature_count: i64,
    node_cost: Global[i64], missing_cost: Global[f32], event_capacity: Global[f32], span: Global[i32], nodes: i64,
    jumps: Global[i32], starts: Global[i32], ahead: Global[i64], gap_cost_share: f32, beam: i64, most: i64,
    least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], node: Global[i32], backlinks: Global[i32],
    rows: i64,
    amounts_held: Global[f32], queue: Global[i64], visited: Global[i64],
    keys: Global[u64], values: Global[i32], mask: i64, counts: Global[i64], capacity: i64,
    cells: Global[i32], costs: Global[i64], entry_ends: Global[i32], successors: Global[i32], cost_deltas: Global[i64],
    source_starts: Global[i32],
    sources: Global[i32], hop_nodes: Global[i32], hop_origins: Global[i32], trace: Global[i32], path: Global[i32], max_length: i64,
) -> i64:  # fmt: skip
    """Return the number of nodes of the cheapest path, or NO_PATH, OUT_OF_SPACE or TOO_LONG.

    Writes the nodes to `path`, last one first, at most `max_length`; the path's cost to visited[1]. most: limit of
    expanded nodes. hashes, powers: prefix hashes of the symbols and powers of HASH_FACTOR. keys, values: hash table
    from state contents, (state, symbol) for the lookahead, and (state, window) for the step. cells, costs: entries of
    states; entry_ends: end of each state's entries. successors, cost_deltas: by step. source_starts, sources: by step
    and entry of the next state, its hop, or -1 - entry of the state before. hop_nodes, hop_origins: the same for hops.
    trace: steps of this path. Other parameters: see `_advance`.
    """
    if counts[_STATES] == 0:
        cells[0], costs[0], entry_ends[0], entry_ends[1], source_starts[0] = 0, 0, 0, 1, 0
        counts[_STATES], counts[_ENTRIES] = i64(1), i64(1)
    number, i, loaded_state, loaded_at, total, limit = i64(0), i64(0), i64(-1), i64(0), i64(0), visited[0] + most
    answer, max_ahead = i64(0), i64(0)
    while i <= event_count and answer == 0:
        lookahead_key = _mix(_mix(u64(2), u64(number)), u64(symbols[i]))
        lookahead, step = i64(values[_slot(keys, values, mask, lookahead_key)]), i64(-1)
        if lookahead > 0:
            window = hashes[i + lookahead] - hashes[i] * powers[lookahead]
            step_slot = _slot(keys, values, mask, _mix(_mix(u64(3), u64(number)), window))
            step = i64(values[step_slot])
        visited[0] += i64(1)
        if step < 0:
            if loaded_state != number or loaded_at != i:
                max_ahead = _load_state(
                    i, number, nodes, least, state, following, first, rows, entry_ends, cells, costs
                )
            else:
                max_ahead -= 1
            count = i64(entry_ends[number + 1]) - i64(entry_ends[number])
            for entry in range(count):
                node[entry] = i32(i64(cells[i64(entry_ends[number]) + entry]) % nodes)
                backlinks[entry] = -1
            examined = _advance(
                i, symbols, features, amounts, omit_costs, unconditional, predicated, price, weights, feature_count, node_cost,
                missing_cost, event_capacity, span, nodes,
                jumps, starts, ahead, gap_cost_share, beam, least, state, following, first, rows, node, backlinks, count,
                amounts_held, queue, visited,
            )  # fmt: skip
            _clear_row(i & rows - 1, nodes, least, following, first)
            max_ahead = max(max_ahead, examined)
            examined = _prune(i, symbols, omit_costs, nodes, beam, examined, least, following, first, rows, max_ahead)
            loaded_state = i64(-1)
            if _memoize(
                i, nodes, least, state, following, first, rows, max_ahead, node, backlinks, keys, values, mask, counts, capacity,
                cells, costs,
                entry_ends, successors, cost_deltas, source_starts, sources, hop_nodes, hop_origins,
            ):  # fmt: skip
                step = counts[_STEPS] - 1
                if examined > lookahead:
                    lookahead_slot = _slot(keys, values, mask, lookahead_key)
                    if values[lookahead_slot] < 0:
                        counts[_KEYS] += 1
                    keys[lookahead_slot], values[lookahead_slot], lookahead = lookahead_key, i32(examined), examined
                key = _mix(_mix(u64(3), u64(number)), hashes[i + lookahead] - hashes[i] * powers[lookahead])
                step_slot = _slot(keys, values, mask, key)
                keys[step_slot], values[step_slot], counts[_KEYS] = key, i32(step), counts[_KEYS] + 1
                loaded_state, loaded_at = i64(successors[step]), i + 1
            else:
                answer = i64(OUT_OF_SPACE)
            if visited[0] > limit and answer == 0:
                answer = i64(TOO_LONG)
        if step >= 0:
            trace[i] = i32(step)
            total += cost_deltas[step]
            number = i64(successors[step])
            if number < 0:
                answer = i64(NO_PATH)
        i += 1
    for row in range(rows):
        _clear_row(row, nodes, least, following, first)
    visited[1] = total
    if answer != 0:
        return answer
    length, entry = i64(0), i64(0)
    for before in range(event_count + 1):
        step = i64(trace[event_count - before])
        origin = i64(sources[i64(source_starts[step]) + entry])
        while origin >= 0:
            if length < max_length:
                path[length] = hop_nodes[origin]
            length += 1
            origin = i64(hop_origins[origin])
        entry = -1 - origin
    if length < max_length:
        path[length] = 0
    return length + 1
