"""Reconvergence simulation: executions of nodes by a warp from the paths of its lanes.

Groups of lanes diverge where their paths differ and reconverge at BSYNC. A group that executes YIELD is set aside (US
patent 10,067,768): a convergence point then releases its waiting lanes once only yielded lanes are missing, and does
not await these again. The order of groups and the merging rules fit the executions of 42 warps on an H100
(tests/compiled/yields.json has 12 of them).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import fixed, native, record
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


class Paths(NamedTuple):
    """Lane paths of a warp: path s is nodes[starts[s]:starts[s + 1]]. lanes: mask of each."""

    nodes: Global[i32]
    starts: Global[i64]
    lanes: Global[u32]
    number: i64


class Tables(NamedTuple):
    """The graph. bssy_targets: convergence nodes of each node's BSSY, from `bssy_starts`; convergence_nodes: all of them.
    blocks, actions: by node. gather, collective_nodes, convergence, resume: `expanded_cfg.ConvergencePoint` by node, -1
    for none."""

    bssy_targets: Global[i32]
    bssy_starts: Global[i32]
    convergence_nodes: Global[i32]
    blocks: Global[i32]
    actions: Global[i32]
    gather: Global[i32]
    collective_nodes: Global[i32]
    collective_starts: Global[i32]
    convergence: Global[i32]
    resume: Global[i32]
    convergence_count: i64
    node_count: i64
    has_yield: bool


class Groups(NamedTuple):
    """Groups: bit sets of paths. at: position of each path. ready: groups to continue. waiting, parked, gathered: by node,
    groups at barriers, yielded groups, paths that have arrived at a collective. members, arrived: by convergence node,
    awaited and arrived paths. registers: see _TOP."""

    at: Global[i64]
    ready: Global[i64]
    waiting: Global[i64]
    parked: Global[i64]
    gathered: Global[i64]
    members: Global[i64]
    arrived: Global[i64]
    registers: Global[i64]


class Warp(NamedTuple):
    """A warp. visited, masks: its visits."""

    paths: Paths
    tables: Tables
    groups: Groups
    visited: Global[i32]
    masks: Global[u32]


_TOP, _PARKED, _VISITS = range(3)
"""Registers: number of ready groups; set of all parked paths; number of visits."""


@st.device
def _has(group: i64, path: i64) -> bool:
    return group >> path & 1 != 0


@st.device
def _exited(w: Warp, path: i64) -> bool:
    return w.groups.at[path] >= w.paths.starts[path + 1]


@st.device
def _lanes_of(w: Warp, group: i64) -> u32:
    """Return the lanes of a group."""
    lanes = u32(0)
    for path in range(w.paths.number):
        if _has(group, path):
            lanes |= w.paths.lanes[path]
    return lanes


@st.device
def _push(w: Warp, group: i64) -> None:
    """Add a ready group."""
    w.groups.ready[w.groups.registers[_TOP]] = group
    w.groups.registers[_TOP] += 1


@st.device
def _visit(w: Warp, node: i32, lanes: u32) -> None:
    """Append a visit."""
    w.visited[w.groups.registers[_VISITS]] = node
    w.masks[w.groups.registers[_VISITS]] = lanes
    w.groups.registers[_VISITS] += 1


@st.device
def _next_node(w: Warp, group: i64) -> i64:
    """Return the next node of a group's first path; -1 if all have exited."""
    node = i64(-1)
    for path in range(w.paths.number):
        if node < 0 and _has(group, path) and not _exited(w, path):
            node = i64(w.paths.nodes[w.groups.at[path]])
    return node


@st.device
def _reaches(w: Warp, path: i64, convergence: i64, setup: i64) -> bool:
    """Return whether a path reaches a convergence node before its BSSY executes again; lanes may exit or break instead."""
    n, past = w.groups.at[path] + 1, w.paths.starts[path + 1]
    while n < past and i64(w.paths.nodes[n]) != convergence and i64(w.paths.nodes[n]) != setup:
        n += 1
    return n < past and i64(w.paths.nodes[n]) == convergence


@st.device
def _run_collective(w: Warp, node: i64, group: i64, latecomers: i64) -> None:
    """Execute the collective nodes by all gathered paths and advance these to the resume node."""
    lanes, late_lanes = _lanes_of(w, group), _lanes_of(w, group & latecomers)
    for k in range(i64(w.tables.collective_starts[node]), i64(w.tables.collective_starts[node + 1])):
        if w.tables.collective_nodes[k] == w.tables.convergence[node]:
            _visit(w, w.tables.collective_nodes[k], late_lanes)
            _visit(w, w.tables.collective_nodes[k], lanes & ~late_lanes)
        else:
            _visit(w, w.tables.collective_nodes[k], lanes)
    for path in range(w.paths.number):
        if _has(group, path):
            while not _exited(w, path) and w.paths.nodes[w.groups.at[path]] != w.tables.resume[node]:
                w.groups.at[path] += 1


@st.device
def _release(w: Warp) -> None:
    """Release the lanes at convergence nodes that await only parked or exited paths; these nodes await none of the parked
    paths again."""
    for k in range(w.tables.convergence_count):
        node = i64(w.tables.convergence_nodes[k])
        if w.groups.arrived[node] != 0:
            awaited = w.groups.members[node] & ~w.groups.arrived[node] & ~w.groups.registers[_PARKED]
            for path in range(w.paths.number):
                if _exited(w, path):
                    awaited &= ~(i64(1) << path)
            if awaited == 0:
                _push(w, w.groups.arrived[node])
                w.groups.arrived[node] = i64(0)
                w.groups.members[node] = i64(0)


@st.device
def _largest_parked(w: Warp, excluded: i64) -> i64:
    """Return the node with the most parked lanes, `excluded` aside; -1 for none."""
    largest, most_lanes = i64(-1), i64(0)
    for node in range(w.tables.node_count):
        if w.groups.parked[node] != 0 and node != excluded:
            size = i64(st.popcount(_lanes_of(w, w.groups.parked[node])))
            if size > most_lanes:
                largest, most_lanes = node, size
    return largest


@st.device
def _unpark(w: Warp, node: i64) -> i64:
    """Return the group parked at a node, which is parked no longer."""
    group = w.groups.parked[node]
    w.groups.parked[node] = i64(0)
    w.groups.registers[_PARKED] &= ~group
    return group


@st.device
def _leave_barriers(w: Warp) -> None:
    """Release all groups at barriers: all active lanes wait."""
    for node in range(w.tables.node_count):
        for path in range(w.paths.number):
            if _exited(w, path):
                w.groups.waiting[node] &= ~(i64(1) << path)
        if w.groups.waiting[node] != 0:
            _push(w, w.groups.waiting[node])
            w.groups.waiting[node] = i64(0)


@st.device
def _wake(w: Warp) -> None:
    """Without ready groups, continue the largest parked one, collectives of arrived lanes (exited ones are not awaited),
    those at barriers, or those at convergence nodes."""
    if w.groups.registers[_TOP] == 0 and w.groups.registers[_PARKED] != 0:
        _push(w, _unpark(w, _largest_parked(w, i64(-1))))
    if w.groups.registers[_TOP] == 0:
        for node in range(w.tables.node_count):
            group = w.groups.gathered[node]
            if group != 0:
                _run_collective(w, node, group, group & -group)
                _push(w, group)
                w.groups.gathered[node] = i64(0)
    if w.groups.registers[_TOP] == 0:
        _leave_barriers(w)
    if w.groups.registers[_TOP] == 0:
        for k in range(w.tables.convergence_count):
            node = i64(w.tables.convergence_nodes[k])
            if w.groups.arrived[node] != 0:
                _push(w, w.groups.arrived[node])
                w.groups.arrived[node] = i64(0)


@st.device
def _remove_ready(w: Warp, index: i64) -> i64:
    """Remove a ready group and return it."""
    group = w.groups.ready[index]
    w.groups.registers[_TOP] -= 1
    w.groups.ready[index] = w.groups.ready[w.groups.registers[_TOP]]
    return group


@st.device
def _first_ready(w: Warp) -> i64:
    """Remove the ready group with the first block in the kernel and return it."""
    first = i64(0)
    for k in range(i64(1), w.groups.registers[_TOP]):
        candidate, best = _next_node(w, w.groups.ready[k]), _next_node(w, w.groups.ready[first])
        if best < 0 or (candidate >= 0 and w.tables.blocks[candidate] < w.tables.blocks[best]):
            first = k
    return _remove_ready(w, first)


@st.device
def _join_ready(w: Warp, group: i64, node: i64) -> i64:
    """Return a group with the ready groups at the same node, without exited paths."""
    k = i64(0)
    while w.tables.has_yield and k < w.groups.registers[_TOP]:
        if _next_node(w, w.groups.ready[k]) == node:
            group |= _remove_ready(w, k)
        else:
            k += 1
    for path in range(w.paths.number):
        if _exited(w, path):
            group &= ~(i64(1) << path)
    return group


@st.device
def _await_members(w: Warp, group: i64, node: i64) -> None:
    """Let the convergence nodes of a node's BSSY await the paths of a group."""
    for m in range(i64(w.tables.bssy_starts[node]), i64(w.tables.bssy_starts[node + 1])):
        target = i64(w.tables.bssy_targets[m])
        w.groups.members[target] = i64(0)
        for path in range(w.paths.number):
            if _has(group, path) and _reaches(w, path, target, node):
                w.groups.members[target] |= i64(1) << path


@st.device
def _advance(w: Warp, group: i64) -> i64:
    """Advance the paths of a group; return the paths that have not exited."""
    active = i64(0)
    for path in range(w.paths.number):
        if _has(group, path):
            w.groups.at[path] += 1
        if not _exited(w, path):
            active |= i64(1) << path
    return active


@st.device
def _gather(w: Warp, group: i64, node: i64, active: i64) -> i64:
    """Let a group wait for a collective; return all lanes once they have arrived, else no group."""
    _visit(w, w.tables.gather[node], _lanes_of(w, group))
    w.groups.gathered[node] |= group
    if w.groups.gathered[node] != active:
        return i64(0)
    _run_collective(w, node, active, group)
    w.groups.gathered[node] = i64(0)
    return active


@st.device
def _arrive(w: Warp, group: i64, node: i64) -> i64:
    """Let the awaited paths of a group wait at a convergence node; return the group that continues."""
    arriving = group & w.groups.members[node]
    group &= ~w.groups.members[node]
    if arriving != 0:
        w.groups.arrived[node] |= arriving
        before = w.groups.registers[_TOP]
        _release(w)
        if w.groups.registers[_TOP] > before and group == 0:
            w.groups.registers[_TOP] -= 1
            group = w.groups.ready[w.groups.registers[_TOP]]
    return group


@st.device
def _park(w: Warp, group: i64) -> i64:
    """Set a group aside at its next node; return the parked group that continues, if no group is ready."""
    successor, result = _next_node(w, group), i64(0)
    w.groups.parked[successor] |= group
    w.groups.registers[_PARKED] |= group
    _release(w)
    if w.groups.parked[successor] == group and w.groups.registers[_PARKED] != group:
        successor = _largest_parked(w, successor)
    if w.groups.registers[_TOP] == 0:
        result = _unpark(w, successor)
    return result


@st.device
def _end_node(w: Warp, group: i64, node: i64, active: i64) -> i64:
    """Return the group that continues after a node."""
    result, action = group, w.tables.actions[node]
    if w.tables.gather[node] >= 0 and group != active:
        result = _gather(w, group, node, active)
    elif action == WAIT_BARRIER:
        w.groups.waiting[node] |= group
        result = i64(0)
    elif action == RECONVERGE:
        result = _arrive(w, group, node)
    elif action == YIELD_LANES and _next_node(w, group) >= 0:
        result = _park(w, group)
    return result


@st.device
def _diverge(w: Warp, group: i64, node: i64) -> i64:
    """Split a group by next node; return the group that continues: jumping lanes run before falling-through lanes."""
    jumped, result = False, i64(0)
    while group != 0:
        successor, same_path = _next_node(w, group), i64(0)
        for path in range(w.paths.number):
            if _has(group, path) and (_exited(w, path) or i64(w.paths.nodes[w.groups.at[path]]) == successor):
                group &= ~(i64(1) << path)
                same_path |= i64(0) if _exited(w, path) else i64(1) << path
        if same_path != 0:
            jumps = w.tables.blocks[successor] != w.tables.blocks[node] + 1
            if result == 0 or (jumps and not jumped):
                result, same_path, jumped = same_path, result, jumps
            if same_path != 0:
                _push(w, same_path)
    return result


@native
def _simulate_reconvergence(w: Warp) -> i64:
    """Simulate a warp; return the number of visits."""
    for path in range(w.paths.number):
        w.groups.at[path] = w.paths.starts[path]
    for node in range(w.tables.node_count):
        w.groups.waiting[node] = i64(0)
        w.groups.parked[node] = i64(0)
        w.groups.gathered[node] = i64(0)
        w.groups.members[node] = i64(0)
        w.groups.arrived[node] = i64(0)
    w.groups.registers[_TOP], w.groups.registers[_PARKED], w.groups.registers[_VISITS] = i64(0), i64(0), i64(0)
    _push(w, (i64(1) << w.paths.number) - 1)
    while w.groups.registers[_TOP] != 0:
        group = _first_ready(w)
        node = _next_node(w, group)
        while node >= 0:
            group = _join_ready(w, group, node)
            _visit(w, i32(node), _lanes_of(w, group))
            _await_members(w, group, node)
            active = _advance(w, group)
            group = _diverge(w, _end_node(w, group, node, active), node)
            if group == 0:
                _release(w)
            node = _next_node(w, group)
        _wake(w)
    return w.groups.registers[_VISITS]


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


def _nodes_or_none(nodes: Iterable[int | None]) -> npt.NDArray[np.int32]:
    return np.array([-1 if node is None else node for node in nodes], np.int32)


class WarpReconvergence:
    """Reconvergence simulator of a kernel's expanded graph."""

    def __init__(self, nodes: ExpandedCfg) -> None:
        self.nodes = len(nodes.blocks)
        bssy_targets = [nodes.convergence_nodes.get(node, []) for node in range(self.nodes)]
        convergence_nodes = sorted({node for each in bssy_targets for node in each})
        convergence_points = [nodes.convergence_points.get(node) for node in range(self.nodes)]
        collective = [() if one is None else one.collective for one in convergence_points]
        self._max_expansion = 1 + max((2 + len(each) for each in collective if each), default=0)
        actions = [_block_action(nodes.graph, block) for block in nodes.blocks]
        tables: Any = fixed(
            np.array([node for each in bssy_targets for node in each], np.int32),
            np.cumsum([0, *map(len, bssy_targets)]).astype(np.int32),
            np.array(convergence_nodes, np.int32),
            np.array(nodes.blocks, np.int32),
            np.array(actions, np.int32),
            np.array([-1 if one is None else one.gather for one in convergence_points], np.int32),
            np.array([node for each in collective for node in each], np.int32),
            np.cumsum([0, *map(len, collective)]).astype(np.int32),
            _nodes_or_none(one.convergence if one else None for one in convergence_points),
            _nodes_or_none(one.resume if one else None for one in convergence_points),
        )
        self._tables = record(Tables, *tables, len(convergence_nodes), self.nodes, YIELD_LANES in actions)
        work_arrays = (np.zeros(self.nodes, np.int64) for _ in range(5))
        groups: Any = fixed(np.zeros(32, np.int64), np.zeros(64, np.int64), *work_arrays, np.zeros(3, np.int64))
        self._groups = Groups(*groups)

    def visits(self, lane_paths: Sequence[LanePath]) -> Visits:
        """Return the visits of a warp with these lane paths."""
        nodes = np.concatenate([one.path for one in lane_paths])
        masks = np.array([one.mask for one in lane_paths], np.uint32)
        if len(lane_paths) == 1:
            return nodes, np.repeat(masks, len(nodes))
        starts = np.cumsum([0, *(len(one.path) for one in lane_paths)])
        capacity = len(nodes) * self._max_expansion
        visited, visit_masks = np.empty(capacity, np.int32), np.empty(capacity, np.uint32)
        paths: Any = nodes, starts, masks, len(lane_paths)
        buffers: Any = visited, visit_masks
        count = _simulate_reconvergence(Warp(Paths(*paths), self._tables, self._groups, *buffers))
        return visited[:count], visit_masks[:count]

    def executions(self, paths: Sequence[LanePath]) -> tuple[Counts, Counts]:
        """Return the executions of each node by the warp and by its threads."""
        visited, masks = self.visits(paths)
        warps, threads = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, np.int64)
        _count_visits(visited, masks, len(visited), warps, threads)
        return warps, threads
