"""What both a lane's way through the source and a block of the compiled kernel show, by which the one is laid beside the other.

An anchor is a kind of effect or operation at a place of the source, or a place that has nothing else to show, or a turn of
a loop. A statement of the source has so much of it, a block of the compiled kernel so much, at times only under a predicate.
Of a statement list the strongest anchors are taken: effects and operations, which a compiler repeats or drops with the
statements around them; else loads, which it moves about, and accesses of local arrays, parts of which it keeps in registers;
else its instructions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from ..passes.decisions import leaves
from .control_flow import Loop
from .decision_bytecode import coded, decided, slow
from .expanded_cfg import ExpandedCfg
from .lane_accesses import either
from .matching import Key, LoopMatcher
from .opcode_classes import CONTROL, EXPANDED, OPERATIONS, may_be_missing
from .source_statements import BranchArm, Place, Segment, Statement

Floats = npt.NDArray[np.float32]
Emitted = dict[Key, float]
CODE, TURN, ARMS, SLOW, CODES = "code", "turn", ("then", "else"), "slow path", "codes"
"""What is at a place besides effects and operations."""

SHOWN = 1.0
"""What it costs that all that a statement list has of an anchor at a place is missing from the blocks that stand for it, or is
there once too often; or that a turn of a loop is."""
LOADED = 0.9
"""The same of loads and accesses of local arrays: less, as the compiler makes those of an arm before its test, or leaves them out, but
keeps every effect."""
DECIDED = 0.3
"""What it costs that lanes take an arm of a branch other than that which they took in the source: less than any effect, as the
compiler may make it of other instructions."""
NARROW = 0.1
"""What it costs to go through a division of 32 bits beside a call of one of 64 (`Graph.narrow`): more than the code of the call."""
CODE_EACH = 0.01
"""What it costs that the code of a place is missing, or is there where none was executed, for each of its instructions: little, as
compilers put addresses and constants where they like. That there is more of it costs nothing."""
INSTRUCTION, ROUND = 1e-5, 0.005
"""Of ways that show the same a lane takes that with the fewest rounds of compiled loops, as a test enters the largest body for
which iterations are left; then that with the fewest instructions, which calls no slow path."""
PREDICATED = 0.008
"""What it costs that predicated instructions show something, as part of what it costs that it is missing: more than a round of a
loop, as they are for iterations that are fewer than any body has which could have been entered."""
APART = 1 / 32
"""What it costs that a node stands for tokens on both sides of others, as part of what these cost: less than anything that is missing, but
what is in order comes before what is not."""


@dataclass(frozen=True)
class Event:
    """What a statement shows: so much of an anchor."""

    anchor: int
    amount: float


class Correspondence:
    """tokens: by what `DecisionReplay` tells, a statement's site, or -1 - site for a turn of its loop. keys: of the anchors. weights:
    what one costs that is missing, or there once too often. sure, maybe: float32[node, anchor], those of a node that all lanes
    execute and those under a predicate. cost: of a node, however that is. span: tokens that a node may stand for. blind: whether
    some iterations of a loop may be predicated instructions that show nothing."""

    def __init__(self, matcher: LoopMatcher, nodes: ExpandedCfg) -> None:
        self.graph, self.places, self.source = matcher.graph, matcher.places, matcher.source
        self._matcher = matcher
        self.keys: list[Key] = []
        self.tokens: dict[int, list[Event]] = defaultdict(list)
        self.blind = False
        self._numbers: dict[Key, int] = {}
        self._weights: list[float] = []
        self.units: list[float] = []
        self._known: dict[Place, list[Statement]] = self.source.by_place
        blocks = [self._shown(span) for span in self.graph.blocks]
        self._put_back(blocks)
        shown: dict[Key, set[int]] = defaultdict(set)
        for block, held in enumerate(blocks):
            for key in (*held[0], *held[1]):
                shown[key].add(block)
        self._effects(shown)
        codes = self._codes()
        turns = self._turns()
        arms = self._arms()
        for block, key in self._slow().items():
            arms[block][key] = 1, 0
        self._conditions(arms)
        self._fill(nodes, blocks, codes, turns, arms)

    def _shown(self, span: tuple[int, int]) -> tuple[Emitted, Emitted]:
        """The effects and operations of a block, sure ones and those under a predicate. Of an access that is wider than the
        source's one is sure: the others may be of iterations that come later. No branch leads into an arm of which a block has
        something under a predicate: what it computes there without one it computes for all lanes."""
        sure: dict[Key, float] = defaultdict(float)
        maybe: dict[Key, float] = defaultdict(float)
        own = (n for n in range(*span) if self.graph.instructions[n].opcode not in CONTROL)
        predicated = {self._arm(n) for n in own if self.graph.instructions[n].predicate} - {None}
        for n in range(*span):
            for key, width in self._matcher.amounts_of(n).items():
                place, kind = key
                each = (
                    max((one.site.size for one in self._known.get(place, ()) if one.site.kind == kind), default=0) or 1
                )
                ahead = kind in OPERATIONS.values() and self._arm(n) in predicated
                if self.graph.instructions[n].predicate or ahead:
                    maybe[key] += width
                elif "_" in kind and width > each:
                    sure[key] += each
                    maybe[key] += width - each
                else:
                    sure[key] += width
        return sure, maybe

    def _arm(self, n: int) -> BranchArm | None:
        """The arm of a branch that an instruction belongs to, where its place tells one."""
        choices = {self.source.choice(one) for one in self._known.get(self.places[n], ()) if one.lanes}
        return choices.pop() if len(choices) == 1 else None

    def _put_back(self, blocks: Sequence[tuple[Emitted, Emitted]]) -> None:
        """Loads that nvcc makes before barriers behind which they stand in the source are laid to behind these."""
        for block, (sure, _) in enumerate(blocks):
            behind, barriers = block, list[Statement]()
            while len(self.graph.successors[behind]) == 1 and self.graph.waits(self.graph.successors[behind][0]):
                (barrier,) = self.graph.successors[behind]
                known = self._known.get(self.places[self.graph.blocks[barrier][0]], ())
                barriers += [one for one in known if one.site.kind == "barrier"]
                if len(self.graph.successors[barrier]) != 1:
                    break
                (behind,) = self.graph.successors[barrier]
            for key in [key for key in sure if key[1].endswith("load")] if barriers else ():
                loads = [one for one in self._known.get(key[0], ()) if one.site.kind == key[1]]
                if all(a.context.loop is b.context.loop and a.number < b.number for a in barriers for b in loads):
                    blocks[behind][0][key] = blocks[behind][0].get(key, 0.0) + sure.pop(key)

    # -------------------------------------------------------------- of the source
    def _effects(self, shown: Mapping[Key, set[int]]) -> None:
        """Anchors of effects and operations that some blocks show. What every iteration has, and only blocks outside of the compiled loop
        show, was moved out of it, and tells nothing of its iterations."""
        part = self.source.part
        turning = {
            site: self._matcher.turning(place) for place, sites in self._matcher.of_loop.items() for site in sites
        }

        def moved_out(one: Statement, key: Key) -> bool:
            every = one.context.arm == "body" and one.number not in self.source.chosen
            inside = turning.get(one.context.site, frozenset()) if every else frozenset()
            return bool(inside) and not inside & shown[key]

        strong = {
            part(one)
            for one in self.source.statements.values()
            for (place, kind), n in self._matcher.amounts(one).items()
            if one.lanes and n and (place, kind) in shown and not may_be_missing(kind)
        }
        for statements in self._known.values():
            together: dict[Key, dict[Segment, float]] = defaultdict(lambda: defaultdict(float))
            for one in statements:
                for key, n in self._matcher.amounts(one).items():
                    together[key][part(one)] += n
            for key, by_context in together.items():
                if key not in shown or (may_be_missing(key[1]) and strong >= by_context.keys()):
                    continue
                anchor = self._anchor(key, LOADED if may_be_missing(key[1]) else SHOWN, max(by_context.values()))
                for one in statements:
                    n = self._matcher.amounts(one).get(key, 0)
                    if n and not moved_out(one, key):
                        self.tokens[one.number].append(Event(anchor, n / self.units[anchor]))
        stood_for = set[tuple[int, Key]]()
        for one, other in self._of_either_arm():
            for mine, its in zip(self._matcher.amounts(one).items(), self._matcher.amounts(other), strict=False):
                known = mine[0] in shown or (one.number, mine[0]) in stood_for
                if not known and its in self._numbers and mine[0][1] == its[1]:
                    self.tokens[one.number].append(Event(self._numbers[its], mine[1] / self.units[self._numbers[its]]))
                    stood_for.add((one.number, mine[0]))

    def _of_either_arm(self) -> Iterator[tuple[Statement, Statement]]:
        """Accesses of one array in the arms of a branch, for which one instruction may stand; each with each other one."""
        kinds: dict[tuple[str, str, int], list[Statement]] = defaultdict(list)
        for one in self.source.statements.values():
            if one.lanes and "_" in one.site.kind:
                kinds[one.site.kind, one.site.array, one.site.size].append(one)
        for alike in kinds.values():
            together: dict[int, list[Statement]] = {}
            for its, mine in either(alike, self.source.chosen).items():
                together.setdefault(mine, [self.source.statements[mine]]).append(self.source.statements[its])
            for each in together.values():
                yield from permutations(each, 2)

    def _codes(self) -> dict[int, dict[Place, tuple[int, bool]]]:
        """Anchors of places that lie in one statement list, which shows nothing better, or of operations for which others are written,
        maybe behind a branch: by block, how many instructions it has of each, and whether it is where lanes come to them first: of what
        is executed once, others were only put off."""
        found: dict[int, dict[Place, tuple[int, bool]]] = defaultdict(dict)
        counts: dict[Place, Counter[int]] = defaultdict(Counter)
        for block, span in enumerate(self.graph.blocks):
            for n in range(*span):
                instruction = self.graph.instructions[n]
                if instruction.opcode not in CONTROL and not instruction.predicate and not self._matcher.amounts_of(n):
                    counts[self.places[n]][block] += 1
        evident = {self.source.part(one) for one in self.source.statements.values() if self.tokens.get(one.number)}
        for place, by_block in counts.items():
            statements = self._known.get(place, [])
            contexts = {self.source.part(one) for one in statements}
            hidden = place not in self._matcher.expanded and contexts & evident
            if len(contexts) != 1 or hidden or any(one.number in self.source.loops for one in statements):
                continue
            anchor = self._anchor((place, CODE), CODE_EACH * min(by_block.values()), 1.0)
            each = [one.number for one in statements if EXPANDED & one.site.costs.keys()]
            for number in each or [min(one.number for one in statements)]:
                self.tokens[number].append(Event(anchor, 1.0))
            once = all(one.context.loop is None for one in statements)
            for block, n in by_block.items():
                came_by = any(self.graph.dominates(other, block) for other in by_block if other != block)
                found[block][place] = n, not (once and came_by)
        return found

    def _turns(self) -> dict[int, dict[Key, int]]:
        """Anchors of loops whose bodies show loads at most: their iterations by block."""
        found: dict[int, dict[Key, int]] = defaultdict(dict)
        instructions = zip(self.graph.instructions, self.places, strict=True)
        predicated = {place for one, place in instructions if one.predicate and one.opcode not in CONTROL}
        for place, sites in self._matcher.of_loop.items():
            mine = self._matcher.natural(place)
            copies, spare = self._matcher.copies(sites, mine)
            body = [
                one
                for one in self.source.statements.values()
                if (one.context.site, one.context.arm) in {(n, "body") for n in sites}
                if one.number not in self.source.chosen
            ]
            shown = (self.keys[token.anchor][1] for one in body for token in self.tokens.get(one.number, ()))
            kinds = {*shown} - {CODE}
            hidden = bool(mine) and not kinds and any(one.place in predicated for one in body)
            self.blind |= hidden and not self._shows(sites)
            if not mine or spare or not all(kind.endswith("load") for kind in kinds):
                continue
            anchor = self._anchor((place, TURN), SHOWN, 1.0)
            each, shown_by = self._matcher.iterations(place), dict[int, int]()
            for loop in mine:
                here = {block: n for block, n in copies.items() if block in loop.body}
                begun = any(self.graph.dominates(block, loop.header) for block in copies if block not in loop.body)
                if list(here.values()) == [1] and not begun:
                    here = {self._begins(loop, next(iter(here)), place): 1}
                elif len(firsts := each.get(loop.header, ())) == sum(here.values()) and not begun:
                    here = dict.fromkeys(firsts, 1)
                shown_by |= here
            for block, n in shown_by.items():
                found[block][place, TURN] = n
            inside, turned = self._matcher.tests_inside(place), self._matcher.turned(sites, shown_by, mine)
            for site in sites:
                self.tokens[turned.get(site, site if inside else -1 - site)].append(Event(anchor, 1.0))
            for block in sorted(copies.keys() - self._matcher.turning(place)):
                found[self._matcher.begun_before(block, sites)][place, TURN] = copies[block]
        return found

    def _begins(self, loop: Loop, shown: int, place: Place) -> int:
        """Where a turn of a compiled loop begins of which a block shows one: as early as the test of the loop comes before. What else a
        turn shows may lie before that block."""
        at = shown
        while at != loop.header:
            above = self.graph.dominators[at]
            assert above is not None, "a loop's header dominates all of it"
            leaves = any(onward not in loop.body for onward in self.graph.successors[above])
            if leaves and self.places[self.graph.blocks[above][1] - 1] == place:
                break
            at = above
        return at

    def _shows(self, sites: Sequence[int]) -> bool:
        """Whether an arm or loop inside a loop has an effect or operation: predicated iterations would show it."""
        inside = [one for one in self.source.statements.values() if one.context.lies_in(sites)]
        return any(self.executed(token.anchor) for one in inside for token in self.tokens.get(one.number, ()))

    def _arms(self) -> dict[int, dict[Key, tuple[int, int]]]:
        """Anchors of arms that begin at blocks of their own: how many begin there for sure, and how many may have become predicated
        instructions of it."""
        found: dict[int, dict[Key, tuple[int, int]]] = defaultdict(dict)
        expanded = self._matcher.expanded
        for choice in sorted(set(self._matcher.arms.heads.values())):
            self._anchor(choice, DECIDED, 1.0)
            sites = {self.source.chosen[one.number][0] for one in self.source.by_choice.get(choice, ())}
            branches = {one.number for one in self._known.get(choice[0], ()) if one.site.kind == "branch"}
            for site in sites or branches:
                self.tokens[decided(site, choice[1])].append(Event(self._numbers[choice], 1.0))
        for block, span in enumerate(self.graph.blocks):
            for n in range(*span):
                only, one = self._arm(n), self.graph.instructions[n]
                predicated = one.predicate and one.opcode not in CONTROL and self.places[n] not in expanded
                if only is not None and only in self._numbers and predicated:
                    sure, maybe = found[block].get(only, (0, 0))
                    found[block][only] = sure, maybe + 1
        for block, choice in self._matcher.arms.heads.items():
            found[block][choice] = 1, 0
        return found

    def _slow(self) -> dict[int, Key]:
        """Anchors of the slow paths of divisions, by the block that calls one."""
        found = {}
        for block, divisions in self._matcher.slow.items():
            key = self.source.statements[divisions[0][0]].place, f"{SLOW} {divisions[0]}"
            if key not in self._numbers:
                self._anchor(key, SHOWN, 1.0)
                for number, n in divisions:
                    self.tokens[slow(number, n)].append(Event(self._numbers[key], 1.0))
            found[block] = key
        return found

    def _conditions(self, arms: dict[int, dict[Key, tuple[int, int]]]) -> None:
        """Anchors of blocks that lanes come to for which some of a branch's conditions held. arms: takes these in."""
        known = self._matcher.conditions

        def key(place: Place, codes: int) -> Key:
            return place, f"{CODES} {codes:x}"

        parts = {block: one for block, one in known.blocks.items() if block not in self._matcher.arms.heads}
        behind: dict[tuple[Place, int], int] = {}  # lanes come to the blocks of one code in the order of these
        for block, one in parts.items():
            each = one.place, one.codes
            behind[each] = min(block - one.start, behind.get(each, block))
        for place, codes in sorted(behind, key=lambda each: (behind[each], each)):
            self._anchor(key(place, codes), DECIDED, 1.0)
            for site in known.sites[place]:
                for code in range(1 << len(leaves(self.source.conditions[site]))):
                    tokens = self.tokens[coded(site, code)]
                    tokens += [Event(self._numbers[key(place, codes)], 1.0)] * (codes >> code & 1)
        for block, tested in parts.items():
            arms[block][key(tested.place, tested.codes)] = 1, 0
        for block, joined in known.joined.items():
            arms[block] |= {key(*each): (0, 1) for each in joined if each in behind}

    def _anchor(self, key: Key, weight: float, unit: float) -> int:
        """A new one's number."""
        self._numbers[key] = len(self.keys)
        self.keys.append(key)
        self._weights.append(weight)
        self.units.append(unit)
        return self._numbers[key]

    # -------------------------------------------------------------- of the compiled kernel
    def _fill(
        self,
        nodes: ExpandedCfg,
        blocks: Sequence[tuple[Emitted, Emitted]],
        codes: Mapping[int, Mapping[Place, tuple[int, bool]]],
        turns: Mapping[int, Mapping[Key, int]],
        arms: Mapping[int, Mapping[Key, tuple[int, int]]],
    ) -> None:
        shape = len(nodes.blocks), max(len(self.keys), 1)
        self.sure, self.maybe = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.weights = np.array(self._weights or [0], np.float32)
        self.price = np.zeros(shape, np.float32)
        self.cost = np.zeros(len(nodes.blocks), np.float32)
        calls = {edge.source for edge in self.graph.edges if edge.kind == "call"}
        apart = calls | {
            block + 1 for block in calls
        }  # what prepares a call, or takes what it found, is of the code before
        headers, narrow = {loop.header for loop in self.graph.loops}, self._matcher.narrow
        for node, block in enumerate(nodes.blocks):
            first, past = self.graph.blocks[block]
            self.cost[node] = INSTRUCTION * (past - first) + ROUND * (block in headers) + NARROW * (block in narrow)
            for held, amounts in zip((self.sure, self.maybe), blocks[block], strict=True):
                for key, n in amounts.items():
                    if key in self._numbers:
                        held[node, self._numbers[key]] = n / self.units[self._numbers[key]]
            for place, (instructions, new) in codes.get(block, {}).items():
                here = float(new and block not in apart)
                self.sure[node, self._numbers[place, CODE]] = here
                self.maybe[node, self._numbers[place, CODE]] = instructions - here
            for key, n in turns.get(block, {}).items():
                self.sure[node, self._numbers[key]] = n
            for key, (held_there, predicated) in arms.get(block, {}).items():
                self.sure[node, self._numbers[key]] = held_there
                self.maybe[node, self._numbers[key]] = predicated
        wide = [
            {
                key
                for n in range(*span)
                for key in self._matcher.amounts_of(n)
                if not self.graph.instructions[n].predicate
            }
            for span in self.graph.blocks
        ]
        for node, block in enumerate(nodes.blocks):
            for key, anchor in self._numbers.items():
                if key not in wide[block] and self.maybe[node, anchor]:
                    self.price[node, anchor] = PREDICATED * self.weights[anchor]
        self._spread(nodes)
        self._leave_out(nodes)
        self.span = self._spans()

    def _spread(self, nodes: ExpandedCfg) -> None:
        """Of an unrolled loop, what every iteration shows once is laid to where each begins: the compiler makes all loads of a turn
        before anything that hangs on them, and one of those that lie side by side."""
        rows: dict[int, list[int]] = defaultdict(list)
        for node, block in enumerate(nodes.blocks):
            rows[block].append(node)
        for place, sites in self._matcher.of_loop.items():
            once = self._once(sites)
            for header, begun in self._matcher.iterations(place).items():
                turn = next(loop for loop in self.graph.loops if loop.header == header)
                spine = [b for b in turn.body if all(self.graph.dominates(b, latch) for latch in turn.latches)]
                for anchor, each in once.items():
                    by_block = [float(self.sure[rows[block][0], anchor]) for block in spine if block in rows]
                    held, load = sum(by_block), self.keys[anchor][1].endswith("load")
                    gathered = held == each * len(begun) and max(by_block) > each
                    if gathered or (load and 0 < held < each * len(begun)):
                        for block in spine:
                            self.sure[rows[block], anchor] = each if block in begun else 0.0

    def _leave_out(self, nodes: ExpandedCfg) -> None:
        """An iteration behind a loop may be without operations that only the next one would need."""
        for place, sites in self._matcher.of_loop.items():
            turning = self._matcher.turning(place)
            copies, _ = self._matcher.copies(sites, self._matcher.natural(place))
            once = {anchor: n for anchor, n in self._once(sites).items() if self.keys[anchor][1] in OPERATIONS.values()}
            for node, block in enumerate(nodes.blocks):
                for anchor, each in once.items() if block in copies and block not in turning else ():
                    short = copies[block] * each - self.sure[node, anchor] - self.maybe[node, anchor]
                    if short > 0:
                        self.maybe[node, anchor] += short
                        self.price[node, anchor] = PREDICATED * self.weights[anchor]

    def _once(self, sites: Sequence[int]) -> dict[int, float]:
        """By anchor that only an iteration of a loop shows, and each, how much of it an iteration does."""
        found: dict[int, float] = defaultdict(float)
        others = set[int]()
        for site, tokens in self.tokens.items():
            for token in tokens:
                if site < 0:
                    loop, own = -1 - site, True
                elif site in self.source.statements:
                    context = self.source.statements[site].context
                    loop, own = context.site, context.arm == "body" and site not in self.source.chosen
                else:
                    loop, own = -1, False
                if not own or loop not in sites or self.keys[token.anchor][1] == CODE:
                    others.add(token.anchor)
                elif loop == sites[0]:
                    found[token.anchor] += token.amount
        return {anchor: n for anchor, n in found.items() if anchor not in others}

    def executed(self, anchor: int) -> bool:
        """Whether an anchor is an effect or operation, the slow path of one, or a test of conditions: not what a compiler moves about."""
        return self.keys[anchor][1] not in (CODE, TURN, *ARMS)

    def _spans(self) -> npt.NDArray[np.int32]:
        """Several times as many tokens as would show what a node holds, as those of other blocks lie in between."""
        least = np.ones(max(len(self.keys), 1), np.float32)
        for each in self.tokens.values():
            for token in each:
                least[token.anchor] = min(least[token.anchor], token.amount)
        held = np.minimum(self.sure + self.maybe, 64) / least
        return np.asarray(32 + 6 * held.sum(axis=1), np.int32)
