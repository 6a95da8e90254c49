"""The load and store unit of an SM: it does what schedulers have put into their queues, one after another, and keeps lines of stores
open for a while, so that what the same warp stores there next goes to L2 with them."""

from __future__ import annotations

from .. import language as st
from ..language.hints import Global, f64, i64
from .instruction_stream import FIGURES, LASTS, WITH

PORT, MEMORY, UNIT, NEAR, FAR, BEYOND, BARRIER, NEXT, OPERANDS, STORED, GATE, JUMP, LINES, KEPT, SENDING, ASKING = (
    range(16)
)
"""Of the SM: bytes a cycle from L2 and from device memory; what cycles of the load and store unit are multiplied with; cycles until
L2's near half, its far half and device memory answer; of a barrier; between two blocks that begin; until operands are read, and
until a store has arrived; between warps that come to barriers; and in which a warp that jumped is not yet there. LINES, KEPT: lines
that are open at once, and cycles after a store for which they are; SENDING: cycles between lines that go to L2; ASKING: between those
that it is asked for."""
RATES = 16
HELD = 64
"""Stores whose lines are open, at most; each has a line or more."""
QUEUED = 16
"""Instructions that the queue of a scheduler holds, at most."""
EVENLY = (5**0.5 - 1) / 2
"""Its multiples, less what is whole of them, lie evenly: so instructions that are executed a few times each, as those of a loop that was
unrolled, find together what one would that is executed as often as all of them."""

APART = 0.7548776662466927
"""Its multiples lie evenly too, whatever those of EVENLY do: which warps take the rarer way at one branch says nothing of another."""


@st.device
def goes_with(held: Global[f64], of: i64, place: f64, back: f64, lines: f64, now: f64, most: f64, kept: f64) -> i64:
    """Whether lines of a store are open since the warp stored to them before; after it they are, and of others those to which was
    stored last. held: of each store whose lines are open, the warp, its place, how many lines they are, 0 for none, and when. place:
    in lines of all stores of the warp; back: how many of them ago it stored to the same, 0 if never. most, kept: as LINES, KEPT."""
    found = i64(-1)
    if back > f64(0):
        nearest = f64(0.5) * lines + f64(0.01)
        for one in range(i64(HELD)):
            if held[4 * one] == f64(of) and held[4 * one + 2] > f64(0):
                off = abs(held[4 * one + 1] - (place - back))
                if off < nearest:
                    nearest = off
                    found = one
    if found >= 0 and now - held[4 * found + 3] <= kept:
        held[4 * found + 1] = place
        held[4 * found + 3] = now
        return i64(1)
    if found >= 0:
        held[4 * found + 2] = f64(0)
    free = i64(-1)
    count = i64(0)
    every = lines
    for one in range(i64(HELD)):
        every += held[4 * one + 2]
        if held[4 * one + 2] == f64(0):
            free = one
        else:
            count += 1
    while count > 0 and (every > most or count == HELD):
        free = i64(-1)
        for one in range(i64(HELD)):
            if held[4 * one + 2] > f64(0) and (free < 0 or held[4 * one + 3] < held[4 * free + 3]):
                free = one
        every -= held[4 * free + 2]
        held[4 * free + 2] = f64(0)
        count -= 1
    held[4 * free] = f64(of)
    held[4 * free + 1] = place
    held[4 * free + 2] = lines
    held[4 * free + 3] = now
    return i64(0)


@st.device
def served(
    of: i64, n: i64, since: f64, slot: i64, order: i64, warps: i64, of_class: i64, code: Global[i64],
    memory: Global[f64], size: i64, rates: Global[f64],
    boards: Global[f64], unknown: Global[i64], settled: Global[f64], chances: Global[f64], held: Global[f64], stored: Global[f64],
    passed: Global[f64], busy: Global[f64], state: Global[f64],
) -> None:  # fmt: skip
    """Have the unit do instruction n of a warp, which came to it at a time. busy: until when the unit, the port to L2 and device memory
    are. stored: of each warp, lines of its stores, and what is left of stores to lines that it has stored to before. boards: when
    scoreboards are free; unknown: instructions of which that is not yet known. settled: by slot, when its stores have arrived. order: the
    number of the warp; passed: of each warp that is there and instruction, that number, from 1, and how far its accesses have come to where
    those wait for L2 that wait one after the other: as far as those of the others of its block, as barriers and what they share have it."""
    unit = max(since, busy[0])
    latency = f64(code[n * 9 + 7])
    figures = (of_class * size + n) * FIGURES
    chances[figures] += memory[figures]
    taken = f64(1)
    late = f64(0)
    if chances[figures] >= f64(0.999999):
        chances[figures] -= f64(1)
        out = memory[figures + 2]
        sends = memory[figures + 8]
        if sends > f64(0):
            stored[2 * of] += sends
            stored[2 * of + 1] += memory[figures + 12]
            back = f64(0)
            more = out - memory[figures + 10]
            if stored[2 * of + 1] >= f64(0.999999):
                stored[2 * of + 1] -= f64(1)
                back = memory[figures + 11]
                state[8] += more
            if goes_with(held, of, stored[2 * of], back, sends, unit, rates[12], rates[13]) == 1:
                state[9] += more
                out = memory[figures + 10]
                sends = memory[figures + 9]
        taken = max(max(f64(1), memory[figures + 1]), sends * rates[14]) * rates[2]
        state[2] += taken
        if code[n * 9 + 6] == 1 and memory[figures + 2] > f64(0):
            drawn = chances[figures + 5] + f64(EVENLY)
            if memory[figures + LASTS] > f64(0):
                last = 2 * (of * size + i64(memory[figures + WITH]))
                if passed[last] != f64(order + 1):
                    passed[last] = f64(order + 1)
                    passed[last + 1] = f64(order // warps) * f64(EVENLY)
                drawn = passed[last + 1] + memory[figures + LASTS]
                passed[last + 1] = drawn - f64(i64(drawn))
            drawn -= f64(i64(drawn))
            chances[figures + 5] = drawn
            moves = max(out * f64(32) / rates[0], memory[figures + 13] * rates[15])
            busy[1] = max(unit + taken, busy[1]) + moves
            state[3] += moves
            if drawn < memory[figures + 7]:
                late = busy[1] + rates[3]
            if drawn < memory[figures + 5]:
                late = busy[1] + rates[4]
            moved = (memory[figures + 3] + memory[figures + 4] * f64(1.11)) * f64(32) / rates[1]
            if moved > f64(0):
                busy[2] = max(busy[1], busy[2]) + moved
                state[4] += moved
            if drawn < memory[figures + 6]:
                late = max(late, busy[2] + rates[5])
            if latency == f64(0):  # a block has ended once its stores have arrived
                settled[slot] = max(settled[slot], busy[1] + rates[9])
                late = f64(0)
    busy[0] = unit + taken
    board = code[n * 9 + 2]
    if board >= 0:
        boards[of * 6 + board] = max(boards[of * 6 + board], max(busy[0] + latency, late))  # it counts those under way
        unknown[of * 6 + board] -= 1
    board = code[n * 9 + 3]
    if board >= 0:
        boards[of * 6 + board] = max(boards[of * 6 + board], busy[0] + rates[8])
        unknown[of * 6 + board] -= 1


@st.device
def ready_at(of: i64, waits: i64, since: f64, boards: Global[f64], unknown: Global[i64]) -> f64:
    """When a warp can issue an instruction that waits for scoreboards, by their mask; not yet, as long as one is not known."""
    when = since
    for board in range(i64(6)):
        if (waits >> board) & 1 != 0:
            when = max(when, boards[of * 6 + board])
            if unknown[of * 6 + board] > 0:
                when = f64(1e30)
    return when
