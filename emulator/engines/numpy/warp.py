"""Shuffles, votes and warp barriers, with their checks that the lanes named are active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...sanitizer import barriers
from ...sanitizer.races import happens_before
from .expressions import scalar
from .warp_group import Mask, Values, WarpGroup

BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)


def mask_bits(active: Mask) -> Values:
    """u32[warps, 1] of bool[warps, 32]."""
    return np.asarray(np.where(active, BITS, np.uint32(0)).sum(axis=-1, keepdims=True, dtype=np.uint32))


def participants(node: ir.Shuffle | ir.Vote | ir.WarpBarrier, what: str, site: int) -> Callable[[WarpGroup], Mask]:
    """A closure that gives the lanes that take part, bool[warps, 32]: the active ones.

    It reports masks that name lanes which have not returned and are not active, and lanes that their own mask omits.
    """
    mask_of = scalar(node.mask)
    full = isinstance(node.mask, ir.Const) and node.mask.value == 0xFFFFFFFF

    def run(group: WarpGroup) -> Mask:
        active = group.full(group.active)
        if full and group.active is group.alive:
            return active
        masks, here = group.full(mask_of(group)), mask_bits(active)
        missing = masks & ~here & mask_bits(group.full(group.alive))
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
        omitted = active & ((masks & BITS) == 0)
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
    """The value of another lane of each lane's group; its own where there is no such lane."""
    value_of, lane_of = scalar(node.value), scalar(node.lane)
    check = participants(node, "shuffle", site)
    lane = np.arange(32, dtype=np.int32)
    first = lane & ~(node.width - 1)
    last = first + node.width - 1

    def run(group: WarpGroup) -> Values:
        active = check(group)
        given = lane_of(group) & np.int32(31)
        match node.mode:
            case "idx":
                source = first + (given & (node.width - 1))
            case "up":
                source = np.where(lane - given < first, lane, lane - given)
            case "down":
                source = np.where(lane + given > last, lane, lane + given)
            case "xor":
                source = np.where((lane ^ given) > last, lane, lane ^ given)
        values = np.broadcast_to(value_of(group), group.shape)
        source = np.broadcast_to(source, (*source.shape[:2], 32))
        if source.shape == (1, 1, 32):
            moved = values[..., source.reshape(32)]
        else:
            moved = np.take_along_axis(values, np.broadcast_to(source, group.shape).astype(np.int64), axis=-1)
        if group.active.size == 1:
            return moved
        sources = group.full(source)
        there = np.take_along_axis(active, sources.astype(np.int64), axis=-1)
        bad = active & ~there
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


REDUCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _neutral(op: str, dtype: np.dtype[Any]) -> Any:
    """The number that a reduction starts with."""
    whole = np.iinfo(dtype)
    ones = np.array(-1 if dtype.kind == "i" else whole.max, dtype)
    return {"min": whole.max, "max": whole.min, "and": ones}.get(op, dtype.type(0))


def vote(node: ir.Vote, site: int) -> Callable[[WarpGroup], Values]:
    """The predicates or values of the active lanes that the mask names, combined."""
    value_of, mask_of = scalar(node.value), scalar(node.mask)
    check = participants(node, f"{node.mode} vote", site) if node.mode != "active" else None

    def run(group: WarpGroup) -> Values:
        active = check(group) if check else group.full(group.active)
        if node.mode == "active":
            return mask_bits(active).reshape(*group.shape[:2], 1)
        masks, values = group.full(mask_of(group)), group.full(value_of(group))
        named = masks & mask_bits(active)
        if node.mode in ("match", "match_all"):
            values = values.view(f"u{values.dtype.itemsize}")  # CUDA compares the bits
            equal = np.zeros(values.shape, np.uint32)
            for lane in range(32):
                equal |= np.where(values == values[:, lane : lane + 1], BITS[lane], np.uint32(0))
            matching = equal & named
            if node.mode == "match_all":
                matching = np.where(matching == named, named, np.uint32(0))
            return matching.reshape(group.shape)
        if node.mode in REDUCTIONS:
            taken = (named[..., None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_)
            own = np.broadcast_to(values[:, None, :], taken.shape)
            combine, start = REDUCTIONS[node.mode], _neutral(node.mode, values.dtype)
            found: Values = combine.reduce(own, axis=-1, where=taken, initial=start)
            return found.astype(values.dtype).reshape(group.shape)
        holds = mask_bits(active & values) & named
        match node.mode:
            case "ballot":
                result: Values = holds
            case "any":
                result = holds != 0
            case "all":
                result = holds == named
        return result.reshape(group.shape)

    return run


def syncwarp(node: ir.WarpBarrier, site: int) -> Callable[[WarpGroup], None]:
    """A warp barrier. Lanes run in step, so it checks its mask and orders accesses in the race state."""
    check = participants(node, "syncwarp", site)
    mask_of = scalar(node.mask)

    def run(group: WarpGroup) -> None:
        active = check(group)
        race_state = group.memory.race_state
        if race_state is not None:
            race_state(happens_before.resume_warp, int(group.warps[0]))
            here, alive = (int(mask_bits(group.full(m))[0, 0]) for m in (active.reshape(group.shape), group.alive))
            race_state(happens_before.syncwarp, here, alive, group.full(mask_of(group))[0].astype(np.uint32))

    return run


def fence(node: ir.Fence) -> Callable[[WarpGroup], None]:
    """A fence. Accesses are in order already, so only the race state learns of it."""
    scope = {"block": 1, "device": 2}[node.scope]

    def run(group: WarpGroup) -> None:
        race_state = group.memory.race_state
        if race_state is not None:
            race_state(happens_before.resume_warp, int(group.warps[0]))
            race_state(happens_before.fence, int(mask_bits(group.full(group.active))[0, 0]), scope)

    return run


def copies(node: ir.AsyncCommit | ir.AsyncWait) -> Callable[[WarpGroup], None]:
    """The end of a group of asynchronous copies, or a wait. They are done already, so only the race state learns of it."""

    def run(group: WarpGroup) -> None:
        race_state = group.memory.race_state
        if race_state is not None:
            race_state(happens_before.resume_warp, int(group.warps[0]))
            if isinstance(node, ir.AsyncWait):
                race_state(happens_before.wait_for_copies, node.pending)
            else:
                race_state(happens_before.commit_copies)

    return run
