"""Source sites of the memory instructions of a compiled kernel, by source location, kind and accessed array."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..compiled.instruction_counts import InstructionCount, Place
from ..compiled.kernel import CompiledKernel
from ..compiled.opcode_classes import EFFECTS, access_width
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
    result |= _in_order(compiled, {n: numbers for n, numbers in result.items() if n not in unlocated})
    return AccessSites(result, frozenset(unlocated), frozenset(aggregated), frozenset(eliminated))


def _in_order(
    compiled: CompiledKernel, located: Mapping[int, tuple[int, ...]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the sites of instructions that are copies of several sites of one line, such as an unrolled loop.

    The instructions of a basic block that share their sites are assigned to these in the order of their addresses; one
    that is wider than a site has several. A block without a whole number of copies is left out.
    """
    counts, sites = compiled.executed.first, compiled.launched.request.prepared.sites
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for n, block in enumerate(counts.basic_blocks().tolist()):
        if n in counts.first_addresses and len(located.get(n, ())) > 1:
            groups[block, located[n]].append(n)
    for (_, numbers), copies in groups.items():
        ordered = sorted(copies, key=lambda n: counts.first_addresses[n])
        widths = [max(1, access_width(compiled.instructions[n].instruction) // sites[numbers[0]].size) for n in ordered]
        if sum(widths) % len(numbers):
            continue
        first = 0
        for n, width in zip(ordered, widths, strict=True):
            yield n, tuple(sorted({numbers[(first + k) % len(numbers)] for k in range(width)}))
            first += width
