"""Deterministic runs of one block of a launch: interactive ones, and others that collect facts for the commands.

Each run begins at the start of the block, with the arrays as they were there. A run ends where its tracer raises `RunEnded`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np

from ..engines.python.engine import Launch, run_to_fault
from ..engines.python.threads import Access, Fault, Observer, Thread
from ..passes.grids import waits_for_blocks
from ..runtime.arrays import Buffer
from ..runtime.engine import Request
from .tracing import Place, Tracer, Visitor


class RunEnded(BaseException):
    """Ends a run before the end of its block. No handler of a Python function that a kernel calls catches it."""


class BlockRun(Launch):
    """A run of a block, or of a cooperative launch. A finding ends its thread alone if `survives` says so."""

    def __init__(self, request: Request, survives: Callable[[Thread], bool]) -> None:
        super().__init__(request, recorded=True)
        self.survives = survives

    def ends(self, thread: Thread, fault: Fault) -> bool:
        return not self.survives(thread)


@dataclass(frozen=True)
class Snapshot:
    """Memory at the start of a block: the changed arrays, their written elements, and the shadow memory of the races."""

    buffers: dict[str, Buffer]
    written: dict[str, Buffer]
    elements: Any


class Session:
    """The runs of one block. order: the blocks of the launch in the order of their execution, those before this one run before it;
    empty: this block alone, with the arrays as they were before the launch."""

    def __init__(self, request: Request, block: int, order: Sequence[int] = ()) -> None:
        self.request = replace(request, show_prints=False)
        self.block, self.order = block, order
        self._snapshot = self._memory_after(order[: order.index(block)] if order else ())

    def of_block(self, block: int) -> Session:
        """Return the session of another block."""
        return self if block == self.block or self.is_cooperative else Session(self.request, block, self.order)

    def _memory_after(self, earlier: Sequence[int]) -> Snapshot | None:
        launch = BlockRun(self.request, lambda thread: False)
        self.code = launch.code.objects
        self.is_cooperative = launch.is_cooperative
        if self.is_cooperative or not earlier:
            return None
        with np.errstate(all="ignore"):
            for number in earlier:
                launch.run_block(number)
        changed = {name: launch.buffers[name] for name in self.request.prepared.changed}
        elements = launch.observers[0].elements if launch.observers else None  # type: ignore[attr-defined]
        return Snapshot(changed, launch.written, elements)

    def start(self, survives: Callable[[Thread], bool], observers: Sequence[Observer] = ()) -> BlockRun:
        """Return a run at the start of the block."""
        launch = BlockRun(self.request, survives)
        if (before := self._snapshot) is not None:
            for name, buffer in before.buffers.items():
                launch.buffers[name][...] = buffer
            for name, flags in before.written.items():
                launch.written[name][...] = flags
            if before.elements is not None:
                launch.observers[0].load(before.elements)  # type: ignore[attr-defined]
        launch.observers[:0] = observers
        return launch

    def run(self, launch: BlockRun, tracer: Tracer) -> Fault | None:
        """Run to the end, to a finding or to `RunEnded`. Return the finding."""
        before = sys.gettrace()
        try:
            sys.settrace(tracer)
            with np.errstate(all="ignore"):
                launch.run() if self.is_cooperative else launch.run_block(self.block)
        except Fault as fault:
            return fault
        finally:
            sys.settrace(before)
        return None

    def collect(self, visit: Callable[[Place, FrameType], None], observers: Sequence[Observer] = ()) -> None:
        """Run the block, and call a function before each statement until it raises `RunEnded`.

        A thread of the interpreter of its own runs it: the interpreter traces nothing inside a trace function.
        """
        errors: list[BaseException] = []

        def run() -> None:
            try:
                self.run(self.start(lambda thread: True, observers), Visitor(self.code, visit))
            except RunEnded:
                pass
            except BaseException as error:
                errors.append(error)

        worker = threading.Thread(target=run)
        worker.start()
        worker.join()
        if errors:
            raise errors[0]

    def locate(self, access: Access) -> Place | None:
        """Return the place of an access of this block that another run made."""
        thread = access.block, access.thread
        last: dict[tuple[int, int], Place] = {}
        places: list[Place] = []

        class Locator:
            def access(self, own: Access) -> Fault | None:
                if (own.block, own.thread, own.number) == (*thread, access.number) and thread in last:
                    places.append(last[thread])
                return None

        def visit(place: Place, frame: FrameType) -> None:
            if places:
                raise RunEnded
            last[place.block, place.thread] = place

        self.collect(visit, [Locator()])
        return places[0] if places else None


def find_fault(
    request: Request, blocks: Sequence[int] = (), started: Callable[[int], object] = lambda block: None
) -> tuple[Session, Fault] | None:
    """Run a launch on the python engine to its first finding. Return it with the session of its block; None if it has none.

    blocks: of a finding of another engine; they run alone first, and all blocks only if that has no finding. started: called with each
    block.
    """
    request = replace(request, show_prints=False)
    alone = () if waits_for_blocks(request.prepared.program.kernel) else blocks
    for order in dict.fromkeys((tuple(alone), ())):
        launch, fault = run_to_fault(request, order, started)
        if fault is not None:
            return Session(launch.request, launch.running, launch.blocks()), fault
    return None
