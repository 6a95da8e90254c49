"""Shuffles, votes and warp barriers: lanes exchange values, and must be there to do so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...ir import nodes as ir
from ...sanitizer import barriers
from ...sanitizer.races import happens_before
from .expressions import scalar
from .warp_group import Mask, Team, Values

BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)


def mask_bits(active: Mask) -> Values:
    """u32[warps, 1] of bool[warps, 32]."""
    return np.asarray(np.where(active, BITS, np.uint32(0)).sum(axis=-1, keepdims=True, dtype=np.uint32))


def participants(node: ir.Shuffle | ir.Vote | ir.WarpBarrier, what: str, site: int) -> Callable[[Team], Mask]:
    """The lanes that take part, bool[warps, 32]: the active ones.

    Reports a mask that names lanes which run but are not here, and a lane that its own mask leaves out.
    """
    mask_of = scalar(node.mask)
    full = isinstance(node.mask, ir.Const) and node.mask.value == 0xFFFFFFFF

    def run(team: Team) -> Mask:
        active = team.full(team.active)
        if full and team.active is team.alive:
            return active
        masks, here = team.full(mask_of(team)), mask_bits(active)
        missing = masks & ~here & mask_bits(team.full(team.alive))
        bad = active & (missing != 0)
        if bad.any():
            team.fault(
                "convergence",
                site,
                bad,
                lambda row, lane, place: barriers.inactive_lanes(
                    node.span, what, place, int(masks[row, lane]), int(missing[row, lane])
                ),
            )
        outside = active & ((masks & BITS) == 0)
        if outside.any():
            team.fault(
                "mask",
                site,
                outside,
                lambda row, lane, place: barriers.not_in_mask(node.span, what, place, int(masks[row, lane])),
            )
        return active

    return run


def shuffle(node: ir.Shuffle, site: int) -> Callable[[Team], Values]:
    """Each lane's value from another lane of its group; its own where there is none."""
    value_of, lane_of = scalar(node.value), scalar(node.lane)
    check = participants(node, "shuffle", site)
    lane = np.arange(32, dtype=np.int32)
    first = lane & ~(node.width - 1)
    last = first + node.width - 1

    def run(team: Team) -> Values:
        active = check(team)
        given = lane_of(team) & np.int32(31)
        match node.mode:
            case "idx":
                source = first + (given & (node.width - 1))
            case "up":
                source = np.where(lane - given < first, lane, lane - given)
            case "down":
                source = np.where(lane + given > last, lane, lane + given)
            case "xor":
                source = np.where((lane ^ given) > last, lane, lane ^ given)
        values = np.broadcast_to(value_of(team), team.shape)
        source = np.broadcast_to(source, (*source.shape[:2], 32))
        if source.shape == (1, 1, 32):
            moved = values[..., source.reshape(32)]
        else:
            moved = np.take_along_axis(values, np.broadcast_to(source, team.shape).astype(np.int64), axis=-1)
        if team.active.size == 1:
            return moved
        sources = team.full(source)
        there = np.take_along_axis(active, sources.astype(np.int64), axis=-1)
        bad = active & ~there
        if bad.any():
            team.fault(
                "shuffle",
                site,
                bad,
                lambda row, at, place: barriers.reads_inactive(node.span, place, int(sources[row, at])),
            )
            return np.where(bad.reshape(team.shape), values, moved)
        return moved

    return run


def vote(node: ir.Vote, site: int) -> Callable[[Team], Values]:
    """Predicates or values of the named active lanes, combined."""
    value_of, mask_of = scalar(node.value), scalar(node.mask)
    check = participants(node, f"{node.mode} vote", site) if node.mode != "active" else None

    def run(team: Team) -> Values:
        active = check(team) if check else team.full(team.active)
        if node.mode == "active":
            return mask_bits(active).reshape(*team.shape[:2], 1)
        masks, values = team.full(mask_of(team)), team.full(value_of(team))
        named = masks & mask_bits(active)
        if node.mode == "match":
            values = values.view(f"u{values.dtype.itemsize}")  # CUDA compares the bits
            equal = np.zeros(values.shape, np.uint32)
            for lane in range(32):
                equal |= np.where(values == values[:, lane : lane + 1], BITS[lane], np.uint32(0))
            return (equal & named).reshape(team.shape)
        holds = mask_bits(active & values) & named
        match node.mode:
            case "ballot":
                result: Values = holds
            case "any":
                result = holds != 0
            case "all":
                result = holds == named
        return result.reshape(team.shape)

    return run


def syncwarp(node: ir.WarpBarrier, site: int) -> Callable[[Team], None]:
    """Lanes already run in step; the mask can be wrong, and accesses are ordered."""
    check = participants(node, "syncwarp", site)
    mask_of = scalar(node.mask)

    def run(team: Team) -> None:
        active = check(team)
        race_state = team.memory.race_state
        if race_state is not None:
            happens_before.resume_warp(race_state, int(team.warps[0]))
            here, alive = (int(mask_bits(team.full(m))[0, 0]) for m in (active.reshape(team.shape), team.alive))
            happens_before.join(race_state, here, alive, team.full(mask_of(team))[0].astype(np.int64))

    return run


def fence(node: ir.Fence) -> Callable[[Team], None]:
    """Accesses are in order already; only the history needs to know."""
    scope = {"block": 1, "device": 2}[node.scope]

    def run(team: Team) -> None:
        race_state = team.memory.race_state
        if race_state is not None:
            happens_before.resume_warp(race_state, int(team.warps[0]))
            happens_before.fence(race_state, int(mask_bits(team.full(team.active))[0, 0]), scope)

    return run
