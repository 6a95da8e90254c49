"""Replay of each lane's memory accesses in program order, and their alignment with its executions of SASS instructions.

An instruction of k times the access width matches k accesses. A predicated one may match a slot without an access: each
loop iteration has a slot per site, performed or not, and excess predicated instructions after the last iteration are
off. Where instructions of several sites share a block, offsets from common address registers identify the accesses.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i32, i64, u32
from ..native import native
from .source_statements import Statement

NOT_PERFORMED, LOOP_EXIT = -1, -2
"""Markers in place of an access number: a slot without an access; the lane left the loop."""
_ACCESS, _ITERATION, _TEST = 1, 2, 3
"""Roles of a step: an access; an iteration of a loop with accesses; the test of such a loop."""
_ADDRESS = re.compile(r"\[([^\[\]]*?)(?:\+?(-?0x[0-9a-f]+))?\]$")
_WIDEST = 16
"""Maximal bytes of an access."""

Words = npt.NDArray[np.int64]
AccessSequence = Sequence[int]
"""Access numbers in order, with NOT_PERFORMED and LOOP_EXIT."""
Accesses = tuple[int, ...]
Key = tuple[int, str]
"""A block, and the address registers of some of its instructions."""


@dataclass(frozen=True)
class Visit:
    """An instruction executed by lanes. accesses: matched by it. key, offset: of its address."""

    instruction: int
    accesses: int
    predicated: bool
    key: Key
    offset: int


Block = Sequence[Visit]


def address_of(text: str) -> tuple[str, int]:
    """Return the registers of an instruction's last address operand, and its offset in bytes."""
    operand = next((word for word in reversed(text.split(", ")) if word.endswith("]")), "[]")
    match = _ADDRESS.search(operand)
    return (match[1], int(match[2] or "0", 16)) if match else (operand, 0)


def performed(sequence: AccessSequence) -> list[int]:
    """Return the performed accesses of a sequence."""
    return [number for number in sequence if number >= 0]


@st.device
def align(
    sequence: Global[i64], count: i64, accesses: Global[i32], predicated: Global[i32], visits: i64, matched: Global[i64]
) -> bool:
    """Match visits with a sequence in order; return whether they fit. Writes the accesses of each visit to `matched`,
    NOT_PERFORMED if predicated off."""
    required, performed_count, slots, has_predicate = i64(0), i64(0), i64(0), False
    for n in range(visits):
        required += i64(accesses[n])
        has_predicate = has_predicate or predicated[n] != 0
    for n in range(count):
        performed_count += i64(sequence[n] >= 0)
        slots += i64(sequence[n] != LOOP_EXIT)
    exact = required == performed_count
    if not exact and not has_predicate:
        return False
    spare = required - (performed_count if exact else slots)  # predicated off after the last iteration
    at, out = i64(0), i64(0)
    for n in range(visits):
        width = i64(accesses[n])
        while at < count and (
            sequence[at] < 0 if exact else sequence[at] == LOOP_EXIT and not (predicated[n] != 0 and spare >= width)
        ):
            at += 1
        if at == count or sequence[at] == LOOP_EXIT:
            spare -= width
            if predicated[n] == 0:
                return False
            for k in range(width):
                matched[out + k] = i64(NOT_PERFORMED)
        else:
            skipped, filled = i64(0), i64(0)
            while filled < width:
                if at < count and exact and sequence[at] < 0:
                    at += 1
                elif at == count or sequence[at] == LOOP_EXIT:
                    return False
                else:
                    skipped += i64(sequence[at] == NOT_PERFORMED)
                    matched[out + filled] = sequence[at]
                    filled += 1
                    at += 1
            if skipped != 0 and (skipped < width or predicated[n] == 0):
                return False
        out += width
    while at < count:
        if sequence[at] >= 0:
            return False
        at += 1
    return True


@native
def _align(
    sequence: Global[i64], count: i64, accesses: Global[i32], predicated: Global[i32], visits: i64, matched: Global[i64]
) -> bool:  # fmt: skip
    return align(sequence, count, accesses, predicated, visits, matched)


def align_visits(sequence: AccessSequence, visited: Sequence[Visit]) -> list[Accesses] | None:
    """Return the accesses of each visit, none if predicated off; None if they do not fit."""
    accesses = np.array([one.accesses for one in visited], np.int32)
    predicated = np.array([one.predicated for one in visited], np.int32)
    matched = np.empty(int(accesses.sum()), np.int64)
    if not _align(np.array(sequence, np.int64), len(sequence), accesses, predicated, len(visited), matched):
        return None
    following = iter(matched.tolist())
    groups = [tuple(islice(following, one.accesses)) for one in visited]
    return [() if NOT_PERFORMED in mine else mine for mine in groups]


def arrange_by_address(
    block: Block, matched: Sequence[Accesses], size: int, address: Callable[[int], int]
) -> list[Accesses] | None:
    """Permute accesses within a block so that instructions with common address registers match their offsets; None if
    impossible."""
    by_key: dict[Key, list[Visit]] = defaultdict(list)
    for visit, accesses in zip(block, matched, strict=True):
        if accesses:
            by_key[visit.key].append(visit)
    by_address = defaultdict[int, list[int]](list)
    for number in (number for accesses in matched for number in accesses):
        by_address[address(number)].append(number)
    result: dict[int, Accesses] = {}
    for same_key in sorted(by_key.values(), key=lambda same_key: -sum(one.accesses for one in same_key)):
        ordered, offsets = _offsets(same_key, size)
        bytes_of_one = size * ordered[0].accesses
        for first in sorted(by_address, key=lambda at: at % bytes_of_one):  # aligned addresses first
            required = Counter(first + offset for offset in offsets)
            if all(len(by_address.get(at, ())) >= n for at, n in required.items()):
                break
        else:
            return None
        result |= _distribute(ordered, [by_address[first + offset].pop(0) for offset in offsets])
    return [result.get(one.instruction, ()) for one in block]


class ArrangementCache:
    """Memoized `arrange_by_address` for blocks with equal relative addresses."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._cache: dict[object, list[Accesses] | None] = {}

    def arrange(
        self, block: Block, matched: Sequence[Accesses], address: Callable[[int], int]
    ) -> list[Accesses] | None:
        """As `arrange_by_address`."""
        numbers = [number for accesses in matched for number in accesses]
        addresses = [address(number) for number in numbers]
        base = min(addresses, default=0)
        key = block[0].instruction, base % _WIDEST, *(each - base for each in addresses), *map(len, matched)
        if key not in self._cache:
            following = iter(range(len(numbers)))
            places = [tuple(islice(following, len(accesses))) for accesses in matched]
            self._cache[key] = arrange_by_address(block, places, self._size, addresses.__getitem__)
        arrangement = self._cache[key]
        return None if arrangement is None else [tuple([numbers[place] for place in places]) for places in arrangement]


def _offsets(visited: Sequence[Visit], size: int) -> tuple[list[Visit], list[int]]:
    """Return instructions of a key by offset, and the byte offset of each of their accesses."""
    ordered = sorted(visited, key=lambda one: one.offset)
    return ordered, [one.offset - ordered[0].offset + size * n for one in ordered for n in range(one.accesses)]


def _distribute(visited: Sequence[Visit], numbers: Sequence[int]) -> dict[int, Accesses]:
    """Assign accesses to instructions in order."""
    following = iter(numbers)
    return {one.instruction: tuple(next(following) for _ in range(one.accesses)) for one in visited}


@dataclass(frozen=True)
class LaneGroup:
    """Lanes of a warp with equal event sequences. sites: int32[n], of accesses, loop tests, and iterations (-1 - site),
    in order. numbers: int64[n], of accesses within the warp, else NOT_PERFORMED."""

    mask: int
    sites: npt.NDArray[np.int32]
    numbers: Words


LaneGroupSteps = tuple[npt.NDArray[np.int32], Words, Words, npt.NDArray[np.uint32]]
"""Concatenated sites and numbers of lane groups, their starts, and the masks."""
NodeInstructions = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""First instruction by node; whether it is predicated, by instruction."""


def steps_of(lanes: Sequence[LaneGroup]) -> LaneGroupSteps:
    firsts = np.cumsum([0, *(len(one.sites) for one in lanes)])
    sites, numbers = np.concatenate([one.sites for one in lanes]), np.concatenate([one.numbers for one in lanes])
    return sites, numbers, firsts, np.array([one.mask for one in lanes], np.uint32)


def blocks_of(at_node: Mapping[int, Block], nodes: int) -> NodeInstructions:
    blocks = [at_node.get(node, ()) for node in range(nodes)]
    predicated = np.array([one.predicated for block in blocks for one in block], np.int32)
    return np.cumsum([0, *map(len, blocks)]).astype(np.int32), predicated


@st.device
def _replay_accesses(
    sites: Global[i32], numbers: Global[i64], first: i64, past: i64, roles: Global[i32], which: Global[i32], bias: i64,
    members: Global[i32], starts: Global[i32], loops: i64, accesses: i64, outside_loops: i64, slots: Global[i64],
    last_was_test: Global[i32],
    sequence: Global[i64],
) -> i64:  # fmt: skip
    """Write a group's access sequence; return its length. NOT_PERFORMED: an empty slot of an iteration; LOOP_EXIT: end
    of a loop.

    roles, which: by site + `bias`, role and index of its access or loop. members: accesses of each loop, from `starts`.
    outside_loops: number of accesses in no loop, the first ones. slots, last_was_test: buffers, by access and by loop.
    """
    count = i64(0)
    for n in range(accesses):
        slots[n] = i64(-1)
    for n in range(loops):
        last_was_test[n] = i32(0)
    for n in range(outside_loops):
        slots[n] = count
        sequence[count] = i64(NOT_PERFORMED)
        count += 1
    for n in range(first, past):
        at, role, index = i64(sites[n]) + bias, i64(0), i64(0)
        if at >= 0 and at < 2 * bias:  # ignore unknown sites
            role, index = i64(roles[at]), i64(which[at])
        if role == _ITERATION:
            last_was_test[index] = i32(0)
            for k in range(i64(starts[index]), i64(starts[index + 1])):
                slots[i64(members[k])] = count
                sequence[count] = i64(NOT_PERFORMED)
                count += 1
        elif role == _TEST:
            if last_was_test[index] != 0:
                sequence[count] = i64(LOOP_EXIT)
                count += 1
            last_was_test[index] = i32(1)
        elif role == _ACCESS:
            place = slots[index]
            if place >= 0 and sequence[place] == NOT_PERFORMED:
                sequence[place] = numbers[n]
            else:
                sequence[count] = numbers[n]
                count += 1
    return count


@native
def _replay_accesses_native(
    sites: Global[i32], numbers: Global[i64], count: i64, roles: Global[i32], which: Global[i32], bias: i64, members: Global[i32],
    starts: Global[i32], loops: i64, accesses: i64, outside_loops: i64, slots: Global[i64], last_was_test: Global[i32],
    sequence: Global[i64],
) -> i64:  # fmt: skip
    return _replay_accesses(
        sites,
        numbers,
        0,
        count,
        roles,
        which,
        bias,
        members,
        starts,
        loops,
        accesses,
        outside_loops,
        slots,
        last_was_test,
        sequence,
    )


@native
def _attribute_native(
    visited: Global[i32], masks_of_visits: Global[u32], visits: i64, of_node: Global[i32], predicated: Global[i32],
    sites: Global[i32], numbers: Global[i64], firsts: Global[i64], masks: Global[u32],
    groups: i64, roles: Global[i32], which: Global[i32], bias: i64,
    members: Global[i32], starts: Global[i32], loops: i64, accesses: i64, outside_loops: i64, slots: Global[i64],
    last_was_test: Global[i32],
    sequence: Global[i64], widths: Global[i32], predicated_flags: Global[i32], row_of: Global[i64],
    matched: Global[i64],
    rows: Global[i64], fits: Global[bool],
) -> None:  # fmt: skip
    """Write the access of each lane for each visited instruction, int64[instruction, 32].

    of_node: first instruction of a node in `predicated`. firsts: steps of each group. fits: by group,
    whether its accesses align one to one.
    """
    for g in range(groups):
        count = _replay_accesses(
            sites, numbers, firsts[g], firsts[g + 1], roles, which, bias, members, starts, loops, accesses, outside_loops, slots,
            last_was_test, sequence
        )  # fmt: skip
        flat, at = i64(0), i64(0)
        for n in range(visits):
            node = i64(visited[n])
            instruction_count = i64(of_node[node + 1]) - i64(of_node[node])
            if (masks_of_visits[n] & masks[g]) != 0:
                for k in range(instruction_count):
                    predicated_flags[flat] = predicated[i64(of_node[node]) + k]
                    widths[flat] = i32(1)
                    row_of[flat] = at + k
                    flat += 1
            at += instruction_count
        fits[g] = align(sequence, count, widths, predicated_flags, flat, matched)
        if fits[g]:
            for k in range(flat):
                if matched[k] >= 0:
                    for lane in range(i64(32)):
                        if (i64(masks[g]) >> lane & 1) != 0:
                            rows[32 * row_of[k] + lane] = matched[k]


class AccessReplay:
    """Replay of some accesses."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        outside_loops = [statement for statement in statements if statement.context.loop is None]
        in_loops = [statement for statement in statements if statement.context.loop is not None]
        of_loop: dict[int, list[int]] = defaultdict(list)
        for n, statement in enumerate(in_loops, len(outside_loops)):
            if statement.context.loop is not None and statement.context.arm != "test":
                of_loop[statement.context.loop.site].append(n)
        named = [statement.number for statement in (*outside_loops, *in_loops)]
        bias = max([*named, *of_loop]) + 2
        roles, which = np.zeros(2 * bias, np.int32), np.zeros(2 * bias, np.int32)
        for n, loop in enumerate(of_loop):
            roles[[bias + loop, bias - 1 - loop]], which[[bias + loop, bias - 1 - loop]] = (_TEST, _ITERATION), n
        for n, number in enumerate(named):
            roles[bias + number], which[bias + number] = _ACCESS, n
        members = np.array([n for members_of_loop in of_loop.values() for n in members_of_loop], np.int32)
        starts = np.cumsum([0, *map(len, of_loop.values())]).astype(np.int32)
        places, tested = np.zeros(len(named), np.int64), np.zeros(len(of_loop), np.int32)
        self._most = max([1, *map(len, of_loop.values())])
        self._tables = (
            roles,
            which,
            bias,
            members,
            starts,
            len(of_loop),
            len(named),
            len(outside_loops),
            places,
            tested,
        )
        self._outside_loops = len(outside_loops)

    def _allocate(self, steps: int) -> Words:
        """Return a buffer for the sequence of so many steps."""
        return np.empty(self._outside_loops + self._most * steps, np.int64)

    def replay(self, lanes: LaneGroup) -> list[int]:
        """Return a group's access sequence, with NOT_PERFORMED and LOOP_EXIT."""
        sequence = self._allocate(len(lanes.sites))
        count = _replay_accesses_native(lanes.sites, lanes.numbers, len(lanes.sites), *self._tables, sequence)
        result: list[int] = sequence[:count].tolist()
        return result

    def attribute(
        self, visited: npt.NDArray[np.int32], masks: npt.NDArray[np.uint32], blocks: NodeInstructions,
        lanes: Sequence[LaneGroup], steps: LaneGroupSteps,
    ) -> tuple[Words, list[LaneGroup]]:  # fmt: skip
        """Return int64[n, 32], the lanes' accesses by visited instruction, and the groups that do not align one to one.

        visited, masks: nodes and lanes of a warp's visits. steps: of the groups.
        """
        of_node, predicated = blocks
        instructions = int((of_node[visited + 1] - of_node[visited]).sum())
        rows, fits = np.full((instructions, 32), NOT_PERFORMED, np.int64), np.zeros(len(lanes), np.bool_)
        work = [np.empty(instructions, np.int32) for _ in range(2)]
        _attribute_native(
            visited, masks, len(visited), of_node, predicated, *steps, len(lanes), *self._tables,
            self._allocate(int(np.diff(steps[2]).max(initial=0))), *work, np.empty(instructions, np.int64),
            np.empty(instructions, np.int64), rows.reshape(-1), fits,
        )  # fmt: skip
        return rows, [one for one, fit in zip(lanes, fits.tolist(), strict=True) if not fit]
