"""Launches in the order of a stream: arguments copied, the kernel started, results copied back, all without a wait.

NumPy arrays are copied through page-locked memory, section by section, so that the host's copy overlaps the transfer.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import LaunchError
from ...language.tensor_maps import MAP_BYTES
from ...language.types import Array
from ...runtime.arrays import MOVES, Buffer, DeviceArray
from ...runtime.common_memory import ranges_of
from ...runtime.engine import CodePlace, Outcome, Request
from ...runtime.gpu_memory import ExternalMemory
from . import library
from .driver import (
    CREATION,
    DEFAULT_SHARED,
    Context,
    GpuArray,
    attach,
    launch_error,
    load,
    pycuda_driver,
    resident,
)
from .filling import fill
from .functions import ArgumentBlock, tensor_map
from .library import DriverError
from .own_code import packed

SECTION = 1 << 20
"""Bytes of a copy: its transfer overlaps the host's copy of the next section."""
MAX_STAGED = 1 << 26
"""Bytes of an array that is copied through page-locked memory. The driver's own copy is used beyond."""
MAX_UNSTAGED = 1 << 16
"""Bytes of an array that the driver copies from and to ordinary memory at once, where the program waits for the launch."""
MAX_PAGE_LOCKED_RESULTS = 1 << 28
"""Bytes of results in page-locked memory that a program keeps; others are in ordinary memory."""
MAX_QUEUED_NAMES = 256
"""Latest direct launches that an error of one of them names."""
_CALLS = library.MemoryCalls()


@dataclass(eq=False)
class Queue:
    """The owner of a context's memory pools, events and launches in progress, the oldest first.

    queued: request, stream and place of the latest direct launches (`direct`), which are released by no event.
    """

    device: Any
    page_locked: Any
    events: list[int] = field(default_factory=list)
    timed_events: list[tuple[int, int]] = field(default_factory=list)
    pending: deque[StartedLaunch] = field(default_factory=deque)
    queued: deque[Any] = field(default_factory=lambda: deque(maxlen=MAX_QUEUED_NAMES))
    result_bytes: int = 0
    lock: threading.RLock = MOVES

    @staticmethod
    def of_context(context: Context) -> Queue:
        """Return the queue of the current context, created once."""
        if context.queue is None:
            with CREATION:
                if context.queue is None:
                    driver = pycuda_driver()
                    context.queue = Queue(driver.DeviceMemoryPool(), driver.PageLockedMemoryPool())
                    context.before_the_end.append(context.queue.clear)
        result: Queue = context.queue
        return result

    def clear(self) -> None:
        """Release all memory. The context must be current."""
        self.pending.clear()
        self.queued.clear()
        self.device.stop_holding()
        self.page_locked.stop_holding()

    def discard_ended(self) -> None:
        """Release the memory of launches that have ended. Raises DriverError after a failed launch."""
        with self.lock:  # the launch that has ended is the one that is released
            while self.pending and self.pending[0].has_ended():
                self.pending.popleft().release()

    def add(self, launch: StartedLaunch) -> None:
        """Add a launch in progress."""
        with self.lock:
            self.pending.append(launch)

    def take_events(self, timed: bool) -> tuple[int, int]:
        """Return the start event, 0 without a time, and the end event of a launch."""
        with self.lock:
            if timed:
                new = library.new_event
                return self.timed_events.pop() if self.timed_events else (new(True), new(True))
            return 0, self.events.pop() if self.events else library.new_event(False)

    def unfinished(self) -> list[str]:
        """Return the names of the launches that have not been seen to end."""
        with self.lock:
            running = [(launch.request, launch.place) for launch in self.pending if not launch.ended]
            running += [(request, CodePlace(*place)) for request, _, place in self.queued]
        return [named(request, place) for request, place in running]

    def discard_queued(self, stream: int) -> None:
        """Forget the direct launches of a stream, which have ended."""
        with self.lock:
            remaining = [launch for launch in self.queued if launch[1] != stream]
            self.queued.clear()
            self.queued.extend(remaining)

    def new_result(self, form: Buffer) -> Buffer:
        """Return an array for a result, in page-locked memory if the program keeps little of it."""
        size = form.size * form.itemsize
        if not 0 < size <= MAX_STAGED or self.result_bytes + size > MAX_PAGE_LOCKED_RESULTS:
            return np.empty(form.shape, form.dtype)
        array: Buffer = self.page_locked.allocate(form.shape, form.dtype)
        with self.lock:
            self.result_bytes += size
        weakref.finalize(array, self._released, size)
        return array

    def _released(self, size: int) -> None:
        with self.lock:
            self.result_bytes -= size


def named(request: Request, place: CodePlace | None) -> str:
    """Return the kernel and the place of a launch, for messages."""
    return f"{request.specialisation.summary.name}{place or ''}"


@dataclass(eq=False)
class StartedLaunch:
    """A launch in progress.

    place: in the program; None for a launch that the program waits for. retained: memory in use until its end.
    start_event, end_event: before the kernel, 0 if it is not timed, and at the end. waiting: threads that wait for the end event,
    which no other launch may use then.
    """

    place: CodePlace | None
    request: Request
    context: Context
    launcher: Launcher
    results: dict[str, Buffer]
    retained: list[Any]
    start_event: int
    end_event: int
    ended: bool = False
    waiting: int = 0

    def has_ended(self) -> bool:
        return self.ended or library.has_ended(self.end_event)

    def finish(self) -> Outcome:
        """Wait for the end, and return the outcome. Raises LaunchError, which names this launch and those that may have failed."""
        with self.context.current():
            try:
                return self.finish_in_context()
            except Exception as error:
                raise launch_error(error, self.request, self.context, self.place) from None

    def finish_in_context(self) -> Outcome:
        milliseconds = None
        lock = Queue.of_context(self.context).lock
        with lock:
            waits = not self.ended
            self.waiting += waits
        if waits:
            try:
                library.synchronize_event(self.end_event)
                if self.start_event:
                    milliseconds = library.elapsed(self.start_event, self.end_event)
            except DriverError:
                self.retained.clear()
                raise
            with lock:
                self.waiting -= 1
                self.release()
        return Outcome(self.results, milliseconds=milliseconds, resources=self.launcher.loaded.resources)

    def release(self) -> None:
        """Release memory and events of the ended launch, in its context."""
        queue = Queue.of_context(self.context)
        with queue.lock:
            self.ended = True
            self.retained.clear()
            if self.waiting or not self.end_event:
                return
            if self.start_event:
                queue.timed_events.append((self.start_event, self.end_event))
            else:
                queue.events.append(self.end_event)
            self.start_event = self.end_event = 0


class Launcher:
    """A loaded kernel with the memory of its arguments, for all launches of a plan on one device."""

    def __init__(self, context: Context, request: Request) -> None:
        self.context, self.loaded = context, load(request)
        self.interface, self.function = self.loaded.interface, self.loaded.function
        packing = self.interface.packing
        if packing is None:
            values = [request.arguments[name] for name in self.interface.arguments]
            codes = ["Q" if isinstance(value, np.ndarray) else f"{value.itemsize}s" for value in values]
            for name, _ in self.interface.tensors:
                codes[self.interface.arguments.index(name)] = f"{MAP_BYTES}s"
        else:
            codes = [f"{argument.size}s" for argument in packing]
        self.block = ArgumentBlock(codes + ["i"] * len(self.interface.lengths))
        self.shared = request.dynamic_shared + self.interface.carved_bytes
        self.copied_back = tuple(name for name in self.interface.arguments if name in self.interface.written)
        if request.dynamic_shared + self.loaded.resources.shared_bytes > DEFAULT_SHARED:
            self.function.allow_shared(self.shared)

    @staticmethod
    def of_request(context: Context, request: Request) -> Launcher:
        """Return the launcher of a request in the current context, created once for a plan."""
        launcher: Launcher | None = request.derived.get(context)
        if launcher is None:
            with CREATION:  # one thread compiles
                if (launcher := request.derived.get(context)) is None:
                    launcher = request.derived[context] = Launcher(context, request)
        return launcher

    def values(self, transfer: _Transfer) -> list[Any]:
        """Return the values of the kernel's arguments; copy its arrays to the device."""
        request, values = transfer.request, list[Any]()
        if request.overlapping:
            transfer.copy_ranges()
        arguments, arrays = request.arguments, request.device_arrays
        for name in self.interface.arguments:
            value = arguments[name]
            if name in arrays:
                values.append(self.resident_address(name, arrays[name], transfer))
            elif isinstance(value, np.ndarray):
                values.append(transfer.copy_in(name, value))
            else:
                values.append(value.tobytes())
        for name, form in self.interface.tensors:
            at = self.interface.arguments.index(name)
            values[at] = tensor_map(form, values[at])
        for name in self.interface.lengths:
            array: Any = arguments.get(name)
            values.append(request.dynamic_arrays[name].length if array is None else len(array))
        if self.interface.packing is None:
            return values
        addresses = {
            name: at for name, at in zip(self.interface.arguments, values, strict=True) if isinstance(at, int) and at
        }
        return [value.tobytes() for value in packed(self.interface.packing, arguments, addresses)]

    def values_of_node(self, request: Request) -> list[Any]:
        """Return the values of the arguments of a launch of a graph, all of whose arrays are device arrays."""
        return self.values(_Transfer(request, Queue.of_context(self.context), 0))

    def resident_address(self, name: str, array: DeviceArray, transfer: _Transfer) -> int:
        """Return the address of a DeviceArray on this GPU; 0 without elements."""
        remote = array.remote
        if isinstance(remote, GpuArray) and remote.context is self.context:
            return remote.address
        if isinstance(remote, ExternalMemory):
            return self._external_address(name, array, remote, transfer)
        if resident(self.context, array) is None:
            if not array.host.nbytes:
                return 0
            try:
                attach(self.context, array)
            except pycuda_driver().MemoryError:
                transfer.queue.device.free_held()
                attach(self.context, array)
        assert isinstance(array.remote, GpuArray)
        return array.remote.address

    def _external_address(self, name: str, array: DeviceArray, memory: ExternalMemory, transfer: _Transfer) -> int:
        """Return the address of memory of another library; the stream waits for its pending operations. Raises LaunchError."""
        if not memory.form.size:
            return 0
        address: int = resident(self.context, array)
        type = transfer.request.specialisation.summary.parameters[name]
        assert isinstance(type, Array)
        if address % type.element.size:
            raise LaunchError(f"{name} is not aligned to the {type.element.size} bytes of {type.element}: give a copy")
        if memory.readonly and name in self.interface.written:
            raise LaunchError(f"{name} is read only, and the kernel writes it: give a copy")
        if memory.stream and memory.stream != transfer.stream:
            _, event = transfer.queue.take_events(timed=False)
            library.record_event(event, memory.stream)
            library.wait_for_event(transfer.stream, event)
            transfer.queue.events.append(event)
        return address

    def start(self, request: Request, stream: int, place: CodePlace | None) -> StartedLaunch:
        """Start a launch in the current context, in the order of a stream. A launch without a place is timed.

        Raises DriverError and PyCUDA's errors.
        """
        queue = Queue.of_context(self.context)
        if queue.pending:
            queue.discard_ended()
        transfer = _Transfer(request, queue, stream, waits=place is None)
        try:
            return self._start(transfer, place)
        except BaseException:
            transfer.abandon()  # the frames of the error would release its memory in another context
            raise

    def _start(self, transfer: _Transfer, place: CodePlace | None) -> StartedLaunch:
        request, queue, stream, timed = transfer.request, transfer.queue, transfer.stream, place is None
        values = self.values(transfer)
        if request.device_arrays:
            transfer.retained += [array.remote for array in request.device_arrays.values()]
        start, end = queue.take_events(timed)
        if timed:
            library.record_event(start, stream)
        self.function.launch(self.block, values, (request.grid, request.block), self.shared, stream)
        if timed:
            library.record_event(end, stream)
        results = {array: transfer.copy_back(array) for array in self.copied_back if array not in request.device_arrays}
        if not timed:
            library.record_event(end, stream)
        elif results:
            library.synchronize_stream(stream)
        return StartedLaunch(place, request, self.context, self, results, transfer.retained, start, end)


@dataclass
class _Transfer:
    """Copies of a launch's arguments and results. waits: whether the program waits for its end. addresses: of copies on the device.
    retained: memory in use until its end."""

    request: Request
    queue: Queue
    stream: int
    waits: bool = False
    addresses: dict[str, int] = field(default_factory=dict)
    retained: list[Any] = field(default_factory=list)

    def copy_in(self, name: str, value: Buffer) -> int:
        """Return the address of a copy of an argument on the device; 0 without elements."""
        if name in self.addresses:
            return self.addresses[name]
        if not value.nbytes:
            return 0
        allocation = self.queue.device.allocate(value.nbytes)
        self.retained.append(allocation)
        address = self.addresses[name] = int(allocation)
        element = self.request.filled.get(name)
        if element is not None:
            fill(_CALLS, address, value.nbytes, element, self.stream)
        elif self._unstaged(value) or value.nbytes > MAX_STAGED or is_page_locked(value):
            self.retained.append(value)
            library.copy_to_device(address, value.ctypes.data, value.nbytes, self.stream)
        else:
            self._copy_sections(address, value)
        return address

    def _unstaged(self, value: Buffer) -> bool:
        return self.waits and value.nbytes <= MAX_UNSTAGED

    def copy_ranges(self) -> None:
        """Copy arrays that share memory: each range of addresses once."""
        for common in ranges_of(self.request.arrays):
            allocation = self.queue.device.allocate(common.memory.nbytes + common.lead)
            self.retained += [allocation, common.memory]
            start = int(allocation) + common.lead
            library.copy_to_device(start, common.memory.ctypes.data, common.memory.nbytes, self.stream)
            self.addresses |= {name: start + offset for name, offset in common.offsets.items()}

    def _copy_sections(self, address: int, value: Buffer) -> None:
        staged: Buffer = self.queue.page_locked.allocate(value.shape, value.dtype)
        self.retained.append(staged)
        source, row = staged.ctypes.data, value.nbytes // len(value)
        rows = max(1, SECTION // row)
        for first in range(0, len(value), rows):
            last = min(first + rows, len(value))
            staged[first:last] = value[first:last]
            library.copy_to_device(address + first * row, source + first * row, (last - first) * row, self.stream)

    def copy_back(self, name: str) -> Buffer:
        """Return an array that contains the result when the stream has reached this place."""
        form = np.asarray(self.request.arguments[name])
        result = np.empty(form.shape, form.dtype) if self._unstaged(form) else self.queue.new_result(form)
        if result.nbytes:
            library.copy_to_host(result.ctypes.data, self.addresses[name], result.nbytes, self.stream)
        return result

    def abandon(self) -> None:
        """Release the memory of a launch that failed."""
        with suppress(DriverError):
            library.synchronize_stream(self.stream)
        self.retained.clear()


def run(request: Request, context: Context) -> Outcome:
    """Launch on the default stream, and wait for the end."""
    pushed = context.context
    pushed.push()
    try:
        return Launcher.of_request(context, request).start(request, 0, None).finish_in_context()
    except Exception as error:
        raise launch_error(error, request, context) from None
    finally:
        pushed.pop()


def start(request: Request, context: Context, handle: Callable[[], int], place: CodePlace) -> StartedLaunch:
    """Launch on a stream without a wait. handle: returns the stream in the current context. place: of the launch, for messages."""
    pushed = context.context
    pushed.push()
    try:
        stream = handle()
        started = Launcher.of_request(context, request).start(request, stream, place)
        Queue.of_context(context).add(started)
        return started
    except Exception as error:
        raise launch_error(error, request, context, place) from None
    finally:
        pushed.pop()


def is_page_locked(array: Buffer) -> bool:
    """Return whether an array, or the one it is a view of, is in page-locked memory of PyCUDA."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return type(base).__module__.startswith("pycuda")
