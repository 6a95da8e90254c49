"""Warp collectives: shuffles, votes and warp barriers, with the checks of their masks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir import tensor_cores
from ...ir.effects import ALL_LANES, LANE_BITS, TABLE, lane_bits, source_lanes, wrong_masks
from ...ir.matrices import PARTS, moved
from ...language.intrinsics import WARP_SIZE
from ...language.types import Vector
from ...sanitizer import barriers
from ...sanitizer.races import happens_before
from .expressions import scalar, value
from .warp_group import Mask, Register, Values, WarpGroup


def participants(node: Any, site: int) -> Callable[[WarpGroup], Mask]:
    """Return a closure that returns the participating lanes, bool[warps, 32]: the active ones.

    It reports masks with lanes that are inactive and have not returned, and lanes that their own mask omits.
    """
    mask_of, what = scalar(node.mask), TABLE[type(node)].label(node)
    full, aligned = isinstance(node.mask, ir.Const) and node.mask.value == 0xFFFFFFFF, TABLE[type(node)].aligned

    def run(group: WarpGroup) -> Mask:
        active = group.full(group.active)
        if full and group.active is group.alive and (not aligned or bool(group.active.all())):
            return active
        masks, active_bits = group.full(mask_of(group)), lane_bits(active)
        alive = ALL_LANES if aligned else lane_bits(group.full(group.alive))
        missing, omits = wrong_masks(masks, LANE_BITS, active_bits, alive)
        bad = active & (missing != 0)
        if bad.any():
            group.fault(
                "convergence",
                site,
                bad,
                lambda row, lane, place: barriers.inactive_lanes(
                    node.span, what, place, int(masks[row, lane]), int(missing[row, lane])
                ),
            )
        omitted = active & omits
        if omitted.any():
            group.fault(
                "mask",
                site,
                omitted,
                lambda row, lane, place: barriers.not_in_mask(node.span, what, place, int(masks[row, lane])),
            )
        return active

    return run


def shuffle(node: ir.Shuffle, site: int) -> Callable[[WarpGroup], Values]:
    """The value of another lane of each lane's group; the lane's own value where there is none."""
    value_of, lane_of = scalar(node.value), scalar(node.lane)
    check = participants(node, site)

    def run(group: WarpGroup) -> Values:
        active = check(group)
        source = source_lanes(node, lane_of(group))
        values = np.broadcast_to(value_of(group), group.shape)
        source = np.broadcast_to(source, (*source.shape[:2], WARP_SIZE))
        if source.shape == (1, 1, WARP_SIZE):
            moved = values[..., source.reshape(WARP_SIZE)]
        else:
            moved = np.take_along_axis(values, np.broadcast_to(source, group.shape).astype(np.int64), axis=-1)
        if group.active.size == 1:
            return moved
        sources = group.full(source)
        source_active = np.take_along_axis(active, sources.astype(np.int64), axis=-1)
        bad = active & ~source_active
        if bad.any():
            group.fault(
                "shuffle",
                site,
                bad,
                lambda row, at, place: barriers.reads_inactive(node.span, place, int(sources[row, at])),
            )
            return np.where(bad.reshape(group.shape), values, moved)
        return moved

    return run


def collective(node: Any, site: int) -> Callable[[WarpGroup], Values]:
    """An effect of the active lanes in its mask, by the meaning of its row."""
    row = TABLE[type(node)]
    assert row.meaning is not None
    meaning = partial(row.meaning, node)
    operands = [scalar(getattr(node, name)) for name in row.operands if name != "mask"]
    mask_of, check = scalar(node.mask), participants(node, site)

    def run(group: WarpGroup) -> Values:
        active = check(group)
        named = group.full(mask_of(group)) & lane_bits(active)
        values = [group.full(operand(group)) for operand in operands]
        return meaning(named, *values).reshape(group.shape)

    return run


def vote(node: ir.Vote, site: int) -> Callable[[WarpGroup], Values]:
    """The predicates or values of the active lanes in the mask, combined."""
    if node.mode != "active":
        return collective(node, site)
    return lambda group: lane_bits(group.full(group.active)).reshape(*group.shape[:2], 1)


def syncwarp(node: ir.WarpBarrier, site: int) -> Callable[[WarpGroup], None]:
    """A warp barrier. Lanes run in lockstep, so it checks its mask and updates the race state."""
    check = participants(node, site)
    mask_of = scalar(node.mask)

    def run(group: WarpGroup) -> None:
        active = check(group)
        race_state = group.memory.race_state
        if race_state is not None:
            race_state(happens_before.resume_warp, int(group.warps[0]))
            active_bits, alive = (
                int(lane_bits(group.full(m))[0, 0]) for m in (active.reshape(group.shape), group.alive)
            )
            race_state(happens_before.syncwarp, active_bits, alive, group.full(mask_of(group))[0].astype(np.uint32))

    return run


def fence(node: ir.Fence) -> Callable[[WarpGroup], None]:
    """A fence. Accesses are in order, so it only updates the race state."""
    scope = {"block": 1, "device": 2}[node.scope]

    def run(group: WarpGroup) -> None:
        race_state = group.memory.race_state
        if race_state is not None:
            race_state(happens_before.resume_warp, int(group.warps[0]))
            race_state(happens_before.fence, int(lane_bits(group.full(group.active))[0, 0]), scope)

    return run


def copies(node: ir.AsyncCommit | ir.AsyncWait | ir.AsyncOrder) -> Callable[[WarpGroup], None]:
    """The end of a group of asynchronous copies, or a wait. The copies are complete, so it only updates the race state."""

    def run(group: WarpGroup) -> None:
        race_state = group.memory.race_state
        if race_state is not None:
            race_state(happens_before.resume_warp, int(group.warps[0]))
            if isinstance(node, ir.AsyncWait):
                race_state(happens_before.wait_for_copies, node.pending)
            elif isinstance(node, ir.AsyncOrder):
                if (order := happens_before.async_order(node.mode, node.pending)) is not None:
                    race_state(happens_before.order_async, *order)
            else:
                race_state(happens_before.commit_copies)

    return run


def mma(node: ir.Mma, site: int) -> Callable[[WarpGroup], Register]:
    """A matrix multiply-accumulate, with the arithmetic of the device."""
    operands, check = [value(operand) for operand in (node.a, node.b, node.c)], participants(node, site)
    instruction = PARTS[node.instruction]

    def run(group: WarpGroup) -> Register:
        check(group)
        capability = group.request.device.compute_capability
        fragments = [_registers(group, operand(group)) for operand in operands]
        return _grouped(group, tensor_cores.multiply_add(instruction, capability, *fragments))

    return run


def move_matrix(node: ir.MoveMatrix, site: int) -> Callable[[WarpGroup], Register]:
    """A move of 8x8 matrices between their rows and their fragments."""
    operand, check = value(node.value), participants(node, site)
    count = node.type.lanes if isinstance(node.type, Vector) else 1

    def run(group: WarpGroup) -> Register:
        check(group)
        return _grouped(group, moved(node.mode, node.transposed, _registers(group, operand(group)))[:count])

    return run


def _registers(group: WarpGroup, values: Register) -> list[Values]:
    return [group.full(one) for one in (values if isinstance(values, tuple) else (values,))]


def _grouped(group: WarpGroup, registers: tuple[Values, ...]) -> Register:
    results = tuple(one.reshape(group.shape) for one in registers)
    return results if len(results) > 1 else results[0]


COLLECTIVES: dict[type, Callable[[Any, int], Callable[[WarpGroup], Register]]] = {
    ir.Shuffle: shuffle, ir.Vote: vote, ir.Mma: mma, ir.MoveMatrix: move_matrix,
}  # fmt: skip
"""Collectives with more than the meaning of their row."""
