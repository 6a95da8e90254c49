"""What lanes made of some accesses, in order, and the instructions that stand for one each: compiled loops over the warps' steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import native
from .alignment import END, NOT_PERFORMED, Block, align_loop
from .loop_entries import LoopMarks, is_loop_entry
from .source_statements import Statement

_ACCESS, _TURN, _TEST = 1, 2, 3
"""What a step is: an access, a turn of a loop that has some of them, the test of one."""

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LaneGroup:
    """Lanes of a warp that did the same in the source. sites: int32[n], of accesses, of tests of loops, and turns of these (-1 - site),
    one after the other. numbers: int64[n], of the accesses among the warp's, NOT_MADE for others."""

    mask: int
    sites: npt.NDArray[np.int32]
    numbers: Words


LaneGroupSteps = tuple[npt.NDArray[np.int32], Words, Words, npt.NDArray[np.uint32]]
"""Of lanes, one after the other, their sites and numbers, where those of each begin, and their masks."""
NodeInstructions = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""By node, its first instruction; by instruction, whether lanes may be switched off."""


def steps_of(lanes: Sequence[LaneGroup]) -> LaneGroupSteps:
    firsts = np.cumsum([0, *(len(one.sites) for one in lanes)])
    sites, numbers = np.concatenate([one.sites for one in lanes]), np.concatenate([one.numbers for one in lanes])
    return sites, numbers, firsts, np.array([one.mask for one in lanes], np.uint32)


def blocks_of(at_node: Mapping[int, Block], nodes: int) -> NodeInstructions:
    blocks = [at_node.get(node, ()) for node in range(nodes)]
    predicated = np.array([one.predicated for block in blocks for one in block], np.int32)
    return np.cumsum([0, *map(len, blocks)]).astype(np.int32), predicated


@st.device
def _make(
    sites: Global[i32], numbers: Global[i64], first: i64, past: i64, roles: Global[i32], which: Global[i32], bias: i64,
    members: Global[i32], starts: Global[i32], loops: i64, accesses: i64, once: i64, places: Global[i64], tested: Global[i32],
    made: Global[i64],
) -> i64:  # fmt: skip
    """How many accesses lanes made, in `made`: NOT_MADE where a turn of a loop had room for one, END where they left the loop.

    roles, which: by site, counted from -`bias`, what a step is, and the number of its access or loop. members: the accesses of each
    loop, from `starts` on. once: how many accesses, the first ones, are in no loop. places, tested: by access, where there is room for
    it, and by loop, whether its test came last; to work with."""
    count = i64(0)
    for n in range(accesses):
        places[n] = i64(-1)
    for n in range(loops):
        tested[n] = i32(0)
    for n in range(once):
        places[n] = count
        made[count] = i64(NOT_PERFORMED)
        count += 1
    for n in range(first, past):
        at, role, one = i64(sites[n]) + bias, i64(0), i64(0)
        if at >= 0 and at < 2 * bias:  # those beyond all that are known here are no matter
            role, one = i64(roles[at]), i64(which[at])
        if role == _TURN:
            tested[one] = i32(0)
            for k in range(i64(starts[one]), i64(starts[one + 1])):
                places[i64(members[k])] = count
                made[count] = i64(NOT_PERFORMED)
                count += 1
        elif role == _TEST:
            if tested[one] != 0:
                made[count] = i64(END)
                count += 1
            tested[one] = i32(1)
        elif role == _ACCESS:
            place = places[one]
            if place >= 0 and made[place] == NOT_PERFORMED:
                made[place] = numbers[n]
            else:
                made[count] = numbers[n]
                count += 1
    return count


@native
def _made(
    sites: Global[i32], numbers: Global[i64], count: i64, roles: Global[i32], which: Global[i32], bias: i64, members: Global[i32],
    starts: Global[i32], loops: i64, accesses: i64, once: i64, places: Global[i64], tested: Global[i32], made: Global[i64],
) -> i64:  # fmt: skip
    return _make(
        sites, numbers, 0, count, roles, which, bias, members, starts, loops, accesses, once, places, tested, made
    )


@native
def _stand(
    visited: Global[i32], by: Global[u32], visits: i64, of_node: Global[i32], predicated: Global[i32], entries: Global[i32],
    headers: Global[i64], bodies: Global[i64], sites: Global[i32], numbers: Global[i64], firsts: Global[i64], masks: Global[u32],
    groups: i64, roles: Global[i32], which: Global[i32], bias: i64,
    members: Global[i32], starts: Global[i32], loops: i64, accesses: i64, once: i64, places: Global[i64], tested: Global[i32],
    made: Global[i64], widths: Global[i32], off: Global[i32], begun: Global[i32], row: Global[i64], stood: Global[i64],
    rows: Global[i64], fits: Global[bool],
) -> None:  # fmt: skip
    """rows: int64[visits and their instructions, 32], the access of each lane. of_node: by node, its first instruction among `predicated`.
    entries, headers, bodies: of the loop (`begun.LoopMarks`). firsts: where the steps of each group of lanes begin. widths, off,
    begun, row,
    stood: to work with. fits: whether a group's accesses are laid
    beside instructions in order."""
    for g in range(groups):
        count = _make(
            sites, numbers, firsts[g], firsts[g + 1], roles, which, bias, members, starts, loops, accesses, once, places, tested, made
        )  # fmt: skip
        flat, at, before, anew = i64(0), i64(0), i64(-1), False
        for n in range(visits):
            node = i64(visited[n])
            here = i64(of_node[node + 1]) - i64(of_node[node])
            if (by[n] & masks[g]) != 0:
                anew = anew or is_loop_entry(node, before, entries, headers, bodies)
                before = node
                for k in range(here):
                    off[flat] = predicated[i64(of_node[node]) + k]
                    widths[flat] = i32(1)
                    begun[flat] = i32(anew)
                    row[flat] = at + k
                    anew = False
                    flat += 1
            at += here
        fits[g] = align_loop(made, count, widths, off, begun, flat, stood)
        if fits[g]:
            for k in range(flat):
                if stood[k] >= 0:
                    for lane in range(i64(32)):
                        if (i64(masks[g]) >> lane & 1) != 0:
                            rows[32 * row[k] + lane] = stood[k]


def shared_branch_accesses(statements: Sequence[Statement], chosen: Mapping[int, tuple[int, str]]) -> dict[int, int]:
    """By access in one arm of a branch, the one of the other arm that stands where it does: one instruction may stand for both, as lanes
    make but one of them; and for those of branches that are an arm of another. chosen: by statement, the branch and the arm
    (`source.Source`)."""
    arms: dict[tuple[int, str], list[int]] = defaultdict(list)
    for one in statements:
        if one.number in chosen:
            arms[chosen[one.number]].append(one.number)
    found, left = dict[int, int](), {branch for branch, _ in arms}
    while left:  # inner ones first
        branch = max(left)
        left.remove(branch)
        pairs = list(zip(arms[branch, "else"], arms[branch, "then"], strict=False))
        found |= pairs
        if pairs and branch in chosen:
            arms[chosen[branch]] = sorted([*arms[chosen[branch]], *(mine for _, mine in pairs)])
            left.add(chosen[branch][0])
    for its in sorted(found):  # those of inner branches stand for that of the outer one
        found[its] = found.get(found[its], found[its])
    return found


class AccessReplay:
    """Tells what lanes made of some accesses. shared: by access, another one that has the same room in a turn of a loop."""

    def __init__(self, statements: Sequence[Statement], shared: Mapping[int, int] = MappingProxyType({})) -> None:
        mine = [one for one in statements if one.number not in shared]
        alone = [one for one in mine if one.context.loop is None]
        others = [one for one in mine if one.context.loop is not None]
        of_loop: dict[int, list[int]] = defaultdict(list)
        for n, one in enumerate(others, len(alone)):
            if one.context.loop is not None and one.context.arm != "test":
                of_loop[one.context.loop.site].append(n)
        named = [one.number for one in (*alone, *others)]
        bias = max([*named, *shared, *of_loop]) + 2
        roles, which = np.zeros(2 * bias, np.int32), np.zeros(2 * bias, np.int32)
        for n, loop in enumerate(of_loop):
            roles[[bias + loop, bias - 1 - loop]], which[[bias + loop, bias - 1 - loop]] = (_TEST, _TURN), n
        for n, number in enumerate(named):
            roles[bias + number], which[bias + number] = _ACCESS, n
        for number, other in shared.items():
            roles[bias + number], which[bias + number] = _ACCESS, which[bias + other]
        members = np.array([n for each in of_loop.values() for n in each], np.int32)
        starts = np.cumsum([0, *map(len, of_loop.values())]).astype(np.int32)
        places, tested = np.zeros(len(named), np.int64), np.zeros(len(of_loop), np.int32)
        self._most = max([1, *map(len, of_loop.values())])
        self._given = (roles, which, bias, members, starts, len(of_loop), len(named), len(alone), places, tested)
        self._alone = len(alone)

    def _room(self, steps: int) -> Words:
        """For what so many steps make."""
        return np.empty(self._alone + self._most * steps, np.int64)

    def of(self, lanes: LaneGroup) -> list[int]:
        """The accesses that lanes made, in order; NOT_MADE where a turn of a loop had room for one, END where they left the loop."""
        made = self._room(len(lanes.sites))
        count = _made(lanes.sites, lanes.numbers, len(lanes.sites), *self._given, made)
        found: list[int] = made[:count].tolist()
        return found

    def stand(
        self, visited: npt.NDArray[np.int32], by: npt.NDArray[np.uint32], blocks: NodeInstructions, marks: LoopMarks,
        lanes: Sequence[LaneGroup], steps: LaneGroupSteps,
    ) -> tuple[Words, list[LaneGroup]]:  # fmt: skip
        """int64[n, 32], by instruction that a warp comes to, in order, the accesses of its lanes; and the lanes of which this is not known,
        as what they made does not fit the instructions one for one, in order. visited, by: nodes and the lanes that come there. marks: of
        the loop that all accesses lie in. steps: of the lanes."""
        of_node, predicated = blocks
        instructions = int((of_node[visited + 1] - of_node[visited]).sum())
        rows, fits = np.full((instructions, 32), NOT_PERFORMED, np.int64), np.zeros(len(lanes), np.bool_)
        work = [np.empty(instructions, np.int32) for _ in range(3)]
        _stand(
            visited, by, len(visited), of_node, predicated, *marks, *steps, len(lanes), *self._given,
            self._room(int(np.diff(steps[2]).max(initial=0))), *work, np.empty(instructions, np.int64),
            np.empty(instructions, np.int64), rows.reshape(-1), fits,
        )  # fmt: skip
        return rows, [one for one, fit in zip(lanes, fits.tolist(), strict=True) if not fit]
