"""Where arms of the source's branches begin in a compiled kernel, and which part of the lanes takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from .conditions import Conditions
from .control_flow import Loop
from .flow import ArmShare
from .opcode_classes import CONTROL
from .source_statements import BranchArm, Place


class BranchArms:
    """Of one kernel, of which is known where conditions are tested, and the place of the source's loop that each natural loop is."""

    def __init__(self, conditions: Conditions, loops: Mapping[Loop, Place | None]) -> None:
        self.graph, self.places, self.source = conditions.graph, conditions.places, conditions.source
        self.conditions, self._loops = conditions, loops

    @cached_property
    def heads(self) -> dict[int, BranchArm]:
        """By block, the arm of a branch of the source that begins there, behind a test of its own."""
        tested = {block: self.conditions.arm(one) for block, one in self.conditions.blocks.items()}
        apart = {block: choice for block, choice in self._behind_tests().items() if block not in tested}
        whole = {block: choice for block, choice in tested.items() if choice is not None}
        return self._staying() | apart | whole

    @cached_property
    def parts(self) -> dict[int, ArmShare]:
        """By block, how many of those who come to the test before it take the arm that begins there."""
        found = {}
        for block, choice in self.heads.items():
            branches = [one for one in self.source.by_place[choice[0]] if one.site.kind == "branch"]
            lanes = warps = 0
            for number in {one.number for one in branches}:
                known = self.source.by_branch_arm.get(choice, ())
                known = [one for one in known if one.number not in self.source.loops]  # which is tested again
                inside = [one for one in known if self.source.chosen[one.number][0] == number]
                most = max(((one.lanes, one.warps) for one in inside), default=None)
                most = self.source.taken(number, choice[1]) if most is None else most
                lanes, warps = lanes + most[0], warps + most[1]
            came, came_warps = sum(one.lanes for one in branches), sum(one.warps for one in branches)
            if came and lanes <= came:
                found[block] = ArmShare(self.graph.predecessors[block][0], lanes / came, warps / came_warps)
        for block, tested in self.conditions.blocks.items():
            found[block] = ArmShare(tested.start, *self.conditions.parts(tested))
        return found

    def _behind_tests(self) -> dict[int, BranchArm]:
        """By block that is come to from one test alone, the arm that its instructions belong to."""
        found = dict[int, BranchArm]()
        for block, before in enumerate(self.graph.predecessors):
            if len(before) == 1 and self._parts(before[0]):
                choice, test = self._choice(block), self.places[self.graph.blocks[before[0]][1] - 1]
                tested = choice is not None and test == choice[0]
                if before[0] in self.graph.exits and not tested:
                    continue  # what lies behind an end of the kernel may have no line of its own
                if choice is None:
                    inside = self._arm_around(block, test)
                    found |= {} if inside is None else {block: inside}
                    continue
                if choice == self._choice(before[0]):
                    continue
                alone = self._written(block, choice) and not self._within(block, choice)
                if tested or (alone and not self._elsewhere(block, choice)):
                    found[block] = choice
        return found

    def _parts(self, block: int) -> bool:
        """Whether lanes part behind a block: they go to two others, or some of them leave the kernel."""
        return len(self.graph.successors[block]) + (block in self.graph.exits) == 2

    def _staying(self) -> dict[int, BranchArm]:
        """By block behind a test by which lanes leave a loop, the arm of those that do not: nothing in it may be left of the source."""
        found = dict[int, BranchArm]()
        for loop in self.graph.loops:
            for block in loop.body:
                inside = [target for target in self.graph.successors[block] if target in loop.body]
                if len(inside) == 1 < len(self.graph.successors[block]) and self.graph.predecessors[inside[0]] == (
                    block,
                ):
                    tested = self.places[self.graph.blocks[block][1] - 1]
                    branches = [one for one in self.source.by_place.get(tested, ()) if one.site.kind == "branch"]
                    known = {(self.source.remaining_arm.get(one.number), self.source.loop_of(one)) for one in branches}
                    arm, around = known.pop() if len(known) == 1 else (None, None)
                    if arm is not None and around == self._loops[loop] and tested not in self.conditions.sites:
                        found[inside[0]] = tested, arm
        return found

    def _arm_around(self, block: int, tested: Place) -> BranchArm | None:
        """The arm of a branch at a place in which all lies that a block has from elsewhere: arms inside have become predicated
        instructions."""
        branches = {one.number for one in self.source.by_place.get(tested, ()) if one.site.kind == "branch"}
        own = (n for n in range(*self.graph.blocks[block]) if self.graph.instructions[n].opcode not in CONTROL)
        places = {self.places[n] for n in own} - {tested}
        inside = (one for place in places for one in self.source.by_place.get(place, ()) if one.lanes)
        arms = {self.source.arm_around(one, branches) for one in inside}
        arm = arms.pop() if len(arms) == 1 else None
        return None if arm is None else (tested, arm)

    def _elsewhere(self, block: int, choice: BranchArm) -> bool:
        """Whether more of a block is from places of which an arm decides about nothing, nor about the test before, than from the arm."""
        tested = self.places[self.graph.blocks[self.graph.predecessors[block][0]][1] - 1]
        decided = {one.place for one in self.source.by_branch_arm[choice]} | {tested}
        own = (n for n in range(*self.graph.blocks[block]) if self.graph.instructions[n].opcode not in CONTROL)
        others = [self.places[n] for n in own if self.places[n] not in decided]
        return sum(place in self.source.by_place for place in others) > self._votes(block)[choice]

    def _within(self, block: int, choice: BranchArm) -> bool:
        """Whether all lanes that come to a block have come through another of the same arm."""
        above = self.graph.dominators[block]
        while above is not None and self._choice(above) != choice:
            above = self.graph.dominators[above]
        return above is not None

    def _written(self, block: int, choice: BranchArm) -> bool:
        """Whether a block has something of an arm as it is written, not of what follows where the other arm leaves."""
        places = {self.places[n] for n in range(*self.graph.blocks[block])}
        inside = (one for one in self.source.by_branch_arm[choice] if one.place in places)
        return any(
            one.context.arm == choice[1] and one.context.site == self.source.chosen[one.number][0] for one in inside
        )

    def _choice(self, block: int) -> BranchArm | None:
        """The arm of a branch that most instructions of a block belong to, of those whose place tells one."""
        votes = self._votes(block)
        return max(votes, key=lambda one: votes[one], default=None)

    def _votes(self, block: int) -> Counter[BranchArm | None]:
        """How many instructions of a block belong to each arm, of those whose place tells one."""
        votes: Counter[BranchArm | None] = Counter()
        for n in range(*self.graph.blocks[block]):
            if self.graph.instructions[n].opcode in CONTROL:
                continue
            choices = {self.source.choice(one) for one in self.source.by_place.get(self.places[n], ()) if one.lanes}
            if len(choices) == 1:
                votes[choices.pop()] += 1
        return votes
