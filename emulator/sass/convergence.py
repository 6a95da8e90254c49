"""Divergence of warps: groups of lanes, convergence barriers, barriers of blocks.

A warp runs one group of lanes at a time. At a divergent branch, the lanes that jump run first and the others wait on a
stack; the newest group continues when the running one waits or exits. Groups merge only at BSYNC and WARPSYNC, which each
group executes on arrival. BSSY overwrites a register in use; the lanes that wait for it keep their own addresses. A group
that yields is set aside: convergence barriers no longer await it, and it runs again when no other group can.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from .collectives import mask_bits
from .integer import u32
from .state import ExecutionError, State

RUNNING, AT_BARRIER, EXITED = range(3)
BARRIER_REGISTERS = 16
Group = tuple[int, int]
"""An address, and the bits of lanes that continue there."""


def lanes_of(bits: int) -> npt.NDArray[np.bool_]:
    """Return bool[32] of the bits of a mask."""
    return (bits >> np.arange(32) & 1).astype(np.bool_)


class Convergence:
    """The groups of all warps of a batch. merges: whether a running group takes up waiting ones at its address, as in
    kernels with YIELD.

    address: int64[warps], of the running group. lanes: bool[warps, 32], its lanes. alive: uint32[warps], lanes that have
    not exited. status: RUNNING, AT_BARRIER or EXITED.
    """

    def __init__(self, state: State, merges: bool) -> None:
        self.state, self.merges, warps = state, merges, state.warps
        self.lanes = state.launched_lanes.copy()
        self.alive = mask_bits(self.lanes)
        self.address, self.status = np.zeros(warps, np.int64), np.zeros(warps, np.int8)
        self.members = np.zeros((BARRIER_REGISTERS, warps), u32)
        self.arrived = np.zeros((BARRIER_REGISTERS, warps), u32)
        self.continuations: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self.waiting: list[list[Group]] = [[] for _ in range(warps)]
        self.yielded: list[list[Group]] = [[] for _ in range(warps)]
        self.last_yield: dict[int, int] = {}
        self.gathered: list[dict[int, tuple[int, int]]] = [{} for _ in range(warps)]
        self.at_barrier: list[dict[int, int]] = [{} for _ in range(warps)]
        self.barrier_of_warp = np.full(warps, -1)
        self.reductions: dict[int, tuple[int, int, str]] = {}

    # -------------------------------------------------------------- groups
    def run(self, warp: int, address: int, bits: int) -> None:
        """Let a group of a warp run."""
        self.address[warp], self.lanes[warp], self.status[warp] = address, lanes_of(bits), RUNNING

    def resume(self, warp: int) -> None:
        """Let another group run: the newest waiting one, else a yielded one."""
        waiting = self.waiting[warp]
        if not waiting and self.yielded[warp]:
            waiting.append(self._pop_yielded(warp))
        if waiting:
            self.run(warp, *waiting.pop())
            return
        self.lanes[warp] = False
        if self.at_barrier[warp]:
            self.status[warp] = AT_BARRIER
            return
        if not self.alive[warp]:
            self.status[warp] = EXITED
            return
        for address, (bits, needed) in list(self.gathered[warp].items()):
            if bits == needed & int(self.alive[warp]):
                del self.gathered[warp][address]
                self.run(warp, address, bits)
                return
        self._break_deadlock(warp)

    def _pop_yielded(self, warp: int) -> Group:
        """Return the largest yielded group, the one that yielded last only if there is no other."""
        groups, last = self.yielded[warp], self.last_yield.pop(warp, None)
        best = max(range(len(groups)), key=lambda n: (groups[n][0] != last, groups[n][1].bit_count()))
        return groups.pop(best)

    def _break_deadlock(self, warp: int) -> None:
        """Release the lanes of a convergence barrier whose other members wait elsewhere. Raises ExecutionError."""
        for number in range(BARRIER_REGISTERS):
            if self.arrived[number][warp]:
                self.waiting[warp] += self.continuations.pop((warp, number)).items()
                self.members[number][warp] = self.arrived[number][warp] = 0
                self.resume(warp)
                return
        raise ExecutionError(f"the lanes {int(self.alive[warp]):#x} of a warp wait for each other")

    def release(self, warp: int) -> None:
        """Let the lanes of convergence barriers continue whose members have all arrived, exited or yielded."""
        yielded = 0
        for _, bits in self.yielded[warp]:
            yielded |= bits
        for number in np.flatnonzero(self.arrived[:, warp]).tolist():
            arrived = int(self.arrived[number][warp])
            if not int(self.members[number][warp]) & int(self.alive[warp]) & ~arrived & ~yielded:
                groups = self.continuations.pop((warp, number)).items()
                self.waiting[warp] += [(address, bits & arrived) for address, bits in groups if bits & arrived]
                self.arrived[number][warp] = self.members[number][warp] = 0

    def take_up(self, rows: npt.NDArray[np.int64], address: int) -> None:
        """Add the waiting groups at an address to those that run there."""
        for warp in rows.tolist():
            groups = self.waiting[warp]
            for group in [one for one in groups if one[0] == address]:
                groups.remove(group)
                self.lanes[warp] |= lanes_of(group[1])

    # -------------------------------------------------------------- instructions
    def branch(self, rows: Any, active: Any, jumps: Any, target: int, after: int) -> tuple[Any, Any]:
        """Jump where lanes are in `jumps`; return whether any and all active lanes of each warp do."""
        any_jumps, all_jumps = jumps.any(1), (jumps == active).all(1)
        self.address[rows[all_jumps]], self.address[rows[~any_jumps]] = target, after
        divergent = np.flatnonzero(any_jumps & ~all_jumps)
        if len(divergent):
            jumping, staying = mask_bits(jumps[divergent]), mask_bits(active[divergent] & ~jumps[divergent])
            for n, warp in enumerate(rows[divergent].tolist()):
                self.waiting[warp].append((after, int(staying[n])))
                self.run(warp, target, int(jumping[n]))
        return any_jumps, all_jumps

    def branch_to(self, rows: Any, active: Any, targets: Any) -> None:
        """Jump to an address of each lane."""
        targets = np.broadcast_to(targets, active.shape)
        for n, warp in enumerate(rows.tolist()):
            groups = [
                (int(address), int(mask_bits((active[n] & (targets[n] == address))[None])[0]))
                for address in np.unique(targets[n][active[n]])
            ]
            self.waiting[warp] += groups[1:]
            self.run(warp, *groups[0])

    def set_barrier(self, rows: Any, number: int, lanes: Any, after: int) -> None:
        """BSSY: let the active lanes be the members of a convergence barrier."""
        self.members[number][rows] = mask_bits(lanes)
        self.address[rows] = after

    def synchronise(self, rows: Any, number: int, active: Any, lanes: Any, after: int) -> None:
        """BSYNC: let lanes wait for the other members of a convergence barrier."""
        bits, active_bits = mask_bits(lanes), mask_bits(active)
        full = (bits == self.members[number][rows] & self.alive[rows]) & (bits == active_bits)
        self.address[rows[full]], self.members[number][rows[full]] = after, 0
        for n in np.flatnonzero(~full).tolist():
            warp = int(rows[n])
            waiting = int(bits[n]) & int(self.members[number][warp])
            rest = int(active_bits[n]) & ~waiting
            if waiting:
                self.arrived[number][warp] |= u32(waiting)
                groups = self.continuations[warp, number]
                groups[after] = groups.get(after, 0) | waiting
            if rest:
                self.waiting[warp].append((after, rest))
            self.release(warp)
            self.resume(warp)

    def leave(self, rows: Any, number: int, lanes: Any, after: int) -> None:
        """BREAK: remove lanes from a convergence barrier."""
        self.members[number][rows] &= ~mask_bits(lanes)
        self.address[rows] = after
        for warp in rows.tolist():
            self.release(warp)

    def exit(self, rows: Any, active: Any, lanes: Any, after: int) -> None:
        """End lanes."""
        self.alive[rows] &= ~mask_bits(lanes)
        left = active & ~lanes
        self.lanes[rows] = left
        remain = left.any(1)
        self.address[rows[remain]] = after
        ended = lanes.any(1)
        for n in np.flatnonzero(ended).tolist():
            self.release(int(rows[n]))
            if not remain[n]:
                self.resume(int(rows[n]))
        self._release_blocks(rows[ended])

    def wait_for_block(self, rows: Any, active: Any, barrier: int, after: int, threads: int | None) -> None:
        """BAR: let groups wait for the block. threads: the number that the barrier awaits; None for all."""
        bits = mask_bits(active)
        self.barrier_of_warp[rows] = barrier
        for n, warp in enumerate(rows.tolist()):
            groups = self.at_barrier[warp]
            groups[after] = groups.get(after, 0) | int(bits[n])
            self.resume(warp)
        self._release_blocks(rows, threads)

    def reduce(self, rows: Any, active: Any, holds: Any, name: str) -> None:
        """BAR.RED: count the lanes of each block, and those whose predicate holds."""
        holds = holds & active
        for n, block in enumerate(self.state.block_of_warp[rows].tolist()):
            lanes, holding, _ = self.reductions.get(block, (0, 0, ""))
            self.reductions[block] = (lanes + int(active[n].sum()), holding + int(holds[n].sum()), name)

    def _release_blocks(self, rows: Any, threads: int | None = None) -> None:
        """Let the warps of blocks continue whose warps have all arrived or exited."""
        size = self.state.warps_per_block
        for block in np.unique(self.state.block_of_warp[rows]).tolist():
            warps = np.arange(block * size, (block + 1) * size)
            status = self.status[warps]
            arrived = warps[status == AT_BARRIER]
            if threads is not None:
                arrived = arrived[self.barrier_of_warp[arrived] == self.barrier_of_warp[rows[0]]]
                if 32 * len(arrived) < threads:
                    continue
            elif not len(arrived) or (status == RUNNING).any():
                continue
            self._finish_reduction(block)
            for warp in arrived.tolist():
                self.waiting[warp] += self.at_barrier[warp].items()
                self.at_barrier[warp] = {}
                self.resume(warp)

    def _finish_reduction(self, block: int) -> None:
        if block in self.reductions:
            lanes, holding, name = self.reductions.pop(block)
            result = {"POPC": holding, "AND": 0xFFFFFFFF * (holding == lanes), "OR": 0xFFFFFFFF * (holding > 0)}
            self.state.barrier_results[block] = result[name]

    def gather(self, rows: Any, active: Any, needed: Any, after: int) -> None:
        """WARPSYNC: let lanes wait for others of their warp. needed: uint32[warps], bits of the awaited lanes."""
        bits = mask_bits(active)
        full = bits & needed == needed
        self.address[rows[full]] = after
        for n in np.flatnonzero(~full).tolist():
            warp, awaited = int(rows[n]), int(needed[n])
            arrived = self.gathered[warp].get(after, (0, 0))[0] | int(bits[n])
            if arrived & awaited == awaited:
                self.gathered[warp].pop(after, None)
                self.run(warp, after, arrived)
            else:
                self.gathered[warp][after] = (arrived, awaited)
                self.resume(warp)

    def set_aside(self, rows: Any, active: Any, after: int) -> None:
        """YIELD: set groups aside that are not all lanes of their warp."""
        self.address[rows] = after
        bits = mask_bits(active)
        for n, warp in enumerate(rows.tolist()):
            if int(bits[n]) == int(self.alive[warp]):
                continue
            groups = dict(self.yielded[warp])
            groups[after] = groups.get(after, 0) | int(bits[n])
            self.yielded[warp] = sorted(groups.items(), key=lambda group: group[0] == after)
            self.last_yield[warp] = after
            self.release(warp)
            self.resume(warp)
