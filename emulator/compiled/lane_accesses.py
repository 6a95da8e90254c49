"""Replay of each lane's memory accesses in program order, and their assignment to SASS instructions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import native, record
from .alignment import Block
from .loop_entries import LoopMarks, is_loop_entry
from .sequence_alignment import LOOP_EXIT, NOT_PERFORMED, VisitedAccesses, align_loop
from .source_statements import Statement

_ACCESS, _ITERATION, _TEST = 1, 2, 3
"""Roles of a step: an access; an iteration of a loop with accesses; the test of such a loop."""

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LaneGroup:
    """Lanes of a warp with equal event sequences. sites: int32[n], of accesses, loop tests, and iterations (-1 - site),
    in order. numbers: int64[n], of accesses within the warp, else NOT_PERFORMED."""

    mask: int
    sites: npt.NDArray[np.int32]
    numbers: Words


NodeInstructions = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""First instruction by node; whether it is predicated, by instruction."""


def steps_of(lanes: Sequence[LaneGroup]) -> GroupSteps:
    """Return the concatenated steps of lane groups."""
    firsts = np.cumsum([0, *(len(one.sites) for one in lanes)])
    sites, numbers = np.concatenate([one.sites for one in lanes]), np.concatenate([one.numbers for one in lanes])
    arrays: Any = sites, numbers, firsts, np.array([one.mask for one in lanes], np.uint32)
    return record(GroupSteps, *arrays, len(lanes))


def blocks_of(at_node: Mapping[int, Block], nodes: int) -> NodeInstructions:
    blocks = [at_node.get(node, ()) for node in range(nodes)]
    predicated = np.array([one.predicated for block in blocks for one in block], np.int32)
    return np.cumsum([0, *map(len, blocks)]).astype(np.int32), predicated


class Roles(NamedTuple):
    """roles, which: by site + `bias`, role and index of its access or loop. members: accesses of each loop, from `starts`.
    outside_loops: number of accesses in no loop, the first ones. slots, last_was_test: buffers, by access and by loop."""

    roles: Global[i32]
    which: Global[i32]
    members: Global[i32]
    starts: Global[i32]
    slots: Global[i64]
    last_was_test: Global[i32]
    bias: i64
    loops: i64
    accesses: i64
    outside_loops: i64


class GroupSteps(NamedTuple):
    """Concatenated sites and numbers of lane groups, from `firsts`, and the masks."""

    sites: Global[i32]
    numbers: Global[i64]
    firsts: Global[i64]
    masks: Global[u32]
    number: i64


class Visits(NamedTuple):
    """Nodes and lanes of a warp's visits. of_node: first instruction of a node in `predicated`."""

    nodes: Global[i32]
    masks: Global[u32]
    of_node: Global[i32]
    predicated: Global[i32]
    number: i64


class Buffers(NamedTuple):
    """visits: instructions of a group. row_of: number of each among those of the warp."""

    sequence: Global[i64]
    visits: VisitedAccesses
    matched: Global[i64]
    row_of: Global[i64]


@st.device
def _append_slot(slots: Global[i64], access: i64, sequence: Global[i64], count: i64) -> i64:
    """Append an empty slot of an access; return the length."""
    slots[access] = count
    sequence[count] = i64(NOT_PERFORMED)
    return count + 1


@st.device
def _replay_accesses(steps: GroupSteps, group: i64, r: Roles, sequence: Global[i64]) -> i64:
    """Write a group's access sequence; return its length. NOT_PERFORMED: an empty slot of an iteration; LOOP_EXIT: end
    of a loop."""
    count = i64(0)
    for n in range(r.accesses):
        r.slots[n] = i64(-1)
    for n in range(r.loops):
        r.last_was_test[n] = i32(0)
    for n in range(r.outside_loops):
        count = _append_slot(r.slots, n, sequence, count)
    for n in range(steps.firsts[group], steps.firsts[group + 1]):
        at, role, index = i64(steps.sites[n]) + r.bias, i64(0), i64(0)
        if at >= 0 and at < 2 * r.bias:  # ignore unknown sites
            role, index = i64(r.roles[at]), i64(r.which[at])
        if role == _ITERATION:
            r.last_was_test[index] = i32(0)
            for k in range(i64(r.starts[index]), i64(r.starts[index + 1])):
                count = _append_slot(r.slots, i64(r.members[k]), sequence, count)
        elif role == _TEST:
            if r.last_was_test[index] != 0:
                sequence[count] = i64(LOOP_EXIT)
                count += 1
            r.last_was_test[index] = i32(1)
        elif role == _ACCESS:
            place = r.slots[index]
            if place >= 0 and sequence[place] == NOT_PERFORMED:
                sequence[place] = steps.numbers[n]
            else:
                sequence[count] = steps.numbers[n]
                count += 1
    return count


@native
def _replay_group(steps: GroupSteps, r: Roles, sequence: Global[i64]) -> i64:
    return _replay_accesses(steps, 0, r, sequence)


@st.device
def _collect_instructions(v: Visits, mask: u32, marks: LoopMarks, b: Buffers) -> i64:
    """Collect the instructions that lanes visit; return their number."""
    count, at, before, entered = i64(0), i64(0), i64(-1), False
    for n in range(v.number):
        node = i64(v.nodes[n])
        instructions = i64(v.of_node[node + 1]) - i64(v.of_node[node])
        if (v.masks[n] & mask) != 0:
            entered = entered or is_loop_entry(node, before, marks)
            before = node
            for k in range(instructions):
                b.visits.predicated[count] = v.predicated[i64(v.of_node[node]) + k]
                b.visits.widths[count] = i32(1)
                b.visits.entries[count] = i32(entered)
                b.row_of[count] = at + k
                entered = False
                count += 1
        at += instructions
    return count


@native
def _attribute_native(
    v: Visits, marks: LoopMarks, steps: GroupSteps, r: Roles, b: Buffers, rows: Global[i64], fits: Global[bool]
) -> None:
    """Write the access of each lane for each visited instruction, int64[instruction, 32]. fits: by group, whether its
    accesses align one to one."""
    for g in range(steps.number):
        length = _replay_accesses(steps, g, r, b.sequence)
        count = _collect_instructions(v, steps.masks[g], marks, b)
        fits[g] = align_loop(b.sequence, length, b.visits, count, b.matched)
        if fits[g]:
            for k in range(count):
                if b.matched[k] >= 0:
                    for lane in range(i64(32)):
                        if (i64(steps.masks[g]) >> lane & 1) != 0:
                            rows[32 * b.row_of[k] + lane] = b.matched[k]


def shared_branch_accesses(statements: Sequence[Statement], chosen: Mapping[int, tuple[int, str]]) -> dict[int, int]:
    """Return, by access in one arm of a branch, its counterpart in the other arm: one instruction may implement both.
    deciding_arm: as in `SourceStatements`."""
    arms: dict[tuple[int, str], list[int]] = defaultdict(list)
    for statement in statements:
        if statement.number in chosen:
            arms[chosen[statement.number]].append(statement.number)
    shared, pending = dict[int, int](), {branch for branch, _ in arms}
    while pending:  # inner branches first
        branch = max(pending)
        pending.remove(branch)
        pairs = list(zip(arms[branch, "else"], arms[branch, "then"], strict=False))
        shared |= pairs
        if pairs and branch in chosen:
            arms[chosen[branch]] = sorted([*arms[chosen[branch]], *(own for _, own in pairs)])
            pending.add(chosen[branch][0])
    for other in sorted(shared):  # resolve chains to the outermost branch
        shared[other] = shared.get(shared[other], shared[other])
    return shared


class AccessReplay:
    """Replay of some accesses. shared: by access, another one with the same slot."""

    def __init__(self, statements: Sequence[Statement], shared: Mapping[int, int] = MappingProxyType({})) -> None:
        own = [statement for statement in statements if statement.number not in shared]
        outside_loops = [statement for statement in own if statement.context.loop is None]
        in_loops = [statement for statement in own if statement.context.loop is not None]
        of_loop: dict[int, list[int]] = defaultdict(list)
        for n, statement in enumerate(in_loops, len(outside_loops)):
            if statement.context.loop is not None and statement.context.arm != "test":
                of_loop[statement.context.loop.site].append(n)
        named = [statement.number for statement in (*outside_loops, *in_loops)]
        bias = max([*named, *shared, *of_loop]) + 2
        roles, which = np.zeros(2 * bias, np.int32), np.zeros(2 * bias, np.int32)
        for n, loop in enumerate(of_loop):
            roles[[bias + loop, bias - 1 - loop]], which[[bias + loop, bias - 1 - loop]] = (_TEST, _ITERATION), n
        for n, number in enumerate(named):
            roles[bias + number], which[bias + number] = _ACCESS, n
        for number, other in shared.items():
            roles[bias + number], which[bias + number] = _ACCESS, which[bias + other]
        members = np.array([n for members_of_loop in of_loop.values() for n in members_of_loop], np.int32)
        starts = np.cumsum([0, *map(len, of_loop.values())]).astype(np.int32)
        places, tested = np.zeros(len(named), np.int64), np.zeros(len(of_loop), np.int32)
        self._most = max([1, *map(len, of_loop.values())])
        tables: Any = roles, which, members, starts, places, tested
        self._roles = record(Roles, *tables, bias, len(of_loop), len(named), len(outside_loops))

    def _allocate(self, steps: int) -> Words:
        """Return a buffer for the sequence of so many steps."""
        return np.empty(self._roles.outside_loops + self._most * steps, np.int64)

    def replay(self, lanes: LaneGroup) -> list[int]:
        """Return a group's access sequence, with NOT_PERFORMED and LOOP_EXIT."""
        sequence = self._allocate(len(lanes.sites))
        count = _replay_group(steps_of([lanes]), self._roles, sequence)
        result: list[int] = sequence[:count].tolist()
        return result

    def attribute(
        self, visited: npt.NDArray[np.int32], masks: npt.NDArray[np.uint32], blocks: NodeInstructions, loop_marks: LoopMarks,
        lanes: Sequence[LaneGroup], steps: GroupSteps,
    ) -> tuple[Words, list[LaneGroup]]:  # fmt: skip
        """Return int64[n, 32], the lanes' accesses by visited instruction, and the groups that do not align one to one.

        visited, masks: nodes and lanes of a warp's visits. loop_marks: of the common loop. steps: of the groups.
        """
        of_node, predicated = blocks
        instructions = int((of_node[visited + 1] - of_node[visited]).sum())
        rows, fits = np.full((instructions, 32), NOT_PERFORMED, np.int64), np.zeros(len(lanes), np.bool_)
        visits: Any = visited, masks, of_node, predicated, len(visited)
        sequence = self._allocate(int(np.diff(np.asarray(steps.firsts)).max(initial=0)))
        numbers: Any = (np.empty(instructions, np.int32) for _ in range(3))
        buffers: Any = sequence, VisitedAccesses(*numbers), *(np.empty(instructions, np.int64) for _ in range(2))
        _attribute_native(Visits(*visits), loop_marks, steps, self._roles, Buffers(*buffers), rows.reshape(-1), fits)
        return rows, [one for one, fit in zip(lanes, fits.tolist(), strict=True) if not fit]
