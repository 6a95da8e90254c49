"""The cheapest way through a compiled kernel that shows what a lane did in the source.

A lane's tokens stand in the order of the source. Each node on its way stands for the tokens from where the one before it left
off: what it shows too much or too little costs, and so does a token that no node stands for. The cheapest way is found
token by token: for each node, the cheapest one that comes there with so many tokens stood for. Those that cost more than
the cheapest by a beam are given up; the beam is widened until the way that is found costs less than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..language.hints import Global, f32, i32, i64, u32
from ..native import Fixed, fixed, native
from .anchors import Anchors
from .nodes import Nodes
from .replay import Steps

BEAM, WIDER, SURE, WIDEST = 0.1, 4.0, 4.0, 10_000.0
"""The first beam, how much wider the next one is, how wide at least is one that confirms a way, and the widest."""
CONFIRMED = 16
"""For how many ways one after the other a wider beam must have found nothing cheaper before it is not tried for those that cost no
more."""
STATES_OF_ONE = 4_000_000
"""Nodes times tokens of a lane's way, at most: 12 bytes each."""
_NEVER = 1e30
_TOKENS = 1 << 10
"""There is room for, at first."""

Path = npt.NDArray[np.int32]


@native
def _expand(
    told: Global[i32], lanes: Global[u32], count: i64, lane: i64, starts: Global[i32], anchors: Global[i32], amounts: Global[f32],
    room: i64, anchors_of_lane: Global[i32], amounts_of_lane: Global[f32],
) -> i64:  # fmt: skip
    """How many tokens a lane shows: `anchors_of_lane` and `amounts_of_lane` are those that there is room for. starts: by what is told, its
    first token among `anchors` and `amounts`."""
    found = i64(0)
    for n in range(count):
        if (i64(lanes[n]) >> lane & 1) != 0:
            for k in range(i64(starts[i64(told[n])]), i64(starts[i64(told[n]) + 1])):
                if found < room:
                    anchors_of_lane[found] = anchors[k]
                    amounts_of_lane[found] = amounts[k]
                found += 1
    return found


@native
def _trace(back: Global[i32], last: i64, nodes: i64, room: i64, path: Global[i32]) -> i64:
    """How many nodes the way to a state has; those that there is room for, its last ones first."""
    found, state = i64(0), last
    while state != -1:
        if found < room:
            path[found] = i32(state % nodes)
        found += 1
        state = i64(back[state])
        while state <= -2:
            state = i64(back[-2 - state])
    return found


@native
def _search(
    anchors: Global[i32], amounts: Global[f32], tokens: i64, weights: Global[f32], kinds: i64,
    sure: Global[f32], maybe: Global[f32], cost: Global[f32], shown: Global[f32], span: Global[i32], price: Global[f32],
    ends: Global[i32], nodes: i64, jumps: Global[i32], starts: Global[i32], beam: f32, rest: Global[f32],
    least: Global[f32], back: Global[i32], first: Global[i32], following: Global[i32], have: Global[f32],
    queued: Global[i32], stack: Global[i32], found: Global[f32], visited: Global[i64],
) -> i64:  # fmt: skip
    """least, back: by tokens stood for and node, what the cheapest way there costs, and the state it comes from, or -2 - state
    where a token was left out. first, following: the nodes that are reached with so many tokens, one after the other. rest:
    what it costs to leave out all tokens from there on; made here. shown: what a node costs that stands for no token. price: what it
    costs, by node and anchor, that predicated instructions stand for it. have, queued, stack: by anchor and by node, to work
    with. found: what the cheapest way costs, whose last state is the result, -1 where there is none. visited: states that were gone
    on from. All that is worked with is left as it was found."""
    last = i64(-1)
    found[0] = f32(1e30)
    least[0] = f32(0)
    back[0] = i32(-1)
    first[0] = i32(0)
    following[0] = i32(-1)
    rest[tokens] = f32(0)
    for i in range(tokens - 1, -1, -1):
        rest[i] = rest[i + 1] + weights[i64(anchors[i])] * amounts[i]
    for i in range(tokens + 1):
        best, top = f32(1e30), i64(0)
        n = i64(first[i])
        while n >= 0:
            best = min(best, least[i * nodes + n])
            n = i64(following[i * nodes + n])
        n = i64(first[i])
        while n >= 0:
            if least[i * nodes + n] <= best + beam:
                queued[n] = i32(1)
                stack[top] = i32(n)
                top += 1
            n = i64(following[i * nodes + n])
        while top > 0:
            top -= 1
            n = i64(stack[top])
            queued[n] = i32(0)
            visited[0] += i64(1)
            so_far = least[i * nodes + n] + shown[n]
            if so_far <= best + beam:
                for k in range(i64(starts[n]), i64(starts[n + 1])):
                    to = i64(jumps[k])
                    if so_far < least[i * nodes + to] - f32(1e-6):
                        if least[i * nodes + to] >= f32(1e30):
                            following[i * nodes + to] = first[i]
                            first[i] = i32(to)
                        least[i * nodes + to] = so_far
                        back[i * nodes + to] = i32(i * nodes + n)
                        if queued[to] == 0:
                            queued[to] = i32(1)
                            stack[top] = i32(to)
                            top += 1
        n = i64(first[i])
        while n >= 0:
            before = least[i * nodes + n]
            if before <= best + beam:
                if i < tokens:
                    without = before + weights[i64(anchors[i])] * amounts[i]
                    if without < least[(i + 1) * nodes + n]:
                        if least[(i + 1) * nodes + n] >= f32(1e30):
                            following[(i + 1) * nodes + n] = first[i + 1]
                            first[i + 1] = i32(n)
                        least[(i + 1) * nodes + n] = without
                        back[(i + 1) * nodes + n] = i32(-2 - (i * nodes + n))
                so_far = before + shown[n]
                unshown = shown[n] - cost[n]
                stop = min(tokens, i + i64(span[n]))
                j = i
                while True:
                    visited[0] += i64(1)
                    if j > i:
                        for k in range(i64(starts[n]), i64(starts[n + 1])):
                            to = i64(jumps[k])
                            if so_far < least[j * nodes + to]:
                                if least[j * nodes + to] >= f32(1e30):
                                    following[j * nodes + to] = first[j]
                                    first[j] = i32(to)
                                least[j * nodes + to] = so_far
                                back[j * nodes + to] = i32(i * nodes + n)
                    if ends[n] != 0 and so_far + rest[j] < found[0]:
                        found[0] = so_far + rest[j]
                        last = i * nodes + n
                    if j == stop or so_far - unshown > best + beam:
                        break
                    anchor = i64(anchors[j])
                    held = have[anchor]
                    now = held + amounts[j]
                    fixed = sure[n * kinds + anchor]
                    most = fixed + maybe[n * kinds + anchor]
                    gone = weights[anchor] * (max(fixed - held, f32(0)) - max(fixed - now, f32(0)))
                    unshown -= gone
                    so_far += weights[anchor] * (max(now - most, f32(0)) - max(held - most, f32(0))) - gone
                    so_far += price[n * kinds + anchor] * (min(max(now, fixed), most) - min(max(held, fixed), most))
                    have[anchor] = now
                    j += 1
                for k in range(i, j):
                    have[i64(anchors[k])] = f32(0)
            n = i64(following[i * nodes + n])
    for i in range(tokens + 1):
        n = i64(first[i])
        first[i] = i32(-1)
        while n >= 0:
            least[i * nodes + n] = f32(1e30)
            n = i64(following[i * nodes + n])
    return last


@dataclass(frozen=True)
class Way:
    """path: nodes, one after the other. cost: of what it shows too much or too little."""

    path: Path
    cost: float


class Paths:
    """Searches the ways of one kernel's lanes. names: what anchors have tokens for, in the order of its numbers (`replay.Steps`).
    beam: the widest that was needed. visited: states that were gone on from."""

    def __init__(self, nodes: Nodes, anchors: Anchors) -> None:
        self.nodes = nodes
        self.beam = BEAM
        self.confirmed, self.dearest = 0, 0.0
        self.closed = frozenset[tuple[int, int]]()
        self.visited = 0
        self.names = sorted(anchors.tokens)
        known = [anchors.tokens[name] for name in self.names]
        starts = np.cumsum([0, *map(len, known)]).astype(np.int32)
        each = [token for tokens in known for token in tokens]
        # No product of matrices: those of some processors warn of what they computed beside the matrix.
        shown = np.asarray(anchors.cost + (anchors.sure * anchors.weights).sum(axis=1), np.float32)
        count, kinds = len(nodes.blocks), len(anchors.weights)
        self._of_told = fixed(
            starts, np.array([one.anchor for one in each], np.int32), np.array([one.amount for one in each], np.float32)
        )
        self._weights = Fixed(anchors.weights)
        self._of_nodes = fixed(
            anchors.sure.reshape(-1), anchors.maybe.reshape(-1), anchors.cost, shown, anchors.span, anchors.price.reshape(-1),
            np.array(nodes.ends, np.int32),
        )  # fmt: skip
        self._work = fixed(np.zeros(kinds, np.float32), np.zeros(count, np.int32), np.zeros(count + 1, np.int32))
        self._found, self._visited = np.zeros(1, np.float32), np.zeros(1, np.int64)
        self._outcome = fixed(self._found, self._visited)
        self._jumps = fixed(*nodes.jumps(self.closed))
        self._room = _Room(_TOKENS, 0)
        self._path = np.zeros(_TOKENS, np.int32)

    def close(self, ways: frozenset[tuple[int, int]]) -> None:
        """Search only what does not go these ways, from a block to another, besides those closed before."""
        self.reopen(self.closed | ways)

    def reopen(self, closed: frozenset[tuple[int, int]]) -> None:
        """Search all that does not go these ways."""
        self.closed = closed
        self._jumps = fixed(*self.nodes.jumps(closed))

    def way(self, steps: Steps, lane: int) -> Way | None:
        """The cheapest way that shows what a lane did, or nearly; None where none leads to an end, or what it did is too long to look
        for. steps: of `names`."""
        count = self._expand(steps, lane)
        if count * len(self.nodes.blocks) > STATES_OF_ONE:
            return None
        found = self._within(count, self.beam)
        while (found is None or self._doubtful(found)) and self.beam < WIDEST:
            wide = max(SURE, WIDER * self.beam)
            wider = self._within(count, wide)
            if found is not None and wider is not None and wider.cost >= found.cost - 1e-3:
                self.confirmed, self.dearest = self.confirmed + 1, max(self.dearest, found.cost)
                break
            while wider is not None and (found is None or wider.cost < found.cost - 1e-3) and self.beam < wide:
                self.beam, self.confirmed = WIDER * self.beam, 0
                found = self._within(count, self.beam)
            if wider is None:
                self.beam = wide
        return found

    def _doubtful(self, found: Way) -> bool:
        """Whether a wider beam might find a cheaper way: never where the way costs less than the beam; and not where it did not
        for so many others that cost as much."""
        return found.cost > self.beam and (self.confirmed < CONFIRMED or found.cost > self.dearest)

    def _expand(self, steps: Steps, lane: int) -> int:
        """How many tokens a lane shows; they are in the room for them."""
        told, lanes = steps.told, steps.lanes
        while True:
            room = self._room
            count: int = _expand(told, lanes, len(told), lane, *self._of_told, room.tokens, *room.of_lane)
            if count <= room.tokens:
                return count
            self._room = _Room(2 * count, room.states)

    def _within(self, count: int, beam: float) -> Way | None:
        """The cheapest way that shows so many tokens, found within a beam."""
        nodes = len(self.nodes.blocks)
        if (count + 1) * nodes > self._room.states:
            self._room.provide(2 * (count + 1) * nodes)
        room = self._room
        last = _search(
            *room.of_lane, count, self._weights, len(self._weights.array), *self._of_nodes, nodes, *self._jumps, beam,
            room.rest, *room.of_states, *self._work, *self._outcome,
        )  # fmt: skip
        self.visited, self._visited[0] = self.visited + int(self._visited[0]), 0
        if last < 0:
            return None
        return Way(self._traced(last, nodes), float(self._found[0]))

    def _traced(self, last: int, nodes: int) -> Path:
        """The nodes of the way to a state."""
        while True:
            length = _trace(self._room.of_states[1], last, nodes, len(self._path), self._path)
            if length <= len(self._path):
                return self._path[:length][::-1].copy()
            self._path = np.zeros(2 * length, np.int32)


class _Room:
    """What a search works with. tokens, states: how many there is room for. of_lane: tokens. of_states: `least`, `back`, `first` and
    `following` of the search."""

    def __init__(self, tokens: int, states: int) -> None:
        self.tokens = tokens
        self.of_lane = fixed(np.zeros(tokens, np.int32), np.zeros(tokens, np.float32))
        self.rest = Fixed(np.zeros(tokens + 1, np.float32))
        self._first = np.full(tokens + 1, -1, np.int32)
        self.provide(states)

    def provide(self, states: int) -> None:
        """Room for so many states."""
        self.states = states
        self.of_states = fixed(
            np.full(states, _NEVER, np.float32), np.empty(states, np.int32), self._first, np.empty(states, np.int32)
        )
