"""Launches with the same arguments as before: the driver's calls, with everything else computed once."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...runtime.arrays import DeviceArray
from ...runtime.engine import CodePlace, Outcome, Request
from ...runtime.result import LaunchDetails
from ...runtime.streams import Stream
from . import library
from .driver import Context, GpuArray, launch_error
from .launches import Launcher, Queue
from .library import DriverError
from .native_streams import GpuStream


class Repetition:
    """A launch whose arrays are device arrays in the memory of its GPU. It keeps no array alive."""

    def __init__(self, context: Context, request: Request, launcher: Launcher) -> None:
        """The context must be current."""
        self.context, self.launcher, self.names = context, launcher, (*request.device_arrays,)
        self.request, self.numbers = request.without_arguments(), request.numbers
        self.values = launcher.values_of_node(request)
        self.memory = [weakref.ref(array.remote) for array in request.device_arrays.values()]
        self.queue, driver = Queue.of_context(context), library.cuda_driver()
        self.record, self.synchronize, self.launch = (
            driver.cuEventRecord,
            driver.cuEventSynchronize,
            launcher.function.call,
        )
        self.elapsed = driver.cuEventElapsedTime
        self.start, self.end = self.queue.take_events(timed=True)
        weakref.finalize(self, self.queue.timed_events.append, (self.start, self.end))
        self.milliseconds = ctypes.c_float()
        self.time = ctypes.byref(self.milliseconds)
        self.calls: dict[int, tuple[Any, ...]] = {}

    @staticmethod
    def of_request(context: Context, request: Request) -> Repetition | None:
        """Return the repetition of a launch; None if an argument is copied, or is memory of another library, and without arrays, whose
        locks order the launches of several threads."""
        arrays = request.device_arrays
        if not arrays:
            return None
        for name, value in request.arguments.items():
            if getattr(value, "ndim", 0) and name not in arrays:
                return None
        if not all(isinstance(array.remote, GpuArray) and array.remote.context is context for array in arrays.values()):
            return None
        with context.current():
            return Repetition(context, request, Launcher.of_request(context, request))

    def run(self, arrays: Sequence[DeviceArray], stream: Stream | None, depth: int) -> LaunchDetails | None:
        """Launch again; None if an array has moved. depth: of the user's frame from here."""
        locked = sorted(arrays, key=id)  # the order of locks of all launches
        for array in locked:
            array.lock.acquire()
        pushed = self.context.context
        try:
            pushed.push()
        except BaseException:
            for array in locked:
                array.lock.release()
            raise
        try:
            for array, memory in zip(arrays, self.memory, strict=True):
                if array.remote is None or array.remote is not memory():
                    return None
            if stream is not None:
                return self._start(GpuStream.handle_of(stream, self.context), arrays, depth + 1)
            return self._run(arrays)
        except DriverError as error:
            raise launch_error(error, self.request, self.context) from None
        finally:
            pushed.pop()
            for array in locked:
                array.lock.release()

    def request_of(self, arrays: Sequence[DeviceArray]) -> Request:
        """Return the request of a launch."""
        device_arrays = dict(zip(self.names, arrays, strict=True))
        memory = {name: self.request.forms[name].flat(array.form) for name, array in device_arrays.items()}
        return self.request.with_arguments({**self.numbers, **memory}, device_arrays)

    def _call(self, handle: int) -> tuple[Any, ...]:
        function, request = self.launcher.function, self.request
        shape = (*request.grid, *request.block, self.launcher.shared)
        call = self.calls[handle] = (function.function, *shape, handle, self.launcher.block.pointers, *function.extra)
        return call

    def _pack(self) -> None:
        block = self.launcher.block
        if block.owner is not self:
            block.pack(block.memory, block.offset, *self.values)
            block.owner = self

    def _run(self, arrays: Sequence[DeviceArray]) -> LaunchDetails:
        call = self.calls.get(0) or self._call(0)
        with self.launcher.block.lock:
            self._pack()
            status = self.record(self.start, 0) or self.launch(*call) or self.record(self.end, 0)
        status = status or self.synchronize(self.end) or self.elapsed(self.time, self.start, self.end)
        if status:
            raise DriverError(status)
        request = partial(self.request_of, arrays)
        return LaunchDetails.of_arrays(request, self.milliseconds.value, self.launcher.loaded.resources)

    def _start(self, handle: int, arrays: Sequence[DeviceArray], depth: int) -> LaunchDetails:
        call = self.calls.get(handle) or self._call(handle)
        with self.launcher.block.lock:
            self._pack()
            status = self.launch(*call)
        if status:
            raise DriverError(status)
        frame = sys._getframe(depth)
        queued = QueuedLaunch(self, handle, frame.f_code.co_filename, frame.f_lineno)
        self.queue.queued.append(queued)
        return LaunchDetails.pending(partial(self.request_of, arrays), queued)


class QueuedLaunch:
    """A repeated launch on a stream."""

    __slots__ = ("file", "handle", "line", "repetition")

    def __init__(self, repetition: Repetition, handle: int, file: str, line: int) -> None:
        self.repetition, self.handle, self.file, self.line = repetition, handle, file, line

    @property
    def name(self) -> str:
        """The kernel and the place of the launch."""
        return f"{self.repetition.request.specialisation.summary.name}{CodePlace(self.file, self.line)}"

    def finish(self) -> Outcome:
        """Wait for the launches of the stream. Raises LaunchError, which names those that may have failed."""
        repetition = self.repetition
        with repetition.context.current():
            try:
                library.synchronize_stream(self.handle)
            except DriverError as error:
                place = CodePlace(self.file, self.line)
                raise launch_error(error, repetition.request, repetition.context, place) from None
            repetition.queue.discard_queued(self.handle)
        return Outcome({}, resources=repetition.launcher.loaded.resources)
