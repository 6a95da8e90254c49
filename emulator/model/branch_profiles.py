"""Branch profiles of a class of warps: edge flows fitted to block executions, and successor probabilities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..compiled.control_flow import Graph, Loop
from ..compiled.linear_program import LinearProgram

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TIE_TOLERANCE = 0.05
"""Relative difference of a loop's exit and back edge up to which it has two trips in all warps."""
_TRIP_COST = 0.01
"""Cost of a loop trip, relative to a residual execution."""
_DIVERGENCE_COST = 0.02
"""Cost of divergence, relative to a residual execution."""


@dataclass
class _Flows:
    """Flows of a linear program. out: edges of each block, with their targets. divergence: by block."""

    out: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    divergence: dict[int, int] = field(default_factory=dict)
    solution: Floats = field(default_factory=lambda: np.zeros(0))

    def diverged(self, block: int) -> float:
        """Return the flow that diverges at a block."""
        return float(self.solution[self.divergence[block]]) if block in self.divergence else 0.0


def _fit_flows(
    whole: Graph, executions: Floats, reachable: Sequence[set[int]], convergence_of_block: Sequence[int]
) -> _Flows:
    """Return edge flows, fitted to block executions; divergence adds flow, reconvergence removes it. Ties prefer loop
    entries over trips, and convergence. Calls are skipped. The flow into a loop leaves it, also where the executions, estimated
    for a class, have no flow: a simulated warp would not leave the loop."""
    program, count, result = LinearProgram(), len(whole.blocks), _Flows()
    weights = 1 / np.sqrt(np.maximum(executions, 1e-6 * max(1.0, float(executions.max(initial=1.0)))))
    arriving, leaving = (list[dict[int, float]](defaultdict(float) for _ in range(count)) for _ in range(2))
    trip_costs: dict[int, float] = defaultdict(float)  # cost of trips of loops behind a block
    edges = [(edge.source, edge.target) for edge in whole.edges if edge.kind != "call"]
    for source, target in [*edges, *((block, -1) for block in whole.exits)]:
        cost = _TRIP_COST * weights[target] if 0 <= target <= source else 0.0
        trip_costs[source] += cost
        variable = program.variable(cost)
        result.out[source].append((variable, target))
        leaving[source][variable] += 1.0
        if target >= 0:
            arriving[target][variable] += 1.0
    for block, onward in enumerate(whole.successors):
        never_reconverges = len(set(onward)) == 2 and not reachable[onward[0]] & reachable[onward[1]]
        if never_reconverges or (len(set(onward)) == 2 and convergence_of_block[block] >= 0):
            variable = program.variable(_DIVERGENCE_COST * weights[block] + trip_costs[block])
            result.divergence[block] = variable
            leaving[block][variable] += 1.0
            for target in onward:
                arriving[target][variable] += 1.0
            if convergence_of_block[block] >= 0:
                arriving[convergence_of_block[block]][variable] -= 1.0
    for block in range(count):
        entered = executions[block] * (block > 0 or bool(arriving[0]))
        program.soft_equal(arriving[block], entered, weights[block], weights[block])
        program.soft_equal(leaving[block], executions[block], weights[block], weights[block])
    entries = {0, *(edge.target for edge in whole.edges if edge.kind == "call")}  # no edge leads there
    for loop in whole.loops:
        if not entries & loop.body:
            program.equal(_net_flow(loop, arriving, leaving), 0.0)
    result.solution = program.solve()
    return result


def _net_flow(
    loop: Loop, arriving: Sequence[Mapping[int, float]], leaving: Sequence[Mapping[int, float]]
) -> dict[int, float]:
    """Return the flow into a loop minus that out of it, by variable. arriving, leaving: by block."""
    row: dict[int, float] = defaultdict(float)
    for block in loop.body:
        for variable, factor in arriving[block].items():
            row[variable] += factor
        for variable, factor in leaving[block].items():
            row[variable] -= factor
    return row


def branch_profile(
    whole: Graph, executions: Floats, reachable: Sequence[set[int]], convergence_of_block: Sequence[int]
) -> tuple[Words, Floats, Floats, Words]:
    """Return successors, minority and divergent probabilities, and exit counters of each block. reachable: by block."""
    flows, count = _fit_flows(whole, executions, reachable, convergence_of_block), len(whole.blocks)
    blocks = np.full((count, 5), -1, np.int64)
    minority_shares, divergent_shares, exit_counters = np.zeros(count), np.zeros(count), np.full(count, -1)
    first_exit: dict[int, int] = {}  # first exiting block by loop header
    for block, (first, past) in enumerate(whole.blocks):
        blocks[block, :2] = first, past
        enclosing = whole.enclosing_loops(block)
        inside = enclosing[0].body if enclosing else frozenset[int]()
        outgoing = [(float(flows.solution[edge]), target in inside, target) for edge, target in flows.out[block]]
        max_flow = max((flow for flow, _, _ in outgoing), default=0.0)
        outgoing.sort(
            key=lambda one: (one[0] >= (1 - _TIE_TOLERANCE) * max_flow, one[1] == (max_flow > 0), one[0]), reverse=True
        )
        exits = [(flow, target) for flow, _, target in outgoing[:2]]  # loops with a tie take the back edge first
        if exits:
            blocks[block, 2] = exits[0][1]
        if len(exits) == 2:
            blocks[block, 3:] = exits[1][1], convergence_of_block[block]
            diverged = flows.diverged(block)
            total = exits[0][0] + exits[1][0] + diverged
            if total:
                minority_shares[block], divergent_shares[block] = exits[1][0] / total, diverged / total
            exited = [loop for loop in enclosing if exits[0][1] in loop.body and exits[1][1] not in loop.body]
            if exited:
                exit_counters[block] = first_exit.setdefault(exited[0].header, block)
            elif 0 <= exits[0][1] <= block:
                exit_counters[block] = block
    return blocks, minority_shares, divergent_shares, exit_counters


def unreachable_convergence(whole: Graph) -> npt.NDArray[np.bool_]:
    """Return `WarpClasses.unreachable_convergence`."""
    result = np.zeros((len(whole.blocks), len(whole.blocks) + 1), np.bool_)
    for convergence, setup in whole.bssy_block.items():
        reaching, worklist = {convergence}, [convergence]
        while worklist:
            before = {block for block in whole.predecessors[worklist.pop()] if block not in reaching}
            reaching |= before
            worklist += before - {setup}
        result[:, convergence + 1] = True
        result[list(reaching), convergence + 1] = False
    return result


def convergence_of(whole: Graph, block: int, reachable: Sequence[set[int]]) -> int:
    """Return the convergence point of lanes that diverge at a block: the innermost BSYNC reachable from all successors,
    else a barrier; -1 for none."""
    enclosing = [
        (setup, convergence)
        for convergence, setup in whole.bssy_block.items()
        if whole.dominates(setup, block) and not whole.dominates(convergence, block)
    ]
    innermost_first = sorted(enclosing, key=lambda one: -sum(whole.dominates(other, one[0]) for other, _ in enclosing))
    for _, convergence in innermost_first:
        if all(convergence in reachable[onward] for onward in whole.successors[block]):
            return convergence
    if enclosing:
        return -1
    block_after = whole.postdominators[block]
    while block_after is not None and not whole.is_barrier(block_after):
        block_after = whole.postdominators[block_after]
    return -1 if block_after is None else block_after
