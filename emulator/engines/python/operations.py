"""Operations that threads of a warp or a block execute together, one class each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.effects import TABLE
from ...ir.updates import update_of
from ...language.intrinsics import WARP_SIZE
from ...language.types import Vector
from ...sanitizer import barriers
from .expressions import pack
from .threads import Thread, order_lanes


class WarpOperation:
    """An operation of lanes at one position. operands of a thread: in the order of each class."""

    is_barrier = is_grid_barrier = False

    def __init__(self, node: Any) -> None:
        self.node, self.span = node, node.span

    def perform(self, group: list[Thread]) -> list[Any]:
        """Return the result of each lane."""
        return [self.apply(thread) for thread in group]

    def apply(self, thread: Thread) -> Any:
        """Return the result of one lane, in its order."""
        return None


class BlockBarrier(WarpOperation):
    """A barrier of the block or the grid. Operands: the predicate."""

    is_barrier = True

    def __init__(self, node: ir.Barrier) -> None:
        super().__init__(node)
        self.is_grid_barrier = node.mode == "grid"

    def perform(self, group: list[Thread]) -> list[Any]:
        holds = [bool(thread.operands[0]) for thread in group]
        results: dict[str, Any] = {"count": sum(holds), "and": all(holds), "or": any(holds)}
        combined = self.node.type.dtype.type(results.get(self.node.mode, True))
        return [combined] * len(group)


class Update(WarpOperation):
    """An atomic operation. Operands: memory, index, value."""

    def apply(self, thread: Thread) -> Any:
        memory, at, value = thread.operands
        old = memory[at : at + 1].copy()
        memory[at] = update_of(self.node)(old, np.array([value], memory.dtype))[0]
        return pack(self.node.type)(old[0]) if isinstance(self.node.type, Vector) else old[0]


class CompareSwap(WarpOperation):
    """A compare-and-swap. Operands: memory, index, expected value, value."""

    def apply(self, thread: Thread) -> Any:
        memory, at, expected, value = thread.operands
        old = memory[at]
        if old == expected:
            memory[at] = value
        return old


class Printed(WarpOperation):
    """A line of output. Operands: texts and numbers."""

    def apply(self, thread: Thread) -> None:
        thread.block.launch.prints.add(thread.block.linear, thread.linear, thread.operands)


class Iteration(WarpOperation):
    """An iteration of a loop that waits for other threads."""

    def __init__(self, node: Any, stalls: bool, limit: int) -> None:
        super().__init__(node)
        self.stalls, self.limit = stalls, limit

    def perform(self, group: list[Thread]) -> list[Any]:
        team = group[0].team
        team.idle += 1
        if team.idle > self.limit:
            place = group[0].place(len(group) - 1)
            group[0].fail(barriers.endless(self.span, place, self.limit, self.stalls))
        return [None] * len(group)


class Collective(WarpOperation):
    """A warp operation with a mask, the last operand."""

    def perform(self, group: list[Thread]) -> list[Any]:
        self.check(group)
        return self.results(group)

    def check(self, group: list[Thread]) -> None:
        """Raise a fault for a mask with lanes that wait elsewhere, or without its own lane."""
        what = TABLE[type(self.node)].label(self.node)
        active = lanes_of(group)
        alive = lanes_of([t for t in group[0].team.threads if t.is_alive(group[0].position)])
        masks = {thread.linear: int(thread.operands[-1]) for thread in group}
        wrong = [thread for thread in group if masks[thread.linear] & alive & ~active]
        if wrong:
            mask = masks[wrong[0].linear]
            missing, place = mask & alive & ~active, wrong[0].place(len(wrong) - 1)
            wrong[0].fail(barriers.inactive_lanes(self.span, what, place, mask, missing))
        omitted = [thread for thread in group if not masks[thread.linear] >> int(thread.lane) & 1]
        if omitted:
            place = omitted[0].place(len(omitted) - 1)
            omitted[0].fail(barriers.not_in_mask(self.span, what, place, masks[omitted[0].linear]))

    def results(self, group: list[Thread]) -> list[Any]:
        return [None] * len(group)


class WarpBarrier(Collective):
    """A barrier of lanes. Operand: the mask."""

    def results(self, group: list[Thread]) -> list[Any]:
        for mask in {int(thread.operands[0]) for thread in group}:
            order_lanes([thread for thread in group if mask >> int(thread.lane) & 1])
        return super().results(group)


class Vote(Collective):
    """A vote or a reduction, by the NumPy meaning of its row. Operands: value, mask."""

    def perform(self, group: list[Thread]) -> list[Any]:
        if self.node.mode == "active":
            return [np.uint32(lanes_of(group))] * len(group)
        return super().perform(group)

    def results(self, group: list[Thread]) -> list[Any]:
        meaning = TABLE[type(self.node)].meaning
        assert meaning is not None
        active = lanes_of(group)
        values = np.zeros((1, WARP_SIZE), np.asarray(group[0].operands[0]).dtype)
        masks = np.zeros((1, WARP_SIZE), np.uint32)
        for thread in group:
            values[0, thread.lane], masks[0, thread.lane] = thread.operands[0], int(thread.operands[1]) & active
        results = np.broadcast_to(meaning(self.node, masks, values), (1, WARP_SIZE))
        return [results[0, thread.lane] for thread in group]


class Shuffle(Collective):
    """A shuffle. Operands: value, lane, mask."""

    def results(self, group: list[Thread]) -> list[Any]:
        values = {int(thread.lane): thread.operands[0] for thread in group}
        sources = [self.source(int(thread.lane), int(thread.operands[1]) & WARP_SIZE - 1) for thread in group]
        wrong = [thread for thread, source in zip(group, sources, strict=True) if source not in values]
        if wrong:
            source = self.source(int(wrong[0].lane), int(wrong[0].operands[1]) & WARP_SIZE - 1)
            wrong[0].fail(barriers.reads_inactive(self.span, wrong[0].place(len(wrong) - 1), source))
        return [values[source] for source in sources]

    def source(self, lane: int, offset: int) -> int:
        """Return the lane that a lane reads."""
        width = int(self.node.width)
        first, last = lane & -width, (lane & -width) + width - 1
        match self.node.mode:
            case "idx":
                return first + (offset & width - 1)
            case "up":
                return lane if lane - offset < first else lane - offset
            case "down":
                return lane if lane + offset > last else lane + offset
        return lane if lane ^ offset > last else lane ^ offset


def lanes_of(threads: list[Thread]) -> int:
    """Return the mask of the threads' lanes."""
    return sum(1 << int(thread.lane) for thread in threads)


OPERATIONS: dict[type, type[WarpOperation]] = {
    ir.Barrier: BlockBarrier,
    ir.Atomic: Update,
    ir.CompareSwap: CompareSwap,
    ir.Print: Printed,
    ir.Shuffle: Shuffle,
    ir.Vote: Vote,
    ir.WarpBarrier: WarpBarrier,
}
