"""The search for the cheapest way through a compiled kernel (`paths`), which keeps what it finds to find it again: an automaton that is
made where it is gone through.

A state of the automaton is all that the search knows before a token: the nodes that are reached with so many tokens stood for, or with
more, and what each costs beyond the cheapest. What follows from it hangs on the next tokens alone, as many as were looked at. Loops
tell the same tokens again and again, so few of all steps are new; the others are looked up.

Costs are whole numbers of 1 / SCALE: a state that comes again is the same to the last bit.
"""

from __future__ import annotations

from .. import language as st
from ..language import maths
from ..language.hints import Global, f32, i32, i64, u32, u64
from ..native import native

SCALE = 1 << 24
NEVER = 1 << 60
"""What a node costs that is not reached."""
END = 0
"""The symbol behind the last token."""
NO_WAY, NO_ROOM, TOO_LONG = -1, -2, -3
"""What a search answers that finds nothing; that has no room for what it keeps; and that would go on from too many nodes."""
FACTOR = 0x9E3779B97F4A7C15
"""Of the hash of symbols."""
COUNTS = _STATES, _ENTRIES, _STEPS, _HOPS, _KEYS = range(5)
"""What is kept: states, their entries, steps, the hops of these, keys."""
_HOP = -(1 << 30)
"""Where a number is reached from that has a hop."""


@native
def expand(
    told: Global[i32], lanes: Global[u32], count: i64, lane: i64, starts: Global[i32], each: Global[i32], room: i64, pad: i64,
    symbols: Global[i32], hashes: Global[u64],
) -> i64:  # fmt: skip
    """How many tokens a lane shows, as symbols; behind them come ends. starts: by what is told, its first one among `each`. hashes: of
    all symbols before each, and of all. Nothing is told where there is not room for more tokens than that by `pad`."""
    found = i64(0)
    for n in range(count):
        if (i64(lanes[n]) >> lane & 1) != 0:
            for k in range(i64(starts[i64(told[n])]), i64(starts[i64(told[n]) + 1])):
                if found < room:
                    symbols[found] = each[k]
                found += 1
    if found + pad <= room:
        hashes[0] = u64(0)
        for n in range(found + pad):
            if n >= found:
                symbols[n] = END
            hashes[n + 1] = hashes[n] * u64(FACTOR) + u64(symbols[n]) + u64(1)
    return found


@native
def ahead_of(
    sure: Global[f32], maybe: Global[f32], shown: Global[i64], nodes: i64, kinds: i64, jumps: Global[i32], starts: Global[i32],
    ahead: Global[i64],
) -> None:  # fmt: skip
    """By anchor and node, what the nodes show from there to the next one that may stand for the anchor. Parameters as of `_step`."""
    for anchor in range(kinds):
        for n in range(nodes):
            stands = sure[n * kinds + anchor] + maybe[n * kinds + anchor] > f32(0)
            ahead[anchor * nodes + n] = i64(0) if stands else i64(NEVER)
        again = True
        while again:
            again = False
            for back in range(nodes):
                n = nodes - 1 - back
                if ahead[anchor * nodes + n] > 0:
                    for k in range(i64(starts[n]), i64(starts[n + 1])):
                        through = shown[n] + ahead[anchor * nodes + i64(jumps[k])]
                        if through < ahead[anchor * nodes + n]:
                            ahead[anchor * nodes + n] = through
                            again = True


@native
def _mixed(a: u64, b: u64) -> u64:
    """A hash of two."""
    found = (a ^ b * u64(FACTOR)) * u64(0xD6E8FEB86659FD93)
    return found ^ found >> 32


@native
def _slot(keys: Global[u64], values: Global[i32], mask: i64, key: u64) -> i64:
    """Where a key stands in a hash table, or shall stand: of those that stand nowhere the value there is negative."""
    at = i64(key & u64(mask))
    while values[at] >= 0 and keys[at] != key:
        at = at + 1 & mask
    return at


@native
def _reach(
    row: i64, to: i64, so_far: i64, origin: i64, made: i64, nodes: i64,
    least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], node: Global[i32], back: Global[i32],
) -> i64:  # fmt: skip
    """Come to a node for less than before. How many are reached in this step then. Parameters as of `_step`."""
    cell = row * nodes + to
    if least[cell] >= NEVER:
        following[cell] = first[row]
        first[row] = i32(to)
        state[cell] = i32(made)
        node[made] = i32(to)
        made += 1
    least[cell] = so_far
    back[i64(state[cell])] = i32(origin)
    return made


@native
def _step(
    i: i64, symbols: Global[i32], anchors: Global[i32], amounts: Global[f32], left_out: Global[i64],
    sure: Global[f32], maybe: Global[f32], price: Global[f32], weights: Global[f32], kinds: i64,
    shown: Global[i64], hidden: Global[f32], holds: Global[f32], span: Global[i32], nodes: i64,
    jumps: Global[i32], starts: Global[i32], ahead: Global[i64], apart: f32, beam: i64,
    least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], rows: i64,
    node: Global[i32], back: Global[i32], made: i64, have: Global[f32], queue: Global[i64], visited: Global[i64],
) -> i64:  # fmt: skip
    """Go on from all nodes that are reached with `i` tokens stood for. How many symbols were looked at, from there.

    anchors, amounts, left_out: by symbol, its anchor, how much of it, and what it costs to leave the token out. weights, price: by
    anchor, and by node and anchor, what one costs that is too much or too little, and that predicated instructions stand for.
    shown: by node, what it costs that stands for no token. hidden: that part of it which tokens take away. holds: tokens that a
    node may stand for, of all anchors. ahead: of `ahead_of`. apart: what it costs besides to leave out tokens between those that a
    node stands for, as a part of what leaving them out costs. least, state, following: by number of tokens and node, what the cheapest
    way there costs, its number in this step, and the node that was reached before with as many; first: by number of tokens, the
    node that was reached last. Of these there are `rows` for as many numbers of tokens, a power of two, used in turn. node, back: by
    number, the node, and the number that it is reached from: -1 where that was before this step, or -2 - number where a token was
    left out. made: how many were reached before this step. have, queue: by anchor, and a bit a node, to work with, left as found.
    visited: grows by the nodes that were gone on from.

    A node goes on from behind the last token that is cheaper to stand for than to leave out: those behind it may be left out by the
    next node as well. Nodes of small numbers are gone on from first.
    """
    row = i & rows - 1
    here, seen, symbol = row * nodes, i64(1), i64(symbols[i])
    best, word = i64(NEVER), i64(0)
    left, near = left_out[symbol], i64(anchors[symbol]) * nodes
    n = i64(first[row])
    while n >= 0:
        best = min(best, least[here + n] + min(ahead[near + n], left))
        n = i64(following[here + n])
    n = i64(first[row])
    while n >= 0:
        if least[here + n] + min(ahead[near + n], left) <= best + beam:
            queue[n >> 6] |= i64(1) << (n & 63)
        n = i64(following[here + n])
    while word < nodes + 63 >> 6:
        if queue[word] == 0:
            word += 1
            continue
        n = 64 * word + i64(st.ffs(queue[word])) - 1
        queue[word] &= queue[word] - 1
        visited[0] += i64(1)
        so_far, origin = least[here + n] + shown[n], i64(state[here + n])
        if so_far <= best + beam:
            for k in range(i64(starts[n]), i64(starts[n + 1])):
                to = i64(jumps[k])
                if so_far < least[here + to] and so_far + min(ahead[near + to], left) <= best + beam:
                    made = _reach(row, to, so_far, origin, made, nodes, least, state, following, first, node, back)
                    queue[to >> 6] |= i64(1) << (to & 63)
                    word = min(word, to >> 6)
    if symbol != END:
        n = i64(first[row])
        while n >= 0:
            before, origin = least[here + n], i64(state[here + n])
            if before + min(ahead[near + n], left) <= best + beam:
                then = i + 1 & rows - 1
                if before + left < least[then * nodes + n]:
                    made = _reach(
                        then, n, before + left, -2 - origin, made, nodes, least, state, following, first, node, back
                    )
                so_far = before + shown[n]
                unshown, open, useful, gap = hidden[n], holds[n], False, i64(0)
                stood, between = False, i64(0)
                j = i
                while True:
                    visited[0] += i64(1)
                    if useful:
                        then = j & rows - 1
                        for k in range(i64(starts[n]), i64(starts[n + 1])):
                            to = i64(jumps[k])
                            # What leaves out these tokens there may be cheaper.
                            if so_far < min(least[then * nodes + to], least[here + to] + gap):
                                made = _reach(
                                    then, to, so_far, origin, made, nodes, least, state, following, first, node, back
                                )
                    if j == i + i64(span[n]) or open <= f32(1e-6) or f32(so_far) - unshown > f32(best + beam):
                        break
                    if j == i + 1 and not useful:
                        break
                    seen = max(seen, j + 1 - i)
                    one = i64(symbols[j])
                    if one == END:
                        break
                    anchor = i64(anchors[one])
                    held = have[anchor]
                    now = held + amounts[one]
                    fixed = sure[n * kinds + anchor]
                    most = fixed + maybe[n * kinds + anchor]
                    gone = weights[anchor] * (max(fixed - held, f32(0)) - max(fixed - now, f32(0)))
                    unshown -= gone
                    added = weights[anchor] * (max(now - most, f32(0)) - max(held - most, f32(0))) - gone
                    added += price[n * kinds + anchor] * (min(max(now, fixed), most) - min(max(held, fixed), most))
                    so_far += i64(maths.rint(added))
                    open -= min(now, most) - min(held, most)
                    useful = i64(maths.rint(added)) < left_out[one]
                    if useful:
                        so_far += i64(maths.rint(f32(between) * apart))
                        stood, between = True, i64(0)
                    elif stood:
                        between += left_out[one]
                    have[anchor] = now
                    gap += left_out[one]
                    j += 1
                for k in range(i, j):
                    have[i64(anchors[i64(symbols[k])])] = f32(0)
            n = i64(following[here + n])
    elif least[here + nodes - 1] < NEVER:
        origin = i64(state[here + nodes - 1])
        made = _reach(
            i + 1 & rows - 1, nodes - 1, least[here + nodes - 1], -2 - origin, made, nodes, least, state, following, first, node, back
        )  # fmt: skip
    return seen


@native
def _clear(row: i64, nodes: i64, least: Global[i64], following: Global[i32], first: Global[i32]) -> None:
    """Nothing is reached any more with so many tokens."""
    n = i64(first[row])
    first[row] = -1
    while n >= 0:
        least[row * nodes + n] = NEVER
        n = i64(following[row * nodes + n])


@native
def _pruned(
    i: i64, symbols: Global[i32], left_out: Global[i64], nodes: i64, beam: i64, seen: i64,
    least: Global[i64], following: Global[i32], first: Global[i32], rows: i64, far: i64,
) -> i64:  # fmt: skip
    """Give up, after a step, what costs more than the beam beyond a way that leaves tokens out. How many symbols were looked at. far: how
    many tokens further nodes are reached, at most."""
    bound = i64(NEVER)
    for ahead in range(1, far + 1):
        row = i + ahead & rows - 1
        bound = min(bound + left_out[i64(symbols[i + ahead - 1])], NEVER)
        n = i64(first[row])
        if n >= 0:
            seen = max(seen, ahead + 1)
        while n >= 0:
            bound = min(bound, least[row * nodes + n])
            n = i64(following[row * nodes + n])
        most, before = bound + left_out[i64(symbols[i + ahead])] + beam, i64(-1)
        n = i64(first[row])
        while n >= 0:
            cell = row * nodes + n
            if least[cell] <= most:
                before = cell
            elif before < 0:
                first[row], least[cell] = following[cell], NEVER
            else:
                following[before], least[cell] = following[cell], NEVER
            n = i64(following[cell])
    return seen


@native
def _settled(
    i: i64, nodes: i64, least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], rows: i64, far: i64,
    node: Global[i32], back: Global[i32], keys: Global[u64], values: Global[i32], mask: i64, counts: Global[i64], room: i64,
    cells: Global[i32], costs: Global[i64], ends: Global[i32], next: Global[i32], more: Global[i64], begins: Global[i32],
    sources: Global[i32], hop_nodes: Global[i32], hop_origins: Global[i32],
) -> bool:  # fmt: skip
    """Keep a step whose outcome the rows hold; whether there was room. Costs there are beyond the lowest then, and numbers are those of
    the entries of the state that follows. Parameters as of `_pruned`, `_step` and `search`."""
    lowest, count = i64(NEVER), i64(0)
    for ahead in range(1, far + 1):
        row = i + ahead & rows - 1
        n = i64(first[row])
        while n >= 0:
            lowest = min(lowest, least[row * nodes + n])
            count += 1
            n = i64(following[row * nodes + n])
    step, into, at = counts[_STEPS], counts[_STATES], counts[_ENTRIES]
    source, hop = i64(begins[step]), counts[_HOPS]
    if at + count > room or source + count > room or max(step, into) + 2 > room or 2 * counts[_KEYS] + 4 > mask:
        return False
    key = u64(1)
    for ahead in range(1, far + 1):
        row = i + ahead & rows - 1
        n = i64(first[row])
        while n >= 0:
            cell = row * nodes + n
            least[cell] -= lowest
            number = i64(state[cell])
            state[cell] = i32(at - counts[_ENTRIES])
            cells[at] = i32((ahead - 1) * nodes + n)
            costs[at] = least[cell]
            key = _mixed(_mixed(key, u64(cells[at])), u64(costs[at]))
            at += 1
            owner, going = i64(-1), True  # the hop whose origin is looked for; at first the entry itself
            while going:
                while back[number] <= -2 and back[number] > _HOP:
                    number = i64(-2 - back[number])
                going = back[number] >= 0
                origin = -1 - number
                if going:
                    if hop >= room:
                        return False
                    origin = hop
                elif back[number] == _HOP:
                    origin = i64(node[number])
                if owner < 0:
                    sources[source] = i32(origin)
                else:
                    hop_origins[owner] = i32(origin)
                if going:
                    owner, before = hop, i64(back[number])
                    hop_nodes[hop] = node[number]
                    node[number], back[number] = i32(hop), _HOP
                    number = before
                    hop += 1
            source += 1
            n = i64(following[cell])
    more[step], begins[step + 1], counts[_STEPS], counts[_HOPS] = i64(0), i32(source), step + 1, hop
    next[step] = -1
    if count != 0:
        more[step] = lowest
        slot = _slot(keys, values, mask, key)
        if values[slot] < 0:
            keys[slot], values[slot], counts[_KEYS] = key, i32(into), counts[_KEYS] + 1
            counts[_STATES], counts[_ENTRIES], ends[into + 1] = into + 1, at, i32(at)
        next[step] = values[slot]
    return True


@native
def _load(
    i: i64, number: i64, nodes: i64, least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], rows: i64,
    ends: Global[i32], cells: Global[i32], costs: Global[i64],
) -> i64:  # fmt: skip
    """Let the rows hold a state before token `i`. How many tokens further nodes are reached, at most."""
    for row in range(rows):
        _clear(row, nodes, least, following, first)
    begin, past, far = i64(ends[number]), i64(ends[number + 1]), i64(0)
    for back in range(past - begin):
        entry = past - 1 - back
        ahead, n = i64(cells[entry]) // nodes, i64(cells[entry]) % nodes
        row = i + ahead & rows - 1
        cell = row * nodes + n
        least[cell], state[cell] = costs[entry], i32(entry - begin)
        following[cell] = first[row]
        first[row] = i32(n)
        far = max(far, ahead)
    return far


@native
def search(
    symbols: Global[i32], hashes: Global[u64], powers: Global[u64], tokens: i64,
    anchors: Global[i32], amounts: Global[f32], left_out: Global[i64],
    sure: Global[f32], maybe: Global[f32], price: Global[f32], weights: Global[f32], kinds: i64,
    shown: Global[i64], hidden: Global[f32], holds: Global[f32], span: Global[i32], nodes: i64,
    jumps: Global[i32], starts: Global[i32], ahead: Global[i64], apart: f32, beam: i64, most: i64,
    least: Global[i64], state: Global[i32], following: Global[i32], first: Global[i32], node: Global[i32], back: Global[i32], rows: i64,
    have: Global[f32], queue: Global[i64], visited: Global[i64],
    keys: Global[u64], values: Global[i32], mask: i64, counts: Global[i64], room: i64,
    cells: Global[i32], costs: Global[i64], ends: Global[i32], next: Global[i32], more: Global[i64], begins: Global[i32],
    sources: Global[i32], hop_nodes: Global[i32], hop_origins: Global[i32], trace: Global[i32], path: Global[i32], longest: i64,
) -> i64:  # fmt: skip
    """How many nodes the cheapest way has that shows a lane's tokens; or NO_WAY, NO_ROOM or TOO_LONG. visited: what it costs is behind the
    nodes that were gone on from, which are at most so many more. path: its nodes, the last one first, `longest` at most.

    hashes, powers: of all symbols before each, and of the factor of the hash, by its exponent. keys, values: a hash table of states
    by their entries, of what is looked at by state and symbol, and of steps by state and what is looked at. cells, costs: of the
    entries of states, number of tokens beyond those of the state and node, and costs; ends: where those of a state begin.
    next, more: by step, the state that follows and by how much all costs there are higher. begins: where its sources begin. sources: of
    each entry of the state that follows, the hop that leads to it, or -1 - the entry that it is from. hop_nodes, hop_origins: of
    a hop, the node, and the same. trace: the steps of this way. Other parameters as of `_step`.
    """
    if counts[_STATES] == 0:
        cells[0], costs[0], ends[0], ends[1], begins[0] = 0, 0, 0, 1, 0
        counts[_STATES], counts[_ENTRIES] = i64(1), i64(1)
    number, i, held, held_at, total, limit = i64(0), i64(0), i64(-1), i64(0), i64(0), visited[0] + most
    answer, far = i64(0), i64(0)
    while i <= tokens and answer == 0:
        asked = _mixed(_mixed(u64(2), u64(number)), u64(symbols[i]))
        seen, step = i64(values[_slot(keys, values, mask, asked)]), i64(-1)
        if seen > 0:
            window = hashes[i + seen] - hashes[i] * powers[seen]
            found = _slot(keys, values, mask, _mixed(_mixed(u64(3), u64(number)), window))
            step = i64(values[found])
        visited[0] += i64(1)
        if step < 0:
            if held != number or held_at != i:
                far = _load(i, number, nodes, least, state, following, first, rows, ends, cells, costs)
            else:
                far -= 1
            count = i64(ends[number + 1]) - i64(ends[number])
            for entry in range(count):
                node[entry] = i32(i64(cells[i64(ends[number]) + entry]) % nodes)
                back[entry] = -1
            looked = _step(
                i, symbols, anchors, amounts, left_out, sure, maybe, price, weights, kinds, shown, hidden, holds, span, nodes,
                jumps, starts, ahead, apart, beam, least, state, following, first, rows, node, back, count, have, queue, visited,
            )  # fmt: skip
            _clear(i & rows - 1, nodes, least, following, first)
            far = max(far, looked)
            looked = _pruned(i, symbols, left_out, nodes, beam, looked, least, following, first, rows, far)
            held = i64(-1)
            if _settled(
                i, nodes, least, state, following, first, rows, far, node, back, keys, values, mask, counts, room, cells, costs,
                ends, next, more, begins, sources, hop_nodes, hop_origins,
            ):  # fmt: skip
                step = counts[_STEPS] - 1
                if looked > seen:
                    look = _slot(keys, values, mask, asked)
                    if values[look] < 0:
                        counts[_KEYS] += 1
                    keys[look], values[look], seen = asked, i32(looked), looked
                key = _mixed(_mixed(u64(3), u64(number)), hashes[i + seen] - hashes[i] * powers[seen])
                found = _slot(keys, values, mask, key)
                keys[found], values[found], counts[_KEYS] = key, i32(step), counts[_KEYS] + 1
                held, held_at = i64(next[step]), i + 1
            else:
                answer = i64(NO_ROOM)
            if visited[0] > limit and answer == 0:
                answer = i64(TOO_LONG)
        if step >= 0:
            trace[i] = i32(step)
            total += more[step]
            number = i64(next[step])
            if number < 0:
                answer = i64(NO_WAY)
        i += 1
    for row in range(rows):
        _clear(row, nodes, least, following, first)
    visited[1] = total
    if answer != 0:
        return answer
    length, entry = i64(0), i64(0)
    for before in range(tokens + 1):
        step = i64(trace[tokens - before])
        origin = i64(sources[i64(begins[step]) + entry])
        while origin >= 0:
            if length < longest:
                path[length] = hop_nodes[origin]
            length += 1
            origin = i64(hop_origins[origin])
        entry = -1 - origin
    if length < longest:
        path[length] = 0
    return length + 1
