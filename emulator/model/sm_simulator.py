"""Cycle-level simulator of one SM: warp schedulers, scoreboards, pipes, load/store unit, barriers.

Resident blocks run concurrently; a finished block is replaced. Each warp takes the path of its execution, its groups of lanes
one after the other. Memories are queues with a bandwidth and a latency. Schedulers prefer the oldest warp, among stores the
one that waits longest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import language as st
from ..errors import LaunchError
from ..language.hints import f64, i64
from ..machine.device import Device
from ..native import native
from .instruction_stream import LSU_PIPE, Field, Floats, InstructionKind, InstructionStream, Role, Words
from .lsu import GOLDEN_STEP, OPERAND_READ_CYCLES, count_pending, raise_scoreboard, ready_at, serve
from .records import zeroed
from .sm_barriers import arrive_at_barrier, release_barrier, take_part
from .sm_state import (
    COPY_GROUPS,
    FAR_FUTURE,
    MAX_OPEN_STORES,
    MAX_QUEUE_DEPTH,
    PIPES,
    SCOREBOARDS,
    Code,
    Counter,
    Cycle,
    Launch,
    LsuState,
    Memory,
    Queues,
    Rates,
    Result,
    Slots,
    Sm,
    Status,
    Warps,
)

MAX_INSTRUCTIONS = 300_000
"""Simulated instructions of a launch; the rest continues at the rate of the second half."""
LOADED_LATENCY_INCREASE = 0.6
"""Relative increase of the device-memory latency at full load."""
_BARRIER_INTERVAL = 2.1
"""Cycles between barrier arrivals of an SM; 1 to 64 warps measured on an H100."""
_PHASE_LATENCY = 30
"""Cycles from the last arrival at a phase to the next instruction of a warp that waits for it; measured on an H200."""
_IMUL_PIPE = PIPES - 1


# ------------------------------------------------------------------ blocks
@st.device
def _start_block(sm: Sm, slot: i64) -> None:
    """Launch the next block in a slot."""
    for warp in range(slot * sm.launch.warps, (slot + 1) * sm.launch.warps):
        sm.warps.status[warp] = i64(Status.STARTING)
        sm.warps.ready[warp] = sm.clock[Cycle.NEXT_BEGIN]
        sm.warps.order[warp] = sm.counters[Counter.STARTED] * sm.launch.warps + warp - slot * sm.launch.warps
    sm.slots.live_warps[slot] = sm.launch.warps
    block, place = sm.counters[Counter.STARTED], slot * sm.launch.most_phases
    first = sm.launch.first_phases[block]
    for phase in range(sm.launch.past_phases[block] - first):
        sm.slots.left[place + phase] = sm.launch.arrivals[first + phase]
        sm.slots.phase_times[place + phase] = f64(0)
    sm.counters[Counter.STARTED] += 1
    sm.counters[Counter.LIVE] += sm.launch.warps


@st.device
def _replace_blocks(sm: Sm) -> None:
    """Replace the blocks whose warps and accesses have finished."""
    sm.counters[Counter.ENDED] = i64(0)
    for slot in range(sm.launch.resident):
        if sm.slots.live_warps[slot] == 0 and sm.slots.queued[slot] == 0:
            sm.slots.live_warps[slot] = i64(-1)
            sm.results[Result.FINISHED_BLOCKS] += f64(1)
            if sm.counters[Counter.STARTED] < sm.launch.blocks:
                settled = max(sm.clock[Cycle.NOW], sm.slots.settled[slot])
                sm.clock[Cycle.NEXT_BEGIN] = max(sm.clock[Cycle.NEXT_BEGIN], settled) + sm.rates.block_interval
                sm.slots.settled[slot] = f64(0)
                _start_block(sm, slot)
                sm.clock[Cycle.SOONEST] = min(sm.clock[Cycle.SOONEST], sm.clock[Cycle.NEXT_BEGIN])


@st.device
def _start_warp(sm: Sm, warp: i64) -> None:
    """Reset a warp to the first instruction of its path."""
    sm.warps.status[warp] = i64(Status.RUNNING)
    sm.warps.issued[warp] = sm.warps.ready[warp]
    sm.lsu.rehits[warp] = f64(0)
    sm.warps.run[warp] = sm.launch.first_runs[sm.warps.order[warp]]
    sm.warps.pc[warp] = sm.code.path[sm.warps.run[warp]]
    for board in range(i64(SCOREBOARDS)):
        sm.warps.scoreboards[warp * SCOREBOARDS + board] = f64(0)
    sm.warps.event[warp] = sm.launch.first_events[sm.warps.order[warp]]
    sm.warps.copied[warp] = f64(0)
    sm.warps.committed[warp] = i64(0)
    sm.warps.completed[warp] = i64(0)


@st.device
def _end_warp(sm: Sm, warp: i64, slot: i64) -> None:
    """End a warp."""
    if sm.warps.status[warp] == Status.AT_BARRIER:
        sm.slots.barrier_arrivals[slot] -= 1
    sm.warps.status[warp] = i64(Status.FINISHED)
    sm.slots.live_warps[slot] -= 1
    sm.counters[Counter.LIVE] -= 1
    if sm.slots.live_warps[slot] == 0 and sm.slots.queued[slot] == 0:
        sm.counters[Counter.ENDED] += 1


# ------------------------------------------------------------------ memory
@st.device
def _serve_queues(sm: Sm) -> None:
    """Serve queued accesses while the LSU is free, one of each scheduler in sequence."""
    while sm.counters[Counter.QUEUED] > 0 and sm.lsu.busy_until[Memory.LSU] <= sm.clock[Cycle.NOW]:
        queue = sm.counters[Counter.NEXT_QUEUE]
        while sm.queues.removed[queue] == sm.queues.added[queue]:
            queue = (queue + 1) % sm.launch.schedulers
        entry = queue * MAX_QUEUE_DEPTH + sm.queues.removed[queue] % sm.launch.queue_depth
        warp = sm.queues.warp[entry]
        slot = warp // sm.launch.warps
        serve(sm, warp, sm.queues.instruction[entry], sm.queues.issued[entry])
        sm.queues.removed[queue] += 1
        sm.counters[Counter.QUEUED] -= 1
        sm.slots.queued[slot] -= 1
        sm.counters[Counter.NEXT_QUEUE] = (queue + 1) % sm.launch.schedulers
        if sm.warps.status[warp] != Status.FINISHED and sm.warps.ready[warp] >= f64(FAR_FUTURE):
            sm.warps.ready[warp] = ready_at(sm, warp, sm.warps.pc[warp])
        if sm.slots.queued[slot] == 0 and sm.slots.live_warps[slot] == 0:
            sm.counters[Counter.ENDED] += 1
    if sm.counters[Counter.QUEUED] > 0:
        sm.clock[Cycle.SOONEST] = sm.lsu.busy_until[Memory.LSU]


# ------------------------------------------------------------------ schedulers
@st.device
def _pipe_free(sm: Sm, scheduler: i64, n: i64) -> f64:
    """Return when a pipe accepts instruction n: the integer half of the fma pipe accepts one ahead."""
    when = sm.pipes[scheduler * PIPES + sm.code.pipe[n]]
    if sm.code.imul_cycles[n] > 0:
        when = max(when, sm.pipes[scheduler * PIPES + _IMUL_PIPE] - f64(sm.code.imul_cycles[n]))
    return when


@st.device
def _is_store(sm: Sm, n: i64) -> bool:
    """Return whether an instruction is an access without a result."""
    return sm.code.pipe[n] == LSU_PIPE and sm.code.latency[n] == 0


@st.device
def _select_warp(sm: Sm, scheduler: i64) -> i64:
    """Return the warp that a scheduler issues, -1 if none is ready."""
    chosen, oldest, longest, waits_since = i64(-1), i64(1) << 60, i64(-1), f64(FAR_FUTURE)
    has_space = sm.queues.added[scheduler] - sm.queues.removed[scheduler] < sm.launch.queue_depth
    warp = scheduler
    while warp < sm.launch.resident * sm.launch.warps:
        if sm.warps.status[warp] == Status.RUNNING or sm.warps.status[warp] == Status.STARTING:
            when = sm.warps.ready[warp]
            if sm.warps.status[warp] == Status.STARTING and when <= sm.clock[Cycle.NOW]:
                _start_warp(sm, warp)
            if when <= sm.clock[Cycle.NOW]:
                n = sm.warps.pc[warp]
                if sm.code.pipe[n] >= 0 and sm.code.pipe[n] < LSU_PIPE:
                    when = max(when, _pipe_free(sm, scheduler, n))
                elif sm.code.pipe[n] == LSU_PIPE and not has_space:
                    when = f64(FAR_FUTURE)
                elif _is_store(sm, n) and (
                    sm.warps.ready[warp] < waits_since
                    or (sm.warps.ready[warp] == waits_since and sm.warps.order[warp] < sm.warps.order[longest])
                ):
                    waits_since = sm.warps.ready[warp]
                    longest = warp
            if when > sm.clock[Cycle.NOW]:
                sm.clock[Cycle.SOONEST] = min(sm.clock[Cycle.SOONEST], when)
            elif sm.warps.order[warp] < oldest:
                oldest = sm.warps.order[warp]
                chosen = warp
        warp += sm.launch.schedulers
    return longest if chosen >= 0 and _is_store(sm, sm.warps.pc[chosen]) else chosen


@st.device
def _enqueue(sm: Sm, scheduler: i64, warp: i64, n: i64) -> None:
    """Add an access to the queue of a scheduler."""
    entry = scheduler * MAX_QUEUE_DEPTH + sm.queues.added[scheduler] % sm.launch.queue_depth
    sm.queues.warp[entry] = warp
    sm.queues.instruction[entry] = n
    sm.queues.issued[entry] = sm.clock[Cycle.NOW]
    sm.queues.added[scheduler] += 1
    sm.counters[Counter.QUEUED] += 1
    sm.slots.queued[warp // sm.launch.warps] += 1
    count_pending(sm, warp, sm.code.writes[n], 1)
    count_pending(sm, warp, sm.code.reads[n], 1)
    if sm.code.kind[n] == InstructionKind.GROUP:
        sm.warps.groups[warp * COPY_GROUPS + sm.warps.committed[warp] % COPY_GROUPS] = f64(FAR_FUTURE)
        sm.warps.committed[warp] += 1


@st.device
def _execute(sm: Sm, scheduler: i64, warp: i64, n: i64) -> None:
    """Execute an instruction without a memory access."""
    now, latency = sm.clock[Cycle.NOW], f64(sm.code.latency[n])
    if sm.code.pipe[n] >= 0:
        sm.pipes[scheduler * PIPES + sm.code.pipe[n]] = now + f64(sm.code.cost[n])
    if sm.code.imul_cycles[n] > 0:
        place = scheduler * PIPES + _IMUL_PIPE
        sm.pipes[place] = max(now, sm.pipes[place]) + f64(sm.code.imul_cycles[n])
    if sm.code.kind[n] == InstructionKind.BARRIER_RESULT:
        latency += arrive_at_barrier(sm) - now
    raise_scoreboard(sm, warp, sm.code.writes[n], now + latency)
    raise_scoreboard(sm, warp, sm.code.reads[n], now + f64(OPERAND_READ_CYCLES))


@st.device
def _next_instruction(sm: Sm, warp: i64) -> i64:
    """Return the next instruction of a warp, -1 if it ends."""
    n = sm.warps.pc[warp] + 1
    if sm.code.ends_run[n - 1]:
        sm.warps.run[warp] += 1
        n = i64(-1)
        if sm.warps.run[warp] < sm.launch.past_runs[sm.warps.order[warp]]:
            n = sm.code.path[sm.warps.run[warp]]
    return n


@st.device
def _issue(sm: Sm, scheduler: i64, warp: i64) -> None:
    """Issue the next instruction of a warp."""
    n, slot, now = sm.warps.pc[warp], warp // sm.launch.warps, sm.clock[Cycle.NOW]
    sm.clock[Cycle.SOONEST] = min(sm.clock[Cycle.SOONEST], now + f64(1))
    sm.counters[Counter.ISSUED] += 1
    sm.waited[n] += now - sm.warps.issued[warp]
    sm.warps.issued[warp] = now
    if sm.counters[Counter.ISSUED] * 2 <= sm.launch.max_instructions:
        sm.results[Result.HALF_TIME] = now
        sm.results[Result.HALF_INSTRUCTIONS] = f64(sm.counters[Counter.ISSUED])
    if sm.code.pipe[n] == LSU_PIPE:
        _enqueue(sm, scheduler, warp, n)
    else:
        _execute(sm, scheduler, warp, n)
    if sm.code.kind[n] == InstructionKind.BARRIER:
        arrive_at_barrier(sm)
        sm.slots.barrier_arrivals[slot] += 1
        sm.warps.status[warp] = i64(Status.AT_BARRIER)
    following = _next_instruction(sm, warp)
    if following >= 0:
        sm.warps.pc[warp] = following
        when = now + f64(sm.code.stall[n])
        sm.warps.ready_without_scoreboards[warp] = when if following == n + 1 else when + sm.rates.branch_latency
        sm.warps.ready[warp] = ready_at(sm, warp, following)
        if sm.code.role[n] != Role.NONE:
            take_part(sm, warp, n)
        if sm.warps.status[warp] == Status.RUNNING:
            sm.clock[Cycle.SOONEST] = min(sm.clock[Cycle.SOONEST], sm.warps.ready[warp])
    else:
        _end_warp(sm, warp, slot)
    if sm.slots.live_warps[slot] > 0 and sm.slots.barrier_arrivals[slot] == sm.slots.live_warps[slot]:
        release_barrier(sm, slot)


@st.device
def _is_busy(sm: Sm) -> bool:
    return sm.counters[Counter.LIVE] > 0 or sm.counters[Counter.QUEUED] > 0 or sm.counters[Counter.ENDED] > 0


@native
def _simulate(sm: Sm) -> None:
    """Run all blocks, or until `max_instructions` are issued."""
    for slot in range(sm.launch.resident):
        _start_block(sm, slot)
        sm.clock[Cycle.NEXT_BEGIN] += sm.rates.block_interval
    while (
        _is_busy(sm)
        and sm.counters[Counter.ISSUED] < sm.launch.max_instructions
        and sm.clock[Cycle.NOW] < f64(FAR_FUTURE)
    ):
        sm.clock[Cycle.SOONEST] = f64(FAR_FUTURE)
        _serve_queues(sm)
        if sm.counters[Counter.ENDED] > 0:
            _replace_blocks(sm)
        for scheduler in range(sm.launch.schedulers):
            warp = _select_warp(sm, scheduler)
            if warp >= 0:
                _issue(sm, scheduler, warp)
        later = sm.clock[Cycle.NOW] + f64(1)
        if sm.counters[Counter.ENDED] > 0 or sm.counters[Counter.QUEUED] > 0:
            sm.clock[Cycle.SOONEST] = min(sm.clock[Cycle.SOONEST], max(sm.lsu.busy_until[Memory.LSU], later))
        if _is_busy(sm):
            sm.clock[Cycle.NOW] = max(later, sm.clock[Cycle.SOONEST])
    memories = max(sm.lsu.busy_until[Memory.LSU], max(sm.lsu.busy_until[Memory.L2], sm.lsu.busy_until[Memory.DRAM]))
    sm.results[Result.TIME] = max(sm.clock[Cycle.NOW], memories)
    sm.results[Result.INSTRUCTIONS] = f64(sm.counters[Counter.ISSUED])


# ------------------------------------------------------------------ results
@dataclass(frozen=True)
class SimulationResult:
    """Result of an SM. cycles: of all blocks. issued: simulated instructions. merge_ratio: fraction of rehit store sectors that
    merged. waited: float64[instruction], fraction of the cycles of warps in which they wait for its issue."""

    cycles: float
    issued: float
    merge_ratio: float
    waited: Floats


@dataclass(frozen=True)
class SmWorkload:
    """Blocks of an SM. blocks: int64[block, warp], executed warps; fraction: of their time to count; active: SMs in use;
    instructions_per_block: mean."""

    stream: InstructionStream
    device: Device
    blocks: Words
    resident: int
    fraction: float
    active: int
    instructions_per_block: float


def run(workload: SmWorkload, scale: Mapping[str, float], loaded: float = LOADED_LATENCY_INCREASE) -> SimulationResult:
    """Simulate an SM. scale: factors of "L1", "L2", "DRAM", "latency", "blocks". loaded: see LOADED_LATENCY_INCREASE."""
    simulated, waited = _simulate_sample(workload, scale)
    if busy_fraction := float(simulated[Result.DRAM_BUSY] / max(1.0, simulated[Result.TIME])):
        scale = {**scale, "later": 1 + loaded * min(1.0, busy_fraction)}
        simulated, waited = _simulate_sample(workload, scale)
    rehit_sectors = float(simulated[Result.REHIT_SECTORS])
    return SimulationResult(
        _cycles(workload, scale, simulated), float(simulated[Result.INSTRUCTIONS]),
        float(simulated[Result.MERGED_STORE_SECTORS]) / rehit_sectors if rehit_sectors else 1.0,
        waited / max(1.0, waited.sum()),
    )  # fmt: skip


def _cycles(workload: SmWorkload, scale: Mapping[str, float], simulated: Any) -> float:
    """Return the cycles of all blocks: extrapolated from the steady state, or without one, from complete waves."""
    block_count, resident = len(workload.blocks), min(workload.resident, len(workload.blocks))
    per_block = workload.instructions_per_block
    if simulated[Result.INSTRUCTIONS] < MAX_INSTRUCTIONS:
        return _extrapolate(simulated, per_block * block_count) * workload.fraction
    if simulated[Result.FINISHED_BLOCKS] >= resident:
        return _extrapolate(simulated, per_block * block_count * workload.fraction)
    waves, left = divmod(block_count * workload.fraction, resident)
    cycles = _extrapolate(simulated, per_block * resident) * waves
    if left:
        remaining = max(1, round(left))
        last_wave = replace(workload, blocks=workload.blocks[-remaining:], resident=remaining)
        cycles += _extrapolate(_simulate_sample(last_wave, scale)[0], per_block * remaining)
    return cycles


def _extrapolate(simulated: Any, instructions: float) -> float:
    """Return the cycles of so many instructions from the simulated ones."""
    issued = float(simulated[Result.INSTRUCTIONS])
    if issued < MAX_INSTRUCTIONS:
        return float(simulated[Result.TIME]) * instructions / max(1.0, issued)
    pace = (simulated[Result.TIME] - simulated[Result.HALF_TIME]) / max(
        1.0, issued - simulated[Result.HALF_INSTRUCTIONS]
    )
    return float(simulated[Result.TIME] + pace * max(0.0, instructions - issued))


def single_warp_cycles(stream: InstructionStream, device: Device, warp: int, scale: Mapping[str, float]) -> float:
    """Return the cycles of an executed warp alone on the SM."""
    length = float(stream.warps.lengths[warp])
    workload = SmWorkload(stream, device, np.full((1, 1), warp), 1, 1.0, 1, length)
    return _extrapolate(_simulate_sample(workload, scale)[0], length)


def _rates(workload: SmWorkload, scale: Mapping[str, float]) -> Rates:
    timing, clock = workload.device.timing, workload.device.clock / 1000
    latency = scale.get("latency", 1.0)
    l2, dram = timing.l2_bandwidth, workload.device.bandwidth * timing.dram_share / 1000
    interval = max(timing.block_interval * workload.active, timing.warp_interval * workload.blocks.shape[1])
    return Rates(
        l2=min(timing.l2_width, l2 / workload.active / clock) / max(1e-9, scale.get("L2", 1.0)),
        dram=dram / workload.active / clock / max(1e-9, scale.get("DRAM", 1.0)),
        lsu_scale=scale.get("L1", 1.0),
        near_latency=timing.l2 * latency,
        far_latency=timing.l2_far * latency,
        dram_latency=timing.dram * latency * scale.get("later", 1.0),
        barrier_latency=max(1.0, timing.barrier - 8 * _BARRIER_INTERVAL),  # measured with 8 warps
        block_interval=interval * scale.get("blocks", 1.0),
        store_latency=(timing.l2 + timing.l2_far) / 2 * latency,
        barrier_interval=_BARRIER_INTERVAL,
        branch_latency=timing.branch * latency,
        open_lines=timing.open_lines,
        open_cycles=timing.open_cycles,
        line_interval=timing.line_interval,
        request_interval=timing.miss_interval * scale.get("L2", 1.0),
        phase_latency=_PHASE_LATENCY * latency,
    )


def _code(stream: InstructionStream, latency_scale: float) -> Code:
    columns = np.ascontiguousarray(stream.code.T)
    if latency_scale != 1.0:
        columns[Field.LATENCY] = np.rint(columns[Field.LATENCY] * latency_scale)
    fields: Any = *columns, len(stream.code), stream.warps.path, stream.warps.ends_run
    return Code(*fields)


def _simulate_sample(workload: SmWorkload, scale: Mapping[str, float]) -> tuple[Any, Any]:
    """Return the results of a simulation, float64[Result], and the cycles that warps waited, float64[instruction]."""
    stream, timing = workload.stream, workload.device.timing
    block_count, warps = workload.blocks.shape
    resident, schedulers = min(workload.resident, block_count), timing.schedulers
    slots, size, blocks, executed = resident * warps, len(stream.code), workload.blocks.reshape(-1), stream.warps
    whole = warps == executed.replayed.shape[1]  # a warp alone waits for no other
    events, own = executed.events, workload.blocks[:, 0] // warps if whole else np.zeros(block_count, np.int64)
    past_phases = events.starts[own + 1] if whole else events.starts[own]
    most_phases = int((past_phases - events.starts[own]).max(initial=0))
    launch: Any = (
        executed.class_of[blocks], executed.first[blocks], executed.first[blocks + 1], events.first[blocks],
        events.first[blocks + 1] if whole else events.first[blocks], events.instruction, events.phase, events.starts[own], past_phases,
        events.arrivals, most_phases, warps, resident, block_count, schedulers, min(timing.queue, MAX_QUEUE_DEPTH), MAX_INSTRUCTIONS,
    )  # fmt: skip
    phases: Any = np.tile(np.arange(size) * GOLDEN_STEP % 1.0, len(stream.memory))
    boards, entries = SCOREBOARDS * slots, MAX_QUEUE_DEPTH * schedulers
    warp_state = zeroed(
        Warps, pc=slots, run=slots, status=slots, order=slots, ready=slots, ready_without_scoreboards=slots, issued=slots,
        scoreboards=boards, pending_writes=boards, copied=slots, groups=COPY_GROUPS * slots, committed=slots, completed=slots,
        event=slots, awaited=slots,
    )  # fmt: skip
    lsu = zeroed(
        LsuState, profiles=stream.memory.reshape(-1), accesses=phases, samples=phases.copy(), store_lines=slots, rehits=slots,
        burst_owners=slots * size, burst_phases=slots * size, open_warps=MAX_OPEN_STORES, open_places=MAX_OPEN_STORES,
        open_counts=MAX_OPEN_STORES, open_times=MAX_OPEN_STORES, busy_until=len(Memory),
    )  # fmt: skip
    phases_at_once = resident * most_phases
    block_state = zeroed(
        Slots, barrier_arrivals=resident, live_warps=resident, queued=resident, settled=resident, left=phases_at_once,
        phase_times=phases_at_once,
    )  # fmt: skip
    queues = zeroed(Queues, removed=schedulers, added=schedulers, warp=entries, instruction=entries, issued=entries)
    sm = zeroed(
        Sm, launch=Launch(*launch), code=_code(stream, scale.get("latency", 1.0)),
        rates=_rates(workload, scale), warps=warp_state, slots=block_state, queues=queues, lsu=lsu,
        pipes=PIPES * schedulers, waited=size, clock=4, counters=6, results=len(Result),
    )  # fmt: skip
    _simulate(sm)
    if sm.results[Result.TIME] >= FAR_FUTURE:
        raise LaunchError("the time is not predicted: warps wait for each other")
    return sm.results, sm.waited
