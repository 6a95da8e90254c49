"""The cheapest way through a compiled kernel that shows what a lane did in the source.

A lane's tokens stand in the order of the source. Each node on its way stands for the tokens from where the one before it left
off: what it shows too much or too little costs, and so does a token that no node stands for. The cheapest way is found
token by token: for each node, the cheapest one that comes there with so many tokens stood for. Those that cost more than
the cheapest by a beam are given up; the beam is widened until the way that is found costs less than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..language.hints import Global, f32, i32, i64
from ..native import native
from .anchors import Anchors, Token
from .nodes import Nodes

BEAM, WIDER, SURE, WIDEST = 0.1, 4.0, 4.0, 10_000.0
"""The first beam, how much wider the next one is, how wide at least is one that confirms a way, and the widest."""
CONFIRMED = 16
"""For how many ways one after the other a wider beam must have found nothing cheaper before it is not tried for those that cost no
more."""
_NEVER = 1e30

Path = npt.NDArray[np.int32]


@native
def _search(
    anchors: Global[i32], amounts: Global[f32], tokens: i64, weights: Global[f32], kinds: i64,
    sure: Global[f32], maybe: Global[f32], cost: Global[f32], shown: Global[f32], span: Global[i32], jumps: Global[i32],
    starts: Global[i32], ends: Global[i32], nodes: i64, price: Global[f32], beam: f32, rest: Global[f32],
    least: Global[f32], back: Global[i32], first: Global[i32], following: Global[i32], have: Global[f32],
    queued: Global[i32], stack: Global[i32], found: Global[f32], last: Global[i32], visited: Global[i64],
) -> None:  # fmt: skip
    """least, back: by tokens stood for and node, what the cheapest way there costs, and the state it comes from, or -2 - state
    where a token was left out. first, following: the nodes that are reached with so many tokens, one after the other. rest:
    what it costs to leave out all tokens from there on. shown: what a node costs that stands for no token. price: what it
    costs, by node and anchor, that predicated instructions stand for it. have, queued, stack: by anchor and by node, to work
    with. found, last: what the cheapest way costs, and its last state. visited: states that were gone on from. All that is
    worked with is left as it was found."""
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
                        last[0] = i32(i * nodes + n)
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


@dataclass(frozen=True)
class Way:
    """path: nodes, one after the other. cost: of what it shows too much or too little."""

    path: Path
    cost: float


class Paths:
    """Searches the ways of one kernel's lanes. beam: the widest that was needed. visited: states that were gone on from."""

    def __init__(self, nodes: Nodes, anchors: Anchors) -> None:
        self.nodes, self.anchors = nodes, anchors
        self.beam = BEAM
        self.confirmed, self.dearest = 0, 0.0
        self.closed = frozenset[tuple[int, int]]()
        self.jumps, self.starts = nodes.jumps(self.closed)
        self.ends = np.array(nodes.ends, np.int32)
        self.price = anchors.price.reshape(-1)
        self.sure, self.maybe = anchors.sure.reshape(-1), anchors.maybe.reshape(-1)
        # No product of matrices: those of some processors warn of what they computed beside the matrix.
        self.visited = 0
        self._least, self._back, self._following = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._first = np.zeros(0, np.int32)
        self.shown = np.asarray(anchors.cost + (anchors.sure * anchors.weights).sum(axis=1), np.float32)

    def close(self, ways: frozenset[tuple[int, int]]) -> None:
        """Search only what does not go these ways, from a block to another, besides those closed before."""
        self.closed |= ways
        self.jumps, self.starts = self.nodes.jumps(self.closed)

    def way(self, tokens: Sequence[Token]) -> Way | None:
        """The cheapest way that shows the tokens, or nearly; None where none leads to an end."""
        found = self._within(tokens, self.beam)
        while (found is None or self._doubtful(found)) and self.beam < WIDEST:
            wide = max(SURE, WIDER * self.beam)
            wider = self._within(tokens, wide)
            if found is not None and wider is not None and wider.cost >= found.cost - 1e-3:
                self.confirmed, self.dearest = self.confirmed + 1, max(self.dearest, found.cost)
                break
            while wider is not None and (found is None or wider.cost < found.cost - 1e-3) and self.beam < wide:
                self.beam, self.confirmed = WIDER * self.beam, 0
                found = self._within(tokens, self.beam)
            if wider is None:
                self.beam = wide
        return found

    def _doubtful(self, found: Way) -> bool:
        """Whether a wider beam might find a cheaper way: never where the way costs less than the beam; and not where it did not
        for so many others that cost as much."""
        return found.cost > self.beam and (self.confirmed < CONFIRMED or found.cost > self.dearest)

    def _within(self, tokens: Sequence[Token], beam: float) -> Way | None:
        anchors = np.array([token.anchor for token in tokens] or [0], np.int32)
        amounts = np.array([token.amount for token in tokens] or [0], np.float32)
        kinds, count, nodes = len(self.anchors.weights), len(tokens), len(self.nodes.blocks)
        rest = np.append(np.cumsum((self.anchors.weights[anchors] * amounts)[::-1])[::-1], 0).astype(np.float32)
        if not count:
            rest = np.zeros(1, np.float32)
        states = (count + 1) * nodes
        if states > len(self._least):
            self._least, self._back = np.full(states, _NEVER, np.float32), np.empty(states, np.int32)
            self._following = np.empty(states, np.int32)
        if count + 1 > len(self._first):
            self._first = np.full(count + 1, -1, np.int32)
        self._least[0], self._back[0], self._first[0], self._following[0] = 0, -1, 0, -1
        found, last, visited = np.full(1, _NEVER, np.float32), np.full(1, -1, np.int32), np.zeros(1, np.int64)
        have, queued, stack = np.zeros(kinds, np.float32), np.zeros(nodes, np.int32), np.zeros(nodes + 1, np.int32)
        _search(
            anchors, amounts, count, self.anchors.weights,  kinds, self.sure, self.maybe, self.anchors.cost,
            self.shown, self.anchors.span, self.jumps, self.starts, self.ends, nodes, self.price, beam, rest, self._least, self._back,
            self._first, self._following, have, queued, stack, found, last, visited,
        )  # fmt: skip
        self.visited += int(visited[0])
        if last[0] < 0:
            return None
        return Way(_path(self._back, int(last[0]), nodes), float(found[0]))


def _path(back: npt.NDArray[np.int32], state: int, nodes: int) -> Path:
    """The nodes of the way to a state."""
    found = []
    while state != -1:
        found.append(state % nodes)
        state = int(back[state])
        while state <= -2:
            state = int(back[-2 - state])
    return np.array(found[::-1], np.int32)
