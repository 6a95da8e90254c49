"""Which accesses of the source the instructions stand for that a lane comes to, one after the other.

Both come in order. An instruction stands for as many accesses as it is wider than one. A predicated one stands beside an access
that the lane may not have made: a turn of a loop has room for one of each of its sites, whether it was made or not; behind
the last turn there may be more of them. Where instructions of several sites lie in one block, their addresses tell them
apart: those that begin at the same registers lie as far apart as their offsets say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

import numpy as np

from .. import language as st
from ..language.hints import Global, i32, i64
from ..native import fixed, native

NOT_PERFORMED, END = -1, -2
"""Instead of the number of an access: a lane had room for one that it did not make; it has left the loop."""
MAX_ATOMS, CHOICES = 400, 256
"""How many ways of telling sites apart are tried for lanes, and for a block, at most."""
_ADDRESS = re.compile(r"\[([^\[\]]*?)(?:\+?(-?0x[0-9a-f]+))?\]$")
_WIDEST = 16
"""Bytes that an access moves at most."""
AccessSequence = Sequence[int]
"""Numbers of accesses in order, with NOT_MADE and END."""
Accesses = tuple[int, ...]
Key = tuple[int, str]
"""A block, and the registers that the addresses of some of its instructions begin at."""


@dataclass(frozen=True)
class Visit:
    """An instruction that lanes come to. instruction: its number. accesses: for how many it stands. key, offset: of its address."""

    instruction: int
    accesses: int
    predicated: bool
    key: Key
    offset: int


Block = Sequence[Visit]


def address_of(text: str) -> tuple[str, int]:
    """The registers of an instruction's last address, and its offset in bytes."""
    operand = next((word for word in reversed(text.split(", ")) if word.endswith("]")), "[]")
    found = _ADDRESS.search(operand)
    return (found[1], int(found[2] or "0", 16)) if found else (operand, 0)


def performed(made: AccessSequence) -> list[int]:
    """The accesses alone."""
    return [number for number in made if number >= 0]


@st.device
def align(
    made: Global[i64], count: i64, accesses: Global[i32], predicated: Global[i32], visits: i64, stood: Global[i64]
) -> bool:
    """Whether visits fit what was made, in order. stood: the accesses that each stands for, NOT_MADE where a predicate switches the lane
    off; accesses: for how many."""
    wanted, real, room, switched = i64(0), i64(0), i64(0), False
    for n in range(visits):
        wanted += i64(accesses[n])
        switched = switched or predicated[n] != 0
    for n in range(count):
        real += i64(made[n] >= 0)
        room += i64(made[n] != END)
    whole = wanted == real
    if not whole and not switched:
        return False
    spare = wanted - (real if whole else room)  # predicated ones behind the last turn of a loop
    at, out = i64(0), i64(0)
    for n in range(visits):
        each = i64(accesses[n])
        while at < count and (
            made[at] < 0 if whole else made[at] == END and not (predicated[n] != 0 and spare >= each)
        ):
            at += 1
        if at == count or made[at] == END:
            spare -= each
            if predicated[n] == 0:
                return False
            for k in range(each):
                stood[out + k] = i64(NOT_PERFORMED)
        else:
            off, taken = i64(0), i64(0)
            while taken < each:
                if at < count and whole and made[at] < 0:
                    at += 1
                elif at == count or made[at] == END:
                    return False
                else:
                    off += i64(made[at] == NOT_PERFORMED)
                    stood[out + taken] = made[at]
                    taken += 1
                    at += 1
            if off != 0 and (off < each or predicated[n] == 0):
                return False
        out += each
    while at < count:
        if made[at] >= 0:
            return False
        at += 1
    return True


@st.device
def _aligned_apart(
    made: Global[i64], count: i64, accesses: Global[i32], predicated: Global[i32], begun: Global[i32], visits: i64, stood: Global[i64]
) -> bool:  # fmt: skip
    """The same, of each execution of a loop by itself. begun: visits before which lanes come to it anew. Of one that has fewer turns than
    there are visits the last predicated ones are off, although others follow: a remainder may come before the turns by fours. Lanes come
    to all executions that have turns, or to all that have accesses."""
    executions, turned, accessed = i64(1), i64(0), i64(0)
    n, at, out = i64(1), i64(0), i64(0)
    while n < visits:
        executions += i64(begun[n] != 0)
        n += 1
    n = i64(0)
    while n < count:
        turns, some = False, False
        while n < count and made[n] != END:
            turns, some = True, some or made[n] >= 0
            n += 1
        turned, accessed, n = turned + i64(turns), accessed + i64(some), n + 1
    if executions != turned and executions != accessed:
        return False
    n = i64(0)
    while n < visits:
        past, wanted = n, i64(0)
        while past < visits and (past == n or begun[past] == 0):
            wanted += i64(accesses[past])
            past += 1
        first, real = at, i64(0)
        while real == 0 and at < count and (executions != turned or first == at):
            while at < count and made[at] == END:
                at += 1
            first = at
            while at < count and made[at] != END:
                real += i64(made[at] >= 0)
                at += 1
        whole = wanted == real
        spare = i64(0) if whole else wanted - (at - first)
        behind = out + wanted
        for k in range(past - 1, n - 1, -1):
            each = i64(accesses[k])
            off = predicated[k] != 0 and spare >= each
            spare -= each if off else i64(0)
            for _ in range(each):
                behind -= 1
                stood[behind] = i64(NOT_PERFORMED) if off else i64(0)
        if spare != 0:
            return False
        for k in range(n, past):
            each = i64(accesses[k])
            if stood[out] != NOT_PERFORMED:
                missing = i64(0)
                for j in range(each):
                    while whole and made[first] < 0:
                        first += 1
                    stood[out + j] = made[first]
                    missing += i64(made[first] < 0)
                    first += 1
                if missing != 0 and (missing < each or predicated[k] == 0):
                    return False
            out += each
        n = past
    while at < count:
        if made[at] >= 0:
            return False
        at += 1
    return True


@st.device
def align_loop(
    made: Global[i64], count: i64, accesses: Global[i32], predicated: Global[i32], begun: Global[i32], visits: i64, stood: Global[i64]
) -> bool:  # fmt: skip
    """`align`, first of each execution of a loop by itself where it is known where these begin."""
    known = False
    for n in range(visits):
        known = known or begun[n] != 0
    if known and _aligned_apart(made, count, accesses, predicated, begun, visits, stood):
        return True
    return align(made, count, accesses, predicated, visits, stood)


@native
def _align(
    made: Global[i64], count: i64, accesses: Global[i32], predicated: Global[i32], begun: Global[i32], visits: i64, stood: Global[i64]
) -> bool:  # fmt: skip
    return align_loop(made, count, accesses, predicated, begun, visits, stood)


def aligned(made: AccessSequence, visited: Sequence[Visit], begun: Collection[int] = ()) -> list[Accesses] | None:
    """The accesses that each visit stands for, none where a predicate switches the lane off. None where they do not fit together.
    begun: numbers of visits before which lanes come to the loop of all of them anew, where that is known."""
    accesses = np.array([one.accesses for one in visited], np.int32)
    predicated = np.array([one.predicated for one in visited], np.int32)
    anew = np.zeros(len(visited), np.int32)
    anew[list(begun)] = 1
    stood = np.empty(int(accesses.sum()), np.int64)
    if not _align(np.array(made, np.int64), len(made), accesses, predicated, anew, len(visited), stood):
        return None
    following = iter(stood.tolist())
    each = [tuple(islice(following, one.accesses)) for one in visited]
    return [() if NOT_PERFORMED in mine else mine for mine in each]


def arranged(
    block: Block, stood: Sequence[Accesses], size: int, address: Callable[[int], int]
) -> list[Accesses] | None:
    """The same accesses that instructions of a block stand for, each for those at its address: those that begin at the same
    registers lie as far apart as their offsets say. None where they do not."""
    on = [one for one, accesses in zip(block, stood, strict=True) if accesses]
    by_address = defaultdict[int, list[int]](list)
    for number in (number for accesses in stood for number in accesses):
        by_address[address(number)].append(number)
    found: dict[int, Accesses] = {}
    keys = _by_key(on).values()
    for each in sorted(keys, key=lambda each: -sum(one.accesses for one in each)):
        ordered, offsets = _offsets(each, size)
        bytes_of_one = size * ordered[0].accesses
        for first in sorted(by_address, key=lambda at: at % bytes_of_one):  # where a wide one can begin comes first
            wanted = Counter(first + offset for offset in offsets)
            if all(len(by_address.get(at, ())) >= n for at, n in wanted.items()):
                break
        else:
            return None
        found |= _dealt(ordered, [by_address[first + offset].pop(0) for offset in offsets])
    return [found.get(one.instruction, ()) for one in block]


class ArrangementCache:
    """`arranged`, once for all blocks of which the accesses lie alike."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: dict[object, list[Accesses] | None] = {}

    def arranged(self, block: Block, stood: Sequence[Accesses], address: Callable[[int], int]) -> list[Accesses] | None:
        """As `arranged`."""
        numbers = [number for accesses in stood for number in accesses]
        at = [address(number) for number in numbers]
        base = min(at, default=0)
        alike = block[0].instruction, base % _WIDEST, *(each - base for each in at), *map(len, stood)
        if alike not in self._known:
            following = iter(range(len(numbers)))
            places = [tuple(islice(following, len(accesses))) for accesses in stood]
            self._known[alike] = arranged(block, places, self._size, at.__getitem__)
        found = self._known[alike]
        return None if found is None else [tuple([numbers[place] for place in places]) for places in found]


def _offsets(visited: Sequence[Visit], size: int) -> tuple[list[Visit], list[int]]:
    """Instructions of one key by their offsets, and how many bytes behind the first each access is that they stand for."""
    ordered = sorted(visited, key=lambda one: one.offset)
    return ordered, [one.offset - ordered[0].offset + size * n for one in ordered for n in range(one.accesses)]


def _dealt(visited: Sequence[Visit], numbers: Sequence[int]) -> dict[int, Accesses]:
    """Accesses given to instructions in order, to each as many as it stands for."""
    following = iter(numbers)
    return {one.instruction: tuple(next(following) for _ in range(one.accesses)) for one in visited}


# ------------------------------------------------------------------ several sites
@dataclass(frozen=True)
class SiteAccesses:
    """made: by lanes that did the same. may_be_kept: whether the compiler may do without some: a load whose value it has."""

    made: AccessSequence
    may_be_kept: bool


@native
def _follow(
    at: i64, blocks: i64, groups: Global[i32], keys: Global[i32], visits: Global[i32], accesses: Global[i32], predicated: Global[i32],
    made: Global[i64], begins: Global[i64], site_of: Global[i32], past: Global[i64],
) -> i64:  # fmt: skip
    """The next block, from one on, of which the site of a key is not known, or how many blocks there are; -1 where what was made does not
    fit. groups: where the keys of each block begin among `keys`, `visits`: where the visits of each of these begin. made: of all sites,
    from `begins` on. site_of: by key, -1 where that is not known. past: of each site, where lanes are among what they made; grows."""
    for block in range(at, blocks):
        for n in range(i64(groups[block]), i64(groups[block + 1])):
            if site_of[i64(keys[n])] < 0:
                return i64(block)
        for n in range(i64(groups[block]), i64(groups[block + 1])):
            site = i64(site_of[i64(keys[n])])
            behind, end = begins[site] + past[site], begins[site + 1]
            for k in range(i64(visits[n]), i64(visits[n + 1])):
                while behind < end and made[behind] == END and predicated[k] == 0:
                    behind += 1
                if predicated[k] == 0 or (behind < end and made[behind] != END):
                    if behind + i64(accesses[k]) > end:
                        return i64(-1)
                    behind += i64(accesses[k])
            past[site] = behind - begins[site]
    return blocks


class SiteAssigner:
    """Tells which site the instructions of each key stand for. address: of an access, in bytes."""

    def __init__(self, sites: Sequence[SiteAccesses], size: int, address: Callable[[int], int]) -> None:
        self.sites, self.size, self.address = sites, size, address
        self.real = [performed(site.made) for site in sites]
        self._made = fixed(
            np.array([number for site in sites for number in site.made], np.int64),
            np.cumsum([0, *(len(site.made) for site in sites)]),
        )
        self.visited: Sequence[Block] = ()
        self.blocks: list[dict[Key, list[Visit]]] = []
        self.atoms = 0
        self.best: tuple[float, dict[Key, int]] | None = None
        self._tried: dict[tuple[int, Key, int, int], tuple[int, bool, bool]] = {}

    def tell(self, visited: Sequence[Block], known: Mapping[Key, int]) -> dict[Key, int] | None:
        """visited: block by block. known: what other lanes have told. None where nothing fits."""
        self.atoms, self.best, self.visited = 0, None, visited
        self._tried = {}
        self.blocks = [_by_key(block) for block in visited]
        groups = [(key, each) for block in self.blocks for key, each in block.items()]
        self._numbers = {key: n for n, key in enumerate(dict.fromkeys(key for key, _ in groups))}
        every = [one for _, each in groups for one in each]
        rows = (
            np.cumsum([0, *map(len, self.blocks)]),
            np.array([self._numbers[key] for key, _ in groups]),
            np.cumsum([0, *(len(each) for _, each in groups)]),
            np.array([one.accesses for one in every]),
            np.array([one.predicated for one in every]),
        )
        self._visits = fixed(*(row.astype(np.int32) for row in rows))
        self._go(0, [0] * len(self.sites), dict(known), 0.0)
        return None if self.best is None else self.best[1]

    def _go(self, at: int, past: list[int], known: dict[Key, int], wrong: float) -> None:
        """past: of each site, where lanes are among what they made."""
        site_of, there = np.full(len(self._numbers), -1, np.int32), np.array(past, np.int64)
        for key in self._numbers.keys() & known.keys():
            site_of[self._numbers[key]] = known[key]
        block = _follow(at, len(self.blocks), *self._visits, *self._made, site_of, there)
        if block < 0:
            return None
        past = there.tolist()
        if block < len(self.blocks):
            return self._choose(block, past, known, wrong)
        self.atoms += 1
        for n, site in zip(past, self.sites, strict=True):
            left = any(number >= 0 for number in site.made[n:])
            if left and not site.may_be_kept:
                return None
            wrong += left
        if (self.best is None or wrong < self.best[0]) and self.stands(self.visited, known) is not None:
            self.best = wrong, known
        return None

    def _choose(self, at: int, past: list[int], known: dict[Key, int], wrong: float) -> None:
        """Try the sites that the keys of a block may belong to, the most likely first: those whose accesses lie as their offsets say,
        then those for which the same registers stood before, then those in the order of the source."""
        block = self.blocks[at]
        fresh = [key for key in block if key not in known]
        before = {registers: site for (_, registers), site in known.items()}
        if len(self.sites) ** len(fresh) > CHOICES:
            return
        ways = []
        for chosen in product(range(len(self.sites)), repeat=len(fresh)):
            own = known | dict(zip(fresh, chosen, strict=True))
            there, unlike, fit = list(past), 0, True
            for key in block:
                there[own[key]], fits, alike = self._try(at, key, own[key], there[own[key]])
                unlike, fit = unlike + (not alike), fit and fits
            others = sum(before.get(key[1], one) != one for key, one in zip(fresh, chosen, strict=True))
            order = sum(one >= another for one, another in combinations(chosen, 2))
            if fit:
                ways.append((unlike, others, order, own))
        for unlike, _, _, own in sorted(ways, key=lambda way: way[:3]):
            if self.atoms >= MAX_ATOMS or (self.best is not None and self.best[0] <= wrong + unlike):
                return
            self._go(at, past, own, wrong + unlike)

    def _try(self, at: int, key: Key, site: int, past: int) -> tuple[int, bool, bool]:
        """Where lanes are behind the visits of a key in a block, if they stand for a site's accesses; whether there are so many of these;
        and whether they lie as the offsets say."""
        tried = at, key, site, past
        if tried not in self._tried:
            each = self.blocks[at][key]
            behind, numbers = _taken(self.sites[site].made, past, each)
            sure = sorted((one for one in each if not one.predicated), key=lambda one: one.offset)
            mine = (numbers or [])[: sum(one.accesses for one in sure)]
            alike = not sure or _by_address(sure, mine, self.size, self.address) is not None
            self._tried[tried] = behind, numbers is not None, alike
        return self._tried[tried]

    def stands(self, visited: Sequence[Block], told: Mapping[Key, int]) -> list[list[Accesses]] | None:
        """By block, the accesses that each visit stands for, none where a predicate switches the lane off."""
        mine: dict[int, list[tuple[int, Visit]]] = defaultdict(list)
        for n, block in enumerate(visited):
            for one in block:
                if one.key not in told:
                    return None
                mine[told[one.key]].append((n, one))
        stand: dict[tuple[int, int], Accesses] = {}
        kept = list[int]()
        for site, several in mine.items():
            found = aligned(self.sites[site].made, [one for _, one in several])
            if found is None and self.sites[site].may_be_kept:
                kept.append(site)
            elif found is None:
                return None
            else:
                stand |= {(n, one.instruction): numbers for (n, one), numbers in zip(several, found, strict=True)}
        for site in kept:
            if not stand or not self._beside(mine[site], self.real[site], stand):
                return None
        for n, block in enumerate(visited):
            for each in _by_key(block).values():
                if len(each) == 1:
                    continue  # there is nothing to exchange
                numbers = [number for one in each for number in stand[n, one.instruction]]
                if ordered := _by_address(each, numbers, self.size, self.address):
                    stand |= {(n, instruction): found for instruction, found in ordered.items()}
        return [[stand[n, one.instruction] for one in block] for n, block in enumerate(visited)]

    def _beside(
        self, visited: Sequence[tuple[int, Visit]], real: Sequence[int], stand: dict[tuple[int, int], Accesses]
    ) -> bool:
        """Let instructions of a site some of whose loads are kept stand for those that follow what other sites' have stood for."""
        others = sorted((n, max(numbers)) for (n, _), numbers in stand.items() if numbers)
        for n, one in visited:
            if one.accesses > 1 or one.predicated:
                return False
            before = bisect_right(others, (n, -1)) - 1
            last = others[before][1] if before >= 0 else -1
            following = bisect_right(real, last)
            if following == len(real):
                return False
            stand[n, one.instruction] = (real[following],)
        return True


def _taken(made: AccessSequence, at: int, visited: Sequence[Visit]) -> tuple[int, list[int] | None]:
    """Where lanes are behind some visits, and the accesses that these stand for, None where there are not so many. Predicated ones
    behind the last turn of a loop are taken to be off."""
    found = list[int]()
    for one in visited:
        while at < len(made) and made[at] == END and not one.predicated:
            at += 1
        if one.predicated and (at == len(made) or made[at] == END):
            continue
        taken = made[at : at + one.accesses]
        if len(taken) < one.accesses:
            return at, None
        at += one.accesses
        found += [number for number in taken if number >= 0]
    return at, found


def _by_key(block: Block) -> dict[Key, list[Visit]]:
    """The visits of a block by their keys."""
    found: dict[Key, list[Visit]] = defaultdict(list)
    for one in block:
        found[one.key].append(one)
    return found


def _by_address(
    visited: Sequence[Visit], numbers: Sequence[int], size: int, address: Callable[[int], int]
) -> dict[int, Accesses] | None:
    """Which of some accesses instructions of one key stand for, by their addresses; None where these are not as the offsets say."""
    ordered, offsets = _offsets(visited, size)
    found = sorted(numbers, key=address)
    if len(found) != len(offsets) or not found:
        return None
    first = address(found[0])
    if any(address(number) - offset != first for number, offset in zip(found, offsets, strict=True)):
        return None
    return _dealt(ordered, found)
