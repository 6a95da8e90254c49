"""How often warps execute blocks, from the ways of their lanes: groups of lanes part where these do, and meet at BSYNC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import fixed, native
from .nodes import Nodes

Counts = npt.NDArray[np.int64]
Visits = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32]]
"""The nodes that a warp executes, one after the other, and the lanes that do, a bit each."""
_PARTIES = 256
"""There is room for, at first."""


@dataclass(frozen=True)
class Strand:
    """Lanes of a warp that go the same way. mask: a bit each. path: the nodes, one after the other."""

    mask: int
    path: npt.NDArray[np.int32]


@st.device
def _comes(paths: Global[i32], after: i64, past: i64, meeting: i64, maker: i64) -> bool:
    """Whether a strand comes to a meeting point before another is made there: others left the kernel, or break away."""
    n = after + 1
    while n < past and i64(paths[n]) != meeting and i64(paths[n]) != maker:
        n += 1
    return n < past and i64(paths[n]) == meeting


@native
def _follow(
    paths: Global[i32], starts: Global[i64], lanes: Global[u32], strands: i64, made: Global[i32], made_starts: Global[i32],
    waits: Global[i32], yields: Global[i32], nodes: i64, at: Global[i64], ready: Global[i64], waiting: Global[i64], latest: Global[i32],
    parked: Global[i64], below: Global[i32], members: Global[i64], here: Global[i64], room: i64,
    visited: Global[i32], by: Global[u32],
) -> i64:  # fmt: skip
    """How many nodes a warp executes, which these are, and the lanes that do; -1 where there is no room for its parties: strands that
    will meet at a meeting point.

    Groups of strands are a bit each. starts: where each strand's path begins, and all end. made: the meeting points that a node's
    BSSY makes, from `made_starts` on. waits: whether a node is a barrier. yields: whether lanes let others go on there. ready, waiting,
    parked: groups that may go on, and by node those that wait at barriers, and those that let others go on: these go on together when
    nobody else can, or where another group lets them. latest, below: by node, the last of its parties, and by party the
    one made before it, or the next one that is free. members, here: of a party, and of these those that have come.
    """
    for s in range(strands):
        at[s] = starts[s]
    for node in range(nodes):
        latest[node] = i32(-1)
        waiting[node] = i64(0)
        parked[node] = i64(0)
    for party in range(room):
        below[party] = i32(party + 1)
    free, n, top, loose = i64(0), i64(0), i64(1), i64(0)
    ready[0] = (i64(1) << strands) - 1
    while True:
        resumed = i64(-1)
        if top == 0:  # those that let the others go on have met where they did
            for node in range(nodes):
                if parked[node] != 0 and resumed < 0:
                    ready[0] = parked[node]
                    parked[node] = i64(0)
                    resumed = node
                    top = i64(1)
        if top == 0:  # all who have not left the kernel wait at barriers
            for node in range(nodes):
                for s in range(strands):
                    if (waiting[node] >> s & 1) != 0 and at[s] >= starts[s + 1]:
                        waiting[node] &= ~(i64(1) << s)
                if waiting[node] != 0:
                    ready[top] = waiting[node]
                    top += 1
                    waiting[node] = i64(0)
            if top == 0:
                return n
        top -= 1
        group = ready[top]
        while group != 0:
            first, all_lanes = i64(-1), u32(0)
            for s in range(strands):
                if (group >> s & 1) != 0:
                    all_lanes |= lanes[s]
                    if first < 0:
                        first = s
            node = i64(paths[at[first]])
            if yields[node] != 0 and node != resumed:
                if top > 0:
                    parked[node] |= group
                    group = i64(0)
                    continue
                onward = node if parked[node] != 0 else i64(-1)
                for k in range(nodes):
                    if parked[k] != 0 and k != node and (onward < 0 or onward == node):
                        onward = k
                if onward >= 0:
                    resumed = onward
                    others = parked[onward]
                    parked[onward] = i64(0)
                    parked[node] |= group
                    group = others
                    continue
            resumed = i64(-1)
            visited[n] = i32(node)
            by[n] = all_lanes
            n += 1
            for k in range(i64(made_starts[node]), i64(made_starts[node + 1])):
                coming = i64(0)
                for s in range(strands):
                    if (group >> s & 1) != 0 and _comes(paths, at[s], starts[s + 1], i64(made[k]), node):
                        coming |= i64(1) << s
                if (coming & coming - 1) != 0:
                    if free == room:
                        return i64(-1)
                    party = free
                    free = i64(below[party])
                    members[party] = coming
                    here[party] = i64(0)
                    below[party] = latest[i64(made[k])]
                    latest[i64(made[k])] = i32(party)
            if yields[node] != 0:  # no meeting point waits for lanes that let the others go on
                loose |= group
                for meeting in range(nodes):
                    before, party = i64(-1), i64(latest[meeting])
                    while party >= 0:
                        after = i64(below[party])
                        members[party] &= ~group
                        if here[party] != members[party]:
                            before = party
                        else:
                            if here[party] != 0:
                                ready[top] = here[party]
                                top += 1
                            if before < 0:
                                latest[meeting] = i32(after)
                            else:
                                below[before] = i32(after)
                            below[party] = i32(free)
                            free = party
                        party = after
            going = i64(0)
            for s in range(strands):
                if (group >> s & 1) != 0:
                    at[s] += 1
                    if at[s] < starts[s + 1]:
                        going |= i64(1) << s
            if waits[node] != 0:
                waiting[node] |= group
                group = i64(0)
            else:
                alone, above, party = i64(0), i64(-1), i64(latest[node])
                while party >= 0 and (members[party] & group) == 0:
                    above = party
                    party = i64(below[party])
                if party < 0 and (loose & group) != 0:  # who is not waited for waits with others
                    above, party = i64(-1), i64(latest[node])
                if party >= 0:
                    members[party] |= group & loose
                    here[party] |= group & members[party]
                    alone = going & ~members[party]
                    if here[party] != members[party]:
                        group = i64(0)
                    else:
                        group = here[party]
                        if above < 0:
                            latest[node] = below[party]
                        else:
                            below[above] = below[party]
                        below[party] = i32(free)
                        free = party
                rest, group = group, i64(0)
                while rest != 0:
                    onward, together = i64(-1), i64(0)
                    for s in range(strands):
                        if (rest >> s & 1) != 0:
                            if at[s] >= starts[s + 1]:
                                rest &= ~(i64(1) << s)
                            elif onward < 0 or i64(paths[at[s]]) == onward:
                                onward = i64(paths[at[s]])
                                together |= i64(1) << s
                                rest &= ~(i64(1) << s)
                    if group == 0:
                        group = together
                    elif together != 0:
                        ready[top] = together
                        top += 1
                if alone != 0:
                    ready[top] = alone
                    top += 1


@native
def _counted(visited: Global[i32], by: Global[u32], count: i64, warps: Global[i64], threads: Global[i64]) -> None:
    """Add each visit to its node's executions, by warps and by threads."""
    for n in range(count):
        lanes = i64(by[n])
        warps[i64(visited[n])] += 1
        while lanes != 0:
            threads[i64(visited[n])] += 1
            lanes &= lanes - 1


class Warps:
    """Follows warps through the nodes of a kernel."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = len(nodes.blocks)
        made = [nodes.meetings.get(node, []) for node in range(self.nodes)]
        starts = np.cumsum([0, *map(len, made)]).astype(np.int32)
        waits = np.array([nodes.graph.waits(block) for block in nodes.blocks], np.int32)
        yields = np.array([nodes.graph.yields(block) for block in nodes.blocks], np.int32)
        self._given = fixed(np.array([node for each in made for node in each], np.int32), starts, waits, yields)
        self._work = fixed(
            np.zeros(32, np.int64),
            np.zeros(64, np.int64),
            np.zeros(self.nodes, np.int64),
            np.zeros(self.nodes, np.int32),
            np.zeros(self.nodes, np.int64),
        )
        self._make_room(_PARTIES)

    def _make_room(self, parties: int) -> None:
        self._room = parties
        self._parties = fixed(np.zeros(parties, np.int32), np.zeros(parties, np.int64), np.zeros(parties, np.int64))

    def visits(self, strands: Sequence[Strand]) -> Visits:
        """What a warp executes whose lanes are these strands."""
        paths = np.concatenate([one.path for one in strands])
        lanes = np.array([one.mask for one in strands], np.uint32)
        if len(strands) == 1:
            return paths, np.repeat(lanes, len(paths))
        starts = np.cumsum([0, *(len(one.path) for one in strands)])
        visited, by = np.empty(len(paths), np.int32), np.empty(len(paths), np.uint32)
        while True:
            count = _follow(
                paths,
                starts,
                lanes,
                len(strands),
                *self._given,
                self.nodes,
                *self._work,
                *self._parties,
                self._room,
                visited,
                by,
            )
            if count >= 0:
                return visited[:count], by[:count]
            self._make_room(2 * self._room)

    def executions(self, strands: Sequence[Strand]) -> tuple[Counts, Counts]:
        """How often a warp whose lanes are these strands executes each node, and its lanes together."""
        visited, by = self.visits(strands)
        warps, threads = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, np.int64)
        _counted(visited, by, len(visited), warps, threads)
        return warps, threads
