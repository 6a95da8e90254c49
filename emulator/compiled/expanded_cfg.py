"""Control flow graph with callees cloned per call stack and short remainder loops unrolled.

The source does not determine the path through a callee: lanes follow the path with the fewest instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product

import numpy as np
import numpy.typing as npt

from .control_flow import RECONVERGE_OPCODE, Graph, is_collective, is_conditional
from .loop_counters import bounded_loops

_MAX_CALL_DEPTH = 3
"""Depth of the call stacks. nvcc calls the slow path of a division; the slow path calls nothing."""


@dataclass(frozen=True)
class ConvergencePoint:
    """A detour that gathers diverged lanes for a collective instruction.

    gather: the node executed by each group on arrival. collective: nodes executed by all lanes afterwards; convergence:
    the BSYNC among them, executed once more by the last group. resume: the node where lanes continue; None where they
    leave.
    """

    gather: int
    collective: tuple[int, ...]
    convergence: int | None
    resume: int | None


class ExpandedCfg:
    """Nodes of the expanded graph; node 0 is the kernel's entry.

    blocks: block of each node. call_stacks: return blocks, outermost first. iterations: iteration of the bounded loop
    around. successors: nodes that may follow. may_exit: whether lanes may leave the kernel. convergence_nodes: by node
    with a BSSY, its convergence nodes. convergence_points: by node with a convergence test, its detour. rare: edges of
    callees for special operands, removed.
    """

    def __init__(self, graph: Graph, rare: Collection[tuple[int, int]] = ()) -> None:
        self.graph = graph
        self.blocks: list[int] = []
        self.call_stacks: list[tuple[int, ...]] = []
        self.iterations: list[int] = []
        self.successors: list[list[int]] = []
        self.may_exit: list[bool] = []
        self._number: dict[tuple[int, tuple[int, ...], int], int] = {}
        self._bounded = {block: (loop, maximum) for loop, maximum in bounded_loops(graph) for block in loop.body}
        self._worklist: list[int] = []
        self._branch_targets: dict[int, list[int]] = defaultdict(list)
        self._callee: dict[int, int] = {}
        for edge in graph.edges:
            if edge.kind == "call":
                self._callee[edge.source] = edge.target
            elif edge.kind != "divergent":
                self._branch_targets[edge.source].append(edge.target)
        self._return_step = _return_paths(graph, rare)
        self._node(0, (), 0)
        while self._worklist:
            self._expand(self._worklist.pop())
        self.convergence_nodes = self._find_convergence_nodes()
        self.convergence_points = dict(self._find_convergence_points())

    def _node(self, block: int, calls: tuple[int, ...], iteration: int) -> int:
        """Return the number of a node; a new node is appended to the worklist."""
        key = block, calls, iteration
        if key not in self._number:
            self._number[key] = len(self.blocks)
            self._worklist.append(len(self.blocks))
            self.blocks.append(block)
            self.call_stacks.append(calls)
            self.iterations.append(iteration)
            self.successors.append([])
            self.may_exit.append(False)
        return self._number[key]

    def _expand(self, node: int) -> None:
        """Compute the successors of a node."""
        block, calls = self.blocks[node], self.call_stacks[node]
        last = self.graph.last(block)
        fall_through, targets = (block + 1, calls), [(target, calls) for target in self._branch_targets[block]]
        if block in self._callee:
            may_call = len(calls) < _MAX_CALL_DEPTH
            targets = [(self._callee[block], (*calls, block + 1))] if may_call else [fall_through]
            if may_call and is_conditional(last):
                targets.append(fall_through)
        elif last.opcode == "RET":
            targets = [*([(calls[-1], calls[:-1])] if calls else []), *(targets if is_conditional(last) else [])]
        elif calls and block in self._return_step:
            targets = [(self._return_step[block], calls)]
        self.may_exit[node] = block in self.graph.exits and not (last.opcode == "RET" and calls)
        iteration = self.iterations[node]
        iterations = [
            iteration if calls or call_stack else self._iteration_after(block, target, iteration)
            for target, call_stack in targets
        ]
        self.successors[node] = [
            self._node(target, call_stack, next_iteration)
            for (target, call_stack), next_iteration in zip(targets, iterations, strict=True)
            if next_iteration < self._bounded.get(target, (None, next_iteration + 1))[1]
        ]

    def _iteration_after(self, block: int, target: int, iteration: int) -> int:
        """Return the iteration of a successor in its bounded loop."""
        loop, _ = self._bounded.get(target, (None, 0))
        if loop is None or block not in loop.body:
            return 0
        return iteration + (target == loop.header)

    def _find_convergence_points(self) -> Iterator[tuple[int, ConvergencePoint]]:
        node_count = len(self.blocks)
        divergent_edges = [(edge.source, edge.target) for edge in self.graph.edges if edge.kind == "divergent"]
        for node, (source, target) in product(range(node_count), divergent_edges):
            if self.blocks[node] != source or not self.graph.tests_full_warp(source):
                continue
            calls, iteration, collective_blocks, following = (
                self.call_stacks[node],
                self.iterations[node],
                list[int](),
                [target],
            )
            while (
                len(following) == 1
                and (following[0], calls, iteration) not in self._number
                and len(collective_blocks) < len(self.graph.blocks)
            ):
                collective_blocks += following
                following = list(self.graph.successors[following[0]])
            leads_back = not following or (len(following) == 1 and (following[0], calls, iteration) in self._number)
            if not collective_blocks or not leads_back or not is_collective(self.graph.last(collective_blocks[0])):
                continue
            first, *rest = (len(self.blocks) + n for n in range(len(collective_blocks)))
            self.blocks += collective_blocks
            self.call_stacks += [calls] * len(collective_blocks)
            self.iterations += [iteration] * len(collective_blocks)
            self.successors += [[] for _ in collective_blocks]
            self.may_exit += [False] * len(collective_blocks)
            has_bsync = len(collective_blocks) > 2 and self.graph.last(collective_blocks[2]).opcode == RECONVERGE_OPCODE
            resume = self._number[following[0], calls, iteration] if following else None
            yield node, ConvergencePoint(first, tuple(rest), rest[1] if has_bsync else None, resume)

    def _find_convergence_nodes(self) -> dict[int, list[int]]:
        result: dict[int, list[int]] = defaultdict(list)
        for node, block in enumerate(self.blocks):
            bssy_block = self.graph.bssy_block.get(block)
            if bssy_block is not None:
                iteration = self.iterations[node] if self._bounded.get(bssy_block) == self._bounded.get(block) else 0
                setup = self._number.get((bssy_block, self.call_stacks[node], iteration))
                if setup is not None:
                    result[setup].append(node)
        return result

    def adjacency(
        self, removed: Collection[tuple[int, int]] = ()
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the successors in compressed rows (targets, starts), without some edges between blocks."""
        onward = [
            [to for to in targets if (self.blocks[node], self.blocks[to]) not in removed]
            for node, targets in enumerate(self.successors)
        ]
        starts = np.cumsum([0, *map(len, onward)])
        return np.array([n for targets in onward for n in targets] or [0], np.int32), starts.astype(np.int32)


def _return_paths(graph: Graph, special: Collection[tuple[int, int]]) -> dict[int, int]:
    """Return, by block of a callee, the next block on the path with the fewest instructions to the return, without
    special edges."""
    distances, next_block = dict[int, int](), dict[int, int]()
    heap = [(0, block) for block in range(len(graph.blocks)) if graph.last(block).opcode == "RET"]
    while heap:
        length, block = heappop(heap)
        if block in distances:
            continue
        distances[block] = length
        for predecessor in graph.predecessors[block]:
            if predecessor not in distances and (predecessor, block) not in special:
                heappush(heap, (length + _size(graph, block), predecessor))
    for block in distances:
        targets = [
            target for target in graph.successors[block] if target in distances and (block, target) not in special
        ]
        if targets and graph.last(block).opcode != "RET":
            next_block[block] = min(targets, key=lambda target: (distances[target] + _size(graph, target), target))
    return next_block


def _size(graph: Graph, block: int) -> int:
    first, past = graph.blocks[block]
    return past - first
