"""Shuffles, votes and warp barriers: lanes exchange values, and must be there to do so."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...language.types import BOOL, I32, U32
from ...runtime.engine import Request
from ...sanitizer import barriers
from .builder import FULL, IOTA, LANES, many, scalar_type, splat, suffix, vector
from .context import Build
from .fault_records import Number, note
from .races import tracking
from .values import Value, bits, broadcast, chosen, lanes

V = many("i32")
EACH_BIT = vector("i32", (1 << lane if lane < 31 else -(1 << 31) for lane in IOTA))


def _rarely(build: Build, found: str, hint: str) -> str:
    """Go aside when a mask is not empty; the label to come back to."""
    page = build.page
    aside, on = page.label(hint), page.label("on")
    page.branch(page.let(f"icmp eq i32 {found}, 0", "fine"), on, aside, rarely=True)
    page.place(aside)
    return on


def participants(build: Build, node: ir.Shuffle | ir.Vote | ir.WarpBarrier, what: str, site: int) -> None:
    """Report a mask that names lanes which run but are not here, and lanes that their own mask leaves out."""
    page, mask = build.page, build.expression(node.mask)
    if build.mask is None and mask.constant is not None and int(mask.constant) in (FULL, 0xFFFFFFFF):
        return
    alive = page.load("i32", "%.alive", "alive")
    away = page.let(f"and i32 {alive}, {page.let(f'xor i32 {build.active()}, -1', 'absent')}", "away")
    if mask.uniform:
        missing = page.let(f"and i32 {mask.ref}, {away}", "missing")
        some = page.let(f"icmp ne i32 {missing}, 0", "some")
        bad = page.let(f"select i1 {some}, i32 {build.active()}, i32 0", "bad")
        outside = page.let(f"and i32 {build.active()}, {page.let(f'xor i32 {mask.ref}, -1', 'unnamed')}", "unnamed")
        missing_value = Value(U32, missing)
    else:
        missing = page.let(f"and {V} {lanes(page, mask)}, {broadcast(page, 'i32', away)}", "missing")
        bad = _where(build, missing, "icmp ne")
        outside = _where(build, page.let(f"and {V} {lanes(page, mask)}, {EACH_BIT}", "own"), "icmp eq")
        missing_value = Value(U32, missing, None)

    def inactive(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
        return barriers.inactive_lanes(node.span, what, place, int(found[0]), int(found[1]))

    def left_out(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
        return barriers.not_in_mask(node.span, what, place, int(found[0]))

    on = _rarely(build, bad, "convergence")
    note(build, build.records.record("convergence", site, [U32, U32], inactive), bad, [mask, missing_value])
    page.jump(on)
    page.place(on)
    on = _rarely(build, outside, "left.out")
    note(build, build.records.record("mask", site, [U32], left_out), outside, [mask])
    page.jump(on)
    page.place(on)


def syncwarp(build: Build, node: ir.WarpBarrier) -> None:
    """Lanes run in step already; the mask may be wrong, and accesses are ordered."""
    participants(build, node, "syncwarp", node.site)
    if build.plan.tracked:
        page, masks = build.page, build.scratch("join.masks", V)
        page.store(V, lanes(page, build.expression(node.mask)), masks)
        alive = page.load("i32", "%.alive", "alive")
        tracking.happens(build, "join", ("i32", build.active()), ("i32", alive), ("ptr", masks))


def _where(build: Build, values: str, test: str) -> str:
    """An i32 of the active lanes whose value passes a test against 0."""
    page = build.page
    holds = page.let(f"{test} {V} {values}, zeroinitializer", "holds")
    found = page.let(f"bitcast {many('i1')} {holds} to i32", "holds")
    return page.let(f"and i32 {found}, {build.active()}", "holds")


# ------------------------------------------------------------------ shuffles
def shuffle(build: Build, node: ir.Shuffle, site: int) -> Value:
    """Each lane's value from another lane of its group; its own where there is none."""
    page = build.page
    participants(build, node, "shuffle", site)
    value, given = build.expression(node.value), build.expression(node.lane)
    element = scalar_type(value.type)
    own = lanes(page, value)
    if given.constant is not None:
        source = vector("i32", _sources(node, int(given.constant) & 31))
        moved = page.let(f"shufflevector {many(element)} {own}, {many(element)} poison, {V} {source}", "moved")
    else:
        source = _source(build, node, lanes(page, given))
        moved = _permuted(build, value, own, source)
    if build.mask is None:
        return Value(value.type, moved, None)
    return Value(value.type, _only_active(build, node, site, own, source, moved, element), None)


def _sources(node: ir.Shuffle, given: int) -> list[int]:
    """The lane each lane reads, for a known argument."""
    found = []
    for lane in IOTA:
        first = lane & ~(node.width - 1)
        last = first + node.width - 1
        match node.mode:
            case "idx":
                found.append(first + (given & (node.width - 1)))
            case "up":
                found.append(lane if lane - given < first else lane - given)
            case "down":
                found.append(lane if lane + given > last else lane + given)
            case "xor":
                found.append(lane if lane ^ given > last else lane ^ given)
    return found


def _source(build: Build, node: ir.Shuffle, given: str) -> str:
    """The lane each lane reads, for an argument known only when the kernel runs."""
    page = build.page
    lane = vector("i32", IOTA)
    first = vector("i32", (n & ~(node.width - 1) for n in IOTA))
    last = vector("i32", (n | (node.width - 1) for n in IOTA))
    given = page.let(f"and {V} {given}, {splat('i32', 31)}", "given")
    if node.mode == "idx":
        within = page.let(f"and {V} {given}, {splat('i32', node.width - 1)}", "within")
        return page.let(f"add {V} {first}, {within}", "source")
    word = {"up": "sub", "down": "add", "xor": "xor"}[node.mode]
    there = page.let(f"{word} {V} {lane}, {given}", "there")
    test = f"icmp slt {V} {there}, {first}" if node.mode == "up" else f"icmp sgt {V} {there}, {last}"
    outside = page.let(test, "outside")
    return page.let(f"select {many('i1')} {outside}, {V} {lane}, {V} {there}", "source")


def _permuted(build: Build, value: Value, own: str, source: str) -> str:
    """own[source], through memory: LLVM has no permutation that is known only when it runs."""
    page = build.page
    if value.type is BOOL:
        wide = page.let(f"zext {many('i1')} {own} to {V}", "wide")
        moved = _permuted(build, Value(I32, wide, None), wide, source)
        return page.let(f"trunc {V} {moved} to {many('i1')}", "moved")
    element = scalar_type(value.type)
    if value.type.size < 4:
        wide = page.let(f"zext {many(element)} {own} to {V}", "wide")
        moved = _permuted(build, Value(I32, wide, None), wide, source)
        return page.let(f"trunc {V} {moved} to {many(element)}", "moved")
    slot = page.slot(many(element), "shuffled")
    page.store(many(element), own, slot)
    pointers = page.let(f"getelementptr {element}, ptr {slot}, {V} {source}", "at")
    function = f"llvm.masked.gather.{suffix(many(element))}.v32p0"
    arguments = ((many("ptr"), pointers), (many("i1"), splat("i1", "true")), (many(element), "zeroinitializer"))
    return page.call(many(element), function, *arguments, hint="moved")


def _only_active(build: Build, node: ir.Shuffle, site: int, own: str, source: str, moved: str, element: str) -> str:
    """A lane that reads an inactive one keeps its own value, and that is a fault."""
    page = build.page
    shift = page.let(f"lshr {V} {broadcast(page, 'i32', build.active())}, {source}", "there")
    odd = page.let(f"trunc {V} {shift} to {many('i1')}", "there")
    there = page.let(f"bitcast {many('i1')} {odd} to i32", "there")
    bad = page.let(f"and i32 {build.active()}, {page.let(f'xor i32 {there}, -1', 'away')}", "bad")

    def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
        return barriers.reads_inactive(node.span, place, int(found[0]))

    on = _rarely(build, bad, "reads.inactive")
    note(build, build.records.record("shuffle", site, [I32], tell), bad, [Value(I32, source, None)])
    page.jump(on)
    page.place(on)
    return page.let(f"select {many('i1')} {chosen(page, bad)}, {many(element)} {own}, {many(element)} {moved}", "moved")


# ------------------------------------------------------------------ votes
def vote(build: Build, node: ir.Vote, site: int) -> Value:
    """Predicates or values of the named active lanes, combined."""
    page = build.page
    if node.mode == "active":
        return Value(U32, build.active())
    participants(build, node, f"{node.mode} vote", site)
    mask, value = build.expression(node.mask), build.expression(node.value)
    if node.mode == "match":
        return _match(build, mask, value)
    holds = page.let(f"and i32 {bits(page, value)}, {build.active()}", "holds")
    if not mask.uniform:
        return _vote_by_lane(build, node, lanes(page, mask), holds)
    named = page.let(f"and i32 {mask.ref}, {build.active()}", "named")
    holds = page.let(f"and i32 {holds}, {named}", "holds")
    match node.mode:
        case "ballot":
            return Value(U32, holds)
        case "any":
            return Value(BOOL, page.let(f"icmp ne i32 {holds}, 0", "any"))
    return Value(BOOL, page.let(f"icmp eq i32 {holds}, {named}", "all"))


def _vote_by_lane(build: Build, node: ir.Vote, masks: str, holds: str) -> Value:
    page = build.page
    named = page.let(f"and {V} {masks}, {broadcast(page, 'i32', build.active())}", "named")
    each = page.let(f"and {V} {named}, {broadcast(page, 'i32', holds)}", "holds")
    match node.mode:
        case "ballot":
            return Value(U32, each, None)
        case "any":
            return Value(BOOL, page.let(f"icmp ne {V} {each}, zeroinitializer", "any"), None)
    return Value(BOOL, page.let(f"icmp eq {V} {each}, {named}", "all"), None)


def _match(build: Build, mask: Value, value: Value) -> Value:
    """For each lane the lanes with the same bits."""
    page = build.page
    size = 8 * value.type.size
    own = lanes(page, value)
    if value.type.is_float:
        own = page.let(f"bitcast {many(scalar_type(value.type))} {own} to {many(f'i{size}')}", "bits")
    found = "zeroinitializer"
    for lane in range(LANES):
        one = page.let(f"extractelement {many(f'i{size}')} {own}, i64 {lane}", "one")
        equal = page.let(f"icmp eq {many(f'i{size}')} {own}, {broadcast(page, f'i{size}', one)}", "equal")
        bit = splat("i32", 1 << lane if lane < 31 else -(1 << 31))
        either = page.let(f"select {many('i1')} {equal}, {V} {bit}, {V} zeroinitializer", "bit")
        found = page.let(f"or {V} {found}, {either}", "equal")
    named = page.let(f"and {V} {lanes(page, mask)}, {broadcast(page, 'i32', build.active())}", "named")
    return Value(U32, page.let(f"and {V} {found}, {named}", "match"), None)
