"""Source sites of the memory instructions of a compiled kernel, by source location, kind and accessed array."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ..compiled.instruction_counts import InstructionCount, Place
from ..compiled.kernel import CompiledKernel
from ..compiled.opcode_classes import EFFECTS
from ..profiler.events import LANES, WARPS

_MEMORIES = ("global", "shared", "local", "constant")


@dataclass(frozen=True)
class AccessSites:
    """Sites of the executed accesses. by_instruction: for each memory instruction that ran, its sites; without a site at
    its location, all of its kind and array. unlocated: instructions of the latter. warp_aggregated: sites of atomics
    that one lane executes for all. eliminated: executed sites without an instruction."""

    by_instruction: Mapping[int, tuple[int, ...]]
    unlocated: frozenset[int]
    warp_aggregated: frozenset[int]
    eliminated: frozenset[int]


def access_kind(counted: InstructionCount) -> str:
    """Return the kind of an access; empty for other instructions."""
    return "constant_load" if counted.instruction.opcode == "LDC" else EFFECTS.get(counted.instruction.opcode, "")


def sites_of(compiled: CompiledKernel) -> AccessSites:
    """Assign the sites of the source to the memory instructions of a compiled kernel."""
    launched, arrays = compiled.launched, compiled.executed.first.arrays
    sites, counts = launched.request.prepared.sites, launched.counts
    assert counts is not None
    inlining_known = any(len(one.place) > 1 for one in compiled.instructions)
    by_place: dict[tuple[Place, str], list[int]] = defaultdict(list)
    by_kind: dict[str, list[int]] = defaultdict(list)
    for number, place, kind in launched.executed:
        if kind.partition("_")[0] in _MEMORIES:
            by_place[place if inlining_known else place[:1], kind].append(number)
            by_kind[kind].append(number)
    result, unlocated, aggregated, located = dict[int, tuple[int, ...]](), set[int](), set[int](), set[int]()
    for n, counted in enumerate(compiled.instructions):
        kind = access_kind(counted)
        if not counted.warps or kind not in by_kind or counted.instruction.predicate == "@!PT":
            continue
        at_place = by_place.get((counted.place, kind), [])
        of_array = [number for number in at_place or by_kind[kind] if sites[number].array in arrays.get(n, ())]
        result[n] = tuple(of_array or at_place or by_kind[kind])
        if at_place:
            located |= set(result[n])
        else:
            unlocated.add(n)
        lanes, warps = (sum(int(counts[number, column]) for number in result[n]) for column in (LANES, WARPS))
        active = compiled.executed.first.active[n]
        if kind.endswith(("atomic", "reduction")) and lanes > warps and active == compiled.executed.first.traffic[n, 0]:
            aggregated |= set(result[n])
    eliminated = {number for numbers in by_kind.values() for number in numbers} - located
    eliminated -= {number for n in unlocated for number in result[n]}
    return AccessSites(result, frozenset(unlocated), frozenset(aggregated), frozenset(eliminated))
