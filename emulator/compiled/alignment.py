"""Alignment of a lane's instructions with its source accesses, both in program order.

An instruction of k times the access width matches k accesses. A predicated one may match a slot without an access: each
loop iteration has a slot per site, performed or not, and excess predicated instructions after the last iteration are
off. Where instructions of several sites share a block, offsets from common address registers identify the site.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, NamedTuple

import numpy as np

from .. import language as st
from ..language.hints import Global, i32, i64
from ..native import fixed, native, record
from .sequence_alignment import LOOP_EXIT, NOT_PERFORMED, align_sequence

MAX_ASSIGNMENTS, MAX_CHOICES = 400, 256
"""Complete assignments of sites tried per lane group, and assignments tried per block."""
_ADDRESS = re.compile(r"\[([^\[\]]*?)(?:\+?(-?0x[0-9a-f]+))?\]$")
_WIDEST = 16
"""Maximal bytes of an access."""
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


def align_visits(
    sequence: AccessSequence, visited: Sequence[Visit], entries: Collection[int] = ()
) -> list[Accesses] | None:
    """Return the accesses of each visit, none if predicated off; None if they do not fit. entries: visits before which
    lanes enter the loop."""
    accesses = np.array([one.accesses for one in visited], np.int32)
    predicated = np.array([one.predicated for one in visited], np.int32)
    entry_flags = np.zeros(len(visited), np.int32)
    entry_flags[list(entries)] = 1
    matched, visits = np.empty(int(accesses.sum()), np.int64), (accesses, predicated, entry_flags)
    if not align_sequence(np.array(sequence, np.int64), len(sequence), visits, len(visited), matched):
        return None
    following = iter(matched.tolist())
    groups = [tuple(islice(following, one.accesses)) for one in visited]
    return [() if NOT_PERFORMED in mine else mine for mine in groups]


def arrange_by_address(
    block: Block, matched: Sequence[Accesses], size: int, address: Callable[[int], int]
) -> list[Accesses] | None:
    """Permute accesses within a block so that instructions with common address registers match their offsets; None if
    impossible."""
    active = [one for one, accesses in zip(block, matched, strict=True) if accesses]
    by_address = defaultdict[int, list[int]](list)
    for number in (number for accesses in matched for number in accesses):
        by_address[address(number)].append(number)
    result: dict[int, Accesses] = {}
    keys = _by_key(active).values()
    for same_key in sorted(keys, key=lambda same_key: -sum(one.accesses for one in same_key)):
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


# ------------------------------------------------------------------ several sites
@dataclass(frozen=True)
class SiteAccesses:
    """Accesses of one site by lanes. elidable: whether the compiler may drop some (a load of a known value)."""

    sequence: AccessSequence
    elidable: bool


class _Keys(NamedTuple):
    """Keys of the blocks in `keys`, from `groups`; the visits of each, from `visits`, with their accesses."""

    groups: Global[i32]
    keys: Global[i32]
    visits: Global[i32]
    accesses: Global[i32]
    predicated: Global[i32]
    blocks: i64


class _Sequences(NamedTuple):
    """Access sequences of all sites, from `starts`."""

    sequences: Global[i64]
    starts: Global[i64]


@st.device
def _follow_visits(k: _Keys, group: i64, s: _Sequences, site: i64, position: i64) -> i64:
    """Return the position in a site's sequence after the visits of a key; -1 if the accesses do not fit."""
    at, end = s.starts[site] + position, s.starts[site + 1]
    for n in range(i64(k.visits[group]), i64(k.visits[group + 1])):
        while at < end and s.sequences[at] == LOOP_EXIT and k.predicated[n] == 0:
            at += 1
        if k.predicated[n] == 0 or (at < end and s.sequences[at] != LOOP_EXIT):
            if at + i64(k.accesses[n]) > end:
                return i64(-1)
            at += i64(k.accesses[n])
    return at - s.starts[site]


@native
def _next_unassigned(at: i64, k: _Keys, s: _Sequences, site_of: Global[i32], positions: Global[i64]) -> i64:
    """Return the next block with a key without a site, the number of blocks if there is none, -1 if the accesses do not
    fit. site_of: by key, -1 if unknown. positions: by site, advanced in place."""
    for block in range(at, k.blocks):
        for n in range(i64(k.groups[block]), i64(k.groups[block + 1])):
            if site_of[i64(k.keys[n])] < 0:
                return i64(block)
        for n in range(i64(k.groups[block]), i64(k.groups[block + 1])):
            site = i64(site_of[i64(k.keys[n])])
            position = _follow_visits(k, n, s, site, positions[site])
            if position < 0:
                return i64(-1)
            positions[site] = position
    return k.blocks


class SiteAssigner:
    """Backtracking search for the source site of each address key. address: bytes by access."""

    def __init__(self, sites: Sequence[SiteAccesses], size: int, address: Callable[[int], int]) -> None:
        self.sites, self.size, self.address = sites, size, address
        self.performed = [performed(site.sequence) for site in sites]
        sequences: Any = fixed(
            np.array([number for site in sites for number in site.sequence], np.int64),
            np.cumsum([0, *(len(site.sequence) for site in sites)]),
        )
        self._sequences = _Sequences(*sequences)
        self.visited: Sequence[Block] = ()
        self.blocks: list[dict[Key, list[Visit]]] = []
        self.assignments = 0
        self.best: tuple[float, dict[Key, int]] | None = None
        self._trial_results: dict[tuple[int, Key, int, int], tuple[int, bool, bool]] = {}

    def assign(self, visited: Sequence[Block], assigned: Mapping[Key, int]) -> dict[Key, int] | None:
        """Return the best assignment, or None. known: assignments from other lanes."""
        self.assignments, self.best, self.visited = 0, None, visited
        self._trial_results = {}
        self.blocks = [_by_key(block) for block in visited]
        groups = [(key, each) for block in self.blocks for key, each in block.items()]
        self._numbers = {key: n for n, key in enumerate(dict.fromkeys(key for key, _ in groups))}
        visits = [one for _, each in groups for one in each]
        rows = (
            np.cumsum([0, *map(len, self.blocks)]),
            np.array([self._numbers[key] for key, _ in groups]),
            np.cumsum([0, *(len(each) for _, each in groups)]),
            np.array([one.accesses for one in visits]),
            np.array([one.predicated for one in visits]),
        )
        arrays: Any = fixed(*(row.astype(np.int32) for row in rows))
        self._keys = record(_Keys, *arrays, len(self.blocks))
        self._search(0, [0] * len(self.sites), dict(assigned), 0.0)
        return None if self.best is None else self.best[1]

    def _search(self, at: int, start_positions: list[int], assigned: dict[Key, int], cost: float) -> None:
        """Extend an assignment from block `at`. past: position of the lanes in each site's accesses."""
        site_of, positions = np.full(len(self._numbers), -1, np.int32), np.array(start_positions, np.int64)
        for key in self._numbers.keys() & assigned.keys():
            site_of[self._numbers[key]] = assigned[key]
        block = _next_unassigned(at, self._keys, self._sequences, site_of, positions)
        if block < 0:
            return None
        start_positions = positions.tolist()
        if block < len(self.blocks):
            return self._choose(block, start_positions, assigned, cost)
        self.assignments += 1
        for n, site in zip(start_positions, self.sites, strict=True):
            left = any(number >= 0 for number in site.sequence[n:])
            if left and not site.elidable:
                return None
            cost += left
        if (self.best is None or cost < self.best[0]) and self.accesses_of_visits(self.visited, assigned) is not None:
            self.best = cost, assigned
        return None

    def _choose(self, at: int, past: list[int], assigned: dict[Key, int], cost: float) -> None:
        """Try sites for the keys of a block: first those with consistent offsets, then those used with the same
        registers before, then in source order."""
        block = self.blocks[at]
        unassigned = [key for key in block if key not in assigned]
        site_of_registers = {registers: site for (_, registers), site in assigned.items()}
        if len(self.sites) ** len(unassigned) > MAX_CHOICES:
            return
        candidates = []
        for chosen in product(range(len(self.sites)), repeat=len(unassigned)):
            trial = assigned | dict(zip(unassigned, chosen, strict=True))
            positions, inconsistent, fit = list(past), 0, True
            for key in block:
                positions[trial[key]], fits, is_consistent = self._trial(at, key, trial[key], positions[trial[key]])
                inconsistent, fit = inconsistent + (not is_consistent), fit and fits
            register_changes = sum(
                site_of_registers.get(key[1], one) != one for key, one in zip(unassigned, chosen, strict=True)
            )
            order = sum(one >= another for one, another in combinations(chosen, 2))
            if fit:
                candidates.append((inconsistent, register_changes, order, trial))
        for inconsistent, _, _, trial in sorted(candidates, key=lambda candidate: candidate[:3]):
            if self.assignments >= MAX_ASSIGNMENTS or (self.best is not None and self.best[0] <= cost + inconsistent):
                return
            self._search(at, past, trial, cost + inconsistent)

    def _trial(self, at: int, key: Key, site: int, past: int) -> tuple[int, bool, bool]:
        """Return the position after a key's visits if they match a site, whether it has enough accesses, and whether
        offsets agree."""
        key_of_trial = at, key, site, past
        if key_of_trial not in self._trial_results:
            visits = self.blocks[at][key]
            behind, numbers = _consume(self.sites[site].sequence, past, visits)
            unpredicated = sorted((one for one in visits if not one.predicated), key=lambda one: one.offset)
            own_numbers = (numbers or [])[: sum(one.accesses for one in unpredicated)]
            is_consistent = (
                not unpredicated or _by_address(unpredicated, own_numbers, self.size, self.address) is not None
            )
            self._trial_results[key_of_trial] = behind, numbers is not None, is_consistent
        return self._trial_results[key_of_trial]

    def accesses_of_visits(self, visited: Sequence[Block], assigned: Mapping[Key, int]) -> list[list[Accesses]] | None:
        """Return, by block, the accesses of each visit, none if predicated off; None if they do not fit."""
        by_site: dict[int, list[tuple[int, Visit]]] = defaultdict(list)
        for n, block in enumerate(visited):
            for visit in block:
                if visit.key not in assigned:
                    return None
                by_site[assigned[visit.key]].append((n, visit))
        matched: dict[tuple[int, int], Accesses] = {}
        deferred = list[int]()
        for site, several in by_site.items():
            aligned = align_visits(self.sites[site].sequence, [visit for _, visit in several])
            if aligned is None and self.sites[site].elidable:
                deferred.append(site)
            elif aligned is None:
                return None
            else:
                matched |= {
                    (n, visit.instruction): numbers for (n, visit), numbers in zip(several, aligned, strict=True)
                }
        for site in deferred:
            if not matched or not self._follow_others(by_site[site], self.performed[site], matched):
                return None
        for n, block in enumerate(visited):
            for same_key in _by_key(block).values():
                if len(same_key) == 1:
                    continue  # a single instruction
                numbers = [number for visit in same_key for number in matched[n, visit.instruction]]
                if ordered := _by_address(same_key, numbers, self.size, self.address):
                    matched |= {(n, instruction): aligned for instruction, aligned in ordered.items()}
        return [[matched[n, visit.instruction] for visit in block] for n, block in enumerate(visited)]

    def _follow_others(
        self,
        visited: Sequence[tuple[int, Visit]],
        performed_numbers: Sequence[int],
        matched: dict[tuple[int, int], Accesses],
    ) -> bool:
        """Match elided loads with the accesses that follow those matched by other sites."""
        other_visits = sorted((n, max(numbers)) for (n, _), numbers in matched.items() if numbers)
        for n, visit in visited:
            if visit.accesses > 1 or visit.predicated:
                return False
            before = bisect_right(other_visits, (n, -1)) - 1
            last = other_visits[before][1] if before >= 0 else -1
            following = bisect_right(performed_numbers, last)
            if following == len(performed_numbers):
                return False
            matched[n, visit.instruction] = (performed_numbers[following],)
        return True


def _consume(sequence: AccessSequence, at: int, visited: Sequence[Visit]) -> tuple[int, list[int] | None]:
    """Return the position after some visits and their accesses, None if there are too few. Predicated visits after the
    last iteration are off."""
    numbers = list[int]()
    for visit in visited:
        while at < len(sequence) and sequence[at] == LOOP_EXIT and not visit.predicated:
            at += 1
        if visit.predicated and (at == len(sequence) or sequence[at] == LOOP_EXIT):
            continue
        consumed = sequence[at : at + visit.accesses]
        if len(consumed) < visit.accesses:
            return at, None
        at += visit.accesses
        numbers += [number for number in consumed if number >= 0]
    return at, numbers


def _by_key(block: Block) -> dict[Key, list[Visit]]:
    """Group the visits of a block by key."""
    result: dict[Key, list[Visit]] = defaultdict(list)
    for visit in block:
        result[visit.key].append(visit)
    return result


def _by_address(
    visited: Sequence[Visit], numbers: Sequence[int], size: int, address: Callable[[int], int]
) -> dict[int, Accesses] | None:
    """Return the accesses of a key's instructions by address, or None if the offsets disagree."""
    ordered, offsets = _offsets(visited, size)
    ordered_numbers = sorted(numbers, key=address)
    if len(ordered_numbers) != len(offsets) or not ordered_numbers:
        return None
    first = address(ordered_numbers[0])
    if any(address(number) - offset != first for number, offset in zip(ordered_numbers, offsets, strict=True)):
        return None
    return _distribute(ordered, ordered_numbers)
