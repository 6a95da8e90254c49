"""Load/store unit of an SM: serves the scheduler queues in order, and merges stores of a warp into recently opened lines."""

from .. import language as st
from ..language.hints import f64, i64
from .instruction_stream import PROFILE_WORDS, InstructionKind, Profile
from .sm_state import ALMOST_ONE, COPY_GROUPS, FAR_FUTURE, MAX_OPEN_STORES, SCOREBOARDS, Cycle, Memory, Result, Sm

OPERAND_READ_CYCLES = 12.0
"""Cycles until an instruction has read its operands; measured on an H100."""
GOLDEN_STEP = (5**0.5 - 1) / 2
"""Golden-ratio step of a low-discrepancy sequence: unrolled copies together sample as one instruction does."""
_DRAM_WRITE_COST = 1.11
"""Cost of a written sector of device memory, in read ones; fitted to copies on an H200."""


@st.device
def _find_open_store(sm: Sm, warp: i64, place: f64, lines: f64) -> i64:
    """Return the entry of the warp's open store closest to a position in its store lines; -1 for none."""
    match, tolerance = i64(-1), f64(0.5) * lines + f64(0.01)
    for entry in range(i64(MAX_OPEN_STORES)):
        if sm.lsu.open_warps[entry] == warp and sm.lsu.open_counts[entry] > f64(0):
            distance = abs(sm.lsu.open_places[entry] - place)
            if distance < tolerance:
                tolerance = distance
                match = entry
    return match


@st.device
def _close_oldest_store(sm: Sm) -> i64:
    """Return the entry of the oldest open store."""
    oldest = i64(-1)
    for entry in range(i64(MAX_OPEN_STORES)):
        if sm.lsu.open_counts[entry] > f64(0) and (oldest < 0 or sm.lsu.open_times[entry] < sm.lsu.open_times[oldest]):
            oldest = entry
    return oldest


@st.device
def _open_store(sm: Sm, warp: i64, place: f64, lines: f64, now: f64) -> None:
    """Open the lines of a store; the oldest ones close beyond the limit of open lines."""
    free, count, total_lines = i64(-1), i64(0), lines
    for entry in range(i64(MAX_OPEN_STORES)):
        total_lines += sm.lsu.open_counts[entry]
        if sm.lsu.open_counts[entry] == f64(0):
            free = entry
        else:
            count += 1
    while count > 0 and (total_lines > sm.rates.open_lines or count == MAX_OPEN_STORES):
        free = _close_oldest_store(sm)
        total_lines -= sm.lsu.open_counts[free]
        sm.lsu.open_counts[free] = f64(0)
        count -= 1
    sm.lsu.open_warps[free] = warp
    sm.lsu.open_places[free] = place
    sm.lsu.open_counts[free] = lines
    sm.lsu.open_times[free] = now


@st.device
def _merges_with_open_store(sm: Sm, warp: i64, reuse_distance: f64, lines: f64, now: f64) -> bool:
    """Return whether a store merges with open lines of the warp's earlier store; then opens its lines.

    reuse_distance: store lines since the earlier store, 0 for none.
    """
    match, place = i64(-1), sm.lsu.store_lines[warp]
    if reuse_distance > f64(0):
        match = _find_open_store(sm, warp, place - reuse_distance, lines)
    merges = match >= 0 and now - sm.lsu.open_times[match] <= sm.rates.open_cycles
    if merges:
        sm.lsu.open_places[match] = place
        sm.lsu.open_times[match] = now
    else:
        if match >= 0:
            sm.lsu.open_counts[match] = f64(0)
        _open_store(sm, warp, place, lines, now)
    return merges


@st.device
def _store(sm: Sm, warp: i64, profile: i64, now: f64) -> bool:
    """Count the lines of a store; return whether they merge with an earlier store."""
    sm.lsu.store_lines[warp] += sm.lsu.profiles[profile + Profile.STORE_LINES]
    sm.lsu.rehits[warp] += sm.lsu.profiles[profile + Profile.REUSE_FRACTION]
    reuse_distance = f64(0)
    mergeable = sm.lsu.profiles[profile + Profile.L2_SECTORS] - sm.lsu.profiles[profile + Profile.MERGED_SECTORS]
    if sm.lsu.rehits[warp] >= f64(ALMOST_ONE):
        sm.lsu.rehits[warp] -= f64(1)
        reuse_distance = sm.lsu.profiles[profile + Profile.REUSE_DISTANCE]
        sm.results[Result.REHIT_SECTORS] += mergeable
    merges = _merges_with_open_store(sm, warp, reuse_distance, sm.lsu.profiles[profile + Profile.STORE_LINES], now)
    if merges:
        sm.results[Result.MERGED_STORE_SECTORS] += mergeable
    return merges


@st.device
def _sample(sm: Sm, warp: i64, row: i64) -> f64:
    """Return a low-discrepancy sample in [0, 1) for the memory level of an access; of bursts, by warp."""
    profile = row * PROFILE_WORDS
    sample = sm.lsu.samples[row] + f64(GOLDEN_STEP)
    if sm.lsu.profiles[profile + Profile.BURST_SHARE] > f64(0):
        burst = warp * sm.code.size + row % sm.code.size
        order = sm.warps.order[warp]
        if sm.lsu.burst_owners[burst] != f64(order + 1):
            sm.lsu.burst_owners[burst] = f64(order + 1)
            sm.lsu.burst_phases[burst] = f64(order // sm.launch.warps) * f64(GOLDEN_STEP)
        sample = sm.lsu.burst_phases[burst] + sm.lsu.profiles[profile + Profile.BURST_SHARE]
        sm.lsu.burst_phases[burst] = sample - f64(i64(sample))
    sample -= f64(i64(sample))
    sm.lsu.samples[row] = sample
    return sample


@st.device
def _request(sm: Sm, warp: i64, row: i64, sent: f64, l2_sectors: f64) -> f64:
    """Send the requests of an access to L2 and device memory; return when it completes, 0 if in L1. sent: cycle."""
    profile, completion = row * PROFILE_WORDS, f64(0)
    sample = _sample(sm, warp, row)
    transfer = max(
        l2_sectors * f64(32) / sm.rates.l2,
        sm.lsu.profiles[profile + Profile.LOAD_MISS_LINES] * sm.rates.request_interval,
    )
    sm.lsu.busy_until[Memory.L2] = max(sent, sm.lsu.busy_until[Memory.L2]) + transfer
    if sample < sm.lsu.profiles[profile + Profile.L2_PROBABILITY]:
        completion = sm.lsu.busy_until[Memory.L2] + sm.rates.near_latency
    if sample < sm.lsu.profiles[profile + Profile.FAR_PROBABILITY]:
        completion = sm.lsu.busy_until[Memory.L2] + sm.rates.far_latency
    written = sm.lsu.profiles[profile + Profile.DRAM_WRITE_SECTORS] * f64(_DRAM_WRITE_COST)
    transfer = (sm.lsu.profiles[profile + Profile.DRAM_READ_SECTORS] + written) * f64(32) / sm.rates.dram
    if transfer > f64(0):
        sm.lsu.busy_until[Memory.DRAM] = max(sm.lsu.busy_until[Memory.L2], sm.lsu.busy_until[Memory.DRAM]) + transfer
        sm.results[Result.DRAM_BUSY] += transfer
    if sample < sm.lsu.profiles[profile + Profile.DRAM_PROBABILITY]:
        completion = max(completion, sm.lsu.busy_until[Memory.DRAM] + sm.rates.dram_latency)
    return completion


@st.device
def _access(sm: Sm, warp: i64, n: i64, row: i64, start: f64) -> f64:
    """Execute an access; return when it completes, 0 if in L1 or a store. The LSU is busy until it is sent."""
    profile, completion = row * PROFILE_WORDS, f64(0)
    l2_sectors, store_lines = (
        sm.lsu.profiles[profile + Profile.L2_SECTORS],
        sm.lsu.profiles[profile + Profile.STORE_LINES],
    )
    if store_lines > f64(0) and _store(sm, warp, profile, start):
        l2_sectors, store_lines = (
            sm.lsu.profiles[profile + Profile.MERGED_SECTORS],
            sm.lsu.profiles[profile + Profile.MERGED_LINES],
        )
    cycles = max(f64(1), sm.lsu.profiles[profile + Profile.LSU_CYCLES])
    cycles = max(cycles, store_lines * sm.rates.line_interval) * sm.rates.lsu_scale
    sm.lsu.busy_until[Memory.LSU] = start + cycles
    if sm.code.kind[n] == InstructionKind.GLOBAL and sm.lsu.profiles[profile + Profile.L2_SECTORS] > f64(0):
        completion = _request(sm, warp, row, start + cycles, l2_sectors)
        if sm.code.latency[n] == 0:  # a block ends when its stores arrive
            slot = warp // sm.launch.warps
            arrival = sm.lsu.busy_until[Memory.L2] + sm.rates.store_latency
            sm.slots.settled[slot] = max(sm.slots.settled[slot], arrival)
            completion = f64(0)
    return completion


@st.device
def copy(sm: Sm, warp: i64, n: i64) -> f64:
    """Copy in bulk; return when the copy is complete, of a store when its memory has it."""
    row, now = sm.launch.classes[sm.warps.order[warp]] * sm.code.size + n, sm.clock[Cycle.NOW]
    profile, slot = row * PROFILE_WORDS, warp // sm.launch.warps
    sent = max(now, sm.lsu.busy_until[Memory.COPIES]) + sm.lsu.profiles[profile + Profile.LSU_CYCLES]
    sm.lsu.busy_until[Memory.COPIES] = sent
    completion = max(sent, _request(sm, warp, row, now, sm.lsu.profiles[profile + Profile.L2_SECTORS]))
    if sm.code.latency[n] == 0:
        completion = sm.lsu.busy_until[Memory.L2] + sm.rates.store_latency
        sm.slots.settled[slot] = max(sm.slots.settled[slot], completion)
    return completion + f64(sm.code.latency[n])


@st.device
def raise_scoreboard(sm: Sm, warp: i64, board: i64, when: f64) -> None:
    """Release a scoreboard not before a cycle: it counts outstanding operations. -1: none."""
    if board >= 0:
        place = warp * SCOREBOARDS + board
        sm.warps.scoreboards[place] = max(sm.warps.scoreboards[place], when)


@st.device
def count_pending(sm: Sm, warp: i64, board: i64, change: i64) -> None:
    """Count the accesses without a known release of a scoreboard. -1: none."""
    if board >= 0:
        sm.warps.pending_writes[warp * SCOREBOARDS + board] += change


@st.device
def serve(sm: Sm, warp: i64, n: i64, arrival: f64) -> None:
    """Serve instruction n of a warp, queued since `arrival`."""
    start = max(arrival, sm.lsu.busy_until[Memory.LSU])
    row = sm.launch.classes[sm.warps.order[warp]] * sm.code.size + n
    sm.lsu.accesses[row] += sm.lsu.profiles[row * PROFILE_WORDS]
    sm.lsu.busy_until[Memory.LSU] = start + f64(1)
    completion = f64(0)
    if sm.lsu.accesses[row] >= f64(ALMOST_ONE):
        sm.lsu.accesses[row] -= f64(1)
        completion = _access(sm, warp, n, row, start)
    free = sm.lsu.busy_until[Memory.LSU]
    completion = max(free + f64(sm.code.latency[n]), completion)
    if sm.code.kind[n] == InstructionKind.GLOBAL and sm.code.writes[n] < 0 and sm.code.latency[n] > 0:
        sm.warps.copied[warp] = max(sm.warps.copied[warp], completion)  # an asynchronous copy
    elif sm.code.kind[n] == InstructionKind.GROUP:
        sm.warps.groups[warp * COPY_GROUPS + sm.warps.completed[warp] % COPY_GROUPS] = max(
            sm.warps.copied[warp], completion
        )
        sm.warps.completed[warp] += 1
    raise_scoreboard(sm, warp, sm.code.writes[n], completion)
    raise_scoreboard(sm, warp, sm.code.reads[n], free + f64(OPERAND_READ_CYCLES))
    count_pending(sm, warp, sm.code.writes[n], -1)
    count_pending(sm, warp, sm.code.reads[n], -1)


@st.device
def ready_at(sm: Sm, warp: i64, n: i64) -> f64:
    """Return when a warp can issue instruction n; far in the future while an awaited scoreboard or group of copies is pending."""
    when = sm.warps.ready_without_scoreboards[warp]
    for board in range(i64(SCOREBOARDS)):
        if (sm.code.waits[n] >> board) & 1 != 0:
            when = max(when, sm.warps.scoreboards[warp * SCOREBOARDS + board])
            if sm.warps.pending_writes[warp * SCOREBOARDS + board] > 0:
                when = f64(FAR_FUTURE)
    left = sm.code.pending[n]
    if sm.code.kind[n] == InstructionKind.GROUP_WAIT and left < COPY_GROUPS and left < sm.warps.committed[warp]:
        group = sm.warps.committed[warp] - 1 - left
        when = max(when, sm.warps.groups[warp * COPY_GROUPS + group % COPY_GROUPS])
    return when
