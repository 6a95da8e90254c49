"""The time of a launch on a GPU: what each part of it would take alone, and how they overlap.

An interval model: of an SM, the cycles that each pipe, L1, L2, device memory and the chain of each warp need are computed
apart; the slowest of them is nearly the time, and the others add to it as far as they are near.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, prod
from typing import Any

import numpy as np

from ..compiled.kernel import CompiledKernel, compiled_kernel
from ..compiled.kernel_launches import printed_kernels
from ..errors import LaunchError
from ..ir.access import AccessKind
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..machine.occupancy import Occupancy, occupancy
from ..passes.work_queues import uses_dynamic_work
from ..profiler import events
from ..profiler.decisions import Decisions
from ..profiler.events import Counts
from ..runtime.engine import Request
from .caches import simulate
from .critical_path import CriticalPath, expanded
from .instruction_stream import as_sectors, classes_of, stream
from .line_trace import ATOMIC, CONSTANT, LINE, LOAD, LOCAL_LOAD, LOCAL_STORE, STORE, LineTrace
from .sm_simulator import LOADED_LATENCY_INCREASE, run, single_warp_cycles
from .traffic import ACCESSES, CYCLES, FAR_HITS, L2_REQUESTS, LINES, MISSES, NEAR_HITS, SECTORS, Traffic
from .validated import VALIDATED
from .warp_classes import WarpClasses, Words

OVERLAP_EXPONENT = 4.0
"""How little the parts that are not the slowest add: times add up as powers with this exponent. An assumption so far."""
CRITICAL_PATH_SCALE, INSTRUCTION_SCALE = 1.0, 1.0
"""Factors of the chain of a warp, and of instructions, which are counted from the source. Assumptions so far, as SHARPNESS is:
`simtbed hardware errors` prints what fits measured times."""
MEMORIES = ("L1", "L2", "DRAM", "slices", "atomics", "blocks")
"""Limits that no instruction is counted in."""
MIN_NVCC_CAPABILITY = (7, 5)
"""The oldest compute capability that today's nvcc compiles for."""
_IMBALANCE_LIMIT = 3.0
"""Accesses of the longest warp, as so many times the average, from which on launches were not validated."""
DEFAULT_INTERVAL_FACTOR = 1.5
"""A time is stated from so many times less to so many times more, until errors on this device have been recorded."""
_MAX_EXACT_BLOCKS = 1 << 16
"""Blocks up to which it is looked at which SM has most to do."""
_RATED = ("alu", "imul", "fp32", "fp64", "sfu", "convert", "shuffle")


def limit_scale(limit: str) -> float:
    """By which a limit of that name is multiplied."""
    return CRITICAL_PATH_SCALE if limit == "latency" else 1.0 if limit in MEMORIES else INSTRUCTION_SCALE


@dataclass(frozen=True)
class ObservedLaunch:
    """A launch that was emulated: what it counted, and its accesses. registers: a thread's, where a compiler told.

    decisions: which way its branches went; without them only the source is counted. kernels: compiled, by architecture; why they
    could not be where it is text.
    """

    request: Request
    counts: Counts
    lines: LineTrace
    registers: int = 0
    decisions: Decisions | None = None
    kernels: dict[str, CompiledKernel | str] = field(default_factory=dict, repr=False)

    def compiled(self, device: Device) -> CompiledKernel | str:
        """What nvcc makes of the kernel for a device, and what that executed; or why that is not known, in words."""
        if self.decisions is None:
            return "the source was counted alone"
        if device.compute_capability < MIN_NVCC_CAPABILITY:
            return f"today's nvcc does not compile for {device.name}"
        arch = "sm_{}{}".format(*device.compute_capability)
        if arch not in self.kernels:
            (launched,) = printed_kernels([(self.request, self.counts, self.decisions)])
            try:
                self.kernels[arch] = compiled_kernel(launched, arch, match_arrays=True)
            except LaunchError as error:
                self.kernels[arch] = str(error).splitlines()[0]
        return self.kernels[arch]

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
        return -(-prod(self.request.block) // WARP_SIZE)

    def occupancy(self, device: Device) -> Occupancy:
        """Without registers where nobody told them."""
        return occupancy(device, prod(self.request.block), self.registers, self.shared_bytes)

    @property
    def instructions(self) -> dict[str, int]:
        """By pipe, of all warps."""
        result: dict[str, int] = {}
        for site, row in zip(self.request.prepared.sites, self.counts, strict=True):
            for pipe, count in expanded(site.costs).items():
                result[pipe] = result.get(pipe, 0) + count * int(row[events.WARPS])
        return result

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
    observed: ObservedLaunch, device: Device, cold: bool = False, traffic: Traffic | None = None, **overrides: Any
) -> Estimate:
    """The time of a launch on a device, by the emulator's counts and accesses.

    The launch was emulated for a device with the same rules of memory. cold: with an empty L2; else as after an earlier launch of
    the same. traffic: of its memories, if it is known already. given: parts of the model put otherwise, for `changes`:
    `resident` blocks of an SM, `balanced` (all SMs get the same), factors of `limits` by name (`scale`), `sm_simulator.LOADED_LATENCY_INCREASE`.
    """
    kernel = observed.compiled(device)
    if isinstance(kernel, CompiledKernel) and not observed.registers:
        observed = replace(observed, registers=kernel.registers)
    occupancy_found = observed.occupancy(device)
    resident = overrides.get("resident", max(1, occupancy_found.active_blocks))
    if isinstance(kernel, str):
        traffic = traffic or simulate(observed.lines, device, resident, observed.shared_bytes, cold)
    else:
        assert observed.decisions is not None
        warp_classes = classes_of(kernel, observed.decisions.warps)
        traffic = traffic or simulate(
            observed.lines, device, resident, observed.shared_bytes, cold, _eliminated_sites(observed, kernel),
            warp_classes.classes(np.arange(observed.lines.traced_blocks)),
        )  # fmt: skip
    timing, clock = device.timing, float(device.clock)
    blocks = observed.blocks
    max_blocks_per_sm = blocks / device.sms if overrides.get("balanced") else ceil(blocks / device.sms)
    share = max_blocks_per_sm / blocks
    scale = overrides.get("scale", {})
    warp_aggregated = frozenset[int]() if isinstance(kernel, str) else kernel.memory.warp_aggregated
    if isinstance(kernel, str):
        traffic = replace(traffic, merge_ratio=traffic.merge_bound)
        limits = _memories(observed, traffic, device, share, warp_aggregated)
        instructions = observed.instructions
        total_instructions = sum(instructions.values())
        limits |= _issue(instructions, total_instructions, device, share)
        waves = max_blocks_per_sm / resident if overrides.get("balanced") else ceil(max_blocks_per_sm / resident)
        critical_path = CriticalPath(
            observed.request.prepared, observed.counts, device, _latencies(observed, traffic, device)
        )
        limits["latency"] = critical_path.cycles(blocks * observed.warps) * max(1, waves)
        limits = {name: limit * limit_scale(name) * scale.get(name, 1.0) for name, limit in limits.items()}
        cycles = sum(limit**OVERLAP_EXPONENT for limit in limits.values()) ** (1 / OVERLAP_EXPONENT)
        remark = f"instructions are counted from the source: {kernel}"
    else:
        instructions_of_warps = stream(kernel, traffic, device, warp_classes)
        total_instructions = round(instructions_of_warps.executed)
        sm_blocks = ceil(max_blocks_per_sm)
        block_classes = instructions_of_warps.warp_classes.classes(
            _blocks_of_simulated_sm(instructions_of_warps.warp_classes, blocks, device.sms, sm_blocks <= resident)
        )
        instructions_per_block = float(instructions_of_warps.warp_classes.lengths[block_classes].sum()) / sm_blocks
        simulation = (
            instructions_of_warps,
            device,
            block_classes,
            resident,
            max_blocks_per_sm / sm_blocks,
            min(blocks, device.sms),
            instructions_per_block,
        )
        result = run(*simulation, scale, overrides.get("loaded", LOADED_LATENCY_INCREASE))
        traffic = replace(traffic, merge_ratio=result.merge_ratio)
        limits = _memories(observed, traffic, device, share, warp_aggregated) | _issue(
            _rates_by_pipe(instructions_of_warps.pipes), total_instructions, device, share
        )
        limits = {name: limit * scale.get(name, 1.0) for name, limit in limits.items()}
        limits["latency"] = (
            run(*simulation, {**scale, "L1": 0.0, "L2": 0.0, "DRAM": 0.0}).cycles if not overrides else result.cycles
        )
        longest_class, length_ratio = instructions_of_warps.warp_classes.imbalance
        longest = length_ratio * single_warp_cycles(instructions_of_warps, device, longest_class, scale)
        cycles = max(result.cycles, limits["atomics"], limits["slices"], longest)
        # The source's accesses may be more than those of the compiled kernel: no part takes longer alone than all together.
        limits = {name: min(limit, cycles) for name, limit in limits.items()}
        remark = f"instructions are counted as nvcc compiles them for {kernel.arch}"
    time = cycles / clock + timing.launch / 1000
    bound = _bound(limits)
    if cycles / clock < timing.launch / 1000:
        bound = "launch"
    elif (
        not overrides
        and blocks % device.sms
        and estimate(observed, device, cold, traffic, balanced=True).time_us < 0.75 * time
    ):
        bound = "tail"
    low, high = _interval(kernel, device, bound)
    return Estimate(
        time, time * low, time * high, bound, {name: cycles / clock for name, cycles in limits.items()}, traffic,
        occupancy_found, total_instructions, (remark, *_remarks(observed, kernel, device, time)),
    )  # fmt: skip


def _eliminated_sites(observed: ObservedLaunch, kernel: CompiledKernel) -> frozenset[int]:
    """Sites of the source whose accesses the compiled kernel does not make."""
    has_local = any(one.instruction.opcode in ("LDL", "STL") for one in kernel.instructions)
    register_sites = () if has_local else np.flatnonzero(np.isin(observed.lines.kinds, (LOCAL_LOAD, LOCAL_STORE)))
    return kernel.memory.eliminated | set(map(int, register_sites))


def _blocks_of_simulated_sm(warp_classes: WarpClasses, blocks: int, sms: int, all_resident: bool) -> Words:
    """The blocks of the SM that is simulated, of those that have most of them: the one with most to do where all of them are placed
    at once; else, as blocks go to whoever has ended one, the one that is nearest to the average."""
    first = np.arange((blocks - 1) % sms + 1 if blocks < _MAX_EXACT_BLOCKS else 1)
    blocks_by_sm = first[:, None] + sms * np.arange(ceil(blocks / sms))
    work = warp_classes.lengths[warp_classes.classes(blocks_by_sm)].sum(axis=(1, 2))
    selected: Words = blocks_by_sm[work.argmax() if all_resident else abs(work - work.mean()).argmin()]
    return selected


def _issue(instructions: Mapping[str, int | float], total: float, device: Device, share: float) -> dict[str, float]:
    """Cycles that the schedulers and each pipe take on the SM that has most to do."""
    limits = {"issue": total * share * 100 / (device.timing.schedulers * device.timing.issue)}
    for pipe in _RATED:
        rate = getattr(device.rates, pipe)
        if rate and instructions.get(pipe):
            limits[pipe] = instructions[pipe] * share * WARP_SIZE / rate
    return limits


def _rates_by_pipe(pipes: Mapping[str, float]) -> dict[str, float]:
    """Machine instructions by the names of rates."""
    names = {"alu": "alu", "imul": "imul", "fp32": "fma", "fp64": "fp64", "sfu": "xu"}
    return {name: pipes.get(pipe, 0.0) for name, pipe in names.items()}


def _memories(
    observed: ObservedLaunch, traffic: Traffic, device: Device, share: float, warp_aggregated: frozenset[int]
) -> dict[str, float]:
    """Cycles that each memory takes, and blocks to begin. together: sites of atomics that one lane makes for all."""
    timing, clock, lines = device.timing, float(device.clock), observed.lines
    conflicts = observed.column(events.WAVEFRONTS, "shared") * WARP_SIZE / max(1, device.rates.shared)
    sites = traffic.sites[traffic.kinds != CONSTANT]
    moved = np.array([timing.request_interval, LINE / timing.l1_width, 1 / timing.lookup_rate])
    l1 = float((sites[:, [ACCESSES, CYCLES, LINES]] * moved).max(axis=1, initial=0.0).sum())
    stored_sectors, requests = traffic.total(SECTORS, STORE, LOCAL_STORE), traffic.total(L2_REQUESTS)
    requests -= traffic.total(L2_REQUESTS, STORE, LOCAL_STORE)
    stored, sectors = traffic.stored
    sent_fraction = sectors / stored_sectors if stored_sectors else 0.0
    l2_bytes = 32 * (
        as_sectors(requests, traffic.l2_sectors - sectors, device, stored=False)
        + as_sectors(stored, sectors, device, stored=True)
    )
    adds_cycles = sum(
        int(row[events.REQUESTS if site in warp_aggregated else events.SECTORS])
        / (timing.fetch_rate if site in lines.fetching else timing.atomic_rate)
        for site, row in enumerate(observed.counts)
        if traffic.kinds[site] == ATOMIC
    )
    return {
        "L1": share * (conflicts + l1),
        "L2": max(share * l2_bytes / timing.l2_width, l2_bytes * clock / (timing.l2_bandwidth * 1e3)),
        "DRAM": (traffic.dram_bytes + traffic.dram_wasted) * clock / (device.bandwidth * timing.dram_share),
        "atomics": max(
            lines.busiest_slice_cycles(timing.l2_slices, 0.0, timing.atomic_interval, warp_aggregated),
            lines.hottest_float_adds * timing.float_interval,
            adds_cycles,
        ),
        "slices": lines.busiest_slice_cycles(
            timing.l2_slices, timing.store_interval * sent_fraction, timing.atomic_interval, warp_aggregated
        ),
        "blocks": observed.blocks * timing.block_interval,
    }


def _bound(limits: Mapping[str, float]) -> str:
    """The part that takes longest; latency where none of the others takes most of what it takes."""
    other_limits = {name: limit for name, limit in limits.items() if name != "latency"}
    largest = max(other_limits, key=lambda name: other_limits[name])
    return largest if other_limits[largest] >= 0.7 * limits["latency"] else "latency"


def _latencies(observed: ObservedLaunch, traffic: Traffic, device: Device) -> Any:
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
        remaining, mean = 1.0, 0.0
        for column, cycles in ((MISSES, timing.dram), (FAR_HITS, timing.l2_far), (NEAR_HITS, timing.l2)):
            fraction = min(remaining, int(row[column]) / accesses)
            mean, remaining = mean + fraction * cycles, remaining - fraction
        return mean + remaining * timing.l1 + 2 * (int(row[LINES]) / accesses - 1)

    return latency


def _interval(kernel: CompiledKernel | str, device: Device, bound: str) -> tuple[float, float]:
    """Factors of a time between which nine of ten measured ones lay, where some were measured."""
    if isinstance(kernel, str) or device.name not in VALIDATED:
        return 1 / DEFAULT_INTERVAL_FACTOR, DEFAULT_INTERVAL_FACTOR
    return VALIDATED[device.name].factors(bound)


def _remarks(observed: ObservedLaunch, kernel: CompiledKernel | str, device: Device, time: float) -> list[str]:
    """Why a time is to be doubted."""
    remarks = [f"not validated on {device.name}: no measured times are recorded"]
    if device.name in VALIDATED:
        remarks = (
            [f"not validated on {device.name} without nvcc"]
            if isinstance(kernel, str)
            else [str(VALIDATED[device.name])]
        )
        if uses_dynamic_work(observed.request.prepared.program.kernel):
            remarks.append("warps take work until none is left: each is taken to do as much as the others")
        elif observed.lines.imbalance > _IMBALANCE_LIMIT:
            remarks.append(
                f"uneven warps, beyond what was validated: the longest makes {observed.lines.imbalance:.1f} times the accesses"
            )
    if observed.blocks < device.sms:
        remarks.append(f"a small grid: {observed.blocks} blocks for {device.sms} SMs")
    if isinstance(kernel, CompiledKernel) and kernel.resources.spill_loads:
        remarks.append("spilled registers are taken to be in L1")
    if not observed.registers:
        remarks.append("registers are known to nvcc alone: taken not to limit")
    if time < 2 * device.timing.launch / 1000:
        remarks.append("mostly the launch itself")
    return remarks
