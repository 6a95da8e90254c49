"""Branch profiles of a class of warps: successor probabilities from the executed branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..compiled.control_flow import Graph
from ..sass.groups import ALL_TAKEN, DIVERGENT, NONE_TAKEN

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TIE_TOLERANCE = 0.05
"""Relative difference of a loop's exit and back edge up to which it has two trips in all warps."""


def _flows(whole: Graph, branches: Mapping[int, Words], block: int) -> tuple[list[tuple[float, int]], float]:
    """Return the executions of each edge of a block with its target (-1: exit), and those that diverge.

    branches: int64[3] by instruction, as `Counts.branches`. Calls are skipped.
    """
    edges = [(edge.target, edge.kind == "next") for edge in whole.edges if edge.source == block and edge.kind != "call"]
    if block in whole.exits:
        edges.append((-1, False))
    counts = branches.get(whole.blocks[block][1] - 1)
    if counts is None or len(edges) < 2:
        return [(1.0, target) for target, _ in edges], 0.0
    exits = block in whole.exits  # the lanes that remain continue at the next block
    flows = {
        True: float(counts[NONE_TAKEN] + (counts[DIVERGENT] if exits else 0)),
        False: float(counts[ALL_TAKEN]),
    }
    diverged = 0.0 if exits else float(counts[DIVERGENT])
    waiting = [is_next for target, is_next in edges if whole.reconverges(target)]
    if len(waiting) == 1:  # the lanes that leave wait at once: the warp continues with the others
        flows[not waiting[0]] += diverged
        diverged = 0.0
    return [(flows[is_next], target) for target, is_next in edges], diverged


def branch_profile(
    whole: Graph, branches: Mapping[int, Words], convergence_of_block: Sequence[int]
) -> tuple[Words, Floats, Floats, Words]:
    """Return successors, minority and divergent probabilities, and exit counters of each block."""
    count = len(whole.blocks)
    blocks = np.full((count, 5), -1, np.int64)
    minority_shares, divergent_shares, exit_counters = np.zeros(count), np.zeros(count), np.full(count, -1)
    first_exit: dict[int, int] = {}  # first exiting block by loop header
    for block, (first, past) in enumerate(whole.blocks):
        blocks[block, :2] = first, past
        enclosing = whole.enclosing_loops(block)
        inside = enclosing[0].body if enclosing else frozenset[int]()
        flows, diverged = _flows(whole, branches, block)
        outgoing = [(flow, target in inside, target) for flow, target in flows]
        max_flow = max((flow for flow, _, _ in outgoing), default=0.0)
        outgoing.sort(
            key=lambda one: (one[0] >= (1 - _TIE_TOLERANCE) * max_flow, one[1] == (max_flow > 0), one[0]), reverse=True
        )
        exits = [(flow, target) for flow, _, target in outgoing[:2]]  # loops with a tie take the back edge first
        if exits:
            blocks[block, 2] = exits[0][1]
        if len(exits) == 2:
            blocks[block, 3:] = exits[1][1], convergence_of_block[block]
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
