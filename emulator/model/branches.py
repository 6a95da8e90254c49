"""Control flow of a simulated warp: minority and divergent paths of branches, waiting groups of lanes, reconvergence."""

from __future__ import annotations

from .. import language as st
from ..language.hints import f64, i64
from .sm_state import ALMOST_ONE, MAX_WAITING_GROUPS, Sm


@st.device
def _can_exit(sm: Sm, warp: i64, block: i64) -> bool:
    """Return whether no group of lanes waits inside the loop that the minority path of a block leaves."""
    result, exit_block = True, sm.branches.minority[block]
    if sm.branches.exit_counters[block] >= 0 and exit_block >= 0:
        for k in range(MAX_WAITING_GROUPS * warp, MAX_WAITING_GROUPS * warp + sm.warps.waiting_counts[warp]):
            inside = exit_block * (sm.branches.number + 1) + sm.warps.waiting_convergence[k] + 1
            result = result and not sm.branches.unreachable_convergence[inside]
    return result


@st.device
def _branch(sm: Sm, warp: i64, block: i64) -> i64:
    """Return the next block after a branch; a divergent one adds a waiting group."""
    next_block, first = sm.branches.majority[block], warp * sm.branches.number
    own = first + block - sm.warps.base[warp]
    counter = first + sm.branches.exit_counters[block] if sm.branches.exit_counters[block] >= 0 else own
    sm.warps.divergence[own] += sm.branches.divergent_shares[block]
    sm.warps.minority[counter] += sm.branches.minority_shares[block]
    if sm.warps.divergence[own] >= f64(ALMOST_ONE):
        sm.warps.divergence[own] -= f64(1)
        if sm.warps.waiting_counts[warp] < MAX_WAITING_GROUPS:
            group = warp * MAX_WAITING_GROUPS + sm.warps.waiting_counts[warp]
            sm.warps.waiting_blocks[group] = sm.branches.minority[block]
            sm.warps.waiting_convergence[group] = sm.branches.convergence[block]
            sm.warps.waiting_counts[warp] += 1
    elif sm.warps.minority[counter] >= f64(ALMOST_ONE) and _can_exit(sm, warp, block):
        sm.warps.minority[counter] -= f64(1)
        next_block = sm.branches.minority[block]
    return next_block


@st.device
def _next_group(sm: Sm, warp: i64, next_block: i64) -> i64:
    """Return the waiting group that runs instead of the current one, -1 for none: the latest one whose convergence point
    the current one cannot reach, or has reached."""
    first = warp * MAX_WAITING_GROUPS
    last = first + sm.warps.waiting_counts[warp] - 1
    row = next_block * (sm.branches.number + 1) + 1
    while (
        last >= first
        and next_block >= 0
        and not (
            sm.branches.convergence_blocks[next_block]
            and sm.branches.unreachable_convergence[row + sm.warps.waiting_convergence[last]]
        )
    ):
        last -= 1
    if last < first:
        last = first + sm.warps.waiting_counts[warp] - 1
        while last >= first and next_block != sm.warps.waiting_convergence[last]:
            last -= 1
    return last if last >= first else i64(-1)


@st.device
def _next_block(sm: Sm, warp: i64) -> i64:
    """Return the next basic block of a warp, -1 if it ends. A group of lanes that reconverges or waits is replaced."""
    block = sm.warps.block[warp]
    next_block = sm.branches.majority[block]
    if sm.branches.minority_shares[block] > f64(0) or sm.branches.divergent_shares[block] > f64(0):
        next_block = _branch(sm, warp, block)
    group = i64(0)
    while group >= 0 and sm.warps.waiting_counts[warp] > 0:
        group = _next_group(sm, warp, next_block)
        if group >= 0:
            next_block = sm.warps.waiting_blocks[group]
            sm.warps.waiting_counts[warp] -= 1
            for k in range(group, warp * MAX_WAITING_GROUPS + sm.warps.waiting_counts[warp]):
                sm.warps.waiting_blocks[k] = sm.warps.waiting_blocks[k + 1]
                sm.warps.waiting_convergence[k] = sm.warps.waiting_convergence[k + 1]
    return next_block


@st.device
def next_instruction(sm: Sm, warp: i64) -> i64:
    """Return the next instruction of a warp, -1 if it ends."""
    n = sm.warps.pc[warp] + 1
    if n >= sm.branches.past[sm.warps.block[warp]]:
        next_block = _next_block(sm, warp)
        n = i64(-1)
        if next_block >= 0:
            sm.warps.block[warp] = sm.warps.base[warp] + next_block
            n = sm.branches.first[sm.warps.block[warp]]
    return n
