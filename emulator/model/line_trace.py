"""The accesses of a traced launch as cache lines: which sectors of which lines each access of each warp touches."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.walk import statements
from ..language.hints import Global, i64
from ..language.types import Array, Scalar
from ..native import native
from ..profiler.trace import CACHED, Entries
from ..runtime.engine import Request

LINE, SECTOR = 128, 32
"""Bytes of a line and of a sector, on every device that there is a row of."""
MOST_LINES = 1 << 18
"""Touched lines that are kept. Where there are more, only every second, fourth, ... line of memory is: one by chance, but the same
one throughout, and caches are simulated that are so many times smaller."""
MOST_ACCESSES = 1 << 26
"""Accesses after which no further block is traced: what follows is taken for more of the same."""
_ALIGNED = 1 << 21
"""Arrays begin at multiples of this: device memory is given out in pages of so many bytes."""
_HOT = 1 << 14
"""Parts of memory whose requests to L2 are told apart, each in one slice of L2: eight of them lie in 4 KiB."""
_DRAWS = 16
"""How often it is drawn which group of eight slices has which 4 KiB, and in which order; what the busiest slice has is the average."""
RECORD = 4
"""Words of an access: block << 16 | warp, phase << 32 | stored << 16 | site, the first of its lines, and number << 8 | how many lines
there are. number: of the access in its warp, as if warps that wait at a barrier made accesses. stored: lines of the stores of the
warp until then, in 16 bits."""
WORDS, TOUCHED = 6, 4
"""Bits of a kept line below its number: how many words of it an access has, and which sectors these lie in."""
LOAD, STORE, ATOMIC, LOCAL_LOAD, LOCAL_STORE, CONSTANT = range(6)
"""Kinds of access. Of constant memory only the different addresses of an access are counted, as its lines."""
ACCESSES, LINES, SECTORS, CYCLES, STREWN, SAME, PARTIAL, TOTALS = range(8)
"""Of a site, in the whole launch: accesses by warps, lines that they touch, sectors, cycles that L1 takes for them, accesses whose
lines do not lie side by side, those to just the sectors that the warp's last one had, and sectors of which it does not have all. CYCLES: of
each access the more of those of its words, of which each of the 32 banks that a line lies in reads one at a time, as shared memory does for
stores, and those of its lines, of which each of four banks of tags finds one at a time."""
_FIRST_TAGS, _SECOND_TAGS = 0x6F7AB5, 0x3AD5DA
"""Bits of a line's number whose parities tell its bank of tags. Read from what Nsight Compute counts on an H100
(`l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld`) of random load patterns and of lines 2^5 to 2^22 apart."""
_SEEN, _BEFORE = 256, 1 << 16
_OF = 6
"""Words of a line that an access touches: its number, the bits of the words that any lane has, and of those of each phase."""
BITS = 40
"""Of the number that is drawn for a line: its first ones say whether the line is kept, the next ones its set."""

Words = npt.NDArray[np.int64]


@st.device
def drawn(line: i64) -> i64:
    """A number of 40 bits, the same for a line each time. Those of neighbours lie far from each other, and those of a range of lines
    evenly: so do lines in the sets of a cache of the hardware, where 24 MiB in order fill 30 MiB without one that is lost."""
    return ((line * -0x61C8864680B583EB) >> 24) & 0xFFFFFFFFFF


@st.device
def _part(line: i64) -> i64:
    """The part of memory that a line belongs to: lines eight apart of 4 KiB are one. Which group of eight slices has 4 KiB looks like
    chance: of additions to random words of 4, 16, 64, 256 KiB and 1 MiB an H200 does 6.0, 17.9, 24.0, 41.0 and 50.6 a cycle."""
    mixed = (line >> 5) * -0x61C8864680B583EB
    mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * -0x40A7B892E31B1A47
    return (((mixed >> 32) & 0x7FF) << 3) | (line & 7)


@st.device
def _turns(tally: Global[i64], first: i64) -> i64:
    """Turns that the atomic operations of a warp on a line take, whose words had so many lanes each; forgets them. Of a sector the
    lanes of one word come one after another; one turn is enough for one lane, and two for those of all of its words."""
    turns = i64(0)
    for sector in range(i64(4)):
        every, most = i64(0), i64(0)
        for word in range(first + 8 * sector, first + 8 * sector + 8):
            every += tally[word]
            most = max(most, tally[word])
            tally[word] = i64(0)
        turns += min(every, 2 * most)
    return turns


@st.device
def _addresses(tally: Global[i64], first: i64, line: i64, hot: Global[i64], at: i64) -> i64:
    """Different words of a line that lanes have; their lanes are added up, by word."""
    found = i64(0)
    for word in range(i64(32)):
        if tally[first + word] > 0:
            found += 1
            address = line * 32 + word
            hot[at + ((address ^ (address >> 14)) & 16383)] += tally[first + word]
    return found


@st.device
def _busiest(of: Global[i64], found: i64, phase: i64, slices: Global[i64]) -> i64:
    """Words of the bank that has most, of so many lines with the words that a phase asks them for. slices: 0, of six: the numbers of all
    banks at once, a bit of them each."""
    if found == 1:
        return i64(1) if of[2 + phase] != 0 else i64(0)
    for which in range(found):
        carry, bit = of[_OF * which + 2 + phase], i64(0)
        while carry != 0:
            low = slices[bit]
            slices[bit] = low ^ carry
            carry &= low
            bit += 1
    most, among = i64(0), i64(0xFFFFFFFF)
    for n in range(i64(6)):
        bit = i64(5) - n
        if slices[bit] & among != 0:
            among &= slices[bit]
            most += i64(1) << bit
        slices[bit] = 0
    return most


@st.device
def _cycles(of: Global[i64], found: i64, phases: i64, slices: Global[i64]) -> i64:
    """CYCLES of an access to so many lines."""
    cycles, tags = i64(0), i64(0)
    for phase in range(phases):
        cycles += _busiest(of, found, phase, slices)
    for which in range(found):
        line = of[_OF * which]
        bank = (st.popcount(line & _FIRST_TAGS) & 1) * 2 + (st.popcount(line & _SECOND_TAGS) & 1)
        tags += i64(1) << i64(8 * bank)
    for _bank in range(4):
        cycles = max(cycles, tags & 255)
        tags = tags >> 8
    return cycles


@native
def _compact(
    raw: Global[i64], count: i64, base: Global[i64], size: Global[i64], kind: Global[i64], whole: i64, apart: i64,
    records: Global[i64], lines: Global[i64], hot: Global[i64], totals: Global[i64], work: Global[i64], warps: i64,
    room: Global[i64], threads: i64, seen: Global[i64], of: Global[i64], used: Global[i64], tally: Global[i64], slices: Global[i64],
    served: Global[i64], numbers: Global[i64], reached: Global[i64],
    written: Global[i64], before: Global[i64],
) -> i64:  # fmt: skip
    """Append accesses: their records and, of every `apart`-th line of memory, what they touch. room: bytes of a thread's local
    array; threads: of the GPU, whose local arrays lie there at once: word by word, those of a warp's lanes side by side. used: access
    number, then how many records there are. tally: 0, of the words of 32 lines; slices: 0, of six. served: where the turns of a site's
    stores and atomic operations begin in hot, -1 of those that are none. numbers: of each warp's last access, those that wait for others at
    barriers as if they made accesses; reached: of each block its phase, the highest number before it, and the highest. written: lines of
    the stores of each warp. before: a warp, a site, and a number of the sectors of the last access, where others have not come in between.
    How many lines there are."""
    stored = i64(0)
    kept = i64(0)
    number = used[0]
    for n in range(count):
        at = n * 35
        site = raw[at + 1] & 0xFFFFFFFF
        phase = raw[at + 1] >> 32
        warp = raw[at + 2] & 0xFFFFFFFF
        mask = raw[at + 2] >> 32
        number += 1
        found = i64(0)
        last = i64(-1)
        if phase > reached[3 * raw[at]]:
            reached[3 * raw[at]] = phase
            reached[3 * raw[at] + 1] = reached[3 * raw[at] + 2]
        owner = raw[at] * warps + warp
        numbers[owner] = max(numbers[owner], reached[3 * raw[at] + 1]) + 1
        reached[3 * raw[at] + 2] = max(reached[3 * raw[at] + 2], numbers[owner])
        own = kind[site] == 3 or kind[site] == 4
        phases = size[site] // 4 if size[site] == 8 or size[site] == 16 else i64(1)
        pieces = phases if own else i64(1)
        place_of = base[site] + ((raw[at] * warps + warp) * 32 % threads) * room[site]
        for lane in range(i64(32)):
            for piece in range(pieces if (mask >> lane) & 1 != 0 else i64(0)):
                address = raw[at + 3 + lane] * size[site]
                bits, phase_of = (i64(1) << ((size[site] + 3) >> 2)) - 1, (i64(lane) * phases) >> 5
                if own:
                    address, bits, phase_of = place_of + 128 * ((address >> 2) + piece) + 4 * lane, i64(1), piece
                else:
                    address += base[site]
                line = address >> 7
                if kind[site] == 5:
                    line = address >> 2
                if last < 0 or of[_OF * last] != line:
                    place = (line ^ (line >> 6)) & (_SEEN - 1)
                    while seen[2 * place] == number and of[_OF * seen[2 * place + 1]] != line:
                        place = (place + 1) & (_SEEN - 1)
                    if seen[2 * place] == number:
                        last = seen[2 * place + 1]
                    else:
                        last = found
                        seen[2 * place] = number
                        seen[2 * place + 1] = found
                        of[_OF * found] = line
                        for which in range(i64(1), i64(_OF)):
                            of[_OF * found + which] = i64(0)
                        found += 1
                words = bits << ((address >> 2) & 31)
                of[_OF * last + 1] |= words
                of[_OF * last + 2 + phase_of] |= words
                if kind[site] == 2:
                    tally[32 * last + ((address >> 2) & 31)] += 1
        if kind[site] == 1:
            written[owner] += found
            for which in range(found):
                hot[served[site] + _part(of[_OF * which])] += 1
        if kind[site] == 2:
            for which in range(found):
                place = served[site] + _part(of[_OF * which])
                hot[place + 16384] += _addresses(tally, 32 * which, of[_OF * which], hot, served[site] + 32768)
                hot[place] += _turns(tally, 32 * which)
        totals[TOTALS * site + CYCLES] += i64(1) if kind[site] == 5 else _cycles(of, found, phases, slices)
        begin = stored
        sectors, partial, sign = i64(0), i64(0), i64(1)
        first = of[0]
        past = of[0]
        for which in range(found):
            first = min(first, of[_OF * which])
            past = max(past, of[_OF * which])
            touched = i64(15)
            if whole == 0 or kind[site] != 0:
                words = of[_OF * which + 1]
                touched = i64(0)
                for sector in range(i64(4)):
                    if (words >> (8 * sector)) & 255 != 0:
                        touched |= i64(1) << sector
                        partial += i64((words >> (8 * sector)) & 255 != 255)
            sectors += i64(st.popcount(touched))
            sign += drawn((of[_OF * which] << 4) | touched)
            if apart == 1 or drawn(of[_OF * which]) * apart < i64(1) << 40:
                lines[stored] = (of[_OF * which] << 10) | (i64(st.popcount(of[_OF * which + 1])) << 4) | touched
                stored += 1
        place = 3 * (drawn(owner * 8191 + site) & 65535)
        totals[TOTALS * site + SAME] += i64(
            before[place] == owner and before[place + 1] == site and before[place + 2] == sign
        )
        before[place] = owner
        before[place + 1] = site
        before[place + 2] = sign
        totals[TOTALS * site + ACCESSES] += 1
        totals[TOTALS * site + STREWN] += i64(1) if past - first > 2 * found else i64(0)
        work[owner] += 1
        totals[TOTALS * site + LINES] += found
        if kind[site] == 5:
            stored = begin
        else:
            totals[TOTALS * site + SECTORS] += sectors
            totals[TOTALS * site + PARTIAL] += partial
        if stored > begin:
            records[4 * kept] = (raw[at] << 16) | warp
            records[4 * kept + 1] = (phase << 32) | ((written[owner] & 0xFFFF) << 16) | site
            records[4 * kept + 2] = begin
            records[4 * kept + 3] = (numbers[owner] << 8) | (stored - begin)
            kept += 1
    used[0] = number
    used[1] = kept
    return stored


@dataclass
class LineTrace:
    """A tracer that keeps the lines of accesses. most: lines that are kept at most, save for the last ones; accesses: after which
    no further block is traced.

    apart: one of so many lines of memory is kept. totals: int64[site, TOTALS], of all traced accesses; work: of each warp. fetching:
    sites of atomic operations whose result is used.
    """

    request: Request
    most: int = MOST_LINES
    accesses: int = MOST_ACCESSES
    blocks: int = 1 << 62
    apart: int = 1
    spaces: tuple[str, ...] = CACHED
    interval: int = 1
    _records: list[Words] = field(default_factory=list)
    _lines: list[Words] = field(default_factory=list)
    _count: int = 0
    _last: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        sites, arguments = self.request.prepared.sites, self.request.arguments
        types = {p.name: p.type for p in self.request.program.kernel.params if isinstance(p.type, Array)}
        addresses, following = {}, _ALIGNED
        for name, type in types.items():
            addresses[name] = following
            following += -(-max(1, len(np.asarray(arguments[name])) * type.element.size) // _ALIGNED) * _ALIGNED
        device = self.request.device
        self._threads = device.sms * device.threads_per_sm
        own = {}
        adding = set()
        for stmt in statements(self.request.prepared.program.kernel.body):
            if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Atomic) and stmt.value.op in ("add", "sub"):
                adding.add(stmt.span)
            if isinstance(stmt, ir.Alloc) and stmt.type.space in ("local", "constant"):
                types[stmt.array], addresses[stmt.array] = stmt.type, following
                size = (stmt.type.length or 1) * stmt.type.element.size
                if stmt.type.space == "local":
                    own[stmt.array] = size = -(-size // 4) * 4
                    size *= self._threads
                following += -(-size // _ALIGNED) * _ALIGNED
        self._base, self._size, self._room, self.kinds = (np.zeros(len(sites), np.int64) for _ in range(4))
        for number, site in enumerate(sites):
            if site.array in addresses:
                self._base[number], self._size[number] = addresses[site.array], site.size
                self._room[number] = own.get(site.array, 0)
                self.kinds[number] = _KINDS[types[site.array].space][site.access.operation]
        pieces = self._size[np.isin(self.kinds, (LOCAL_LOAD, LOCAL_STORE))] // 4
        self._each = 32 * int(pieces.max(initial=1))  # lines of an access, at most
        atomic = [n for n in range(len(sites)) if self.kinds[n] == ATOMIC]
        self.fetching = frozenset(n for n in atomic if sites[n].access.operation is Operation.ATOMIC)
        served = [n for n in range(len(sites)) if self.kinds[n] in (STORE, ATOMIC)]
        self._floats = [
            number
            for number, n in enumerate(served)
            if n in atomic
            and sites[n].span in adding
            and isinstance(element := types[sites[n].array].element, Scalar)
            and element.is_float
        ]
        self._whole = int(device.loads_cached and device.load_sector == device.line)
        self.totals = np.zeros((len(sites), TOTALS), np.int64)
        self._served = np.full(len(sites), -1, np.int64)
        self._served[served] = 3 * _HOT * np.arange(len(served))
        self._hot = np.zeros((max(1, len(served)), 3, _HOT), np.int64)
        self._warps = -(-int(np.prod(self.request.block)) // 32)
        blocks = int(np.prod(self.request.grid))
        self.work, self._numbers, self._written = (np.zeros(blocks * self._warps, np.int64) for _ in range(3))
        self._reached, self._before = np.zeros(3 * blocks, np.int64), np.zeros(3 * _BEFORE, np.int64)
        self._seen, self._of = np.zeros(2 * _SEEN, np.int64), np.zeros(_OF * self._each, np.int64)
        self._used, self._tally, self._slices = (
            np.zeros(2, np.int64),
            np.zeros(32 * 32, np.int64),
            np.zeros(6, np.int64),
        )

    def take(self, entries: Entries) -> None:
        with self._lock:
            kept = entries if self.blocks > 1 << 61 else entries[entries["block"] < self.blocks]
            if not len(kept):
                return
            records, lines = np.empty(RECORD * len(kept), np.int64), np.empty(self._each * len(kept), np.int64)
            raw = np.ascontiguousarray(kept).view(np.int64)
            stored = _compact(
                raw, len(kept), self._base, self._size, self.kinds, self._whole, self.apart, records, lines, self._hot.reshape(-1),
                self.totals.reshape(-1), self.work, self._warps, self._room, self._threads, self._seen, self._of, self._used,
                self._tally, self._slices, self._served, self._numbers, self._reached, self._written,
                self._before,
            )  # fmt: skip
            records = records[: RECORD * int(self._used[1])].copy()
            records[2::RECORD] += self._count
            self._records.append(records)
            self._lines.append(lines[:stored].copy())
            self._count += stored
            self._last = max(self._last, int(kept["block"].max()))
            while self._count > self.most:
                self._thin_out()
            if self._used[0] > self.accesses and self.blocks > 1 << 61:
                self.blocks = self._last + 1  # those under way are traced to their end

    def _thin_out(self) -> None:
        """Keep every second line of those that are kept."""
        self.apart *= 2
        lines, records = np.concatenate(self._lines), np.concatenate(self._records).reshape(-1, RECORD)
        staying = _drawn(lines >> (WORDS + TOUCHED)) * self.apart < 1 << BITS
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(staying)])
        past = before[records[:, 2] + (records[:, 3] & 0xFF)]
        records[:, 2] = before[records[:, 2]]
        records[:, 3] = records[:, 3] >> 8 << 8 | past - records[:, 2]
        self._records, self._lines = [records[records[:, 3] & 0xFF > 0].reshape(-1)], [lines[staying]]
        self._count = int(before[-1])

    def begin_again(self) -> None:
        self._records.clear()
        self._lines.clear()
        self._count, self._last, self.blocks, self.apart = 0, -1, 1 << 62, 1
        for counted in (
            self._hot,
            self.totals,
            self._used,
            self._seen,
            self.work,
            self._numbers,
            self._reached,
            self._written,
            self._before,
        ):
            counted[:] = 0

    @property
    def traced(self) -> int:
        """Blocks that were traced."""
        return min(self.blocks, int(np.prod(self.request.grid)))

    def busiest_slice(self, slices: int, stored: float, added: float, together: Collection[int] = ()) -> float:
        """Cycles of the slice of L2 that has most to do, in the whole launch. stored, added: cycles of a line of a store, and of a turn
        of an atomic operation. together: sites where one lane acts for all that have its address."""
        cycles = np.zeros(_HOT)
        for number, site in enumerate(np.flatnonzero(np.isin(self.kinds, (STORE, ATOMIC)))):
            each = stored if self.kinds[site] == STORE else added
            cycles += each * self._hot[number, int(site in together)]
        draw = np.random.default_rng(_DRAWS)
        groups, first = (draw.integers(0, most, (_DRAWS, _HOT // 8, 1)) for most in (max(1, slices // 8), 8))
        each_way = (8 * groups + (np.arange(8) ^ first)).reshape(_DRAWS, _HOT)
        return self._in_all(float(np.mean([np.bincount(slice_of, cycles).max() for slice_of in each_way])))

    @property
    def most_floats(self) -> float:
        """Additions of floating point numbers to the address that has most, in the whole launch."""
        return self._in_all(float(self._hot[self._floats, 2].sum(axis=0).max()))

    def _in_all(self, found: float) -> float:
        """What was found in the traced blocks, of all blocks."""
        return float(found * np.prod(self.request.grid) / self.traced)

    @property
    def longest(self) -> float:
        """Accesses of the warp that makes most, as so many times those of the average warp."""
        mean = float(self.work.mean())
        return float(self.work.max()) / mean if mean and self.traced == np.prod(self.request.grid) else 1.0

    @cached_property
    def sorted(self) -> tuple[Words, Words, Words]:
        """Records by block and warp, as [n * RECORD]; where those of each warp of each block begin; the lines."""
        records = np.concatenate([np.zeros(0, np.int64), *self._records]).reshape(-1, RECORD)
        lines = np.concatenate([np.zeros(0, np.int64), *self._lines])
        warps = -(-int(np.prod(self.request.block)) // 32)
        if len(records) and (np.diff(records[:, 0]) < 0).any():
            records = records[np.argsort(records[:, 0], kind="stable")]
        owner = (records[:, 0] >> 16) * warps + (records[:, 0] & 0xFFFF)
        first = np.zeros(self.traced * warps + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=self.traced * warps), out=first[1:])
        return np.ascontiguousarray(records).reshape(-1), first, lines


def _drawn(lines: Words) -> Words:
    """`drawn`, of many lines."""
    with np.errstate(over="ignore"):
        return ((lines * np.int64(-0x61C8864680B583EB)) >> 24) & np.int64(0xFFFFFFFFFF)


_KINDS: dict[str, dict[Any, int]] = {
    "global": {
        Operation.LOAD: LOAD, Operation.STORE: STORE, Operation.ATOMIC: ATOMIC, Operation.REDUCTION: ATOMIC,
    },
    "local": {Operation.LOAD: LOCAL_LOAD, Operation.STORE: LOCAL_STORE},
    "constant": {Operation.LOAD: CONSTANT},
}  # fmt: skip
