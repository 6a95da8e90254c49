"""Operations that threads of a warp or a block execute together, one class each."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir import tensor_cores
from ...ir.effects import ALL_LANES, TABLE, source_lanes, wrong_masks
from ...ir.matrices import PARTS, moved
from ...ir.updates import update_of
from ...language.intrinsics import WARP_SIZE
from ...language.types import Vector
from ...passes.grids import waits_for_others
from ...sanitizer import barriers, mbarriers
from .expressions import pack
from .threads import Thread, order_lanes


class WarpOperation:
    """An operation of lanes at one position. operands of a thread: in the order of each class."""

    is_barrier = of_blocks = False

    def __init__(self, node: Any) -> None:
        self.node, self.span = node, node.span

    def perform(self, group: list[Thread]) -> list[Any]:
        """Return the result of each lane."""
        return [self.apply(thread) for thread in group]

    def apply(self, thread: Thread) -> Any:
        """Return the result of one lane, in its order."""
        return None


class BlockBarrier(WarpOperation):
    """A barrier of the block, the cluster or the grid. Operands: the predicate."""

    is_barrier = True

    def __init__(self, node: ir.Barrier) -> None:
        super().__init__(node)
        self.of_blocks = waits_for_others(node)

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
        thread.swap_failed = bool(old != expected)
        if not thread.swap_failed:
            memory[at] = value
        return old


class Printed(WarpOperation):
    """A line of output. Operands: texts and numbers."""

    def apply(self, thread: Thread) -> None:
        thread.block.launch.prints.add(thread.block.linear, thread.linear, thread.operands)


class Iteration(WarpOperation):
    """An iteration of a loop that waits for other threads. Operands: `shown`, index, state and word of the barriers for which it waits."""

    def __init__(self, node: Any, stalls: bool, limit: int, kernel: ir.Function) -> None:
        super().__init__(node)
        self.stalls, self.limit, self.polled = stalls, limit, list(mbarriers.polled(node.setup, kernel, inner=False))
        self.shown = [e for word, wait, _ in self.polled for e in (wait.index, wait.value, word)]

    def perform(self, group: list[Thread]) -> list[Any]:
        team = group[0].team
        team.idle += 1
        if team.idle > self.limit:
            fault = barriers.endless(self.span, group[0].place(len(group) - 1), self.limit, self.stalls)
            values = [int(value) for value in group[0].operands]
            for number, (_, wait, array) in enumerate(self.polled):
                index, state, word = values[3 * number :][:3]
                if word >> 63 == state >> 63:
                    fault = mbarriers.deadlock(fault, wait, array, index, word)
            group[0].fail(fault)
        return [None] * len(group)


class Collective(WarpOperation):
    """A warp operation with a mask, the last operand."""

    def perform(self, group: list[Thread]) -> list[Any]:
        self.check(group)
        return self.results(group)

    def check(self, group: list[Thread]) -> None:
        """Raise a fault for a mask with lanes that wait elsewhere, or without its own lane."""
        what = TABLE[type(self.node)].label(self.node)
        aligned = TABLE[type(self.node)].aligned
        alive = (
            int(ALL_LANES[0])
            if aligned
            else lanes_of([t for t in group[0].team.threads if t.is_alive(group[0].position)])
        )
        masks = np.array([int(thread.operands[-1]) for thread in group], np.uint32)
        own = np.array([1 << int(thread.lane) for thread in group], np.uint32)
        missing, omits = wrong_masks(masks, own, *np.array([[lanes_of(group)], [alive]], np.uint32))
        for wrong in (np.flatnonzero(missing), np.flatnonzero(omits)):
            if len(wrong):
                thread, mask, others = group[wrong[0]], int(masks[wrong[0]]), int(missing[wrong[0]])
                place = thread.place(len(wrong) - 1)
                thread.fail(
                    barriers.inactive_lanes(self.span, what, place, mask, others)
                    if others
                    else barriers.not_in_mask(self.span, what, place, mask)
                )

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


class Matrix(Collective):
    """An operation on fragments. Operands: fragments, mask. Registers of lanes that do not execute it are 0."""

    def results(self, group: list[Thread]) -> list[Any]:
        fragments = []
        for operand in zip(*(thread.operands[:-1] for thread in group), strict=True):
            first = operand[0] if isinstance(operand[0], tuple) else (operand[0],)
            registers = [np.zeros(WARP_SIZE, np.asarray(one).dtype) for one in first]
            for thread, values in zip(group, operand, strict=True):
                for register, value in zip(registers, values if isinstance(values, tuple) else (values,), strict=True):
                    register[thread.lane] = value
            fragments.append(registers)
        results = self.compute(group[0], fragments)
        if not isinstance(self.node.type, Vector):
            return [results[0][thread.lane] for thread in group]
        build, count = pack(self.node.type), self.node.type.lanes
        return [build(results[n][thread.lane] for n in range(count)) for thread in group]

    def compute(self, thread: Thread, fragments: list[list[Any]]) -> Sequence[Any]:
        """Return the registers of the result."""
        return moved(self.node.mode, self.node.transposed, fragments[0])


class Mma(Matrix):
    """A matrix multiply-accumulate. Operands: A, B, C, mask."""

    def compute(self, thread: Thread, fragments: list[list[Any]]) -> Sequence[Any]:
        capability = thread.block.launch.request.device.compute_capability
        return tensor_cores.multiply_add(PARTS[self.node.instruction], capability, *fragments)


class Shuffle(Collective):
    """A shuffle. Operands: value, lane, mask."""

    def results(self, group: list[Thread]) -> list[Any]:
        values = {int(thread.lane): thread.operands[0] for thread in group}
        arguments = np.zeros(WARP_SIZE, np.int32)
        for thread in group:
            arguments[thread.lane] = thread.operands[1]
        sources = source_lanes(self.node, arguments).tolist()
        wrong = [thread for thread in group if sources[thread.lane] not in values]
        if wrong:
            place = wrong[0].place(len(wrong) - 1)
            wrong[0].fail(barriers.reads_inactive(self.span, place, sources[wrong[0].lane]))
        return [values[sources[thread.lane]] for thread in group]


def lanes_of(threads: list[Thread]) -> int:
    """Return the mask of the threads' lanes."""
    return sum(1 << int(thread.lane) for thread in threads)


OPERATIONS: dict[type, type[WarpOperation]] = {
    ir.Barrier: BlockBarrier, ir.Atomic: Update, ir.CompareSwap: CompareSwap, ir.Print: Printed, ir.Shuffle: Shuffle,
    ir.Vote: Vote, ir.Mma: Mma, ir.MoveMatrix: Matrix, ir.WarpBarrier: WarpBarrier,
}  # fmt: skip
