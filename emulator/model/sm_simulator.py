"""Cycle-level simulator of one SM: warp schedulers, scoreboards, pipes, load/store unit, barriers.

Resident blocks run concurrently; a finished block is replaced. Warps of a class share branch probabilities:
error-diffusion accumulators decide which executions take the minority or the divergent path (both sides in sequence, up to
reconvergence). Memories are queues with a bandwidth and a latency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..language.hints import Global, f64, i64
from ..machine.device import Device
from ..native import native
from .instruction_stream import InstructionStream, Words
from .lsu import (
    BARRIER_INTERVAL,
    BARRIER_LATENCY,
    BLOCK_INTERVAL,
    BRANCH_LATENCY,
    DRAM_LATENCY,
    DRAM_RATE,
    FAR_LATENCY,
    GOLDEN_STEP,
    L2_RATE,
    LINE_INTERVAL,
    LSU_SCALE,
    MAX_OPEN_STORES,
    MAX_QUEUE_DEPTH,
    NEAR_LATENCY,
    OPEN_CYCLES,
    OPEN_LINES,
    OPERAND_READ_CYCLES,
    PARAMETERS,
    PLASTIC_STEP,
    REQUEST_INTERVAL,
    STORE_LATENCY,
    ready_at,
    serve,
)  # fmt: skip

MAX_INSTRUCTIONS = 300_000
"""Simulated instructions of a launch; the rest continues at the rate of the second half."""
(
    TIME,
    ISSUED,
    LSU_BUSY,
    L2_BUSY,
    DRAM_BUSY,
    HALF_TIME,
    HALF_ISSUED,
    FINISHED_BLOCKS,
    REHIT_SECTORS,
    MERGED_STORE_SECTORS,
) = range(10)
"""Results: cycles, issued instructions, busy cycles of LSU, L2 port and device memory, cycles and instructions of the
first half, finished blocks, store sectors with an earlier store by the warp, and those merged with it."""

LOADED_LATENCY_INCREASE = 0.6
"""Relative increase of the device-memory latency at full load."""
_MAX_WAITING_GROUPS = 32
"""Waiting groups of lanes per warp, at most."""
_QUEUE_WORDS = 2 + 2 * MAX_QUEUE_DEPTH
"""Words of a queue: instructions removed, instructions added, warp and instruction of each entry."""
_BARRIER_INTERVAL = 2.1
"""Cycles between barrier arrivals of an SM; 1 to 64 warps measured on an H100."""


@native
def _simulate(
    code: Global[i64], memory: Global[f64], blocks: Global[i64], minority_shares: Global[f64], divergent_shares: Global[f64],
    exit_counters: Global[i64],
    unreachable_convergence: Global[bool], convergence_blocks: Global[bool], rates: Global[f64],
    classes: Global[i64], warps: i64, resident: i64, block_count: i64, schedulers: i64, max_instructions: i64, count: i64, size: i64,
    queue_depth: i64,
    pc: Global[i64], current_block: Global[i64], base: Global[i64], status: Global[i64], order: Global[i64],
    barrier_arrivals: Global[i64], live_warps: Global[i64],
    ready: Global[f64], scoreboards: Global[f64], minority_accumulators: Global[f64], settled: Global[f64], pipes: Global[f64],
    access_accumulators: Global[f64], divergence_accumulators: Global[f64], waiting_counts: Global[i64],
    waiting_groups: Global[i64], open_stores: Global[f64], store_counters: Global[f64],
    burst_positions: Global[f64],
    busy_until: Global[f64], pending_writes: Global[i64], ready_without_scoreboards: Global[f64], queues: Global[i64],
    issue_times: Global[f64], queued_per_slot: Global[i64],
    state: Global[f64],
) -> None:  # fmt: skip
    """Run `block_count` blocks, or until `max_instructions` are issued.

    classes: of the warps; count: basic blocks per class; size: instructions. status of a warp: 0 finished, 1 running, 2
    at a barrier, 3 to start. base: first basic block of its class. minority_accumulators, divergence_accumulators: by
    warp and basic block. access_accumulators: by class and instruction, pending accesses and a low-discrepancy sample
    of the memory level. waiting_counts, waiting_groups: by warp, groups of lanes with their basic block and convergence
    block; the last one runs first. unreachable_convergence, convergence_blocks: see `WarpClasses`. queues: of the
    schedulers; issue_times: of their entries; queue_depth: capacity. queued_per_slot: entries by block slot. Schedulers
    prefer the oldest warp, among stores the one that waits longest.
    """
    slots = resident * warps
    started = i64(0)
    issued = i64(0)
    running = i64(0)
    now = f64(0)
    next_begin = f64(0)
    barrier_free = f64(0)
    queued = i64(0)
    next_queue = i64(0)
    finished = i64(0)
    for slot in range(resident):
        if started < block_count:
            for warp in range(warps):
                status[slot * warps + warp] = i64(3)
                ready[slot * warps + warp] = next_begin
                order[slot * warps + warp] = started * warps + warp
            live_warps[slot] = warps
            next_begin += rates[7]
            started += 1
            running += warps
    while (running > 0 or queued > 0 or finished > 0) and issued < max_instructions:
        soonest = f64(1e30)
        while queued > 0 and busy_until[0] <= now:
            while queues[next_queue * _QUEUE_WORDS] == queues[next_queue * _QUEUE_WORDS + 1]:
                next_queue = (next_queue + 1) % schedulers
            place = next_queue * _QUEUE_WORDS + 2 + queues[next_queue * _QUEUE_WORDS] % queue_depth * 2
            warp_index = queues[place]
            slot = warp_index // warps
            serve(
                warp_index, queues[place + 1],
                issue_times[next_queue * MAX_QUEUE_DEPTH + queues[next_queue * _QUEUE_WORDS] % queue_depth], slot,
                order[warp_index], warps, base[warp_index] // count,
                code, memory, size, rates, scoreboards, pending_writes, settled, access_accumulators, open_stores, store_counters,
                burst_positions, busy_until, state,
            )  # fmt: skip
            queues[next_queue * _QUEUE_WORDS] += 1
            queued -= 1
            queued_per_slot[slot] -= 1
            next_queue = (next_queue + 1) % schedulers
            if status[warp_index] != 0 and ready[warp_index] >= f64(1e30):
                ready[warp_index] = ready_at(
                    warp_index,
                    code[pc[warp_index] * 9 + 1],
                    ready_without_scoreboards[warp_index],
                    scoreboards,
                    pending_writes,
                )
            if queued_per_slot[slot] == 0 and live_warps[slot] == 0:
                finished += 1
        if queued > 0:
            soonest = busy_until[0]
        if finished > 0:
            finished = i64(0)
            for slot in range(resident):
                if live_warps[slot] == 0 and queued_per_slot[slot] == 0:
                    live_warps[slot] = i64(-1)
                    state[7] += f64(1)
                    if started < block_count:
                        next_begin = max(next_begin, max(now, settled[slot])) + rates[7]
                        settled[slot] = f64(0)
                        for warp in range(warps):
                            status[slot * warps + warp] = i64(3)
                            ready[slot * warps + warp] = next_begin
                            order[slot * warps + warp] = started * warps + warp
                        live_warps[slot] = warps
                        started += 1
                        running += warps
                        soonest = min(soonest, next_begin)
        for scheduler in range(schedulers):
            chosen = i64(-1)
            oldest = i64(1) << 60
            longest = i64(-1)
            waits_since = f64(1e30)
            has_space = queues[scheduler * _QUEUE_WORDS + 1] - queues[scheduler * _QUEUE_WORDS] < queue_depth
            warp_index = scheduler
            while warp_index < slots:
                if status[warp_index] == 1 or status[warp_index] == 3:
                    when = ready[warp_index]
                    if status[warp_index] == 3 and when <= now:
                        status[warp_index] = i64(1)
                        store_counters[2 * warp_index + 1] = f64(0)
                        base[warp_index] = classes[order[warp_index]] * count
                        pc[warp_index] = blocks[base[warp_index] * 5]
                        current_block[warp_index] = base[warp_index]
                        for board in range(i64(6)):
                            scoreboards[warp_index * 6 + board] = f64(0)
                        for block_index in range(count):
                            phase = f64(0)
                            if exit_counters[base[warp_index] + block_index] < 0:
                                phase = f64(order[warp_index]) * f64(GOLDEN_STEP) + f64(block_index) * f64(PLASTIC_STEP)
                                phase -= f64(i64(phase))
                            minority_accumulators[warp_index * count + block_index] = phase
                            divergence_accumulators[warp_index * count + block_index] = (
                                phase + f64(0.5) - f64(i64(phase + f64(0.5)))
                            )
                        waiting_counts[warp_index] = 0
                    if when <= now:
                        pipe = code[pc[warp_index] * 9 + 4]
                        if pipe >= 0 and pipe < 7:
                            when = max(when, pipes[scheduler * 8 + pipe])
                            if code[pc[warp_index] * 9 + 8] > 0:  # the pipe accepts one instruction ahead
                                when = max(when, pipes[scheduler * 8 + 7] - f64(code[pc[warp_index] * 9 + 8]))
                        elif pipe == 7:
                            if not has_space:
                                when = f64(1e30)
                            elif code[pc[warp_index] * 9 + 7] == 0 and (
                                ready[warp_index] < waits_since
                                or (ready[warp_index] == waits_since and order[warp_index] < order[longest])
                            ):
                                waits_since = ready[warp_index]
                                longest = warp_index
                    if when > now:
                        soonest = min(soonest, when)
                    elif order[warp_index] < oldest:
                        oldest = order[warp_index]
                        chosen = warp_index
                warp_index += schedulers
            if chosen < 0:
                continue
            warp_index = chosen
            if code[pc[warp_index] * 9 + 4] == 7 and code[pc[warp_index] * 9 + 7] == 0:
                warp_index = longest
            soonest = min(soonest, now + f64(1))
            slot = warp_index // warps
            n = pc[warp_index]
            row = n * 9
            pipe = code[row + 4]
            kind = code[row + 6]
            latency = f64(code[row + 7])
            issued += 1
            if issued * 2 <= max_instructions:
                state[5] = now
                state[6] = f64(issued)
            if pipe == 7:
                last = queues[scheduler * _QUEUE_WORDS + 1] % queue_depth
                queues[scheduler * _QUEUE_WORDS + 2 + last * 2] = warp_index
                queues[scheduler * _QUEUE_WORDS + 3 + last * 2] = n
                issue_times[scheduler * MAX_QUEUE_DEPTH + last] = now
                queues[scheduler * _QUEUE_WORDS + 1] += 1
                queued += 1
                queued_per_slot[slot] += 1
                for which in range(i64(2), i64(4)):
                    if code[row + which] >= 0:
                        pending_writes[warp_index * 6 + code[row + which]] += 1
            else:
                if pipe >= 0:
                    pipes[scheduler * 8 + pipe] = now + f64(code[row + 5])
                if code[row + 8] > 0:
                    pipes[scheduler * 8 + 7] = max(now, pipes[scheduler * 8 + 7]) + f64(code[row + 8])
                if kind == 4:
                    barrier_free = max(barrier_free, now) + rates[10]
                    latency += barrier_free - now
                if code[row + 2] >= 0:
                    scoreboards[warp_index * 6 + code[row + 2]] = max(
                        scoreboards[warp_index * 6 + code[row + 2]], now + latency
                    )
                if code[row + 3] >= 0:
                    scoreboards[warp_index * 6 + code[row + 3]] = max(
                        scoreboards[warp_index * 6 + code[row + 3]], now + rates[8]
                    )
            when = now + f64(code[row])
            if kind == 3:
                barrier_free = max(barrier_free, now) + rates[10]
                barrier_arrivals[slot] += 1
                status[warp_index] = i64(2)
            block = current_block[warp_index]
            n += 1
            if n >= blocks[block * 5 + 1]:
                next_block = blocks[block * 5 + 2]
                if minority_shares[block] > f64(0) or divergent_shares[block] > f64(0):
                    counter = warp_index * count + block - base[warp_index]
                    divergence_accumulators[counter] += divergent_shares[block]
                    if exit_counters[block] >= 0:
                        counter = warp_index * count + exit_counters[block]
                    minority_accumulators[counter] += minority_shares[block]
                    if divergence_accumulators[warp_index * count + block - base[warp_index]] >= f64(0.999999):
                        divergence_accumulators[warp_index * count + block - base[warp_index]] -= f64(1)
                        if waiting_counts[warp_index] < 32:
                            waits = 2 * (warp_index * 32 + waiting_counts[warp_index])
                            waiting_groups[waits] = blocks[block * 5 + 3]
                            waiting_groups[waits + 1] = blocks[block * 5 + 4]
                            waiting_counts[warp_index] += 1
                    elif minority_accumulators[counter] >= f64(0.999999):
                        minority_block = blocks[block * 5 + 3]
                        can_exit = True
                        if (
                            exit_counters[block] >= 0 and minority_block >= 0
                        ):  # a loop is left without groups waiting inside
                            for k in range(waiting_counts[warp_index]):
                                inside = (
                                    minority_block * (count + 1) + waiting_groups[2 * (warp_index * 32 + k) + 1] + 1
                                )
                                can_exit = can_exit and not unreachable_convergence[inside]
                        if can_exit:
                            minority_accumulators[counter] -= f64(1)
                            next_block = minority_block
                reconverged = True
                while reconverged and waiting_counts[warp_index] > 0:
                    # A group that can no longer reach the others' convergence point waits, and the others run.
                    last = waiting_counts[warp_index] - 1
                    while (
                        last >= 0
                        and next_block >= 0
                        and not (
                            convergence_blocks[next_block]
                            and unreachable_convergence[
                                next_block * (count + 1) + waiting_groups[2 * (warp_index * 32 + last) + 1] + 1
                            ]
                        )
                    ):
                        last -= 1
                    if last < 0:
                        last = waiting_counts[warp_index] - 1
                        while last >= 0 and next_block != waiting_groups[2 * (warp_index * 32 + last) + 1]:
                            last -= 1
                    reconverged = last >= 0
                    if reconverged:
                        next_block = waiting_groups[2 * (warp_index * 32 + last)]
                        waiting_counts[warp_index] -= 1
                        for k in range(
                            2 * (warp_index * 32 + last), 2 * (warp_index * 32 + waiting_counts[warp_index])
                        ):
                            waiting_groups[k] = waiting_groups[k + 2]
                fall_through, n = n, i64(-1)
                if next_block >= 0:
                    current_block[warp_index] = base[warp_index] + next_block
                    n = blocks[current_block[warp_index] * 5]
                    if n != fall_through:
                        when += rates[11]
            if n >= 0:
                pc[warp_index] = n
                ready_without_scoreboards[warp_index] = when
                ready[warp_index] = ready_at(warp_index, code[n * 9 + 1], when, scoreboards, pending_writes)
                if status[warp_index] == 1:
                    soonest = min(soonest, ready[warp_index])
            else:
                if status[warp_index] == 2:
                    barrier_arrivals[slot] -= 1
                status[warp_index] = i64(0)
                live_warps[slot] -= 1
                running -= 1
                if live_warps[slot] == 0 and queued_per_slot[slot] == 0:
                    finished += 1
            if live_warps[slot] > 0 and barrier_arrivals[slot] == live_warps[slot]:
                barrier_arrivals[slot] = i64(0)
                for warp in range(warps):
                    minority_block = slot * warps + warp
                    if status[minority_block] == 2:
                        status[minority_block] = i64(1)
                        ready_without_scoreboards[minority_block] = max(
                            ready_without_scoreboards[minority_block], barrier_free + rates[6]
                        )
                        ready[minority_block] = max(ready[minority_block], ready_without_scoreboards[minority_block])
                        soonest = min(soonest, ready[minority_block])
        if finished > 0 or queued > 0:
            soonest = min(soonest, max(busy_until[0], now + f64(1)))
        now = max(now + f64(1), soonest) if running > 0 or queued > 0 or finished > 0 else now
    state[0] = max(now, max(busy_until[0], max(busy_until[1], busy_until[2])))
    state[1] = f64(issued)


@dataclass(frozen=True)
class SimulationResult:
    """Result of an SM. cycles: of all blocks. issued: simulated instructions. busy: fraction of cycles by memory.
    merge_ratio: fraction of rehit store sectors that merged."""

    cycles: float
    issued: float
    busy: dict[str, float]
    merge_ratio: float


def run(
    stream: InstructionStream, device: Device, blocks: Words, resident: int, fraction: float, active: int, instructions_per_block: float,
    scale: Mapping[str, float], loaded: float = LOADED_LATENCY_INCREASE,
) -> SimulationResult:  # fmt: skip
    """Simulate blocks on an SM.

    blocks: int64[block, warp], classes; fraction: of their time to return; active: SMs in use; instructions_per_block:
    mean. scale: factors of "L1", "L2", "DRAM", "latency", "blocks". loaded: see LOADED_LATENCY_INCREASE.
    """
    block_count = len(blocks)
    resident = min(resident, block_count)
    simulated = _simulate_sample(stream, device, blocks, resident, active, scale)
    if busy_fraction := float(simulated[DRAM_BUSY] / max(1.0, simulated[TIME])):
        scale = {**scale, "later": 1 + loaded * min(1.0, busy_fraction)}
        simulated = _simulate_sample(stream, device, blocks, resident, active, scale)
    issued = simulated[ISSUED]
    rehit_sectors = float(simulated[REHIT_SECTORS])
    merge_ratio = float(simulated[MERGED_STORE_SECTORS]) / rehit_sectors if rehit_sectors else 1.0
    busy_fractions = {
        name: float(simulated[n] / max(1.0, simulated[TIME]))
        for name, n in (("L1", LSU_BUSY), ("L2", L2_BUSY), ("DRAM", DRAM_BUSY))
    }
    if issued < MAX_INSTRUCTIONS:
        return SimulationResult(
            _extrapolate(simulated, instructions_per_block * block_count) * fraction,
            float(issued),
            busy_fractions,
            merge_ratio,
        )
    if simulated[FINISHED_BLOCKS] >= resident:  # steady state
        return SimulationResult(
            _extrapolate(simulated, instructions_per_block * block_count * fraction),
            float(issued),
            busy_fractions,
            merge_ratio,
        )
    waves, left = divmod(block_count * fraction, resident)
    cycles = _extrapolate(simulated, instructions_per_block * resident) * waves
    if left:
        remaining_blocks = max(1, round(left))
        cycles += _extrapolate(
            _simulate_sample(stream, device, blocks[-remaining_blocks:], remaining_blocks, active, scale),
            instructions_per_block * remaining_blocks,
        )
    return SimulationResult(cycles, float(issued), busy_fractions, merge_ratio)


def _extrapolate(simulated: Any, instructions: float) -> float:
    """Return the cycles of so many instructions from the simulated ones."""
    issued = float(simulated[ISSUED])
    if issued < MAX_INSTRUCTIONS:
        return float(simulated[TIME]) * max(1.0, instructions / max(1.0, issued))
    pace = (simulated[TIME] - simulated[HALF_TIME]) / max(1.0, issued - simulated[HALF_ISSUED])
    return float(simulated[TIME] + pace * max(0.0, instructions - issued))


def single_warp_cycles(stream: InstructionStream, device: Device, kind: int, scale: Mapping[str, float]) -> float:
    """Return the cycles of a warp of a class alone on the SM."""
    return _extrapolate(
        _simulate_sample(stream, device, np.full((1, 1), kind), 1, 1, scale), float(stream.warp_classes.lengths[kind])
    )


def _simulate_sample(
    stream: InstructionStream, device: Device, blocks: Words, resident: int, active: int, scale: Mapping[str, float]
) -> Any:
    many, warps = blocks.shape
    timing, clock = device.timing, device.clock / 1000
    latency_scale = scale.get("latency", 1.0)
    rates = np.zeros(PARAMETERS)
    rates[L2_RATE] = min(timing.l2_width, timing.l2_bandwidth / active / clock) / max(1e-9, scale.get("L2", 1.0))
    rates[DRAM_RATE] = device.bandwidth * timing.dram_share / 1000 / active / clock / max(1e-9, scale.get("DRAM", 1.0))
    rates[LSU_SCALE] = scale.get("L1", 1.0)
    rates[NEAR_LATENCY], rates[FAR_LATENCY], rates[DRAM_LATENCY] = (
        timing.l2 * latency_scale,
        timing.l2_far * latency_scale,
        timing.dram * latency_scale * scale.get("later", 1.0),
    )
    rates[BARRIER_INTERVAL] = _BARRIER_INTERVAL
    rates[BARRIER_LATENCY] = max(1.0, timing.barrier - 8 * _BARRIER_INTERVAL)  # measured with 8 warps
    rates[STORE_LATENCY] = (timing.l2 + timing.l2_far) / 2 * latency_scale
    rates[BLOCK_INTERVAL] = max(timing.block_interval * active, timing.warp_interval * warps) * scale.get("blocks", 1.0)
    rates[OPERAND_READ_CYCLES] = 12.0
    rates[OPEN_LINES], rates[OPEN_CYCLES], rates[LINE_INTERVAL] = (
        timing.open_lines,
        timing.open_cycles,
        timing.line_interval,
    )
    rates[REQUEST_INTERVAL] = timing.miss_interval * scale.get("L2", 1.0)
    rates[BRANCH_LATENCY] = timing.branch * latency_scale
    code = stream.code
    if latency_scale != 1.0:
        code = code.copy()
        code[:, 7] = np.rint(code[:, 7] * latency_scale).astype(np.int64)
    warp_classes = stream.warp_classes
    slots, count = resident * warps, warp_classes.blocks.shape[1]
    accumulators = np.zeros(stream.memory.shape)
    accumulators[:] = (np.arange(len(code)) * GOLDEN_STEP % 1.0)[:, None]
    state = np.zeros(10)
    _simulate(
        code.reshape(-1), stream.memory.reshape(-1), warp_classes.blocks.reshape(-1), warp_classes.minority_shares.reshape(-1),
        warp_classes.divergent_shares.reshape(-1), warp_classes.exit_counters.reshape(-1),
        warp_classes.unreachable_convergence.reshape(-1), warp_classes.convergence_blocks, rates,
        np.ascontiguousarray(blocks).reshape(-1), warps, resident, many,
        timing.schedulers, MAX_INSTRUCTIONS, count, len(code), min(timing.queue, MAX_QUEUE_DEPTH),
        *(np.zeros(slots, np.int64) for _ in range(5)),
        np.zeros(resident, np.int64), np.zeros(resident, np.int64), np.zeros(slots), np.zeros(6 * slots), np.zeros(count * slots),
        np.zeros(resident), np.zeros(8 * timing.schedulers), accumulators.reshape(-1),
        np.zeros(count * slots), np.zeros(slots, np.int64), np.zeros(2 * _MAX_WAITING_GROUPS * slots, np.int64),
        np.zeros(4 * MAX_OPEN_STORES), np.zeros(2 * slots),
        np.zeros(2 * slots * len(code)), np.zeros(3), np.zeros(6 * slots, np.int64), np.zeros(slots),
        np.zeros(_QUEUE_WORDS * timing.schedulers, np.int64), np.zeros(MAX_QUEUE_DEPTH * timing.schedulers), np.zeros(resident,
        np.int64), state,
    )  # fmt: skip
    return state
