"""The sampled accesses of a launch by site, and their transactions by the rules of the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..language.intrinsics import WARP_SIZE
from ..machine import transactions
from ..machine.device import Device
from .access_sampling import AccessSampler
from .events import SECTORS, WARPS, WAVEFRONTS, Counts
from .lane_elements import LaneElements, Mask, Numbers
from .remedies import Saving

_COPY = 7
"""Instructions of a warp that copies an element for each lane: loop, index, load, store. Counted on tests/profiler/advised.py."""
TOLERANCE = 0.05
"""Relative difference between a counter and its estimate from a sample."""


class SiteAccess(NamedTuple):
    """The access of a site. operation: an `ir.access.Operation`. combines: whether lanes could combine their atomic operations
    on one element."""

    space: str
    operation: str
    array: str
    size: int
    combines: bool


@dataclass(frozen=True)
class LaunchFacts:
    """Facts about a launch.

    accesses: by number of the site. lengths: elements of each array. counts: int64[site, column]. blocks, threads: of the
    grid, of a block. shared: bytes of shared memory of a block. loops: sites in a loop. complete: whether all accesses
    are in the sample. in_memory: local arrays that no compiler keeps in registers.
    """

    accesses: Mapping[int, SiteAccess]
    lengths: Mapping[str, int]
    counts: Counts
    device: Device
    blocks: int
    threads: int
    shared: int
    loops: frozenset[int] = field(default=frozenset())
    complete: bool = True
    in_memory: frozenset[str] = field(default=frozenset())

    def copy_instructions(self, length: int) -> int:
        """Return the warp instructions of all blocks that copy an array of this length to shared memory."""
        return _COPY * self.blocks * -(-self.threads // WARP_SIZE) * -(-length // self.threads)


@dataclass(frozen=True, eq=False)
class SampledSite:
    """The sampled accesses of one site. The launch has `scale` times as many. blocks: int64[n], the block of each access."""

    number: int
    access: SiteAccess
    lanes: LaneElements
    blocks: Numbers
    scale: float
    device: Device
    counts: Counts

    @property
    def operation(self) -> str:
        """The operation, as counters name it."""
        operation = self.access.operation
        return {"count": "atomic", "swap": "atomic", "copy": "store"}.get(operation, operation)

    @property
    def counter(self) -> str:
        """The name of the counter of its transactions."""
        return f"{self.access.space}_{self.operation}_{'sectors' if self.access.space == 'global' else 'wavefronts'}"

    @property
    def executions(self) -> int:
        """Executions by warps."""
        return int(self.counts[self.number][WARPS])

    @property
    def sector(self) -> int:
        """Bytes of the smallest transfer of global memory."""
        return self.device.load_sector if self.operation == "load" else self.device.sector

    @cached_property
    def sectors(self) -> Numbers:
        """int64[n]: the sectors of each access, a load or a store."""
        return self.lanes.sectors(self.lanes.elements, self.sector)

    @cached_property
    def spare(self) -> Numbers:
        """int64[n]: the sectors beyond those that the different elements of an access would fill."""
        return np.asarray(self.sectors - -(-self.lanes.distinct * self.lanes.size // self.sector))

    @cached_property
    def wasteful(self) -> Mask:
        """bool[n]: accesses that transfer more bytes than their lanes request, except of elements in the order of the lanes."""
        requested = self.lanes.lanes * self.lanes.size
        return np.asarray((self.sectors * self.sector > requested) & (np.abs(self.lanes.lane_step) != 1))

    def total(self, sampled: Numbers) -> float:
        """Return the sum over the launch of a number for each access."""
        return float(sampled.sum()) * self.scale

    def transactions(self, index: Numbers, active: Mask, space: str = "") -> float:
        """Return the sectors, packets or wavefronts, summed over the launch, if lanes accessed these elements."""
        out = np.zeros(3, np.int64)
        arguments = np.ascontiguousarray(index), np.ascontiguousarray(active), self.access.size, self.device, out
        transactions.count(space or self.access.space, self.access.operation, *arguments)
        return float(out[1]) * self.scale

    @cached_property
    def reproduced(self) -> bool:
        """Whether the sample has the transactions of the launch, for its share of the executions."""
        counted = int(self.counts[self.number][SECTORS if self.access.space == "global" else WAVEFRONTS])
        return abs(self.transactions(self.lanes.index, self.lanes.active) - counted) <= TOLERANCE * counted


def sampled_sites(sampler: AccessSampler, launch: LaunchFacts) -> list[SampledSite]:
    """Return the sites with sampled accesses, in order."""
    entries = sampler.sample()
    if not len(entries):
        return []
    numbers, starts = np.unique(entries["site"], return_index=True)
    sites = []
    for number, own in zip(numbers.tolist(), np.split(entries, starts[1:]), strict=True):
        access = launch.accesses[number]
        scale = int(launch.counts[number][WARPS]) / len(own)
        sites.append(
            SampledSite(
                number,
                access,
                LaneElements.from_entries(own, access.size),
                own["block"],
                scale,
                launch.device,
                launch.counts,
            )
        )
    return sites


def savings_by_counter(saved: Sequence[tuple[SampledSite, float]]) -> tuple[Saving, ...]:
    """Return the sum of the savings of each counter, without zeros."""
    sums: dict[str, float] = {}
    for site, count in saved:
        sums[site.counter] = sums.get(site.counter, 0.0) + count
    return tuple(Saving(counter, round(count)) for counter, count in sums.items() if round(count))
