"""The memory model of PTX for small executions: the order of their operations, and the races that it leaves.

An execution is a sequence of operations in the order in which they take effect: a read returns the last write. Causality order is the
transitive closure of

- program order, and barriers of their threads;
- synchronisation: a release pattern of a write synchronises with an acquire pattern of a read that observes the write, if the first
  operation of the one and the last operation of the other are morally strong. A release pattern is a strong write that releases, or a
  strong write after a fence, or after a release of the same element. An acquire pattern is its mirror image. A read observes the write
  whose value it returns, and what that write observes if it is a read-modify-write operation; each pair is morally strong.

A write that a read observes is ordered before the operations after the read.

Two operations are morally strong if neither is weak, and the scope of each includes the thread of the other. Two accesses of an element by
two threads race if one of them writes, they are not morally strong, and causality does not order them. Fences are not ordered among
themselves: another execution with the same reads may have the reverse order.

The checker has four rules beyond the model, which its documentation states:

- BARRIERS ACQUIRE: a barrier is an acquire of its threads;
- BARRIERS PUBLISH: if all warps of a block have a fence of the device since the last barrier, this barrier counts as a fence in the release
  patterns of threads with a fence;
- COHERENCE: an atomic operation before a write that a thread has read is ordered before the later accesses of the thread to the element;
- COUNTERS: an atomic operation whose result is used is ordered after all earlier atomic operations on its element, if one of the two
  writes, for later weak accesses to it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Thread = tuple[int, int, int]
"""Block, warp and lane."""


@dataclass(frozen=True)
class Kind:
    """A kind of operation: an access, a fence (which acquires and releases and has no element) or a barrier.

    scope: "block" or "device"; "" of a weak access. swaps: whether it writes only if no other operation has. used: whether its
    result is used.
    """

    scope: str = ""
    reads: bool = False
    writes: bool = False
    acquires: bool = False
    releases: bool = False
    swaps: bool = False
    used: bool = False


@dataclass(frozen=True)
class Operation:
    """An operation. threads: one, or all of a barrier. element: of an access. name: of the kind."""

    name: str
    kind: Kind
    threads: tuple[Thread, ...]
    element: Any = None


class Execution:
    """The causality order of an execution.

    before: of each operation, the set of the operations before it, as bits. wrote: whether it wrote. observed: the writes that it
    observes. own: the operations of each thread. published: the last barrier of each thread that publishes.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.before: list[int] = []
        self.wrote: list[bool] = []
        self.observed: list[list[int]] = []
        self.own: dict[Thread, list[int]] = defaultdict(list)
        self.accesses: dict[Any, list[int]] = defaultdict(list)
        self.published: dict[Thread, int] = {}
        for at, operation in enumerate(operations):
            last = [self.own[thread][-1] for thread in operation.threads if self.own[thread]]
            self.before.append(0)
            self._order(at, last)
            self._access(at, operation)
            for thread in operation.threads:
                self.own[thread].append(at)
            if operation.kind.acquires:
                for thread in operation.threads:
                    self._order(at, list(self._acquired(at, thread)))
            if operation.name == "sync":
                self._publish(at, operation)

    def _order(self, at: int, earlier: Sequence[int]) -> None:
        for number in earlier:
            self.before[at] |= self.before[number] | 1 << number

    def _access(self, at: int, operation: Operation) -> None:
        """Record what an access writes, and the writes that it observes."""
        accesses, kind = self.accesses[operation.element], operation.kind
        last = next((one for one in reversed(accesses) if self.wrote[one]), None)
        self.wrote.append(kind.writes and not (kind.swaps and last is not None))
        self.observed.append([])
        if kind.reads and last is not None and self._morally_strong(last, at):
            self.observed[at] = [last, *(self.observed[last])]
        if operation.element is not None:
            accesses.append(at)

    def _morally_strong(self, first: int, second: int) -> bool:
        a, b = self.operations[first], self.operations[second]
        near = a.threads[0][0] == b.threads[0][0]
        return all(one.kind.scope == "device" or (one.kind.scope == "block" and near) for one in (a, b))

    def _acquired(self, at: int, thread: Thread) -> Iterator[int]:
        """Yield the first operations of the release patterns with which the acquire patterns of a thread synchronise that end here."""
        element = self.operations[at].element
        for read in self.own[thread]:
            if element in (None, self.operations[read].element):
                for write in self.observed[read]:
                    yield from (first for first in self._releases(write) if self._morally_strong(first, at))

    def _releases(self, write: int) -> Iterator[int]:
        """Yield the first operations of the release patterns of a write."""
        (thread,) = self.operations[write].threads
        own = [at for at in self.own[thread] if at <= write]
        elements = None, self.operations[write].element
        yield from (at for at in own if (step := self.operations[at]).kind.releases and step.element in elements)
        if self.published.get(thread, write) < write and any(self._is_fence(at) for at in own):
            yield self.published[thread]

    def _is_fence(self, at: int) -> bool:
        return self.operations[at].name in ("fence", "fence_block")

    def _publish(self, at: int, barrier: Operation) -> None:
        """Record a barrier that publishes."""
        fenced = set()
        for thread in barrier.threads:
            own = self.own[thread][:-1]
            last = max((n for n, one in enumerate(own) if self.operations[one].name == "sync"), default=-1)
            fenced |= {thread[1] for one in own[last + 1 :] if self.operations[one].name == "fence"}
        if fenced == {thread[1] for thread in barrier.threads}:
            self.published |= dict.fromkeys(barrier.threads, at)

    def races(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of accesses that race."""
        for element, accesses in self.accesses.items():
            if element is not None:
                yield from (pair for pair in combinations(accesses, 2) if self._races(*pair))

    def _races(self, first: int, second: int) -> bool:
        a, b = self.operations[first], self.operations[second]
        if (
            a.threads == b.threads
            or not (self.wrote[first] or self.wrote[second])
            or self._morally_strong(first, second)
        ):
            return False
        after = [
            one for one in self.accesses[a.element] if self.before[second] >> one & 1 and self.operations[one].kind.used
        ]
        observed = [write for one in after for write in self.observed[one]]
        coherent = first in observed or any(a.kind.scope and self.before[write] >> first & 1 for write in observed)
        used = [one for one in after if first < one and self._morally_strong(first, one)]
        counted = any(self.wrote[first] or self.wrote[one] for one in used)
        return not (self.before[second] >> first & 1 or coherent or (counted and b.kind.scope != "device"))
