"""Execution time of a launch on a device.

With a compiled kernel, one SM is simulated cycle by cycle (`sm_simulator`) and bounded by device-wide limits. From the
source alone an interval model is used: cycles of each pipe, L1, L2, device memory and the critical path of a warp,
combined by a power mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from ..compiled.kernel import ExecutedKernel
from ..compiled.opcode_classes import access_of
from ..compiled.pipes import TENSOR
from ..errors import LaunchError
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..machine.occupancy import Occupancy
from ..profiler import events
from .access_lines import Kind
from .caches import simulate
from .critical_path import CriticalPath
from .executed_warps import ExecutedWarps, Floats, Words
from .instruction_stream import OWN_PIPES, Field, as_sectors, executions_by_pipe, stream, warps_of
from .line_trace import LINE, LineTrace
from .observed import ExecutedLaunch, ObservedLaunch, trace_of
from .sm_simulator import LOADED_LATENCY_INCREASE, SmWorkload, run, single_warp_cycles
from .traffic import Column, Traffic
from .validated import VALIDATED

OVERLAP_EXPONENT = 4.0
"""Exponent of the power mean: larger values add less of the lesser limits. Assumed, not measured."""
MEMORIES = ("L1", "L2", "DRAM", "slices", "atomics", "blocks")
"""Limits without instructions."""
_IMBALANCE_LIMIT = 3.0
"""Accesses of the longest warp relative to the mean, up to which launches were validated."""
DEFAULT_INTERVAL_FACTOR = 1.5
"""Factor of the stated interval on devices without recorded errors."""
_MAX_EXACT_BLOCKS = 1 << 16
"""Blocks up to which the most loaded SM is determined."""
_RATED = ("alu", "imul", "fp32", "fp64", "sfu", "convert", "shuffle")


@dataclass(frozen=True)
class Estimate:
    """Estimated time of a launch.

    time_us, low_us, high_us: microseconds, with the interval. bound: limiting resource. limits: time of each resource
    alone, in microseconds. traffic: of the memories. occupancy: theoretical. warp_instructions: SASS instructions.
    remarks: reservations. kernel: the executed kernel; None for instructions of the source. waited: float64[instruction],
    fraction of the cycles of warps in which they wait for its issue.
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
    kernel: ExecutedKernel | None = None
    waited: Floats | None = None


def estimate(
    observed: ObservedLaunch | ExecutedLaunch, device: Device, cold: bool = False, traffic: Traffic | None = None,
    **overrides: Any,
) -> Estimate:  # fmt: skip
    """Return the time of a launch on a device from the emulator's counts and accesses.

    The emulation must use a device with equal counting rules. cold: with an empty L2; else after an identical launch.
    traffic: of its memories, if known. overrides, for `changes`: `resident` blocks per SM, `balanced` (equal work per
    SM), `scale` (factors of limits by name), `loaded` (`sm_simulator.LOADED_LATENCY_INCREASE`).
    """
    kernel = observed.compiled(device)
    if isinstance(kernel, ExecutedKernel) and isinstance(observed, ObservedLaunch) and not observed.registers:
        observed = replace(observed, registers=kernel.registers)
    occupancy_found = observed.occupancy(device)
    resident = overrides.get("resident", max(1, occupancy_found.active_blocks))
    setting = _Setting(observed.blocks, device, resident, overrides)
    if isinstance(kernel, str):
        assert isinstance(observed, ObservedLaunch)
        traffic = traffic or simulate(observed.lines, device, resident, observed.shared_bytes, cold)
        cycles = _cycles_of_source(setting, observed, traffic, f"instructions are counted from the source: {kernel}")
    else:
        warps = warps_of(kernel)
        classes = warps.class_of.reshape(-1, observed.warps)
        traffic = traffic or simulate(trace_of(kernel), device, resident, observed.shared_bytes, cold, classes)
        cycles = _cycles_of_simulation(setting, traffic, kernel, warps)
    timing, clock = device.timing, float(device.clock)
    time = cycles.total / clock + timing.launch / 1000
    bound = _bound(cycles.limits)
    if cycles.total / clock < timing.launch / 1000:
        bound = "launch"
    elif (
        not overrides
        and observed.blocks % device.sms
        and estimate(observed, device, cold, cycles.traffic, balanced=True).time_us < 0.75 * time
    ):
        bound = "tail"
    low, high = _interval(kernel, device, bound)
    return Estimate(
        time, time * low, time * high, bound, {name: limit / clock for name, limit in cycles.limits.items()}, cycles.traffic,
        occupancy_found, cycles.instructions, (cycles.remark, *_remarks(observed, kernel, device, time)),
        kernel if isinstance(kernel, ExecutedKernel) else None, cycles.waited,
    )  # fmt: skip


@dataclass(frozen=True)
class _Setting:
    """A launch of `blocks` on a device. resident: blocks per SM. overrides: as of `estimate`."""

    blocks: int
    device: Device
    resident: int
    overrides: dict[str, Any]

    @property
    def is_balanced(self) -> bool:
        return bool(self.overrides.get("balanced"))

    @property
    def max_blocks_per_sm(self) -> float:
        blocks = self.blocks
        return blocks / self.device.sms if self.is_balanced else ceil(blocks / self.device.sms)

    @property
    def share(self) -> float:
        """The fraction of the blocks on the SM with most blocks."""
        return self.max_blocks_per_sm / self.blocks

    @property
    def scale(self) -> dict[str, float]:
        factors: dict[str, float] = self.overrides.get("scale", {})
        return factors


@dataclass(frozen=True)
class _Cycles:
    """The cycles of a launch. limits: of each resource alone."""

    total: float
    limits: dict[str, float]
    instructions: int
    traffic: Traffic
    remark: str
    waited: Floats | None = None


def _cycles_of_source(setting: _Setting, observed: ObservedLaunch, traffic: Traffic, remark: str) -> _Cycles:
    """Return the overlap of the limits of the source's instructions and accesses."""
    device = setting.device
    traffic = replace(traffic, merge_ratio=traffic.merge_bound)
    sectors = {int(n): float(observed.counts[n, events.SECTORS]) for n in np.flatnonzero(traffic.kinds == Kind.ATOMIC)}
    limits = _memories(setting, observed.lines, traffic, observed.column(events.WAVEFRONTS, "shared"), sectors)
    if observed.multiplies_matrices:
        raise LaunchError(f"the time of matrix instructions is predicted from SASS alone: {remark.rpartition(': ')[2]}")
    instructions = observed.instructions
    total_instructions = sum(instructions.values())
    limits |= _issue(instructions, total_instructions, device, setting.share)
    waves = setting.max_blocks_per_sm / setting.resident
    critical_path = CriticalPath(
        observed.request.prepared, observed.counts, device, _latencies(observed, traffic, device)
    )
    path = critical_path.cycles(observed.blocks * observed.warps)
    limits["latency"] = path * max(1, waves if setting.is_balanced else ceil(waves))
    limits = {name: limit * setting.scale.get(name, 1.0) for name, limit in limits.items()}
    cycles = sum(limit**OVERLAP_EXPONENT for limit in limits.values()) ** (1 / OVERLAP_EXPONENT)
    return _Cycles(cycles, limits, total_instructions, traffic, remark)


def _cycles_of_simulation(setting: _Setting, traffic: Traffic, kernel: ExecutedKernel, warps: ExecutedWarps) -> _Cycles:
    """Return the cycles of the SM simulator, and the limits of each resource."""
    grid, device, overrides, scale = setting.blocks, setting.device, setting.overrides, setting.scale
    lines = trace_of(kernel)
    instructions = stream(kernel, lines, traffic, device, warps)
    sm_blocks = ceil(setting.max_blocks_per_sm)
    all_resident = sm_blocks <= setting.resident
    blocks = warps.of_blocks(_blocks_of_simulated_sm(warps, grid, device.sms, all_resident))
    per_block = float(warps.lengths[blocks].sum()) / sm_blocks
    workload = SmWorkload(
        instructions, device, blocks, setting.resident, setting.max_blocks_per_sm / sm_blocks,
        min(grid, device.sms), per_block,
    )  # fmt: skip
    result = run(workload, scale, overrides.get("loaded", LOADED_LATENCY_INCREASE))
    traffic = replace(traffic, merge_ratio=result.merge_ratio)
    kinds = [access_of(one.instruction).kind for one in kernel.instructions]
    wavefronts = sum(
        one.transactions for one, kind in zip(kernel.instructions, kinds, strict=True) if kind[:6] == "shared"
    )
    sectors = {
        int(lines.sites.site_of[n]): one.transactions
        for n, one in enumerate(kernel.instructions)
        if kinds[n] in ("global_atomic", "global_reduction")
    }
    limits = _memories(setting, lines, traffic, wavefronts, sectors)
    tensor = instructions.code[:, Field.PIPE] == OWN_PIPES.index(TENSOR)
    if tensor.any():
        starts = np.array([one.warps for one in kernel.instructions]) * tensor
        limits[TENSOR] = float(starts @ instructions.code[:, Field.COST]) * setting.share / device.timing.schedulers
    limits |= _issue(_rates_by_pipe(executions_by_pipe(kernel)), kernel.warp_instructions, device, setting.share)
    limits = {name: limit * scale.get(name, 1.0) for name, limit in limits.items()}
    without_memories = {**scale, "L1": 0.0, "L2": 0.0, "DRAM": 0.0}
    limits["latency"] = result.cycles if overrides else run(workload, without_memories).cycles
    longest_warp, length_ratio = warps.longest
    longest = length_ratio * single_warp_cycles(instructions, device, longest_warp, scale)
    cycles = max(result.cycles, limits["atomics"], limits["slices"], longest)
    # source accesses may exceed the compiled kernel's; no limit exceeds the total
    limits = {name: min(limit, cycles) for name, limit in limits.items()}
    remark = f"instructions are counted as nvcc compiles them for {kernel.arch}"
    return _Cycles(cycles, limits, kernel.warp_instructions, traffic, remark, result.waited)


def _blocks_of_simulated_sm(warps: ExecutedWarps, blocks: int, sms: int, all_resident: bool) -> Words:
    """Return the blocks of the simulated SM, among those with most blocks: the most loaded one if all are resident at
    once; else the one closest to the mean, as blocks are scheduled dynamically."""
    first = np.arange((blocks - 1) % sms + 1 if blocks < _MAX_EXACT_BLOCKS else 1)
    blocks_by_sm = first[:, None] + sms * np.arange(ceil(blocks / sms))
    work = warps.lengths[warps.of_blocks(blocks_by_sm)].sum(axis=(1, 2))
    selected: Words = blocks_by_sm[work.argmax() if all_resident else abs(work - work.mean()).argmin()]
    return selected


def _issue(instructions: Mapping[str, int | float], total: float, device: Device, share: float) -> dict[str, float]:
    """Return cycles of the schedulers and of each pipe on the busiest SM."""
    limits = {"issue": total * share * 100 / (device.timing.schedulers * device.timing.issue)}
    for pipe in _RATED:
        rate = getattr(device.rates, pipe)
        if rate and instructions.get(pipe):
            limits[pipe] = instructions[pipe] * share * WARP_SIZE / rate
    return limits


def _rates_by_pipe(pipes: Mapping[str, float]) -> dict[str, float]:
    """Return SASS instructions by the names of `Device.rates`."""
    names = {"alu": "alu", "imul": "imul", "fp32": "fma", "fp64": "fp64", "sfu": "xu"}
    return {name: pipes.get(pipe, 0.0) for name, pipe in names.items()}


def _memories(
    setting: _Setting, lines: LineTrace, traffic: Traffic, wavefronts: float, adds: Mapping[int, float]
) -> dict[str, float]:
    """Return cycles of each memory and of block launches. wavefronts: of shared memory. adds: sectors of atomics by site."""
    device, share, timing, clock = setting.device, setting.share, setting.device.timing, float(setting.device.clock)
    conflicts = wavefronts * WARP_SIZE / max(1, device.rates.shared)
    sites = traffic.sites[~np.isin(traffic.kinds, (Kind.CONSTANT, Kind.BULK_LOAD))]
    moved = np.array([timing.request_interval, LINE / timing.l1_width, 1 / timing.lookup_rate])
    l1 = float((sites[:, [Column.ACCESSES, Column.CYCLES, Column.LINES]] * moved).max(axis=1, initial=0.0).sum())
    stored_sectors, requests = (
        traffic.total(Column.SECTORS, Kind.STORE, Kind.LOCAL_STORE),
        traffic.total(Column.L2_REQUESTS),
    )
    requests -= traffic.total(Column.L2_REQUESTS, Kind.STORE, Kind.LOCAL_STORE)
    stored, sectors = traffic.stored
    sent_fraction = sectors / stored_sectors if stored_sectors else 0.0
    merged = traffic.merged_copies
    l2_bytes = 32 * (
        as_sectors(requests - merged * 32 / LINE, traffic.l2_sectors - sectors - merged, device, stored=False)
        + as_sectors(stored, sectors, device, stored=True)
    )
    adds_cycles = sum(
        count / (timing.fetch_rate if site in lines.sites.fetching else timing.atomic_rate)
        for site, count in adds.items()
    )
    return {
        "L1": share * (conflicts + l1),
        "L2": max(share * l2_bytes / timing.l2_width, l2_bytes * clock / (timing.l2_bandwidth * 1e3)),
        "DRAM": (traffic.dram_bytes + traffic.dram_wasted) * clock / (device.bandwidth * timing.dram_share),
        "atomics": max(
            lines.busiest_slice_cycles(timing.l2_slices, 0.0, timing.atomic_interval),
            lines.hottest_float_adds * timing.float_interval,
            adds_cycles,
        ),
        "slices": lines.busiest_slice_cycles(
            timing.l2_slices, timing.store_interval * sent_fraction, timing.atomic_interval
        ),
        "blocks": setting.blocks * timing.block_interval,
    }


def _bound(limits: Mapping[str, float]) -> str:
    """Return the largest limit; "latency" if all others are below 0.7 of it."""
    other_limits = {name: limit for name, limit in limits.items() if name != "latency"}
    largest = max(other_limits, key=lambda name: other_limits[name])
    return largest if other_limits[largest] >= 0.7 * limits["latency"] else "latency"


def _latencies(observed: ObservedLaunch, traffic: Traffic, device: Device) -> Any:
    """Return the mean latency of an access by site, in cycles."""
    timing, sites, counts = device.timing, observed.request.prepared.sites, observed.counts

    def latency(site: int) -> float:
        kind, row, counted = sites[site].access, traffic.sites[site], counts[site]
        if kind.space == "shared":
            requests = max(1, int(counted[events.REQUESTS]))
            return timing.shared + 2 * max(0.0, int(counted[events.WAVEFRONTS]) / requests - 1)
        if kind.space != "global":
            return float(timing.l1)
        accesses = int(row[Column.ACCESSES])
        if not accesses:
            return float(timing.l2)
        if traffic.kinds[site] != Kind.LOAD:
            return float(timing.atomic)
        remaining, mean = 1.0, 0.0
        for column, cycles in (
            (Column.MISSES, timing.dram),
            (Column.FAR_HITS, timing.l2_far),
            (Column.NEAR_HITS, timing.l2),
        ):
            fraction = min(remaining, int(row[column]) / accesses)
            mean, remaining = mean + fraction * cycles, remaining - fraction
        return mean + remaining * timing.l1 + 2 * (int(row[Column.LINES]) / accesses - 1)

    return latency


def _interval(kernel: ExecutedKernel | str, device: Device, bound: str) -> tuple[float, float]:
    """Return factors of the interval with nine of ten measured times."""
    if isinstance(kernel, str) or device.name not in VALIDATED:
        return 1 / DEFAULT_INTERVAL_FACTOR, DEFAULT_INTERVAL_FACTOR
    return VALIDATED[device.name].factors(bound)


def _remarks(
    observed: ObservedLaunch | ExecutedLaunch, kernel: ExecutedKernel | str, device: Device, time: float
) -> list[str]:
    """Return reservations about a time."""
    remarks = [f"not validated on {device.name}: no measured times are recorded"]
    if device.name in VALIDATED:
        remarks = (
            [f"not validated on {device.name} without nvcc"]
            if isinstance(kernel, str)
            else [str(VALIDATED[device.name])]
        )
        if observed.claims_work:
            remarks.append("warps claim work dynamically: equal work is assumed")
        elif (
            imbalance := (observed.lines if isinstance(kernel, str) else trace_of(kernel)).imbalance
        ) > _IMBALANCE_LIMIT:
            remarks.append(
                f"uneven warps, beyond what was validated: the longest makes {imbalance:.1f} times the accesses"
            )
    if observed.blocks < device.sms:
        remarks.append(f"a small grid: {observed.blocks} blocks for {device.sms} SMs")
    if not observed.registers:
        remarks.append("the register count is unknown without nvcc: assumed not to limit occupancy")
    if time < 2 * device.timing.launch / 1000:
        remarks.append("mostly the launch itself")
    return remarks
