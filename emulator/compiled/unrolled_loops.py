"""The stages into which a compiler splits a loop: an unrolled body, loops for what remains, copies without a loop.

Blocks hold so many copies of an iteration. A lane that takes t iterations goes through blocks that hold t copies
together, and of all such ways the compiler's tests choose the one with the fewest bodies: they enter the largest for
which enough iterations are left. So the executions of every block follow from t. What no block holds became predicated
instructions, fewer iterations than any body that could have been entered.
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
    """The blocks of one compiled instance of a source loop. entry: where all lanes come in, past: where they go on, if that
    is one block. copies: iterations by block; spare: predicated ones besides, by predicate. again: where the next iteration of the loop
    around it begins."""

    entry: int
    past: int | None
    blocks: frozenset[int]
    copies: dict[int, int]
    again: int | None
    spare: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class RegionCounts:
    """Executions of blocks: by threads, and by warps. entries: by the first block of a compiled loop, of threads that come
    there from outside. parted: by a compiled loop's last block, how often a warp's lanes disagreed on another turn.
    certain: blocks whose executions the turns alone decide.
    """

    threads: dict[int, float]
    warps: dict[int, float]
    entries: dict[int, float]
    parted: dict[int, float]
    certain: frozenset[int]


def region(
    graph: Graph,
    copies: Mapping[int, int],
    mine: Sequence[Loop],
    scope: Loop | None,
    guards: frozenset[int],
    spare: Mapping[int, tuple[int, ...]] | None = None,
) -> LoopRegion:
    """The blocks between the first test of a loop and where all its lanes are together again. copies: of the loop's
    blocks. mine: its compiled loops; scope: the loop around them. guards: blocks that end in a test of the loop."""
    inside = scope.body if scope is not None else frozenset(range(len(graph.blocks)))
    cyclic = frozenset().union(*(loop.body for loop in mine if loop.body <= inside))
    entry: int | None = _common([*copies, *(loop.header for loop in mine if loop.body <= inside)], graph.dominators)
    assert entry is not None, "the kernel's entry dominates every block"
    above: int | None = entry
    while above is not None and (scope is None or above != scope.header):
        above = graph.dominators[above]
        if above in guards and above in inside:
            entry = above
        elif above is None or len(graph.successors[above]) > 1:
            break
    past = _common([*copies, entry], graph.postdominators)
    while past is not None and (past in copies or past in cyclic or past == entry):
        past = graph.postdominators[past]
    if past is not None and past not in inside:
        past = None
    again = scope.header if scope is not None else None
    reached, waiting = {entry}, [entry]
    while waiting:
        for target in graph.successors[waiting.pop()]:
            if target in inside and target not in (past, again) and target not in reached:
                reached.add(target)
                waiting.append(target)
    held = {block: n for block, n in (spare or {}).items() if block in copies}
    return LoopRegion(entry, past, frozenset(reached), dict(copies), again, held)


def _common(blocks: Sequence[int], parents: Sequence[int | None]) -> int | None:
    """The nearest common ancestor of blocks in a forest, if there is one."""

    def ancestors(block: int | None) -> list[int]:
        found = []
        while block is not None:
            found.append(block)
            block = parents[block]
        return found[::-1]

    lines = [ancestors(block) for block in blocks]
    found = None
    for level in zip(*lines, strict=False):
        if len(set(level)) > 1:
            break
        found = level[0]
    return found


@dataclass(frozen=True)
class LoopPath:
    """A lane's way through a region. steps: how often it executes each block. entered: how often it comes to the first block
    of a loop from outside. certain: blocks of which no test but those of the loop decides. before: the block from which it
    comes to a meeting point that it reaches once."""

    steps: Counter[int]
    entered: Counter[int]
    certain: frozenset[int]
    before: dict[int, int]


@dataclass(frozen=True)
class LoopState:
    """Where a lane is: a block, the iterations left before it, and the last body that it executed, -1 for none."""

    block: int
    left: int
    body: int

    def __hash__(self) -> int:
        return hash((self.block, self.left, self.body))


class UnrollingPaths:
    """The cheapest ways through a region, by the number of iterations.

    Of two ways the compiler's tests choose the one that leaves fewer iterations to predicated instructions, then that with
    fewer bodies. A lane that turns to where bodies are executes one of them before it turns away: a test that lets it in
    says that iterations are left.
    """

    def __init__(self, graph: Graph, found: LoopRegion) -> None:
        self.graph, self.region = graph, found
        inside = [loop for loop in graph.loops if loop.body <= found.blocks]
        self.loops = [loop for loop in inside if loop.body & found.copies.keys()]
        self.period = max((sum(found.copies.get(b, 0) for b in loop.body) for loop in self.loops), default=0)
        # Once every copy is used and two more turns, a longer way repeats the turn with the most copies.
        self.most = sum((*found.copies.values(), *(n for each in found.spare.values() for n in each)))
        self.most += 2 * max(self.period, *found.copies.values())
        self.sizes = {b: graph.blocks[b][1] - graph.blocks[b][0] for b in found.blocks}
        others = [loop for loop in inside if not loop.body & found.copies.keys()]
        self.aside = frozenset[int]().union(*(loop.body for loop in others))
        again = {(latch, loop.header) for loop in others for latch in loop.latches}
        self.onward = {block: self._targets(block, again) for block in found.blocks}
        self.meeting = self._meeting()
        self.behind = frozenset[int]() if self.meeting is None else frozenset({self.meeting})
        self.promises = {block: self._promises(block) for block in found.blocks}
        self._best: dict[LoopState, tuple[tuple[int, int, int], tuple[LoopState | None, ...]]] = {}
        self._ways: dict[int, LoopPath | None] = {}

    def _targets(self, block: int, again: set[tuple[int, int]]) -> tuple[int | None, ...]:
        """The blocks that may follow one, None for outside; loops that hold no body are gone through once."""
        found, graph = self.region, self.graph
        targets = [target for target in graph.successors[block] if (block, target) not in again]
        inside = [t if t in found.blocks and t not in (found.past, found.again) else None for t in targets]
        return tuple(dict.fromkeys([*inside, None] if block in graph.exits or not inside else inside))

    def _meeting(self) -> int | None:
        """Where lanes go on behind the region, if they meet there and none comes from elsewhere."""
        past = self.region.past
        meets = past is not None and self.graph.is_convergence_point(past)
        return past if meets and set(self.graph.predecessors[past or 0]) <= self.region.blocks else None

    def _promises(self, block: int) -> frozenset[int]:
        """Blocks behind a test through which all ways lead to this one, and to some body."""
        graph, found, at = self.graph, set[int](), block
        while at != self.region.entry:
            above = graph.dominators[at]
            if above is None:
                break
            if not self._after(at, above) and any(graph.dominates(at, body) for body in self.region.copies):
                found.add(at)
            at = above
        return frozenset(found)

    def _after(self, block: int, before: int) -> bool:
        """Whether all ways from the one before lead through a block."""
        at: int | None = before
        while at is not None and at != block:
            at = self.graph.postdominators[at]
        return at == block

    def _onwards(self, node: LoopState) -> list[tuple[int, LoopState | None]]:
        """How many iterations are left behind a block, and where a lane may go, None for outside."""
        least = self.region.copies.get(node.block, 0)
        made = {least}
        for predicated in self.region.spare.get(node.block, ()):
            made |= {n + predicated for n in made}
        return [one for n in sorted(made) if n <= node.left for one in self._behind(node, n)]

    def _behind(self, node: LoopState, made: int) -> Iterator[tuple[int, LoopState | None]]:
        """The same where the block makes so many."""
        left, body = node.left - made, node.block if made else node.body
        kept = self.promises[body] if body >= 0 else frozenset[int]()
        open_ = self.promises[node.block] - kept
        for target in self.onward[node.block]:
            if target is None:
                if not open_:
                    yield left, None
            elif not open_ - self.promises[target] and self.region.copies.get(target, 0) <= left:
                yield left, LoopState(target, left, body)

    def _evaluate(self, start: LoopState) -> None:
        """Of all nodes behind one: the least of what is missed, of bodies and of instructions, and the ways onwards that
        reach the first two, the shortest first; none where no way leads outside."""
        best, stack, waited = self._best, [start], set[LoopState]()
        while stack:
            node = stack[-1]
            if node in best:
                stack.pop()
                continue
            onwards = self._onwards(node)
            if node not in waited:
                waited.add(node)
                stack += [o for _, o in onwards if o is not None and o not in best and o not in waited]
                continue
            stack.pop()
            costs: list[tuple[tuple[int, int, int], LoopState | None]] = []
            for left, onward in onwards:
                body = int(left < node.left)
                if onward is None:
                    costs.append(((left, body, 0), None))
                elif onward in best and best[onward][1]:
                    missed, bodies, size = best[onward][0]
                    costs.append(((missed, bodies + body, size), onward))
            costs.sort(key=lambda one: one[0])
            if costs:
                missed, bodies, size = costs[0][0]
                ways = tuple(onward for cost, onward in costs if cost[:2] == (missed, bodies))
                best[node] = (missed, bodies, size + self.sizes[node.block]), ways
            else:
                best[node] = (0, 0, 0), ()

    def executions(self, iterations: int) -> Counter[int] | None:
        """How often a lane executes each block; None where no way makes so many iterations."""
        way = self.way(iterations)
        return None if way is None else way.steps

    def way(self, iterations: int) -> LoopPath | None:
        """The way of a lane that makes so many iterations, if there is one."""
        if iterations not in self._ways:
            self._ways[iterations] = self._way(iterations)
        return self._ways[iterations]

    def _way(self, iterations: int) -> LoopPath | None:
        if iterations <= self.most:
            return self._short(iterations)
        if not self.period:
            return None
        rounds = -(-(iterations - self.most) // self.period)
        short, shorter = (self.way(iterations - n * self.period) for n in (rounds, rounds + 1))
        if short is None or shorter is None:
            return None
        steps = Counter({b: short.steps[b] + rounds * (short.steps[b] - shorter.steps[b]) for b in short.steps})
        return replace(short, steps=steps)

    def _short(self, iterations: int) -> LoopPath | None:
        if iterations < 0:
            return None
        start = LoopState(self.region.entry, iterations, -1)
        if self.region.copies.get(start.block, 0) > iterations:
            return (
                None if iterations else LoopPath(Counter(), Counter(), self.region.blocks, {})
            )  # the test stands outside
        self._evaluate(start)
        if not self._best[start][1]:
            return None
        path, at = [start.block], self._first(start)
        while at is not None:
            path.append(at.block)
            at = self._first(at)
        entered = Counter(
            loop.header
            for loop in self.loops
            for n, block in enumerate(path)
            if block == loop.header and (n == 0 or path[n - 1] not in loop.body)
        )
        if self.meeting is not None and self.meeting in self.graph.successors[path[-1]]:
            path.append(self.meeting)
        steps = Counter(path)
        missed = self._best[start][0][0]  # by predicated instructions, wherever they are
        certain = frozenset(self.region.copies) if missed else self._certain(start)
        before = {
            b: path[n - 1]
            for n, b in enumerate(path)
            if n and self.graph.is_convergence_point(b) and steps[b] == 1
            if certain.issuperset(self.region.blocks & set(self.graph.predecessors[b]))
        }
        return LoopPath(steps, entered, certain, before)

    def _first(self, node: LoopState) -> LoopState | None:
        return self._best[node][1][0]

    def _certain(self, start: LoopState) -> frozenset[int]:
        """Blocks that lie on all of the best ways, each time one comes to them, or on none."""
        order, seen = list[LoopState](), {start}
        stack = [(start, iter(self._best[start][1]))]
        while stack:
            node, onwards = stack[-1]
            following = next((o for o in onwards if o is not None and o not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(self._best[following][1])))
        behind: dict[LoopState, int] = {}
        for node in order:
            behind[node] = sum(1 if o is None else behind.get(o, 0) for o in self._best[node][1])
        ahead: Counter[LoopState] = Counter({start: 1})
        for node in reversed(order):
            for onward in self._best[node][1]:
                if onward is not None:
                    ahead[onward] += ahead[node]
        doubtful: set[int | None] = {node.block for node in order if ahead[node] * behind[node] != behind[start]}
        if sum(None in self._best[node][1] for node in order) > 1:
            doubtful.add(self.meeting)
        return frozenset((self.region.blocks | self.behind) - doubtful - self.aside)


def executions(ways: UnrollingPaths, several: Iterable[LoopExecutions], share: float) -> RegionCounts | None:
    """Executions of the blocks of a region by the lanes and warps that entered the loop. share: of the entries that
    come to this region. None where some number of iterations has no way."""
    threads: dict[int, float] = defaultdict(float)
    warps: dict[int, float] = defaultdict(float)
    entries: dict[int, float] = defaultdict(float)
    parted: dict[int, float] = defaultdict(float)
    certain = ways.region.blocks | ways.behind
    for turns in several:
        if not len(turns.count):
            continue
        numbers = np.unique(turns.iterations[turns.lanes])
        found = [way for n in numbers if (way := ways.way(int(n))) is not None]
        if len(found) < len(numbers):
            return None
        certain = certain.intersection(*(way.certain for way in found))
        at = np.searchsorted(numbers, np.where(turns.lanes, turns.iterations, numbers[0]))
        scale = share * _scale(turns)
        for block in sorted({block for way in found for block in way.steps}):
            each = np.where(turns.lanes, np.array([way.steps[block] for way in found])[at], 0)
            threads[block] += scale * float((turns.count * each.sum(axis=1)).sum())
            if ways.graph.is_convergence_point(block):
                groups = _arriving(block, found)
                if groups is None:
                    certain -= {block}
                else:
                    each = np.where(turns.lanes, groups[at], 0)
                    warps[block] += scale * float((turns.count * _different(each)).sum())
            else:
                warps[block] += scale * float((turns.count * each.max(axis=1)).sum())
        for loop in ways.loops:
            each = np.where(turns.lanes, np.array([way.entered[loop.header] for way in found])[at], 0)
            entries[loop.header] += scale * float((turns.count * each.sum(axis=1)).sum())
            (latch, *more), ends = loop.latches, [way.steps[loop.latches[0]] for way in found]
            if not more:
                times = np.where(turns.lanes, np.array(ends)[at], 0)
                parted[latch] += scale * float((turns.count * _groups(times)).sum())
    return RegionCounts(dict(threads), dict(warps), dict(entries), dict(parted), certain)


def _arriving(block: int, found: Sequence[LoopPath]) -> npt.NDArray[np.int64] | None:
    """By way, the group in which its lanes come to a meeting point, 0 for those that do not: together come those that leave
    the same block in the same turn. None where some come more than once."""
    if any(way.steps[block] and block not in way.before for way in found):
        return None
    signs = [(way.before[block], way.steps[way.before[block]]) if block in way.before else None for way in found]
    number = {sign: n for n, sign in enumerate(dict.fromkeys(sign for sign in signs if sign is not None), 1)}
    return np.array([number[sign] if sign is not None else 0 for sign in signs])


def _different(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """By row, how many different numbers above 0."""
    ordered = np.sort(groups, axis=1)
    ordered = np.concatenate([np.zeros((len(ordered), 1), ordered.dtype), ordered], axis=1)
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1), np.int64)


def _groups(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """By row, how many groups that take a loop as often leave it before the last one."""
    ordered = np.sort(times, axis=1)
    different = ((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, :-1] > 0)).sum(axis=1)
    return np.asarray(different, np.int64)


def _scale(turns: LoopExecutions) -> float:
    """Executions that are not told apart are taken to be as the others are."""
    kept, began = int(turns.count.sum()), turns.others[1]
    if not turns.others[0]:
        return 1.0
    return 1 + (began / turns.began if turns.began else turns.others[0] / kept)
