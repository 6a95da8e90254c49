"""Correspondence between source and SASS: features emitted by source events and by SASS blocks.

A feature is a kind of effect or operation at a source location, an iteration of a loop, an arm of a branch, or plain
code of a location without other features. Statements emit amounts of features; blocks emit them unconditionally or
under a predicate. A statement list uses its strongest features: effects and operations; else loads and local accesses,
subject to code motion and register allocation; else its instructions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from ..passes.decisions import atoms
from .control_flow import Loop
from .decision_bytecode import arm_event, condition_event, slow_path_event
from .expanded_cfg import ExpandedCfg
from .iteration_votes import Key
from .lane_accesses import shared_branch_accesses
from .matching import LoopMatcher
from .matching_costs import (
    COST_INSTRUCTION,
    COST_MISSING_EFFECT,
    COST_MISSING_INSTRUCTION,
    COST_MISSING_LOAD,
    COST_NARROW_DIVISION,
    COST_TRIP,
    COST_WRONG_BRANCH,
    PREDICATED_COST_SHARE,
)
from .opcode_classes import CONTROL, EXPANDED, OPERATIONS, is_elidable
from .source_statements import BranchArm, Place, Segment, Statement

Floats = npt.NDArray[np.float32]
Emitted = dict[Key, float]
"""Amounts by feature."""
CODE, ITERATION, ARMS, SLOW_PATH, CODES = "code", "turn", ("then", "else"), "slow path", "codes"
"""Kinds of features without an effect or operation."""


@dataclass(frozen=True)
class Event:
    """An amount of a feature."""

    feature: int
    amount: float


class Correspondence:
    """Features of one kernel.

    events: by event name of `DecisionReplay` (a site, or -1 - site for an iteration). keys: of the features. weights:
    cost per unit, missing or in excess. unconditional, predicated: float32[node, feature], emitted amounts. cost: fixed
    cost by node. span: events a node may match. has_silent_iterations: whether iterations may be predicated code
    without features.
    """

    def __init__(self, matcher: LoopMatcher, nodes: ExpandedCfg) -> None:
        self.graph, self.places, self.source = matcher.graph, matcher.places, matcher.source
        self._matcher = matcher
        self.keys: list[Key] = []
        self.events: dict[int, list[Event]] = defaultdict(list)
        self.has_silent_iterations = False
        self._numbers: dict[Key, int] = {}
        self._weights: list[float] = []
        self.units: list[float] = []
        self._by_place: dict[Place, list[Statement]] = self.source.by_place
        blocks = [self._emitted_by(span) for span in self.graph.blocks]
        self._delay_hoisted_loads(blocks)
        emitting_blocks: dict[Key, set[int]] = defaultdict(set)
        for block, emitted in enumerate(blocks):
            for key in (*emitted[0], *emitted[1]):
                emitting_blocks[key].add(block)
        self._effects(emitting_blocks)
        code_counts = self._code_features()
        iteration_counts = self._iteration_features()
        arm_counts = self._arm_features()
        for block, key in self._slow_path_features().items():
            arm_counts[block][key] = 1, 0
        self._condition_features(arm_counts)
        self._fill_tables(nodes, blocks, code_counts, iteration_counts, arm_counts)

    def _emitted_by(self, span: tuple[int, int]) -> tuple[Emitted, Emitted]:
        """Return the effects and operations of a block: unconditional and predicated amounts.

        Of an access wider than the source's, one source access is unconditional; the rest may belong to later
        iterations. Operations of an arm with predicated instructions are speculated for all lanes.
        """
        unconditional: dict[Key, float] = defaultdict(float)
        predicated: dict[Key, float] = defaultdict(float)
        own_instructions = (n for n in range(*span) if self.graph.instructions[n].opcode not in CONTROL)
        predicated_arms = {self._arm_of(n) for n in own_instructions if self.graph.instructions[n].predicate} - {None}
        for n in range(*span):
            for key, width in self._matcher.instruction_amounts(n).items():
                place, kind = key
                access_size = (
                    max((one.site.size for one in self._by_place.get(place, ()) if one.site.kind == kind), default=0)
                    or 1
                )
                speculated = kind in OPERATIONS.values() and self._arm_of(n) in predicated_arms
                if self.graph.instructions[n].predicate or speculated:
                    predicated[key] += width
                elif "_" in kind and width > access_size:
                    unconditional[key] += access_size
                    predicated[key] += width - access_size
                else:
                    unconditional[key] += width
        return unconditional, predicated

    def _arm_of(self, n: int) -> BranchArm | None:
        """Return the branch arm of an instruction, if its location determines one."""
        choices = {self.source.branch_arm(one) for one in self._by_place.get(self.places[n], ()) if one.lanes}
        return choices.pop() if len(choices) == 1 else None

    def _delay_hoisted_loads(self, blocks: Sequence[tuple[Emitted, Emitted]]) -> None:
        """Move loads hoisted over barriers back behind these."""
        for block, (unconditional, _) in enumerate(blocks):
            block_behind, barriers = block, list[Statement]()
            while len(self.graph.successors[block_behind]) == 1 and self.graph.is_barrier(
                self.graph.successors[block_behind][0]
            ):
                (barrier,) = self.graph.successors[block_behind]
                statements = self._by_place.get(self.places[self.graph.blocks[barrier][0]], ())
                barriers += [one for one in statements if one.site.kind == "barrier"]
                if len(self.graph.successors[barrier]) != 1:
                    break
                (block_behind,) = self.graph.successors[barrier]
            for key in [key for key in unconditional if key[1].endswith("load")] if barriers else ():
                loads = [one for one in self._by_place.get(key[0], ()) if one.site.kind == key[1]]
                if all(a.context.loop is b.context.loop and a.number < b.number for a in barriers for b in loads):
                    blocks[block_behind][0][key] = blocks[block_behind][0].get(key, 0.0) + unconditional.pop(key)

    # -------------------------------------------------------------- source
    def _effects(self, emitting_blocks: Mapping[Key, set[int]]) -> None:
        """Add features of effects and operations emitted by blocks. Effects of every iteration in blocks outside of the
        compiled loop are loop-invariant code; these features do not count iterations."""
        segment = self.source.segment
        loop_blocks = {
            site: self._matcher.loop_blocks(place)
            for place, sites in self._matcher.sites_by_place.items()
            for site in sites
        }

        def moved_out(statement: Statement, key: Key) -> bool:
            in_every_iteration = statement.context.arm == "body" and statement.number not in self.source.deciding_arm
            blocks_inside = loop_blocks.get(statement.context.site, frozenset()) if in_every_iteration else frozenset()
            return bool(blocks_inside) and not blocks_inside & emitting_blocks[key]

        segments_with_effects = {
            segment(statement)
            for statement in self.source.statements.values()
            for (place, kind), n in self._matcher.statement_amounts(statement).items()
            if statement.lanes and n and (place, kind) in emitting_blocks and not is_elidable(kind)
        }
        for at_place in self._by_place.values():
            amounts: dict[Key, dict[Segment, float]] = defaultdict(lambda: defaultdict(float))
            for statement in at_place:
                for key, n in self._matcher.statement_amounts(statement).items():
                    amounts[key][segment(statement)] += n
            for key, by_segment in amounts.items():
                if key not in emitting_blocks or (is_elidable(key[1]) and segments_with_effects >= by_segment.keys()):
                    continue
                feature = self._add_feature(
                    key, COST_MISSING_LOAD if is_elidable(key[1]) else COST_MISSING_EFFECT, max(by_segment.values())
                )
                for statement in at_place:
                    n = self._matcher.statement_amounts(statement).get(key, 0)
                    if n and not moved_out(statement, key):
                        self.events[statement.number].append(Event(feature, n / self.units[feature]))
        matched = set[tuple[int, Key]]()
        for statement, other in self._shared_accesses():
            for own, other_amount in zip(
                self._matcher.statement_amounts(statement).items(), self._matcher.statement_amounts(other), strict=False
            ):
                has_feature = own[0] in emitting_blocks or (statement.number, own[0]) in matched
                if not has_feature and other_amount in self._numbers and own[0][1] == other_amount[1]:
                    self.events[statement.number].append(
                        Event(self._numbers[other_amount], own[1] / self.units[self._numbers[other_amount]])
                    )
                    matched.add((statement.number, own[0]))

    def _shared_accesses(self) -> Iterator[tuple[Statement, Statement]]:
        """Yield pairs of accesses to one array in opposite arms of a branch: one instruction may implement both."""
        kinds: dict[tuple[str, str, int], list[Statement]] = defaultdict(list)
        for statement in self.source.statements.values():
            if statement.lanes and "_" in statement.site.kind:
                kinds[statement.site.kind, statement.site.array, statement.site.size].append(statement)
        for similar in kinds.values():
            groups: dict[int, list[Statement]] = {}
            for other, representative in shared_branch_accesses(similar, self.source.deciding_arm).items():
                groups.setdefault(representative, [self.source.statements[representative]]).append(
                    self.source.statements[other]
                )
            for group in groups.values():
                yield from permutations(group, 2)

    def _code_features(self) -> dict[int, dict[Place, tuple[int, bool]]]:
        """Add features of plain code, for locations in one statement list without better features and for expanded operations.

        Returns, by block and location, the number of instructions and whether the block is reached before others with
        the location.
        """
        result: dict[int, dict[Place, tuple[int, bool]]] = defaultdict(dict)
        counts: dict[Place, Counter[int]] = defaultdict(Counter)
        for block, span in enumerate(self.graph.blocks):
            for n in range(*span):
                instruction = self.graph.instructions[n]
                if (
                    instruction.opcode not in CONTROL
                    and not instruction.predicate
                    and not self._matcher.instruction_amounts(n)
                ):
                    counts[self.places[n]][block] += 1
        evident_segments = {
            self.source.segment(one) for one in self.source.statements.values() if self.events.get(one.number)
        }
        for place, by_block in counts.items():
            statements = self._by_place.get(place, [])
            contexts = {self.source.segment(one) for one in statements}
            hidden = place not in self._matcher.expanded and contexts & evident_segments
            if len(contexts) != 1 or hidden or any(one.number in self.source.loops for one in statements):
                continue
            feature = self._add_feature((place, CODE), COST_MISSING_INSTRUCTION * min(by_block.values()), 1.0)
            expanded_numbers = [one.number for one in statements if EXPANDED & one.site.costs.keys()]
            for number in expanded_numbers or [min(one.number for one in statements)]:
                self.events[number].append(Event(feature, 1.0))
            outside_loops = all(one.context.loop is None for one in statements)
            for block, n in by_block.items():
                dominated = any(self.graph.dominates(other, block) for other in by_block if other != block)
                result[block][place] = n, not (outside_loops and dominated)
        return result

    def _iteration_features(self) -> dict[int, dict[Key, int]]:
        """Add iteration features of loops with at most loads in their bodies; return the iterations by block."""
        result: dict[int, dict[Key, int]] = defaultdict(dict)
        instructions = zip(self.graph.instructions, self.places, strict=True)
        predicated_places = {place for one, place in instructions if one.predicate and one.opcode not in CONTROL}
        for place, sites in self._matcher.sites_by_place.items():
            compiled_loops = self._matcher.natural_loops(place)
            copies, predicated_copies = self._matcher.copies(sites, compiled_loops)
            body = [
                one
                for one in self.source.statements.values()
                if (one.context.site, one.context.arm) in {(n, "body") for n in sites}
                if one.number not in self.source.deciding_arm
            ]
            emitted_kinds = (self.keys[token.feature][1] for one in body for token in self.events.get(one.number, ()))
            kinds = {*emitted_kinds} - {CODE}
            is_hidden = bool(compiled_loops) and not kinds and any(one.place in predicated_places for one in body)
            self.has_silent_iterations |= is_hidden and not self._has_visible_statement(sites)
            if not compiled_loops or predicated_copies or not all(kind.endswith("load") for kind in kinds):
                continue
            feature = self._add_feature((place, ITERATION), COST_MISSING_EFFECT, 1.0)
            starts_by_loop, iterations_by_block = self._matcher.iteration_starts(place), dict[int, int]()
            for loop in compiled_loops:
                in_loop = {block: n for block, n in copies.items() if block in loop.body}
                entered_before = any(
                    self.graph.dominates(block, loop.header) for block in copies if block not in loop.body
                )
                if list(in_loop.values()) == [1] and not entered_before:
                    in_loop = {self._trip_start(loop, next(iter(in_loop)), place): 1}
                elif len(firsts := starts_by_loop.get(loop.header, ())) == sum(in_loop.values()) and not entered_before:
                    in_loop = dict.fromkeys(firsts, 1)
                iterations_by_block |= in_loop
            for block, n in iterations_by_block.items():
                result[block][place, ITERATION] = n
            test_inside, mid_exit_statements = (
                self._matcher.test_in_body(place),
                self._matcher.mid_exit_statements(sites, iterations_by_block, compiled_loops),
            )
            for site in sites:
                self.events[mid_exit_statements.get(site, site if test_inside else -1 - site)].append(
                    Event(feature, 1.0)
                )
            for block in sorted(copies.keys() - self._matcher.loop_blocks(place)):
                result[self._matcher.iteration_start_before(block, sites)][place, ITERATION] = copies[block]
        return result

    def _trip_start(self, loop: Loop, block: int, place: Place) -> int:
        """Return the block where the trip with a given block starts: after the loop's previous exit test."""
        start = block
        while start != loop.header:
            above = self.graph.dominators[start]
            assert above is not None, "a loop's header dominates all of it"
            leaves = any(onward not in loop.body for onward in self.graph.successors[above])
            if leaves and self.places[self.graph.blocks[above][1] - 1] == place:
                break
            start = above
        return start

    def _has_visible_statement(self, sites: Sequence[int]) -> bool:
        """Return whether an arm or loop inside a loop has an effect or operation, emitted by predicated iterations too."""
        inside = [one for one in self.source.statements.values() if one.context.is_inside(sites)]
        return any(self.is_executed(token.feature) for one in inside for token in self.events.get(one.number, ()))

    def _arm_features(self) -> dict[int, dict[Key, tuple[int, int]]]:
        """Add features of branch arms with blocks of their own; return, by block, certain and possibly predicated arms."""
        result: dict[int, dict[Key, tuple[int, int]]] = defaultdict(dict)
        expanded = self._matcher.expanded
        for choice in sorted(set(self._matcher.arms.heads.values())):
            self._add_feature(choice, COST_WRONG_BRANCH, 1.0)
            sites = {
                self.source.deciding_arm[instruction.number][0]
                for instruction in self.source.by_branch_arm.get(choice, ())
            }
            branches = {
                instruction.number
                for instruction in self._by_place.get(choice[0], ())
                if instruction.site.kind == "branch"
            }
            for site in sites or branches:
                self.events[arm_event(site, choice[1])].append(Event(self._numbers[choice], 1.0))
        for block, span in enumerate(self.graph.blocks):
            for n in range(*span):
                arm, instruction = self._arm_of(n), self.graph.instructions[n]
                predicated = (
                    instruction.predicate and instruction.opcode not in CONTROL and self.places[n] not in expanded
                )
                if arm is not None and arm in self._numbers and predicated:
                    unconditional, predicated_count = result[block].get(arm, (0, 0))
                    result[block][arm] = unconditional, predicated_count + 1
        for block, choice in self._matcher.arms.heads.items():
            result[block][choice] = 1, 0
        return result

    def _slow_path_features(self) -> dict[int, Key]:
        """Add features of slow paths of divisions, by calling block."""
        result = {}
        for block, divisions in self._matcher.slow_path_divisions.items():
            key = self.source.statements[divisions[0][0]].place, f"{SLOW_PATH} {divisions[0]}"
            if key not in self._numbers:
                self._add_feature(key, COST_MISSING_EFFECT, 1.0)
                for number, n in divisions:
                    self.events[slow_path_event(number, n)].append(Event(self._numbers[key], 1.0))
            result[block] = key
        return result

    def _condition_features(self, arms: dict[int, dict[Key, tuple[int, int]]]) -> None:
        """Add features of blocks reached by lanes with some condition codes only. arm_counts: extended in place."""
        conditions = self._matcher.conditions

        def key(place: Place, codes: int) -> Key:
            return place, f"{CODES} {codes:x}"

        partial = {block: test for block, test in conditions.blocks.items() if block not in self._matcher.arms.heads}
        first_distance: dict[tuple[Place, int], int] = {}  # lanes reach the blocks of a code in this order
        for block, test in partial.items():
            place_and_codes = test.place, test.codes
            first_distance[place_and_codes] = min(block - test.start, first_distance.get(place_and_codes, block))
        for place, codes in sorted(
            first_distance, key=lambda place_and_codes: (first_distance[place_and_codes], place_and_codes)
        ):
            self._add_feature(key(place, codes), COST_WRONG_BRANCH, 1.0)
            for site in conditions.sites[place]:
                for code in range(1 << len(atoms(self.source.conditions[site]))):
                    tokens = self.events[condition_event(site, code)]
                    tokens += [Event(self._numbers[key(place, codes)], 1.0)] * (codes >> code & 1)
        for block, tested in partial.items():
            arms[block][key(tested.place, tested.codes)] = 1, 0
        for block, joint_tests in conditions.joint_tests.items():
            arms[block] |= {
                key(*place_and_codes): (0, 1) for place_and_codes in joint_tests if place_and_codes in first_distance
            }

    def _add_feature(self, key: Key, weight: float, unit: float) -> int:
        """Return the number of a new feature."""
        self._numbers[key] = len(self.keys)
        self.keys.append(key)
        self._weights.append(weight)
        self.units.append(unit)
        return self._numbers[key]

    # -------------------------------------------------------------- compiled kernel
    def _fill_tables(
        self,
        nodes: ExpandedCfg,
        blocks: Sequence[tuple[Emitted, Emitted]],
        code_counts: Mapping[int, Mapping[Place, tuple[int, bool]]],
        iteration_counts: Mapping[int, Mapping[Key, int]],
        arm_counts: Mapping[int, Mapping[Key, tuple[int, int]]],
    ) -> None:
        shape = len(nodes.blocks), max(len(self.keys), 1)
        self.unconditional, self.predicated = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.weights = np.array(self._weights or [0], np.float32)
        self.price = np.zeros(shape, np.float32)
        self.cost = np.zeros(len(nodes.blocks), np.float32)
        calls = {edge.source for edge in self.graph.edges if edge.kind == "call"}
        around_calls = calls | {
            block + 1 for block in calls
        }  # argument setup and result moves belong to the code before
        headers, narrow = {loop.header for loop in self.graph.loops}, self._matcher.narrow_divisions
        for node, block in enumerate(nodes.blocks):
            first, past = self.graph.blocks[block]
            self.cost[node] = (
                COST_INSTRUCTION * (past - first)
                + COST_TRIP * (block in headers)
                + COST_NARROW_DIVISION * (block in narrow)
            )
            for table, amounts in zip((self.unconditional, self.predicated), blocks[block], strict=True):
                for key, n in amounts.items():
                    if key in self._numbers:
                        table[node, self._numbers[key]] = n / self.units[self._numbers[key]]
            for place, (instructions, is_first) in code_counts.get(block, {}).items():
                counted = float(is_first and block not in around_calls)
                self.unconditional[node, self._numbers[place, CODE]] = counted
                self.predicated[node, self._numbers[place, CODE]] = instructions - counted
            for key, n in iteration_counts.get(block, {}).items():
                self.unconditional[node, self._numbers[key]] = n
            for key, (certain, predicated) in arm_counts.get(block, {}).items():
                self.unconditional[node, self._numbers[key]] = certain
                self.predicated[node, self._numbers[key]] = predicated
        unpredicated_keys = [
            {
                key
                for n in range(*span)
                for key in self._matcher.instruction_amounts(n)
                if not self.graph.instructions[n].predicate
            }
            for span in self.graph.blocks
        ]
        for node, block in enumerate(nodes.blocks):
            for key, feature in self._numbers.items():
                if key not in unpredicated_keys[block] and self.predicated[node, feature]:
                    self.price[node, feature] = PREDICATED_COST_SHARE * self.weights[feature]
        self._spread_over_iterations(nodes)
        self._allow_missing_operations(nodes)
        self.span = self._spans()

    def _spread_over_iterations(self, nodes: ExpandedCfg) -> None:
        """Distribute once-per-iteration features of an unrolled loop over its iterations: the compiler groups their loads."""
        rows: dict[int, list[int]] = defaultdict(list)
        for node, block in enumerate(nodes.blocks):
            rows[block].append(node)
        for place, sites in self._matcher.sites_by_place.items():
            per_iteration = self._amounts_per_iteration(sites)
            for header, starts in self._matcher.iteration_starts(place).items():
                trip = next(loop for loop in self.graph.loops if loop.header == header)
                spine = [b for b in trip.body if all(self.graph.dominates(b, latch) for latch in trip.latches)]
                for anchor, amount in per_iteration.items():
                    by_block = [float(self.unconditional[rows[block][0], anchor]) for block in spine if block in rows]
                    total, is_load = sum(by_block), self.keys[anchor][1].endswith("load")
                    is_gathered = total == amount * len(starts) and max(by_block) > amount
                    if is_gathered or (is_load and 0 < total < amount * len(starts)):
                        for block in spine:
                            self.unconditional[rows[block], anchor] = amount if block in starts else 0.0

    def _allow_missing_operations(self, nodes: ExpandedCfg) -> None:
        """Let peeled iterations omit operations needed by a next iteration only."""
        for place, sites in self._matcher.sites_by_place.items():
            loop_blocks = self._matcher.loop_blocks(place)
            copies, _ = self._matcher.copies(sites, self._matcher.natural_loops(place))
            per_iteration = {
                anchor: n
                for anchor, n in self._amounts_per_iteration(sites).items()
                if self.keys[anchor][1] in OPERATIONS.values()
            }
            for node, block in enumerate(nodes.blocks):
                for anchor, amount in per_iteration.items() if block in copies and block not in loop_blocks else ():
                    missing = copies[block] * amount - self.unconditional[node, anchor] - self.predicated[node, anchor]
                    if missing > 0:
                        self.predicated[node, anchor] += missing
                        self.price[node, anchor] = PREDICATED_COST_SHARE * self.weights[anchor]

    def _amounts_per_iteration(self, sites: Sequence[int]) -> dict[int, float]:
        """Return, by feature emitted by exactly one statement list of a loop, its amount per iteration."""
        amounts: dict[int, float] = defaultdict(float)
        excluded = set[int]()
        for site, tokens in self.events.items():
            for token in tokens:
                if site < 0:
                    loop, in_loop = -1 - site, True
                elif site in self.source.statements:
                    context = self.source.statements[site].context
                    loop, in_loop = context.site, context.arm == "body" and site not in self.source.deciding_arm
                else:
                    loop, in_loop = -1, False
                if not in_loop or loop not in sites or self.keys[token.feature][1] == CODE:
                    excluded.add(token.feature)
                elif loop == sites[0]:
                    amounts[token.feature] += token.amount
        return {anchor: n for anchor, n in amounts.items() if anchor not in excluded}

    def is_executed(self, feature: int) -> bool:
        """Return whether a feature is an effect, operation, slow path or condition test, not subject to code motion."""
        return self.keys[feature][1] not in (CODE, ITERATION, *ARMS)

    def _spans(self) -> npt.NDArray[np.int32]:
        """Return the events each node may match: several times its capacity, as other blocks' events are interleaved."""
        smallest = np.ones(max(len(self.keys), 1), np.float32)
        for events in self.events.values():
            for event in events:
                smallest[event.feature] = min(smallest[event.feature], event.amount)
        capacity = np.minimum(self.unconditional + self.predicated, 64) / smallest
        return np.asarray(32 + 6 * capacity.sum(axis=1), np.int32)
