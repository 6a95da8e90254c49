"""Compiled instances of a source loop: unrolled bodies, remainder loops and peeled copies, and their executions.

Blocks hold copies of an iteration. A lane with t iterations follows a path whose blocks hold t copies; among these,
tests select the path with the fewest bodies, as they enter the largest body with enough remaining iterations. So t
determines the executions of every block. Iterations without a block are predicated instructions, fewer than any
enterable body.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from .control_flow import Graph, Loop
from .source_statements import LoopExecutions


@dataclass(frozen=True)
class LoopRegion:
    """Blocks of one compiled instance. entry: common entry; past: common continuation, if it is one block. copies:
    iterations by block; predicated: additional predicated ones, by predicate. next_outer_iteration: header of the
    enclosing loop."""

    entry: int
    past: int | None
    blocks: frozenset[int]
    copies: dict[int, int]
    next_outer_iteration: int | None
    predicated: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class RegionCounts:
    """Executions of blocks by threads and by warps. entries: of compiled loops from outside, by header. divergences: by
    latch. certain: blocks determined by the iterations alone."""

    threads: dict[int, float]
    warps: dict[int, float]
    entries: dict[int, float]
    divergences: dict[int, float]
    certain: frozenset[int]


def region(
    graph: Graph,
    copies: Mapping[int, int],
    natural: Sequence[Loop],
    scope: Loop | None,
    guards: frozenset[int],
    predicated: Mapping[int, tuple[int, ...]] | None = None,
) -> LoopRegion:
    """Return the region from the first test of a loop to the reconvergence of its lanes.

    copies: by block. natural: its compiled loops; scope: the enclosing loop. guards: blocks with a test of the loop.
    """
    scope_blocks = scope.body if scope is not None else frozenset(range(len(graph.blocks)))
    loop_blocks = frozenset().union(*(loop.body for loop in natural if loop.body <= scope_blocks))
    entry: int | None = _common_ancestor(
        [*copies, *(loop.header for loop in natural if loop.body <= scope_blocks)], graph.dominators
    )
    assert entry is not None, "the kernel's entry dominates every block"
    dominator: int | None = entry
    while dominator is not None and (scope is None or dominator != scope.header):
        dominator = graph.dominators[dominator]
        if dominator in guards and dominator in scope_blocks:
            entry = dominator
        elif dominator is None or len(graph.successors[dominator]) > 1:
            break
    past = _common_ancestor([*copies, entry], graph.postdominators)
    while past is not None and (past in copies or past in loop_blocks or past == entry):
        past = graph.postdominators[past]
    if past is not None and past not in scope_blocks:
        past = None
    outer_header = scope.header if scope is not None else None
    visited, worklist = {entry}, [entry]
    while worklist:
        for target in graph.successors[worklist.pop()]:
            if target in scope_blocks and target not in (past, outer_header) and target not in visited:
                visited.add(target)
                worklist.append(target)
    predicated_copies = {block: n for block, n in (predicated or {}).items() if block in copies}
    return LoopRegion(entry, past, frozenset(visited), dict(copies), outer_header, predicated_copies)


def _common_ancestor(blocks: Sequence[int], parents: Sequence[int | None]) -> int | None:
    """Return the nearest common ancestor of blocks in a forest, if any."""

    def ancestors(block: int | None) -> list[int]:
        result = []
        while block is not None:
            result.append(block)
            block = parents[block]
        return result[::-1]

    ancestries = [ancestors(block) for block in blocks]
    result = None
    for level in zip(*ancestries, strict=False):
        if len(set(level)) > 1:
            break
        result = level[0]
    return result


@dataclass(frozen=True)
class LoopPath:
    """Path of a lane through a region. visits: by block. entries: of loops from outside, by header. certain: blocks
    decided by the loop's own tests. before: predecessor of each convergence point visited once."""

    visits: Counter[int]
    entries: Counter[int]
    certain: frozenset[int]
    before: dict[int, int]


@dataclass(frozen=True)
class LoopState:
    """A block, the remaining iterations before it, and the last executed body, -1 for none."""

    block: int
    left: int
    body: int

    def __hash__(self) -> int:
        return hash((self.block, self.left, self.body))


class UnrollingPaths:
    """Cheapest paths through a region, by number of iterations.

    Tests select the path with the fewest predicated iterations, then with the fewest bodies. A lane that enters a loop
    executes one of its bodies before it leaves.
    """

    def __init__(self, graph: Graph, region_found: LoopRegion) -> None:
        self.graph, self.region = graph, region_found
        loops_inside = [loop for loop in graph.loops if loop.body <= region_found.blocks]
        self.loops = [loop for loop in loops_inside if loop.body & region_found.copies.keys()]
        self.period = max((sum(region_found.copies.get(b, 0) for b in loop.body) for loop in self.loops), default=0)
        # Longer paths repeat the trip with the most copies, after every copy and two trips.
        self.explicit_limit = sum(
            (*region_found.copies.values(), *(n for each in region_found.predicated.values() for n in each))
        )
        self.explicit_limit += 2 * max(self.period, *region_found.copies.values())
        self.sizes = {b: graph.blocks[b][1] - graph.blocks[b][0] for b in region_found.blocks}
        inner_loops = [loop for loop in loops_inside if not loop.body & region_found.copies.keys()]
        self.nested_blocks = frozenset[int]().union(*(loop.body for loop in inner_loops))
        repeated_edges = {(latch, loop.header) for loop in inner_loops for latch in loop.latches}
        self.successors = {block: self._successors(block, repeated_edges) for block in region_found.blocks}
        self.convergence = self._convergence_block()
        self.blocks_behind = frozenset[int]() if self.convergence is None else frozenset({self.convergence})
        self.required_bodies = {block: self._guards_of(block) for block in region_found.blocks}
        self._best: dict[LoopState, tuple[tuple[int, int, int], tuple[LoopState | None, ...]]] = {}
        self._paths: dict[int, LoopPath | None] = {}

    def _successors(self, block: int, repeated_edges: set[tuple[int, int]]) -> tuple[int | None, ...]:
        """Return successors within the region, None for outside; loops without copies are traversed once."""
        loop_region, graph = self.region, self.graph
        targets = [target for target in graph.successors[block] if (block, target) not in repeated_edges]
        targets_inside = [
            t if t in loop_region.blocks and t not in (loop_region.past, loop_region.next_outer_iteration) else None
            for t in targets
        ]
        return tuple(
            dict.fromkeys([*targets_inside, None] if block in graph.exits or not targets_inside else targets_inside)
        )

    def _convergence_block(self) -> int | None:
        """Return the convergence point after the region, if it has no other predecessors."""
        past = self.region.past
        converges = past is not None and self.graph.is_convergence_point(past)
        return past if converges and set(self.graph.predecessors[past or 0]) <= self.region.blocks else None

    def _guards_of(self, block: int) -> frozenset[int]:
        """Return guards of a block: successors of tests that dominate it and a body."""
        graph, result, current = self.graph, set[int](), block
        while current != self.region.entry:
            dominator = graph.dominators[current]
            if dominator is None:
                break
            if not self._postdominates(current, dominator) and any(
                graph.dominates(current, body) for body in self.region.copies
            ):
                result.add(current)
            current = dominator
        return frozenset(result)

    def _postdominates(self, block: int, start: int) -> bool:
        """Return whether a block postdominates another one."""
        current: int | None = start
        while current is not None and current != block:
            current = self.graph.postdominators[current]
        return current == block

    def _transitions(self, node: LoopState) -> list[tuple[int, LoopState | None]]:
        """Return remaining iterations after a block, and the next state, None for outside."""
        unconditional = self.region.copies.get(node.block, 0)
        possible = {unconditional}
        for predicated in self.region.predicated.get(node.block, ()):
            possible |= {n + predicated for n in possible}
        return [one for n in sorted(possible) if n <= node.left for one in self._continuations(node, n)]

    def _continuations(self, node: LoopState, executed: int) -> Iterator[tuple[int, LoopState | None]]:
        """The same if the block executes so many iterations."""
        left, body = node.left - executed, node.block if executed else node.body
        satisfied = self.required_bodies[body] if body >= 0 else frozenset[int]()
        open_guards = self.required_bodies[node.block] - satisfied
        for target in self.successors[node.block]:
            if target is None:
                if not open_guards:
                    yield left, None
            elif not open_guards - self.required_bodies[target] and self.region.copies.get(target, 0) <= left:
                yield left, LoopState(target, left, body)

    def _evaluate(self, start: LoopState) -> None:
        """Compute the least (missed iterations, bodies, instructions) of each reachable state, with its best successors."""
        best, stack, expanded = self._best, [start], set[LoopState]()
        while stack:
            node = stack[-1]
            if node in best:
                stack.pop()
                continue
            transitions = self._transitions(node)
            if node not in expanded:
                expanded.add(node)
                stack += [o for _, o in transitions if o is not None and o not in best and o not in expanded]
                continue
            stack.pop()
            costs: list[tuple[tuple[int, int, int], LoopState | None]] = []
            for left, onward in transitions:
                body = int(left < node.left)
                if onward is None:
                    costs.append(((left, body, 0), None))
                elif onward in best and best[onward][1]:
                    missed, bodies, size = best[onward][0]
                    costs.append(((missed, bodies + body, size), onward))
            costs.sort(key=lambda one: one[0])
            if costs:
                missed, bodies, size = costs[0][0]
                best_successors = tuple(onward for cost, onward in costs if cost[:2] == (missed, bodies))
                best[node] = (missed, bodies, size + self.sizes[node.block]), best_successors
            else:
                best[node] = (0, 0, 0), ()

    def executions(self, iterations: int) -> Counter[int] | None:
        """Return the visits of each block, or None without a path for so many iterations."""
        path = self.path_of(iterations)
        return None if path is None else path.visits

    def path_of(self, iterations: int) -> LoopPath | None:
        """Return the path of a lane with so many iterations, if any."""
        if iterations not in self._paths:
            self._paths[iterations] = self._compute_path(iterations)
        return self._paths[iterations]

    def _compute_path(self, iterations: int) -> LoopPath | None:
        if iterations <= self.explicit_limit:
            return self._explicit_path(iterations)
        if not self.period:
            return None
        repetitions = -(-(iterations - self.explicit_limit) // self.period)
        short, shorter = (self.path_of(iterations - n * self.period) for n in (repetitions, repetitions + 1))
        if short is None or shorter is None:
            return None
        visits = Counter(
            {b: short.visits[b] + repetitions * (short.visits[b] - shorter.visits[b]) for b in short.visits}
        )
        return replace(short, visits=visits)

    def _explicit_path(self, iterations: int) -> LoopPath | None:
        if iterations < 0:
            return None
        start = LoopState(self.region.entry, iterations, -1)
        if self.region.copies.get(start.block, 0) > iterations:
            return None if iterations else LoopPath(Counter(), Counter(), self.region.blocks, {})  # the test is outside
        self._evaluate(start)
        if not self._best[start][1]:
            return None
        path, state = [start.block], self._next_state(start)
        while state is not None:
            path.append(state.block)
            state = self._next_state(state)
        entries = Counter(
            loop.header
            for loop in self.loops
            for n, block in enumerate(path)
            if block == loop.header and (n == 0 or path[n - 1] not in loop.body)
        )
        if self.convergence is not None and self.convergence in self.graph.successors[path[-1]]:
            path.append(self.convergence)
        visits = Counter(path)
        missed = self._best[start][0][0]  # missed iterations are predicated, at any place
        certain = frozenset(self.region.copies) if missed else self._certain_blocks(start)
        predecessors = {
            b: path[n - 1]
            for n, b in enumerate(path)
            if n and self.graph.is_convergence_point(b) and visits[b] == 1
            if certain.issuperset(self.region.blocks & set(self.graph.predecessors[b]))
        }
        return LoopPath(visits, entries, certain, predecessors)

    def _next_state(self, node: LoopState) -> LoopState | None:
        return self._best[node][1][0]

    def _certain_blocks(self, start: LoopState) -> frozenset[int]:
        """Return blocks on all of the best paths, or on none."""
        order, visited = list[LoopState](), {start}
        stack = [(start, iter(self._best[start][1]))]
        while stack:
            node, successors = stack[-1]
            following = next((o for o in successors if o is not None and o not in visited), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(self._best[following][1])))
        behind: dict[LoopState, int] = {}
        for node in order:
            behind[node] = sum(1 if o is None else behind.get(o, 0) for o in self._best[node][1])
        ahead: Counter[LoopState] = Counter({start: 1})
        for node in reversed(order):
            for onward in self._best[node][1]:
                if onward is not None:
                    ahead[onward] += ahead[node]
        uncertain: set[int | None] = {node.block for node in order if ahead[node] * behind[node] != behind[start]}
        if sum(None in self._best[node][1] for node in order) > 1:
            uncertain.add(self.convergence)
        return frozenset((self.region.blocks | self.blocks_behind) - uncertain - self.nested_blocks)


def executions(
    paths: UnrollingPaths, executions_of_sites: Iterable[LoopExecutions], share: float
) -> RegionCounts | None:
    """Return the executions of a region by the lanes and warps of a loop, or None if some number of iterations has no path.

    share: fraction of the entries at this region.
    """
    threads: dict[int, float] = defaultdict(float)
    warps: dict[int, float] = defaultdict(float)
    entries: dict[int, float] = defaultdict(float)
    divergences: dict[int, float] = defaultdict(float)
    certain = paths.region.blocks | paths.blocks_behind
    for record in executions_of_sites:
        if not len(record.count):
            continue
        numbers = np.unique(record.iterations[record.lanes])
        lane_paths = [path for n in numbers if (path := paths.path_of(int(n))) is not None]
        if len(lane_paths) < len(numbers):
            return None
        certain = certain.intersection(*(path.certain for path in lane_paths))
        index = np.searchsorted(numbers, np.where(record.lanes, record.iterations, numbers[0]))
        scale = share * _unrecorded_scale(record)
        for block in sorted({block for path in lane_paths for block in path.visits}):
            by_lane = np.where(record.lanes, np.array([path.visits[block] for path in lane_paths])[index], 0)
            threads[block] += scale * float((record.count * by_lane.sum(axis=1)).sum())
            if paths.graph.is_convergence_point(block):
                groups = _arrival_groups(block, lane_paths)
                if groups is None:
                    certain -= {block}
                else:
                    by_lane = np.where(record.lanes, groups[index], 0)
                    warps[block] += scale * float((record.count * _count_distinct(by_lane)).sum())
            else:
                warps[block] += scale * float((record.count * by_lane.max(axis=1)).sum())
        for loop in paths.loops:
            by_lane = np.where(record.lanes, np.array([path.entries[loop.header] for path in lane_paths])[index], 0)
            entries[loop.header] += scale * float((record.count * by_lane.sum(axis=1)).sum())
            (latch, *other_latches), latch_visits = loop.latches, [path.visits[loop.latches[0]] for path in lane_paths]
            if not other_latches:
                latch_times = np.where(record.lanes, np.array(latch_visits)[index], 0)
                divergences[latch] += scale * float((record.count * _count_early_exits(latch_times)).sum())
    return RegionCounts(dict(threads), dict(warps), dict(entries), dict(divergences), certain)


def _arrival_groups(block: int, lane_paths: Sequence[LoopPath]) -> npt.NDArray[np.int64] | None:
    """Return, by path, the group of its arrival at a convergence point: equal for the same predecessor and trip, 0 for
    no arrival. None for repeated arrivals."""
    if any(path.visits[block] and block not in path.before for path in lane_paths):
        return None
    arrivals = [
        (path.before[block], path.visits[path.before[block]]) if block in path.before else None for path in lane_paths
    ]
    number = {sign: n for n, sign in enumerate(dict.fromkeys(sign for sign in arrivals if sign is not None), 1)}
    return np.array([number[sign] if sign is not None else 0 for sign in arrivals])


def _count_distinct(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, by row, the number of distinct positive values."""
    ordered = np.sort(groups, axis=1)
    ordered = np.concatenate([np.zeros((len(ordered), 1), ordered.dtype), ordered], axis=1)
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1), np.int64)


def _count_early_exits(trips: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, by row, the number of groups with equal trips that leave a loop before the last one."""
    ordered = np.sort(trips, axis=1)
    different = ((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, :-1] > 0)).sum(axis=1)
    return np.asarray(different, np.int64)


def _unrecorded_scale(record: LoopExecutions) -> float:
    """Return the scale for unrecorded executions, assumed similar to the recorded ones."""
    recorded, started = int(record.count.sum()), record.unrecorded[1]
    if not record.unrecorded[0]:
        return 1.0
    return 1 + (started / record.total_iterations if record.total_iterations else record.unrecorded[0] / recorded)
