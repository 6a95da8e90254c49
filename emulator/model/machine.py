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
from .stream import Stream, Words

MOST = 300_000
"""Instructions that are simulated of a launch; what follows is taken to go at the pace of the second half of them."""
PORT, MEMORY, UNIT, NEAR, FAR, BEYOND, BARRIER, NEXT, OPERANDS, STORED, GATE, JUMP = range(12)
"""Of the SM: bytes a cycle from L2 and from device memory; what cycles of the load and store unit are multiplied with; cycles until
L2's near half, its far half and device memory answer; of a barrier; between two blocks that begin; until operands are read, and
until a store has arrived; between warps that come to barriers; and in which a warp that jumped is not yet there."""
TIME, ISSUED, UNIT_BUSY, PORT_BUSY, MEMORY_BUSY, HALF_TIME, HALF_ISSUED, ENDED = range(8)
_QUEUE = 24.0
"""Cycles of work that wait before the load and store unit at most."""

LOADED = 0.6
"""By what part device memory answers later when it is busy all the time."""
_APART = 32
"""Groups of lanes of a warp that wait for others, at most."""
_EVENLY = (5**0.5 - 1) / 2
"""Its multiples, less what is whole of them, lie evenly: so instructions that are executed a few times each, as those of a loop that was
unrolled, find together what one would that is executed as often as all of them."""
_GATE = 2.0
"""Cycles between warps of an SM that come to barriers: 24, 8 and 2 warps measured on an H200."""


@native
def _simulate(
    code: Global[i64], memory: Global[f64], blocks: Global[i64], rare: Global[f64], parted: Global[f64], loops: Global[i64],
    rates: Global[f64], classes: Global[i64], warps: i64, resident: i64, many: i64, schedulers: i64, most: i64, count: i64, size: i64,
    queue: f64,
    pc: Global[i64], at: Global[i64], base: Global[i64], status: Global[i64], order: Global[i64], arrived: Global[i64], alive: Global[i64],
    ready: Global[f64], boards: Global[f64], shares: Global[f64], settled: Global[f64], pipes: Global[f64],
    chances: Global[f64], apart: Global[f64], groups: Global[i64], waiting: Global[i64], state: Global[f64],
) -> None:  # fmt: skip
    """Run `many` blocks, or until `most` instructions have been issued. classes: of their warps; count: of basic blocks of a class; size:
    of instructions, whose figures of memory each class has. status of a warp: 0 it has ended, 1 it runs, 2 it waits at a barrier, 3 it
    is to begin. base: where the basic blocks of its class are. shares, apart: by warp and basic block, executions of the rarer way alone,
    and with lanes that part, that are still to come. chances: by class and instruction, executions that are still to access memory, and
    where in a row of numbers, which fill 0 to 1 evenly, the one is that says how far this access goes. groups: of a warp's lanes that
    are yet to go on; waiting: by warp and group, the basic block where it does, and that in which the others wait for it; the last one
    is the first to go on."""
    slots = resident * warps
    started = i64(0)
    issued = i64(0)
    live = i64(0)
    now = f64(0)
    unit = f64(0)
    port = f64(0)
    dram = f64(0)
    begins = f64(0)
    gate = f64(0)
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
    while live > 0 and issued < most:
        soonest = f64(1e30)
        for scheduler in range(schedulers):
            chosen = i64(-1)
            oldest = i64(1) << 60
            of = scheduler
            while of < slots:
                if status[of] == 1 or status[of] == 3:
                    when = ready[of]
                    if status[of] == 3 and when <= now:
                        status[of] = i64(1)
                        base[of] = classes[order[of]] * count
                        pc[of] = blocks[base[of] * 5]
                        at[of] = base[of]
                        for board in range(i64(6)):
                            boards[of * 6 + board] = f64(0)
                        for one in range(count):
                            phase = f64(0)
                            if loops[base[of] + one] < 0:
                                phase = f64(order[of]) * f64(_EVENLY)
                                phase -= f64(i64(phase))
                            shares[of * count + one] = phase
                            apart[of * count + one] = phase + f64(0.5) - f64(i64(phase + f64(0.5)))
                        groups[of] = 0
                    if when <= now:
                        pipe = code[pc[of] * 9 + 4]
                        if pipe >= 0 and pipe < 7:
                            when = max(when, pipes[scheduler * 8 + pipe])
                        elif pipe == 7:
                            when = max(when, unit - queue)
                    if when > now:
                        soonest = min(soonest, when)
                    elif order[of] < oldest:
                        oldest = order[of]
                        chosen = of
                of += schedulers
            if chosen < 0:
                continue
            of = chosen
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
            result = now + latency
            operands = now + rates[8]
            if pipe >= 0 and pipe < 7:
                pipes[scheduler * 8 + pipe] = now + f64(code[row + 5])
            if pipe == 7:
                figures = (base[of] // count * size + n) * 8
                chances[figures] += memory[figures]
                accesses = chances[figures] >= f64(0.999999)
                if accesses:
                    chances[figures] -= f64(1)
                    busy = max(f64(1), memory[figures + 1]) * rates[2]
                    unit = max(now, unit) + busy
                    state[2] += busy
                    result = unit + latency
                    operands = unit + rates[8]
                else:
                    unit = max(now, unit) + f64(1)
                if accesses and kind == 1 and memory[figures + 2] > f64(0):
                    drawn = chances[figures + 5] + f64(_EVENLY)
                    drawn -= f64(i64(drawn))
                    chances[figures + 5] = drawn
                    taken = memory[figures + 2] * f64(32) / rates[0]
                    port = max(unit, port) + taken
                    state[3] += taken
                    late = f64(0)
                    if drawn < memory[figures + 7]:
                        late = port + rates[3]
                    if drawn < memory[figures + 5]:
                        late = port + rates[4]
                    moved = (memory[figures + 3] + memory[figures + 4] * f64(1.11)) * f64(32) / rates[1]
                    if moved > f64(0):
                        dram = max(port, dram) + moved
                        state[4] += moved
                    if drawn < memory[figures + 6]:
                        late = max(late, dram + rates[5])
                    if latency > f64(0):
                        result = max(result, late)
                    else:  # a block has ended once its stores have arrived
                        settled[slot] = max(settled[slot], port + rates[9])
            held = code[row + 2]
            if held >= 0:
                boards[of * 6 + held] = max(boards[of * 6 + held], result)  # it counts those that are under way
            held = code[row + 3]
            if held >= 0:
                boards[of * 6 + held] = max(boards[of * 6 + held], operands)
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
                        shares[passed] -= f64(1)
                        way = blocks[block * 5 + 3]
                while groups[of] > 0 and (way < 0 or way == waiting[2 * (of * 32 + groups[of]) - 1]):
                    groups[of] -= 1
                    way = waiting[2 * (of * 32 + groups[of])]
                following, n = n, i64(-1)
                if way >= 0:
                    at[of] = base[of] + way
                    n = blocks[at[of] * 5]
                    if n != following:
                        when += rates[11]
            if n >= 0:
                pc[of] = n
                for board in range(i64(6)):
                    if (code[n * 9 + 1] >> board) & 1 != 0:
                        when = max(when, boards[of * 6 + board])
                ready[of] = when
                if status[of] == 1:
                    soonest = min(soonest, when)
            else:
                if status[of] == 2:
                    arrived[slot] -= 1
                status[of] = i64(0)
                alive[slot] -= 1
                live -= 1
            if alive[slot] > 0 and arrived[slot] == alive[slot]:
                arrived[slot] = i64(0)
                for warp in range(warps):
                    other = slot * warps + warp
                    if status[other] == 2:
                        status[other] = i64(1)
                        ready[other] = max(ready[other], gate + rates[6])
                        soonest = min(soonest, ready[other])
            elif alive[slot] == 0:
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
        now = max(now + f64(1), soonest) if live > 0 else now
    state[0] = max(now, max(unit, max(port, dram)))
    state[1] = f64(issued)


@dataclass(frozen=True)
class Ran:
    """What blocks took on one SM. cycles: of all. issued: instructions that were simulated. busy: cycles, as parts of those
    simulated, that a memory was."""

    cycles: float
    issued: float
    busy: dict[str, float]


def run(
    stream: Stream, device: Device, blocks: Words, resident: int, part: float, active: int, each: float,
    scale: Mapping[str, float], loaded: float = LOADED,
) -> Ran:  # fmt: skip
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
    busy = {
        name: float(found[n] / max(1.0, found[TIME]))
        for name, n in (("L1", UNIT_BUSY), ("L2", PORT_BUSY), ("DRAM", MEMORY_BUSY))
    }
    if simulated < MOST:
        return Ran(_whole(found, each * whole) * part, float(simulated), busy)
    if found[ENDED] >= resident:  # in the middle of many blocks
        return Ran(_whole(found, each * whole * part), float(simulated), busy)
    turns, left = divmod(whole * part, resident)
    cycles = _whole(found, each * resident) * turns
    if left:
        few = max(1, round(left))
        cycles += _whole(_sample(stream, device, blocks[-few:], few, active, scale), each * few)
    return Ran(cycles, float(simulated), busy)


def _whole(found: Any, instructions: float) -> float:
    """Cycles of so many instructions, of which the first or, but for what averages leave out, all were simulated."""
    issued = float(found[ISSUED])
    if issued < MOST:
        return float(found[TIME]) * max(1.0, instructions / max(1.0, issued))
    pace = (found[TIME] - found[HALF_TIME]) / max(1.0, issued - found[HALF_ISSUED])
    return float(found[TIME] + pace * max(0.0, instructions - issued))


def alone(stream: Stream, device: Device, kind: int, scale: Mapping[str, float]) -> float:
    """Cycles of a warp of a class that has the SM for itself."""
    return _whole(_sample(stream, device, np.full((1, 1), kind), 1, 1, scale), float(stream.ways.lengths[kind]))


def _sample(
    stream: Stream, device: Device, blocks: Words, resident: int, active: int, scale: Mapping[str, float]
) -> Any:
    many, warps = blocks.shape
    timing, clock = device.timing, device.clock / 1000
    late = scale.get("latency", 1.0)
    rates = np.zeros(12)
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
    rates[JUMP] = timing.branch * late
    code = stream.code
    if late != 1.0:
        code = code.copy()
        code[:, 7] = np.rint(code[:, 7] * late).astype(np.int64)
    ways = stream.ways
    slots, count = resident * warps, ways.blocks.shape[1]
    chances = np.zeros(stream.memory.shape)
    chances[:] = (np.arange(len(code)) * _EVENLY % 1.0)[:, None]
    state = np.zeros(8)
    _simulate(
        code.reshape(-1), stream.memory.reshape(-1), ways.blocks.reshape(-1), ways.rare.reshape(-1),
        ways.parted.reshape(-1), ways.loops.reshape(-1), rates, np.ascontiguousarray(blocks).reshape(-1), warps, resident, many,
        timing.schedulers, MOST, count, len(code), _QUEUE,
        *(np.zeros(slots, np.int64) for _ in range(5)),
        np.zeros(resident, np.int64), np.zeros(resident, np.int64), np.zeros(slots), np.zeros(6 * slots), np.zeros(count * slots),
        np.zeros(resident), np.zeros(8 * timing.schedulers), chances.reshape(-1),
        np.zeros(count * slots), np.zeros(slots, np.int64), np.zeros(2 * _APART * slots, np.int64), state,
    )  # fmt: skip
    return state
