"""Which loop of the source a compiled loop is, and how many of its iterations a block holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .branch_arms import BranchArms
from .conditions import Conditions
from .control_flow import Graph, Loop, is_conditional
from .loop_counters import blocks_of_every_trip, counter_step, iterations, source_step
from .opcode_classes import EFFECTS, EXPANDED, OPERATIONS, access_width
from .source_statements import Place, SourceStatements, Statement
from .special_operand_paths import special_operand_edges
from .unrolled_loops import LoopRegion, RegionCounts, UnrollingPaths, executions, region

Key = tuple[Place, str]
"""A place, and a kind of effect or class of operations there."""
Held = tuple[int, tuple[int, ...]]
"""Iterations of a block that every lane makes, and those by predicate."""


@dataclass(frozen=True)
class LoopMatch:
    """One loop of the source, all its inlined and unrolled instances together, and where the compiled kernel has it.

    even: whether the instances of a loop inside an unrolled one are taken to be entered alike.
    """

    place: Place
    sites: tuple[int, ...]
    regions: tuple[LoopRegion, ...]
    stages: tuple[RegionCounts | None, ...]
    even: bool


class LoopMatcher:
    """Blocks of a graph beside loops of the source. places: of each instruction."""

    def __init__(self, graph: Graph, places: Sequence[Place], source: SourceStatements) -> None:
        self.graph, self.places, self.source = graph, places, source
        self.sites_by_place: dict[Place, list[int]] = defaultdict(list)
        for site in source.loops:
            self.sites_by_place[source.statements[site].place].append(site)
        self.place_by_header = {loop.header: self._loop_of(loop) for loop in graph.loops}
        self.graph = replace(graph, merged_headers=self._joined())

    @cached_property
    def expanded(self) -> frozenset[Place]:
        """Places of operations that a compiler makes of others: how many is up to it."""
        return frozenset(one.place for one in self.source.statements.values() if EXPANDED & one.site.costs.keys())

    @cached_property
    def loops(self) -> list[LoopMatch]:
        """Loops that could be matched, outer ones first."""
        found: dict[Place, LoopMatch] = {}
        for place, sites in sorted(self.sites_by_place.items(), key=lambda one: one[1][0]):
            if any(site in self.source.decisions.sites for site in sites):
                match = self._match(place, tuple(sites), found)
                if match is not None:
                    found[place] = match
        return list(found.values())

    @cached_property
    def conditions(self) -> Conditions:
        """Blocks behind tests of conditions that branches are made of."""
        return Conditions(self.graph, self.places, self.source)

    @cached_property
    def arms(self) -> BranchArms:
        """Where arms of branches begin."""
        return BranchArms(self.conditions, {loop: self.place_by_header[loop.header] for loop in self.graph.loops})

    @cached_property
    def rare(self) -> frozenset[tuple[int, int]]:
        """Ways from a block to another that operations go for special operands only: in callees, and where one is written out and
        the source has no branch."""
        branching = {one.place for one in self.source.statements.values() if one.site.kind == "branch"}
        written_out = self.expanded - branching
        blocks = [
            block for block, span in enumerate(self.graph.blocks) if all(self.places[n] in written_out for n in range(*span))
        ]  # fmt: skip
        ends = [block for block, (_, past) in enumerate(self.graph.blocks) if self.places[past - 1] in written_out]
        return special_operand_edges(self.graph, {*blocks, *ends})

    @cached_property
    def slow(self) -> dict[int, list[tuple[int, int]]]:
        """By block that ends in the call of a slow path, the divisions and roots that it may be for: statements, and which of theirs.
        As many calls at a place as it has divisions, or so many for each, come in the order of these."""
        calls: dict[tuple[Place, bool], list[int]] = defaultdict(list)
        for edge in self.graph.edges:
            if edge.kind == "call":
                place = self.places[self.graph.blocks[edge.source][1] - 1]
                calls[place, edge.target in self.graph.long_division_callees].append(edge.source)
        divisions: dict[tuple[Place, bool], list[tuple[int, int]]] = defaultdict(list)
        for number, each in sorted(self.source.slow_divisions.items()):
            one = self.source.statements[number]
            for n, long in enumerate(each if one.lanes else ()):
                divisions[one.place, long].append((number, n))
        elsewhere = {(place[0], long) for place, long in divisions.keys() - calls.keys()}
        found = {}
        for place, long in list(calls):
            at = {(place, long)}
            if (place[0], long) in elsewhere:  # the compiler gives what is inlined the line of another call at times
                at = {(one, which) for one, which in divisions if (one[0], which) == (place[0], long)} | at
            mine = sorted(one for key in at for one in divisions.get(key, ()))
            blocks = sorted(block for key in at for block in calls.get(key, ()))
            noted = all(number in self.source.decisions.sites for number, _ in mine)
            for n, block in enumerate(blocks):
                if mine and noted:
                    alone = len(blocks) % len(mine) == 0
                    found[block] = [mine[n % len(mine)]] if alone else mine
        return found

    @cached_property
    def narrow_divisions(self) -> frozenset[int]:
        """Blocks that divide 32 bits beside a call that divides 64, of which nothing tells which one lanes take."""
        called = {
            edge.source
            for edge in self.graph.edges
            if edge.kind == "call" and edge.target in self.graph.long_division_callees
        }
        return frozenset() if called <= self.slow.keys() else self.graph.narrow_divisions

    @cached_property
    def unused_slow_calls(self) -> frozenset[int]:
        """Blocks that end in the call of a slow path which no lane took."""
        return frozenset(
            block
            for block, divisions in self.slow.items()
            if not any(self.source.slow_path_counts(*one)[0] for one in divisions)
        )

    # -------------------------------------------------------------- which loop
    def _loop_of(self, loop: Loop) -> Place | None:
        """The place of the source's loop that a natural loop is: that of its last test, or of most of its instructions."""
        for latch in loop.latches:
            tested = self.places[self.graph.blocks[latch][1] - 1]
            if tested in self.sites_by_place:
                return tested
        inner = frozenset().union(*(other.body for other in self.graph.loops if other.body < loop.body))
        votes: Counter[Place] = Counter()
        for block in loop.body - inner:
            for n in range(*self.graph.blocks[block]):
                for place in {self.source.loop_of(s) for s in self.source.by_place.get(self.places[n], ())}:
                    if place is not None:
                        votes[place] += 1
        return max(votes, key=lambda place: votes[place], default=None)

    def _joined(self) -> frozenset[int]:
        """Headers of natural loops whose turns are turns of the one around them: lanes that go on with the next iteration from
        several places of the source jump back each by themselves, to where no more has to be done than there."""
        found = set()
        for n, loop in enumerate(self.graph.loops):
            around = next((one for one in self.graph.loops[n + 1 :] if loop.body < one.body), None)
            if around is not None and self.graph.enters_directly(around, loop):
                place = self.place_by_header[loop.header]
                if place is not None and place == self.place_by_header[around.header]:
                    found.add(loop.header)
        return frozenset(found)

    @cached_property
    def hoisted(self) -> frozenset[int]:
        """Loads that were taken out of a loop: they lie outside, and no more of an iteration does."""
        found = set[int]()
        for place, sites in self.sites_by_place.items():
            turning = self.loop_blocks(place)
            own = {
                one
                for one, statements in self.source.by_place.items()
                if all(each.context.lies_in(sites) and each.number not in self.source.loops for each in statements)
            }
            shared = ("global", "shared", "constant")
            loaded = {
                one for one in own if any(each.site.kind.startswith(shared) for each in self.source.by_place[one])
            }
            inside, outside = set[Place](), set[Place]()
            for block, span in enumerate(self.graph.blocks):
                (inside if block in turning else outside).update(self.places[n] for n in range(*span))
            if inside & (own - loaded) and not outside & (own - loaded):
                apart = (span for block, span in enumerate(self.graph.blocks) if block not in turning)
                loads = (n for span in apart for n in range(*span) if self.places[n] in loaded)
                found |= {n for n in loads if EFFECTS.get(self.graph.instructions[n].opcode, "").endswith("load")}
        return frozenset(found)

    # -------------------------------------------------------------- how many iterations
    def natural_loops(self, place: Place) -> list[Loop]:
        """The compiled loops that a loop of the source is."""
        return [loop for loop in self.graph.loops if self.place_by_header[loop.header] == place]

    def loop_blocks(self, place: Place) -> frozenset[int]:
        """The blocks of these."""
        return frozenset[int]().union(*(loop.body for loop in self.natural_loops(place)))

    def _match(self, place: Place, sites: tuple[int, ...], known: dict[Place, LoopMatch]) -> LoopMatch | None:
        mine = self.natural_loops(place)
        copies, spare = self.copies(sites, mine)
        if not copies:
            return None
        scopes: dict[int | None, dict[int, int]] = defaultdict(dict)
        for block, n in copies.items():
            outer = next(
                (one for one in self.graph.enclosing_loops(block) if self.place_by_header[one.header] != place), None
            )
            scopes[outer.header if outer is not None else None][block] = n
        guards = frozenset(
            block
            for block, (_, past) in enumerate(self.graph.blocks)
            if self.places[past - 1] == place and is_conditional(self.graph.instructions[past - 1])
        )
        regions: list[LoopRegion] = []
        stages: list[RegionCounts | None] = []
        even = False
        within = self._within_scopes(sites, scopes)
        for header, blocks in scopes.items():
            scope = next((one for one in self.graph.loops if one.header == header), None)
            these = within.get(header, ())
            around = known.get(self._around((these or sites)[0]) or ())
            repeated = {sum(one.copies.values()) for one in around.regions} if around is not None else set[int]()
            here = [loop for loop in mine if len(scopes) == 1 or loop.body & blocks.keys()]
            instances = self._instances(blocks, here, len(these), repeated) if these else None
            for number, each in enumerate(instances or [blocks]):
                several = len(instances or ())
                own = [loop for loop in here if loop.body & each.keys()] if several > 1 else here
                apart = frozenset().union(*(loop.body for loop in mine if loop not in own))
                found = region(self.graph, each, own, scope, guards - apart, spare)
                regions.append(found)
                stage = None
                if instances is not None:
                    whose = these[number : number + 1] if several > 1 and len(these) == several else these
                    share = 1.0 if several == 1 or len(these) == several else 1 / several
                    even |= share < 1
                    turns = [self.source.turns(site) for site in whose]
                    tested = self._tests_inside(whose[0], found)
                    if tested:
                        turns = [one.with_final_test for one in turns]
                    stage = executions(UnrollingPaths(self.graph, found), turns, share)
                    if stage is not None and not tested:
                        stage = self._rotated(sites, found, mine, stage)
                stages.append(stage)
        return LoopMatch(place, sites, tuple(regions), tuple(stages), even)

    def test_in_body(self, place: Place) -> bool:
        """Whether the test of a loop has become a part of its body, which then turns once more, where some lanes make no iteration."""
        match = next((one for one in self.loops if one.place == place), None)
        if match is None:
            return False
        inside = all(self._tests_inside(match.sites[0], one) for one in match.regions)
        turns = map(self.source.turns, match.sites)
        return inside and any(one.with_final_test is not one for one in turns)

    def _within_scopes(
        self, sites: tuple[int, ...], scopes: Mapping[int | None, dict[int, int]]
    ) -> dict[int | None, tuple[int, ...]]:
        """By the compiled loop around some of a loop's blocks, the instances of the loop that they are: all where all blocks lie in one;
        else those that lie in the loop of the source that it is, where that is known of all."""
        if len(scopes) == 1:
            return dict.fromkeys(scopes, sites)
        found: dict[int | None, tuple[int, ...]] = {}
        for header in scopes:
            place = None if header is None else self.place_by_header[header]
            found[header] = tuple(site for site in sites if self._around(site) == place)
        whole = all(found.values()) and sum(map(len, found.values())) == len(sites)
        return found if whole else {}

    def _tests_inside(self, site: int, found: LoopRegion) -> bool:
        """Whether lanes that make no iteration come to the loop's body too: no test stands before it, and what does is what
        the source has before the loop. What is tested has then become a part of the body, which turns once more."""
        before = self.graph.dominators[found.entry]
        if found.copies.get(found.entry) != 1 or before is None or self.graph.successors[before] != (found.entry,):
            return False
        outer = self.source.statements[site].context
        places = {self.places[n] for n in range(*self.graph.blocks[before])}
        return any(one.context is outer for place in places for one in self.source.by_place.get(place, ()))

    def _around(self, site: int) -> Place | None:
        """The place of the loop around a loop."""
        loop = self.source.statements[site].context.loop
        return None if loop is None else self.source.statements[loop.site].place

    def _instances(
        self, copies: dict[int, int], mine: list[Loop], sites: int, unrolled: set[int]
    ) -> list[dict[int, int]] | None:
        """The copies of each inlined call, or of each iteration of an unrolled loop around it, one after the other; or all
        together where they share one loop; None where it is not known which entries come to which. unrolled: iterations
        of the loop around it that are written out."""
        looped = Counter(
            sum(n for block, n in copies.items() if block in loop.body)
            for loop in mine
            if not any(other.body < loop.body for other in mine)
        )
        if max(looped.values(), default=1) == 1:
            return [copies]
        repeated = min(n for n in looped.values() if n > 1)
        ordered, each = sorted(copies), len(copies) // max(sites, repeated)
        parts = [{block: copies[block] for block in ordered[n : n + each]} for n in range(0, len(ordered), each or 1)]
        same = len(parts) == sites or (sites == 1 and len(parts) in unrolled)
        same &= all([*part.values()] == [*parts[0].values()] for part in parts)
        return parts if same else None

    def _rotated(
        self, sites: tuple[int, ...], found: LoopRegion, mine: list[Loop], stage: RegionCounts
    ) -> RegionCounts:
        """Where a loop is left in its middle, a compiled loop that is not unrolled may begin after that: it then turns as
        often as what follows is executed, which is what its blocks hold."""
        place = self._turning(sites, found.copies, mine)
        executed = None if place is None else self._own(sites, place)
        if executed is None:
            return stage
        threads, warps = executed
        return RegionCounts(
            dict.fromkeys(found.copies, threads),
            dict.fromkeys(found.copies, warps),
            stage.entries,
            stage.parted,
            frozenset(found.copies),
        )

    def _turning(self, sites: Sequence[int], copies: Mapping[int, int], mine: Sequence[Loop]) -> Place | None:
        """The place of what a loop's body does itself that is executed as often as most of the blocks' instructions which hold its
        iterations, one each."""
        if len(mine) != 1 or set(copies.values()) != {1} or not copies.keys() <= mine[0].body:
            return None
        votes: Counter[tuple[int, int]] = Counter()
        places = dict[tuple[int, int], Place]()
        for block in copies:
            for n in range(*self.graph.blocks[block]):
                each = self._own(sites, self.places[n])
                if each is not None:
                    votes[each] += 1
                    places.setdefault(each, self.places[n])
        return places[max(votes, key=lambda vote: (votes[vote], vote))] if votes else None

    def mid_exit_statements(
        self, sites: Sequence[int], copies: Mapping[int, int], mine: Sequence[Loop]
    ) -> dict[int, int]:
        """By instance of a loop that is left in its middle, the statement behind that which is executed as often as its compiled loop
        turns."""
        place = self._turning(sites, copies, mine)
        found = dict[int, int]()
        for one in self.source.by_place.get(place, ()) if place is not None else ():
            if one.context.site in sites and one.lanes < self.source.turns(one.context.site).began:
                found.setdefault(one.context.site, one.number)
        return found

    def _own(self, sites: Sequence[int], place: Place) -> tuple[int, int] | None:
        """Executions, by threads and warps, of what a loop's body does itself at a place, where that is one number."""
        mine: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for one in self.source.by_place.get(place, ()):
            if one.context.site in sites and one.context.arm == "body" and one.site.kind not in ("branch", "control"):
                mine[one.context.site].add((one.lanes, one.warps))
            elif one.context.site not in sites:
                return None
        if not mine or any(len(each) > 1 for each in mine.values()):
            return None
        every = [next(iter(each)) for each in mine.values()]
        return sum(lanes for lanes, _ in every), sum(warps for _, warps in every)

    def copies(self, sites: Sequence[int], mine: list[Loop]) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
        """Iterations by block, sure ones and predicated ones, of a loop's sites and the compiled loops it is. Of a compiled loop in
        which nothing tells, the step of its variable does."""
        copies, spare = self._repeated(sites[0], mine)
        for loop in mine:
            held = sum(n for block, n in copies.items() if block in loop.body)
            step = self._step_copies(sites[0], loop)
            if not held:
                # Behind a test of several conditions a turn may begin in the middle of the compiled loop.
                begun = self._begun(sites, loop, step or 1) if self._tests_branch(sites) else []
                copies |= dict.fromkeys(begun, 1) if begun else {loop.header: step or 1}
            elif step and step > held and (begun := self._begun(sites, loop, step)):
                copies = {block: n for block, n in copies.items() if block not in loop.body} | dict.fromkeys(begun, 1)
        return copies, spare

    def iterations(self, place: Place) -> dict[int, list[int]]:
        """By compiled loop of a loop of the source that is unrolled, the blocks in which one iteration each begins, where they can be
        told apart."""
        mine, sites = self.natural_loops(place), self.sites_by_place[place]
        copies, _ = self.copies(sites, mine)
        found = {}
        for loop in mine:
            held = sum(n for block, n in copies.items() if block in loop.body)
            begun = self._begun(sites, loop, held) if held > 1 else []
            if begun:
                found[loop.header] = begun
        return found

    def _tests_branch(self, sites: Sequence[int]) -> bool:
        """Whether the test of a loop has conditions that are looked at only after others."""
        return any(
            one.site.kind == "branch" and one.context.arm == "test" and one.context.site in sites
            for one in self.source.statements.values()
        )

    def iteration_start_before(self, block: int, sites: Sequence[int]) -> int:
        """Where an iteration outside of compiled loops begins of which a block shows something: in the nearest block before that has
        what every iteration executes, as what the block shows may lie in an arm."""
        at: int | None = block
        around = self.graph.enclosing_loops(block)
        while at is not None and self.graph.enclosing_loops(at) == around:
            if any(self._every_iteration(self.places[n], sites) for n in range(*self.graph.blocks[at])):
                return at
            at = self.graph.dominators[at]
        return block

    def _every_iteration(self, place: Place, sites: Sequence[int]) -> bool:
        """Whether every iteration of a loop executes the statements at a place once, and nothing else does."""
        statements = self.source.by_place.get(place, ())
        own = all(one.context.site in sites and one.context.arm == "body" for one in statements)
        return bool(statements) and own and not any(one.number in self.source.chosen for one in statements)

    def _begun(self, sites: Sequence[int], loop: Loop, iterations: int) -> list[int]:
        """The blocks of a compiled loop in which one each of so many iterations begins: as most places say of which every iteration
        executes the statements once, and which lie in just so many blocks; none where no place does."""
        every, votes = blocks_of_every_trip(self.graph, loop), Counter[tuple[int, ...]]()
        for place in self.source.by_place:
            if self._every_iteration(place, sites):
                holding = tuple(b for b in every if any(self.places[n] == place for n in range(*self.graph.blocks[b])))
                if len(holding) == iterations:
                    votes[holding] += 1
        most = max(votes, key=lambda one: (votes[one], [-block for block in one])) if votes else ()
        return list(most)

    def _repeated(self, site: int, mine: list[Loop]) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
        """Iterations by block, from effects and operations that every iteration has once; and those that are predicated, by
        predicate: which of them a lane makes is up to its turns."""
        direct: dict[Key, float] = defaultdict(float)
        arms: dict[Key, float] = defaultdict(float)  # they may have become predicated instructions
        for statement in self.source.statements.values():
            loop = statement.context.loop
            if (
                loop is not None
                and loop.site == site
                and loop.arm == "body"
                and statement.number not in self.source.loops
            ):
                for key, n in self.amounts(statement).items():
                    (direct if statement.context is loop else arms)[key] += n
        once = {**arms, **direct}  # what an arm repeats is there already
        per_block: dict[int, dict[Key, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
        for block, (first, past) in enumerate(self.graph.blocks):
            for n in range(first, past):
                for key, width in self.instruction_amounts(n).items():
                    if key in once:
                        predicate = self.graph.instructions[n].predicate
                        if not predicate or key not in direct:
                            per_block[block][key][""] += width
                        elif key not in arms:
                            per_block[block][key][predicate] += width
        parts: dict[Loop | None, dict[Key, dict[int, Held]]] = defaultdict(lambda: defaultdict(dict))
        for block, held in per_block.items():
            if not self._every_turn(block, mine) or (block and self.graph.dominators[block] is None):
                continue
            around = next((loop for loop in self.graph.enclosing_loops(block) if loop in mine), None)
            for key, by_predicate in held.items():
                if all(n % once[key] == 0 for n in by_predicate.values()):
                    held_there = {predicate: int(n / once[key]) for predicate, n in by_predicate.items()}
                    parts[around][key][block] = held_there.pop("", 0), tuple(held_there.values())
        inside = frozenset[int]().union(*(loop.body for loop in mine))
        turning = {key for block in inside & per_block.keys() for key in per_block[block]}
        if turning and None in parts:  # what no turn has was moved behind the loop: that is no iteration
            parts[None] = {key: held for key, held in parts[None].items() if key in turning}
        parts = {around: held for around, held in parts.items() if held}
        found: dict[int, Held] = {}
        chosen: Counter[Key] = Counter()
        for around in sorted(parts, key=lambda loop: loop is None):
            step = 0 if around is None else self._step_copies(site, around) or -1
            found |= _most_agreed(parts[around], direct.keys(), chosen, step)
        return {block: n for block, (n, _) in found.items()}, {block: n for block, (_, n) in found.items() if n}

    def _every_turn(self, block: int, mine: list[Loop]) -> bool:
        """Whether all turns of the compiled loop around a block lead through it, and no other loop inside."""
        around = self.graph.enclosing_loops(block)
        if around and around[0] in mine:
            return all(self.graph.dominates(block, latch) for latch in around[0].latches)
        return not any(loop in mine for loop in around)

    def _step_copies(self, site: int, loop: Loop) -> int:
        """Iterations of a turn, from the step of the loop's variable; 0 where none is seen."""
        amount = counter_step(self.graph, loop)
        return iterations(amount, source_step(self.source.loops[site])) if amount else 0

    def instruction_amounts(self, n: int) -> dict[Key, float]:
        """What an instruction moves or does, as `amounts` has it of a statement."""
        instruction, place = self.graph.instructions[n], self.places[n]
        kind = EFFECTS.get(instruction.opcode)
        if n in self.hoisted:
            return {}
        if kind is not None:
            return {(place, kind): 4 if kind == "shuffle" else access_width(instruction) if "_" in kind else 1}
        name = OPERATIONS.get(instruction.opcode)
        return {} if name is None or place in self.expanded else {(place, name): 1}

    def amounts(self, statement: Statement) -> dict[Key, float]:
        """Bytes that an effect moves, and operations by class, each with its place; of operations those that a compiler makes no
        others of."""
        found: dict[Key, float] = {}
        if statement.site.kind in EFFECTS.values():
            found[statement.place, statement.site.kind] = max(statement.site.size, 1)
        if statement.place not in self.expanded:
            costs = statement.site.costs.items()
            found |= {(statement.place, name): n for name, n in costs if name in OPERATIONS.values()}
        return found


def _most_agreed(
    held: dict[Key, dict[int, Held]], direct: Collection[Key], chosen: Counter[Key], step: int
) -> dict[int, Held]:
    """Iterations by block, sure and predicated ones, as one thing that every iteration has once lies in them: one of which there are as
    many as of most others; others of the same iterations may lie in other blocks. direct: what no arm has alone, which not every
    iteration may come to. chosen: what was taken elsewhere, and is taken again where it can be; step: iterations by the step of the
    loop's variable, which is one thing more, as a compiler may give what it joins the line of its neighbour; -1 where none is seen, and
    0 where not every turn leads through all of these blocks."""

    def total(key: Key) -> int:
        return sum(sure + sum(predicated) for sure, predicated in held[key].values())

    votes = Counter(map(total, held))
    most = max(votes, key=lambda n: (votes[n] + (n == step), n == step, n))
    agreed = [key for key in held if not step or total(key) == most]
    agreed = [key for key in agreed if key in direct] or agreed
    key = max(agreed, key=lambda key: (chosen[key], total(key), -min(held[key])))
    chosen[key] += 1
    return held[key]
