"""Changes of accesses to shared, local and constant memory, evaluated on sampled accesses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..language.intrinsics import WARP_SIZE
from .access_sampling import AccessSampler
from .events import WAVEFRONTS
from .global_changes import CERTAIN, INSTRUCTION_CYCLES, MIN_SAVED, MIN_SHARE, MIN_TABLE_SAVED, contended, of_global
from .lane_elements import LaneElements, Mask
from .remedies import Remedy, Saving
from .sampled_sites import LaunchFacts, SampledSite, sampled_sites, savings_by_counter

MIN_PITCH = 4
"""Elements of a row at least: padding adds at most a quarter."""
CANDIDATES = 4
"""Most frequent distances of elements that are tried as the length of a row."""
LOCAL_CYCLES = 2
"""Cycles of an access to local memory, four sectors."""


def remedies(sampler: AccessSampler, launch: LaunchFacts) -> tuple[Remedy, ...]:
    """Return the changes that save transactions of memory. The fields of a struct are one array of global memory."""
    arrays: dict[tuple[str, str], list[SampledSite]] = {}
    for site in sampled_sites(sampler, launch):
        array = site.access.array.split(".")[0]
        arrays.setdefault((site.access.space, array), []).append(site)
    return tuple(remedy for (space, _), group in arrays.items() for remedy in _CHANGES[space](group, launch))


def _of_shared(group: Sequence[SampledSite], launch: LaunchFacts) -> Iterator[Remedy]:
    combined = [*contended(group)]
    yield from combined or [*_padded(group, launch)] or _conflicting(group, launch)


def _padded(sites: Sequence[SampledSite], launch: LaunchFacts) -> Iterator[Remedy]:
    """Evaluate an unused element after each row of the array."""
    if not all(site.reproduced and site.access.operation in ("load", "store") for site in sites):
        return
    before = sum(site.transactions(site.lanes.index, site.lanes.active) for site in sites)
    distances = _distances(sites)
    banks = sites[0].device.banks * sites[0].device.bank_width // sites[0].access.size
    pitches = [pitch for pitch in {banks, *distances} if pitch >= MIN_PITCH]
    choices = {pitch: _saved_by_padding(sites, pitch) for pitch in pitches}
    totals = {pitch: sum(count for _, count in saved) for pitch, saved in choices.items()}
    pitch = max(totals, key=lambda one: (totals[one], one in distances, -one), default=0)
    if not pitch or _of_regular(sites, pitch) < CERTAIN * totals[pitch]:
        return
    length = launch.lengths.get(sites[0].access.array, 0)
    size = -(-length // pitch) * sites[0].access.size
    if totals[pitch] < max(MIN_SAVED * before, 1.0) or launch.shared + size > launch.device.shared_per_block_optin:
        return
    order = sorted(choices[pitch], key=lambda item: -item[1])
    worst = order[0][0]
    rows = range(min(len(worst.lanes.index), 64))
    wavefronts = max(worst.transactions(worst.lanes.index[[n]], worst.lanes.active[[n]]) / worst.scale for n in rows)
    numbers = tuple(site.number for site, count in order if count)
    yield Remedy("padding", numbers, savings_by_counter(order), round(totals[pitch]), (pitch, round(wavefronts)))


def _conflicting(group: Sequence[SampledSite], launch: LaunchFacts) -> Iterator[Remedy]:
    """Find bank conflicts of loads and stores of elements at irregular distances, which no padding avoids."""
    plain = [site for site in group if site.reproduced and site.access.operation in ("load", "store")]
    before = sum(site.transactions(site.lanes.index, site.lanes.active) for site in plain)
    sites = [_selected(site, site.lanes.irregular & (site.lanes.lane_step == 0)) for site in plain]
    spare = {site: site.transactions(site.lanes.index, site.lanes.active) - _least(site) for site in sites}
    total = sum(spare.values())
    if total < max(MIN_SAVED * before, 1.0) or before < MIN_SHARE * float(launch.counts[:, WAVEFRONTS].sum()):
        return
    order = sorted((site for site in sites if spare[site]), key=lambda site: -spare[site])
    yield Remedy("conflicts", tuple(site.number for site in order), (), round(total), (round(100 * total / before),))


def _selected(site: SampledSite, rows: Mask) -> SampledSite:
    """Return a site with some of its accesses."""
    lanes = LaneElements(site.lanes.index[rows], site.lanes.active[rows], site.lanes.size)
    return replace(site, lanes=lanes, blocks=site.blocks[rows])


def _least(site: SampledSite) -> float:
    """Return the wavefronts of the accesses of a site, if each lane accessed the word of its number."""
    return site.transactions(np.broadcast_to(np.arange(WARP_SIZE), site.lanes.index.shape), site.lanes.active)


def _saved_by_padding(sites: Sequence[SampledSite], pitch: int) -> list[tuple[SampledSite, float]]:
    result = []
    for site in sites:
        index, active = site.lanes.index, site.lanes.active
        result.append((site, site.transactions(index, active) - site.transactions(index + index // pitch, active)))
    return result


def _of_regular(sites: Sequence[SampledSite], pitch: int) -> float:
    """Return the wavefronts that padding saves for accesses of elements at regular distances."""
    regular = [_selected(site, (site.lanes.spacing[:, 0] > 0) | (site.lanes.lane_step != 0)) for site in sites]
    return sum(count for _, count in _saved_by_padding(regular, pitch))


def _distances(sites: Sequence[SampledSite]) -> set[int]:
    """Return the most frequent distances of elements of one access."""
    result: set[int] = set()
    for site in sites:
        distances, counts = np.unique(site.lanes.spacing[:, 0], return_counts=True)
        frequent = distances[np.argsort(-counts)][: CANDIDATES + 1]
        result |= {int(distance) for distance in frequent if distance > 1}
    return result


def _of_local(group: Sequence[SampledSite], launch: LaunchFacts) -> Iterator[Remedy]:
    """Evaluate a local array in shared memory, if its index is known at run time only: then it is not in registers."""
    array = group[0].access.array
    size = launch.lengths.get(array, 0) * group[0].access.size * launch.threads
    if array not in launch.in_memory or not 0 < size <= launch.device.shared_per_block_optin - launch.shared:
        return
    counts: dict[str, int] = {}
    for site in group:
        counter = f"local_{site.operation}s"
        counts[counter] = counts.get(counter, 0) + site.executions
    order = sorted(group, key=lambda site: -site.executions)
    distinct = max(int(site.lanes.distinct.max()) for site in group)
    shared = {counter.replace("local", "shared")[:-1] + "_requests": -count for counter, count in counts.items()}
    savings = tuple(Saving(*item) for item in (counts | shared).items())
    numbers = tuple(site.number for site in order)
    yield Remedy("local", numbers, savings, LOCAL_CYCLES * sum(counts.values()), (distinct, launch.threads, size))


def _of_constant(group: Sequence[SampledSite], launch: LaunchFacts) -> Iterator[Remedy]:
    """Evaluate a copy in shared memory, which serves different addresses of a warp at once."""
    size = launch.lengths.get(group[0].access.array, 0) * group[0].access.size
    addresses = sum(site.total(site.lanes.distinct) for site in group)
    wavefronts = sum(site.transactions(site.lanes.index, site.lanes.active, "shared") for site in group)
    fits = 0 < size <= launch.device.shared_per_block - launch.shared
    if not fits or wavefronts > (1 - MIN_TABLE_SAVED) * addresses:
        return
    order = sorted(group, key=lambda site: -site.total(site.lanes.distinct))
    executions, added = sum(site.executions for site in group), launch.copy_instructions(size // group[0].access.size)
    savings = (Saving("constant_loads", executions), Saving("warp_instructions", -added))
    distinct = max(int(site.lanes.distinct.max()) for site in group)
    numbers = tuple(site.number for site in order)
    cycles = round(addresses - wavefronts - INSTRUCTION_CYCLES * added)
    yield Remedy("constant", numbers, savings, cycles, (distinct, size))


_CHANGES: Mapping[str, Callable[[Sequence[SampledSite], LaunchFacts], Iterator[Remedy]]] = {
    "global": of_global, "shared": _of_shared, "local": _of_local, "constant": _of_constant,
}  # fmt: skip
