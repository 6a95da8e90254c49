"""Code generation for shuffles, votes and warp barriers, with checks of the named lanes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.effects import TABLE, source_lanes
from ...language.types import BOOL, I32, U32
from ...llvm.builder import FULL, IOTA, LANES, many, scalar_type, splat, suffix, vector
from ...llvm.values import Value, bits, broadcast, chosen, lanes
from ...runtime.engine import Request
from ...sanitizer import barriers
from .context import CodegenContext
from .fault_records import Number
from .faults import record_fault
from .races import tracking

V = many("i32")
EACH_BIT = vector("i32", (1 << lane if lane < 31 else -(1 << 31) for lane in IOTA))


def participants(context: CodegenContext, node: Any, site: int) -> None:
    """Report lanes of the mask that are inactive and have not returned, and lanes omitted by their own mask."""
    builder, mask = context.builder, context.expression(node.mask)
    what = TABLE[type(node)].label(node)
    if context.mask is None and mask.constant is not None and int(mask.constant) in (FULL, 0xFFFFFFFF):
        return
    alive = str(FULL) if TABLE[type(node)].aligned else builder.load("i32", "%.alive", "alive")
    away = builder.let(f"and i32 {alive}, {builder.let(f'xor i32 {context.active()}, -1', 'absent')}", "absent")
    if mask.uniform:
        missing = builder.let(f"and i32 {mask.ref}, {away}", "missing")
        some = builder.let(f"icmp ne i32 {missing}, 0", "some")
        bad = builder.let(f"select i1 {some}, i32 {context.active()}, i32 0", "bad")
        omitted = builder.let(
            f"and i32 {context.active()}, {builder.let(f'xor i32 {mask.ref}, -1', 'unnamed')}", "unnamed"
        )
        missing_value = Value(U32, missing)
    else:
        missing = builder.let(f"and {V} {lanes(builder, mask)}, {broadcast(builder, 'i32', away)}", "missing")
        bad = _lanes_with(context, missing, "icmp ne")
        omitted = _lanes_with(context, builder.let(f"and {V} {lanes(builder, mask)}, {EACH_BIT}", "own"), "icmp eq")
        missing_value = Value(U32, missing, None)

    def inactive(place: str, request: Request, result: Sequence[Number]) -> Diagnostic:
        return barriers.inactive_lanes(node.span, what, place, int(result[0]), int(result[1]))

    def left_out(place: str, request: Request, result: Sequence[Number]) -> Diagnostic:
        return barriers.not_in_mask(node.span, what, place, int(result[0]))

    with builder.when_any(bad, "convergence", rarely=True):
        record = context.records.record("convergence", site, [U32, U32], inactive)
        record_fault(context, record, bad, [mask, missing_value])
    with builder.when_any(omitted, "left.out", rarely=True):
        record_fault(context, context.records.record("mask", site, [U32], left_out), omitted, [mask])


def syncwarp(context: CodegenContext, node: ir.WarpBarrier) -> None:
    """Generate a warp barrier. Lanes execute in lockstep, so that it checks its mask and orders accesses in the race state."""
    participants(context, node, node.site)
    if context.plan.tracked:
        builder, masks = context.builder, context.scratch("join.masks", V)
        builder.store(V, lanes(builder, context.expression(node.mask)), masks)
        alive = builder.load("i32", "%.alive", "alive")
        tracking.notify(context, "syncwarp", ("i32", context.active()), ("i32", alive), ("ptr", masks))


def _lanes_with(context: CodegenContext, values: str, test: str) -> str:
    """Return an i32 of the active lanes with a value that passes a test against 0."""
    builder = context.builder
    holds = builder.let(f"{test} {V} {values}, zeroinitializer", "holds")
    result = builder.let(f"bitcast {many('i1')} {holds} to i32", "holds")
    return builder.let(f"and i32 {result}, {context.active()}", "holds")


# ------------------------------------------------------------------ shuffles
def shuffle(context: CodegenContext, node: ir.Shuffle, site: int) -> Value:
    """Return the value of another lane of each lane's group; its own value if the lane does not exist."""
    builder = context.builder
    participants(context, node, site)
    value, argument = context.expression(node.value), context.expression(node.lane)
    element = scalar_type(value.type)
    own = lanes(builder, value)
    if argument.constant is not None:
        source = vector("i32", source_lanes(node, np.array([int(argument.constant) & 31], np.int32)).tolist())
        moved = builder.let(f"shufflevector {many(element)} {own}, {many(element)} poison, {V} {source}", "moved")
    else:
        source = _source(context, node, lanes(builder, argument))
        moved = _permuted(context, value, own, source)
    if context.mask is None:
        return Value(value.type, moved, None)
    return Value(value.type, _only_active(context, node, site, own, source, moved, element), None)


def _source(context: CodegenContext, node: ir.Shuffle, argument: str) -> str:
    """Return the source lane of each lane for a variable argument."""
    builder = context.builder
    lane = vector("i32", IOTA)
    first = vector("i32", (n & ~(node.width - 1) for n in IOTA))
    last = vector("i32", (n | (node.width - 1) for n in IOTA))
    argument = builder.let(f"and {V} {argument}, {splat('i32', 31)}", "argument")
    if node.mode == "idx":
        within = builder.let(f"and {V} {argument}, {splat('i32', node.width - 1)}", "offset")
        return builder.let(f"add {V} {first}, {within}", "source")
    word = {"up": "sub", "down": "add", "xor": "xor"}[node.mode]
    exists = builder.let(f"{word} {V} {lane}, {argument}", "exists")
    test = f"icmp slt {V} {exists}, {first}" if node.mode == "up" else f"icmp sgt {V} {exists}, {last}"
    beyond = builder.let(test, "outside")
    return builder.let(f"select {many('i1')} {beyond}, {V} {lane}, {V} {exists}", "source")


def _permuted(context: CodegenContext, value: Value, own: str, source: str) -> str:
    """Return own[source], through memory: LLVM's shuffles need constant lanes."""
    builder = context.builder
    if value.type is BOOL:
        wide = builder.let(f"zext {many('i1')} {own} to {V}", "wide")
        moved = _permuted(context, Value(I32, wide, None), wide, source)
        return builder.let(f"trunc {V} {moved} to {many('i1')}", "moved")
    element = scalar_type(value.type)
    if value.type.size < 4:
        wide = builder.let(f"zext {many(element)} {own} to {V}", "wide")
        moved = _permuted(context, Value(I32, wide, None), wide, source)
        return builder.let(f"trunc {V} {moved} to {many(element)}", "moved")
    slot = builder.slot(many(element), "shuffled")
    builder.store(many(element), own, slot)
    pointers = builder.let(f"getelementptr {element}, ptr {slot}, {V} {source}", "address")
    function = f"llvm.masked.gather.{suffix(many(element))}.v32p0"
    arguments = ((many("ptr"), pointers), (many("i1"), splat("i1", "true")), (many(element), "zeroinitializer"))
    return builder.call(many(element), function, *arguments, hint="moved")


def _only_active(
    context: CodegenContext, node: ir.Shuffle, site: int, own: str, source: str, moved: str, element: str
) -> str:
    """Report reads of inactive lanes; the reading lane retains its own value."""
    builder = context.builder
    shift = builder.let(f"lshr {V} {broadcast(builder, 'i32', context.active())}, {source}", "exists")
    odd = builder.let(f"trunc {V} {shift} to {many('i1')}", "exists")
    exists = builder.let(f"bitcast {many('i1')} {odd} to i32", "exists")
    bad = builder.let(f"and i32 {context.active()}, {builder.let(f'xor i32 {exists}, -1', 'absent')}", "bad")

    def describe(place: str, request: Request, result: Sequence[Number]) -> Diagnostic:
        return barriers.reads_inactive(node.span, place, int(result[0]))

    with builder.when_any(bad, "reads.inactive", rarely=True):
        record_fault(context, context.records.record("shuffle", site, [I32], describe), bad, [Value(I32, source, None)])
    return builder.let(
        f"select {many('i1')} {chosen(builder, bad)}, {many(element)} {own}, {many(element)} {moved}", "moved"
    )


# ------------------------------------------------------------------ votes
def vote(context: CodegenContext, node: ir.Vote, site: int) -> Value:
    """Return the combined predicates or values of the active lanes in the mask."""
    builder = context.builder
    if node.mode == "active":
        return Value(U32, context.active())
    participants(context, node, site)
    mask, value = context.expression(node.mask), context.expression(node.value)
    if node.mode in ("match", "match_all"):
        return _match(context, mask, value, everyone=node.mode == "match_all")
    if node.mode in REDUCTIONS:
        return _reduction(context, REDUCTIONS[node.mode], mask, value)
    holds = builder.let(f"and i32 {bits(builder, value)}, {context.active()}", "holds")
    if not mask.uniform:
        return _vote_by_lane(context, node, lanes(builder, mask), holds)
    named = builder.let(f"and i32 {mask.ref}, {context.active()}", "named")
    holds = builder.let(f"and i32 {holds}, {named}", "holds")
    match node.mode:
        case "ballot":
            return Value(U32, holds)
        case "any":
            return Value(BOOL, builder.let(f"icmp ne i32 {holds}, 0", "any"))
    return Value(BOOL, builder.let(f"icmp eq i32 {holds}, {named}", "all"))


def _vote_by_lane(context: CodegenContext, node: ir.Vote, masks: str, holds: str) -> Value:
    builder = context.builder
    named = builder.let(f"and {V} {masks}, {broadcast(builder, 'i32', context.active())}", "named")
    predicates = builder.let(f"and {V} {named}, {broadcast(builder, 'i32', holds)}", "holds")
    match node.mode:
        case "ballot":
            return Value(U32, predicates, None)
        case "any":
            return Value(BOOL, builder.let(f"icmp ne {V} {predicates}, zeroinitializer", "any"), None)
    return Value(BOOL, builder.let(f"icmp eq {V} {predicates}, {named}", "all"), None)


REDUCTIONS = {
    "add": ("add", 0), "min": ("min", None), "max": ("max", None), "and": ("and", -1), "or": ("or", 0), "xor": ("xor", 0),
}  # fmt: skip
"""Instructions of reductions, and their initial value; None if the type decides."""


def _reduction(context: CodegenContext, how: tuple[str, int | None], mask: Value, value: Value) -> Value:
    """Return the combined values of the named lanes."""
    builder = context.builder
    word, start = how
    signed = value.type.kind == "int"
    if start is None:
        low, high = value.type.range
        start = (high if word == "min" else low) if signed else (-1 if word == "min" else 0)
        word = f"{'s' if signed else 'u'}{word}"
    own, neutral = lanes(builder, value), splat("i32", start)
    if mask.uniform:
        named = builder.let(f"and i32 {mask.ref}, {context.active()}", "named")
        operands = builder.let(f"select {many('i1')} {chosen(builder, named)}, {V} {own}, {V} {neutral}", "taken")
        return Value(
            value.type, builder.call("i32", f"llvm.vector.reduce.{word}.v32i32", (V, operands), hint="reduced")
        )
    named = builder.let(f"and {V} {lanes(builder, mask)}, {broadcast(builder, 'i32', context.active())}", "named")
    total = neutral
    for lane in range(LANES):
        moved = builder.let(f"lshr {V} {named}, {splat('i32', lane)}", "moved")
        bit = builder.let(f"trunc {V} {moved} to {many('i1')}", "bit")
        lane_value = broadcast(builder, "i32", builder.let(f"extractelement {V} {own}, i64 {lane}", "lane.value"))
        operands = builder.let(f"select {many('i1')} {bit}, {V} {lane_value}, {V} {neutral}", "taken")
        if word[1:] in ("min", "max"):
            total = builder.intrinsic(f"llvm.{word}", V, total, operands, hint="reduced")
        else:
            total = builder.let(f"{word} {V} {total}, {operands}", "reduced")
    return Value(value.type, total, None)


def _match(context: CodegenContext, mask: Value, value: Value, everyone: bool) -> Value:
    """Return for each lane the mask of named lanes with equal bits; with `everyone` 0 if any lane differs."""
    builder = context.builder
    size = 8 * value.type.size
    own = lanes(builder, value)
    if value.type.is_float:
        own = builder.let(f"bitcast {many(scalar_type(value.type))} {own} to {many(f'i{size}')}", "bits")
    result = "zeroinitializer"
    for lane in range(LANES):
        lane_value = builder.let(f"extractelement {many(f'i{size}')} {own}, i64 {lane}", "lane.value")
        equal = builder.let(f"icmp eq {many(f'i{size}')} {own}, {broadcast(builder, f'i{size}', lane_value)}", "equal")
        bit = splat("i32", 1 << lane if lane < 31 else -(1 << 31))
        either = builder.let(f"select {many('i1')} {equal}, {V} {bit}, {V} zeroinitializer", "bit")
        result = builder.let(f"or {V} {result}, {either}", "equal")
    named = builder.let(f"and {V} {lanes(builder, mask)}, {broadcast(builder, 'i32', context.active())}", "named")
    matching = builder.let(f"and {V} {result}, {named}", "match")
    if everyone:
        equal = builder.let(f"icmp eq {V} {matching}, {named}", "unanimous")
        matching = builder.let(f"select {many('i1')} {equal}, {V} {named}, {V} zeroinitializer", "match")
    return Value(U32, matching, None)
