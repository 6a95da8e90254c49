"""Reconvergence simulation: executions of nodes by a warp from the paths of its lanes.

Groups of lanes diverge where their paths differ and reconverge at BSYNC. A group that executes YIELD is set aside (US
patent 10,067,768): a convergence point then releases its waiting lanes once only yielded lanes are missing, and does
not await these again. The order of groups and the merging rules fit the executions of 42 warps on an H100
(tests/compiled/yields.json has 12 of them).
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
"""Nodes executed by a warp, in order, and the mask of lanes of each execution."""
CONTINUE, WAIT_BARRIER, RECONVERGE, YIELD_LANES = range(4)
"""Action at the end of a node."""


@dataclass(frozen=True)
class LanePath:
    """Lanes with a common path. mask: a bit per lane. path: nodes in order."""

    mask: int
    path: npt.NDArray[np.int32]


@st.device
def _reaches(paths: Global[i32], after: i64, past: i64, convergence: i64, setup: i64) -> bool:
    """Return whether a path reaches a convergence node before its BSSY executes again; lanes may exit or break instead."""
    n = after + 1
    while n < past and i64(paths[n]) != convergence and i64(paths[n]) != setup:
        n += 1
    return n < past and i64(paths[n]) == convergence


@st.device
def _run_collective(
    group: i64, latecomers: i64, at_node: i64, paths: Global[i32], starts: Global[i64], lanes: Global[u32], path_count: i64,
    at: Global[i64],
    collective_nodes: Global[i32], collective_starts: Global[i32], convergence: Global[i32], resume: Global[i32],
    visited: Global[i32], masks: Global[u32],
    count: i64,
) -> i64:  # fmt: skip
    """Execute the collective nodes by all gathered paths and advance these to the resume node. Return the visit count."""
    n, all_lanes, late_lanes = count, u32(0), u32(0)
    for s in range(path_count):
        if (group >> s & 1) != 0:
            all_lanes |= lanes[s]
            late_lanes |= lanes[s] if (latecomers >> s & 1) != 0 else u32(0)
    for k in range(i64(collective_starts[at_node]), i64(collective_starts[at_node + 1])):
        visited[n] = collective_nodes[k]
        masks[n] = all_lanes
        if collective_nodes[k] == convergence[at_node]:
            masks[n] = late_lanes
            n += 1
            visited[n] = collective_nodes[k]
            masks[n] = all_lanes & ~late_lanes
        n += 1
    for s in range(path_count):
        if (group >> s & 1) != 0:
            while at[s] < starts[s + 1] and paths[at[s]] != resume[at_node]:
                at[s] += 1
    return n


@st.device
def _release(
    ready: Global[i64], top: i64, parked_paths: i64, convergence_nodes: Global[i32], count: i64, members: Global[i64],
    arrived: Global[i64], at: Global[i64],
    starts: Global[i64], path_count: i64,
) -> i64:  # fmt: skip
    """Release the lanes at convergence nodes that await only parked or exited paths. Return the number of ready groups.
    Released convergence nodes await none of the parked paths again."""
    past = top
    for k in range(count):
        node = i64(convergence_nodes[k])
        if arrived[node] != 0:
            awaited = members[node] & ~arrived[node] & ~parked_paths
            for s in range(path_count):
                if at[s] >= starts[s + 1]:
                    awaited &= ~(i64(1) << s)
            if awaited == 0:
                ready[past] = arrived[node]
                past += 1
                arrived[node] = i64(0)
                members[node] = i64(0)
    return past


@st.device
def _next_node(group: i64, paths: Global[i32], starts: Global[i64], at: Global[i64], path_count: i64) -> i64:
    """Return the next node of a group's first path; -1 if all have exited."""
    node = i64(-1)
    for s in range(path_count):
        if node < 0 and (group >> s & 1) != 0 and at[s] < starts[s + 1]:
            node = i64(paths[at[s]])
    return node


@st.device
def _largest_parked(parked: Global[i64], nodes: i64, excluded: i64, lanes: Global[u32], path_count: i64) -> i64:
    """Return the node with the most parked lanes, `excluded` aside; -1 for none."""
    largest, most_lanes = i64(-1), i64(0)
    for node in range(nodes):
        if parked[node] != 0 and node != excluded:
            size = i64(0)
            for s in range(path_count):
                if (parked[node] >> s & 1) != 0:
                    size += i64(st.popcount(lanes[s]))
            if size > most_lanes:
                largest, most_lanes = node, size
    return largest


@native
def _simulate_reconvergence(
    paths: Global[i32], starts: Global[i64], lanes: Global[u32], path_count: i64, bssy_targets: Global[i32], bssy_starts: Global[i32],
    convergence_nodes: Global[i32], count: i64, blocks: Global[i32], actions: Global[i32], gather: Global[i32],
    collective_nodes: Global[i32],
    collective_starts: Global[i32], collective_convergence: Global[i32], resume: Global[i32], has_yield: i64, nodes: i64,
    at: Global[i64], ready: Global[i64],
    waiting: Global[i64], parked: Global[i64], gathered: Global[i64], members: Global[i64], arrived: Global[i64],
    visited: Global[i32], masks: Global[u32],
) -> i64:  # fmt: skip
    """Simulate a warp; return the number of visits, written to `visited` and `visit_masks`.

    Groups are bit sets of paths. starts: path s is paths[starts[s]:starts[s + 1]]. bssy_targets: convergence nodes of
    each node's BSSY, from `bssy_starts`; convergence_nodes: all of them. actions: by node. gather, collective_nodes,
    collective_convergence, resume: `expanded_cfg.ConvergencePoint` by node, -1 for none; gathered: arrived paths by
    node. ready: groups to continue. waiting, parked: by node, groups at barriers and yielded groups. members, arrived:
    by convergence node, awaited and arrived paths.
    """
    for s in range(path_count):
        at[s] = starts[s]
    for node in range(nodes):
        waiting[node] = i64(0)
        parked[node] = i64(0)
        gathered[node] = i64(0)
        members[node] = i64(0)
        arrived[node] = i64(0)
    n, top, parked_paths = i64(0), i64(1), i64(0)
    ready[0] = (i64(1) << path_count) - 1
    while True:
        if top == 0 and parked_paths != 0:
            successor = _largest_parked(parked, nodes, i64(-1), lanes, path_count)
            ready[0] = parked[successor]
            parked[successor] = i64(0)
            parked_paths &= ~ready[0]
            top = i64(1)
        if top == 0:  # exited lanes are not awaited
            for node in range(nodes):
                if gathered[node] != 0:
                    n = _run_collective(
                        gathered[node], gathered[node] & -gathered[node], node, paths, starts, lanes, path_count, at,
                        collective_nodes, collective_starts, collective_convergence, resume, visited, masks, n,
                    )  # fmt: skip
                    ready[top] = gathered[node]
                    top += 1
                    gathered[node] = i64(0)
        if top == 0:  # all active lanes wait at barriers
            for node in range(nodes):
                for s in range(path_count):
                    if (waiting[node] >> s & 1) != 0 and at[s] >= starts[s + 1]:
                        waiting[node] &= ~(i64(1) << s)
                if waiting[node] != 0:
                    ready[top] = waiting[node]
                    top += 1
                    waiting[node] = i64(0)
        if top == 0:
            for k in range(count):
                if arrived[i64(convergence_nodes[k])] != 0:
                    ready[top] = arrived[i64(convergence_nodes[k])]
                    top += 1
                    arrived[i64(convergence_nodes[k])] = i64(0)
        if top == 0:
            return n
        first = i64(0)
        for k in range(i64(1), top):
            candidate, best = (
                _next_node(ready[k], paths, starts, at, path_count),
                _next_node(ready[first], paths, starts, at, path_count),
            )
            if best < 0 or (candidate >= 0 and blocks[candidate] < blocks[best]):
                first = k
        group = ready[first]
        top -= 1
        ready[first] = ready[top]
        node = _next_node(group, paths, starts, at, path_count)
        while node >= 0:
            k = i64(0)
            while has_yield != 0 and k < top:  # a group joins ready groups at the same node
                if _next_node(ready[k], paths, starts, at, path_count) == node:
                    group |= ready[k]
                    top -= 1
                    ready[k] = ready[top]
                else:
                    k += 1
            all_lanes = u32(0)
            for s in range(path_count):
                if (group >> s & 1) != 0:
                    if at[s] < starts[s + 1]:
                        all_lanes |= lanes[s]
                    else:
                        group &= ~(i64(1) << s)
            visited[n] = i32(node)
            masks[n] = all_lanes
            n += 1
            for m in range(i64(bssy_starts[node]), i64(bssy_starts[node + 1])):
                members[i64(bssy_targets[m])] = i64(0)
                for s in range(path_count):
                    if (group >> s & 1) != 0 and _reaches(paths, at[s], starts[s + 1], i64(bssy_targets[m]), node):
                        members[i64(bssy_targets[m])] |= i64(1) << s
            active = i64(0)
            for s in range(path_count):
                if (group >> s & 1) != 0:
                    at[s] += 1
                if at[s] < starts[s + 1]:
                    active |= i64(1) << s
            if gather[node] >= 0 and group != active:
                visited[n] = gather[node]
                masks[n] = all_lanes
                n += 1
                gathered[node] |= group
                if gathered[node] != active:
                    group = i64(0)
                else:
                    n = _run_collective(
                        active, group, node, paths, starts, lanes, path_count, at, collective_nodes, collective_starts,
                        collective_convergence, resume, visited, masks, n
                    )  # fmt: skip
                    gathered[node] = i64(0)
                    group = active
            elif actions[node] == WAIT_BARRIER:
                waiting[node] |= group
                group = i64(0)
            elif actions[node] == RECONVERGE:
                arriving = group & members[node]
                group &= ~members[node]
                if arriving != 0:
                    arrived[node] |= arriving
                    before = top
                    top = _release(
                        ready, top, parked_paths, convergence_nodes, count, members, arrived, at, starts, path_count
                    )
                    if top > before and group == 0:
                        top -= 1
                        group = ready[top]
            elif actions[node] == YIELD_LANES and _next_node(group, paths, starts, at, path_count) >= 0:
                successor = _next_node(group, paths, starts, at, path_count)
                parked[successor] |= group
                parked_paths |= group
                top = _release(
                    ready, top, parked_paths, convergence_nodes, count, members, arrived, at, starts, path_count
                )
                if parked[successor] == group and parked_paths != group:
                    successor = _largest_parked(parked, nodes, successor, lanes, path_count)
                group = i64(0)
                if top == 0:
                    group = parked[successor]
                    parked[successor] = i64(0)
                    parked_paths &= ~group
            remaining, jumped, group = group, i64(0), i64(0)
            while remaining != 0:  # jumping lanes run before falling-through lanes
                successor, same_path = _next_node(remaining, paths, starts, at, path_count), i64(0)
                for s in range(path_count):
                    if (remaining >> s & 1) != 0 and (at[s] >= starts[s + 1] or i64(paths[at[s]]) == successor):
                        remaining &= ~(i64(1) << s)
                        same_path |= i64(1) << s if at[s] < starts[s + 1] else i64(0)
                if same_path != 0 and (group == 0 or (jumped == 0 and blocks[successor] != blocks[node] + 1)):
                    jumped = i64(blocks[successor] != blocks[node] + 1)
                    group, same_path = same_path, group
                if same_path != 0:
                    ready[top] = same_path
                    top += 1
            if group == 0:
                top = _release(
                    ready, top, parked_paths, convergence_nodes, count, members, arrived, at, starts, path_count
                )
            node = _next_node(group, paths, starts, at, path_count)


@native
def _count_visits(
    visited: Global[i32], masks: Global[u32], count: i64, warps: Global[i64], threads: Global[i64]
) -> None:
    """Add the visits to the executions of each node by warps and threads."""
    for n in range(count):
        lanes = i64(masks[n])
        warps[i64(visited[n])] += 1
        while lanes != 0:
            threads[i64(visited[n])] += 1
            lanes &= lanes - 1


def _block_action(graph: Graph, block: int) -> int:
    """Return the action at the end of a block."""
    if graph.is_barrier(block):
        return WAIT_BARRIER
    return RECONVERGE if graph.is_convergence_point(block) else YIELD_LANES if graph.ends_in_yield(block) else CONTINUE


class WarpReconvergence:
    """Reconvergence simulator of a kernel's expanded graph."""

    def __init__(self, nodes: ExpandedCfg) -> None:
        self.nodes = len(nodes.blocks)
        bssy_targets = [nodes.convergence_nodes.get(node, []) for node in range(self.nodes)]
        convergence_nodes = sorted({node for each in bssy_targets for node in each})
        convergence_points = [nodes.convergence_points.get(node) for node in range(self.nodes)]
        collective = [() if one is None else one.collective for one in convergence_points]
        self._max_expansion = 1 + max((2 + len(each) for each in collective if each), default=0)
        self._convergence_tables = fixed(
            np.array([node for each in bssy_targets for node in each], np.int32), np.cumsum([0, *map(len, bssy_targets)]).astype(np.int32),
            np.array(convergence_nodes, np.int32),
        )  # fmt: skip
        self._convergence_count = len(convergence_nodes)
        actions = [_block_action(nodes.graph, block) for block in nodes.blocks]
        self._has_yield = int(YIELD_LANES in actions)
        self._node_tables = fixed(
            np.array(nodes.blocks, np.int32),
            np.array(actions, np.int32),
            np.array([-1 if one is None else one.gather for one in convergence_points], np.int32),
            np.array([node for each in collective for node in each], np.int32),
            np.cumsum([0, *map(len, collective)]).astype(np.int32),
            np.array(
                [-1 if one is None or one.convergence is None else one.convergence for one in convergence_points],
                np.int32,
            ),
            np.array([-1 if one is None or one.resume is None else one.resume for one in convergence_points], np.int32),
        )
        work_arrays = (np.zeros(self.nodes, np.int64) for _ in range(5))
        self._buffers = fixed(np.zeros(32, np.int64), np.zeros(64, np.int64), *work_arrays)

    def visits(self, lane_paths: Sequence[LanePath]) -> Visits:
        """Return the visits of a warp with these lane paths."""
        nodes = np.concatenate([one.path for one in lane_paths])
        masks = np.array([one.mask for one in lane_paths], np.uint32)
        if len(lane_paths) == 1:
            return nodes, np.repeat(masks, len(nodes))
        starts = np.cumsum([0, *(len(one.path) for one in lane_paths)])
        capacity = len(nodes) * self._max_expansion
        visited, visit_masks = np.empty(capacity, np.int32), np.empty(capacity, np.uint32)
        tables = *self._convergence_tables, self._convergence_count, *self._node_tables, self._has_yield, self.nodes
        count = _simulate_reconvergence(
            nodes, starts, masks, len(lane_paths), *tables, *self._buffers, visited, visit_masks
        )
        return visited[:count], visit_masks[:count]

    def executions(self, paths: Sequence[LanePath]) -> tuple[Counts, Counts]:
        """Return the executions of each node by the warp and by its threads."""
        visited, masks = self.visits(paths)
        warps, threads = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, np.int64)
        _count_visits(visited, masks, len(visited), warps, threads)
        return warps, threads
