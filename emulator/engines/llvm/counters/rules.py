"""The exact rules of `machine.coalescing` and `machine.banks` as LLVM functions of 32 elements and a mask.

Each returns an i64 of two halves: sectors | lines << 32, or wavefronts | conflicts << 32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....llvm.builder import IOTA, Page, many, splat, vector
from ....llvm.values import broadcast, chosen
from ....machine import banks, coalescing
from ....machine.device import Device

if TYPE_CHECKING:
    from ..context import Build

V = many("i32")
NEXT = vector("i32", (min(lane + 1, 31) for lane in IOTA))
BEFORE = vector("i32", (max(lane - 1, 0) for lane in IOTA))
Body = Callable[[Page], str]


def log2(power: int) -> int:
    """The exponent of a power of two."""
    return power.bit_length() - 1


def bank_kind(kind: str, device: Device) -> int:
    """How `machine.banks` calls a kind of access."""
    return {"shared_load": banks.load_kind(device), "shared_store": banks.STORE, "shared_atomic": banks.ATOMIC}[kind]


def function(build: Build, result: str, name: str, arguments: str, body: Body) -> str:
    """An internal function whose body is written on a page and returns what the writer says."""
    page = Page()
    page.reserve("v", "mask", "base", "index", "value", "expected")
    value = body(page)
    build.page.declared |= page.declared
    text = "\n".join([*page.slots, *page.lines, f"  ret {result} {value}"])
    return f"define internal {result} @{name}({arguments}) #1 {{\n.entry:\n{text}\n}}"


# ------------------------------------------------------------------ pieces
def _pack(page: Page, low: str, high: str) -> str:
    a, b = (page.let(f"zext i32 {v} to i64", "half") for v in (low, high))
    return page.let(f"or i64 {a}, {page.let(f'shl i64 {b}, 32', 'half')}", "pair")


def _shuffle(page: Page, v: str, order: str, hint: str = "moved") -> str:
    return page.let(f"shufflevector {V} {v}, {V} poison, {V} {order}", hint)


def _bits(page: Page, compared: str) -> str:
    return page.let(f"bitcast {many('i1')} {compared} to i32", "bits")


def _count(page: Page, mask: str) -> str:
    return page.call("i32", "llvm.ctpop.i32", ("i32", mask), hint="count")


def _shifted(page: Page, v: str, shift: int) -> str:
    return page.let(f"lshr {V} {v}, {splat('i32', shift)}", "units") if shift else v


def _filled(page: Page, v: str) -> str:
    """Inactive lanes repeat the first active one."""
    first = page.call("i32", "llvm.cttz.i32", ("i32", "%mask"), ("i1", "false"), hint="first")
    first = page.let(f"and i32 {first}, 31", "first")
    one = page.let(f"extractelement {V} {v}, i32 {first}", "one")
    return page.let(
        f"select {many('i1')} {chosen(page, '%mask')}, {V} {v}, {V} {broadcast(page, 'i32', one)}", "filled"
    )


def _sorted(page: Page, v: str) -> str:
    """Ascending, by a bitonic network of 15 exchanges."""
    for k in (2, 4, 8, 16, 32):
        for j in (n for n in (16, 8, 4, 2, 1) if n < k):
            other = _shuffle(page, v, vector("i32", (lane ^ j for lane in IOTA)))
            low = page.intrinsic("llvm.umin", V, v, other, hint="low")
            high = page.intrinsic("llvm.umax", V, v, other, hint="high")
            take = vector("i1", ("true" if (lane & j == 0) == (lane & k == 0) else "false" for lane in IOTA))
            v = page.let(f"select {many('i1')} {take}, {V} {low}, {V} {high}", "sorted")
    return v


def _changes(page: Page, v: str) -> str:
    """<32 x i1>: where a lane differs from the one before."""
    return page.let(f"icmp ne {V} {v}, {_shuffle(page, v, BEFORE)}", "changes")


def _different(page: Page, v: str) -> str:
    """How many different numbers an ordered vector holds."""
    return page.let(f"add i32 {_count(page, _bits(page, _changes(page, v)))}, 1", "different")


def _forward(page: Page, v: str) -> str:
    """Inactive lanes repeat the active lane before them; those in front, lane 0."""
    known = "%mask"
    for distance in (1, 2, 4, 8, 16):
        moved = _shuffle(page, v, vector("i32", (max(lane - distance, 0) for lane in IOTA)))
        v = page.let(f"select {many('i1')} {chosen(page, known)}, {V} {v}, {V} {moved}", "filled")
        known = page.let(f"or i32 {known}, {page.let(f'shl i32 {known}, {distance}', 'known')}", "known")
    return v


# ------------------------------------------------------------------ global memory
def sectors(build: Build, line: int) -> str:
    """Loads and stores: different sectors and lines (2 ** line sectors) among the active lanes' sector numbers."""

    def exact() -> str:
        def body(page: Page) -> str:
            ordered = _sorted(page, _filled(page, "%v"))
            return _pack(page, _different(page, ordered), _different(page, _shifted(page, ordered, line)))

        return function(build, "i64", f"sectors_unordered_{line}", f"{V} %v, i32 %mask", body)

    def quick() -> str:
        def body(page: Page) -> str:
            hints = ("some", "fill", "whole", "test", "fast", "slow", "nobody")
            some, fill, whole, test, fast, slow, nobody = (page.label(hint) for hint in hints)
            page.branch(page.let("icmp eq i32 %mask, 0", "none"), nobody, some)
            page.place(nobody)
            page.do("ret i64 0")
            page.place(some)
            first = page.block
            page.branch(page.let("icmp eq i32 %mask, -1", "full"), test, fill)
            page.place(fill)
            filled = _forward(page, _first_lanes(page))
            page.jump(whole)
            page.place(whole)
            page.jump(test)
            page.place(test)
            v = page.phi(V, ("%v", first), (filled, whole), hint="sectors")
            after = _shuffle(page, v, NEXT)
            rises = _bits(page, page.let(f"icmp ult {V} {v}, {after}", "rises"))
            falls = _bits(page, page.let(f"icmp ugt {V} {v}, {after}", "falls"))
            both = [page.let(f"icmp ne i32 {m}, 0", "any") for m in (rises, falls)]
            page.branch(page.let(f"and i1 {both[0]}, {both[1]}", "mixed"), slow, fast)
            page.place(slow)
            _close_together(page, line)
            exact = page.call("i64", f"sectors_unordered_{line}", (V, "%v"), ("i32", "%mask"), hint="exact")
            page.do(f"ret i64 {exact}")
            page.place(fast)
            return _pack(page, _different(page, v), _different(page, _shifted(page, v, line)))

        return function(build, "i64", f"sectors_{line}", f"{V} %v, i32 %mask", body)

    build.rule(f"sectors_unordered_{line}", exact)
    return build.rule(f"sectors_{line}", quick)


def _close_together(page: Page, line: int) -> None:
    """Sectors within reach of 64 bits, from the beginning of a line on: a bit for each tells how many there are."""
    filled = _filled(page, "%v")
    low, high = (
        page.call("i32", f"llvm.vector.reduce.{end}.v32i32", (V, filled), hint=end) for end in ("umin", "umax")
    )
    start = page.let(f"and i32 {low}, {-(1 << line)}", "start")
    near, far = page.label("near"), page.label("far")
    page.branch(page.let(f"icmp ult i32 {page.let(f'sub i32 {high}, {start}', 'reach')}, 64", "close"), near, far)
    page.place(near)
    W = many("i64")
    place = page.let(f"sub {V} {filled}, {broadcast(page, 'i32', start)}", "place")
    place = page.let(f"zext {V} {place} to {W}", "place")
    each = page.let(f"shl {W} {splat('i64', 1)}, {place}", "bit")
    met = page.call("i64", "llvm.vector.reduce.or.v32i64", (W, each), hint="sectors")
    folded = met
    for distance in (1 << n for n in range(line)):
        folded = page.let(f"or i64 {folded}, {page.let(f'lshr i64 {folded}, {distance}', 'next')}", "lines")
    folded = page.let(
        f"and i64 {folded}, {sum(1 << n for n in range(0, 64, 1 << line)) - ((1 << 64) if line == 0 else 0)}"
    )
    sectors, lines = (page.call("i64", "llvm.ctpop.i64", ("i64", m), hint="count") for m in (met, folded))
    high_half = page.let(f"shl i64 {lines}, 32", "lines")
    page.do(f"ret i64 {page.let(f'or i64 {sectors}, {high_half}', 'pair')}")
    page.place(far)


def _first_lanes(page: Page) -> str:
    """The vector whose lanes before the first active one repeat that one."""
    first = page.call("i32", "llvm.cttz.i32", ("i32", "%mask"), ("i1", "false"), hint="first")
    one = page.let(f"extractelement {V} %v, i32 {page.let(f'and i32 {first}, 31', 'first')}", "one")
    front = page.let(f"icmp ult {V} {vector('i32', IOTA)}, {broadcast(page, 'i32', first)}", "front")
    return page.let(f"select {many('i1')} {front}, {V} {broadcast(page, 'i32', one)}, {V} %v", "filled")


def packets(build: Build, size: int, sector: int, line: int, exact: bool) -> str:
    """Atomics on global memory: lanes of a sector share packets, as `machine.coalescing` says."""
    name = f"packets_{size}_{sector}_{line}_{'atomic' if exact else 'reduction'}"
    to_sector, to_line = log2(sector // size), log2(line // sector)

    def body(page: Page) -> str:
        units = _shifted(page, "%v", to_sector)
        return _packets(page, "%v" if exact else _reduction_keys(page, size), units, _shifted(page, units, to_line))

    return build.rule(name, lambda: function(build, "i64", name, f"{V} %v, i32 %mask", body))


def _reduction_keys(page: Page, size: int) -> str:
    words = page.let(f"mul {V} %v, {splat('i32', size // 4)}", "words") if size > 4 else "%v"
    lines, key = _shifted(page, words, 5), page.let(f"and {V} {words}, {splat('i32', 31)}", "key")
    for place, fold in enumerate(coalescing.REDUCTION_FOLDS, 5):
        folded = page.let(f"and {V} {lines}, {splat('i32', fold)}", "folded")
        ones = page.intrinsic("llvm.ctpop", V, folded, hint="ones")
        parity = page.let(f"and {V} {ones}, {splat('i32', 1)}", "parity")
        bit = page.let(f"shl {V} {parity}, {splat('i32', place)}", "bit")
        key = page.let(f"or {V} {key}, {bit}", "key")
    return key


def _packets(page: Page, keys: str, units: str, lines: str) -> str:
    """Packets opened and different lines met, lane by lane. A lane that was not yet looked at has the packet -1."""
    cells = {name: page.slot(V, name) for name in ("packets", "keys", "units", "lines")}
    none, never = splat("i32", -1), splat("i32", (1 << 31) - 1)
    for name, values in (("packets", none), ("keys", keys), ("units", units), ("lines", lines)):
        page.store(V, values, cells[name])
    totals = {name: page.slot("i32", name) for name in ("left", "opened", "lines.seen")}
    for name, start in (("left", "%mask"), ("opened", "0"), ("lines.seen", "0")):
        page.store("i32", start, totals[name])
    head, turn, done = page.label("head"), page.label("turn"), page.label("done")
    page.jump(head)
    page.place(head)
    left = page.load("i32", totals["left"], "left")
    page.branch(page.let(f"icmp ne i32 {left}, 0", "more"), turn, done)
    page.place(turn)
    lane = page.call("i32", "llvm.cttz.i32", ("i32", left), ("i1", "true"), hint="lane")
    known = page.load(V, cells["packets"], "known")

    def chosen_packets(name: str, newer: str, otherwise: str) -> str:
        """Packets of the lanes that share this lane's number and are newer than one."""
        own = page.load("i32", page.element("i32", cells[name], lane, width="i32"), "own")
        equal = page.let(f"icmp eq {V} {page.load(V, cells[name], name)}, {broadcast(page, 'i32', own)}", "equal")
        later = page.let(f"icmp sgt {V} {known}, {newer}", "later")
        both = page.let(f"and {many('i1')} {equal}, {later}", "both")
        return page.let(f"select {many('i1')} {both}, {V} {known}, {V} {otherwise}", "packets")

    newest = page.call("i32", "llvm.vector.reduce.smax.v32i32", (V, chosen_packets("keys", none, none)), hint="newest")
    joined = chosen_packets("units", broadcast(page, "i32", newest), never)
    first = page.call("i32", "llvm.vector.reduce.smin.v32i32", (V, joined), hint="first")
    opened = page.load("i32", totals["opened"], "opened")
    packet = page.call("i32", "llvm.smin.i32", ("i32", first), ("i32", opened), hint="packet")
    page.store("i32", packet, page.element("i32", cells["packets"], lane, width="i32"))
    met = page.call("i32", "llvm.vector.reduce.smax.v32i32", (V, chosen_packets("lines", none, none)), hint="met")
    for total, old, new in (("opened", packet, opened), ("lines.seen", met, "-1")):
        more = page.let(f"zext i1 {page.let(f'icmp eq i32 {old}, {new}', 'new')} to i32", "new")
        page.store("i32", page.let(f"add i32 {page.load('i32', totals[total])}, {more}", "sum"), totals[total])
    page.store("i32", page.let(f"and i32 {left}, {page.let(f'sub i32 {left}, 1', 'rest')}", "left"), totals["left"])
    page.jump(head)
    page.place(done)
    return _pack(page, page.load("i32", totals["opened"]), page.load("i32", totals["lines.seen"]))


# ------------------------------------------------------------------ shared memory
def wavefronts(build: Build, kind: str, size: int) -> str:
    """Accesses to shared memory: wavefronts, and those beyond one a phase."""
    device = build.options.device
    name = f"{kind}_{size}"
    phases = max(1, 32 * size // (device.banks * device.bank_width))
    unit = max(size, device.bank_width)
    groups = device.banks * device.bank_width // unit
    every_lane = bank_kind(kind, device) == banks.ATOMIC
    merging = bank_kind(kind, device) == banks.LOAD and phases > 1
    worst = _worst_bank(build, groups, every_lane)

    def cost(page: Page, units: str, turns: int) -> str:
        low, high = "0", "0"
        for turn in range(turns):
            width = 32 // turns
            lanes = ((1 << width) - 1) << (turn * width)
            part = page.let(f"and i32 %mask, {lanes - (1 << 32) if lanes >> 31 else lanes}", "part")
            most = page.call("i32", worst, (V, units), ("i32", part), hint="most")
            some = page.let(f"zext i1 {page.let(f'icmp ne i32 {part}, 0', 'some')} to i32", "some")
            low = page.let(f"add i32 {low}, {most}", "wavefronts")
            high = page.let(f"add i32 {high}, {page.let(f'sub i32 {most}, {some}', 'beyond')}", "conflicts")
        return _pack(page, low, high)

    def body(page: Page) -> str:
        units = _shifted(page, "%v", log2(unit // size))
        if not merging:
            return cost(page, units, phases)
        merged = page.let(f"or i1 {_merges(page, 1)}, {_merges(page, 2)}", "merged")
        half, whole = page.label("half"), page.label("whole")
        page.branch(merged, half, whole)
        page.place(half)
        page.do(f"ret i64 {cost(page, units, phases // 2)}")
        page.place(whole)
        return cost(page, units, phases)

    return build.rule(name, lambda: function(build, "i64", name, f"{V} %v, i32 %mask", body))


def _merges(page: Page, distance: int) -> str:
    """Whether each active lane has the element of the lane at that xor distance, or that one is inactive."""
    order = [lane ^ distance for lane in IOTA]
    differ = page.let(f"icmp ne {V} %v, {_shuffle(page, '%v', vector('i32', order))}", "differ")
    active = chosen(page, "%mask")
    there = page.let(f"shufflevector {many('i1')} {active}, {many('i1')} poison, {V} {vector('i32', order)}", "there")
    both = page.let(f"and {many('i1')} {active}, {there}", "both")
    wrong = _bits(page, page.let(f"and {many('i1')} {differ}, {both}", "wrong"))
    return page.let(f"icmp eq i32 {wrong}, 0", "merges")


def _worst_bank(build: Build, groups: int, every_lane: bool) -> str:
    """The most units (or lanes) that one group of banks must deliver to the active lanes."""
    name = f"worst_of_{groups}_{'lanes' if every_lane else 'units'}"

    def body(page: Page) -> str:
        none, some, slow, easy = (page.label(h) for h in ("none", "some", "slow", "easy"))
        page.branch(page.let("icmp eq i32 %mask, 0", "empty"), none, some)
        page.place(none)
        page.do("ret i32 0")
        page.place(some)
        bank = page.let(f"and {V} %v, {splat('i32', groups - 1)}", "bank")
        if groups <= 32:
            _all_apart(page, bank, easy, slow)
            page.place(easy)
            page.do("ret i32 1")
        else:
            page.jump(slow)
        page.place(slow)
        if not every_lane:
            _within_reach(page, groups)
        place = page.let(f"shl {V} {bank}, {splat('i32', 24)}", "place")
        what = vector("i32", IOTA) if every_lane else page.let(f"and {V} %v, {splat('i32', (1 << 24) - 1)}", "unit")
        ordered = _sorted(page, _filled(page, page.let(f"or {V} {place}, {what}", "key")))
        return _longest_run(page, ordered)

    return build.rule(name, lambda: function(build, "i32", name, f"{V} %v, i32 %mask", body))


def _all_apart(page: Page, bank: str, easy: str, slow: str) -> None:
    """Go to `easy` if no two active lanes fall in one bank."""
    bit = page.let(f"shl {V} {splat('i32', 1)}, {bank}", "bit")
    held = page.let(f"select {many('i1')} {chosen(page, '%mask')}, {V} {bit}, {V} zeroinitializer", "held")
    hit = page.call("i32", "llvm.vector.reduce.or.v32i32", (V, held), hint="hit")
    apart = page.let(f"icmp eq i32 {_count(page, hit)}, {_count(page, '%mask')}", "apart")
    page.branch(apart, easy, slow)


def _within_reach(page: Page, groups: int) -> None:
    """Units closer together than there are banks fall in one bank only if they are the same: return 1."""
    filled = _filled(page, "%v")
    high, low = (
        page.call("i32", f"llvm.vector.reduce.{end}.v32i32", (V, filled), hint=end) for end in ("umax", "umin")
    )
    near = page.let(f"icmp ult i32 {page.let(f'sub i32 {high}, {low}', 'reach')}, {groups}", "near")
    once, sort = page.label("once"), page.label("sort")
    page.branch(near, once, sort)
    page.place(once)
    page.do("ret i32 1")
    page.place(sort)


def _longest_run(page: Page, ordered: str) -> str:
    """The most different keys of one bank, the banks being their top 8 bits."""
    new = page.let(f"zext {many('i1')} {_changes(page, ordered)} to {V}", "new")
    rank = new
    for distance in (1, 2, 4, 8, 16):
        order = vector("i32", (lane - distance if lane >= distance else 32 for lane in IOTA))
        moved = page.let(f"shufflevector {V} {rank}, {V} zeroinitializer, {V} {order}", "moved")
        rank = page.let(f"add {V} {rank}, {moved}", "rank")
    begins = _changes(page, _shifted(page, ordered, 24))
    start = page.let(f"select {many('i1')} {begins}, {V} {rank}, {V} zeroinitializer", "start")
    for distance in (1, 2, 4, 8, 16):
        moved = _shuffle(page, start, vector("i32", (max(lane - distance, 0) for lane in IOTA)))
        start = page.intrinsic("llvm.umax", V, start, moved, hint="start")
    run = page.let(f"sub {V} {rank}, {start}", "run")
    longest = page.call("i32", "llvm.vector.reduce.umax.v32i32", (V, run), hint="longest")
    return page.let(f"add i32 {longest}, 1", "most")
