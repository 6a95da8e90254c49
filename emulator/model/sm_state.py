"""Records of the SM simulator: its program, its parameters, and the state of warps, blocks, queues and memories."""

from enum import IntEnum
from typing import NamedTuple

from ..language.hints import Global, f64, i64

MAX_OPEN_STORES = 64
"""Stores with open lines, at most."""
MAX_QUEUE_DEPTH = 16
"""Instructions in a scheduler's queue, at most."""
SCOREBOARDS = 7
"""Scoreboards of a warp; the last one is that of the products of its warpgroup (gsb0)."""
COPY_GROUPS = 8
"""Groups of asynchronous copies of a warp whose completions are known: those that a wait may leave, and one."""
PIPES = 9
"""Pipes of a scheduler; the last one is the integer half of the fma pipe."""
FAR_FUTURE = 1e30
"""Cycle of an event at an unknown time."""
ALMOST_ONE = 0.999999
"""Value of an accumulator that counts as one."""
Status = IntEnum("Status", "FINISHED RUNNING AT_BARRIER STARTING AT_PHASE", start=0)
"""States of a warp."""
Memory = IntEnum("Memory", "LSU L2 DRAM COPIES", start=0)
"""Memories in `LsuState.busy_until`, and the unit of bulk copies."""
Cycle = IntEnum("Cycle", "NOW SOONEST NEXT_BEGIN BARRIER_FREE", start=0)
"""Cycles: current, of the next event, of the next block launch, from which on a barrier accepts an arrival."""
Counter = IntEnum("Counter", "STARTED ISSUED LIVE QUEUED NEXT_QUEUE ENDED", start=0)
"""Counters: started blocks, issued instructions, live warps, queued accesses, next queue to serve, blocks to replace."""
Result = IntEnum(
    "Result",
    "TIME INSTRUCTIONS DRAM_BUSY HALF_TIME HALF_INSTRUCTIONS FINISHED_BLOCKS REHIT_SECTORS MERGED_STORE_SECTORS",
    start=0,
)
"""Results: cycles, issued instructions, busy cycles of device memory, cycles and instructions of the
first half, finished blocks, store sectors with an earlier store by the warp, and those merged with it."""


class Rates(NamedTuple):
    """Parameters of the SM. l2, dram: bytes per cycle. lsu_scale: factor of LSU cycles. open_lines, open_cycles: of
    stores. Others: cycles."""

    l2: f64
    dram: f64
    lsu_scale: f64
    near_latency: f64
    far_latency: f64
    dram_latency: f64
    barrier_latency: f64
    block_interval: f64
    store_latency: f64
    barrier_interval: f64
    branch_latency: f64
    open_lines: f64
    open_cycles: f64
    line_interval: f64
    request_interval: f64
    phase_latency: f64


class Launch(NamedTuple):
    """Blocks of the SM. classes, first_runs, past_runs: by block and warp; runs are entries of `Code.path`. first_events, past_events: by
    block and warp, in instructions and phases of `PhaseEvents`. first_phases, past_phases: by block, in its arrivals. warps: of a
    block. resident: blocks at once. most_phases: of a block."""

    classes: Global[i64]
    first_runs: Global[i64]
    past_runs: Global[i64]
    first_events: Global[i64]
    past_events: Global[i64]
    event_instructions: Global[i64]
    event_phases: Global[i64]
    first_phases: Global[i64]
    past_phases: Global[i64]
    arrivals: Global[i64]
    most_phases: i64
    warps: i64
    resident: i64
    blocks: i64
    schedulers: i64
    queue_depth: i64
    max_instructions: i64


class Code(NamedTuple):
    """Columns of `InstructionStream.code`; number of instructions; `path` and `ends_run` of `ExecutedWarps`."""

    stall: Global[i64]
    waits: Global[i64]
    writes: Global[i64]
    reads: Global[i64]
    pipe: Global[i64]
    cost: Global[i64]
    kind: Global[i64]
    latency: Global[i64]
    imul_cycles: Global[i64]
    pending: Global[i64]
    role: Global[i64]
    size: i64
    path: Global[i64]
    ends_run: Global[bool]


class Warps(NamedTuple):
    """State by resident warp. pc: next instruction. run: in `Code.path`. order: number in the launch. ready: cycle of the
    next issue, with and without scoreboards. issued: cycle of its last issue, or of its start. scoreboards, pending_writes:
    release cycles, and accesses without one. copied: completion of its asynchronous copies. groups: of each of its last COPY_GROUPS
    groups of copies. committed, completed: groups so far, and those with a known completion. event: in `Launch.event_phases`.
    awaited: the phase of a warp AT_PHASE."""

    pc: Global[i64]
    run: Global[i64]
    status: Global[i64]
    order: Global[i64]
    ready: Global[f64]
    ready_without_scoreboards: Global[f64]
    issued: Global[f64]
    scoreboards: Global[f64]
    pending_writes: Global[i64]
    copied: Global[f64]
    groups: Global[f64]
    committed: Global[i64]
    completed: Global[i64]
    event: Global[i64]
    awaited: Global[i64]


class Slots(NamedTuple):
    """State by resident block. settled: cycle when its stores have arrived. left, phase_times: by phase, arrivals that it lacks, and the
    cycle of the last one."""

    barrier_arrivals: Global[i64]
    live_warps: Global[i64]
    queued: Global[i64]
    settled: Global[f64]
    left: Global[i64]
    phase_times: Global[f64]


class Queues(NamedTuple):
    """Accesses of each scheduler to the LSU. removed, added: instructions so far. warp, instruction, issued: entries."""

    removed: Global[i64]
    added: Global[i64]
    warp: Global[i64]
    instruction: Global[i64]
    issued: Global[f64]


class LsuState(NamedTuple):
    """State of the load/store unit and the memories. profiles: `InstructionStream.memory`. accesses, samples: by class
    and instruction, pending accesses and a low-discrepancy sample of the memory level. store_lines, rehits: by warp.
    burst_owners, burst_phases: by warp and instruction, warp number + 1 and phase. open_*: stores with open lines."""

    profiles: Global[f64]
    accesses: Global[f64]
    samples: Global[f64]
    store_lines: Global[f64]
    rehits: Global[f64]
    burst_owners: Global[f64]
    burst_phases: Global[f64]
    open_warps: Global[i64]
    open_places: Global[f64]
    open_counts: Global[f64]
    open_times: Global[f64]
    busy_until: Global[f64]


class Sm(NamedTuple):
    """An SM. pipes: busy until, by scheduler. waited: cycles of warps between an issue and the next, by the next instruction."""

    launch: Launch
    code: Code
    rates: Rates
    warps: Warps
    slots: Slots
    queues: Queues
    lsu: LsuState
    pipes: Global[f64]
    waited: Global[f64]
    clock: Global[f64]
    counters: Global[i64]
    results: Global[f64]
