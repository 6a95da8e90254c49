"""Streams and events: queues of launches in order, and the marks that order them.

Order is a vector clock: for each stream, the number of its launches before. An emulator runs each launch at
once, which is one of the orders that a GPU may choose; the race checker uses the clocks (`stream_races`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from ..checked import shown
from ..errors import LaunchError

Clock = Mapping[int, int]


class NativeEvent(Protocol):
    """An event of a GPU."""

    def wait(self, stream: NativeStream) -> None:
        """Have later operations of a stream wait for the event."""
        ...

    def synchronize(self) -> None: ...

    def elapsed(self, end: NativeEvent) -> float:
        """Return the milliseconds from this event to another one."""
        ...


class NativeStream(Protocol):
    """A stream of a GPU."""

    def record(self) -> NativeEvent:
        """Return a new event at the end of the queue."""
        ...

    def synchronize(self) -> None: ...


class Recorder(Protocol):
    """A graph that records launches and their order (`graphs.Graph`)."""

    def record_event(self, event: Event, stream: Stream) -> None: ...

    def wait(self, stream: Stream, event: Event) -> None: ...


RECORDER: ContextVar[Recorder | None] = ContextVar("the graph that records launches", default=None)
_NUMBERS = itertools.count(1)
_host: dict[int, int] = {}
"""Launches that the program has waited for, by stream. Python assigns one entry at a time."""
_latest: dict[int, int] = {}
"""All launches of the process, by stream."""


class Stream:
    """A queue of launches, `launch(..., stream=stream)`: in order with each other, concurrent with those of other streams.

    Parameters
    ----------
    external : a stream of PyTorch, CuPy, Numba or another library, or its address, to queue launches behind the work of that
        library; None for a new one.

    A launch without a stream waits for all earlier launches, and ends before later ones begin. On an emulator each launch
    runs at once. Use a stream in one thread at a time.

    number: of the stream in this process. handle: the address of an external stream; None for a new one.
    """

    def __init__(self, external: Any = None) -> None:
        self.number, self.handle = next(_NUMBERS), None if external is None else _handle(external)
        self.clock: dict[int, int] = {}
        self.native: dict[Any, NativeStream] = {}  # by context of a GPU
        self._unrecorded: list[Event] = []
        self._awaited: list[Event] = []

    def __repr__(self) -> str:
        return f"<Stream {self.number}>"

    def wait(self, event: Event) -> None:
        """Have later launches wait for an event. An event that was not recorded orders nothing."""
        if not isinstance(event, Event):
            raise LaunchError(f"a stream waits for a st.Event, not for {shown(event)}")
        if (graph := RECORDER.get()) is not None:
            return graph.wait(self, event)
        _merge(self.clock, event.clock)
        for context, native in event.native.items():
            if context in self.native:
                native.wait(self.native[context])
        self._awaited.append(event)

    def synchronize(self) -> None:
        """Wait for all launches of the stream. Raises LaunchError, which names the launch, if one failed."""
        for native in self.native.values():
            native.synchronize()
        _merge(_host, self.clock)

    def attach(self, context: Any, native: NativeStream) -> None:
        """Add the stream of a GPU before its first launch there; events recorded and awaited before are now those of the GPU."""
        self.native[context] = native
        for event in self._awaited:
            if context in event.native:
                event.native[context].wait(native)
        for event in self._unrecorded:
            event.native[context] = native.record()
        self._unrecorded.clear()


class Event:
    """A mark in a stream: other streams and the program wait for it, and two of them measure a time.

    clock: the launches before it.
    """

    def __init__(self) -> None:
        self.clock: Clock = {}
        self.native: dict[Any, NativeEvent] = {}
        self._seconds: float | None = None

    @staticmethod
    def behind(stream: Stream | None) -> Event:
        """Return an event at the end of a stream, or behind all launches of the process."""
        event = Event()
        event.clock = dict(_latest if stream is None else stream.clock)
        return event

    def record(self, stream: Stream) -> None:
        """Place the event at the end of a stream. An earlier place is forgotten."""
        if not isinstance(stream, Stream):
            raise LaunchError(f"an event is recorded in a st.Stream, not in {shown(stream)}")
        if (graph := RECORDER.get()) is not None:
            return graph.record_event(self, stream)
        self.clock, self._seconds = dict(stream.clock), time.perf_counter()
        self.native = {context: native.record() for context, native in stream.native.items()}
        if not self.native:
            stream._unrecorded.append(self)

    def synchronize(self) -> None:
        """Wait for the launches before the event. Raises LaunchError, which names the launch, if one failed."""
        for native in self.native.values():
            native.synchronize()
        _merge(_host, self.clock)

    def elapsed(self, end: Event) -> float:
        """Return the milliseconds from this event to a later one: on a GPU its own time, else that of the program.

        Waits for `end`. Raises LaunchError for an event that was not recorded.
        """
        if not isinstance(end, Event):
            raise LaunchError(f"the end is a st.Event, not {shown(end)}")
        if self._seconds is None or end._seconds is None:
            raise LaunchError("both events are recorded before their time is known: event.record(stream)")
        end.synchronize()
        for context in self.native.keys() & end.native.keys():
            return self.native[context].elapsed(end.native[context])
        return (end._seconds - self._seconds) * 1000


def begin_launch(stream: Stream | None) -> None:
    """Advance the clocks for a launch. The program waits for a launch without a stream, which waits for all earlier ones.

    Raises LaunchError for another object in place of a stream.
    """
    if stream is None:
        return synchronize_host()
    if not isinstance(stream, Stream):
        raise LaunchError(
            f"stream is a st.Stream, or st.Stream(s) for a stream s of another library, not {shown(stream)}"
        )
    _merge(stream.clock, _host)
    stream.clock[stream.number] = _latest[stream.number] = stream.clock.get(stream.number, 0) + 1


def synchronize_host() -> None:
    """Record that the program has waited for all launches."""
    if _latest:
        _merge(_host, _latest)


def wait_for(clock: Clock) -> None:
    """Record that the program has waited for the launches of a clock."""
    _merge(_host, clock)


def clock_of(stream: Stream | None) -> Clock:
    """Return the clock of the latest launch of a stream, or of one without a stream."""
    return _host if stream is None else stream.clock


def _merge(clock: dict[int, int], other: Clock) -> None:
    for stream, number in [*other.items()]:
        if number > clock.get(stream, 0):
            clock[stream] = number


def _handle(external: Any) -> int:
    """Return the address of a stream of another library."""
    if hasattr(external, "__cuda_stream__"):
        protocol = external.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, PyCUDA and Numba
        value = getattr(external, name, None)
        value = getattr(value, "value", value)
        if isinstance(value, int):
            return value
    if isinstance(external, int) and not isinstance(external, bool):
        return external
    raise LaunchError(f"external is a stream of another library or its address, not {shown(external)}")
