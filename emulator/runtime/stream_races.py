"""Races between launches and copies on different streams: accesses to the same elements of memory that no event orders.

Under the race check, each launch leaves the elements that it accessed of arrays that outlive it. A later launch of the
memory is compared with those that are not before it in the vector clocks of `streams`. Known limits: an array that a
kernel only reads counts as read as a whole; launches that access memory in elements of different sizes are not compared.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Diagnostic
from ..span import Span
from .engine import Request
from .streams import Stream, clock_of

if TYPE_CHECKING:
    from ..sanitizer.tracking import AccessedElements


@dataclass(frozen=True)
class _Access:
    """The accesses of one launch or copy to memory. number: of the launch in its stream. size: of the memory in bytes, for a copy.
    array: its name in the launch, and count: its elements; "" and 0 for a copy. elements: returns the accessed ones of a number of
    elements."""

    name: str
    stream: int
    number: int
    span: Span
    elements: Callable[[int], AccessedElements]
    array: str = ""
    count: int = 0
    size: int = 0


_ACCESSES: weakref.WeakKeyDictionary[Any, list[_Access]] = weakref.WeakKeyDictionary()


def are_possible(stream: Stream | None) -> bool:
    """Return whether a launch on a stream, or without one, may race with an earlier one, or with a later one."""
    return stream is not None or bool(_ACCESSES)


def unordered_accesses(
    request: Request, accessed: Mapping[str, AccessedElements], stream: Stream | None
) -> list[Diagnostic]:
    """Return the races of a launch with earlier ones on other streams, and record its accesses."""
    races: list[Diagnostic] = []
    if not are_possible(stream):
        return races
    number, order = _place(stream)
    for name, elements in accessed.items():
        kernel = request.prepared.program.kernel
        span = next(param.span for param in kernel.params if param.name == name)
        of_launch = partial(_of_launch, elements)
        own = _Access(kernel.name, number, order, span, of_launch, name, len(elements.written))
        races += _recorded(request.persistent[name], own, stream)
    return races


def unordered_copy(
    memory: Any, size: int, section: slice, writes: bool, span: Span, stream: Stream | None
) -> list[Diagnostic]:
    """Return the races of a copy or memset of a section of memory with launches on other streams, and record it. size: of the memory,
    in bytes, as the section."""
    if not are_possible(stream):
        return []
    own = _Access("a copy", *_place(stream), span, partial(_of_copy, size, section, writes), size=size)
    return _recorded(memory, own, stream)


def _place(stream: Stream | None) -> tuple[int, int]:
    """Return the number of a stream, and that of its latest launch."""
    number = 0 if stream is None else stream.number
    return number, clock_of(stream).get(number, 0)


def _of_launch(elements: AccessedElements, count: int) -> AccessedElements:
    return elements


def _of_copy(size: int, section: slice, writes: bool, count: int) -> AccessedElements:
    from ..sanitizer.tracking import AccessedElements

    nothing, touched, width = np.zeros(count, np.bool_), np.zeros(count, np.bool_), -(-size // count)
    touched[section.start // width : -(-section.stop // width)] = True
    return AccessedElements(touched if writes else nothing, nothing if writes else touched, nothing)


def _recorded(memory: Any, own: _Access, stream: Stream | None) -> list[Diagnostic]:
    """Return the races of an access with earlier ones, and record it."""
    clock = clock_of(stream)
    earlier = [access for access in _ACCESSES.get(memory, ()) if access.number > clock.get(access.stream, 0)]
    races = [race for access in earlier if (race := _race(own, access)) is not None]
    if stream is not None:
        _ACCESSES[memory] = [*earlier, own]
    else:  # it is before all later launches
        _ACCESSES.pop(memory, None)
    return races


def _race(own: _Access, earlier: _Access) -> Diagnostic | None:
    """Return the race of two accesses that no event orders; None if they access different elements."""
    count = own.count or earlier.count or own.size
    if earlier.count not in (0, count):  # elements of another size, or `keep` has truncated the array
        return None
    a, b = own.elements(count), earlier.elements(count)
    racing = (
        a.written & (b.written | b.read | b.atomic) | a.read & (b.written | b.atomic) | a.atomic & (b.written | b.read)
    )
    number = int(np.count_nonzero(racing))
    if not number:
        return None
    first, name = int(np.flatnonzero(racing)[0]), own.array or earlier.array or "memory"
    return Diagnostic(
        "race",
        f"{name}[{first}] is accessed by {own.name} on stream {own.stream} and by {earlier.name} on stream "
        f"{earlier.stream} without an order",
        own.span,
        (
            f"{number:,} elements of {name} are accessed by both, and one of them writes",
            "record an event behind the first and let the second wait for it: event.record(a); b.wait(event)",
        ),
        count=number,
        related=earlier.span,
        array=name,
    )
