"""Load/store unit of an SM: serves the scheduler queues in order, and merges stores of a warp into recently opened lines."""

from __future__ import annotations

from .. import language as st
from ..language.hints import Global, f64, i64
from .instruction_stream import BURST_SHARE, PEER, PROFILE_WORDS

(
    L2_RATE,
    DRAM_RATE,
    LSU_SCALE,
    NEAR_LATENCY,
    FAR_LATENCY,
    DRAM_LATENCY,
    BARRIER_LATENCY,
    BLOCK_INTERVAL,
    OPERAND_READ_CYCLES,
    STORE_LATENCY,
    BARRIER_INTERVAL,
    BRANCH_LATENCY,
    OPEN_LINES,
    OPEN_CYCLES,
    LINE_INTERVAL,
    REQUEST_INTERVAL,
) = range(16)
"""Parameters of the SM: bytes per cycle from L2 and device memory; factor of LSU cycles; latencies of near L2, far L2,
device memory and barriers; interval of block launches; operand read cycles; store latency; interval of barrier
arrivals; branch latency; open store lines, and cycles they remain open; intervals of store lines and of requests to L2."""
PARAMETERS = 16
"""Number of parameters."""
MAX_OPEN_STORES = 64
"""Stores with open lines, at most."""
MAX_QUEUE_DEPTH = 16
"""Instructions in a scheduler's queue, at most."""
GOLDEN_STEP = (5**0.5 - 1) / 2
"""Golden-ratio step of a low-discrepancy sequence: unrolled copies together sample as one instruction does."""

PLASTIC_STEP = 0.7548776662466927
"""Second step of a two-dimensional low-discrepancy sequence (plastic number), independent of GOLDEN_STEP."""


@st.device
def merges_with_open_store(
    open_stores: Global[f64],
    warp_index: i64,
    place: f64,
    reuse_distance: f64,
    lines: f64,
    now: f64,
    max_lines: f64,
    max_age: f64,
) -> i64:
    """Return whether a store merges with open lines of the warp's earlier store; then opens its lines.

    open_stores: warp, position, lines (0: free), time of each. place: position in the warp's store lines;
    reuse_distance: lines since the earlier store, 0 for none. max_lines, max_age: limits of open lines.
    """
    match = i64(-1)
    if reuse_distance > f64(0):
        tolerance = f64(0.5) * lines + f64(0.01)
        for entry in range(i64(MAX_OPEN_STORES)):
            if open_stores[4 * entry] == f64(warp_index) and open_stores[4 * entry + 2] > f64(0):
                distance = abs(open_stores[4 * entry + 1] - (place - reuse_distance))
                if distance < tolerance:
                    tolerance = distance
                    match = entry
    if match >= 0 and now - open_stores[4 * match + 3] <= max_age:
        open_stores[4 * match + 1] = place
        open_stores[4 * match + 3] = now
        return i64(1)
    if match >= 0:
        open_stores[4 * match + 2] = f64(0)
    free = i64(-1)
    count = i64(0)
    total_lines = lines
    for entry in range(i64(MAX_OPEN_STORES)):
        total_lines += open_stores[4 * entry + 2]
        if open_stores[4 * entry + 2] == f64(0):
            free = entry
        else:
            count += 1
    while count > 0 and (total_lines > max_lines or count == MAX_OPEN_STORES):
        free = i64(-1)
        for entry in range(i64(MAX_OPEN_STORES)):
            if open_stores[4 * entry + 2] > f64(0) and (
                free < 0 or open_stores[4 * entry + 3] < open_stores[4 * free + 3]
            ):
                free = entry
        total_lines -= open_stores[4 * free + 2]
        open_stores[4 * free + 2] = f64(0)
        count -= 1
    open_stores[4 * free] = f64(warp_index)
    open_stores[4 * free + 1] = place
    open_stores[4 * free + 2] = lines
    open_stores[4 * free + 3] = now
    return i64(0)


@st.device
def serve(
    warp_index: i64, n: i64, arrival: f64, slot: i64, order: i64, warps: i64, class_index: i64, code: Global[i64],
    memory: Global[f64], size: i64, rates: Global[f64],
    scoreboards: Global[f64], pending_writes: Global[i64], stores_arrived: Global[f64], access_accumulators: Global[f64],
    open_stores: Global[f64], store_counters: Global[f64],
    burst_positions: Global[f64], busy_until: Global[f64], state: Global[f64],
) -> None:  # fmt: skip
    """Serve instruction n of a warp.

    busy_until: of the LSU, the L2 port and device memory. store_counters: by warp, store lines and pending rehits.
    scoreboards: release times; pending_writes: instructions with an unknown time. stores_arrived: by slot. order:
    number of the warp; burst_positions: by warp and instruction, warp number + 1 and phase of its burst, shared by the
    warps of a block.
    """
    start = max(arrival, busy_until[0])
    latency = f64(code[n * 9 + 7])
    profile = (class_index * size + n) * PROFILE_WORDS
    access_accumulators[profile] += memory[profile]
    lsu_cycles = f64(1)
    completion = f64(0)
    if access_accumulators[profile] >= f64(0.999999):
        access_accumulators[profile] -= f64(1)
        l2_sectors = memory[profile + 2]
        store_lines = memory[profile + 8]
        if store_lines > f64(0):
            store_counters[2 * warp_index] += store_lines
            store_counters[2 * warp_index + 1] += memory[profile + 12]
            reuse_distance = f64(0)
            mergeable = l2_sectors - memory[profile + 10]
            if store_counters[2 * warp_index + 1] >= f64(0.999999):
                store_counters[2 * warp_index + 1] -= f64(1)
                reuse_distance = memory[profile + 11]
                state[8] += mergeable
            if (
                merges_with_open_store(
                    open_stores,
                    warp_index,
                    store_counters[2 * warp_index],
                    reuse_distance,
                    store_lines,
                    start,
                    rates[12],
                    rates[13],
                )
                == 1
            ):
                state[9] += mergeable
                l2_sectors = memory[profile + 10]
                store_lines = memory[profile + 9]
        lsu_cycles = max(max(f64(1), memory[profile + 1]), store_lines * rates[14]) * rates[2]
        state[2] += lsu_cycles
        if code[n * 9 + 6] == 1 and memory[profile + 2] > f64(0):
            sample = access_accumulators[profile + 5] + f64(GOLDEN_STEP)
            if memory[profile + BURST_SHARE] > f64(0):
                burst = 2 * (warp_index * size + i64(memory[profile + PEER]))
                if burst_positions[burst] != f64(order + 1):
                    burst_positions[burst] = f64(order + 1)
                    burst_positions[burst + 1] = f64(order // warps) * f64(GOLDEN_STEP)
                sample = burst_positions[burst + 1] + memory[profile + BURST_SHARE]
                burst_positions[burst + 1] = sample - f64(i64(sample))
            sample -= f64(i64(sample))
            access_accumulators[profile + 5] = sample
            transfer = max(l2_sectors * f64(32) / rates[0], memory[profile + 13] * rates[15])
            busy_until[1] = max(start + lsu_cycles, busy_until[1]) + transfer
            state[3] += transfer
            if sample < memory[profile + 7]:
                completion = busy_until[1] + rates[3]
            if sample < memory[profile + 5]:
                completion = busy_until[1] + rates[4]
            dram_transfer = (memory[profile + 3] + memory[profile + 4] * f64(1.11)) * f64(32) / rates[1]
            if dram_transfer > f64(0):
                busy_until[2] = max(busy_until[1], busy_until[2]) + dram_transfer
                state[4] += dram_transfer
            if sample < memory[profile + 6]:
                completion = max(completion, busy_until[2] + rates[5])
            if latency == f64(0):  # a block ends when its stores arrive
                stores_arrived[slot] = max(stores_arrived[slot], busy_until[1] + rates[9])
                completion = f64(0)
    busy_until[0] = start + lsu_cycles
    scoreboard = code[n * 9 + 2]
    if scoreboard >= 0:
        scoreboards[warp_index * 6 + scoreboard] = max(
            scoreboards[warp_index * 6 + scoreboard], max(busy_until[0] + latency, completion)
        )  # scoreboards count outstanding operations
        pending_writes[warp_index * 6 + scoreboard] -= 1
    scoreboard = code[n * 9 + 3]
    if scoreboard >= 0:
        scoreboards[warp_index * 6 + scoreboard] = max(
            scoreboards[warp_index * 6 + scoreboard], busy_until[0] + rates[8]
        )
        pending_writes[warp_index * 6 + scoreboard] -= 1


@st.device
def ready_at(warp_index: i64, waits: i64, earliest: f64, scoreboards: Global[f64], pending_writes: Global[i64]) -> f64:
    """Return when a warp can issue, given awaited scoreboards; far in the future while one is pending."""
    when = earliest
    for scoreboard in range(i64(6)):
        if (waits >> scoreboard) & 1 != 0:
            when = max(when, scoreboards[warp_index * 6 + scoreboard])
            if pending_writes[warp_index * 6 + scoreboard] > 0:
                when = f64(1e30)
    return when
