"""What the lanes that come to an instruction together access, where that is not what the source's do: others come together, a
predicate switches some off, it is wider than the source's accesses, or does without some of them.

Warps whose accesses were kept are walked, and each of their instructions is laid beside the accesses that it stands for
(`alignment`); these are counted for the lanes that make them together.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ..ir.access import AccessKind
from ..machine import transactions
from ..profiler.accesses import WarpAccesses
from ..profiler.events import CONFLICTS, GLOBAL, LINES, REQUESTS, SECTORS, SHARED, WAVEFRONTS
from ..profiler.trace import ENTRY, Entries
from ..runtime.prepared import prepare
from .alignment import (
    NOT_PERFORMED,
    Accesses,
    ArrangementCache,
    Block,
    Key,
    SiteAccesses,
    SiteAssigner,
    Visit,
    address_of,
    aligned,
    performed,
)
from .instruction_counts import InstructionCount
from .lane_accesses import AccessReplay, LaneGroup, LaneGroupSteps, blocks_of, shared_branch_accesses, steps_of
from .loop_entries import loop_entry_flags, loop_marks
from .opcode_classes import access_width
from .path_estimator import HARD_SEARCH_BUDGET, MIN_WARPS, SEARCH_BUDGET, PathEstimator, spread_sample
from .reconvergence import LanePath
from .replay import DecisionReplay, ReplayError, WarpName, WarpTrace
from .source_statements import Statement
from .uniformity import writes

WORK = 2_000_000
"""Blocks that warps of different decisions come to, together, at most."""
SLOW = 50_000
"""Of these, blocks whose instructions stand for several accesses or for other sites', before the warps that came there until then stand
for the others: a quarter of a second."""
DIFFERENT = 256
"""Ways in which warps may differ before some of them, from all over, stand for the others."""
MIN_COMPLETE_FRACTION, RELATIVE_TOLERANCE, NEAR = 0.9, 0.01, 0.05
"""How many of the warps whose accesses were kept must be told, and how near their executions must be to those that were counted: of all
warps, and where some stand for the others."""
_REGISTER = re.compile(r"U?R\d+")
_COLUMNS = {"global": ("requests", "sectors"), "shared": ("requests", "wavefronts", "conflicts")}

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Costs = dict[str, float]


@dataclass(frozen=True)
class TracedWarp:
    """A warp, the lanes that entered it, its recorded accesses, and how many warps it stands for."""

    warp: WarpName
    lanes: int
    entries: Entries
    weight: float


@dataclass(frozen=True)
class EquivalentWarps:
    """Warps that decided alike. nodes, masks: what they come to, with which lanes. sites, made_by: of their accesses, one after the
    other, and the lanes, a bit each. index: int64[warp, access, 32], the elements of these. weight: how many warps each stands for."""

    nodes: npt.NDArray[np.int32]
    masks: npt.NDArray[np.uint32]
    lanes: list[LaneGroup]
    sites: npt.NDArray[np.int32]
    made_by: npt.NDArray[np.uint32]
    index: Words
    weight: float

    @cached_property
    def steps(self) -> LaneGroupSteps:
        """Of all lanes."""
        return steps_of(self.lanes)


class _AccessQuery:
    """Accesses whose costs are asked for, and the instructions, by node, that stand for them. made, made_by_each: tell what lanes made
    of all of them, and of each. made_of_either: the same where one instruction stands for those of both arms of a branch. instructions:
    how many, by node. blocks: the same, as `made.Blocks`. single: whether each stands for one access. predicated: whether
    lanes may be switched off; marks: then, of the loop that all accesses lie in. told, arranging:
    what is known of the sites that instructions stand for, and how; both grow. stood: by instruction, for which sites. slow:
    blocks that were laid beside accesses by one group of lanes at a time."""

    def __init__(self, statements: Sequence[Statement], at_node: Mapping[int, Block], walk: PathEstimator) -> None:
        self.statements, self.at_node, self.size = statements, at_node, statements[0].site.size
        self.made, self.replay_by_access = AccessReplay(statements), [AccessReplay([one]) for one in statements]
        both = shared_branch_accesses(statements, walk.launched.statements.chosen)
        self.shared_replay = AccessReplay(statements, both) if both else None
        self.blocks = blocks_of(at_node, len(walk.nodes.blocks))
        self.instructions = np.diff(self.blocks[0])
        self.single = all(one.accesses == 1 for block in at_node.values() for one in block)
        self.predicated = any(one.predicated for block in at_node.values() for one in block)
        self.marks = loop_marks(statements if self.predicated else (), walk.matcher, walk.nodes)
        self.told: dict[Key, int] = {}
        self.stood: dict[int, set[int]] = defaultdict(set)
        self.arranging = ArrangementCache(self.size)
        self.slow = 0


class AccessAttribution:
    """Of one kernel. spaces: the memories whose accesses were kept. standing: by offset of an instruction that was asked for, the sites
    that it stands for."""

    def __init__(self, walk: PathEstimator, instructions: Sequence[InstructionCount]) -> None:
        self.walk, self.instructions = walk, instructions
        self._number = {id(one): n for n, one in enumerate(instructions)}
        self.standing: dict[int, tuple[int, ...]] = {}
        decisions = walk.launched.decisions
        recorded = [one.spaces for one in decisions.accesses] if decisions is not None else []
        self.spaces = frozenset(recorded[0]).intersection(*recorded) if recorded else frozenset[str]()
        self._accesses = {
            one.number: one
            for one in walk.launched.statements.statements.values()
            if one.site.kind in (*GLOBAL, *SHARED) and one.lanes and one.site.kind.partition("_")[0] in self.spaces
        }

    def costs(self, statements: Sequence[Statement], compiled: Sequence[InstructionCount]) -> Costs | None:
        """What instructions move that stand for accesses of the source; None where that cannot be told."""
        once = len(statements) == len(compiled) and all(one.context.loop is None for one in statements)
        if once and all(one.instruction.predicate for one in compiled):
            return None  # each stands for one, whose lanes the source tells
        sizes = {one.site.size for one in statements}
        if len(sizes) > 1:
            return self._by_size(sizes, statements, compiled)
        kinds = {(one.site.kind, one.site.size, one.site.access) for one in statements}
        access, size = statements[0].site.access, statements[0].site.size
        numbers = [self._number[id(one)] for one in compiled]
        widths = {n: access_width(self.instructions[n].instruction) for n in numbers}
        if access is None or access.space not in self.spaces:
            return None
        plain = access.space == "global" or access.operation in ("load", "store")
        if len(kinds) > 1 or not plain or any(width % size for width in widths.values()):
            return None
        totals, executed, stood = np.zeros(3), 0.0, 0.0
        asked = _AccessQuery(statements, self._at_nodes({n: width // size for n, width in widths.items()}), self.walk)
        for number, alike in enumerate(self.alike):
            if asked.slow > SLOW and number >= MIN_WARPS:
                break
            rows = self._rows(alike, asked)
            if rows is None:
                return None
            for each, made in rows.items():
                found = self._count(alike, made, each, size, statements[0])
                if found is None:
                    return None
                totals += alike.weight * found
                executed += alike.weight * len(made) * len(alike.index)
            stood += alike.weight * len(alike.index)
        every = sum(alike.weight * len(alike.index) for alike in self.alike)
        if stood < every:
            totals, executed = totals * every / stood, executed * every / stood
        counted = sum(one.warps for one in compiled)
        sampled = stood < every or any(alike.weight > 1 for alike in self.alike)
        factors = self._of_all(statements) if sampled else np.ones(3)
        totals, executed = totals * factors, executed * float(factors[0])
        if not executed or abs(executed - counted) > (NEAR if sampled else RELATIVE_TOLERANCE) * counted:
            return None
        in_source, kept = sum(one.warps for one in statements), not statements[0].site.kind.endswith("load")
        if sampled and kept and abs(totals[0] - in_source) <= RELATIVE_TOLERANCE * in_source:
            return None  # as near as some warps tell, they are made as in the source
        for n, sites in asked.stood.items():
            self.standing[self.instructions[n].instruction.offset] = tuple(sorted(sites))
        columns = zip(_COLUMNS[access.space], totals.tolist(), strict=False)
        return dict.fromkeys(("requests", "sectors", "wavefronts", "conflicts"), 0.0) | dict(columns)

    def _by_size(
        self, sizes: set[int], statements: Sequence[Statement], compiled: Sequence[InstructionCount]
    ) -> Costs | None:
        """The same of accesses of several sizes, each of which instructions of its own width stand for."""
        if {access_width(one.instruction) for one in compiled} != sizes:
            return None
        total: Costs = defaultdict(float)
        for size in sizes:
            found = self.costs(
                [one for one in statements if one.site.size == size],
                [one for one in compiled if access_width(one.instruction) == size],
            )
            if found is None:
                return None
            for what, n in found.items():
                total[what] += n
        return dict(total)

    def _of_all(self, statements: Sequence[Statement]) -> Floats:
        """By how much all warps' instructions cost more than those of some are taken for: as the source's accesses do."""
        counts, access = self.walk.launched.counts, statements[0].site.access
        assert counts is not None and access is not None
        events = REQUESTS, *((SECTORS, LINES) if access.space == "global" else (WAVEFRONTS, CONFLICTS))
        every = np.array([counts[[one.number for one in statements], event].sum() for event in events], np.float64)
        known = np.zeros(3)
        for alike in self.alike:
            made = np.flatnonzero(np.isin(alike.sites, [one.number for one in statements]))
            active = (alike.made_by[made, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_)
            known += alike.weight * self._cost(alike.index[:, made], active, statements[0].site.size, access)
        return np.where(known > 0, every / np.maximum(known, 1), 1.0)

    def _at_nodes(self, stands_for: Mapping[int, int]) -> dict[int, Block]:
        """Instructions by node, each with for how many accesses it stands."""
        blocks: dict[int, list[Visit]] = defaultdict(list)
        for n, accesses in sorted(stands_for.items()):
            one = self.instructions[n]
            registers, offset = address_of(one.instruction.text)
            predicated = bool(one.instruction.predicate)
            key = one.block, f"{registers}/{self._written_before[n]}"
            blocks[one.block].append(Visit(n, accesses, predicated, key, offset))
        return {node: blocks[block] for node, block in enumerate(self.walk.nodes.blocks) if block in blocks}

    @cached_property
    def _written_before(self) -> list[int]:
        """By instruction, how often the registers of its address are written in its block before: then they hold other numbers."""
        found, written, block = list[int](), Counter[str](), -1
        for one in self.instructions:
            if one.block != block:
                written, block = Counter(), one.block
            found.append(sum(written[name] for name in _REGISTER.findall(address_of(one.instruction.text)[0])))
            written.update(writes(one.instruction))
        return found

    def _rows(self, alike: EquivalentWarps, asked: _AccessQuery) -> dict[int, Words] | None:
        """By how many accesses an instruction stands for: int64[execution, accesses, 32], the numbers of what each lane accesses."""
        at_node = asked.at_node
        relevant = np.flatnonzero(asked.instructions[alike.nodes])
        visits = [(when, one) for when in relevant.tolist() for one in at_node[int(alike.nodes[when])]]
        begins = [0, *accumulate(one.accesses for _, one in visits)]
        remaining: Sequence[LaneGroup] = alike.lanes
        if asked.single:
            come = slice(None) if asked.predicated else relevant  # what else they come to tells where they begin a loop
            nodes, masks = alike.nodes[come], alike.masks[come]
            made, remaining = asked.made.stand(nodes, masks, asked.blocks, asked.marks, alike.lanes, alike.steps)
        else:
            made = np.full((begins[-1], 32), NOT_PERFORMED)
        row = dict[tuple[int, int], int]()
        if remaining:
            row = {(when, one.instruction): begin for (when, one), begin in zip(visits, begins, strict=False)}
        of_lanes = [(relevant[alike.masks[relevant] & np.uint32(one.mask) != 0].tolist(), one) for one in remaining]
        for mine, lanes in sorted(of_lanes, key=lambda each: -len(each[0])):  # who comes to more tells more
            visited = [at_node[int(alike.nodes[when])] for when in mine]
            stood = self._stands(alike, lanes, visited, asked)
            if stood is None:
                return None
            which = [lane for lane in range(32) if lanes.mask >> lane & 1]
            of_rows, found = list[int](), list[int]()
            for when, block, accesses in zip(mine, visited, stood, strict=True):
                for one, numbers in zip(block, accesses, strict=True):
                    begin = row[when, one.instruction]
                    of_rows += range(begin, begin + len(numbers))
                    found += numbers
            made[np.array(of_rows, np.int64)[:, None], which] = np.array(found, np.int64)[:, None]
        self._note(alike, visits, begins, made, asked)
        widths = np.array([one.accesses for _, one in visits], np.int64)
        firsts = np.array(begins[:-1], np.int64)
        return {each: made[firsts[widths == each, None] + np.arange(each)] for each in np.unique(widths).tolist()}

    @staticmethod
    def _note(
        alike: EquivalentWarps,
        visits: Sequence[tuple[int, Visit]],
        begins: Sequence[int],
        made: Words,
        asked: _AccessQuery,
    ) -> None:
        """Of which sites the accesses are that instructions stand for."""
        if not visits:
            return
        known = {instruction: n for n, instruction in enumerate(dict.fromkeys(one.instruction for _, one in visits))}
        which = np.repeat([known[one.instruction] for _, one in visits], np.diff(begins))
        rows, lanes = np.nonzero(made != NOT_PERFORMED)
        stood = np.zeros((len(known), int(alike.sites.max(initial=0)) + 1), np.bool_)
        stood[which[rows], alike.sites[made[rows, lanes]]] = True
        for instruction, sites in zip(known, stood, strict=True):
            asked.stood[instruction].update(np.flatnonzero(sites).tolist())

    def _stands(
        self, alike: EquivalentWarps, lanes: LaneGroup, visited: Sequence[Block], asked: _AccessQuery
    ) -> list[list[Accesses]] | None:
        """By block that lanes come to, the accesses that each instruction stands for."""
        asked.slow += len(visited)
        flat = [one for block in visited for one in block]
        address = (alike.index[0, :, lanes.mask.bit_length() - 1] * asked.size).tolist().__getitem__

        def array(number: int) -> str:
            return self._accesses[int(alike.sites[number])].site.array

        made = asked.made.of(lanes)
        anew = self._begun(alike, lanes, asked)
        stood = aligned(made, flat, anew)
        if stood is None and asked.shared_replay is not None:
            stood = aligned(asked.shared_replay.of(lanes), flat, anew)
        if stood is None and all(one.site.kind.endswith("load") for one in asked.statements):
            once = {(array(number), address(number)): number for number in reversed(performed(made))}
            wanted = sum(one.accesses for one in flat)
            if len(once) == wanted:  # beside predicated ones that are off any number would fit
                stood = aligned(sorted(once.values()), flat)  # what is loaded again is kept
        if stood is not None:
            following = iter(stood)
            blocks = [[next(following) for _ in block] for block in visited]
            if all(one.accesses == 1 for one in flat):
                return blocks
            if len({one.site.array for one in asked.statements}) == 1:
                arranged = asked.arranging.arranged
                better = [arranged(block, mine, address) for block, mine in zip(visited, blocks, strict=True)]
                fitting = [block for block in better if block is not None]
                if len(fitting) == len(better):
                    return fitting
            elif all(self._side_by_side([(array(n), address(n)) for n in each], asked.size) for each in stood):
                return blocks
        each = zip(asked.statements, asked.replay_by_access, strict=True)
        sites = [SiteAccesses(made.of(lanes), one.site.kind.endswith("load")) for one, made in each]
        telling = SiteAssigner(sites, asked.size, address)
        if any(one.key not in asked.told for one in flat):
            found = telling.tell(visited, asked.told)
            if found is None:
                return None
            asked.told |= found
        return telling.stands(visited, asked.told)

    @staticmethod
    def _side_by_side(lying: Sequence[tuple[str, int]], size: int) -> bool:
        """Whether accesses of an instruction lie in one array, one after the other. lying: the array and the address of each."""
        return all(lying[n] == (lying[0][0], lying[0][1] + size * n) for n in range(1, len(lying)))

    def _begun(self, alike: EquivalentWarps, lanes: LaneGroup, asked: _AccessQuery) -> list[int]:
        """Before which of their instructions lanes come anew to the loop that all accesses lie in."""
        if not asked.predicated:
            return []
        when = np.flatnonzero(alike.masks & np.uint32(lanes.mask))
        here = asked.instructions[alike.nodes[when]]
        anew = loop_entry_flags(alike.nodes, alike.masks, lanes.mask, asked.marks)[when] != 0
        found = np.unique((np.cumsum(here) - here)[anew])
        return list(found[found < here.sum()].tolist())

    def _count(self, alike: EquivalentWarps, made: Words, each: int, size: int, statement: Statement) -> Floats | None:
        """What instructions cost that stand for so many accesses; None where they do not lie side by side."""
        access = statement.site.access
        assert access is not None
        active = made[:, 0] != NOT_PERFORMED
        if not active.any():
            return np.zeros(3)
        index = alike.index[:, np.maximum(made, 0), np.arange(32)]
        low, high = index.min(axis=2), index.max(axis=2)
        if (high - low != each - 1)[:, active].any():
            return None
        odd = np.unique((low % each)[:, active])
        if len(odd) > 1:
            return None
        element = (low - (odd[0] if len(odd) else 0)) // each
        return self._cost(element, active, each * size, access)

    def _cost(self, index: Words, active: npt.NDArray[np.bool_], size: int, access: AccessKind) -> Floats:
        """Of accesses of several warps. index: int64[warps, access, 32]. active: bool[access, 32]."""
        out, device = np.zeros(3, np.int64), self.walk.launched.request.device
        every = np.broadcast_to(active, index.shape).reshape(-1, 32)
        transactions.count(access.space, access.operation, index.reshape(-1, 32), every, size, device, out)
        return out.astype(np.float64)

    # ------------------------------------------------------------------ warps
    @cached_property
    def alike(self) -> list[EquivalentWarps]:
        """The warps whose accesses were kept, those together that did the same; none where too few can be told."""
        launched, walk = self.walk.launched, self.walk
        decisions = launched.decisions
        if decisions is None or walk.correspondence.has_silent_iterations or not decisions.accesses:
            return []
        together: dict[object, list[TracedWarp]] = defaultdict(list)
        work = 0
        loops = {one.context.loop.site for one in self._accesses.values() if one.context.loop is not None}
        body = prepare(launched.request.program).program.kernel.body
        wanted = frozenset([*self._accesses, *loops, *(-1 - loop for loop in loops)])
        replay = DecisionReplay(body, walk.recorded, wanted)
        kept = list(self._kept(decisions.accesses))
        for one in kept:
            made = one.entries["site"].tobytes(), one.entries["mask"].tobytes()
            together[one.warp[0], one.lanes, walk.recorded.decision_key(one.warp), made].append(one)
        found = list[EquivalentWarps]()
        walked = {warp for warp, _, _ in walk.sampled_warps}  # what all lanes agree on is known from here on
        chosen, visited = list(together.values()), walk.search.visited
        if len(chosen) > DIFFERENT:  # ways that are known need not be looked for
            known = [warps for warps in chosen if any(one.warp in walked for one in warps)]
            chosen = known if len(known) >= DIFFERENT // 4 else chosen
        asked = told = 0
        for number, warps in enumerate(spread_sample(chosen, DIFFERENT)):
            if number >= MIN_WARPS and walk.search.visited - visited > SEARCH_BUDGET:
                break
            if walk.search.visited - visited > HARD_SEARCH_BUDGET or work > WORK:
                return []
            asked += len(warps)
            try:
                found.append(self._alike(replay, warps))
            except ReplayError:
                continue
            told += len(warps)
            work += len(found[-1].masks)
        if told < MIN_COMPLETE_FRACTION * asked:
            return []
        return [replace(one, weight=one.weight * len(kept) / asked) for one in found]

    def _kept(self, accesses: Sequence[WarpAccesses]) -> Iterator[TracedWarp]:
        launched = self.walk.launched
        assert launched.decisions is not None
        none = np.zeros(0, ENTRY)
        for launch, (blocks, threads) in enumerate(launched.shapes):
            kept = [block for block in launched.decisions.blocks(launch, blocks) if accesses[launch].has(block)]
            for block in kept:
                for warp in range(-(-threads // 32)):
                    entries = accesses[launch].by_warp.get((block, warp), none)
                    yield TracedWarp((launch, block, warp), min(32, threads - 32 * warp), entries, blocks / len(kept))

    def _alike(self, replay: DecisionReplay, warps: Sequence[TracedWarp]) -> EquivalentWarps:
        """Raises Lost where what was recorded does not tell their ways."""
        first = warps[0]
        steps = replay.trace(first.warp, first.lanes)
        accesses = np.isin(steps.sites, list(self._accesses))
        told = steps.sites[accesses], steps.lanes[accesses]
        if not all(
            np.array_equal(mine, first.entries[name]) for mine, name in zip(told, ("site", "mask"), strict=True)
        ):
            raise ReplayError("other accesses were kept than the decisions tell")
        strands = self.walk.lane_paths(first.warp, first.lanes)
        nodes, masks = self.walk.warps.visits(strands)
        return EquivalentWarps(
            nodes,
            masks,
            _lanes(steps, accesses, strands),
            first.entries["site"],
            first.entries["mask"],
            np.stack([one.entries["index"] for one in warps]),
            first.weight,
        )


def _lanes(steps: WarpTrace, accesses: npt.NDArray[np.bool_], strands: Sequence[LanePath]) -> list[LaneGroup]:
    """The lanes of a warp that did the same and go the same way."""
    numbers, sites = np.where(accesses, np.cumsum(accesses) - 1, NOT_PERFORMED), steps.sites
    found = []
    for mask in steps.lane_groups():
        did = steps.steps_of_lane(mask.bit_length() - 1)
        found += [LaneGroup(mask & strand.mask, sites[did], numbers[did]) for strand in strands if mask & strand.mask]
    return found
