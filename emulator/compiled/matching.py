"""Which loop of the source a compiled loop is, and how many of its iterations a block holds."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..ir import nodes as ir
from .classes import EFFECTS, OPERATIONS, width_of
from .control_flow import Graph, Loop, conditional
from .source import Place, Source, Statement
from .stages import Region, Stage, Ways, executions, region

_STEP = re.compile(r"(?:IADD3|VIADD|UIADD3) (U?R\d+), (U?R\d+)(?:\.reuse)?, (-?0x[0-9a-f]+)")
_COPY = re.compile(r"(?:U?MOV|IMAD\.MOV\.U32) (U?R\d+), (?:RZ, RZ, )?(U?R\d+)$")
_WRITES = re.compile(r"[A-Z0-9_.]+ (U?R\d+),")


@dataclass(frozen=True)
class LoopMatch:
    """One loop of the source, all its inlined and unrolled instances together, and where the compiled kernel has it."""

    place: Place
    sites: tuple[int, ...]
    regions: tuple[Region, ...]
    stages: tuple[Stage | None, ...]


class Matcher:
    """Blocks of a graph beside loops of the source. places: of each instruction."""

    def __init__(self, graph: Graph, places: Sequence[Place], source: Source) -> None:
        self.graph, self.places, self.source = graph, places, source
        self.of_loop: dict[Place, list[int]] = defaultdict(list)
        for site in source.loops:
            self.of_loop[source.statements[site].place].append(site)
        self.of_natural = {loop.header: self._loop_of(loop) for loop in graph.loops}

    @cached_property
    def loops(self) -> list[LoopMatch]:
        """Loops that could be matched, outer ones first."""
        found: dict[Place, LoopMatch] = {}
        for place, sites in sorted(self.of_loop.items(), key=lambda one: one[1][0]):
            if any(site in self.source.decisions.sites for site in sites):
                match = self._match(place, tuple(sites), found)
                if match is not None:
                    found[place] = match
        return list(found.values())

    # -------------------------------------------------------------- which loop
    def _loop_of(self, loop: Loop) -> Place | None:
        """The place of the source's loop that a natural loop is: that of its last test, or of most of its instructions."""
        for latch in loop.latches:
            tested = self.places[self.graph.blocks[latch][1] - 1]
            if tested in self.of_loop:
                return tested
        inner = frozenset().union(*(other.body for other in self.graph.loops if other.body < loop.body))
        votes: Counter[Place] = Counter()
        for block in loop.body - inner:
            for n in range(*self.graph.blocks[block]):
                for place in {self._innermost(s) for s in self.source.by_place.get(self.places[n], ())}:
                    if place is not None:
                        votes[place] += 1
        return max(votes, key=lambda place: votes[place], default=None)

    def _innermost(self, statement: Statement) -> Place | None:
        if statement.number in self.source.loops:
            return statement.place
        loop = statement.context.loop
        return self.source.statements[loop.site].place if loop is not None else None

    # -------------------------------------------------------------- how many iterations
    def _match(self, place: Place, sites: tuple[int, ...], known: dict[Place, LoopMatch]) -> LoopMatch | None:
        mine = [loop for loop in self.graph.loops if self.of_natural[loop.header] == place]
        copies = self._copies(sites, mine)
        for loop in mine:
            if not any(block in copies for block in loop.body):
                copies[loop.header] = self._step_copies(sites[0], loop)
        if not copies:
            return None
        scopes: dict[int | None, dict[int, int]] = defaultdict(dict)
        for block, n in copies.items():
            outer = next((one for one in self.graph.around(block) if self.of_natural[one.header] != place), None)
            scopes[outer.header if outer is not None else None][block] = n
        guards = frozenset(
            block
            for block, (_, past) in enumerate(self.graph.blocks)
            if self.places[past - 1] == place and conditional(self.graph.instructions[past - 1])
        )
        turns = [self.source.turns(site) for site in sites]
        regions: list[Region] = []
        stages: list[Stage | None] = []
        for header, blocks in scopes.items():
            scope = next((one for one in self.graph.loops if one.header == header), None)
            found = region(self.graph, blocks, mine, scope, guards)
            regions.append(found)
            stage = executions(Ways(self.graph, found), turns, 1.0) if len(scopes) == 1 else None
            stages.append(stage if stage is None else self._rotated(sites, found, mine, stage))
        return LoopMatch(place, sites, tuple(regions), tuple(stages))

    def _rotated(self, sites: tuple[int, ...], found: Region, mine: list[Loop], stage: Stage) -> Stage:
        """Where a loop is left in its middle, a compiled loop that is not unrolled may begin after that: it then turns as
        often as what follows is executed, which is what its blocks hold."""
        if len(mine) != 1 or set(found.copies.values()) != {1} or not found.copies.keys() <= mine[0].body:
            return stage
        votes: Counter[tuple[int, int]] = Counter()
        for block in found.copies:
            for n in range(*self.graph.blocks[block]):
                each = self._own(sites, self.places[n])
                if each is not None:
                    votes[each] += 1
        if not votes:
            return stage
        threads, warps = max(votes, key=lambda vote: (votes[vote], vote))
        return Stage(
            dict.fromkeys(found.copies, threads), dict.fromkeys(found.copies, warps), stage.entries, stage.parted
        )

    def _own(self, sites: tuple[int, ...], place: Place) -> tuple[int, int] | None:
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

    def _copies(self, sites: tuple[int, ...], mine: list[Loop]) -> dict[int, int]:
        """Iterations by block, from effects and operations that every iteration has once."""
        site = sites[0]
        once: dict[tuple[Place, str], float] = defaultdict(float)
        body = [s for s in self.source.statements.values() if s.context.site == site and s.context.arm == "body"]
        for statement in body:
            for key, n in amounts(statement):
                once[key] += n
        per_block: dict[int, dict[tuple[Place, str], float]] = defaultdict(lambda: defaultdict(float))
        for block, (first, past) in enumerate(self.graph.blocks):
            for n in range(first, past):
                for key, width in self.amounts_of(n):
                    if key in once:
                        per_block[block][key] += width
        found = {}
        for block, held in per_block.items():
            if not self._every_turn(block, mine) or (block and self.graph.dominators[block] is None):
                continue
            votes: Counter[int] = Counter()
            for key, width in held.items():
                n = width / once[key]
                if n == int(n):
                    votes[int(n)] += 1
            if votes:
                found[block] = max(votes, key=lambda n: (votes[n], n))
        return found

    def _every_turn(self, block: int, mine: list[Loop]) -> bool:
        """Whether all turns of the compiled loop around a block lead through it, and no other loop inside."""
        around = self.graph.around(block)
        if around and around[0] in mine:
            return all(self.graph.dominates(block, latch) for latch in around[0].latches)
        return not any(loop in mine for loop in around)

    def _step_copies(self, site: int, loop: Loop) -> int:
        """Iterations of a turn, from the step of the loop's variable; 1 where none is seen."""
        source = self.source.loops[site]
        step = abs(source.step) if isinstance(source, ir.For) and isinstance(source.step, int) else 1
        moved = self._moved(loop)
        tested: list[str] = []
        for latch in loop.latches:
            first, past = self.graph.blocks[latch]
            predicate = self.graph.instructions[past - 1].predicate.lstrip("@!")
            for n in range(first, past - 1):
                text = self.graph.instructions[n].text
                if text.startswith(("ISETP", "UISETP")) and predicate and predicate in text.split(",")[0]:
                    tested = re.findall(r"U?R\d+", text)
        for register in tested:
            amount = abs(moved.get(register, 0))
            if amount:
                return amount // step if amount % step == 0 else amount
        return 1

    def _moved(self, loop: Loop) -> dict[str, int]:
        """By register, how much further it is after a turn, of those that every turn moves by a constant."""
        spine = [b for b in sorted(loop.body) if all(self.graph.dominates(b, latch) for latch in loop.latches)]
        value: dict[str, tuple[str, int] | None] = {}
        for block in spine:
            for n in range(*self.graph.blocks[block]):
                text = self.graph.instructions[n].text
                if copied := _COPY.match(text):
                    value[copied[1]] = value.get(copied[2], (copied[2], 0))
                elif stepped := _STEP.match(text):
                    base = value.get(stepped[2], (stepped[2], 0))
                    amount = int(stepped[3], 16)
                    amount -= 1 << 32 if amount >> 31 else 0
                    value[stepped[1]] = None if base is None else (base[0], base[1] + amount)
                elif written := _WRITES.match(text):
                    value[written[1]] = None
        moved = {name: known[1] for name, known in value.items() if known is not None and known[0] == name}
        derived = {name: moved.get(known[0], 0) for name, known in value.items() if known is not None}
        return derived | moved

    def amounts_of(self, n: int) -> list[tuple[tuple[Place, str], float]]:
        """What an instruction moves or does, as `amounts` has it of a statement."""
        instruction = self.graph.instructions[n]
        kind = EFFECTS.get(instruction.opcode) or OPERATIONS.get(instruction.opcode)
        if kind is None or instruction.predicate:
            return []
        width = 4 if kind == "shuffle" else width_of(instruction) if "_" in kind else 1
        return [((self.places[n], kind), width)]


def amounts(statement: Statement) -> list[tuple[tuple[Place, str], float]]:
    """Bytes that an effect moves, and operations by class, each with its place."""
    found: list[tuple[tuple[Place, str], float]] = []
    if statement.site.kind in EFFECTS.values():
        found.append(((statement.place, statement.site.kind), max(statement.site.size, 1)))
    for name, n in statement.site.costs.items():
        if name in OPERATIONS.values():
            found.append(((statement.place, name), n))
    return found
