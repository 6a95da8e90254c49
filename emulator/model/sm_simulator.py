"""One SM, cycle by cycle: warps issue what they are ready for, in order, and wait for each other at pipes, memories and barriers.

Blocks that fit are resident at once; another one comes when one has ended. Every warp goes the way of the average warp of its
class: at a branch the rarer way is taken whenever its share has added up to one, and both, one after the other up to where lanes meet
again, whenever that of executions has in which lanes part. Memories are queues that serve so many bytes a cycle, and answer after
their latency.
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
    APART,
    ASKING,
    BARRIER,
    BEYOND,
    EVENLY,
    FAR,
    GATE,
    HELD,
    JUMP,
    KEPT,
    LINES,
    MEMORY,
    NEAR,
    NEXT,
    OPERANDS,
    PORT,
    QUEUED,
    RATES,
    SENDING,
    STORED,
    UNIT,
    ready_at,
    served,
)  # fmt: skip

MOST = 300_000
"""Instructions that are simulated of a launch; what follows is taken to go at the pace of the second half of them."""
TIME, ISSUED, UNIT_BUSY, PORT_BUSY, MEMORY_BUSY, HALF_TIME, HALF_ISSUED, ENDED, AGAIN, SUMMARIZED = range(10)
"""Of what was simulated: cycles, instructions issued, cycles that the load and store unit, the port to L2 and device memory were busy,
cycles and instructions of its first half, and blocks that have ended. AGAIN, TOGETHER: sectors of stores that the same warp had
stored to before, and those of them that went to L2 with what it had stored."""

LOADED = 0.6
"""By what part device memory answers later when it is busy all the time."""
_APART = 32
"""Groups of lanes of a warp that wait for others, at most."""
_ROW = 2 + 2 * QUEUED
"""Words of a queue: how many instructions were taken from it, how many were put in, and of each of these its warp and its number."""
_GATE = 2.1
"""Cycles between warps of an SM that come to barriers, or for what these counted: 1 to 64 warps measured on an H100."""


@native
def _simulate(
    code: Global[i64], memory: Global[f64], blocks: Global[i64], rare: Global[f64], parted: Global[f64], loops: Global[i64],
    strands: Global[bool], meets: Global[bool], rates: Global[f64],
    classes: Global[i64], warps: i64, resident: i64, many: i64, schedulers: i64, most: i64, count: i64, size: i64,
    depth: i64,
    pc: Global[i64], at: Global[i64], base: Global[i64], status: Global[i64], order: Global[i64], arrived: Global[i64], alive: Global[i64],
    ready: Global[f64], boards: Global[f64], shares: Global[f64], settled: Global[f64], pipes: Global[f64],
    chances: Global[f64], apart: Global[f64], groups: Global[i64], waiting: Global[i64], held: Global[f64], stored: Global[f64],
    passed_by: Global[f64],
    busy: Global[f64], unknown: Global[i64], since: Global[f64], queues: Global[i64], issued_at: Global[f64], open: Global[i64],
    state: Global[f64],
) -> None:  # fmt: skip
    """Run `many` blocks, or until `most` instructions have been issued. classes: of their warps; count: of basic blocks of a class; size:
    of instructions, whose figures of memory each class has. status of a warp: 0 it has ended, 1 it runs, 2 it waits at a barrier, 3 it
    is to begin. base: where the basic blocks of its class are. shares, apart: by warp and basic block, executions of the rarer way alone,
    and with lanes that part, that are still to come. chances: by class and instruction, executions that are still to access memory, and
    where in a row of numbers, which fill 0 to 1 evenly, the one is that says how far this access goes. groups: of a warp's lanes that
    are yet to go on; waiting: by warp and group, the basic block where it does, and that in which the others wait for it; of those that
    are waited for there, the last one is the first to go on. strands, meets: as in `WarpClasses`. queues: of the
    schedulers, in turn; issued_at:
    when what is in them was; depth: how much is, at most. open: by slot, what of it is in queues. since: when a warp could go on, were all
    scoreboards free. The oldest warp of a scheduler comes first; but of those that are to store the one that waits longest."""
    slots = resident * warps
    started = i64(0)
    issued = i64(0)
    live = i64(0)
    now = f64(0)
    begins = f64(0)
    gate = f64(0)
    queued = i64(0)
    turn = i64(0)
    ended = i64(0)
    for slot in range(resident):
        if started < many:
            for warp in range(warps):
                status[slot * warps + warp] = i64(3)
                ready[slot * warps + warp] = begins
                order[slot * warps + warp] = started * warps + warp
            alive[slot] = warps
            begins += rates[7]
            started += 1
            live += warps
    while (live > 0 or queued > 0 or ended > 0) and issued < most:
        soonest = f64(1e30)
        while queued > 0 and busy[0] <= now:
            while queues[turn * _ROW] == queues[turn * _ROW + 1]:
                turn = (turn + 1) % schedulers
            place = turn * _ROW + 2 + queues[turn * _ROW] % depth * 2
            of = queues[place]
            slot = of // warps
            served(
                of, queues[place + 1], issued_at[turn * QUEUED + queues[turn * _ROW] % depth], slot, order[of], warps, base[of] // count,
                code, memory, size, rates, boards, unknown, settled, chances, held, stored, passed_by, busy, state,
            )  # fmt: skip
            queues[turn * _ROW] += 1
            queued -= 1
            open[slot] -= 1
            turn = (turn + 1) % schedulers
            if status[of] != 0 and ready[of] >= f64(1e30):
                ready[of] = ready_at(of, code[pc[of] * 9 + 1], since[of], boards, unknown)
            if open[slot] == 0 and alive[slot] == 0:
                ended += 1
        if queued > 0:
            soonest = busy[0]
        if ended > 0:
            ended = i64(0)
            for slot in range(resident):
                if alive[slot] == 0 and open[slot] == 0:
                    alive[slot] = i64(-1)
                    state[7] += f64(1)
                    if started < many:
                        begins = max(begins, max(now, settled[slot])) + rates[7]
                        settled[slot] = f64(0)
                        for warp in range(warps):
                            status[slot * warps + warp] = i64(3)
                            ready[slot * warps + warp] = begins
                            order[slot * warps + warp] = started * warps + warp
                        alive[slot] = warps
                        started += 1
                        live += warps
                        soonest = min(soonest, begins)
        for scheduler in range(schedulers):
            chosen = i64(-1)
            oldest = i64(1) << 60
            longest = i64(-1)
            waits_since = f64(1e30)
            room = queues[scheduler * _ROW + 1] - queues[scheduler * _ROW] < depth
            of = scheduler
            while of < slots:
                if status[of] == 1 or status[of] == 3:
                    when = ready[of]
                    if status[of] == 3 and when <= now:
                        status[of] = i64(1)
                        stored[2 * of + 1] = f64(0)
                        base[of] = classes[order[of]] * count
                        pc[of] = blocks[base[of] * 5]
                        at[of] = base[of]
                        for board in range(i64(6)):
                            boards[of * 6 + board] = f64(0)
                        for one in range(count):
                            phase = f64(0)
                            if loops[base[of] + one] < 0:
                                phase = f64(order[of]) * f64(EVENLY) + f64(one) * f64(APART)
                                phase -= f64(i64(phase))
                            shares[of * count + one] = phase
                            apart[of * count + one] = phase + f64(0.5) - f64(i64(phase + f64(0.5)))
                        groups[of] = 0
                    if when <= now:
                        pipe = code[pc[of] * 9 + 4]
                        if pipe >= 0 and pipe < 7:
                            when = max(when, pipes[scheduler * 8 + pipe])
                            if code[pc[of] * 9 + 8] > 0:  # one may wait before it
                                when = max(when, pipes[scheduler * 8 + 7] - f64(code[pc[of] * 9 + 8]))
                        elif pipe == 7:
                            if not room:
                                when = f64(1e30)
                            elif code[pc[of] * 9 + 7] == 0 and (
                                ready[of] < waits_since or (ready[of] == waits_since and order[of] < order[longest])
                            ):
                                waits_since = ready[of]
                                longest = of
                    if when > now:
                        soonest = min(soonest, when)
                    elif order[of] < oldest:
                        oldest = order[of]
                        chosen = of
                of += schedulers
            if chosen < 0:
                continue
            of = chosen
            if code[pc[of] * 9 + 4] == 7 and code[pc[of] * 9 + 7] == 0:
                of = longest
            soonest = min(soonest, now + f64(1))
            slot = of // warps
            n = pc[of]
            row = n * 9
            pipe = code[row + 4]
            kind = code[row + 6]
            latency = f64(code[row + 7])
            issued += 1
            if issued * 2 <= most:
                state[5] = now
                state[6] = f64(issued)
            if pipe == 7:
                last = queues[scheduler * _ROW + 1] % depth
                queues[scheduler * _ROW + 2 + last * 2] = of
                queues[scheduler * _ROW + 3 + last * 2] = n
                issued_at[scheduler * QUEUED + last] = now
                queues[scheduler * _ROW + 1] += 1
                queued += 1
                open[slot] += 1
                for which in range(i64(2), i64(4)):
                    if code[row + which] >= 0:
                        unknown[of * 6 + code[row + which]] += 1
            else:
                if pipe >= 0:
                    pipes[scheduler * 8 + pipe] = now + f64(code[row + 5])
                if code[row + 8] > 0:
                    pipes[scheduler * 8 + 7] = max(now, pipes[scheduler * 8 + 7]) + f64(code[row + 8])
                if kind == 4:
                    gate = max(gate, now) + rates[10]
                    latency += gate - now
                if code[row + 2] >= 0:
                    boards[of * 6 + code[row + 2]] = max(boards[of * 6 + code[row + 2]], now + latency)
                if code[row + 3] >= 0:
                    boards[of * 6 + code[row + 3]] = max(boards[of * 6 + code[row + 3]], now + rates[8])
            when = now + f64(code[row])
            if kind == 3:
                gate = max(gate, now) + rates[10]
                arrived[slot] += 1
                status[of] = i64(2)
            block = at[of]
            n += 1
            if n >= blocks[block * 5 + 1]:
                way = blocks[block * 5 + 2]
                if rare[block] > f64(0) or parted[block] > f64(0):
                    passed = of * count + block - base[of]
                    apart[passed] += parted[block]
                    if loops[block] >= 0:
                        passed = of * count + loops[block]
                    shares[passed] += rare[block]
                    if apart[of * count + block - base[of]] >= f64(0.999999):
                        apart[of * count + block - base[of]] -= f64(1)
                        if groups[of] < 32:
                            waits = 2 * (of * 32 + groups[of])
                            waiting[waits] = blocks[block * 5 + 3]
                            waiting[waits + 1] = blocks[block * 5 + 4]
                            groups[of] += 1
                    elif shares[passed] >= f64(0.999999):
                        other = blocks[block * 5 + 3]
                        leaves = True
                        if loops[block] >= 0 and other >= 0:  # a loop is left when nobody waits inside
                            for k in range(groups[of]):
                                there = other * (count + 1) + waiting[2 * (of * 32 + k) + 1] + 1
                                leaves = leaves and not strands[there]
                        if leaves:
                            shares[passed] -= f64(1)
                            way = other
                met = True
                while met and groups[of] > 0:
                    # Who cannot come any more to where others wait, waits too, and lets these go on.
                    last = groups[of] - 1
                    while (
                        last >= 0
                        and way >= 0
                        and not (meets[way] and strands[way * (count + 1) + waiting[2 * (of * 32 + last) + 1] + 1])
                    ):
                        last -= 1
                    if last < 0:
                        last = groups[of] - 1
                        while last >= 0 and way != waiting[2 * (of * 32 + last) + 1]:
                            last -= 1
                    met = last >= 0
                    if met:
                        way = waiting[2 * (of * 32 + last)]
                        groups[of] -= 1
                        for k in range(2 * (of * 32 + last), 2 * (of * 32 + groups[of])):
                            waiting[k] = waiting[k + 2]
                following, n = n, i64(-1)
                if way >= 0:
                    at[of] = base[of] + way
                    n = blocks[at[of] * 5]
                    if n != following:
                        when += rates[11]
            if n >= 0:
                pc[of] = n
                since[of] = when
                ready[of] = ready_at(of, code[n * 9 + 1], when, boards, unknown)
                if status[of] == 1:
                    soonest = min(soonest, ready[of])
            else:
                if status[of] == 2:
                    arrived[slot] -= 1
                status[of] = i64(0)
                alive[slot] -= 1
                live -= 1
                if alive[slot] == 0 and open[slot] == 0:
                    ended += 1
            if alive[slot] > 0 and arrived[slot] == alive[slot]:
                arrived[slot] = i64(0)
                for warp in range(warps):
                    other = slot * warps + warp
                    if status[other] == 2:
                        status[other] = i64(1)
                        since[other] = max(since[other], gate + rates[6])
                        ready[other] = max(ready[other], since[other])
                        soonest = min(soonest, ready[other])
        if ended > 0 or queued > 0:
            soonest = min(soonest, max(busy[0], now + f64(1)))
        now = max(now + f64(1), soonest) if live > 0 or queued > 0 or ended > 0 else now
    state[0] = max(now, max(busy[0], max(busy[1], busy[2])))
    state[1] = f64(issued)


@dataclass(frozen=True)
class SimulationResult:
    """What blocks took on one SM. cycles: of all. issued: instructions that were simulated. busy: cycles, as parts of those
    simulated, that a memory was. together: of the sectors of stores that their warp had stored to before, the share that went to L2
    with these."""

    cycles: float
    issued: float
    busy: dict[str, float]
    together: float


def run(
    stream: InstructionStream, device: Device, blocks: Words, resident: int, part: float, active: int, each: float,
    scale: Mapping[str, float], loaded: float = LOADED,
) -> SimulationResult:  # fmt: skip
    """Blocks on one SM. blocks: int64[block, warp], the classes of their warps; part: as much of their time as is asked for;
    active: SMs at work; each: instructions of a block, on average. scale: factors of "L1", "L2", "DRAM", "latency", "blocks".
    loaded: by what part device memory answers later when it is busy."""
    whole = len(blocks)
    resident = min(resident, whole)
    found = _sample(stream, device, blocks, resident, active, scale)
    if busy_part := float(found[MEMORY_BUSY] / max(1.0, found[TIME])):
        scale = {**scale, "later": 1 + loaded * min(1.0, busy_part)}
        found = _sample(stream, device, blocks, resident, active, scale)
    simulated = found[ISSUED]
    again = float(found[AGAIN])
    together = float(found[SUMMARIZED]) / again if again else 1.0
    busy = {
        name: float(found[n] / max(1.0, found[TIME]))
        for name, n in (("L1", UNIT_BUSY), ("L2", PORT_BUSY), ("DRAM", MEMORY_BUSY))
    }
    if simulated < MOST:
        return SimulationResult(_whole(found, each * whole) * part, float(simulated), busy, together)
    if found[ENDED] >= resident:  # in the middle of many blocks
        return SimulationResult(_whole(found, each * whole * part), float(simulated), busy, together)
    turns, left = divmod(whole * part, resident)
    cycles = _whole(found, each * resident) * turns
    if left:
        few = max(1, round(left))
        cycles += _whole(_sample(stream, device, blocks[-few:], few, active, scale), each * few)
    return SimulationResult(cycles, float(simulated), busy, together)


def _whole(found: Any, instructions: float) -> float:
    """Cycles of so many instructions, of which the first or, but for what averages leave out, all were simulated."""
    issued = float(found[ISSUED])
    if issued < MOST:
        return float(found[TIME]) * max(1.0, instructions / max(1.0, issued))
    pace = (found[TIME] - found[HALF_TIME]) / max(1.0, issued - found[HALF_ISSUED])
    return float(found[TIME] + pace * max(0.0, instructions - issued))


def alone(stream: InstructionStream, device: Device, kind: int, scale: Mapping[str, float]) -> float:
    """Cycles of a warp of a class that has the SM for itself."""
    return _whole(_sample(stream, device, np.full((1, 1), kind), 1, 1, scale), float(stream.warp_classes.lengths[kind]))


def _sample(
    stream: InstructionStream, device: Device, blocks: Words, resident: int, active: int, scale: Mapping[str, float]
) -> Any:
    many, warps = blocks.shape
    timing, clock = device.timing, device.clock / 1000
    late = scale.get("latency", 1.0)
    rates = np.zeros(RATES)
    rates[PORT] = min(timing.l2_width, timing.l2_bandwidth / active / clock) / max(1e-9, scale.get("L2", 1.0))
    rates[MEMORY] = device.bandwidth * timing.dram_share / 1000 / active / clock / max(1e-9, scale.get("DRAM", 1.0))
    rates[UNIT] = scale.get("L1", 1.0)
    rates[NEAR], rates[FAR], rates[BEYOND] = (
        timing.l2 * late,
        timing.l2_far * late,
        timing.dram * late * scale.get("later", 1.0),
    )
    rates[GATE] = _GATE
    rates[BARRIER] = max(1.0, timing.barrier - 8 * _GATE)  # measured with 8 warps
    rates[STORED] = (timing.l2 + timing.l2_far) / 2 * late
    rates[NEXT] = max(timing.block_interval * active, timing.warp_interval * warps) * scale.get("blocks", 1.0)
    rates[OPERANDS] = 12.0
    rates[LINES], rates[KEPT], rates[SENDING] = timing.open_lines, timing.open_cycles, timing.line_interval
    rates[ASKING] = timing.miss_interval * scale.get("L2", 1.0)
    rates[JUMP] = timing.branch * late
    code = stream.code
    if late != 1.0:
        code = code.copy()
        code[:, 7] = np.rint(code[:, 7] * late).astype(np.int64)
    warp_classes = stream.warp_classes
    slots, count = resident * warps, warp_classes.blocks.shape[1]
    chances = np.zeros(stream.memory.shape)
    chances[:] = (np.arange(len(code)) * EVENLY % 1.0)[:, None]
    state = np.zeros(10)
    _simulate(
        code.reshape(-1), stream.memory.reshape(-1), warp_classes.blocks.reshape(-1), warp_classes.minority_shares.reshape(-1),
        warp_classes.divergent_shares.reshape(-1), warp_classes.exit_counters.reshape(-1),
        warp_classes.unreachable_convergence.reshape(-1), warp_classes.convergence_blocks, rates,
        np.ascontiguousarray(blocks).reshape(-1), warps, resident, many,
        timing.schedulers, MOST, count, len(code), min(timing.queue, QUEUED),
        *(np.zeros(slots, np.int64) for _ in range(5)),
        np.zeros(resident, np.int64), np.zeros(resident, np.int64), np.zeros(slots), np.zeros(6 * slots), np.zeros(count * slots),
        np.zeros(resident), np.zeros(8 * timing.schedulers), chances.reshape(-1),
        np.zeros(count * slots), np.zeros(slots, np.int64), np.zeros(2 * _APART * slots, np.int64), np.zeros(4 * HELD), np.zeros(2 * slots),
        np.zeros(2 * slots * len(code)), np.zeros(3), np.zeros(6 * slots, np.int64), np.zeros(slots),
        np.zeros(_ROW * timing.schedulers, np.int64), np.zeros(QUEUED * timing.schedulers), np.zeros(resident, np.int64), state,
    )  # fmt: skip
    return state
