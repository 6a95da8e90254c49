"""First blocks of source branch arms in the compiled kernel, and the fraction of lanes in each arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from .conditions import Conditions
from .control_flow import Loop
from .flow_records import ArmShare
from .opcode_classes import CONTROL
from .source_statements import BranchArm, Place


class BranchArms:
    """Branch arms of one kernel, from tested conditions and the source loop of each natural loop."""

    def __init__(self, conditions: Conditions, loops: Mapping[Loop, Place | None]) -> None:
        self.graph, self.places, self.source = conditions.graph, conditions.places, conditions.source
        self.conditions, self._place_of_loop = conditions, loops

    @cached_property
    def heads(self) -> dict[int, BranchArm]:
        """By block, the branch arm that starts there."""
        at_tests = {block: self.conditions.arm(one) for block, one in self.conditions.blocks.items()}
        inferred = {block: choice for block, choice in self._behind_tests().items() if block not in at_tests}
        complete = {block: choice for block, choice in at_tests.items() if choice is not None}
        return self._loop_continuations() | inferred | complete

    @cached_property
    def shares(self) -> dict[int, ArmShare]:
        """By block, the fraction of arriving lanes and warps that take its arm."""
        result = {}
        for block, choice in self.heads.items():
            branches = [one for one in self.source.by_place[choice[0]] if one.site.kind == "branch"]
            lanes = warps = 0
            for number in {one.number for one in branches}:
                statements = self.source.by_branch_arm.get(choice, ())
                statements = [
                    one for one in statements if one.number not in self.source.loops
                ]  # loops are tested more often
                inside = [one for one in statements if self.source.deciding_arm[one.number][0] == number]
                largest = max(((one.lanes, one.warps) for one in inside), default=None)
                largest = self.source.arm_counts(number, choice[1]) if largest is None else largest
                lanes, warps = lanes + largest[0], warps + largest[1]
            arrived, arrived_warps = sum(one.lanes for one in branches), sum(one.warps for one in branches)
            if arrived and lanes <= arrived:
                result[block] = ArmShare(self.graph.predecessors[block][0], lanes / arrived, warps / arrived_warps)
        for block, tested in self.conditions.blocks.items():
            result[block] = ArmShare(tested.start, *self.conditions.fractions(tested))
        return result

    def _behind_tests(self) -> dict[int, BranchArm]:
        """Return, by block with a test as its only predecessor, the arm of its instructions."""
        result = dict[int, BranchArm]()
        for block, before in enumerate(self.graph.predecessors):
            if len(before) == 1 and self._diverges(before[0]):
                choice, test = self._majority_arm(block), self.places[self.graph.blocks[before[0]][1] - 1]
                tested = choice is not None and test == choice[0]
                if before[0] in self.graph.exits and not tested:
                    continue  # blocks after an exit may have no line of their own
                if choice is None:
                    enclosing_arm = self._arm_around(block, test)
                    result |= {} if enclosing_arm is None else {block: enclosing_arm}
                    continue
                if choice == self._majority_arm(before[0]):
                    continue
                is_unique = self._has_own_code(block, choice) and not self._is_nested(block, choice)
                if tested or (is_unique and not self._is_mostly_foreign(block, choice)):
                    result[block] = choice
        return result

    def _diverges(self, block: int) -> bool:
        """Return whether a block has two continuations: two successors, or one and an exit."""
        return len(self.graph.successors[block]) + (block in self.graph.exits) == 2

    def _loop_continuations(self) -> dict[int, BranchArm]:
        """Return, by block after a loop's exit test, the arm of lanes that remain in the loop."""
        result = dict[int, BranchArm]()
        for loop in self.graph.loops:
            for block in loop.body:
                inside = [target for target in self.graph.successors[block] if target in loop.body]
                if len(inside) == 1 < len(self.graph.successors[block]) and self.graph.predecessors[inside[0]] == (
                    block,
                ):
                    tested = self.places[self.graph.blocks[block][1] - 1]
                    branches = [one for one in self.source.by_place.get(tested, ()) if one.site.kind == "branch"]
                    arms = {
                        (self.source.remaining_arm.get(one.number), self.source.enclosing_loop(one)) for one in branches
                    }
                    arm, around = arms.pop() if len(arms) == 1 else (None, None)
                    if arm is not None and around == self._place_of_loop[loop] and tested not in self.conditions.sites:
                        result[inside[0]] = tested, arm
        return result

    def _arm_around(self, block: int, tested: Place) -> BranchArm | None:
        """Return the common arm of a tested branch around all foreign code of a block, whose inner arms are predicated."""
        branches = {one.number for one in self.source.by_place.get(tested, ()) if one.site.kind == "branch"}
        own = (n for n in range(*self.graph.blocks[block]) if self.graph.instructions[n].opcode not in CONTROL)
        places = {self.places[n] for n in own} - {tested}
        inside = (one for place in places for one in self.source.by_place.get(place, ()) if one.lanes)
        arms = {self.source.arm_around(one, branches) for one in inside}
        arm = arms.pop() if len(arms) == 1 else None
        return None if arm is None else (tested, arm)

    def _is_mostly_foreign(self, block: int, choice: BranchArm) -> bool:
        """Return whether most of a block is neither from the arm nor from its test."""
        tested = self.places[self.graph.blocks[self.graph.predecessors[block][0]][1] - 1]
        decided = {one.place for one in self.source.by_branch_arm[choice]} | {tested}
        own = (n for n in range(*self.graph.blocks[block]) if self.graph.instructions[n].opcode not in CONTROL)
        foreign = [self.places[n] for n in own if self.places[n] not in decided]
        return sum(place in self.source.by_place for place in foreign) > self._votes(block)[choice]

    def _is_nested(self, block: int, choice: BranchArm) -> bool:
        """Return whether a dominator belongs to the same arm."""
        dominator = self.graph.dominators[block]
        while dominator is not None and self._majority_arm(dominator) != choice:
            dominator = self.graph.dominators[dominator]
        return dominator is not None

    def _has_own_code(self, block: int, choice: BranchArm) -> bool:
        """Return whether a block has code written in the arm itself, not after a leaving arm."""
        places = {self.places[n] for n in range(*self.graph.blocks[block])}
        inside = (one for one in self.source.by_branch_arm[choice] if one.place in places)
        return any(
            one.context.arm == choice[1] and one.context.site == self.source.deciding_arm[one.number][0]
            for one in inside
        )

    def _majority_arm(self, block: int) -> BranchArm | None:
        """Return the arm of most instructions with unambiguous locations."""
        votes = self._votes(block)
        return max(votes, key=lambda one: votes[one], default=None)

    def _votes(self, block: int) -> Counter[BranchArm | None]:
        """Return the number of instructions by arm."""
        votes: Counter[BranchArm | None] = Counter()
        for n in range(*self.graph.blocks[block]):
            if self.graph.instructions[n].opcode in CONTROL:
                continue
            choices = {self.source.branch_arm(one) for one in self.source.by_place.get(self.places[n], ()) if one.lanes}
            if len(choices) == 1:
                votes[choices.pop()] += 1
        return votes
