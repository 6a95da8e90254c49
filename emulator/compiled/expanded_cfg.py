"""The blocks of a compiled kernel as its lanes go through them: a callee's blocks once for each call that leads there, and those of a
loop that makes few turns once for each turn.

Which way a lane takes through a callee nothing of the source tells: it takes the one with the fewest instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product

import numpy as np
import numpy.typing as npt

from .control_flow import MEET, Graph, collective, conditional
from .loop_counters import remainders

_DEEP = 3
"""Calls in calls that are told apart. nvcc makes one of a slow path of a division, which calls nothing."""


@dataclass(frozen=True)
class ConvergencePoint:
    """Where lanes that are not together go which shall be: they gather, do what asks for it together, and go back. alone: the node that
    each group of them executes. together: those that all execute then, and their meeting point, if any, once more. back: the node that
    they come back to; None where they leave the kernel."""

    alone: int
    together: tuple[int, ...]
    meeting: int | None
    back: int | None


class ExpandedCfg:
    """blocks: of each node, the first of which is the kernel's entry. calls: the blocks behind the calls that lead there,
    outermost first. turns: of the loop around it that makes few. onward: nodes that may follow. ends: whether a lane may leave the kernel
    there. meetings: by node, the meeting points that its BSSY makes. apart: by node that asks
    whether lanes are together, where others go. rare: ways from block to block that no lane goes through a callee."""

    def __init__(self, graph: Graph, rare: Collection[tuple[int, int]] = ()) -> None:
        self.graph = graph
        self.blocks: list[int] = []
        self.calls: list[tuple[int, ...]] = []
        self.turns: list[int] = []
        self.onward: list[list[int]] = []
        self.ends: list[bool] = []
        self._number: dict[tuple[int, tuple[int, ...], int], int] = {}
        self._few = {block: (loop, most) for loop, most in remainders(graph) for block in loop.body}
        self._waiting: list[int] = []
        self._jumps: dict[int, list[int]] = defaultdict(list)
        self._called: dict[int, int] = {}
        for edge in graph.edges:
            if edge.kind == "call":
                self._called[edge.source] = edge.target
            elif edge.kind != "apart":
                self._jumps[edge.source].append(edge.target)
        self._return = _ways_to_return(graph, rare)
        self._node(0, (), 0)
        while self._waiting:
            self._follow(self._waiting.pop())
        self.meetings = self._meetings()
        self.apart = dict(self._apart())

    def _node(self, block: int, calls: tuple[int, ...], turn: int) -> int:
        """The number of a node; a new one waits to be followed."""
        key = block, calls, turn
        if key not in self._number:
            self._number[key] = len(self.blocks)
            self._waiting.append(len(self.blocks))
            self.blocks.append(block)
            self.calls.append(calls)
            self.turns.append(turn)
            self.onward.append([])
            self.ends.append(False)
        return self._number[key]

    def _follow(self, node: int) -> None:
        """Find what may follow a node."""
        block, calls = self.blocks[node], self.calls[node]
        last = self.graph.last(block)
        past, jumps = (block + 1, calls), [(target, calls) for target in self._jumps[block]]
        if block in self._called:
            called = len(calls) < _DEEP
            jumps = [(self._called[block], (*calls, block + 1))] if called else [past]
            if called and conditional(last):
                jumps.append(past)
        elif last.opcode == "RET":
            jumps = [*([(calls[-1], calls[:-1])] if calls else []), *(jumps if conditional(last) else [])]
        elif calls and block in self._return:
            jumps = [(self._return[block], calls)]
        self.ends[node] = block in self.graph.ends and not (last.opcode == "RET" and calls)
        before = self.turns[node]
        turns = [before if calls or behind else self._turn(block, target, before) for target, behind in jumps]
        self.onward[node] = [
            self._node(target, behind, turn)
            for (target, behind), turn in zip(jumps, turns, strict=True)
            if turn < self._few.get(target, (None, turn + 1))[1]
        ]

    def _turn(self, block: int, target: int, turn: int) -> int:
        """Which turn of its loop a block begins in, or goes on, that follows another one in the same function."""
        loop, _ = self._few.get(target, (None, 0))
        if loop is None or block not in loop.body:
            return 0
        return turn + (target == loop.header)

    def _apart(self) -> Iterator[tuple[int, ConvergencePoint]]:
        known = len(self.blocks)
        by_block = [(edge.source, edge.target) for edge in self.graph.edges if edge.kind == "apart"]
        for node, (source, target) in product(range(known), by_block):
            if self.blocks[node] != source or not self.graph.whole_warp(source):
                continue
            calls, turn, chain, at = self.calls[node], self.turns[node], list[int](), [target]
            while len(at) == 1 and (at[0], calls, turn) not in self._number and len(chain) < len(self.graph.blocks):
                chain += at
                at = list(self.graph.successors[at[0]])
            leads_back = not at or (len(at) == 1 and (at[0], calls, turn) in self._number)
            if not chain or not leads_back or not collective(self.graph.last(chain[0])):
                continue
            first, *others = (len(self.blocks) + n for n in range(len(chain)))
            self.blocks += chain
            self.calls += [calls] * len(chain)
            self.turns += [turn] * len(chain)
            self.onward += [[] for _ in chain]
            self.ends += [False] * len(chain)
            meets = len(chain) > 2 and self.graph.last(chain[2]).opcode == MEET
            back = self._number[at[0], calls, turn] if at else None
            yield node, ConvergencePoint(first, tuple(others), others[1] if meets else None, back)

    def _meetings(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for node, block in enumerate(self.blocks):
            made = self.graph.made.get(block)
            if made is not None:
                turn = self.turns[node] if self._few.get(made) == self._few.get(block) else 0
                maker = self._number.get((made, self.calls[node], turn))
                if maker is not None:
                    found[maker].append(node)
        return found

    def jumps(self, closed: Collection[tuple[int, int]] = ()) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """`onward` as one array, and where each node's part of it begins; without ways from a block to another that are closed."""
        onward = [
            [to for to in each if (self.blocks[node], self.blocks[to]) not in closed]
            for node, each in enumerate(self.onward)
        ]
        starts = np.cumsum([0, *map(len, onward)])
        return np.array([n for each in onward for n in each] or [0], np.int32), starts.astype(np.int32)


def _ways_to_return(graph: Graph, rare: Collection[tuple[int, int]]) -> dict[int, int]:
    """By block of a callee, the block that follows on the way with the fewest instructions to where it returns, but for
    ways that are rare."""
    found, after = dict[int, int](), dict[int, int]()
    waiting = [(0, block) for block in range(len(graph.blocks)) if graph.last(block).opcode == "RET"]
    while waiting:
        length, block = heappop(waiting)
        if block in found:
            continue
        found[block] = length
        for before in graph.predecessors[block]:
            if before not in found and (before, block) not in rare:
                heappush(waiting, (length + _size(graph, block), before))
    for block in found:
        targets = [target for target in graph.successors[block] if target in found and (block, target) not in rare]
        if targets and graph.last(block).opcode != "RET":
            after[block] = min(targets, key=lambda target: (found[target] + _size(graph, target), target))
    return after


def _size(graph: Graph, block: int) -> int:
    first, past = graph.blocks[block]
    return past - first
