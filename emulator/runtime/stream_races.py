"""Races between launches on different streams: accesses to the same elements of a device array that no event orders.

Under the race check, each launch leaves the elements of its device arrays that it accessed. A later launch of the
array is compared with those that are not before it in the vector clocks of `streams`. Known limit: an array that a
kernel only reads counts as read as a whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import Diagnostic
from ..span import Span
from .arrays import DeviceArray
from .engine import Request
from .streams import Stream, clock_of

if TYPE_CHECKING:
    from ..sanitizer.tracking import AccessedElements


@dataclass(frozen=True)
class _Access:
    """The accesses of one launch to an array. number: of the launch in its stream."""

    kernel: str
    stream: int
    number: int
    elements: AccessedElements
    span: Span


_ACCESSES: weakref.WeakKeyDictionary[DeviceArray, list[_Access]] = weakref.WeakKeyDictionary()


def unordered_accesses(
    request: Request, accessed: Mapping[str, AccessedElements], stream: Stream | None
) -> list[Diagnostic]:
    """Return the races of a launch with earlier ones on other streams, and record its accesses."""
    if stream is None and not _ACCESSES:
        return []
    races, clock = [], clock_of(stream)
    number = 0 if stream is None else stream.number
    for name, elements in accessed.items():
        array = request.device_arrays[name]
        earlier = [a for a in _ACCESSES.get(array, ()) if a.number > clock.get(a.stream, 0)]
        kernel = request.prepared.program.kernel
        span = next(param.span for param in kernel.params if param.name == name)
        own = _Access(kernel.name, number, clock.get(number, 0), elements, span)
        races += [race for access in earlier if (race := _race(name, own, access)) is not None]
        if stream is not None:
            _ACCESSES[array] = [*earlier, own]
        else:  # it is before all later launches
            _ACCESSES.pop(array, None)
    return races


def _race(name: str, own: _Access, earlier: _Access) -> Diagnostic | None:
    """Return the race of two launches that no event orders; None if they access different elements."""
    a, b = own.elements, earlier.elements
    if len(a.written) != len(b.written):  # `keep` has truncated the array
        return None
    racing = (
        a.written & (b.written | b.read | b.atomic) | a.read & (b.written | b.atomic) | a.atomic & (b.written | b.read)
    )
    count = int(np.count_nonzero(racing))
    if not count:
        return None
    first = int(np.flatnonzero(racing)[0])
    return Diagnostic(
        "race",
        f"{name}[{first}] is accessed by {own.kernel} on stream {own.stream} and by {earlier.kernel} on stream "
        f"{earlier.stream} without an order",
        own.span,
        (
            f"{count:,} elements of {name} are accessed by both launches, and one of them writes",
            "record an event behind the first launch and let the second wait for it: event.record(a); b.wait(event)",
        ),
        count=count,
        related=earlier.span,
        array=name,
    )
