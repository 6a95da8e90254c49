"""Intrinsics of threads: indices, clocks, barriers, shuffles, votes, masks of lanes."""

from dataclasses import replace

from ..ir import nodes as ir
from ..ir.effects import COUNTING_BARRIERS
from ..ir.nodes import UNCOUNTED
from ..language.forms import BarrierMode, FenceScope, ShuffleMode, VoteMode
from ..language.types import BOOL, I32, I64, U32, Scalar
from .accesses import Scope
from .arithmetic import cast, constant, negated, operation, selected, signed, unsigned
from .calls import Handler, fixed, operand_values
from .module import Instruction
from .types import UnsupportedError, scalar_of
from .values import Item, truth

# ------------------------------------------------------------------ indices and clocks
SPECIALS = {
    "tid": "thread", "ntid": "block_dim", "ctaid": "block", "nctaid": "grid_dim", "clusterid": "cluster_index",
    "nclusterid": "grid_clusters", "cluster_ctaid": "cluster_block", "cluster_nctaid": "cluster_dim",
}  # fmt: skip
RANKS = {"cluster_ctarank": "cluster_rank", "cluster_nctarank": "cluster_size"}


def special(name: str) -> Handler:
    return lambda scope, call: ir.Special(name, I32, scope.emitter.span)


def warp_size(scope: Scope, call: Instruction) -> Item:
    return constant(32, I32, scope.emitter.span)


def clock(scope: Scope, call: Instruction) -> Item:
    return scope.emitter.effect(ir.Clock(scalar_of(call.type), scope.emitter.span), "clock")


def lane_mask(scope: Scope, order: str) -> ir.Expr:
    """Return the mask of the lanes below ("lt"), up to, at, from or above this one, as i32."""
    span = scope.emitter.span
    own_bit = operation("shl", constant(1, U32, span), ir.Special("lane", I32, span))
    below = operation("sub", own_bit, constant(1, U32, span))
    through = operation("or", below, own_bit)
    masks = {
        "lt": below,
        "eq": own_bit,
        "le": through,
        "gt": operation("invert", through),
        "ge": operation("invert", below),
    }
    return signed(masks[order])


def lane_mask_call(order: str) -> Handler:
    return lambda scope, call: lane_mask(scope, order)


# ------------------------------------------------------------------ barriers and warp collectives
def barrier(mode: BarrierMode) -> Handler:
    def translate(scope: Scope, call: Instruction) -> Item | None:
        emitter, arguments = scope.emitter, operand_values(scope, call)
        named = arguments[:1] if "cta" in call.function else []
        if any(fixed(number, "number of a barrier") for number in named):
            raise UnsupportedError("barriers with other numbers than 0 are not supported")
        without_result = mode not in COUNTING_BARRIERS
        if without_result:
            condition: ir.Expr = constant(True, BOOL, emitter.span)
        else:
            condition = truth(arguments[-1])
        type = I32 if mode == "count" or without_result else BOOL
        result = emitter.effect(ir.Barrier(mode, condition, type, emitter.span), mode, not without_result)
        return None if without_result else cast(result, scalar_of(call.type))

    return translate


def mapped(scope: Scope, call: Instruction) -> Item:
    """Return the pointer to the shared memory of a block of the cluster."""
    rank = scope.emitter.let(scope.values.expr(call.operands[1]), "rank")
    return replace(scope.values.pointer(call.operands[0]), block=rank)


def rank_of_block(scope: Scope, call: Instruction) -> Item:
    return scope.values.block(scope.values.pointer(call.operands[0]))


def grid_handle(scope: Scope, call: Instruction) -> Item:
    return constant(0, I64, scope.emitter.span)


def grid_barrier(scope: Scope, call: Instruction) -> Item:
    span = scope.emitter.span
    scope.emitter.effect(ir.Barrier("grid", constant(True, BOOL, span), I32, span), used=False)
    return constant(0, I32, span)


def warp_barrier(scope: Scope, call: Instruction) -> None:
    scope.emitter.emit(ir.WarpBarrier(unsigned(operand_values(scope, call)[0]), scope.emitter.span))


def fence(to: FenceScope) -> Handler:
    return lambda scope, call: scope.emitter.emit(ir.Fence(to, scope.emitter.span))


_MODES: tuple[ShuffleMode, ...] = ("idx", "up", "down", "xor")


def shuffle(mode: ShuffleMode | None) -> Handler:
    """A shuffle; without a mode, it is the second argument. The predicate of the result is not supported."""

    def translate(scope: Scope, call: Instruction) -> Item:
        arguments, own = operand_values(scope, call), mode
        if own is None:
            own = _MODES[fixed(arguments.pop(1), "mode of a shuffle")]
        mask, value, lane, clamp = arguments
        result = shuffled(scope, own, mask, value, lane, clamp, call.name)
        return result if not hasattr(call.type, "items") else [result, None]

    return translate


def shuffled(
    scope: Scope,
    mode: ShuffleMode,
    mask: ir.Expr,
    value: ir.Expr,
    lane: ir.Expr,
    clamp: ir.Expr,
    stem: str = "shuffled",
) -> ir.Expr:
    """Return the value of another lane. clamp: the limits of the lanes in the form of PTX."""
    assert isinstance(value.type, Scalar)
    limits = int(clamp.value) if isinstance(clamp, ir.Const) else None
    width = 32 - (limits >> 8 & 31) if limits is not None else 0
    if limits is None or limits & 31 != (0 if mode == "up" else 31) or width not in (2, 4, 8, 16, 32):
        return shuffled_in_limits(scope, mode, mask, value, lane, clamp)[0]
    shuffle = ir.Shuffle(mode, value, lane, width, unsigned(mask), value.type, scope.emitter.span)
    return scope.emitter.effect(shuffle, stem)


def shuffled_in_limits(
    scope: Scope, mode: ShuffleMode, mask: ir.Expr, value: ir.Expr, lane: ir.Expr, clamp: ir.Expr
) -> tuple[ir.Expr, ir.Expr]:
    """Return the value of another lane, the own one where that lane is outside the limits, and whether it is inside.

    clamp: the limits. The rule is that of `shfl` in PTX. The operations for the lane are not counted: they are part of the instruction.
    """
    span = scope.emitter.span

    def let(name: str, a: ir.Expr, b: ir.Expr | int) -> ir.Expr:
        result = operation(name, a, constant(b, I32, span) if isinstance(b, int) else b)
        return scope.emitter.let(result, "lane", UNCOUNTED)

    own, clamp, lane = ir.Special("lane", I32, span), signed(clamp), let("and", signed(lane), 31)
    segment = let("and", let("shr", clamp, 8), 31)
    rest = let("xor", segment, 31)
    first = let("and", own, segment)
    bound = let("or", first, let("and", let("and", clamp, 31), rest))
    moved: dict[str, str] = {"up": "sub", "down": "add", "xor": "xor"}
    source = let("or", first, let("and", lane, rest)) if mode == "idx" else let(moved[mode], own, lane)
    inside = let("ge" if mode == "up" else "le", source, bound)
    chosen = scope.emitter.let(selected(inside, source, own), "lane", UNCOUNTED)
    assert isinstance(value.type, Scalar)
    shuffle = ir.Shuffle("idx", value, chosen, 32, unsigned(mask), value.type, span)
    return scope.emitter.effect(shuffle, "shuffled"), inside


_VOTES: tuple[VoteMode | str, ...] = ("all", "any", "uni", "ballot")


def vote(mode: VoteMode | str | None) -> Handler:
    """A vote; without a mode, it is the second argument, and the result has a mask and a truth value."""

    def translate(scope: Scope, call: Instruction) -> Item:
        arguments, own = operand_values(scope, call), mode
        if own is None:
            own = _VOTES[fixed(arguments.pop(1), "mode of a vote")]
        mask, predicate = unsigned(arguments[0]), truth(arguments[1])
        result = _voted(scope, own, mask, predicate)
        if mode is not None:
            return result
        return [result, None] if own == "ballot" else [None, result]

    return translate


def _voted(scope: Scope, mode: VoteMode | str, mask: ir.Expr, predicate: ir.Expr) -> ir.Expr:
    emitter = scope.emitter
    match mode:
        case "uni":
            mask, predicate = emitter.let(mask, "mask"), emitter.let(predicate, "predicate")
            all_lanes, none = (
                emitter.effect(ir.Vote("all", p, mask, BOOL, emitter.span), "all")
                for p in (predicate, negated(predicate))
            )
            return operation("either", all_lanes, none)
        case "ballot":
            return signed(emitter.effect(ir.Vote("ballot", predicate, mask, U32, emitter.span), "ballot"))
        case "all" | "any":
            return emitter.effect(ir.Vote(mode, predicate, mask, BOOL, emitter.span), mode)
    raise UnsupportedError(f"the vote {mode} is not supported")


def match(scope: Scope, call: Instruction) -> Item:
    mask, value = operand_values(scope, call)
    all_lanes = ".all." in call.function
    vote = ir.Vote("match_all" if all_lanes else "match", value, unsigned(mask), U32, scope.emitter.span)
    lanes = scope.emitter.effect(vote, "match")
    if not all_lanes:
        return signed(lanes)
    return [signed(lanes), operation("ne", lanes, constant(0, U32, lanes.span))]


def active_mask_call(scope: Scope, call: Instruction) -> Item:
    return active_mask(scope)


def active_mask(scope: Scope) -> ir.Expr:
    """Return the mask of the active lanes, as i32."""
    span = scope.emitter.span
    full = constant(0xFFFFFFFF, U32, span)
    return signed(scope.emitter.effect(ir.Vote("active", constant(True, BOOL, span), full, U32, span), "active"))


def trap(scope: Scope, call: Instruction | None = None) -> None:
    span = scope.emitter.span
    scope.emitter.emit(ir.Assert(constant(False, BOOL, span), "trap", span))


def sleep(scope: Scope, call: Instruction) -> None:
    scope.emitter.emit(ir.Sleep(unsigned(operand_values(scope, call)[0]), scope.emitter.span))
