"""The rules of `machine.coalescing` and `machine.banks` as functions of the module, of 32 element indices and a mask.

Each returns an i64 of two halves: sectors | lines << 32, or wavefronts | conflicts << 32.
tests/machine/test_emitted_rules.py compares them with `machine` for random addresses, masks and devices.
"""

from collections.abc import Callable

from ....ir.access import AccessKind
from ....language.intrinsics import WARP_SIZE
from ....llvm.builder import IOTA, FunctionBuilder, many, splat, vector
from ....llvm.values import broadcast, chosen
from ....machine import banks, coalescing
from ....machine.device import log2
from ..context import CodegenContext

V = many("i32")
NEXT = vector("i32", (min(lane + 1, 31) for lane in IOTA))
BEFORE = vector("i32", (max(lane - 1, 0) for lane in IOTA))
Body = Callable[[FunctionBuilder], str]


def helper_text(context: CodegenContext, result: str, name: str, arguments: str, body: Body) -> str:
    """Return the text of an internal function. body: generates the code and returns the result value."""
    builder = FunctionBuilder()
    builder.reserve("v", "mask", "base", "index", "value", "expected")
    value = body(builder)
    context.builder.declared |= builder.declared
    text = "\n".join([*builder.slots, *builder.lines, f"  ret {result} {value}"])
    return f"define internal {result} @{name}({arguments}) #1 {{\n.entry:\n{text}\n}}"


# ------------------------------------------------------------------ helpers
def _pack(builder: FunctionBuilder, low: str, high: str) -> str:
    a, b = (builder.let(f"zext i32 {v} to i64", "half") for v in (low, high))
    return builder.let(f"or i64 {a}, {builder.let(f'shl i64 {b}, 32', 'half')}", "pair")


def _shuffle(builder: FunctionBuilder, v: str, order: str) -> str:
    return builder.let(f"shufflevector {V} {v}, {V} poison, {V} {order}", "moved")


def _bits(builder: FunctionBuilder, compared: str) -> str:
    return builder.let(f"bitcast {many('i1')} {compared} to i32", "bits")


def _count(builder: FunctionBuilder, mask: str) -> str:
    return builder.call("i32", "llvm.ctpop.i32", ("i32", mask), hint="count")


def _shifted(builder: FunctionBuilder, v: str, shift: int) -> str:
    return builder.let(f"lshr {V} {v}, {splat('i32', shift)}", "units") if shift else v


def _filled(builder: FunctionBuilder, v: str) -> str:
    """Replace inactive lanes by the first active one."""
    first = builder.call("i32", "llvm.cttz.i32", ("i32", "%mask"), ("i1", "false"), hint="first")
    first = builder.let(f"and i32 {first}, 31", "first")
    first_active = builder.let(f"extractelement {V} {v}, i32 {first}", "lane.value")
    return builder.let(
        f"select {many('i1')} {chosen(builder, '%mask')}, {V} {v}, {V} {broadcast(builder, 'i32', first_active)}",
        "filled",
    )


def _sorted(builder: FunctionBuilder, v: str) -> str:
    """Sort in ascending order by a bitonic network of 15 exchanges."""
    for k in (2, 4, 8, 16, 32):
        for j in (n for n in (16, 8, 4, 2, 1) if n < k):
            other = _shuffle(builder, v, vector("i32", (lane ^ j for lane in IOTA)))
            low = builder.intrinsic("llvm.umin", V, v, other, hint="low")
            high = builder.intrinsic("llvm.umax", V, v, other, hint="high")
            take = vector("i1", ("true" if (lane & j == 0) == (lane & k == 0) else "false" for lane in IOTA))
            v = builder.let(f"select {many('i1')} {take}, {V} {low}, {V} {high}", "sorted")
    return v


def _changes(builder: FunctionBuilder, v: str) -> str:
    """Return <32 x i1>: the lane differs from the previous one."""
    return builder.let(f"icmp ne {V} {v}, {_shuffle(builder, v, BEFORE)}", "changes")


def _different(builder: FunctionBuilder, v: str) -> str:
    """Return the number of distinct values of a sorted vector."""
    return builder.let(f"add i32 {_count(builder, _bits(builder, _changes(builder, v)))}, 1", "different")


def _forward(builder: FunctionBuilder, v: str) -> str:
    """Replace inactive lanes by the last active lane before them; lanes before the first active one by lane 0."""
    mask_so_far = "%mask"
    for distance in (1, 2, 4, 8, 16):
        moved = _shuffle(builder, v, vector("i32", (max(lane - distance, 0) for lane in IOTA)))
        v = builder.let(f"select {many('i1')} {chosen(builder, mask_so_far)}, {V} {v}, {V} {moved}", "filled")
        mask_so_far = builder.let(
            f"or i32 {mask_so_far}, {builder.let(f'shl i32 {mask_so_far}, {distance}', 'recorded')}", "recorded"
        )
    return v


# ------------------------------------------------------------------ global memory
def sectors(context: CodegenContext, line: int) -> str:
    """Loads and stores: count the distinct sectors, and lines of 2 ** line sectors, of the active lanes."""

    def exact() -> str:
        def body(builder: FunctionBuilder) -> str:
            ordered = _sorted(builder, _filled(builder, "%v"))
            return _pack(builder, _different(builder, ordered), _different(builder, _shifted(builder, ordered, line)))

        return helper_text(context, "i64", f"sectors_unordered_{line}", f"{V} %v, i32 %mask", body)

    def quick() -> str:
        def body(builder: FunctionBuilder) -> str:
            hints = ("active", "fill", "whole", "test", "fast", "slow", "inactive")
            some, fill, whole, test, fast, slow, empty = (builder.label(hint) for hint in hints)
            builder.branch(builder.let("icmp eq i32 %mask, 0", "none"), empty, some)
            builder.place(empty)
            builder.do("ret i64 0")
            builder.place(some)
            first = builder.block
            builder.branch(builder.let("icmp eq i32 %mask, -1", "full"), test, fill)
            builder.place(fill)
            filled = _forward(builder, _first_lanes(builder))
            builder.jump(whole)
            builder.place(whole)
            builder.jump(test)
            builder.place(test)
            v = builder.phi(V, ("%v", first), (filled, whole), hint="sectors")
            after = _shuffle(builder, v, NEXT)
            rises = _bits(builder, builder.let(f"icmp ult {V} {v}, {after}", "rises"))
            falls = _bits(builder, builder.let(f"icmp ugt {V} {v}, {after}", "falls"))
            both = [builder.let(f"icmp ne i32 {m}, 0", "any") for m in (rises, falls)]
            builder.branch(builder.let(f"and i1 {both[0]}, {both[1]}", "mixed"), slow, fast)
            builder.place(slow)
            _near_sectors(builder, line)
            exact = builder.call("i64", f"sectors_unordered_{line}", (V, "%v"), ("i32", "%mask"), hint="exact")
            builder.do(f"ret i64 {exact}")
            builder.place(fast)
            return _pack(builder, _different(builder, v), _different(builder, _shifted(builder, v, line)))

        return helper_text(context, "i64", f"sectors_{line}", f"{V} %v, i32 %mask", body)

    context.helper(f"sectors_unordered_{line}", exact)
    return context.helper(f"sectors_{line}", quick)


def _near_sectors(builder: FunctionBuilder, line: int) -> None:
    """Return early if all sectors are within 64 of the start of a line: the population count of a bit mask."""
    filled = _filled(builder, "%v")
    low, high = (
        builder.call("i32", f"llvm.vector.reduce.{end}.v32i32", (V, filled), hint=end) for end in ("umin", "umax")
    )
    start = builder.let(f"and i32 {low}, {-(1 << line)}", "start")
    near, far = builder.label("near"), builder.label("far")
    builder.branch(
        builder.let(f"icmp ult i32 {builder.let(f'sub i32 {high}, {start}', 'reach')}, 64", "close"), near, far
    )
    builder.place(near)
    W = many("i64")
    place = builder.let(f"sub {V} {filled}, {broadcast(builder, 'i32', start)}", "place")
    place = builder.let(f"zext {V} {place} to {W}", "place")
    bits = builder.let(f"shl {W} {splat('i64', 1)}, {place}", "bit")
    union = builder.call("i64", "llvm.vector.reduce.or.v32i64", (W, bits), hint="sectors")
    folded = union
    for distance in (1 << n for n in range(line)):
        folded = builder.let(f"or i64 {folded}, {builder.let(f'lshr i64 {folded}, {distance}', 'next')}", "lines")
    folded = builder.let(
        f"and i64 {folded}, {sum(1 << n for n in range(0, 64, 1 << line)) - ((1 << 64) if line == 0 else 0)}"
    )
    sectors, lines = (builder.call("i64", "llvm.ctpop.i64", ("i64", m), hint="count") for m in (union, folded))
    high_half = builder.let(f"shl i64 {lines}, 32", "lines")
    builder.do(f"ret i64 {builder.let(f'or i64 {sectors}, {high_half}', 'pair')}")
    builder.place(far)


def _first_lanes(builder: FunctionBuilder) -> str:
    """Return the vector with the lanes before the first active one replaced by its value."""
    first = builder.call("i32", "llvm.cttz.i32", ("i32", "%mask"), ("i1", "false"), hint="first")
    first_active = builder.let(
        f"extractelement {V} %v, i32 {builder.let(f'and i32 {first}, 31', 'first')}", "lane.value"
    )
    front = builder.let(f"icmp ult {V} {vector('i32', IOTA)}, {broadcast(builder, 'i32', first)}", "front")
    return builder.let(f"select {many('i1')} {front}, {V} {broadcast(builder, 'i32', first_active)}, {V} %v", "filled")


def packets(context: CodegenContext, size: int, sector: int, line: int) -> str:
    """Global atomics: count the packets of the lanes of each sector, by the rule of `machine.coalescing`."""
    name = f"packets_{size}_{sector}_{line}"
    to_sector, to_line = log2(sector // size), log2(line // sector)

    def body(builder: FunctionBuilder) -> str:
        units = _shifted(builder, "%v", to_sector)
        return _packets(builder, _atomic_keys(builder, size), units, _shifted(builder, units, to_line))

    return context.helper(name, lambda: helper_text(context, "i64", name, f"{V} %v, i32 %mask", body))


def _atomic_keys(builder: FunctionBuilder, size: int) -> str:
    words = builder.let(f"mul {V} %v, {splat('i32', size // 4)}", "words") if size > 4 else "%v"
    lines, key = _shifted(builder, words, 5), builder.let(f"and {V} {words}, {splat('i32', 31)}", "key")
    for place, fold in enumerate(coalescing.ATOMIC_FOLDS, 5):
        folded = builder.let(f"and {V} {lines}, {splat('i32', fold)}", "folded")
        ones = builder.intrinsic("llvm.ctpop", V, folded, hint="ones")
        parity = builder.let(f"and {V} {ones}, {splat('i32', 1)}", "parity")
        bit = builder.let(f"shl {V} {parity}, {splat('i32', place)}", "bit")
        key = builder.let(f"or {V} {key}, {bit}", "key")
    return key


def _packets(builder: FunctionBuilder, keys: str, units: str, lines: str) -> str:
    """Count opened packets and distinct lines, lane by lane. A lane without a packet has the packet -1."""
    cells = {name: builder.slot(V, name) for name in ("packets", "keys", "units", "lines")}
    none, never = splat("i32", -1), splat("i32", (1 << 31) - 1)
    for name, values in (("packets", none), ("keys", keys), ("units", units), ("lines", lines)):
        builder.store(V, values, cells[name])
    totals = {name: builder.slot("i32", name) for name in ("left", "opened", "lines.seen")}
    for name, start in (("left", "%mask"), ("opened", "0"), ("lines.seen", "0")):
        builder.store("i32", start, totals[name])
    head, iteration, exit_label = builder.label("head"), builder.label("lane"), builder.label("done")
    builder.jump(head)
    builder.place(head)
    left = builder.load("i32", totals["left"], "left")
    builder.branch(builder.let(f"icmp ne i32 {left}, 0", "more"), iteration, exit_label)
    builder.place(iteration)
    lane = builder.call("i32", "llvm.cttz.i32", ("i32", left), ("i1", "true"), hint="lane")
    mask_so_far = builder.load(V, cells["packets"], "recorded")

    def chosen_packets(name: str, newer: str, otherwise: str) -> str:
        """Return the packets of the lanes with this lane's value and a packet newer than `newer`."""
        own = builder.load("i32", builder.element("i32", cells[name], lane, width="i32"), "own")
        equal = builder.let(
            f"icmp eq {V} {builder.load(V, cells[name], name)}, {broadcast(builder, 'i32', own)}", "equal"
        )
        later = builder.let(f"icmp sgt {V} {mask_so_far}, {newer}", "later")
        both = builder.let(f"and {many('i1')} {equal}, {later}", "both")
        return builder.let(f"select {many('i1')} {both}, {V} {mask_so_far}, {V} {otherwise}", "packets")

    newest = builder.call(
        "i32", "llvm.vector.reduce.smax.v32i32", (V, chosen_packets("keys", none, none)), hint="newest"
    )
    joined = chosen_packets("units", broadcast(builder, "i32", newest), never)
    first = builder.call("i32", "llvm.vector.reduce.smin.v32i32", (V, joined), hint="first")
    opened = builder.load("i32", totals["opened"], "opened")
    packet = builder.call("i32", "llvm.smin.i32", ("i32", first), ("i32", opened), hint="packet")
    builder.store("i32", packet, builder.element("i32", cells["packets"], lane, width="i32"))
    union = builder.call(
        "i32", "llvm.vector.reduce.smax.v32i32", (V, chosen_packets("lines", none, none)), hint="union"
    )
    for total, old, new in (("opened", packet, opened), ("lines.seen", union, "-1")):
        more = builder.let(f"zext i1 {builder.let(f'icmp eq i32 {old}, {new}', 'new')} to i32", "new")
        builder.store("i32", builder.let(f"add i32 {builder.load('i32', totals[total])}, {more}", "sum"), totals[total])
    builder.store(
        "i32", builder.let(f"and i32 {left}, {builder.let(f'sub i32 {left}, 1', 'rest')}", "left"), totals["left"]
    )
    builder.jump(head)
    builder.place(exit_label)
    return _pack(builder, builder.load("i32", totals["opened"]), builder.load("i32", totals["lines.seen"]))


# ------------------------------------------------------------------ shared memory
def wavefronts(context: CodegenContext, kind: AccessKind, size: int) -> str:
    """Shared accesses: count wavefronts, and conflicts: the wavefronts in excess of one per phase."""
    device = context.options.device
    name = f"{kind.space}_{kind.operation}_{size}"
    phases = max(1, WARP_SIZE * size // (device.banks * device.bank_width))
    unit = max(size, device.bank_width)
    groups = device.banks * device.bank_width // unit
    counted_as = banks.kind_of(kind.operation, device)
    every_lane = counted_as in (banks.ATOMIC, banks.SWAP)
    twice = counted_as == banks.SWAP
    merging = counted_as == banks.LOAD and phases > 1
    worst = _worst_bank(context, groups, every_lane)

    def cost(builder: FunctionBuilder, units: str, phases: int) -> str:
        low, high = "0", "0"
        for phase in range(phases):
            width = WARP_SIZE // phases
            lanes = ((1 << width) - 1) << (phase * width)
            phase_mask = builder.let(f"and i32 %mask, {lanes - (1 << 32) if lanes >> 31 else lanes}", "part")
            most = builder.call("i32", worst, (V, units), ("i32", phase_mask), hint="most")
            some = builder.let(f"zext i1 {builder.let(f'icmp ne i32 {phase_mask}, 0', 'some')} to i32", "some")
            passes = builder.let(f"shl i32 {most}, 1", "passes") if twice else most
            low = builder.let(f"add i32 {low}, {passes}", "wavefronts")
            high = builder.let(f"add i32 {high}, {builder.let(f'sub i32 {most}, {some}', 'outside')}", "conflicts")
        return _pack(builder, low, high)

    def body(builder: FunctionBuilder) -> str:
        units = _shifted(builder, "%v", log2(unit // size))
        if not merging:
            return cost(builder, units, phases)
        merged = builder.let(f"or i1 {_merges(builder, 1)}, {_merges(builder, 2)}", "merged")
        half, whole = builder.label("half"), builder.label("whole")
        builder.branch(merged, half, whole)
        builder.place(half)
        builder.do(f"ret i64 {cost(builder, units, phases // 2)}")
        builder.place(whole)
        return cost(builder, units, phases)

    return context.helper(name, lambda: helper_text(context, "i64", name, f"{V} %v, i32 %mask", body))


def _merges(builder: FunctionBuilder, distance: int) -> str:
    """Return an i1: each active lane accesses the element of the lane at this xor distance, or that lane is inactive."""
    order = [lane ^ distance for lane in IOTA]
    differ = builder.let(f"icmp ne {V} %v, {_shuffle(builder, '%v', vector('i32', order))}", "differ")
    active = chosen(builder, "%mask")
    neighbour_active = builder.let(
        f"shufflevector {many('i1')} {active}, {many('i1')} poison, {V} {vector('i32', order)}", "exists"
    )
    both = builder.let(f"and {many('i1')} {active}, {neighbour_active}", "both")
    wrong = _bits(builder, builder.let(f"and {many('i1')} {differ}, {both}", "invalid"))
    return builder.let(f"icmp eq i32 {wrong}, 0", "merges")


def _worst_bank(context: CodegenContext, groups: int, every_lane: bool) -> str:
    """Return the largest number of units (or lanes) of the active lanes in one group of banks."""
    name = f"worst_of_{groups}_{'lanes' if every_lane else 'units'}"

    def body(builder: FunctionBuilder) -> str:
        none, some, slow, easy = (builder.label(h) for h in ("none", "some", "slow", "easy"))
        builder.branch(builder.let("icmp eq i32 %mask, 0", "empty"), none, some)
        builder.place(none)
        builder.do("ret i32 0")
        builder.place(some)
        bank = builder.let(f"and {V} %v, {splat('i32', groups - 1)}", "bank")
        if groups <= 32:
            _no_conflict(builder, bank, easy, slow)
            builder.place(easy)
            builder.do("ret i32 1")
        else:
            builder.jump(slow)
        builder.place(slow)
        if not every_lane:
            _near_units(builder, groups)
        place = builder.let(f"shl {V} {bank}, {splat('i32', 24)}", "place")
        what = vector("i32", IOTA) if every_lane else builder.let(f"and {V} %v, {splat('i32', (1 << 24) - 1)}", "unit")
        ordered = _sorted(builder, _filled(builder, builder.let(f"or {V} {place}, {what}", "key")))
        return _longest_run(builder, ordered)

    return context.helper(name, lambda: helper_text(context, "i32", name, f"{V} %v, i32 %mask", body))


def _no_conflict(builder: FunctionBuilder, bank: str, easy: str, slow: str) -> None:
    """Branch to `easy` if no two active lanes access one bank."""
    bit = builder.let(f"shl {V} {splat('i32', 1)}, {bank}", "bit")
    unit_of_active = builder.let(
        f"select {many('i1')} {chosen(builder, '%mask')}, {V} {bit}, {V} zeroinitializer", "selected"
    )
    hit = builder.call("i32", "llvm.vector.reduce.or.v32i32", (V, unit_of_active), hint="hit")
    distinct_banks = builder.let(f"icmp eq i32 {_count(builder, hit)}, {_count(builder, '%mask')}", "distinct")
    builder.branch(distinct_banks, easy, slow)


def _near_units(builder: FunctionBuilder, groups: int) -> None:
    """Return 1 if the range of units is smaller than the number of banks: only equal units then share a bank."""
    filled = _filled(builder, "%v")
    high, low = (
        builder.call("i32", f"llvm.vector.reduce.{end}.v32i32", (V, filled), hint=end) for end in ("umax", "umin")
    )
    near = builder.let(f"icmp ult i32 {builder.let(f'sub i32 {high}, {low}', 'reach')}, {groups}", "near")
    once, sort = builder.label("single"), builder.label("sort")
    builder.branch(near, once, sort)
    builder.place(once)
    builder.do("ret i32 1")
    builder.place(sort)


def _longest_run(builder: FunctionBuilder, ordered: str) -> str:
    """Return the largest number of distinct keys in one bank; the top 8 bits of a key are the bank."""
    new = builder.let(f"zext {many('i1')} {_changes(builder, ordered)} to {V}", "new")
    rank = new
    for distance in (1, 2, 4, 8, 16):
        order = vector("i32", (lane - distance if lane >= distance else 32 for lane in IOTA))
        moved = builder.let(f"shufflevector {V} {rank}, {V} zeroinitializer, {V} {order}", "moved")
        rank = builder.let(f"add {V} {rank}, {moved}", "rank")
    begins = _changes(builder, _shifted(builder, ordered, 24))
    start = builder.let(f"select {many('i1')} {begins}, {V} {rank}, {V} zeroinitializer", "start")
    for distance in (1, 2, 4, 8, 16):
        moved = _shuffle(builder, start, vector("i32", (max(lane - distance, 0) for lane in IOTA)))
        start = builder.intrinsic("llvm.umax", V, start, moved, hint="start")
    run = builder.let(f"sub {V} {rank}, {start}", "run")
    longest = builder.call("i32", "llvm.vector.reduce.umax.v32i32", (V, run), hint="longest")
    return builder.let(f"add i32 {longest}, 1", "most")
