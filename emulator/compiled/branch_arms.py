"""First blocks of source branch arms in the compiled kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .control_flow import Graph
from .opcode_classes import CONTROL
from .source_statements import BranchArm, Place, SourceStatements


class BranchArms:
    """Branch arms of one kernel. heads: by block with a test as its only predecessor, the branch arm of its instructions."""

    def __init__(self, graph: Graph, places: Sequence[Place], source: SourceStatements) -> None:
        self._graph, self._places, self._source = graph, places, source
        self._majority = [self._majority_arm(block) for block in range(len(graph.blocks))]
        self.heads = dict[int, BranchArm]()
        for block, before in enumerate(graph.predecessors):
            arm = self._majority[block]
            if len(before) != 1 or len(graph.successors[before[0]]) + (before[0] in graph.exits) != 2 or arm is None:
                continue
            tested = places[graph.blocks[before[0]][1] - 1] == arm[0]
            if not tested and (
                before[0] in graph.exits or not self._has_own_code(block, arm) or self._is_nested(block, arm)
            ):
                continue  # blocks after an exit may have no line of their own
            if arm != self._majority[before[0]]:
                self.heads[block] = arm

    def _is_nested(self, block: int, arm: BranchArm) -> bool:
        """Return whether a dominator belongs to the same arm."""
        dominator = self._graph.dominators[block]
        while dominator is not None and self._majority[dominator] != arm:
            dominator = self._graph.dominators[dominator]
        return dominator is not None

    def _has_own_code(self, block: int, arm: BranchArm) -> bool:
        """Return whether a block has code written in the arm itself, not after a leaving arm."""
        places = {self._places[n] for n in range(*self._graph.blocks[block])}
        inside = (one for one in self._source.by_branch_arm[arm] if one.place in places)
        deciding = self._source.deciding_arm
        return any(one.context.arm == arm[1] and one.context.site == deciding[one.number][0] for one in inside)

    def _majority_arm(self, block: int) -> BranchArm | None:
        """Return the arm of most instructions with unambiguous locations."""
        votes: Counter[BranchArm | None] = Counter()
        for n in range(*self._graph.blocks[block]):
            statements = self._source.by_place.get(self._places[n], ())
            arms = {self._source.branch_arm(one) for one in statements if one.lanes}
            if len(arms) == 1 and self._graph.instructions[n].opcode not in CONTROL:
                votes[arms.pop()] += 1
        return max(votes, key=lambda one: votes[one], default=None)
