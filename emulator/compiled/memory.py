"""Memory traffic of a compiled kernel: each instruction at the cost of its source access.

An instruction costs as much per execution as its source access; values in registers and hoisted accesses execute less
often. A wider instruction implements several adjacent accesses: the same sectors, and at least the bank phases of its
width (`machine.banks`). A warp-aggregated atomic costs one lane's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..profiler.events import CONFLICTS, GLOBAL, REQUESTS, SECTORS, SHARED, WAVEFRONTS
from .access_attribution import AccessAttribution
from .coefficient_tables import table_traffic
from .instruction_counts import InstructionCount
from .kernel_launches import KernelLaunches
from .lane_accesses import shared_branch_accesses
from .opcode_classes import EFFECTS, access_width
from .shared_cas_loops import RetryCost
from .site_traffic import AccessDifference, SiteAccesses, TrafficSums, access_text, is_close
from .source_statements import Place, Statement
from .tolerances import TOLERANCES

_COLUMNS = {"requests": REQUESTS, "sectors": SECTORS, "wavefronts": WAVEFRONTS, "conflicts": CONFLICTS}
_VOTE_OPCODES, _LEADER_OPCODES = {"VOTE", "VOTEU"}, {"FLO", "UFLO", "POPC", "UPOPC"}
"""Opcodes of warp aggregation: the vote, and the choice of a leader."""
Accesses = dict[tuple[Place, str], list[Statement]]


@dataclass(frozen=True)
class MemoryTraffic:
    """Memory counters of a compiled kernel: global requests and sectors, shared wavefronts and conflicts, certain shuffles.

    differences: from the source. warp_aggregated: sites of aggregated atomics. eliminated: sites without instructions.
    sites_by_offset: sites of each instruction, by its offset."""

    counters: dict[str, int]
    differences: tuple[AccessDifference, ...]
    warp_aggregated: frozenset[int] = frozenset()
    eliminated: frozenset[int] = frozenset()
    sites_by_offset: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def memory_of(
    launched: KernelLaunches, instructions: Sequence[InstructionCount], accessed: AccessAttribution, match_arrays: bool = False,
    retry_costs: Mapping[Place, RetryCost] = MappingProxyType({}),
) -> MemoryTraffic:  # fmt: skip
    """Return the memory traffic. match_arrays: assign loads of several arrays on a line to instructions. retry_costs:
    of CAS loops, by location."""
    accesses = _accesses(launched, any(len(one.place) > 1 for one in instructions))
    compiled = _by_access(instructions, accesses, launched.statements.deciding_arm)
    _merge_by_line(accesses, compiled)
    one_lane = _warp_aggregated(launched, instructions, compiled)
    exact = _exact_traffic(
        accesses, {key: located for key, located in compiled.items() if key not in one_lane}, accessed
    )
    if match_arrays:
        _match_arrays(accesses, compiled, accessed)
    counters, differences = TrafficSums(), list[AccessDifference]()
    aggregated, eliminated, sites_by_offset = set[int](), set[int](), dict[int, tuple[int, ...]]()
    assert launched.counts is not None
    for key, statements in accesses.items():
        place, kind = key
        numbers = [one.number for one in statements]
        if kind == "shared_atomic" and place in retry_costs:
            differences.append(counters.add_retries(place, statements, retry_costs[place]))
            continue
        cost = {what: float(launched.counts[numbers, column].sum()) for what, column in _COLUMNS.items()}
        located = compiled.get(key)
        sites = [accessed.sites_by_offset.get(one.instruction.offset, tuple(numbers)) for one in located or ()]
        pairs = list(zip(located or (), sites, strict=True))
        if located is None or (located and kind.endswith("load")):
            eliminated |= set(numbers) - {number for one, each in pairs for number in each if one.warps}
        sites_by_offset |= {one.instruction.offset: each for one, each in pairs}
        site = SiteAccesses(place, kind, statements, located, cost, key in one_lane, exact.get(key))
        traffic, difference = site.traffic()
        if difference is not None:
            if located is None and (merged := _merged_with(statements, accesses, compiled)) is not None:
                difference = replace(difference, what=merged)
            differences.append(difference)
        counters.add(site, traffic)
        aggregated |= set(numbers) if site.one_for_all else set()
    totals = counters.totals()
    differences += _add_tables(totals, instructions)
    return MemoryTraffic(
        {name: round(value) for name, value in totals.items()}, tuple(differences),
        frozenset(aggregated), frozenset(eliminated),
        sites_by_offset,
    )  # fmt: skip


def _warp_aggregated(
    launched: KernelLaunches, instructions: Sequence[InstructionCount], compiled: Mapping[tuple[Place, str], list[InstructionCount]]
) -> set[tuple[Place, str]]:  # fmt: skip
    """Return the atomics that one lane executes for all."""
    votes = {one.place for one in launched.statements.statements.values() if one.site.kind == "vote"}
    aggregating = _aggregating_places(instructions) - votes
    return {
        (place, kind)
        for (place, kind), of in compiled.items()
        if place in aggregating
        and kind.endswith(("atomic", "reduction"))
        and not any("CAS" in one.instruction.operation for one in of)
    }


def _match_arrays(
    accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]], accessed: AccessAttribution
) -> None:
    """Let `accessed` record the sites of each load, where a line loads several arrays."""
    for key, loads in compiled.items():
        arrays = {one.site.array for one in accesses[key]} if key[1] == "global_load" and loads else set()
        if len(arrays) > 1 and loads[0].instruction.offset not in accessed.sites_by_offset:
            accessed.costs(accesses[key], loads)


def _add_tables(counters: dict[str, float], instructions: Sequence[InstructionCount]) -> Iterator[AccessDifference]:
    """Add loads of coefficient tables and certain shuffles to the counters; yield the differences from the source."""
    for place, (requests, sectors) in table_traffic(instructions).items():
        counters["global_load_requests"] += requests
        counters["global_load_sectors"] += sectors
        what = (
            "nvcc loads coefficients of a function from a table; a warp with lanes in two rows is assumed to load both"
        )
        yield AccessDifference(place, "global_load", 0, 1, what)
    shuffles = [one for one in instructions if one.instruction.opcode == "SHFL"]
    if not any(one.uncertainty for one in shuffles):
        counters["shuffles"] = sum(one.warps for one in shuffles)


def _exact_traffic(
    accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]], accessed: AccessAttribution
) -> dict[tuple[Place, str], dict[str, float]]:
    """Return the traffic by recorded accesses, where instructions differ from the source: by location, or for several
    locations of a loop with shared instructions (then at the first one)."""
    result = _exact_traffic_of_unmatched(accesses, compiled, accessed)
    unresolved: dict[tuple[str, int], list[tuple[Place, str]]] = defaultdict(list)
    for key, instructions in compiled.items():
        if not instructions or not (
            _differs(accesses[key], instructions) or _may_regroup_lanes(accesses[key], instructions)
        ):
            continue
        costs = accessed.costs(accesses[key], instructions)
        if costs is not None:
            result[key] = costs
            continue
        first, *other_loops = _enclosing_loops(accesses[key])
        if not other_loops:
            unresolved[key[1], first].append(key)
    for (kind, loop), keys in unresolved.items():
        unmatched = [
            key
            for key, of in accesses.items()
            if key[1] == kind and key not in compiled and _enclosing_loops(of) == {-1} == {loop}
        ]
        statements = sorted((one for key in (*keys, *unmatched) for one in accesses[key]), key=lambda one: one.number)
        instructions_made = [one for key in keys for one in compiled[key]]
        costs = accessed.costs(statements, instructions_made) if len(keys) + len(unmatched) > 1 else None
        if costs is not None:
            result |= {keys[0]: costs} | {key: dict.fromkeys(costs, 0.0) for key in keys[1:]}
    return result


def _enclosing_loops(statements: Sequence[Statement]) -> set[int]:
    """Return the innermost loops of statements, -1 for none."""
    return {-1 if one.context.loop is None else one.context.loop.site for one in statements}


def _exact_traffic_of_unmatched(
    accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]], accessed: AccessAttribution
) -> dict[tuple[Place, str], dict[str, float]]:
    """The same for accesses with instructions on other lines, executed less often in total, such as shared by arms."""
    result: dict[tuple[Place, str], dict[str, float]] = {}
    for kind in {kind for (_, kind), of in compiled.items() if not of and kind.endswith(("load", "store"))}:
        keys = [key for key, of in compiled.items() if key[1] == kind and not of]
        named = {id(one) for key, of in compiled.items() for one in of}
        moved = [
            one for one in accessed.instructions if _access_kind(one) == kind and id(one) not in named and one.warps
        ]
        statements = sorted((one for key in keys for one in accesses[key]), key=lambda one: one.number)
        if sum(one.warps for one in moved) < sum(one.warps for one in statements) - 0.5:
            costs = accessed.costs(statements, moved)
            if costs is not None:
                result |= {keys[0]: costs} | {key: dict.fromkeys(costs, 0.0) for key in keys[1:]}
    return result


def _accesses(launched: KernelLaunches, calls: bool) -> Accesses:
    """Return executed accesses of the source by location and kind. calls: whether locations include calls."""
    source = launched.statements if calls else launched.statements.without_inlining()
    result: Accesses = defaultdict(list)
    for statement in source.statements.values():
        if statement.site.kind in (*GLOBAL, *SHARED) and statement.lanes:
            result[statement.place, statement.site.kind].append(statement)
    return dict(result)


def _by_access(
    instructions: Sequence[InstructionCount], accesses: Accesses, chosen: Mapping[int, tuple[int, str]]
) -> dict[tuple[Place, str], list[InstructionCount]]:
    """Return the instructions of each access: those at its location. Others are assigned to the nearest access of their
    kind with equal executions and no instruction, else to the nearest one with the most common calls. Helpers of an
    atomic on its line are skipped."""
    by_access: dict[tuple[Place, str], list[InstructionCount]] = defaultdict(list)
    strays: dict[tuple[Place, str], list[InstructionCount]] = defaultdict(list)
    for instruction in instructions:
        kind = _access_kind(instruction)
        if kind is not None:
            (by_access if (instruction.place, kind) in accesses else strays)[instruction.place, kind].append(
                instruction
            )
    for key, several in strays.items():
        for instruction in list(several):
            similar = [
                at
                for at, of in accesses.items()
                if at not in by_access and at[1] == key[1] and _matches_executions(instruction, of)
            ]
            if similar:
                by_access[min(similar, key=lambda at: _distance(instruction.place, at[0]))].append(instruction)
                several.remove(instruction)
    strays = {key: several for key, several in strays.items() if several}
    matched = set(by_access)
    for kind in {kind for _, kind in strays}:
        alone = {key: of for key, of in accesses.items() if key[1] == kind and key not in by_access}
        moved = [instruction for key, several in strays.items() if key[1] == kind for instruction in several]
        if moved and is_close(
            sum(instruction.warps for instruction in moved),
            sum(instruction.warps for of in alone.values() for instruction in of),
        ):
            by_access |= {key: [] for key in alone}  # all exist, on other lines
            strays = {key: several for key, several in strays.items() if key[1] != kind}
    for (place, kind), several in strays.items():
        if any((place, atomic) in accesses for atomic in ("shared_atomic", "global_atomic", "global_reduction")):
            continue
        keys_of_kind = [at for at, of in accesses if of == kind]
        if keys_of_kind:
            calls = min(_distance(place, at)[0] for at in keys_of_kind)
            near = [at for at in keys_of_kind if _distance(place, at)[0] == calls]
            at = min(near, key=lambda at: ((at, kind) in matched, _distance(place, at)))
            by_access[at, kind] += several
    _merge_unmatched(by_access, accesses, chosen)
    return by_access


def _access_kind(instruction: InstructionCount) -> str | None:
    """Return the kind of access of an instruction."""
    return (
        EFFECTS.get(instruction.instruction.opcode)
        if instruction.instruction.predicate != "@!PT" and not instruction.table
        else None
    )


def _merge_by_line(accesses: Accesses, compiled: dict[tuple[Place, str], list[InstructionCount]]) -> None:
    """Merge calls on a line, and lines of a statement list, that match the source only in total: inlined or unrolled
    code may have another line."""
    of_line: dict[Hashable, list[tuple[Place, str]]] = defaultdict(list)
    for place, kind in accesses:
        of_line[place[0], kind].append((place, kind))
    _merge_groups(of_line.values(), accesses, compiled)
    of_list: dict[Hashable, list[tuple[Place, str]]] = defaultdict(list)
    for key, statements in accesses.items():
        lists, sizes = {one.context for one in statements}, {one.site.size for one in statements}
        if len(lists) == len(sizes) == 1:
            of_list[lists.pop(), sizes.pop(), key[1]].append(key)
    _merge_groups(of_list.values(), accesses, compiled)


def _merge_groups(
    groups: Iterable[list[tuple[Place, str]]],
    accesses: Accesses,
    compiled: dict[tuple[Place, str], list[InstructionCount]],
) -> None:
    """Merge groups that match the source only in total."""
    for keys in groups:
        statements = [one for key in keys for one in accesses[key]]
        instructions_made = [one for key in keys for one in compiled.get(key, ())]
        differs_separately = any(_differs(accesses[key], compiled.get(key, ())) for key in keys)
        if len(keys) > 1 and differs_separately and not _differs(statements, instructions_made):
            for key in keys:
                del accesses[key]
                compiled.pop(key, None)
            accesses[keys[0]], compiled[keys[0]] = statements, instructions_made


def _matches_executions(instruction: InstructionCount, statements: Sequence[Statement]) -> bool:
    """Return whether an instruction has the executions and width of some statements."""
    return (
        access_width(instruction.instruction) == statements[0].site.size
        and is_close(instruction.warps, sum(each.warps for each in statements))
        and is_close(instruction.threads, sum(each.lanes for each in statements))
    )


def _merge_unmatched(
    by_access: Mapping[tuple[Place, str], list[InstructionCount]],
    accesses: Accesses,
    chosen: Mapping[int, tuple[int, str]],
) -> None:
    """Merge an access without instructions with one of excess executions, or, in opposite arms, of excess lanes."""
    for (place, kind), unmatched in list(accesses.items()):
        if (place, kind) in by_access:
            continue
        warps = sum(one.warps for one in unmatched)
        for at in sorted((at for at, of in by_access if of == kind), key=lambda at: _distance(place, at)):
            more = sum(one.warps for one in by_access[at, kind]) - sum(one.warps for one in accesses[at, kind])
            if any(one.instruction.predicate for one in by_access[at, kind]):
                continue  # counts include predicated-off executions
            lanes = sum(one.threads for one in by_access[at, kind]) - sum(one.lanes for one in accesses[at, kind])
            arms = shared_branch_accesses([*accesses[at, kind], *unmatched], chosen) and is_close(
                lanes, sum(one.lanes for one in unmatched)
            )
            if by_access[at, kind] and (more >= (1 - TOLERANCES.executions) * warps or arms):
                accesses[at, kind] = accesses[at, kind] + accesses.pop((place, kind))
                break


def _aggregating_places(instructions: Sequence[InstructionCount]) -> set[Place]:
    """Return locations where lanes elect a leader and combine their operands."""
    opcodes: dict[Place, set[str]] = defaultdict(set)
    for instruction in instructions:
        opcodes[instruction.place].add(instruction.instruction.opcode)
    return {
        place
        for place, known in opcodes.items()
        if "REDUX" in known or (known & _VOTE_OPCODES and known & _LEADER_OPCODES)
    }


def _distance(a: Place, b: Place) -> tuple[int, int]:
    """Return the number of unshared calls of two locations, and the line distance."""
    shared = 0
    for mine, its in zip(reversed(a), reversed(b), strict=False):
        if mine != its:
            break
        shared += 1
    at, its = (place[len(place) - 1 - shared] if shared < len(place) else place[0] for place in (a, b))
    return len(a) + len(b) - 2 * shared, abs(at - its)


def _merged_with(
    statements: list[Statement], accesses: Accesses, compiled: Mapping[tuple[Place, str], list[InstructionCount]]
) -> str | None:
    """Return the message for accesses merged into a wider one on another line of their list, if any."""
    kind, size = statements[0].site.kind, statements[0].site.size
    lists, arrays = {one.context for one in statements}, {one.site.array for one in statements}
    for (place, other), instructions_at in compiled.items():
        its = accesses.get((place, other), [])
        if other != kind or {one.context for one in its} != lists:
            continue
        wide = max((access_width(one.instruction) for one in instructions_at), default=0)
        side_by_side = kind in SHARED or {one.site.array for one in its} & arrays
        if side_by_side and wide >= its[0].site.size + size:
            return f"nvcc merges {access_text(len(statements), kind)} with that of line {its[0].site.span.line} into one of {wide} bytes"
    return None


def _differs(statements: Sequence[Statement], compiled: Sequence[InstructionCount]) -> bool:
    """Return whether instructions differ from the source accesses in number, width or lanes."""
    warps, lanes = sum(one.warps for one in statements), sum(one.lanes for one in statements)
    size = statements[0].site.size
    return (
        any(one.instruction.predicate or one.uncertainty or access_width(one.instruction) != size for one in compiled)
        or not is_close(sum(one.warps for one in compiled), warps, TOLERANCES.lanes)
        or not is_close(sum(one.threads for one in compiled), lanes, TOLERANCES.lanes)
    )


def _may_regroup_lanes(statements: Sequence[Statement], compiled: Sequence[InstructionCount]) -> bool:
    """Return whether lanes may access memory together with others than in the source, in copies of a loop body."""
    partly = sum(one.lanes for one in statements) < 32 * sum(one.warps for one in statements)
    return partly and len(compiled) > len(statements)
