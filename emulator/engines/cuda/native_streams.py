"""Streams and events of a GPU, behind `runtime.streams`."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

from ...errors import LaunchError
from ...runtime.streams import Stream
from . import library
from .driver import Context
from .launches import Queue
from .library import DriverError


class GpuStream:
    """A stream in a context. handle: of the driver; 0 is the default stream."""

    def __init__(self, context: Context, handle: int) -> None:
        self.context, self.handle = context, handle

    @staticmethod
    def handle_of(stream: Stream, context: Context) -> int:
        """Return the handle of the stream of the current context, created once."""
        native: Any = stream.native.get(context)
        if native is None:
            if stream.handle is None:
                native = GpuStream(context, library.new_stream())
                weakref.finalize(native, _destroy, context, library.destroy_stream, native.handle)
            else:
                native = GpuStream(context, stream.handle)
            stream.attach(context, native)
        handle: int = native.handle
        return handle

    def record(self) -> GpuEvent:
        with self.context.current():
            event = GpuEvent(self.context, library.new_event(True))
            library.record_event(event.handle, self.handle)
            return event

    def synchronize(self) -> None:
        with self.context.current():
            _checked(self.context, library.synchronize_stream, self.handle)
            Queue.of_context(self.context).discard_queued(self.handle)


class GpuEvent:
    """An event in a context."""

    def __init__(self, context: Context, handle: int) -> None:
        self.context, self.handle = context, handle
        weakref.finalize(self, _destroy, context, library.destroy_event, handle)

    def wait(self, stream: Any) -> None:
        with self.context.current():
            library.wait_for_event(stream.handle, self.handle)

    def synchronize(self) -> None:
        with self.context.current():
            _checked(self.context, library.synchronize_event, self.handle)

    def elapsed(self, end: Any) -> float:
        with self.context.current():
            return library.elapsed(self.handle, end.handle)


def _checked(context: Context, call: Any, handle: int) -> None:
    """Wait for a stream or an event. Raises LaunchError, which names the launches that may have failed."""
    queue = Queue.of_context(context)
    try:
        call(handle)
        queue.discard_ended()
    except DriverError as error:
        names = ", or ".join(queue.unfinished()[:3]) or "an earlier launch"
        raise LaunchError(f"{names} failed on the GPU: {error}") from None


def _destroy(context: Context, destroy: Any, handle: int) -> None:
    """Release a handle in its context: the driver ends its work first."""
    with suppress(Exception), context.current():  # at the end of a process there may be no driver any more
        destroy(handle)
