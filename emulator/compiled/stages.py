"""The stages into which a compiler splits a loop: an unrolled body, loops for what remains, copies without a loop.

Blocks hold so many copies of an iteration. A lane that takes t iterations goes through blocks that hold t copies
together, and of all such ways the compiler's tests choose the one with the fewest bodies: they enter the largest for
which enough iterations are left. So the executions of every block follow from t. What no block holds became predicated
instructions, fewer iterations than any body that could have been entered.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .control_flow import Graph, Loop
from .source import Turns


@dataclass(frozen=True)
class Region:
    """The blocks of one compiled instance of a source loop. entry: where all lanes come in, past: where they go on, if that
    is one block. copies: iterations by block. again: where the next iteration of the loop around it begins."""

    entry: int
    past: int | None
    blocks: frozenset[int]
    copies: dict[int, int]
    again: int | None


@dataclass(frozen=True)
class Stage:
    """Executions of blocks: by threads, and by warps. entries: by the first block of a compiled loop, of threads that come
    there from outside. parted: by a compiled loop's last block, how often a warp's lanes disagreed on another turn.
    """

    threads: dict[int, float]
    warps: dict[int, float]
    entries: dict[int, float]
    parted: dict[int, float]


def region(
    graph: Graph, copies: Mapping[int, int], mine: Sequence[Loop], scope: Loop | None, guards: frozenset[int]
) -> Region:
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
    return Region(entry, past, frozenset(reached), dict(copies), again)


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


class Ways:
    """The cheapest ways through a region, by the number of iterations."""

    def __init__(self, graph: Graph, found: Region) -> None:
        self.graph, self.region = graph, found
        self.period = max((n for block, n in found.copies.items() if self._cyclic(block)), default=0)
        # Once every copy is used and one more body, a longer way repeats the body with the most copies.
        self.most = sum(found.copies.values()) + max(found.copies.values())
        longest = sum(past - first for first, past in graph.blocks)
        self.missed = 4 * longest
        self.sizes = {
            b: graph.blocks[b][1] - graph.blocks[b][0] + (longest if b in found.copies else 0) for b in found.blocks
        }
        self.before: dict[int, list[int]] = defaultdict(list)
        for block in found.blocks:
            for target in graph.successors[block]:
                if target in found.blocks and target not in (found.past, found.again):
                    self.before[target].append(block)
        self.loops = [loop for loop in graph.loops if loop.body <= found.blocks and loop.body & found.copies.keys()]
        self.costs: list[dict[int, float]] = []
        self.next: list[dict[int, int | None]] = []

    def _cyclic(self, block: int) -> bool:
        return any(loop.body <= self.region.blocks for loop in self.graph.around(block))

    def _leaves(self, block: int) -> bool:
        """Whether lanes may go on outside from a block."""
        graph, found = self.graph, self.region
        return block in graph.ends or any(
            t in (found.past, found.again) or t not in found.blocks for t in graph.successors[block]
        )

    def _layer(self, left: int) -> None:
        """The cheapest ways from before each block to the end, when it is still to make `left` iterations."""
        copies, costs = self.region.copies, dict[int, float]()
        onwards: dict[int, int | None] = {}
        heap: list[tuple[float, int, int | None]] = []
        for block in self.region.blocks:
            n = copies.get(block, 0)
            if n <= left and self._leaves(block):
                heapq.heappush(heap, (self.sizes[block] + (left - n) * self.missed, block, None))
            if 0 < n <= left:
                for target in self.graph.successors[block]:
                    if target in self.costs[left - n] and target not in (self.region.past, self.region.again):
                        heapq.heappush(heap, (self.sizes[block] + self.costs[left - n][target], block, target))
        while heap:
            cost, block, onward = heapq.heappop(heap)
            if block in costs:
                continue
            costs[block], onwards[block] = cost, onward
            for source in self.before[block]:
                if source not in costs and not copies.get(source):
                    heapq.heappush(heap, (cost + self.sizes[source], source, block))
        self.costs.append(costs)
        self.next.append(onwards)

    def executions(self, iterations: int) -> Counter[int] | None:
        """How often a lane executes each block; None where no way makes so many iterations."""
        rounds = 0
        if iterations > self.most:
            if not self.period:
                return None
            rounds = -(-(iterations - self.most) // self.period)
        short = self._way(iterations - rounds * self.period)
        if short is None or not rounds:
            return short
        shorter = self._way(iterations - (rounds + 1) * self.period)
        if shorter is None:
            return None
        return Counter({b: short[b] + rounds * (short[b] - shorter[b]) for b in short})

    def entered(self, iterations: int, loop: Loop) -> int:
        """How often a lane comes to a loop from outside."""
        rounds = max(0, -(-(iterations - self.most) // self.period)) if self.period else 0
        way = self._steps(iterations - rounds * self.period) or []
        return sum(block == loop.header and (n == 0 or way[n - 1] not in loop.body) for n, block in enumerate(way))

    def _way(self, iterations: int) -> Counter[int] | None:
        steps = self._steps(iterations)
        return None if steps is None else Counter(steps)

    def _steps(self, iterations: int) -> list[int] | None:
        """The blocks in order."""
        if iterations < 0:
            return None
        while len(self.costs) <= iterations:
            self._layer(len(self.costs))
        at: int | None = self.region.entry
        if at not in self.costs[iterations]:
            return None if iterations else []  # the test stands outside
        found, left = list[int](), iterations
        while at is not None:
            found.append(at)
            following = self.next[left][at]
            left -= self.region.copies.get(at, 0) if following is not None else 0
            at = following
        return found


def executions(ways: Ways, several: Iterable[Turns], share: float) -> Stage | None:
    """Executions of the blocks of a region by the lanes and warps that entered the loop. share: of the entries that
    come to this region. None where some number of iterations has no way."""
    threads: dict[int, float] = defaultdict(float)
    warps: dict[int, float] = defaultdict(float)
    entries: dict[int, float] = defaultdict(float)
    parted: dict[int, float] = defaultdict(float)
    for turns in several:
        if not len(turns.count):
            continue
        numbers = np.unique(turns.iterations[turns.lanes])
        found = [ways.executions(int(n)) for n in numbers]
        if any(one is None for one in found):
            return None
        blocks = sorted({block for one in found if one is not None for block in one})
        table = np.array([[one[block] for block in blocks] for one in found if one is not None], np.int64)
        at = np.searchsorted(numbers, np.where(turns.lanes, turns.iterations, numbers[0]))
        scale = share * _scale(turns)
        for column, block in enumerate(blocks):
            each = np.where(turns.lanes, table[at, column], 0)
            threads[block] += scale * float((turns.count * each.sum(axis=1)).sum())
            warps[block] += scale * float((turns.count * each.max(axis=1)).sum())
        for loop in ways.loops:
            entered = np.array([ways.entered(int(n), loop) for n in numbers])
            each = np.where(turns.lanes, entered[at], 0)
            entries[loop.header] += scale * float((turns.count * each.sum(axis=1)).sum())
            (latch, *more), ends = loop.latches, [one[loop.latches[0]] for one in found if one is not None]
            if not more:
                times = np.where(turns.lanes, np.array(ends)[at], 0)
                parted[latch] += scale * float((turns.count * _groups(times)).sum())
    return Stage(dict(threads), dict(warps), dict(entries), dict(parted))


def _groups(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """By row, how many groups that take a loop as often leave it before the last one."""
    ordered = np.sort(times, axis=1)
    different = ((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, :-1] > 0)).sum(axis=1)
    return np.asarray(different, np.int64)


def _scale(turns: Turns) -> float:
    """Executions that are not told apart are taken to be as the others are."""
    kept, began = int(turns.count.sum()), turns.others[1]
    if not turns.others[0]:
        return 1.0
    return 1 + (began / turns.began if turns.began else turns.others[0] / kept)
