"""Loads, stores and atomics: bounds, counting, and what they do to memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...language.types import Array, Vector
from ...machine import banks, coalescing
from ...profiler import events
from ...profiler.events import Counts
from ...sanitizer import bounds, uninitialised
from ...sanitizer.races import detect, happens_before, shadow
from ...sanitizer.tracking import Followed, act
from . import lanes
from .expressions import scalar, value
from .warp import mask_bits
from .warp_group import Mask, Register, Team, Values

Effect = Callable[[Team], Any]

_COMBINE: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_GLOBAL: dict[str, Any] = {
    "global_load": coalescing.count, "global_store": coalescing.count,
    "global_atomic": coalescing.count_atomic, "global_reduction": coalescing.count_reduction,
}  # fmt: skip


class Access:
    """One access of one site: finds the element each lane means, checks and counts it."""

    def __init__(
        self,
        node: ir.Load | ir.Store | ir.Atomic | ir.CompareSwap,
        kind: str,
        site: int,
        array: Array,
        counts: Counts | None,
        followed: Followed | None,
    ) -> None:
        self.followed, self.act = followed, act(site, kind)
        self.node, self.kind, self.site, self.array = node, kind, site, array
        self.row = None if counts is None else counts[site]
        self.index = scalar(node.index)
        self.size = array.element.size
        self.space = array.space
        self.name = node.array
        self.outside = 0  # lanes of the last execution that missed the array
        self._out = np.zeros(3, np.int64)

    def lanes(self, team: Team) -> tuple[Values, Mask]:
        """(element index [warps, 32], 0 where out; lanes inside the array)."""
        index, active = team.full(self.index(team)), team.full(team.active)
        safe, inside = (
            np.empty(index.shape, index.dtype if index.dtype.itemsize == 8 else np.int32),
            np.empty(index.shape, np.bool_),
        )
        length = team.memory.lengths[self.name]
        self.outside = lanes.guard(index, active, length, safe, inside)
        if self.outside:
            team.fault(
                "bounds",
                self.site,
                active & ~inside,
                lambda row, lane, place: self._outside(team, index, length, row, lane, place),
            )
        if self.row is not None:
            self.count(team, safe, inside)
        return safe, inside

    def count(self, team: Team, index: Values, active: Mask) -> None:
        """Add the hardware's events of this access to the site's row."""
        row, device, out = self.row, team.request.device, self._out
        assert row is not None
        out[:] = 0
        if self.space == "global":
            sector = device.load_sector if self.kind == "global_load" else device.sector
            _GLOBAL[self.kind](index, active, self.size, sector, device.line, out)
            row[events.REQUESTS] += out[0]
            row[events.SECTORS] += out[1]
            row[events.LINES] += out[2]
        elif self.space == "shared":
            kind = {"shared_load": banks.load_kind(device), "shared_store": banks.STORE, "shared_atomic": banks.ATOMIC}[
                self.kind
            ]
            banks.count(kind, index, active, self.size, device.banks, device.bank_width, out)
            row[events.REQUESTS] += out[0]
            row[events.WAVEFRONTS] += out[1]
            row[events.CONFLICTS] += out[2]

    def flat(self, team: Team, index: Values) -> Values:
        """Positions in the array's storage."""
        if self.space == "shared":
            offset = np.arange(team.shape[0], dtype=np.int64) * team.memory.lengths[self.name]
            moved: Values = index.reshape(team.shape) + offset.reshape(-1, 1, 1)
            return moved.reshape(-1, 32)
        if self.space == "local":
            threads = team.memory.arrays[self.name].shape[0] // team.memory.lengths[self.name]
            block = np.arange(team.shape[0]).reshape(-1, 1, 1) * (threads // team.shape[0])
            return np.asarray(index.astype(np.int64) * threads + team.full(block + team.thread))
        return index

    def note(
        self, team: Team, index: Values, inside: Mask, new: Values | None = None, old: Values | None = None
    ) -> None:
        """Hold the access against the array's history, and write it down there; stores say what they write over."""
        if self.followed is None or not inside.any():
            return
        past, number = team.memory.history, self.followed.number
        assert past is not None
        mask = int(mask_bits(inside)[0, 0])
        at = (self.flat(team, index) if self.space == "local" else index).reshape(32).astype(np.int64)
        happens_before.begin_turn(past, int(team.warps[0]))
        if self.followed.raw and self.act & 3 != shadow.STORES:
            raw = happens_before.unwritten(past, number, mask, at)
            if raw:
                self._unwritten(team, index, raw)
        if self.followed.racy:
            now = happens_before.moment(past, self.act)
            detect.access(past, number, self.act, now, mask, at, _bits(new), _bits(old))
        elif self.act & 3 != shadow.LOADS:
            happens_before.note_written(past, number, mask, at)

    def _unwritten(self, team: Team, index: Values, raw: int) -> None:
        assert self.followed is not None
        kernel, node = self.followed.kernel, self.node

        def tell(row: int, lane: int, place: str) -> Diagnostic:
            return uninitialised.read(kernel, node.span, self.name, self.array, int(index[row, lane]), place)

        lanes_at_fault = (np.uint32(raw) >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_).reshape(1, 32)
        team.fault("uninitialised", self.site, lanes_at_fault, tell)

    def _outside(self, team: Team, index: Values, length: int, row: int, lane: int, place: str) -> Diagnostic:
        names = bounds.index_registers(self.node.index)
        values = {bounds.user_name(n): team.lane_value(n, row, lane) for n in names}
        known = {n: v for n, v in values.items() if v is not None}
        allocated = team.memory.allocated[self.name]
        where = int(index[row, lane])
        return bounds.outside(self.kind, self.node.span, self.name, self.array, length, where, place, known, allocated)


def _bits(values: Values | None) -> Values:
    """int64[parts, 32] of the values of one warp, [32] or [32, parts]."""
    if values is None:
        return detect.NOTHING
    whole = np.ascontiguousarray(values.reshape(32, -1).T)
    return whole.view(f"u{whole.dtype.itemsize}").astype(np.int64)


def load(node: ir.Load, kind: str, site: int, array: Array, counts: Counts | None, followed: Followed | None) -> Effect:
    """The value each lane loads; 0 outside the array."""
    access = Access(node, kind, site, array, counts, followed)
    parts = array.element.lanes if isinstance(array.element, Vector) else 0

    def run(team: Team) -> Register:
        index, inside = access.lanes(team)
        storage = team.memory.arrays[node.array]
        if storage.shape[0] == 0:
            blank = np.zeros(team.shape, storage.dtype)
            return (blank,) * parts if parts else blank
        access.note(team, index, inside)
        found = storage.take(access.flat(team, index), axis=0)
        if access.outside:
            found[~inside] = 0
        if parts:
            return tuple(np.ascontiguousarray(found[..., p]).reshape(team.shape) for p in range(parts))
        return found.reshape(team.shape)

    return run


def store(
    node: ir.Store, kind: str, site: int, array: Array, counts: Counts | None, followed: Followed | None
) -> Effect:
    """Lanes write in ascending order; those outside the array write nothing."""
    access, source = Access(node, kind, site, array, counts, followed), value(node.value)

    def run(team: Team) -> None:
        given = source(team)
        index, inside = access.lanes(team)
        storage = team.memory.arrays[node.array]
        at = access.flat(team, index)[inside]
        if followed is not None and len(storage):
            parts = given if isinstance(given, tuple) else (given,)
            new = np.stack([team.full(part)[0].astype(storage.dtype) for part in parts], axis=-1)
            access.note(team, index, inside, new, storage[access.flat(team, index)[0]])
        if isinstance(given, tuple):
            for part, values in enumerate(given):
                storage[at, part] = team.full(values)[inside]
        else:
            storage[at] = team.full(given)[inside]

    return run


def atomic(
    node: ir.Atomic, used: bool, kind: str, site: int, array: Array, counts: Counts | None, followed: Followed | None
) -> Effect:
    """Lanes act one after the other in ascending order; the result is what each found."""
    access, operand = Access(node, kind, site, array, counts, followed), scalar(node.value)
    combine = _COMBINE.get(node.op)

    def run(team: Team) -> Values | None:
        given = team.full(operand(team))
        index, inside = access.lanes(team)
        storage = team.memory.arrays[node.array]
        positions = access.flat(team, index)
        access.note(team, index, inside)
        if combine is not None and not used:
            combine.at(storage, positions[inside], given[inside])
            return None
        old = np.zeros(index.shape, storage.dtype)
        for row, lane in np.argwhere(inside):
            at = positions[row, lane]
            old[row, lane] = storage[at]
            storage[at] = given[row, lane] if combine is None else combine(storage[at], given[row, lane])
        return old.reshape(team.shape)

    return run


def compare_swap(
    node: ir.CompareSwap, kind: str, site: int, array: Array, counts: Counts | None, followed: Followed | None
) -> Effect:
    """As `atomic`: each lane stores its value where it finds the expected one, and gets what it found."""
    access = Access(node, kind, site, array, counts, followed)
    expected, operand = scalar(node.expected), scalar(node.value)

    def run(team: Team) -> Values:
        wanted, given = team.full(expected(team)), team.full(operand(team))
        index, inside = access.lanes(team)
        storage = team.memory.arrays[node.array]
        positions = access.flat(team, index)
        access.note(team, index, inside)
        old = np.zeros(index.shape, storage.dtype)
        for row, lane in np.argwhere(inside):
            at = positions[row, lane]
            old[row, lane] = storage[at]
            if storage[at] == wanted[row, lane]:
                storage[at] = given[row, lane]
        return old.reshape(team.shape)

    return run
