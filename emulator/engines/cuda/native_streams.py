"""Streams and events of a GPU, behind `runtime.streams`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...runtime.streams import Stream
from . import library
from .driver import Context, failed
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
        with self.context.current(), _errors(self.context):
            event = GpuEvent(self.context, library.new_event(True))
            library.record_event(event.handle, self.handle)
            return event

    def synchronize(self) -> None:
        with self.context.current(), _errors(self.context):
            library.synchronize_stream(self.handle)
            Queue.of_context(self.context).discard_ended()
            Queue.of_context(self.context).discard_queued(self.handle)


class GpuEvent:
    """An event in a context."""

    def __init__(self, context: Context, handle: int) -> None:
        self.context, self.handle = context, handle
        weakref.finalize(self, _destroy, context, library.destroy_event, handle)

    def wait(self, stream: Any) -> None:
        with self.context.current(), _errors(self.context):
            library.wait_for_event(stream.handle, self.handle)

    def synchronize(self) -> None:
        with self.context.current(), _errors(self.context):
            library.synchronize_event(self.handle)
            Queue.of_context(self.context).discard_ended()

    def elapsed(self, end: Any) -> float:
        with self.context.current(), _errors(self.context):
            return library.elapsed(self.handle, end.handle)


@contextmanager
def _errors(context: Context) -> Iterator[None]:
    """Convert an error of the driver to LaunchError, which names the launches that may have failed."""
    try:
        yield
    except DriverError as error:
        raise failed(error, context) from None


def _destroy(context: Context, destroy: Any, handle: int) -> None:
    """Release a handle in its context: the driver ends its work first."""
    with suppress(Exception), context.current():  # at the end of a process there may be no driver any more
        destroy(handle)
