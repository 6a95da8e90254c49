"""Attribution of recorded accesses to SASS instructions, to count the transactions of each instruction.

Needed where an instruction's lanes differ from the source's: other reconvergence, predication, wider or elided
accesses. Traced warps are simulated; each instruction is aligned with its accesses (`alignment`), and the accesses of
its lanes are coalesced.
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
    Accesses,
    ArrangementCache,
    Block,
    Key,
    SiteAccesses,
    SiteAssigner,
    Visit,
    address_of,
    align_visits,
    performed,
)
from .instruction_counts import InstructionCount
from .lane_accesses import AccessReplay, GroupSteps, LaneGroup, blocks_of, shared_branch_accesses, steps_of
from .loop_entries import loop_entry_flags, loop_marks
from .opcode_classes import access_width
from .path_estimator import HARD_SEARCH_BUDGET, MIN_WARPS, SEARCH_BUDGET, PathEstimator, spread_sample
from .reconvergence import LanePath
from .replay import DecisionReplay, ReplayError, WarpName, WarpTrace
from .sequence_alignment import NOT_PERFORMED
from .source_statements import Statement
from .tolerances import TOLERANCES
from .uniformity import writes

MAX_VISITS = 2_000_000
"""Visits of all warp groups together, at most."""
SLOW_PATH_BUDGET = 50_000
"""Visits aligned one group of lanes at a time, before the remaining warps are extrapolated (about 0.25 s)."""
MAX_GROUPS = 256
"""Groups of equivalent warps before a sample is used."""
_REGISTER = re.compile(r"U?R\d+")
_COLUMNS = {"global": ("requests", "sectors"), "shared": ("requests", "wavefronts", "conflicts")}

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Costs = dict[str, float]


@dataclass(frozen=True)
class TracedWarp:
    """A warp with active lanes, recorded accesses, and weight."""

    warp: WarpName
    lanes: int
    entries: Entries
    weight: float


@dataclass(frozen=True)
class EquivalentWarps:
    """Warps with equal decisions. nodes, masks: their visits. sites, access_masks: by access, in order. index:
    int64[warp, access, 32], elements. weight: warps represented by each."""

    nodes: npt.NDArray[np.int32]
    masks: npt.NDArray[np.uint32]
    lanes: list[LaneGroup]
    sites: npt.NDArray[np.int32]
    access_masks: npt.NDArray[np.uint32]
    index: Words
    weight: float

    @cached_property
    def steps(self) -> GroupSteps:
        """Steps of all lane groups."""
        return steps_of(self.lanes)


class _AccessQuery:
    """Accesses to attribute and the instructions that implement them.

    replay, replay_by_access: of all accesses together, and of each. shared_replay: with shared slots of opposite arms.
    instructions: number by node. blocks: the same, as `NodeInstructions`. single: whether each matches one access.
    predicated: whether any is predicated; marks: then, of the common loop. assigned_sites, arrangements: growing
    caches. sites_of_instruction: result. slow_visits: visits aligned one group of lanes at a time.
    """

    def __init__(self, statements: Sequence[Statement], at_node: Mapping[int, Block], estimator: PathEstimator) -> None:
        self.statements, self.at_node, self.size = statements, at_node, statements[0].site.size
        self.replay, self.replay_by_access = AccessReplay(statements), [AccessReplay([one]) for one in statements]
        shared = shared_branch_accesses(statements, estimator.launched.statements.deciding_arm)
        self.shared_replay = AccessReplay(statements, shared) if shared else None
        self.blocks = blocks_of(at_node, len(estimator.nodes.blocks))
        self.instructions = np.diff(self.blocks[0])
        self.single = all(one.accesses == 1 for block in at_node.values() for one in block)
        self.predicated = any(one.predicated for block in at_node.values() for one in block)
        self.marks = loop_marks(statements if self.predicated else (), estimator.matcher, estimator.nodes)
        self.assigned_sites: dict[Key, int] = {}
        self.sites_of_instruction: dict[int, set[int]] = defaultdict(set)
        self.arrangements = ArrangementCache(self.size)
        self.slow_visits = 0


class AccessAttribution:
    """Access attribution of one kernel. spaces: memories with recorded accesses. sites_by_offset: sites implemented by
    an instruction, by its offset."""

    def __init__(self, estimator: PathEstimator, instructions: Sequence[InstructionCount]) -> None:
        self.estimator, self.instructions = estimator, instructions
        self._number = {id(one): n for n, one in enumerate(instructions)}
        self.sites_by_offset: dict[int, tuple[int, ...]] = {}
        decisions = estimator.launched.decisions
        recorded = [one.spaces for one in decisions.accesses] if decisions is not None else []
        self.spaces = frozenset(recorded[0]).intersection(*recorded) if recorded else frozenset[str]()
        self._accesses = {
            one.number: one
            for one in estimator.launched.statements.statements.values()
            if one.site.kind in (*GLOBAL, *SHARED) and one.lanes and one.site.kind.partition("_")[0] in self.spaces
        }

    def costs(self, statements: Sequence[Statement], compiled: Sequence[InstructionCount]) -> Costs | None:
        """Return requests, sectors, wavefronts and conflicts of instructions that implement some accesses, or None if
        undetermined."""
        single = len(statements) == len(compiled) and all(one.context.loop is None for one in statements)
        if single and all(one.instruction.predicate for one in compiled):
            return None  # one to one, with the source's lanes
        sizes = {one.site.size for one in statements}
        if len(sizes) > 1:
            return self._costs_by_size(sizes, statements, compiled)
        kinds = {(one.site.kind, one.site.size, one.site.access) for one in statements}
        access, size = statements[0].site.access, statements[0].site.size
        numbers = [self._number[id(one)] for one in compiled]
        widths = {n: access_width(self.instructions[n].instruction) for n in numbers}
        if access is None or access.space not in self.spaces:
            return None
        plain = access.space == "global" or access.operation in ("load", "store")
        if len(kinds) > 1 or not plain or any(width % size for width in widths.values()):
            return None
        totals, executed, represented = np.zeros(3), 0.0, 0.0
        query = _AccessQuery(
            statements, self._instructions_at_nodes({n: width // size for n, width in widths.items()}), self.estimator
        )
        for number, group in enumerate(self.warp_groups):
            if query.slow_visits > SLOW_PATH_BUDGET and number >= MIN_WARPS:
                break
            rows = self._rows_by_width(group, query)
            if rows is None:
                return None
            for access_count, rows_of_width in rows.items():
                cost = self._cost_of_rows(group, rows_of_width, access_count, size, statements[0])
                if cost is None:
                    return None
                totals += group.weight * cost
                executed += group.weight * len(rows_of_width) * len(group.index)
            represented += group.weight * len(group.index)
        population = sum(group.weight * len(group.index) for group in self.warp_groups)
        if represented < population:
            totals, executed = totals * population / represented, executed * population / represented
        executed_total = sum(one.warps for one in compiled)
        sampled = represented < population or any(group.weight > 1 for group in self.warp_groups)
        factors = self._population_factors(statements) if sampled else np.ones(3)
        totals, executed = totals * factors, executed * float(factors[0])
        if (
            not executed
            or abs(executed - executed_total)
            > (TOLERANCES.sample if sampled else TOLERANCES.executions) * executed_total
        ):
            return None
        in_source, mandatory = sum(one.warps for one in statements), not statements[0].site.kind.endswith("load")
        if sampled and mandatory and abs(totals[0] - in_source) <= TOLERANCES.executions * in_source:
            return None  # within sampling error of the source
        for n, sites in query.sites_of_instruction.items():
            self.sites_by_offset[self.instructions[n].instruction.offset] = tuple(sorted(sites))
        columns = zip(_COLUMNS[access.space], totals.tolist(), strict=False)
        return dict.fromkeys(("requests", "sectors", "wavefronts", "conflicts"), 0.0) | dict(columns)

    def _costs_by_size(
        self, sizes: set[int], statements: Sequence[Statement], compiled: Sequence[InstructionCount]
    ) -> Costs | None:
        """Return the costs of accesses of several sizes, each with instructions of its width."""
        if {access_width(one.instruction) for one in compiled} != sizes:
            return None
        total: Costs = defaultdict(float)
        for size in sizes:
            costs = self.costs(
                [one for one in statements if one.site.size == size],
                [one for one in compiled if access_width(one.instruction) == size],
            )
            if costs is None:
                return None
            for what, n in costs.items():
                total[what] += n
        return dict(total)

    def _population_factors(self, statements: Sequence[Statement]) -> Floats:
        """Return ratios of all warps' costs to the sample's, from the source accesses."""
        counts, access = self.estimator.launched.counts, statements[0].site.access
        assert counts is not None and access is not None
        events = REQUESTS, *((SECTORS, LINES) if access.space == "global" else (WAVEFRONTS, CONFLICTS))
        population = np.array([counts[[one.number for one in statements], event].sum() for event in events], np.float64)
        sampled = np.zeros(3)
        for group in self.warp_groups:
            selected = np.flatnonzero(np.isin(group.sites, [one.number for one in statements]))
            active = (group.access_masks[selected, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_)
            sampled += group.weight * self._cost(group.index[:, selected], active, statements[0].site.size, access)
        return np.where(sampled > 0, population / np.maximum(sampled, 1), 1.0)

    def _instructions_at_nodes(self, widths: Mapping[int, int]) -> dict[int, Block]:
        """Return instructions by node, with the number of accesses each."""
        blocks: dict[int, list[Visit]] = defaultdict(list)
        for n, accesses in sorted(widths.items()):
            instruction = self.instructions[n]
            registers, offset = address_of(instruction.instruction.text)
            predicated = bool(instruction.instruction.predicate)
            key = instruction.block, f"{registers}/{self._written_before[n]}"
            blocks[instruction.block].append(Visit(n, accesses, predicated, key, offset))
        return {node: blocks[block] for node, block in enumerate(self.estimator.nodes.blocks) if block in blocks}

    @cached_property
    def _written_before(self) -> list[int]:
        """By instruction, writes to its address registers earlier in the block: equal for equal register values."""
        result, written, block = list[int](), Counter[str](), -1
        for instruction in self.instructions:
            if instruction.block != block:
                written, block = Counter(), instruction.block
            result.append(sum(written[name] for name in _REGISTER.findall(address_of(instruction.instruction.text)[0])))
            written.update(writes(instruction.instruction))
        return result

    def _rows_by_width(self, group: EquivalentWarps, query: _AccessQuery) -> dict[int, Words] | None:
        """Return, by accesses per instruction, int64[execution, accesses, 32], the access numbers of each lane."""
        at_node = query.at_node
        relevant = np.flatnonzero(query.instructions[group.nodes])
        visits = [(when, visit) for when in relevant.tolist() for visit in at_node[int(group.nodes[when])]]
        begins = [0, *accumulate(visit.accesses for _, visit in visits)]
        unmatched: Sequence[LaneGroup] = group.lanes
        if query.single:
            selected = slice(None) if query.predicated else relevant  # all visits determine the loop entries
            nodes, masks = group.nodes[selected], group.masks[selected]
            rows, unmatched = query.replay.attribute(nodes, masks, query.blocks, query.marks, group.lanes, group.steps)
        else:
            rows = np.full((begins[-1], 32), NOT_PERFORMED)
        row = dict[tuple[int, int], int]()
        if unmatched:
            row = {(when, visit.instruction): begin for (when, visit), begin in zip(visits, begins, strict=False)}
        of_lanes = [
            (relevant[group.masks[relevant] & np.uint32(visit.mask) != 0].tolist(), visit) for visit in unmatched
        ]
        for own_visits, lanes in sorted(of_lanes, key=lambda each: -len(each[0])):  # longest first
            visited = [at_node[int(group.nodes[when])] for when in own_visits]
            attributed = self._accesses_of_lanes(group, lanes, visited, query)
            if attributed is None:
                return None
            which = [lane for lane in range(32) if lanes.mask >> lane & 1]
            row_numbers, element_numbers = list[int](), list[int]()
            for when, block, accesses in zip(own_visits, visited, attributed, strict=True):
                for visit, numbers in zip(block, accesses, strict=True):
                    begin = row[when, visit.instruction]
                    row_numbers += range(begin, begin + len(numbers))
                    element_numbers += numbers
            rows[np.array(row_numbers, np.int64)[:, None], which] = np.array(element_numbers, np.int64)[:, None]
        self._record_sites(group, visits, begins, rows, query)
        widths = np.array([visit.accesses for _, visit in visits], np.int64)
        firsts = np.array(begins[:-1], np.int64)
        return {each: rows[firsts[widths == each, None] + np.arange(each)] for each in np.unique(widths).tolist()}

    @staticmethod
    def _record_sites(
        group: EquivalentWarps,
        visits: Sequence[tuple[int, Visit]],
        begins: Sequence[int],
        row_numbers: Words,
        query: _AccessQuery,
    ) -> None:
        """Record the sites implemented by each instruction."""
        if not visits:
            return
        index_of = {instruction: n for n, instruction in enumerate(dict.fromkeys(one.instruction for _, one in visits))}
        which = np.repeat([index_of[one.instruction] for _, one in visits], np.diff(begins))
        rows, lanes = np.nonzero(row_numbers != NOT_PERFORMED)
        implements = np.zeros((len(index_of), int(group.sites.max(initial=0)) + 1), np.bool_)
        implements[which[rows], group.sites[row_numbers[rows, lanes]]] = True
        for instruction, sites in zip(index_of, implements, strict=True):
            query.sites_of_instruction[instruction].update(np.flatnonzero(sites).tolist())

    def _accesses_of_lanes(
        self, group: EquivalentWarps, lanes: LaneGroup, visited: Sequence[Block], query: _AccessQuery
    ) -> list[list[Accesses]] | None:
        """Return, by visited block, the accesses of each instruction."""
        query.slow_visits += len(visited)
        flat = [one for block in visited for one in block]
        address = (group.index[0, :, lanes.mask.bit_length() - 1] * query.size).tolist().__getitem__

        def array(number: int) -> str:
            return self._accesses[int(group.sites[number])].site.array

        sequence = query.replay.replay(lanes)
        entries = self._entry_visits(group, lanes, query)
        accesses = align_visits(sequence, flat, entries)
        if accesses is None and query.shared_replay is not None:
            accesses = align_visits(query.shared_replay.replay(lanes), flat, entries)
        if accesses is None and all(one.site.kind.endswith("load") for one in query.statements):
            once = {(array(number), address(number)): number for number in reversed(performed(sequence))}
            required = sum(one.accesses for one in flat)
            if len(once) == required:  # ambiguous with predicated instructions off
                accesses = align_visits(sorted(once.values()), flat)  # repeated loads are elided
        if accesses is not None:
            remaining = iter(accesses)
            blocks = [[next(remaining) for _ in block] for block in visited]
            if all(one.accesses == 1 for one in flat):
                return blocks
            if len({one.site.array for one in query.statements}) == 1:
                arranged = query.arrangements.arrange
                arrangements = [arranged(block, mine, address) for block, mine in zip(visited, blocks, strict=True)]
                arranged_blocks = [block for block in arrangements if block is not None]
                if len(arranged_blocks) == len(arrangements):
                    return arranged_blocks
            elif all(self._are_adjacent([(array(n), address(n)) for n in pairs], query.size) for pairs in accesses):
                return blocks
        pairs = zip(query.statements, query.replay_by_access, strict=True)
        sites = [SiteAccesses(sequence.replay(lanes), one.site.kind.endswith("load")) for one, sequence in pairs]
        assigner = SiteAssigner(sites, query.size, address)
        if any(one.key not in query.assigned_sites for one in flat):
            assignment = assigner.assign(visited, query.assigned_sites)
            if assignment is None:
                return None
            query.assigned_sites |= assignment
        return assigner.accesses_of_visits(visited, query.assigned_sites)

    @staticmethod
    def _are_adjacent(lying: Sequence[tuple[str, int]], size: int) -> bool:
        """Return whether accesses of an instruction are adjacent in one array. lying: array and address of each."""
        return all(lying[n] == (lying[0][0], lying[0][1] + size * n) for n in range(1, len(lying)))

    def _entry_visits(self, group: EquivalentWarps, lanes: LaneGroup, query: _AccessQuery) -> list[int]:
        """Return the visits before which lanes enter the common loop."""
        if not query.predicated:
            return []
        when = np.flatnonzero(group.masks & np.uint32(lanes.mask))
        instruction_counts = query.instructions[group.nodes[when]]
        entered = loop_entry_flags(group.nodes, group.masks, lanes.mask, query.marks)[when] != 0
        result = np.unique((np.cumsum(instruction_counts) - instruction_counts)[entered])
        return list(result[result < instruction_counts.sum()].tolist())

    def _cost_of_rows(
        self, group: EquivalentWarps, rows: Words, width: int, size: int, statement: Statement
    ) -> Floats | None:
        """Return the cost of instructions with so many accesses each; None if these are not adjacent."""
        access = statement.site.access
        assert access is not None
        active = rows[:, 0] != NOT_PERFORMED
        if not active.any():
            return np.zeros(3)
        index = group.index[:, np.maximum(rows, 0), np.arange(32)]
        low, high = index.min(axis=2), index.max(axis=2)
        if (high - low != width - 1)[:, active].any():
            return None
        offsets = np.unique((low % width)[:, active])
        if len(offsets) > 1:
            return None
        element = (low - (offsets[0] if len(offsets) else 0)) // width
        return self._cost(element, active, width * size, access)

    def _cost(self, index: Words, active: npt.NDArray[np.bool_], size: int, access: AccessKind) -> Floats:
        """Return the cost of accesses. index: int64[warps, access, 32]. active: bool[access, 32]."""
        totals, device = np.zeros(3, np.int64), self.estimator.launched.request.device
        active_rows = np.broadcast_to(active, index.shape).reshape(-1, 32)
        transactions.count(access.space, access.operation, index.reshape(-1, 32), active_rows, size, device, totals)
        return totals.astype(np.float64)

    # ------------------------------------------------------------------ warps
    @cached_property
    def warp_groups(self) -> list[EquivalentWarps]:
        """Traced warps by equal behavior; empty if too few are complete."""
        launched, estimator = self.estimator.launched, self.estimator
        decisions = launched.decisions
        if decisions is None or estimator.correspondence.has_silent_iterations or not decisions.accesses:
            return []
        groups: dict[object, list[TracedWarp]] = defaultdict(list)
        work = 0
        loops = {
            traced_warp.context.loop.site
            for traced_warp in self._accesses.values()
            if traced_warp.context.loop is not None
        }
        body = prepare(launched.request.program).program.kernel.body
        events = frozenset([*self._accesses, *loops, *(-1 - loop for loop in loops)])
        replay = DecisionReplay(body, estimator.recorded, events)
        traced = list(self._traced_warps(decisions.accesses))
        for traced_warp in traced:
            performed_key = traced_warp.entries["site"].tobytes(), traced_warp.entries["mask"].tobytes()
            groups[
                traced_warp.warp[0], traced_warp.lanes, estimator.recorded.decision_key(traced_warp.warp), performed_key
            ].append(traced_warp)
        result = list[EquivalentWarps]()
        sampled = {warp for warp, _, _ in estimator.sampled_warps}  # decides uniform branches first
        chosen, visited = list(groups.values()), estimator.search.visited
        if len(chosen) > MAX_GROUPS:  # reuse known paths
            already_sampled = [warps for warps in chosen if any(traced_warp.warp in sampled for traced_warp in warps)]
            chosen = already_sampled if len(already_sampled) >= MAX_GROUPS // 4 else chosen
        attempted = completed = 0
        for number, warps in enumerate(spread_sample(chosen, MAX_GROUPS)):
            if number >= MIN_WARPS and estimator.search.visited - visited > SEARCH_BUDGET:
                break
            if estimator.search.visited - visited > HARD_SEARCH_BUDGET or work > MAX_VISITS:
                return []
            attempted += len(warps)
            try:
                result.append(self._warp_group(replay, warps))
            except ReplayError:
                continue
            completed += len(warps)
            work += len(result[-1].masks)
        if completed < TOLERANCES.complete_fraction * attempted:
            return []
        return [replace(traced_warp, weight=traced_warp.weight * len(traced) / attempted) for traced_warp in result]

    def _traced_warps(self, accesses: Sequence[WarpAccesses]) -> Iterator[TracedWarp]:
        launched = self.estimator.launched
        assert launched.decisions is not None
        none = np.zeros(0, ENTRY)
        for launch, (blocks, threads) in enumerate(launched.shapes):
            traced_blocks = [
                block for block in launched.decisions.blocks(launch, blocks) if accesses[launch].has(block)
            ]
            for block in traced_blocks:
                for warp in range(-(-threads // 32)):
                    entries = accesses[launch].by_warp.get((block, warp), none)
                    yield TracedWarp(
                        (launch, block, warp), min(32, threads - 32 * warp), entries, blocks / len(traced_blocks)
                    )

    def _warp_group(self, replay: DecisionReplay, warps: Sequence[TracedWarp]) -> EquivalentWarps:
        """Return the group of some warps. Raises ReplayError if their record is incomplete."""
        first = warps[0]
        steps = replay.trace(first.warp, first.lanes)
        accesses = np.isin(steps.sites, list(self._accesses))
        performed_accesses = steps.sites[accesses], steps.lanes[accesses]
        if not all(
            np.array_equal(mine, first.entries[name])
            for mine, name in zip(performed_accesses, ("site", "mask"), strict=True)
        ):
            raise ReplayError("recorded accesses differ from the decisions")
        lane_paths = self.estimator.lane_paths(first.warp, first.lanes)
        nodes, masks = self.estimator.warps.visits(lane_paths)
        return EquivalentWarps(
            nodes,
            masks,
            _lanes(steps, accesses, lane_paths),
            first.entries["site"],
            first.entries["mask"],
            np.stack([one.entries["index"] for one in warps]),
            first.weight,
        )


def _lanes(steps: WarpTrace, accesses: npt.NDArray[np.bool_], lane_paths: Sequence[LanePath]) -> list[LaneGroup]:
    """Return the lane groups with equal steps and equal paths."""
    numbers, sites = np.where(accesses, np.cumsum(accesses) - 1, NOT_PERFORMED), steps.sites
    result = []
    for mask in steps.lane_groups():
        positions = steps.steps_of_lane(mask.bit_length() - 1)
        result += [
            LaneGroup(mask & strand.mask, sites[positions], numbers[positions])
            for strand in lane_paths
            if mask & strand.mask
        ]
    return result
