"""Streams and events of the CUDA runtime. Work is complete when it is submitted; the order of streams is for the race checker."""

import ctypes
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from ...runtime.host_findings import Place
from ...runtime.streams import Event, Stream, synchronize_host

SUCCESS, INVALID_VALUE, INVALID_HANDLE = 0, 1, 400
_FIRST_HANDLE = 0x1000
_DEFAULT_STREAMS = (0, 1, 2)
"""The null stream, cudaStreamLegacy and cudaStreamPerThread."""
_DISABLE_TIMING = 2
LARGEST_PRIORITY = -5
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def store(type: Any, pointer: int | None, value: Any) -> int:
    """Write a value for the program. Return the code for a null pointer, else success."""
    if not pointer:
        return INVALID_VALUE
    type.from_address(pointer).value = value
    return SUCCESS


def flush_host_output() -> None:
    """Write the buffers of C's streams, so that the output of a kernel follows that of the host."""
    ctypes.CDLL(None).fflush(None)


class Queues:
    """Streams and events. report: prints a line on stderr."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self.handles = itertools.count(_FIRST_HANDLE, 16)
        self.streams: dict[int, Stream | None] = dict.fromkeys(_DEFAULT_STREAMS)
        """Queues by handle; None for one that waits for all earlier work."""
        self.flags: dict[int, tuple[int, int]] = {}
        """Flags and priorities of streams."""
        self.events: dict[int, float | None] = {}
        self.marks: dict[int, Event] = {}
        """Places of recorded events in their streams."""
        self.untimed: set[int] = set()
        self.explained = False
        self.thread = threading.local()

    @property
    def place(self) -> Place:
        """File, line and function of the current call."""
        file, line, name = self.thread.place
        return ctypes.string_at(file).decode(errors="replace") if file else "unknown", line, name

    def _stream(self, stream: int | None) -> int:
        """Return the code for a use of a stream."""
        return SUCCESS if (stream or 0) in self.streams else INVALID_HANDLE

    def cudaStreamCreate(self, stream: int) -> int:
        self.streams[handle := next(self.handles)] = Stream()
        return store(ctypes.c_void_p, stream, handle)

    def cudaStreamCreateWithFlags(self, stream: int, flags: int) -> int:
        return self.cudaStreamCreateWithPriority(stream, flags, 0)

    def cudaStreamCreateWithPriority(self, stream: int, flags: int, priority: int) -> int:
        if code := self.cudaStreamCreate(stream):
            return code
        self.flags[ctypes.c_size_t.from_address(stream).value] = flags, max(LARGEST_PRIORITY, min(0, priority))
        return SUCCESS

    def cudaStreamDestroy(self, stream: int | None) -> int:
        if (stream or 0) in _DEFAULT_STREAMS or stream not in self.streams:
            return INVALID_HANDLE
        del self.streams[stream]
        return SUCCESS

    def cudaStreamQuery(self, stream: int | None) -> int:
        code = self._stream(stream)
        if not code:
            queue = self.streams[stream or 0]
            synchronize_host() if queue is None else queue.synchronize()
        return code

    cudaStreamSynchronize = cudaStreamQuery

    def cudaStreamWaitEvent(self, stream: int | None, event: int | None, flags: int) -> int:
        if code := self._stream(stream):
            return code
        if event not in self.events:
            return INVALID_HANDLE
        if (queue := self.streams[stream or 0]) is not None and event in self.marks:
            queue.wait(self.marks[event])
        return SUCCESS

    def cudaStreamGetFlags(self, stream: int | None, flags: int) -> int:
        return self._stream(stream) or store(ctypes.c_uint, flags, self.flags.get(stream or 0, (0, 0))[0])

    def cudaStreamGetPriority(self, stream: int | None, priority: int) -> int:
        return self._stream(stream) or store(ctypes.c_int, priority, self.flags.get(stream or 0, (0, 0))[1])

    def cudaStreamAddCallback(self, stream: int | None, function: int, data: int | None, flags: int) -> int:
        code = self._stream(stream)
        if not code:
            _Callback(function)(stream, SUCCESS, data)
        return code

    def cudaLaunchHostFunc(self, stream: int | None, function: int, data: int | None) -> int:
        code = self._stream(stream)
        if not code:
            _HostFunction(function)(data)
        return code

    def cudaEventCreate(self, event: int, flags: int) -> int:
        handle = next(self.handles)
        self.events[handle] = None
        if flags & _DISABLE_TIMING:
            self.untimed.add(handle)
        return store(ctypes.c_void_p, event, handle)

    cudaEventCreateWithFlags = cudaEventCreate

    def cudaEventDestroy(self, event: int | None) -> int:
        self.untimed.discard(event or 0)
        self.marks.pop(event or 0, None)
        return SUCCESS if self.events.pop(event or 0, 0) != 0 else INVALID_HANDLE

    def cudaEventRecord(self, event: int | None, stream: int | None) -> int:
        if event not in self.events:
            return INVALID_HANDLE
        self.events[event] = time.perf_counter()
        if not (code := self._stream(stream)):
            self.marks[event] = Event.behind(self.streams[stream or 0])
        return code

    def cudaEventQuery(self, event: int | None) -> int:
        if event in self.marks:
            self.marks[event].synchronize()
        return SUCCESS if event in self.events else INVALID_HANDLE

    cudaEventSynchronize = cudaEventQuery

    def cudaEventElapsedTime(self, milliseconds: int, start: int | None, end: int | None) -> int:
        """Write the time of this machine between two events, which is the emulator's, not a GPU's."""
        begin, finish = self.events.get(start or 0), self.events.get(end or 0)
        if begin is None or finish is None or self.untimed & {start, end}:
            return INVALID_HANDLE
        if not self.explained:
            self.explained = True
            self.report("simtbed: note: times between events are the emulator's on this machine, not a GPU's")
        return store(ctypes.c_float, milliseconds, 1000 * (finish - begin))
