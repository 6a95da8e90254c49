"""The time of a launch on a GPU: what each part of it would take alone, and how they overlap.

An interval model: of an SM, the cycles that each pipe, L1, L2, device memory and the chain of each warp need are computed
apart; the slowest of them is nearly the time, and the others add to it as far as they are near.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from ..ir.access import AccessKind
from ..machine.device import WARP, Device
from ..machine.occupancy import Occupancy, occupancy
from ..profiler import events
from ..profiler.events import Counts
from ..runtime.engine import Request
from .caches import ACCESSES, FAR_HITS, LINES, MISSES, NEAR_HITS, SECTORS, Traffic, simulate
from .chain import Chain, expanded
from .lines import LOAD, Lines

SHARPNESS = 4.0
"""How little the parts that are not the slowest add: times add up as powers with this exponent. An assumption so far."""
INTERVAL = 1.5
"""A time is stated from so many times less to so many times more, until errors on this device have been recorded."""
_RATED = ("alu", "imul", "fp32", "fp64", "sfu", "convert", "shuffle")


@dataclass(frozen=True)
class Observed:
    """A launch that was emulated: what it counted, and its accesses. registers: a thread's, where a compiler told."""

    request: Request
    counts: Counts
    lines: Lines
    registers: int = 0

    @property
    def shared_bytes(self) -> int:
        """Of a block, static and dynamic."""
        return self.request.dynamic_shared + self.request.prepared.shared

    @property
    def blocks(self) -> int:
        return prod(self.request.grid)

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-prod(self.request.block) // WARP)

    def occupancy(self, device: Device) -> Occupancy:
        """Without registers where nobody told them."""
        return occupancy(device, prod(self.request.block), self.registers, self.shared_bytes)

    @property
    def instructions(self) -> dict[str, int]:
        """By pipe, of all warps."""
        found: dict[str, int] = {}
        for site, row in zip(self.request.prepared.sites, self.counts, strict=True):
            for pipe, count in expanded(site.costs).items():
                found[pipe] = found.get(pipe, 0) + count * int(row[events.WARPS])
        return found

    def column(self, column: int, space: str) -> int:
        """Of all accesses to a memory."""
        rows = zip(self.request.prepared.sites, self.counts, strict=True)
        return sum(int(r[column]) for s, r in rows if isinstance(s.action, AccessKind) and s.action.space == space)


@dataclass(frozen=True)
class Estimate:
    """What a launch would take.

    time_us, low_us, high_us: microseconds, and the interval they are stated with. bound: what the launch waits for most.
    limits: what each part would take alone, in microseconds. traffic: of the memories. occupancy: theoretical.
    remarks: why the time should be doubted. warp_instructions: machine instructions, estimated from the source.
    """

    time_us: float
    low_us: float
    high_us: float
    bound: str
    limits: Mapping[str, float]
    traffic: Traffic
    occupancy: Occupancy
    warp_instructions: int
    remarks: tuple[str, ...]


def estimate(
    observed: Observed, device: Device, cold: bool = False, traffic: Traffic | None = None, **given: Any
) -> Estimate:
    """The time of a launch on a device, by the emulator's counts and accesses.

    The launch was emulated for a device with the same rules of memory. cold: with an empty L2; else as after an earlier launch of
    the same. traffic: of its memories, if it is known already. given: parts of the model put otherwise, for `changes`:
    `resident` blocks of an SM, `balanced` (all SMs get the same), factors of `limits` by name (`scale`).
    """
    occupied = observed.occupancy(device)
    resident = given.get("resident", max(1, occupied.active_blocks))
    traffic = traffic or simulate(observed.lines, device, resident, observed.shared_bytes, cold)
    timing, clock = device.timing, float(device.clock)
    blocks = observed.blocks
    busiest = blocks / device.sms if given.get("balanced") else ceil(blocks / device.sms)
    share = busiest / blocks
    instructions = observed.instructions
    every = sum(instructions.values())
    limits = {"issue": every * share * 100 / (timing.schedulers * timing.issue)}
    for pipe in _RATED:
        rate = getattr(device.rates, pipe)
        if rate and instructions.get(pipe):
            limits[pipe] = instructions[pipe] * share * WARP / rate
    lines, requests = traffic.total(LINES), traffic.total(ACCESSES)
    conflicts = observed.column(events.WAVEFRONTS, "shared") * WARP / max(1, device.rates.shared)
    moved = traffic.total(SECTORS) * 32 / timing.l1_width
    local = observed.column(events.WARPS, "local")
    limits["L1"] = share * (conflicts + max(lines, moved, requests * timing.request_interval) + local * 2)
    l2_bytes = traffic.l2_sectors * 32
    limits["L2"] = max(share * l2_bytes / timing.l2_width, l2_bytes * clock / (timing.l2_bandwidth * 1e3))
    limits["DRAM"] = traffic.dram_bytes * clock / (device.bandwidth * timing.dram_share)
    limits["atomics"] = float(traffic.hottest * timing.atomic_interval)
    turns = busiest / resident if given.get("balanced") else ceil(busiest / resident)
    chain = Chain(observed.request.prepared, observed.counts, device, _latencies(observed, traffic, device))
    limits["latency"] = chain.cycles(blocks * observed.warps) * max(1, turns)
    for name, factor in given.get("scale", {}).items():
        limits[name] = limits.get(name, 0.0) * factor
    cycles = sum(limit**SHARPNESS for limit in limits.values()) ** (1 / SHARPNESS)
    time = cycles / clock + timing.launch / 1000
    bound = max(limits, key=lambda name: limits[name])
    if cycles / clock < timing.launch / 1000:
        bound = "launch"
    elif (
        not given
        and blocks % device.sms
        and estimate(observed, device, cold, traffic, balanced=True).time_us < 0.75 * time
    ):
        bound = "tail"
    return Estimate(
        time, time / INTERVAL, time * INTERVAL, bound, {name: cycles / clock for name, cycles in limits.items()}, traffic,
        occupied, every, tuple(_remarks(observed, device, time)),
    )  # fmt: skip


def _latencies(observed: Observed, traffic: Traffic, device: Device) -> Any:
    """By site, the cycles of an access: as far away as its farthest line is answered."""
    timing, sites, counts = device.timing, observed.request.prepared.sites, observed.counts

    def latency(site: int) -> float:
        kind, row, counted = sites[site].access, traffic.sites[site], counts[site]
        if kind.space == "shared":
            requests = max(1, int(counted[events.REQUESTS]))
            return timing.shared + 2 * max(0.0, int(counted[events.WAVEFRONTS]) / requests - 1)
        if kind.space != "global":
            return float(timing.l1)
        accesses = int(row[ACCESSES])
        if not accesses:
            return float(timing.l2)
        if traffic.kinds[site] != LOAD:
            return float(timing.atomic)
        left, mean = 1.0, 0.0
        for column, cycles in ((MISSES, timing.dram), (FAR_HITS, timing.l2_far), (NEAR_HITS, timing.l2)):
            part = min(left, int(row[column]) / accesses)
            mean, left = mean + part * cycles, left - part
        return mean + left * timing.l1 + 2 * (int(row[LINES]) / accesses - 1)

    return latency


def _remarks(observed: Observed, device: Device, time: float) -> list[str]:
    """Why a time is to be doubted."""
    found = [f"not validated on {device.name}: no measured times are recorded"]
    if observed.blocks < device.sms:
        found.append(f"a small grid: {observed.blocks} blocks for {device.sms} SMs")
    if observed.column(events.WARPS, "local"):
        found.append("local memory is taken to be in L1")
    if not observed.registers:
        found.append("registers are known to nvcc alone: taken not to limit")
    if time < 2 * device.timing.launch / 1000:
        found.append("mostly the launch itself")
    return found
