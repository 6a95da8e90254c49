"""Matching of compiled loops with source loops, and the number of iterations in each block."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .branch_arms import BranchArms
from .conditions import Conditions
from .control_flow import Graph, Loop, is_conditional
from .iteration_votes import BlockCopies, Key, most_agreed
from .loop_counters import blocks_of_every_trip, counter_step, iterations, source_step
from .opcode_classes import EFFECTS, EXPANDED, OPERATIONS, access_width
from .source_statements import Place, SourceStatements, Statement
from .special_operand_paths import slow_path_divisions, special_operand_edges
from .unrolled_loops import LoopRegion, RegionCounts, UnrollingPaths, executions, region


@dataclass(frozen=True)
class LoopMatch:
    """A source loop with its inlined and unrolled instances, and its compiled regions. evenly_split: whether instances
    in an unrolled loop are assumed to be entered equally often."""

    place: Place
    sites: tuple[int, ...]
    regions: tuple[LoopRegion, ...]
    stages: tuple[RegionCounts | None, ...]
    evenly_split: bool


class LoopMatcher:
    """Loop matching of one kernel. places: source location by instruction."""

    def __init__(self, graph: Graph, places: Sequence[Place], source: SourceStatements) -> None:
        self.graph, self.places, self.source = graph, places, source
        self.sites_by_place: dict[Place, list[int]] = defaultdict(list)
        for site in source.loops:
            self.sites_by_place[source.statements[site].place].append(site)
        self.place_by_header = {loop.header: self._place_of_loop(loop) for loop in graph.loops}
        self.graph = replace(graph, merged_headers=self._merged_headers())

    @cached_property
    def expanded(self) -> frozenset[Place]:
        """Locations of operations with compiler-dependent expansions."""
        return frozenset(one.place for one in self.source.statements.values() if EXPANDED & one.site.costs.keys())

    @cached_property
    def loops(self) -> list[LoopMatch]:
        """Matched loops, outer ones first."""
        matches: dict[Place, LoopMatch] = {}
        for place, sites in sorted(self.sites_by_place.items(), key=lambda one: one[1][0]):
            if any(site in self.source.decisions.sites for site in sites):
                match = self._match(place, tuple(sites), matches)
                if match is not None:
                    matches[place] = match
        return list(matches.values())

    @cached_property
    def conditions(self) -> Conditions:
        """Blocks after tests of compound conditions."""
        return Conditions(self.graph, self.places, self.source)

    @cached_property
    def arms(self) -> BranchArms:
        """First blocks of branch arms."""
        return BranchArms(self.conditions, {loop: self.place_by_header[loop.header] for loop in self.graph.loops})

    @cached_property
    def special_edges(self) -> frozenset[tuple[int, int]]:
        """Edges for special operands only, in callees and in inline expansions without a source branch."""
        branching = {one.place for one in self.source.statements.values() if one.site.kind == "branch"}
        written_out = self.expanded - branching
        blocks = [
            block for block, span in enumerate(self.graph.blocks) if all(self.places[n] in written_out for n in range(*span))
        ]  # fmt: skip
        ends = [block for block, (_, past) in enumerate(self.graph.blocks) if self.places[past - 1] in written_out]
        return special_operand_edges(self.graph, {*blocks, *ends})

    @cached_property
    def slow_path_divisions(self) -> dict[int, list[tuple[int, int]]]:
        """`slow_path_divisions` of the kernel."""
        return slow_path_divisions(self.graph, self.places, self.source)

    @cached_property
    def narrow_divisions(self) -> frozenset[int]:
        """Blocks with a 32-bit division next to a 64-bit call, without recorded decisions."""
        called = {
            edge.source
            for edge in self.graph.edges
            if edge.kind == "call" and edge.target in self.graph.long_division_callees
        }
        return frozenset() if called <= self.slow_path_divisions.keys() else self.graph.narrow_divisions

    @cached_property
    def unused_slow_calls(self) -> frozenset[int]:
        """Blocks with a slow-path call that no lane executed."""
        return frozenset(
            block
            for block, divisions in self.slow_path_divisions.items()
            if not any(self.source.slow_path_counts(*one)[0] for one in divisions)
        )

    # -------------------------------------------------------------- loops
    def _place_of_loop(self, loop: Loop) -> Place | None:
        """Return the location of a natural loop's source loop: of its last test, or of most of its instructions."""
        for latch in loop.latches:
            tested = self.places[self.graph.blocks[latch][1] - 1]
            if tested in self.sites_by_place:
                return tested
        inner = frozenset().union(*(other.body for other in self.graph.loops if other.body < loop.body))
        votes: Counter[Place] = Counter()
        for block in loop.body - inner:
            for n in range(*self.graph.blocks[block]):
                for place in {self.source.enclosing_loop(s) for s in self.source.by_place.get(self.places[n], ())}:
                    if place is not None:
                        votes[place] += 1
        return max(votes, key=lambda place: votes[place], default=None)

    def _merged_headers(self) -> frozenset[int]:
        """Return headers of inner loops whose trips are iterations of the outer one: `continue` edges with separate
        back edges."""
        result = set()
        for n, loop in enumerate(self.graph.loops):
            outer = next((one for one in self.graph.loops[n + 1 :] if loop.body < one.body), None)
            if outer is not None and self.graph.enters_directly(outer, loop):
                place = self.place_by_header[loop.header]
                if place is not None and place == self.place_by_header[outer.header]:
                    result.add(loop.header)
        return frozenset(result)

    @cached_property
    def hoisted_loads(self) -> frozenset[int]:
        """Loads moved out of a loop without other code of its iterations."""
        result = set[int]()
        for place, sites in self.sites_by_place.items():
            trip_blocks = self.loop_blocks(place)
            own_places = {
                one
                for one, statements in self.source.by_place.items()
                if all(each.context.is_inside(sites) and each.number not in self.source.loops for each in statements)
            }
            shared = ("global", "shared", "constant")
            loading_places = {
                one
                for one in own_places
                if any(each.site.kind.startswith(shared) for each in self.source.by_place[one])
            }
            inside, outside = set[Place](), set[Place]()
            for block, span in enumerate(self.graph.blocks):
                (inside if block in trip_blocks else outside).update(self.places[n] for n in range(*span))
            if inside & (own_places - loading_places) and not outside & (own_places - loading_places):
                outside_spans = (span for block, span in enumerate(self.graph.blocks) if block not in trip_blocks)
                loads = (n for span in outside_spans for n in range(*span) if self.places[n] in loading_places)
                result |= {n for n in loads if EFFECTS.get(self.graph.instructions[n].opcode, "").endswith("load")}
        return frozenset(result)

    # -------------------------------------------------------------- iterations
    def natural_loops(self, place: Place) -> list[Loop]:
        """Return the compiled loops of a source loop."""
        return [loop for loop in self.graph.loops if self.place_by_header[loop.header] == place]

    def loop_blocks(self, place: Place) -> frozenset[int]:
        """Return the blocks of the compiled loops of a source loop."""
        return frozenset[int]().union(*(loop.body for loop in self.natural_loops(place)))

    def _match(self, place: Place, sites: tuple[int, ...], matches: dict[Place, LoopMatch]) -> LoopMatch | None:
        natural = self.natural_loops(place)
        copies, spare = self.copies(sites, natural)
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
        evenly_split = False
        sites_by_scope = self._within_scopes(sites, scopes)
        for header, blocks in scopes.items():
            scope = next((one for one in self.graph.loops if one.header == header), None)
            scope_sites = sites_by_scope.get(header, ())
            outer_match = matches.get(self._enclosing_place((scope_sites or sites)[0]) or ())
            repeated = (
                {sum(one.copies.values()) for one in outer_match.regions} if outer_match is not None else set[int]()
            )
            in_scope = [loop for loop in natural if len(scopes) == 1 or loop.body & blocks.keys()]
            instances = self._instances(blocks, in_scope, len(scope_sites), repeated) if scope_sites else None
            for number, block_copies in enumerate(instances or [blocks]):
                instance_count = len(instances or ())
                own_loops = (
                    [loop for loop in in_scope if loop.body & block_copies.keys()] if instance_count > 1 else in_scope
                )
                other_blocks = frozenset().union(*(loop.body for loop in natural if loop not in own_loops))
                region_found = region(self.graph, block_copies, own_loops, scope, guards - other_blocks, spare)
                regions.append(region_found)
                stage = None
                if instances is not None:
                    instance_sites = (
                        scope_sites[number : number + 1]
                        if instance_count > 1 and len(scope_sites) == instance_count
                        else scope_sites
                    )
                    share = 1.0 if instance_count == 1 or len(scope_sites) == instance_count else 1 / instance_count
                    evenly_split |= share < 1
                    loop_executions = [self.source.loop_executions(site) for site in instance_sites]
                    test_in_body = self._has_test_in_body(instance_sites[0], region_found)
                    if test_in_body:
                        loop_executions = [one.with_final_test for one in loop_executions]
                    stage = executions(UnrollingPaths(self.graph, region_found), loop_executions, share)
                    if stage is not None and not test_in_body:
                        stage = self._with_mid_exit(sites, region_found, natural, stage)
                stages.append(stage)
        return LoopMatch(place, sites, tuple(regions), tuple(stages), evenly_split)

    def test_in_body(self, place: Place) -> bool:
        """Return whether a loop's test is merged into its body, with an additional trip, and some lanes have no iteration."""
        match = next((one for one in self.loops if one.place == place), None)
        if match is None:
            return False
        in_body = all(self._has_test_in_body(match.sites[0], one) for one in match.regions)
        executions_of_sites = map(self.source.loop_executions, match.sites)
        return in_body and any(one.with_final_test is not one for one in executions_of_sites)

    def _within_scopes(
        self, sites: tuple[int, ...], scopes: Mapping[int | None, dict[int, int]]
    ) -> dict[int | None, tuple[int, ...]]:
        """Return, by enclosing compiled loop, the loop's instances there; empty if not all are known."""
        if len(scopes) == 1:
            return dict.fromkeys(scopes, sites)
        result: dict[int | None, tuple[int, ...]] = {}
        for header in scopes:
            place = None if header is None else self.place_by_header[header]
            result[header] = tuple(site for site in sites if self._enclosing_place(site) == place)
        complete = all(result.values()) and sum(map(len, result.values())) == len(sites)
        return result if complete else {}

    def _has_test_in_body(self, site: int, region_found: LoopRegion) -> bool:
        """Return whether lanes without iterations enter the loop's body too, as no test precedes it."""
        predecessor = self.graph.dominators[region_found.entry]
        if (
            region_found.copies.get(region_found.entry) != 1
            or predecessor is None
            or self.graph.successors[predecessor] != (region_found.entry,)
        ):
            return False
        outer = self.source.statements[site].context
        places = {self.places[n] for n in range(*self.graph.blocks[predecessor])}
        return any(one.context is outer for place in places for one in self.source.by_place.get(place, ()))

    def _enclosing_place(self, site: int) -> Place | None:
        """Return the location of the loop around a loop."""
        loop = self.source.statements[site].context.loop
        return None if loop is None else self.source.statements[loop.site].place

    def _instances(
        self, copies: dict[int, int], natural: list[Loop], sites: int, unrolled: set[int]
    ) -> list[dict[int, int]] | None:
        """Split copies by inlined call or by iteration of an unrolled outer loop; all together if they share one loop;
        None if unclear. unrolled: iterations of the outer loop in unrolled form."""
        looped = Counter(
            sum(n for block, n in copies.items() if block in loop.body)
            for loop in natural
            if not any(other.body < loop.body for other in natural)
        )
        if max(looped.values(), default=1) == 1:
            return [copies]
        repeated = min(n for n in looped.values() if n > 1)
        ordered, copies_each = sorted(copies), len(copies) // max(sites, repeated)
        instances = [
            {block: copies[block] for block in ordered[n : n + copies_each]}
            for n in range(0, len(ordered), copies_each or 1)
        ]
        equal = len(instances) == sites or (sites == 1 and len(instances) in unrolled)
        equal &= all([*part.values()] == [*instances[0].values()] for part in instances)
        return instances if equal else None

    def _with_mid_exit(
        self, sites: tuple[int, ...], region_found: LoopRegion, natural: list[Loop], stage: RegionCounts
    ) -> RegionCounts:
        """Correct the counts of a compiled loop that starts after an exit in the middle of the source loop's body."""
        place = self._mid_exit_place(sites, region_found.copies, natural)
        executed = None if place is None else self._own_executions(sites, place)
        if executed is None:
            return stage
        threads, warps = executed
        return RegionCounts(
            dict.fromkeys(region_found.copies, threads),
            dict.fromkeys(region_found.copies, warps),
            stage.entries,
            stage.divergences,
            frozenset(region_found.copies),
        )

    def _mid_exit_place(self, sites: Sequence[int], copies: Mapping[int, int], natural: Sequence[Loop]) -> Place | None:
        """Return a location in the body executed as often as most instructions of its blocks."""
        if len(natural) != 1 or set(copies.values()) != {1} or not copies.keys() <= natural[0].body:
            return None
        votes: Counter[tuple[int, int]] = Counter()
        places = dict[tuple[int, int], Place]()
        for block in copies:
            for n in range(*self.graph.blocks[block]):
                own = self._own_executions(sites, self.places[n])
                if own is not None:
                    votes[own] += 1
                    places.setdefault(own, self.places[n])
        return places[max(votes, key=lambda vote: (votes[vote], vote))] if votes else None

    def mid_exit_statements(
        self, sites: Sequence[int], copies: Mapping[int, int], natural: Sequence[Loop]
    ) -> dict[int, int]:
        """Return, by instance of a loop with a mid-body exit, the statement executed as often as the compiled loop's trips."""
        place = self._mid_exit_place(sites, copies, natural)
        result = dict[int, int]()
        for statement in self.source.by_place.get(place, ()) if place is not None else ():
            if (
                statement.context.site in sites
                and statement.lanes < self.source.loop_executions(statement.context.site).total_iterations
            ):
                result.setdefault(statement.context.site, statement.number)
        return result

    def _own_executions(self, sites: Sequence[int], place: Place) -> tuple[int, int] | None:
        """Return thread and warp executions of a body's own code at a location, if unique."""
        by_site: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for statement in self.source.by_place.get(place, ()):
            if (
                statement.context.site in sites
                and statement.context.arm == "body"
                and statement.site.kind not in ("branch", "control")
            ):
                by_site[statement.context.site].add((statement.lanes, statement.warps))
            elif statement.context.site not in sites:
                return None
        if not by_site or any(len(each) > 1 for each in by_site.values()):
            return None
        executions_by_site = [next(iter(each)) for each in by_site.values()]
        return sum(lanes for lanes, _ in executions_by_site), sum(warps for _, warps in executions_by_site)

    def copies(self, sites: Sequence[int], natural: list[Loop]) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
        """Return iterations by block, unconditional and by predicate; without evidence, by the loop counter's step."""
        copies, spare = self._copies_by_effects(sites[0], natural)
        for loop in natural:
            in_loop = sum(n for block, n in copies.items() if block in loop.body)
            step = self._step_copies(sites[0], loop)
            if not in_loop:
                # After a compound test an iteration may start within the compiled loop.
                starts = self._iteration_starts(sites, loop, step or 1) if self._has_branching_test(sites) else []
                copies |= dict.fromkeys(starts, 1) if starts else {loop.header: step or 1}
            elif step and step > in_loop and (starts := self._iteration_starts(sites, loop, step)):
                copies = {block: n for block, n in copies.items() if block not in loop.body} | dict.fromkeys(starts, 1)
        return copies, spare

    def iteration_starts(self, place: Place) -> dict[int, list[int]]:
        """Return, by header of an unrolled loop, the first block of each iteration, if they are distinct."""
        natural, sites = self.natural_loops(place), self.sites_by_place[place]
        copies, _ = self.copies(sites, natural)
        result = {}
        for loop in natural:
            in_loop = sum(n for block, n in copies.items() if block in loop.body)
            starts = self._iteration_starts(sites, loop, in_loop) if in_loop > 1 else []
            if starts:
                result[loop.header] = starts
        return result

    def _has_branching_test(self, sites: Sequence[int]) -> bool:
        """Return whether a loop's test has short-circuit conditions."""
        return any(
            one.site.kind == "branch" and one.context.arm == "test" and one.context.site in sites
            for one in self.source.statements.values()
        )

    def iteration_start_before(self, block: int, sites: Sequence[int]) -> int:
        """Return the first block of a peeled iteration with a given block: the nearest dominator with code of every iteration."""
        current: int | None = block
        enclosing = self.graph.enclosing_loops(block)
        while current is not None and self.graph.enclosing_loops(current) == enclosing:
            if any(self._is_in_every_iteration(self.places[n], sites) for n in range(*self.graph.blocks[current])):
                return current
            current = self.graph.dominators[current]
        return block

    def _is_in_every_iteration(self, place: Place, sites: Sequence[int]) -> bool:
        """Return whether a location's statements execute exactly once per iteration."""
        statements = self.source.by_place.get(place, ())
        only_loop = all(one.context.site in sites and one.context.arm == "body" for one in statements)
        return bool(statements) and only_loop and not any(one.number in self.source.deciding_arm for one in statements)

    def _iteration_starts(self, sites: Sequence[int], loop: Loop, iterations: int) -> list[int]:
        """Return the blocks where iterations start: those with most locations executed once per iteration; none if unclear."""
        trip_blocks, votes = blocks_of_every_trip(self.graph, loop), Counter[tuple[int, ...]]()
        for place in self.source.by_place:
            if self._is_in_every_iteration(place, sites):
                holding = tuple(
                    b for b in trip_blocks if any(self.places[n] == place for n in range(*self.graph.blocks[b]))
                )
                if len(holding) == iterations:
                    votes[holding] += 1
        best = max(votes, key=lambda one: (votes[one], [-block for block in one])) if votes else ()
        return list(best)

    def _amounts_per_iteration(self, site: int) -> tuple[dict[Key, float], dict[Key, float]]:
        """Return effects and operations of an iteration: unconditional, and in arms, possibly predicated."""
        direct: dict[Key, float] = defaultdict(float)
        arms: dict[Key, float] = defaultdict(float)
        for statement in self.source.statements.values():
            loop = statement.context.loop
            if loop is None or statement.number in self.source.loops or (loop.site, loop.arm) != (site, "body"):
                continue
            for key, n in self.statement_amounts(statement).items():
                (direct if statement.context is loop else arms)[key] += n
        return direct, arms

    def _amounts_by_block(
        self, direct: Mapping[Key, float], arms: Mapping[Key, float]
    ) -> dict[int, dict[Key, dict[str, float]]]:
        """Return effects and operations of an iteration by block, key and predicate."""
        result: dict[int, dict[Key, dict[str, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
        for block, (first, past) in enumerate(self.graph.blocks):
            for n in range(first, past):
                predicate = self.graph.instructions[n].predicate
                for key, width in self.instruction_amounts(n).items():
                    if key in direct and key not in arms:
                        result[block][key][predicate] += width
                    elif (key in arms and (not predicate or key not in direct)) or (key in direct and not predicate):
                        result[block][key][""] += width
        return result

    def _copies_by_effects(self, site: int, natural: list[Loop]) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
        """Return iterations by block from effects and operations executed once per iteration; unconditional, and by predicate."""
        direct, arms = self._amounts_per_iteration(site)
        per_iteration = {**arms, **direct}  # arms repeat what is there
        per_block = self._amounts_by_block(direct, arms)
        by_loop: dict[Loop | None, dict[Key, dict[int, BlockCopies]]] = defaultdict(lambda: defaultdict(dict))
        for block, amounts_in_block in per_block.items():
            if not self._is_in_every_trip(block, natural) or (block and self.graph.dominators[block] is None):
                continue
            enclosing = next((loop for loop in self.graph.enclosing_loops(block) if loop in natural), None)
            for key, by_predicate in amounts_in_block.items():
                if all(n % per_iteration[key] == 0 for n in by_predicate.values()):
                    copies = {predicate: int(n / per_iteration[key]) for predicate, n in by_predicate.items()}
                    by_loop[enclosing][key][block] = copies.pop("", 0), tuple(copies.values())
        inside = frozenset[int]().union(*(loop.body for loop in natural))
        keys_inside = {key for block in inside & per_block.keys() for key in per_block[block]}
        if keys_inside and None in by_loop:  # code sunk behind the loop is no iteration
            by_loop[None] = {key: copies for key, copies in by_loop[None].items() if key in keys_inside}
        result: dict[int, BlockCopies] = {}
        chosen: Counter[Key] = Counter()
        for enclosing in sorted((loop for loop, copies in by_loop.items() if copies), key=lambda loop: loop is None):
            step = 0 if enclosing is None else self._step_copies(site, enclosing) or -1
            result |= most_agreed(by_loop[enclosing], direct.keys(), chosen, step)
        return {block: n for block, (n, _) in result.items()}, {block: n for block, (_, n) in result.items() if n}

    def _is_in_every_trip(self, block: int, natural: list[Loop]) -> bool:
        """Return whether a block is in every trip of its compiled loop, and in no other inner loop."""
        enclosing = self.graph.enclosing_loops(block)
        if enclosing and enclosing[0] in natural:
            return all(self.graph.dominates(block, latch) for latch in enclosing[0].latches)
        return not any(loop in natural for loop in enclosing)

    def _step_copies(self, site: int, loop: Loop) -> int:
        """Return iterations per trip by the loop counter's step; 0 if unknown."""
        amount = counter_step(self.graph, loop)
        return iterations(amount, source_step(self.source.loops[site])) if amount else 0

    def instruction_amounts(self, n: int) -> dict[Key, float]:
        """Return the amount of each feature of an instruction."""
        instruction, place = self.graph.instructions[n], self.places[n]
        kind = EFFECTS.get(instruction.opcode)
        if n in self.hoisted_loads:
            return {}
        if kind is not None:
            return {(place, kind): 4 if kind == "shuffle" else access_width(instruction) if "_" in kind else 1}
        name = OPERATIONS.get(instruction.opcode)
        return {} if name is None or place in self.expanded else {(place, name): 1}

    def statement_amounts(self, statement: Statement) -> dict[Key, float]:
        """Return bytes of a statement's effect and operations by class, except expanded ones."""
        amounts: dict[Key, float] = {}
        if statement.site.kind in EFFECTS.values():
            amounts[statement.place, statement.site.kind] = max(statement.site.size, 1)
        if statement.place not in self.expanded:
            costs = statement.site.costs.items()
            amounts |= {(statement.place, name): n for name, n in costs if name in OPERATIONS.values()}
        return amounts
