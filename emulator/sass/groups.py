"""Groups of the lanes of warps, those that run and those that wait, in arrays of native functions."""

from typing import Any, NamedTuple

import numpy as np

from .. import language as st
from ..language.hints import Global, i64, u32
from ..language.intrinsics import WARP_SIZE
from ..native import record
from .state import State

RUNNING, AT_BARRIER, EXITED, STUCK, SUSPENDED, AT_CLUSTER_BARRIER = range(6)
BARRIER_REGISTERS = 16
FREE, WAITING, YIELDED, GATHERED, AT_BLOCK, AT_CLUSTER, CONVERGING = range(7)
"""What a group of lanes waits for. CONVERGING + n: barrier register n."""
CONTINUE, JUMP, JUMP_IF_CONVERGED, RETURN, SET_BARRIER, SYNCHRONISE, LEAVE, EXIT = range(8)
BLOCK_BARRIER, GATHER, SET_ASIDE, AWAIT, CLUSTER_ARRIVE, CLUSTER_WAIT = range(8, 14)
"""Kinds of control instructions."""
KIND, TARGET, NUMBER, REDUCTION, CONTROL_FIELDS = range(5)
"""Fields of a control instruction. TARGET: an instruction. NUMBER: a barrier register; of JUMP 1 if all lanes
jump where one is chosen; of JUMP_IF_CONVERGED and GATHER 1 for lanes that are converged, and for all lanes; of BLOCK_BARRIER whether it
names the awaited threads."""
NO_REDUCTION, POPC, AND, OR = range(4)
FAIR_INTERVAL = 16
"""Runs after which the warps that waited longest run: warps that wait for others must not starve these."""
FINISHED, PAUSED = -1, -2
"""Results of `begin_run` other than an instruction: no warp can run; compiled code returns to its caller."""
FAR = 1 << 60
MAX_PATH = 1 << 23
"""Runs of warps whose order is kept; later ones are not."""
PATH_ENTRIES = 1 << 18
"""Runs of warps after which compiled code pauses: `Groups.path` is emptied, and an interrupt is noticed."""


class Groups(NamedTuple):
    """The groups of all warps of a batch.

    address, lanes: int64[warps], the instruction and the lanes' bits of the running group. alive: bits of lanes that have not
    exited. status: RUNNING, AT_BARRIER, EXITED, STUCK where lanes wait for each other, SUSPENDED at an AWAIT, or AT_CLUSTER_BARRIER.
    latest: the last run. arrivals: at barriers of the cluster. members, arrived: of barrier registers, int64[16 * warps]. kind, at, bits,
    order, awaited: of waiting groups, int64[32 * warps].
    last_yield: the address, -1 for none. barrier: of the block that a warp waits at. reduced: by block, lanes, those whose
    predicate holds, and the reduction. starts: runs by first instruction and warp. start_lanes: lanes by first instruction.
    path: the runs since the last pause, warp << 32 | first instruction. phases: barriers that each block has passed. run: number of
    runs; order of the next group; runs until compiled code pauses; length of `path`; consecutive runs of suspended warps alone.
    """

    address: Global[i64]
    lanes: Global[i64]
    alive: Global[i64]
    status: Global[i64]
    latest: Global[i64]
    arrivals: Global[i64]
    members: Global[i64]
    arrived: Global[i64]
    kind: Global[i64]
    at: Global[i64]
    bits: Global[i64]
    order: Global[i64]
    awaited: Global[i64]
    last_yield: Global[i64]
    barrier: Global[i64]
    reduced: Global[i64]
    barrier_results: Global[u32]
    starts: Global[i64]
    start_lanes: Global[i64]
    path: Global[i64]
    phases: Global[i64]
    run: Global[i64]
    warps: i64
    warps_per_block: i64
    warps_per_cluster: i64
    merges: i64


NUMBERS = ("warps", "warps_per_block", "warps_per_cluster", "merges")
"""Fields of `Groups` that are numbers, the last ones."""


def new_groups(state: State, instructions: int, merges: bool) -> Any:
    """Return the groups of a batch at its start. merges: whether a running group takes up waiting ones at its address, as in
    kernels with YIELD."""
    warps = state.warps
    alive = (state.launched_lanes * (1 << np.arange(WARP_SIZE))).sum(1)
    of_warps = [np.zeros(warps, np.int64), alive, alive.copy(), *(np.zeros(warps, np.int64) for _ in range(3))]
    registers = [np.zeros(BARRIER_REGISTERS * warps, np.int64) for _ in range(2)]
    waiting = [np.zeros(WARP_SIZE * warps, np.int64) for _ in range(5)]
    counts = [np.zeros(size, np.int64) for size in (instructions * warps, instructions)]
    return record(
        Groups, *of_warps, *registers, *waiting, np.full(warps, -1), np.full(warps, -1),
        np.zeros(3 * len(state.blocks), np.int64), state.barrier_results, *counts,
        np.zeros(PATH_ENTRIES + warps, np.int64), np.zeros(len(state.blocks), np.int64), np.array([0, 1, 0, 0, 0]),
        warps, state.warps_per_block, state.warps_per_block * state.cluster_blocks, int(merges),
    )  # fmt: skip


# ------------------------------------------------------------------ waiting groups of a warp
@st.device
def find(g: Groups, warp: i64, kind: i64, address: i64) -> i64:
    """Return the group of a kind at an address; -1 for none."""
    found = i64(-1)
    for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
        if g.kind[n] == kind and g.at[n] == address:
            found = n
    return found


@st.device
def oldest(g: Groups, warp: i64, kind: i64) -> i64:
    """Return the group of a kind that waited first; -1 for none."""
    found = i64(-1)
    for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
        if g.kind[n] == kind and (found < 0 or g.order[n] < g.order[max(found, i64(0))]):
            found = n
    return found


@st.device
def put(g: Groups, slot: i64, kind: i64) -> None:
    """Let a group be the newest one of a kind."""
    g.kind[slot] = kind
    g.order[slot] = g.run[1]
    g.run[1] += 1


@st.device
def add(g: Groups, warp: i64, kind: i64, address: i64, bits: i64) -> i64:
    """Add lanes to the waiting group of a kind at an address, or a new group; stacked groups (WAITING) remain separate. Return it."""
    slot = i64(-1)
    if kind != WAITING:
        slot = find(g, warp, kind, address)
    if slot < 0:
        for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
            if g.kind[n] == FREE:
                slot = n
        g.at[slot] = address
        g.bits[slot] = 0
        put(g, slot, kind)
    g.bits[slot] |= bits
    return slot


@st.device
def stack_all(g: Groups, warp: i64, kind: i64, among: i64) -> None:
    """Let the groups of a kind wait on the stack, the oldest first. among: bits of the lanes that continue."""
    slot = oldest(g, warp, kind)
    while slot >= 0:
        g.bits[slot] &= among
        put(g, slot, i64(WAITING))
        if g.bits[slot] == 0:
            g.kind[slot] = FREE
        slot = oldest(g, warp, kind)


@st.device
def run_group(g: Groups, warp: i64, slot: i64) -> None:
    """Let a waiting group be the running one of its warp."""
    g.address[warp] = g.at[slot]
    g.lanes[warp] = g.bits[slot]
    g.status[warp] = RUNNING
    g.kind[slot] = FREE


@st.device
def next_group(g: Groups, warp: i64) -> i64:
    """Return the newest waiting group, else the largest yielded one, the one that yielded last only if there is no other."""
    found = i64(-1)
    for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
        if g.kind[n] == WAITING and (found < 0 or g.order[n] > g.order[max(found, i64(0))]):
            found = n
    if found < 0:
        best = i64(0)
        for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
            if g.kind[n] == YIELDED:
                value = i64(st.popcount(g.bits[n])) << 40
                if g.at[n] != g.last_yield[warp]:
                    value += i64(1) << 50
                value += (i64(1) << 40) - 1 - g.order[n]
                if value > best:
                    best = value
                    found = n
        if found >= 0:
            g.last_yield[warp] = -1
    return found


@st.device
def gathered_group(g: Groups, warp: i64) -> i64:
    """Return the oldest group at WARPSYNC whose lanes have all arrived or exited; -1 for none."""
    found = i64(-1)
    for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
        complete = g.kind[n] == GATHERED and g.bits[n] == g.awaited[n] & g.alive[warp]
        if complete and (found < 0 or g.order[n] < g.order[max(found, i64(0))]):
            found = n
    return found
