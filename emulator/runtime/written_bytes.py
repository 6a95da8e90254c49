"""Bytes of device memory that nothing has written, for launches over memory at addresses.

A launch under the uninitialised check finds reads of elements that no copy, memset or earlier launch wrote. Known limits: an
allocation that a kernel accesses as several types, and writes, counts as written; memory that the host may write directly is not
tracked.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .arrays import Buffer
from .engine import Request
from .result import LaunchDetails
from .stream_races import are_possible
from .streams import Stream

Flags = npt.NDArray[np.bool_]


@dataclass(eq=False)
class Allocation:
    """Identifies an allocation, whose address another one may have later. size: in bytes."""

    size: int


@dataclass(frozen=True)
class _View:
    """An array of a launch in an allocation: offset and size of its bytes there."""

    name: str
    start: int
    offset: int
    memory: Buffer


class WrittenBytes:
    """The written bytes of allocations. range_of: returns start and size of the allocation that contains an address, else None."""

    def __init__(self, range_of: Callable[[int], tuple[int, int] | None]) -> None:
        self.range_of = range_of
        self._flags: dict[int, Flags] = {}
        """By start, without allocations that are written as a whole."""
        self.allocations: dict[int, Allocation] = {}

    def allocated(self, start: int, size: int) -> None:
        """Add an allocation that nothing has written."""
        self._flags[start] = np.zeros(size, np.bool_)  # it takes no memory until then
        self.allocations[start] = Allocation(size)

    def freed(self, start: int) -> None:
        """Remove an allocation."""
        self.written_by_the_host(start)
        self.allocations.pop(start, None)

    def written_by_the_host(self, start: int) -> None:
        """Count an allocation as written."""
        self._flags.pop(start, None)

    def forget(self) -> None:
        """Count all allocations as written."""
        self._flags.clear()

    def write(self, address: int, size: int, source: int | None = None) -> None:
        """Mark bytes as written: those of a copy from another address, which may be memory of the device, as far as its own are."""
        flags, offset = self._at(address)
        copied, first = self._at(source) if source is not None else (None, 0)
        own = None if copied is None else copied[first : first + size]
        if flags is None and own is not None and not own.all() and (place := self.range_of(address)):
            flags, offset = np.ones(place[1], np.bool_), address - place[0]
            self._flags[place[0]] = flags
        if flags is not None:
            self._mark(address - offset, offset, size, own)

    def ignore_padding(self, address: int, size: int, padding: Collection[int]) -> None:
        """Count the bytes between members as written, in an array of structs from an address to the end of its allocation.

        size: of a struct, in bytes. padding: offsets in it.
        """
        flags, offset = self._at(address)
        if flags is not None:
            for byte in padding:
                flags[offset + byte :: size] = True

    def unwritten(self, address: int, size: int) -> int:
        """Return how many of these bytes nothing has written."""
        flags, offset = self._at(address)
        return 0 if flags is None else int(np.count_nonzero(~flags[offset : offset + size]))

    def run(
        self, request: Request, launch: Callable[[Request], LaunchDetails], stream: Stream | None = None
    ) -> LaunchDetails:
        """Run a launch of arrays in place with the written elements before it, and mark those that it wrote."""
        may_race = are_possible(stream)
        if not self._flags and not may_race:
            return launch(request)
        places = [
            _View(name, place[0], address - place[0], memory)
            for name, memory in request.arguments.items()
            if isinstance(memory, np.ndarray) and memory.size
            for address in [int(memory.ctypes.data)]
            for place in [self.range_of(address)]
            if place is not None and place[0] in self.allocations
        ]
        if may_race:
            request = replace(request, allocations={view.name: self.allocations[view.start] for view in places})
        views = [view for view in places if view.start in self._flags]
        if not views:
            return launch(request)
        changed = {view.name for view in views} & set(request.specialisation.summary.changed)
        several = {
            view.start
            for view in views
            if view.name in changed and sum(other.start == view.start for other in views) > 1
        }
        tracked = [view for view in views if view.start not in several]
        names = frozenset(view.name for view in tracked)
        written = {view.name: self._elements(view) for view in tracked}
        details = launch(replace(request, unwritten=names, written={n: f for n, f in written.items() if f.any()}))
        for view in views:
            if view.name in changed and view.start in self._flags:
                own, size = details.written.get(view.name), view.memory.nbytes
                self._mark(view.start, view.offset, size, None if own is None else own.repeat(size // own.size))
        return details

    def _mark(self, start: int, offset: int, size: int, own: Flags | None) -> None:
        """Set the flags of bytes of an allocation. own: of these bytes; None for all written."""
        flags = self._flags[start]
        if own is not None or offset or size < flags.size:  # else no page of the flags is touched
            flags[offset : offset + size] = True if own is None else own[: flags.size - offset]
            if not (flags[0] and flags[-1] and flags.all()):
                return
        del self._flags[start]

    def _elements(self, view: _View) -> Flags:
        """Return which elements of an array are written as a whole. Bytes behind the allocation count as written."""
        flags = self._flags[view.start][view.offset : view.offset + view.memory.nbytes]
        whole = np.ones(view.memory.nbytes, np.bool_)
        whole[: flags.size] = flags
        return np.asarray(whole.reshape(len(view.memory), -1).all(axis=1))

    def _at(self, address: int) -> tuple[Flags | None, int]:
        """Return the flags of the allocation with an address, None if it is written as a whole, and the offset in it."""
        place = self.range_of(address)
        return (None, 0) if place is None else (self._flags.get(place[0]), address - place[0])
