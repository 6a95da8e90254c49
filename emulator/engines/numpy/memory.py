"""Loads, stores and atomic operations: bounds checks, counters, race detection, and the access itself."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.access import AccessKind, open_dimensions, shown_dimensions
from ...ir.effects import lane_bits
from ...ir.updates import UNFLUSHED, never_subnormal, update_of
from ...ir.wide import access_type, width
from ...language.intrinsics import WARP_SIZE
from ...language.types import I32, Array
from ...machine import transactions
from ...profiler import events, samples
from ...profiler.block_sampling import sampled_blocks
from ...profiler.events import Counts
from ...profiler.samples import Table
from ...profiler.trace import ENTRY, Tracer
from ...runtime.arrays import split
from ...sanitizer import bounds, uninitialised
from ...sanitizer.races import detect, happens_before, shadow
from ...sanitizer.tracking import AccessId, TrackedArray
from . import lanes
from .expressions import scalar, value
from .warp_group import Mask, Register, Values, WarpGroup

Effect = Callable[[WarpGroup], Any]

_COLUMNS = {
    "global": [events.REQUESTS, events.SECTORS, events.LINES],
    "shared": [events.REQUESTS, events.WAVEFRONTS, events.CONFLICTS],
}


class Access:
    """One access of a site: computes the element of each lane, checks its bounds, counts the transactions."""

    def __init__(
        self,
        node: ir.Access,
        kind: AccessKind,
        site: int,
        array: Array,
        counts: Counts | None,
        tracked: TrackedArray | None,
        samples: Table | None,
    ) -> None:
        self.tracked, self.id = tracked, AccessId.for_access(site, kind.operation, node)
        self.node, self.kind, self.site, self.array = node, kind, site, array
        self.row, self.samples = None if counts is None else counts[site], samples
        self.index, self.rank = scalar(node.index), scalar(ir.Special("cluster_rank", I32, node.span))
        self.block = None if node.block is None else scalar(node.block)
        self.dimensions = [(scalar(component), scalar(extent)) for component, extent in open_dimensions(node)]
        self.shown = [scalar(component) for component in shown_dimensions(node)]
        self.type, self.width = access_type(node), width(node, array)
        self.exact = self.type == array.element
        self.size = self.type.size
        self.space = array.space
        self.first_lanes = getattr(node, "lanes", WARP_SIZE)
        self.name = node.array
        self.out_of_bounds = 0  # lanes, in the last execution
        self._out = np.zeros(3, np.int64)

    def lanes(self, group: WarpGroup) -> tuple[Values, Mask]:
        """(element index [warps, 32], 0 where it is out of bounds; lanes inside the array)."""
        index, active = group.full(self.index(group)), group.full(group.active)
        if self.first_lanes < WARP_SIZE:
            active = active & (np.arange(WARP_SIZE) < self.first_lanes)
        length = group.memory.lengths[self.name] // self.width
        for component, extent in self.dimensions:
            at = group.full(component(group))
            index = np.where((at < 0) | (at >= group.full(extent(group))), -1, index)
        self.out_of_bounds, safe, inside = lanes.guard(index, active, length)
        if self.out_of_bounds:
            group.fault(
                "bounds",
                self.site,
                active & ~inside,
                lambda row, lane, place: self._describe_out_of_bounds(group, index, row, lane, place),
            )
            group.count_out_of_bounds(active & ~inside)
        if self.row is not None:
            self.count(group, safe, inside)
        if self.samples is not None:
            self.sample(self.samples, group, safe, active, active & ~inside)
        tracer = group.request.trace
        if tracer is not None and self.row is not None and self.space in tracer.spaces:
            self.trace(tracer, group, safe, active, active & ~inside)
        return safe, inside

    def count(self, group: WarpGroup, index: Values, active: Mask) -> None:
        """Add the transactions of this access to the counts of its site."""
        columns = _COLUMNS.get(self.space)
        if columns is not None and not self.kind.uncounted:
            assert self.row is not None
            self.row[columns] += self._costs(group, index, active)

    def _costs(self, group: WarpGroup, index: Values, active: Mask) -> Values:
        """Return int64[3], summed over the warps: requests, and the two columns of this memory space."""
        out = self._out
        out[:] = 0
        if self.space == "shared":
            index = index + group.memory.shifts.get(self.name, 0) // self.width
        transactions.count(self.space, self.kind.operation, index, active, self.size, group.request.device, out)
        return out

    def sample(self, table: Table, group: WarpGroup, index: Values, active: Mask, wrong: Mask) -> None:
        """Sample the warps' accesses by cost, except those with a lane out of bounds."""
        for row in np.flatnonzero(active.any(axis=1) & ~wrong.any(axis=1)):
            block, warp = divmod(int(row), group.shape[1])
            row_active = active[row : row + 1]
            cost = int(
                self._costs(group, np.ascontiguousarray(index[row : row + 1]), np.ascontiguousarray(row_active))[1]
            )
            record = np.zeros(1, samples.ACCESS)
            record["count"], record["block"], record["phase"] = 1, group.blocks[block], group.phase[block]
            record["warp"], record["mask"] = group.warps[warp], lane_bits(row_active)[0, 0]
            record["index"] = np.where(row_active, index[row], 0)
            bucket = slice(min(cost, samples.COSTS - 1), min(cost, samples.COSTS - 1) + 1)
            table[bucket] = samples.merge_tables([table[bucket], record])

    def trace(self, tracer: Tracer, group: WarpGroup, index: Values, active: Mask, wrong: Mask) -> None:
        """Pass the warps' accesses to a tracer."""
        rows = np.flatnonzero(active.any(axis=1) & ~wrong.any(axis=1))
        blocks, warps = np.divmod(rows, group.shape[1])
        sampled = (group.blocks[blocks] < tracer.blocks) & sampled_blocks(group.blocks[blocks], tracer.interval)
        rows, blocks, warps = rows[sampled], blocks[sampled], warps[sampled]
        if not len(rows):
            return
        entries = np.zeros(len(rows), ENTRY)
        entries["block"], entries["phase"], entries["warp"] = (
            group.blocks[blocks],
            group.phase[blocks],
            group.warps[warps],
        )
        entries["site"], entries["mask"] = self.site, lane_bits(active)[rows, 0]
        entries["index"] = np.where(active[rows], index[rows], 0)
        tracer.take(entries)

    def places(self, group: WarpGroup, index: Values) -> Values:
        """Positions in the array's storage, of an access of another type than the element int64[..., width]."""
        if self.exact:
            return self.positions(group, index)
        first = index.astype(np.int64) * self.width
        return np.stack([self.positions(group, first + n) for n in range(self.width)], axis=-1)

    def read(self, storage: Values, places: Values) -> Values:
        """Return values of the access's type at `places`; of a vector, with an axis for its components."""
        elements = storage.take(places, axis=0)
        if self.exact:
            return elements
        scalar, components = split(self.type)
        lanes = places.shape[:-1]
        values = np.ascontiguousarray(elements).reshape(*lanes, -1).view(scalar.dtype)
        return values if components else values.reshape(lanes)

    def write(self, storage: Values, places: Values, values: Values) -> None:
        """Store values such as `read` returns, in ascending order of lanes."""
        if not self.exact:
            shape = (*places.shape, *storage.shape[1:])
            values = np.ascontiguousarray(values).reshape(*places.shape[:-1], -1).view(storage.dtype).reshape(shape)
        storage[places] = values

    def blocks_away(self, group: WarpGroup) -> Values | int:
        """Return the rank of the block accessed minus that of the block of the thread; 0 for lanes out of bounds."""
        if self.block is None:
            return 0
        rank, size = self.block(group), int(np.prod(group.request.cluster))
        return np.where((rank >= 0) & (rank < size), rank.astype(np.int64) - self.rank(group), 0)

    def positions(self, group: WarpGroup, index: Values) -> Values:
        """Positions of elements in the array's storage."""
        if self.space == "shared":
            offset = (group.places + self.blocks_away(group)) * group.memory.lengths[self.name]
            moved: Values = index.reshape(group.shape) + offset
            return moved.reshape(-1, WARP_SIZE)
        if self.space == "local":
            threads = group.memory.arrays[self.name].shape[0] // group.memory.lengths[self.name]
            block = group.places * (threads // group.memory.blocks)
            return np.asarray(index.astype(np.int64) * threads + group.full(block + group.thread))
        return index

    def track_swaps(
        self, group: WarpGroup, index: Values, inside: Mask, failed: Mask, failures: Mapping[int, int]
    ) -> None:
        """Check a compare-and-swap: the lanes whose swap fails only read. failures: see `Plan`."""
        if self.tracked is None:
            return
        if self.out_of_bounds or not self.tracked.for_races:
            failed = np.zeros_like(failed)
        self.track(group, index, inside & ~failed)
        whole, self.id = self.id, AccessId(failures[self.site], self.id.effect)
        self.track(group, index, inside & failed)
        self.id = whole

    def track(
        self, group: WarpGroup, index: Values, inside: Mask, new: Values | None = None, old: Values | None = None
    ) -> None:
        """Check an access to a tracked array and update shadow memory, before the access. new, old: of a store, the written and
        the overwritten values."""
        if self.tracked is None or not inside.any():
            return
        race_state, number = group.memory.race_state, self.tracked.number
        assert race_state is not None
        mask = int(lane_bits(inside)[0, 0])
        race_state(happens_before.resume_warp, int(group.warps[0]))
        operand_values = [bits for values in (new, old) if values is not None for bits in _bits(values)]
        count = self.width * self.tracked.units
        for number_in_access in range(count):
            element = index.astype(np.int64) * count + number_in_access
            at = (self.positions(group, element) if self.space == "local" else element).reshape(WARP_SIZE)
            if self.block is not None:
                step = self.tracked.block_step(race_state.arrays)
                at = at + step * group.full(np.asarray(self.blocks_away(group))).reshape(WARP_SIZE)
            if self.tracked.for_unwritten and not isinstance(self.node, ir.Store):
                unwritten = race_state(happens_before.unwritten, number, mask, at)
                if unwritten:
                    self._report_uninitialised(group, element, unwritten)
            if self.tracked.for_races:
                operands = np.concatenate([at.astype(np.int64), *operand_values])
                race_state(detect.access, number, self.id.number, mask, operands, len(operand_values) // 2)
            elif self.id.effect != shadow.LOADS:
                race_state(happens_before.record_writes, number, mask, at.astype(np.int64))

    def _report_uninitialised(self, group: WarpGroup, index: Values, mask: int) -> None:
        assert self.tracked is not None
        kernel, node = self.tracked.kernel, self.node

        def describe(row: int, lane: int, place: str) -> Diagnostic:
            at, forms, persistent = int(index[row, lane]), group.request.forms, group.request.is_persistent(self.name)
            return uninitialised.read(kernel, node.span, self.name, self.array, at, place, forms, persistent)

        lanes_at_fault = (
            (np.uint32(mask) >> np.arange(WARP_SIZE, dtype=np.uint32) & 1).astype(np.bool_).reshape(1, WARP_SIZE)
        )
        group.fault("uninitialised", self.site, lanes_at_fault, describe)

    def _describe_out_of_bounds(self, group: WarpGroup, index: Values, row: int, lane: int, place: str) -> Diagnostic:
        names = bounds.index_registers(self.node.index)
        values = {bounds.user_name(n): group.lane_value(n, row, lane) for n in names}
        shown_values = {n: v for n, v in values.items() if v is not None}
        allocated = group.memory.allocated[self.name]
        shown = [int(group.full(component(group))[row, lane]) for component in self.shown]
        numbers = (int(index[row, lane]), group.memory.lengths[self.name], *shown)
        return bounds.out_of_bounds(self.kind.operation, self.node, self.array, numbers, place, shown_values, allocated)


def _bits(values: Values) -> Values:
    """Return the bits of one warp's values, [32] or [32, components], as int64[components, 32]."""
    whole = np.ascontiguousarray(values.reshape(WARP_SIZE, -1).T)
    return whole.view(f"u{whole.dtype.itemsize}").astype(np.int64)


def load(access: Access) -> Effect:
    """The value that each lane loads; 0 where it is out of bounds."""
    scalar_type, components = split(access.type)

    def run(group: WarpGroup) -> Register:
        index, inside = access.lanes(group)
        storage = group.memory.arrays[access.name]
        if storage.shape[0] < access.width:
            blank = np.zeros(group.shape, scalar_type.dtype)
            return (blank,) * components if components else blank
        access.track(group, index, inside)
        loaded = access.read(storage, access.places(group, index))
        if access.out_of_bounds:
            loaded[~inside] = 0
        if components:
            return tuple(np.ascontiguousarray(loaded[..., p]).reshape(group.shape) for p in range(components))
        return loaded.reshape(group.shape)

    return run


def _whole(group: WarpGroup, values: Register) -> Values:
    """Return the values of all lanes, of a vector with an axis for its components."""
    if isinstance(values, tuple):
        return np.stack([group.full(component) for component in values], axis=-1)
    return group.full(values)


def store(access: Access, stmt: ir.Store) -> Effect:
    """A store. Lanes write in ascending order; lanes out of bounds write nothing."""
    source = value(stmt.value)
    dtype = split(access.type)[0].dtype

    def run(group: WarpGroup) -> None:
        new = _whole(group, source(group)).astype(dtype, copy=False)
        index, inside = access.lanes(group)
        storage = group.memory.arrays[access.name]
        if storage.shape[0] < access.width:
            return
        places = access.places(group, index)
        if access.tracked is not None:
            access.track(group, index, inside, new[0], access.read(storage, places[0]))
        access.write(storage, places[inside], new[inside])

    return run


def atomic(access: Access, node: ir.Atomic, used: bool) -> Effect:
    """An atomic operation. Lanes are serialised in ascending order; the result is the old value of each."""
    operand = value(node.value)
    scalar_type, components = split(access.type)
    update = update_of(node)
    unflushed = UNFLUSHED.get(node.op)

    def run(group: WarpGroup) -> Register | None:
        operand_values = _whole(group, operand(group))
        index, inside = access.lanes(group)
        storage = group.memory.arrays[access.name]
        places = access.places(group, index)
        access.track(group, index, inside)
        if not used and access.exact:
            chosen = places[inside], operand_values[inside]
            plain = unflushed is not None and never_subnormal(storage[chosen[0]]) and never_subnormal(chosen[1])
            at_once = unflushed if plain else update
            if isinstance(at_once, np.ufunc):
                at_once.at(storage, *chosen)
                return None
        old = np.zeros((*index.shape, *[components] * bool(components)), scalar_type.dtype)
        for row, lane in np.argwhere(inside):
            at = places[row, lane]
            old[row, lane] = before = access.read(storage, at)
            access.write(storage, at, update(before, operand_values[row, lane]))
        if components:
            return tuple(np.ascontiguousarray(old[..., p]).reshape(group.shape) for p in range(components))
        return old.reshape(group.shape)

    return run


def compare_swap(access: Access, node: ir.CompareSwap, failures: Mapping[int, int]) -> Effect:
    """A compare-and-swap: each lane stores its value if the element has the expected one; the result is the old value."""
    expected, operand = scalar(node.expected), scalar(node.value)

    def run(group: WarpGroup) -> Values:
        expected_values, operand_values = group.full(expected(group)), group.full(operand(group))
        index, inside = access.lanes(group)
        storage = group.memory.arrays[access.name]
        places = access.places(group, index)
        old = np.zeros(index.shape, node.type.dtype)
        for row, lane in np.argwhere(inside):
            at = places[row, lane]
            old[row, lane] = before = access.read(storage, at)
            if before == expected_values[row, lane]:
                access.write(storage, at, operand_values[row, lane])
        access.track_swaps(group, index, inside, old != expected_values, failures)
        return old.reshape(group.shape)

    return run
