"""Divergence of warps: groups of lanes, convergence barriers, barriers of blocks and clusters, and the order of warps.

A warp runs one group of lanes at a time. At a divergent branch, the lanes that jump run first and the others wait on a
stack; the newest group continues when the running one waits or exits. Groups merge only at BSYNC and WARPSYNC, which each
group executes on arrival. BSSY overwrites a register in use; the lanes that wait for it keep their own addresses. A group
that yields is set aside: convergence barriers no longer await it, and it runs again when no other group can.

All warps at the lowest address run together. The functions are native: interpreted and compiled code call the same ones.
"""

from .. import language as st
from ..language.hints import Global, i64, u32
from ..language.intrinsics import WARP_SIZE
from ..native import native
from .groups import (
    AND,
    AT_BARRIER,
    AT_BLOCK,
    AT_CLUSTER,
    AT_CLUSTER_BARRIER,
    AWAIT,
    BARRIER_REGISTERS,
    BLOCK_BARRIER,
    CLUSTER_ARRIVE,
    CLUSTER_WAIT,
    CONTINUE,
    CONTROL_FIELDS,
    CONVERGING,
    EXIT,
    EXITED,
    FAIR_INTERVAL,
    FAR,
    FINISHED,
    FREE,
    GATHER,
    GATHERED,
    JUMP,
    JUMP_IF_CONVERGED,
    LEAVE,
    NO_REDUCTION,
    NUMBER,
    OR,
    PAUSED,
    POPC,
    REDUCTION,
    RETURN,
    RUNNING,
    SET_ASIDE,
    SET_BARRIER,
    STUCK,
    SUSPENDED,
    SYNCHRONISE,
    TARGET,
    WAITING,
    YIELDED,
    Groups,
    add,
    gathered_group,
    next_group,
    oldest,
    put,
    run_group,
    stack_all,
)


@st.device
def _resume(g: Groups, warp: i64) -> None:
    """Let another group run. If all wait for each other, those of the first convergence barrier with lanes continue."""
    searching = True
    while searching:
        searching = False
        slot = next_group(g, warp)
        if slot < 0:
            g.lanes[warp] = 0
            if oldest(g, warp, i64(AT_BLOCK)) >= 0:
                g.status[warp] = AT_BARRIER
            elif oldest(g, warp, i64(AT_CLUSTER)) >= 0:
                g.status[warp] = AT_CLUSTER_BARRIER
            elif g.alive[warp] == 0:
                g.status[warp] = EXITED
            else:
                slot = gathered_group(g, warp)
                if slot < 0:
                    g.status[warp] = STUCK
                    for number in range(i64(BARRIER_REGISTERS)):
                        register = warp * BARRIER_REGISTERS + number
                        if not searching and g.arrived[register] != 0:
                            searching = True
                            stack_all(g, warp, CONVERGING + number, i64(-1))
                            g.members[register] = 0
                            g.arrived[register] = 0
        if slot >= 0:
            run_group(g, warp, slot)


@st.device
def _release(g: Groups, warp: i64) -> None:
    """Let the lanes of convergence barriers continue whose members have all arrived, exited or yielded."""
    yielded = i64(0)
    for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
        if g.kind[n] == YIELDED:
            yielded |= g.bits[n]
    for number in range(i64(BARRIER_REGISTERS)):
        register = warp * BARRIER_REGISTERS + number
        arrived = g.arrived[register]
        if arrived != 0 and g.members[register] & g.alive[warp] & ~arrived & ~yielded == 0:
            stack_all(g, warp, CONVERGING + number, arrived)
            g.members[register] = 0
            g.arrived[register] = 0


# ------------------------------------------------------------------ instructions
@st.device
def _branch(g: Groups, warp: i64, n: i64, jumps: i64, target: i64, together: bool) -> None:
    """Jump. together: all lanes, where one does."""
    if jumps == g.lanes[warp] or (together and jumps != 0):
        g.address[warp] = target
    elif jumps == 0:
        g.address[warp] = n + 1
    else:
        add(g, warp, i64(WAITING), n + 1, g.lanes[warp] & ~jumps)
        g.address[warp] = target
        g.lanes[warp] = jumps


@st.device
def _branch_to(g: Groups, warp: i64, values: Global[i64], first: i64) -> None:
    """Jump to an address of each lane; the lowest one runs first."""
    left, lowest = g.lanes[warp], True
    while left != 0:
        target = i64(FAR)
        for lane in range(i64(WARP_SIZE)):
            if left >> lane & 1 != 0:
                target = min(target, values[first + lane])
        bits = i64(0)
        for lane in range(i64(WARP_SIZE)):
            if left >> lane & 1 != 0 and values[first + lane] == target:
                bits |= i64(1) << lane
        if lowest:
            g.address[warp] = target >> 4
            g.lanes[warp] = bits
        else:
            add(g, warp, i64(WAITING), target >> 4, bits)
        lowest = False
        left &= ~bits


@st.device
def _synchronise(g: Groups, warp: i64, n: i64, lanes: i64, number: i64) -> None:
    register = warp * BARRIER_REGISTERS + number
    active = g.lanes[warp]
    if lanes == g.members[register] & g.alive[warp] and lanes == active:
        g.address[warp] = n + 1
        g.members[register] = 0
    else:
        waiting = lanes & g.members[register]
        if waiting != 0:
            g.arrived[register] |= waiting
            add(g, warp, CONVERGING + number, n + 1, waiting)
        if active & ~waiting != 0:
            add(g, warp, i64(WAITING), n + 1, active & ~waiting)
        _release(g, warp)
        _resume(g, warp)


@st.device
def _exit(g: Groups, warp: i64, n: i64, lanes: i64) -> None:
    left = g.lanes[warp] & ~lanes
    g.alive[warp] &= ~lanes
    g.lanes[warp] = left
    if left != 0:
        g.address[warp] = n + 1
    if lanes != 0:
        _release(g, warp)
        if left == 0:
            _resume(g, warp)


@st.device
def _wait_together(g: Groups, warp: i64, n: i64, awaited: i64) -> None:
    """WARPSYNC: wait for other lanes."""
    arrived = g.lanes[warp]
    if arrived & awaited == awaited:
        g.address[warp] = n + 1
    else:
        slot = add(g, warp, i64(GATHERED), n + 1, arrived)
        g.awaited[slot] = awaited
        if g.bits[slot] & awaited == awaited:
            run_group(g, warp, slot)
        else:
            _resume(g, warp)


@st.device
def _await(g: Groups, warp: i64, n: i64, complete: i64) -> None:
    """Suspend a warp until all its lanes are complete, or its time is over."""
    over = complete == g.lanes[warp] or g.run[4] > g.warps
    g.status[warp] = RUNNING if over else SUSPENDED
    g.address[warp] = n + 1 if over else n


@st.device
def _set_aside(g: Groups, warp: i64, n: i64) -> None:
    """YIELD: set a group aside that is not all lanes of its warp."""
    g.address[warp] = n + 1
    if g.lanes[warp] != g.alive[warp]:
        slot = add(g, warp, i64(YIELDED), n + 1, g.lanes[warp])
        put(g, slot, i64(YIELDED))
        g.last_yield[warp] = n + 1
        _release(g, warp)
        _resume(g, warp)


@st.device
def _wait_for_block(g: Groups, warp: i64, n: i64, holding: i64, barrier: i64, reduction: i64) -> None:
    """BAR: wait for the other warps of the block. holding: lanes whose predicate holds."""
    block = warp // g.warps_per_block
    if reduction != NO_REDUCTION:
        g.reduced[3 * block] += i64(st.popcount(g.lanes[warp]))
        g.reduced[3 * block + 1] += i64(st.popcount(holding))
        g.reduced[3 * block + 2] = reduction
    g.barrier[warp] = barrier
    add(g, warp, i64(AT_BLOCK), n + 1, g.lanes[warp])
    _resume(g, warp)


@st.device
def _release_block(g: Groups, block: i64, threads: i64, barrier: i64) -> None:
    """Let the warps of a block continue that have all arrived or exited. threads: the number that a barrier awaits; -1 for
    all."""
    first, waiting, running = block * g.warps_per_block, i64(0), False
    for warp in range(first, first + g.warps_per_block):
        if g.status[warp] == AT_BARRIER and (threads < 0 or g.barrier[warp] == barrier):
            waiting += 1
        if g.status[warp] == RUNNING or g.status[warp] == SUSPENDED or g.status[warp] == AT_CLUSTER_BARRIER:
            running = True
    if (threads < 0 and waiting != 0 and not running) or (threads >= 0 and WARP_SIZE * waiting >= threads):
        kind = g.reduced[3 * block + 2]
        if kind != NO_REDUCTION:
            lanes, holding, result = g.reduced[3 * block], g.reduced[3 * block + 1], u32(0)
            if kind == POPC:
                result = u32(holding)
            elif (kind == AND and holding == lanes) or (kind == OR and holding > 0):
                result = u32(0xFFFFFFFF)
            g.barrier_results[block] = result
            for n in range(i64(3)):
                g.reduced[3 * block + n] = 0
        g.phases[block] += 1
        for warp in range(first, first + g.warps_per_block):
            if g.status[warp] == AT_BARRIER and (threads < 0 or g.barrier[warp] == barrier):
                stack_all(g, warp, i64(AT_BLOCK), i64(-1))
                _resume(g, warp)


@st.device
def _release_blocks(g: Groups, rows: Global[i64], count: i64, threads: i64) -> None:
    latest, barrier = i64(-1), g.barrier[rows[0]]
    for i in range(count):
        block = rows[i] // g.warps_per_block
        if block != latest:
            latest = block
            _release_block(g, block, threads, barrier)


@st.device
def _continue(g: Groups, warp: i64, n: i64, kind: i64) -> None:
    """Continue. UCGABAR_ARV: arrive. UCGABAR_WAIT: wait until the other warps of the cluster have arrived as often, or exited."""
    if kind == CLUSTER_WAIT:
        add(g, warp, i64(AT_CLUSTER), n + 1, g.lanes[warp])
        _resume(g, warp)
    else:
        if kind == CLUSTER_ARRIVE:
            g.arrivals[warp] += 1
        g.address[warp] = n + 1


@st.device
def _release_clusters(g: Groups, rows: Global[i64], count: i64) -> None:
    latest = i64(-1)
    for i in range(count):
        first = rows[i] // g.warps_per_cluster * g.warps_per_cluster
        if first != latest:
            latest, fewest = first, i64(FAR)
            for warp in range(first, first + g.warps_per_cluster):
                if g.status[warp] != EXITED:
                    fewest = min(fewest, g.arrivals[warp])
            for warp in range(first, first + g.warps_per_cluster):
                if g.status[warp] == AT_CLUSTER_BARRIER and g.arrivals[warp] <= fewest:
                    stack_all(g, warp, i64(AT_CLUSTER), i64(-1))
                    _resume(g, warp)


@st.device
def _release_others(g: Groups, rows: Global[i64], count: i64, threads: i64) -> None:
    """Let warps continue at barriers of blocks and of clusters."""
    _release_blocks(g, rows, count, threads)
    _release_clusters(g, rows, count)


@st.device
def _first_lane(bits: i64) -> i64:
    lane = i64(0)
    while bits >> lane & 1 == 0:
        lane += 1
    return lane


@st.device
def _largest(values: Global[i64], first: i64, bits: i64) -> i64:
    found = i64(0)
    for lane in range(i64(WARP_SIZE)):
        if bits >> lane & 1 != 0:
            found = max(found, values[first + lane])
    return found


@native
def end_run(
    g: Groups, table: Global[i64], n: i64, rows: Global[i64], count: i64, chosen: Global[i64], values: Global[i64],
    awaited_threads: Global[i64],
) -> None:  # fmt: skip
    """Execute a control instruction by warps.

    table: CONTROL_FIELDS of each instruction. n: the instruction. rows: int64[count], the warps. chosen: bits of the lanes that
    it selects. values, awaited_threads: int64[32 * count], operands by lane: addresses of a return, masks, the number of a barrier, its
    threads.
    """
    kind, target, number = (
        table[CONTROL_FIELDS * n],
        table[CONTROL_FIELDS * n + TARGET],
        table[CONTROL_FIELDS * n + NUMBER],
    )
    threads, exited = i64(-1), False
    for i in range(count):
        warp = rows[i]
        lanes = g.lanes[warp] & chosen[i]
        lane = i * WARP_SIZE + _first_lane(g.lanes[warp])
        if kind == JUMP:
            _branch(g, warp, n, lanes, target, number != 0)
        elif kind == EXIT:
            exited = exited or lanes != 0
            _exit(g, warp, n, lanes)
        elif kind == SET_BARRIER:
            g.members[warp * BARRIER_REGISTERS + number] = lanes
            g.address[warp] = n + 1
        elif kind == SYNCHRONISE:
            _synchronise(g, warp, n, lanes, number)
        elif kind == BLOCK_BARRIER:
            if i == 0 and number != 0:
                threads = awaited_threads[lane]
            _wait_for_block(g, warp, n, lanes, values[lane], table[CONTROL_FIELDS * n + REDUCTION])
        elif kind == JUMP_IF_CONVERGED:
            converged = g.lanes[warp] == values[lane] & g.alive[warp]
            _branch(g, warp, n, lanes if converged == (number != 0) else i64(0), target, False)
        elif kind == LEAVE:
            g.members[warp * BARRIER_REGISTERS + number] &= ~lanes
            g.address[warp] = n + 1
            _release(g, warp)
        elif kind == GATHER:
            named = i64(-1) if number != 0 else _largest(values, i * WARP_SIZE, g.lanes[warp])
            _wait_together(g, warp, n, g.alive[warp] & named)
        elif kind == RETURN:
            _branch_to(g, warp, values, i * WARP_SIZE)
        elif kind == AWAIT:
            _await(g, warp, n, lanes)
        elif kind == SET_ASIDE:
            _set_aside(g, warp, n)
        else:
            _continue(g, warp, n, kind if lanes != 0 else i64(CONTINUE))
    if kind == BLOCK_BARRIER or kind >= CLUSTER_ARRIVE or exited:
        _release_others(g, rows, count, threads)


# ------------------------------------------------------------------ the order of warps
@st.device
def _begin(g: Groups, warp: i64, address: i64, counted: bool) -> None:
    """Begin the run of a warp."""
    g.latest[warp] = g.run[0]
    if g.merges != 0:
        for n in range(warp * WARP_SIZE, warp * WARP_SIZE + WARP_SIZE):
            if g.kind[n] == WAITING and g.at[n] == address:
                g.kind[n] = FREE
                g.lanes[warp] |= g.bits[n]
    if counted:
        g.starts[address * g.warps + warp] += 1
        g.path[g.run[3]] = warp << 32 | address
        g.run[3] += 1
        g.start_lanes[address] += i64(st.popcount(g.lanes[warp]))


@native
def begin_run(g: Groups, rows: Global[i64], active: Global[bool]) -> i64:
    """Choose the warps that run next: those at the lowest address, or at times those at the address of the one that waited
    longest. Count the start of their run. Suspended warps check their phase in these runs and where no other warp can run, without a
    count; if no phase of any is complete, their time is over.

    rows: the warps; their number is rows[warps]. active: bool[32 * warps], their running lanes. Return the first instruction,
    FINISHED, or PAUSED.
    """
    if g.run[2] <= 0:
        return i64(PAUSED)
    address, longest, running = i64(FAR), i64(FAR), False
    for warp in range(g.warps):
        if g.status[warp] == RUNNING:
            running = True
    g.run[4] = i64(0) if running else g.run[4] + 1
    fair = not running or (g.run[0] + 1) % FAIR_INTERVAL == 0
    for warp in range(g.warps):
        if g.status[warp] == RUNNING or (fair and g.status[warp] == SUSPENDED):
            if fair:
                if g.latest[warp] < longest:
                    longest = g.latest[warp]
                    address = g.address[warp]
            else:
                address = min(address, g.address[warp])
    if address == FAR:
        return i64(FINISHED)
    g.run[0] += 1
    g.run[2] -= 1
    count = i64(0)
    for warp in range(g.warps):
        counted = g.status[warp] == RUNNING
        if (counted or (fair and g.status[warp] == SUSPENDED)) and g.address[warp] == address:
            rows[count] = warp
            _begin(g, warp, address, counted)
            for lane in range(i64(WARP_SIZE)):
                active[count * WARP_SIZE + lane] = g.lanes[warp] >> lane & 1 != 0
            count += 1
    rows[g.warps] = count
    return address
