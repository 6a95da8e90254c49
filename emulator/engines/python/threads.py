"""Threads of a block as Python generators, and their order of execution.

A thread runs until it waits: at a barrier, a warp operation, an atomic operation or a print. It yields its position, the
operation and the operands. When every lane of a warp waits or has ended, the lanes with the earliest position execute
their operation together, in ascending order. Each warp runs to a barrier of the block before the next one starts.
A kernel without such operations is a plain function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

import numpy as np

from ...errors import Diagnostic
from ...language.intrinsics import WARP_SIZE
from ...runtime.engine import Request
from ...runtime.prints import Prints
from ...sanitizer import barriers
from ...sanitizer.places import coordinates, thread_text
from ...span import Span

Position = tuple[int, ...]
"""Statement, iteration, statement, ... from the outside in; ordered as a warp executes them."""
END: Position = (1 << 62,)
"""The position of a thread after the last statement."""
MAX_IDLE_ITERATIONS = 64
"""Iterations without progress after which a waiting warp lets the other warps of its block run."""


class Fault(Exception):
    """Ends a launch at a finding, in the statement at fault."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
        self.other: Access | None = None
        """The earlier access of a race."""


@dataclass(frozen=True, slots=True)
class Access:
    """An access to an element.

    memory: key of the array (`access.memory_key`). array: its name in the prepared program. value: read or
    written; None for an atomic operation. block, thread: linear. number: among the accesses of the thread. line: number of the
    thread's statement under a debugger. executions: of the statement in this thread before. phase: barriers of the block
    before. arrived, awaited: barriers of the grid or the cluster at which the block has arrived, and for which it has waited.
    epoch: `syncwarp` of the thread before; lane_epochs: epochs of the other lanes that are ordered before it.
    failed: whether it is a compare-and-swap that wrote nothing.
    """

    node: Any
    span: Span
    memory: tuple[Any, ...]
    array: str
    index: int
    value: Any
    block: int
    thread: int
    number: int
    line: int
    executions: int
    phase: int
    arrived: int
    awaited: int
    epoch: int
    lane_epochs: Mapping[int, int]
    failed: bool


class Observer(Protocol):
    """Receives the accesses and assignments of a launch."""

    def access(self, access: Access) -> Fault | None:
        """Receive an access, before a load or a store and after an atomic operation. Return a finding to raise."""


class Operation(Protocol):
    """An operation for which threads wait."""

    span: Span

    def perform(self, group: list[Thread]) -> list[Any]:
        """Return the result of each waiting thread, in ascending order of lanes."""
        ...


class Launch(Protocol):
    """The state of a launch that its threads share."""

    request: Request
    prints: Prints
    memory: dict[Any, Any]
    origins: dict[int, Any]
    observers: list[Observer]
    release_order: Any

    def phase(self, block: int) -> int:
        """Return the number of barriers of a block."""

    def ends(self, thread: Thread, fault: Fault) -> bool:
        """Return whether a finding ends the launch, and not its thread alone."""

    def assigned(self, thread: Thread, span: Span, name: str, value: Any) -> None:
        """Receive the value of a user's variable."""

    def start(self, thread: Thread) -> Generator[Any, Any, None] | None:
        """Start the kernel in a thread; None if it has run to its end."""

    def finding(self, diagnostic: Diagnostic) -> Fault | None:
        """Return the exception of a finding; None if a comment of the kernel allows it."""

    def add_origin(self, memory: Any, alloc: Any, span: Span, block: int) -> None:
        """Record the declaration of an array. span: with the calls through which it was reached. block: that has it."""

    def begin_phase(self, block: Block) -> None:
        """Count a barrier of a block."""

    def warp_order(self, block: Block) -> list[Warp]:
        """Return the warps of a block in the order in which they run up to the next barrier."""


class Thread:
    """A thread: its indices, its memory, and the operation at which it waits."""

    def __init__(self, block: Block, linear: int) -> None:
        request = block.launch.request
        self.block, self.linear = block, linear
        for axis, value in zip("xyz", coordinates(linear, request.block), strict=True):
            setattr(self, f"thread_{axis}", np.int32(value))
        vars(self).update(block.indices)
        self.lane, self.warp = np.int32(linear % WARP_SIZE), np.int32(linear // WARP_SIZE)
        self.calls: list[Span] = []
        self.accesses = self.line = self.epoch = 0
        self.swap_failed = False
        self.executions: Counter[Any] = Counter()
        self.lane_epochs: Mapping[int, int] = {}
        self.clock = count()
        self.memory: dict[Any, Any] = {}
        self.team = block.warps[linear // WARP_SIZE]
        self.steps: Generator[Any, Any, None] | None = None
        self.position: Position | None = None
        self.end = END
        self.operation: Any = None
        self.operands: tuple[Any, ...] = ()

    def start(self) -> None:
        """Run to the first wait, or to the end."""
        try:
            self.steps = self.block.launch.start(self)
        except Fault as fault:
            if self.block.launch.ends(self, fault):
                raise
        if self.steps is not None:
            self.resume(None)

    def resume(self, result: Any) -> None:
        """Continue with the result of an operation, up to the next wait or the end."""
        assert self.steps is not None
        try:
            self.position, self.operation, self.operands = self.steps.send(result)
        except StopIteration as stop:
            self.position, self.end = None, stop.value or END
        except Fault as fault:
            if self.block.launch.ends(self, fault):
                raise
            self.position = None

    def is_alive(self, position: Position | None) -> bool:
        """Return whether the thread has not returned where others are at a position, as when a warp executes statements together."""
        return self.position is not None or (position is not None and self.end > position)

    def place(self, more: int = 0) -> str:
        """Return the text of this thread for a diagnostic. more: other lanes with the same finding."""
        request = self.block.launch.request
        return thread_text(self.block.linear, self.linear, request.grid, request.block, more)

    def span(self, span: Span) -> Span:
        """Return a span of the running function with the calls through which it was reached."""
        for called in reversed(self.calls):
            span = span.inside(called)
        return span

    def fault(self, diagnostic: Diagnostic) -> Fault:
        """Return the exception of a finding in the running statement."""
        return Fault(replace(diagnostic, span=self.span(diagnostic.span)))

    def fail(self, diagnostic: Diagnostic) -> None:
        """Raise a finding in the statement at which this thread waits."""
        assert self.steps is not None
        self.steps.throw(self.fault(diagnostic))


def order_lanes(group: list[Thread]) -> None:
    """Order the accesses of threads of one warp before their next ones, at a `syncwarp`."""
    merged: dict[int, int] = {}
    for thread in group:
        thread.epoch += 1
        for other, epoch in thread.lane_epochs.items():
            merged[other] = max(epoch, merged.get(other, 0))
    merged |= {thread.linear: thread.epoch for thread in group}
    for thread in group:
        thread.lane_epochs = merged
    if (order := group[0].block.launch.release_order) is not None:
        order.synchronise(group)


class Warp:
    """The lanes of a warp. idle: iterations of a waiting loop since its last progress."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []
        self.idle = 0
        self.started = False

    def waiting(self) -> list[Thread]:
        """Return the threads at the earliest position; none if all have ended."""
        living = [thread for thread in self.threads if thread.position is not None]
        first = min((thread.position for thread in living if thread.position is not None), default=None)
        return [thread for thread in living if thread.position == first]

    def run(self) -> None:
        """Run to a barrier of the block, to the end, or until the warp waits for others."""
        if not self.started:
            self.started = True
            for thread in self.threads:
                thread.start()
        slice_end = self.idle + MAX_IDLE_ITERATIONS
        while (group := self.waiting()) and not group[0].operation.is_barrier and self.idle < slice_end:
            for thread, result in zip(group, group[0].operation.perform(group), strict=True):
                thread.resume(result)


def _indices(block: tuple[int, ...], request: Request) -> dict[str, np.int32]:
    """Return the attributes of threads that all threads of a block have in common: of the block, its cluster and the grid."""
    grid, cluster = request.grid, request.cluster
    x, y, z = (n % size for n, size in zip(block, cluster, strict=True))
    extents = {
        "block": block,
        "block_dim": request.block,
        "grid_dim": grid,
        "cluster_dim": cluster,
        "cluster_block": (x, y, z),
        "cluster_index": [n // size for n, size in zip(block, cluster, strict=True)],
        "grid_clusters": [n // size for n, size in zip(grid, cluster, strict=True)],
    }
    indices = {
        f"{name}_{axis}": np.int32(n) for name, own in extents.items() for axis, n in zip("xyz", own, strict=True)
    }
    rank = x + cluster[0] * (y + cluster[1] * z)
    return indices | {"cluster_rank": np.int32(rank), "cluster_size": np.int32(np.prod(cluster))}


class Block:
    """A block of threads and its shared memory. cluster: the blocks of its cluster that run with it, by rank. arrived, awaited: the
    numbers of barriers of the grid or the cluster at which it has arrived, and for which it has waited."""

    def __init__(self, launch: Launch, linear: int) -> None:
        self.launch, self.linear = launch, linear
        self.cluster: list[Block] = [self]
        self.arrived = self.awaited = 0
        self.index = coordinates(linear, launch.request.grid)
        self.indices = _indices(self.index, launch.request)
        threads = int(np.prod(launch.request.block))
        self.memory: dict[Any, Any] = {}
        self.warps = [Warp() for _ in range(-(-threads // WARP_SIZE))]
        for number in range(threads):
            self.warps[number // WARP_SIZE].threads.append(Thread(self, number))

    def run(self) -> Iterator[list[Thread]]:
        """Run all threads. Yield the threads at each barrier of the grid or the cluster, before they continue; none while a warp waits."""
        order = self.launch.warp_order(self)
        while True:
            for warp in order:
                warp.run()
            waiting = [thread for warp in self.warps for thread in warp.waiting()]
            if not waiting:
                return
            if any(not thread.operation.is_barrier for thread in waiting):
                if len(self.cluster) > 1:
                    yield []  # it may wait for another block
                continue  # a warp waits for another one in a loop
            group = self.at_barrier()
            if group[0].operation.of_blocks:
                mode = group[0].operation.node.mode
                self.arrived += mode != "cluster_wait"
                yield group
                self.awaited = self.awaited if mode == "cluster_arrive" else self.arrived
            for thread, result in zip(group, group[0].operation.perform(group), strict=True):
                thread.operation = _CONTINUES
                thread.operands = (result,)
            self.launch.begin_phase(self)
            order = self.launch.warp_order(self)

    def is_alive(self, position: Position | None) -> bool:
        """Return whether any thread has not returned where others are at a position."""
        return any(thread.is_alive(position) for warp in self.warps for thread in warp.threads)

    def at_barrier(self) -> list[Thread]:
        """Return the threads at the earliest barrier. Raises Fault if threads that have not ended are elsewhere."""
        threads = [t for warp in self.warps for t in warp.threads]
        first = min(t.position for t in threads if t.position is not None)
        present = [t for t in threads if t.position == first]
        missing = [t for t in threads if t.position != first and t.is_alive(first)]
        ended = [t for t in threads if not t.is_alive(first)]
        span, place = present[0].operation.span, present[0].place()
        if missing:
            numbers = len(present), len(missing)
            present[0].fail(barriers.divergent(span, place, *numbers, missing[0].place()))
        request = self.launch.request
        if ended and barriers.requires_every_thread(request.checks, request.device):
            present[0].fail(barriers.returned(span, place, len(present), len(ended), ended[0].place()))
        return present


class _Continues:
    """The continuation of a thread after a barrier, when its warp runs again."""

    is_barrier = of_blocks = False
    span: Span

    def perform(self, group: list[Thread]) -> list[Any]:
        return [thread.operands[0] for thread in group]


_CONTINUES = _Continues()
