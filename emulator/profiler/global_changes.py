"""Changes of accesses to global memory, evaluated on sampled accesses: layouts, copies in shared memory, combined atomics."""

from collections.abc import Iterator, Sequence

import numpy as np

from .events import SECTORS
from .remedies import Remedy, Saving
from .sampled_sites import LaunchFacts, SampledSite, savings_by_counter

MIN_SAVED = 0.2
"""Fraction of the counter of the changed accesses that a change saves at least."""
MIN_TABLE_SAVED = 0.5
"""The same for a copy in shared memory, whose accesses cost too."""
MIN_SHIFT_SAVED = 0.1
"""The same for another start of an array: at most one of five sectors of 4-byte elements."""
CERTAIN = 0.95
"""Fraction of the avoidable transactions, or of the accesses, with the pattern of a change."""
MIN_ELEMENTS = 4
"""Elements of an access with a regular distance: fewer have one by chance."""
MAX_STRUCT_BYTES = 64
"""Largest distance of elements that is assumed to be the size of a struct."""
MIN_SCATTERED = 0.5
"""Sectors for each element of accesses without an order."""
MIN_SHARE = 0.2
"""Fraction of the sectors of a kernel for advice without a prediction."""
SECTOR_CYCLES, INSTRUCTION_CYCLES = 0.5, 0.25
"""Cycles of an SM for a sector and for a warp instruction."""
SHUFFLED_SUM, SHUFFLED_RANK, MATCHED_SUM = 12, 4, 9
"""Instructions added to an atomic operation: sum of a warp by shuffles; ranks of lanes by a ballot; one operation for each group
of `match_any`. Counted on the kernels of tests/profiler/advised.py."""


def of_global(group: Sequence[SampledSite], launch: LaunchFacts) -> Iterator[Remedy]:
    """Yield the changes of the accesses to one array that save sectors."""
    plain = [site for site in group if site.access.operation in ("load", "store") and site.reproduced]
    read_only = len(plain) == len(group) and all(site.operation == "load" for site in plain)
    loads = [site for site in plain if site.operation == "load"]
    stores = [site for site in plain if site.operation == "store"]
    scattered = (*_scattered(loads, launch, read_only), *_scattered(stores, launch, read_only))
    changes = [*_regular(loads), *_regular(stores)] or scattered
    yield from changes or _misaligned(plain)
    yield from contended([site for site in group if site not in plain])


def _regular(sites: Sequence[SampledSite]) -> Iterator[Remedy]:
    """Evaluate neighbours in memory instead of elements at one distance."""
    by_spacing: dict[tuple[int, int, int], float] = {}
    saved: list[tuple[SampledSite, float]] = []
    worst, avoidable = (0, 0), 0.0
    for site in sites:
        spacing = site.lanes.spacing
        regular = site.wasteful & (spacing[:, 0] > 0) & (site.lanes.distinct >= MIN_ELEMENTS)
        least = site.lanes.sectors(site.lanes.packed(site.sector), site.sector)
        less = np.where(regular, site.sectors - least, 0)
        for block, *pair in np.unique(np.column_stack([site.blocks, spacing])[less > 0], axis=0).tolist():
            own = np.where((site.blocks == block) & (spacing == pair).all(axis=1), less, 0)
            key = (block, pair[0] * site.access.size, pair[1])
            by_spacing[key] = by_spacing.get(key, 0.0) + site.total(own)
        if less.any():
            saved.append((site, site.total(less)))
            at = int(np.argmax(less))
            worst = max(worst, (int(site.sectors[at]), int(least[at])))
        avoidable += site.total(np.where(regular, less, np.where(site.wasteful, site.spare, 0)))
    total = sum(count for _, count in saved)
    before = sum(site.total(site.sectors) for site in sites)
    if not saved or total < max(MIN_SAVED * before, CERTAIN * avoidable):
        return
    largest: dict[int, tuple[float, int, int]] = {}
    for (block, *pair), count in by_spacing.items():
        largest[block] = max(largest.get(block, (0.0, 0, 0)), (count, *pair))
    if sum(count for count, *_ in largest.values()) < CERTAIN * total:
        return  # the distance changes in a block, as in a tree or a sorting network
    _, distance, run = max(largest.values())
    size = saved[0][0].access.size
    order = tuple(site.number for site, _ in sorted(saved, key=lambda item: -item[1]))
    fields = _fields([site for site, _ in saved], distance) if run == 1 else 0
    several = int(len({tuple(pair) for _, *pair in largest.values()}) > 1)
    numbers = (distance // size, run, size, *worst, fields, several)
    yield Remedy("stride", order, savings_by_counter(saved), round(SECTOR_CYCLES * total), numbers)


def _fields(sites: Sequence[SampledSite], distance: int) -> int:
    """Return the number of fields of a struct of `distance` bytes that are accessed; 0 if a site accesses several."""
    offsets: set[tuple[str, int]] = set()
    for site in sites:
        own = np.unique(site.lanes.elements * site.access.size % distance)
        if len(own) > 1:
            return 0
        offsets.add((site.access.array, int(own[0])))
    return len(offsets) if distance <= MAX_STRUCT_BYTES else 0


def _scattered(sites: Sequence[SampledSite], launch: LaunchFacts, read_only: bool) -> Iterator[Remedy]:
    """Evaluate a copy of an array in shared memory, then the order of its addresses. sites: loads, or stores."""
    irregular = {site: site.wasteful & site.lanes.irregular & (site.lanes.distinct >= MIN_ELEMENTS) for site in sites}
    spare = {site: site.total(np.where(irregular[site], site.spare, 0)) for site in sites}
    sectors = sum(site.total(np.where(irregular[site], site.sectors, 0)) for site in sites)
    elements = sum(site.total(np.where(irregular[site], site.lanes.distinct, 0)) for site in sites)
    before = sum(site.total(site.sectors) for site in sites)
    total = sum(spare.values())
    if not total or total < MIN_SAVED * before:
        return
    predictable = total >= MIN_TABLE_SAVED * before and sectors >= MIN_SCATTERED * elements
    order = sorted(sites, key=lambda site: -spare[site])
    worst = order[0]
    at = int(np.argmax(worst.spare))
    shown = (int(worst.lanes.lanes[at]), int(worst.lanes.distinct[at]), int(worst.sectors[at]))
    cycles = round(SECTOR_CYCLES * total)
    size = launch.lengths.get(worst.access.array, 0) * worst.access.size
    copies = launch.blocks * -(-size // worst.sector)
    fits = 0 < size <= launch.device.shared_per_block - launch.shared
    reused = sum(site.total(site.lanes.lanes) for site in sites) * worst.access.size >= launch.blocks * size
    single = len({site.access.array for site in sites}) == 1
    if predictable and read_only and single and fits and reused and copies <= (1 - MIN_TABLE_SAVED) * before:
        loads, added = tuple(site.number for site in order), launch.copy_instructions(size // worst.access.size)
        savings = (Saving(worst.counter, round(before - copies)), Saving("warp_instructions", -added))
        yield Remedy("table", loads, savings, cycles - round(INSTRUCTION_CYCLES * added), (*shown, size))
        return
    numbers = tuple(site.number for site in order if spare[site])
    if predictable and len(sites) == 1 and launch.complete and worst.number not in launch.loops:
        by_address = _by_address(worst)
        if before - by_address >= MIN_SAVED * before:
            yield Remedy("order", numbers, (Saving(worst.counter, round(before - by_address)),), cycles, shown)
            return
    if before >= MIN_SHARE * float(launch.counts[:, SECTORS].sum()):
        requested = sum(site.total(site.lanes.distinct) * site.access.size for site in sites)
        used = sum(site.total(site.sectors) * site.sector for site in sites)
        yield Remedy("scattered", numbers, (), cycles, (*shown, round(100 * requested / used)))


def _by_address(site: SampledSite) -> float:
    """Return the expected sectors of the same elements in ascending order, a warp after the other.

    Each sector is transferred once, and once more where a warp ends between two of its elements.
    """
    elements = site.lanes.index[site.lanes.active]
    sectors = len(np.unique(elements * site.access.size // site.sector))
    return sectors + len(site.sectors) * (1 - sectors / len(elements))


def _misaligned(sites: Sequence[SampledSite]) -> Iterator[Remedy]:
    """Evaluate another start of an array with accesses in the order of the lanes."""
    arrays = {(site.access.array, site.access.size) for site in sites}
    before = sum(site.total(site.sectors) for site in sites)
    contiguous = sum(site.total(np.where(np.abs(site.lanes.lane_step) == 1, site.sectors, 0)) for site in sites)
    if len(arrays) != 1 or contiguous < CERTAIN * before:
        return
    ((_, size),) = arrays

    def saved(shift: int) -> list[tuple[SampledSite, float]]:
        return [
            (site, site.total(site.sectors - site.lanes.sectors(site.lanes.elements + shift, site.sector)))
            for site in sites
        ]

    totals = [sum(count for _, count in saved(shift)) for shift in range(max(site.sector for site in sites) // size)]
    shift = int(np.argmax(totals))
    if totals[shift] < max(MIN_SHIFT_SAVED * before, 1.0):
        return
    order = sorted(saved(shift), key=lambda item: -item[1])
    most = int(order[0][0].sectors.max())
    numbers = tuple(site.number for site, count in order if count)
    yield Remedy(
        "alignment", numbers, savings_by_counter(order), round(SECTOR_CYCLES * totals[shift]), (shift, most, most - 1)
    )


def contended(sites: Sequence[SampledSite]) -> Iterator[Remedy]:
    """Evaluate one atomic operation for all lanes of a warp that change one element. sites: of one array."""
    saved: list[tuple[SampledSite, float]] = []
    for site in sites:
        lanes = site.lanes
        if site.access.combines and site.reproduced:
            before = site.transactions(lanes.index, lanes.active)
            less = before - site.transactions(lanes.index, lanes.first_lanes)
            if less and less >= MIN_SAVED * before:
                saved.append((site, less))
    for single in (True, False):
        own = [item for item in saved if (float((item[0].lanes.distinct == 1).mean()) >= CERTAIN) == single]
        added = sum(_added(site, single) * site.executions for site, _ in own)
        cycles = round(sum(less for _, less in own) - INSTRUCTION_CYCLES * added)
        if not own or cycles <= 0:
            continue
        own.sort(key=lambda item: -item[1])
        lanes = own[0][0].lanes
        at = int(np.argmax(lanes.lanes - lanes.distinct))
        numbers = (int(lanes.lanes[at]), int(lanes.distinct[at]), int(single))
        savings = (*savings_by_counter(own), Saving("warp_instructions", -added))
        yield Remedy("contended", tuple(site.number for site, _ in own), savings, cycles, numbers)


def _added(site: SampledSite, single: bool) -> int:
    """Return the instructions added to an atomic operation. single: of one element."""
    if not single:
        return MATCHED_SUM
    return SHUFFLED_RANK if site.operation == "atomic" and site.access.space == "global" else SHUFFLED_SUM
