"""How often warps execute blocks, from the ways of their lanes: groups of lanes part where these do, and meet at BSYNC.

At YIELD a group lets the others go on, as the description of convergence barriers has it (US patent 10,067,768): who waits
at a meeting point for nobody but groups that let others go on goes on as well, and the next time nobody waits there. Which group is next,
and where groups are one again, was chosen by what an H100 executed of 42 warps (tests/compiled/yields.json holds 12 of them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import fixed, native
from .control_flow import Graph
from .expanded_cfg import ExpandedCfg

Counts = npt.NDArray[np.int64]
Visits = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32]]
"""The nodes that a warp executes, one after the other, and the lanes that do, a bit each."""
ON, WAITS, MEETS, YIELDS = range(4)
"""What lanes do at the end of a node: go on, wait for all of the block or of the warp, meet, or let others go on."""


@dataclass(frozen=True)
class LanePath:
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


@st.device
def _gathers(
    group: i64, last: i64, node: i64, paths: Global[i32], starts: Global[i64], lanes: Global[u32], strands: i64, at: Global[i64],
    together: Global[i32], together_starts: Global[i32], meeting: Global[i32], back: Global[i32], visited: Global[i32], by: Global[u32],
    count: i64,
) -> i64:  # fmt: skip
    """Have strands that have gathered do together what they gathered for, and come back; how many nodes the warp has executed then.
    last: those of them that came last."""
    n, all_lanes, late = count, u32(0), u32(0)
    for s in range(strands):
        if (group >> s & 1) != 0:
            all_lanes |= lanes[s]
            late |= lanes[s] if (last >> s & 1) != 0 else u32(0)
    for k in range(i64(together_starts[node]), i64(together_starts[node + 1])):
        visited[n] = together[k]
        by[n] = all_lanes
        if together[k] == meeting[node]:
            by[n] = late
            n += 1
            visited[n] = together[k]
            by[n] = all_lanes & ~late
        n += 1
    for s in range(strands):
        if (group >> s & 1) != 0:
            while at[s] < starts[s + 1] and paths[at[s]] != back[node]:
                at[s] += 1
    return n


@st.device
def _release(
    ready: Global[i64], top: i64, idle: i64, meetings: Global[i32], count: i64, members: Global[i64], here: Global[i64], at: Global[i64],
    starts: Global[i64], strands: i64,
) -> i64:  # fmt: skip
    """Let those go on who wait at meeting points for nobody but strands that let others go on, `idle`, or have left the kernel; how many
    groups are ready then. The next time nobody waits there for these."""
    past = top
    for k in range(count):
        meeting = i64(meetings[k])
        if here[meeting] != 0:
            missing = members[meeting] & ~here[meeting] & ~idle
            for s in range(strands):
                if at[s] >= starts[s + 1]:
                    missing &= ~(i64(1) << s)
            if missing == 0:
                ready[past] = here[meeting]
                past += 1
                here[meeting] = i64(0)
                members[meeting] = i64(0)
    return past


@st.device
def _next(group: i64, paths: Global[i32], starts: Global[i64], at: Global[i64], strands: i64) -> i64:
    """The node that the first strand of a group comes to; -1 where all have left the kernel."""
    found = i64(-1)
    for s in range(strands):
        if found < 0 and (group >> s & 1) != 0 and at[s] < starts[s + 1]:
            found = i64(paths[at[s]])
    return found


@st.device
def _most(parked: Global[i64], nodes: i64, but: i64, lanes: Global[u32], strands: i64) -> i64:
    """The node where most lanes let others go on, but for one; -1 for none."""
    found, most = i64(-1), i64(0)
    for node in range(nodes):
        if parked[node] != 0 and node != but:
            size = i64(0)
            for s in range(strands):
                if (parked[node] >> s & 1) != 0:
                    size += i64(st.popcount(lanes[s]))
            if size > most:
                found, most = node, size
    return found


@native
def _follow(
    paths: Global[i32], starts: Global[i64], lanes: Global[u32], strands: i64, made: Global[i32], made_starts: Global[i32],
    meetings: Global[i32], count: i64, blocks: Global[i32], does: Global[i32], apart: Global[i32], jointly: Global[i32],
    jointly_starts: Global[i32], joined: Global[i32], back: Global[i32], yields: i64, nodes: i64, at: Global[i64], ready: Global[i64],
    waiting: Global[i64], parked: Global[i64], gathered: Global[i64], members: Global[i64], here: Global[i64],
    visited: Global[i32], by: Global[u32],
) -> i64:  # fmt: skip
    """How many nodes a warp executes, which these are, and the lanes that do.

    Groups of strands are a bit each. starts: where each strand's path begins, and all end. made: the meeting points that a node's
    BSSY makes, from `made_starts` on; meetings: all of them. blocks: of the nodes. does: what a node ends with; yields: whether lanes
    let others go on at any. apart, jointly, joined, back: where lanes go that shall be together and are not (`nodes.Apart`), -1 for none;
    gathered: by node, those that have come there.
    ready, waiting, parked: groups that may go on, and by node those that wait at barriers, and those that let others go on. members, here:
    by meeting point, who is waited for, and who has come.
    """
    for s in range(strands):
        at[s] = starts[s]
    for node in range(nodes):
        waiting[node] = i64(0)
        parked[node] = i64(0)
        gathered[node] = i64(0)
        members[node] = i64(0)
        here[node] = i64(0)
    n, top, idle = i64(0), i64(1), i64(0)
    ready[0] = (i64(1) << strands) - 1
    while True:
        if top == 0 and idle != 0:
            onward = _most(parked, nodes, i64(-1), lanes, strands)
            ready[0] = parked[onward]
            parked[onward] = i64(0)
            idle &= ~ready[0]
            top = i64(1)
        if top == 0:  # those that have gathered need not wait for who has left the kernel
            for node in range(nodes):
                if gathered[node] != 0:
                    n = _gathers(
                        gathered[node], gathered[node] & -gathered[node], node, paths, starts, lanes, strands, at,
                        jointly, jointly_starts, joined, back, visited, by, n,
                    )  # fmt: skip
                    ready[top] = gathered[node]
                    top += 1
                    gathered[node] = i64(0)
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
            for k in range(count):
                if here[i64(meetings[k])] != 0:
                    ready[top] = here[i64(meetings[k])]
                    top += 1
                    here[i64(meetings[k])] = i64(0)
        if top == 0:
            return n
        first = i64(0)
        for k in range(i64(1), top):
            mine, its = _next(ready[k], paths, starts, at, strands), _next(ready[first], paths, starts, at, strands)
            if its < 0 or (mine >= 0 and blocks[mine] < blocks[its]):
                first = k
        group = ready[first]
        top -= 1
        ready[first] = ready[top]
        node = _next(group, paths, starts, at, strands)
        while node >= 0:
            k = i64(0)
            while yields != 0 and k < top:  # who comes to where others are ready goes on with them
                if _next(ready[k], paths, starts, at, strands) == node:
                    group |= ready[k]
                    top -= 1
                    ready[k] = ready[top]
                else:
                    k += 1
            all_lanes = u32(0)
            for s in range(strands):
                if (group >> s & 1) != 0:
                    if at[s] < starts[s + 1]:
                        all_lanes |= lanes[s]
                    else:
                        group &= ~(i64(1) << s)
            visited[n] = i32(node)
            by[n] = all_lanes
            n += 1
            for m in range(i64(made_starts[node]), i64(made_starts[node + 1])):
                members[i64(made[m])] = i64(0)
                for s in range(strands):
                    if (group >> s & 1) != 0 and _comes(paths, at[s], starts[s + 1], i64(made[m]), node):
                        members[i64(made[m])] |= i64(1) << s
            left = i64(0)
            for s in range(strands):
                if (group >> s & 1) != 0:
                    at[s] += 1
                if at[s] < starts[s + 1]:
                    left |= i64(1) << s
            if apart[node] >= 0 and group != left:
                visited[n] = apart[node]
                by[n] = all_lanes
                n += 1
                gathered[node] |= group
                if gathered[node] != left:
                    group = i64(0)
                else:
                    n = _gathers(
                        left, group, node, paths, starts, lanes, strands, at, jointly, jointly_starts, joined, back, visited, by, n
                    )  # fmt: skip
                    gathered[node] = i64(0)
                    group = left
            elif does[node] == WAITS:
                waiting[node] |= group
                group = i64(0)
            elif does[node] == MEETS:
                coming = group & members[node]
                group &= ~members[node]
                if coming != 0:
                    here[node] |= coming
                    before = top
                    top = _release(ready, top, idle, meetings, count, members, here, at, starts, strands)
                    if top > before and group == 0:
                        top -= 1
                        group = ready[top]
            elif does[node] == YIELDS and _next(group, paths, starts, at, strands) >= 0:
                onward = _next(group, paths, starts, at, strands)
                parked[onward] |= group
                idle |= group
                top = _release(ready, top, idle, meetings, count, members, here, at, starts, strands)
                if parked[onward] == group and idle != group:
                    onward = _most(parked, nodes, onward, lanes, strands)
                group = i64(0)
                if top == 0:
                    group = parked[onward]
                    parked[onward] = i64(0)
                    idle &= ~group
            rest, jumped, group = group, i64(0), i64(0)
            while rest != 0:  # lanes that jump go on before those that do not
                onward, together = _next(rest, paths, starts, at, strands), i64(0)
                for s in range(strands):
                    if (rest >> s & 1) != 0 and (at[s] >= starts[s + 1] or i64(paths[at[s]]) == onward):
                        rest &= ~(i64(1) << s)
                        together |= i64(1) << s if at[s] < starts[s + 1] else i64(0)
                if together != 0 and (group == 0 or (jumped == 0 and blocks[onward] != blocks[node] + 1)):
                    jumped = i64(blocks[onward] != blocks[node] + 1)
                    group, together = together, group
                if together != 0:
                    ready[top] = together
                    top += 1
            if group == 0:
                top = _release(ready, top, idle, meetings, count, members, here, at, starts, strands)
            node = _next(group, paths, starts, at, strands)


@native
def _counted(visited: Global[i32], by: Global[u32], count: i64, warps: Global[i64], threads: Global[i64]) -> None:
    """Add each visit to its node's executions, by warps and by threads."""
    for n in range(count):
        lanes = i64(by[n])
        warps[i64(visited[n])] += 1
        while lanes != 0:
            threads[i64(visited[n])] += 1
            lanes &= lanes - 1


def _does(graph: Graph, block: int) -> int:
    """What lanes do at the end of a block."""
    if graph.waits(block):
        return WAITS
    return MEETS if graph.meets(block) else YIELDS if graph.yields(block) else ON


class WarpReconvergence:
    """Follows warps through the nodes of a kernel."""

    def __init__(self, nodes: ExpandedCfg) -> None:
        self.nodes = len(nodes.blocks)
        made = [nodes.meetings.get(node, []) for node in range(self.nodes)]
        every = sorted({node for each in made for node in each})
        apart = [nodes.apart.get(node) for node in range(self.nodes)]
        together = [() if one is None else one.together for one in apart]
        self._longest = 1 + max((2 + len(each) for each in together if each), default=0)
        self._given = fixed(
            np.array([node for each in made for node in each], np.int32), np.cumsum([0, *map(len, made)]).astype(np.int32),
            np.array(every, np.int32),
        )  # fmt: skip
        self._meetings = len(every)
        does = [_does(nodes.graph, block) for block in nodes.blocks]
        self._yields = int(YIELDS in does)
        self._of_nodes = fixed(
            np.array(nodes.blocks, np.int32),
            np.array(does, np.int32),
            np.array([-1 if one is None else one.alone for one in apart], np.int32),
            np.array([node for each in together for node in each], np.int32),
            np.cumsum([0, *map(len, together)]).astype(np.int32),
            np.array([-1 if one is None or one.meeting is None else one.meeting for one in apart], np.int32),
            np.array([-1 if one is None or one.back is None else one.back for one in apart], np.int32),
        )
        by_node = (np.zeros(self.nodes, np.int64) for _ in range(5))
        self._work = fixed(np.zeros(32, np.int64), np.zeros(64, np.int64), *by_node)

    def visits(self, strands: Sequence[LanePath]) -> Visits:
        """What a warp executes whose lanes are these strands."""
        paths = np.concatenate([one.path for one in strands])
        lanes = np.array([one.mask for one in strands], np.uint32)
        if len(strands) == 1:
            return paths, np.repeat(lanes, len(paths))
        starts = np.cumsum([0, *(len(one.path) for one in strands)])
        room = len(paths) * self._longest
        visited, by = np.empty(room, np.int32), np.empty(room, np.uint32)
        given = *self._given, self._meetings, *self._of_nodes, self._yields, self.nodes
        count = _follow(paths, starts, lanes, len(strands), *given, *self._work, visited, by)
        return visited[:count], by[:count]

    def executions(self, strands: Sequence[LanePath]) -> tuple[Counts, Counts]:
        """How often a warp whose lanes are these strands executes each node, and its lanes together."""
        visited, by = self.visits(strands)
        warps, threads = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, np.int64)
        _counted(visited, by, len(visited), warps, threads)
        return warps, threads
