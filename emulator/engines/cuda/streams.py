"""Concurrent launches on a GPU: copies and kernels on streams. Arrays that launches only read are copied once."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ...runtime.arrays import Buffer, DeviceArray
from ...runtime.engine import Outcome, Request
from .binary import binary
from .driver import Context, DeviceLaunch, GpuArray, is_loaded, load, primary_context, pycuda_driver, resident
from .filling import fill
from .launches import Queue, is_page_locked

STREAMS = 8
"""Kernels that may run at the same time: enough to overlap the end of one with the beginning of others."""


@dataclass
class _Streams:
    """Streams of a context: for copies of arrays that launches share, and for launches."""

    copying: Any
    computing: list[Any]

    def clear(self) -> None:
        self.computing.clear()
        self.copying = None


@cache
def _streams_of(context: Context) -> _Streams:
    """Return the streams of a context, which must be current. They are created once."""
    stream = pycuda_driver().Stream
    streams = _Streams(stream(), [stream() for _ in range(STREAMS)])
    context.before_the_end.append(streams.clear)
    return streams


def page_locked(array: Buffer) -> Buffer:
    """Return a page-locked copy, which launches transfer without another copy."""
    with primary_context().current():
        return _copy(array)


def empty(shape: int | tuple[int, ...], type: Any) -> Buffer:
    """As np.empty, in page-locked memory, which launches transfer without another copy."""
    with primary_context().current():
        return _empty(np.broadcast_to(np.empty((), type), shape))


def _copy(array: Buffer) -> Buffer:
    copy = _empty(array)
    copy[...] = array
    return copy


def _empty(form: Buffer) -> Buffer:
    """A page-locked array of that shape and type."""
    if not form.nbytes:
        return np.empty_like(form)
    array: Buffer = Queue.of_context(primary_context()).page_locked.allocate(form.shape, form.dtype)
    return array


def run_concurrently(requests: Iterable[Request]) -> Iterator[Outcome]:
    """Run independent launches. Their order is undefined; outcomes are in the order of requests.

    A launch starts when it is read from `requests`. All are read before the first outcome; later launches may
    still run then. Results are in page-locked memory, which is scarce, so they should be released soon.
    Launches with a common DeviceArray access its memory in an undefined order.

    Raises LaunchError as `CudaEngine.run` does; OutOfMemory if not all fit at once.
    """
    context = primary_context()
    with context.current():
        work = _ConcurrentLaunches()
    try:
        for number, request in enumerate(_compiled(iter(requests))):
            with context.current():
                work.start(request, work.streams.computing[number % STREAMS])
        while work.launches:
            with context.current():
                outcome = work.launches.popleft().outcome()
            yield outcome
    finally:
        with context.current():
            work.end()


def _compiled(requests: Iterator[Request]) -> Iterator[Request]:
    """Yield the requests with compiled kernels. From the first uncompiled kernel on, all requests are read and compiled together."""
    for request in requests:
        if not is_loaded(request):
            rest = [request, *requests]
            compile_all(rest)
            yield from rest
        else:
            yield request


def compile_all(requests: Sequence[Request]) -> None:
    """Compile kernels that were never compiled, several at a time; loading then finds them in the cache."""
    arch = primary_context().arch
    fresh = {
        (request.specialisation, request.block, request.maths): request
        for request in requests
        if not is_loaded(request)
    }
    if len(fresh) > 1:
        with ThreadPoolExecutor() as threads:
            list(threads.map(partial(binary, arch=arch), fresh.values()))


@dataclass(frozen=True)
class _StartedLaunch:
    """A launch in progress. event: recorded after its copies to the host."""

    launch: DeviceLaunch
    results: dict[str, Buffer]
    event: Any

    def outcome(self) -> Outcome:
        """The outcome, once the launch has ended."""
        with self.launch.errors():
            self.event.synchronize()
        return Outcome(self.results, resources=self.launch.loaded.resources)


class _ConcurrentLaunches:
    """The launches in progress. Arrays are identified by their memory, which the launches own."""

    def __init__(self) -> None:
        self.driver, self.streams = pycuda_driver(), _streams_of(primary_context())
        self.queue = Queue.of_context(primary_context())
        self.launched: list[DeviceLaunch] = []
        self.launches: deque[_StartedLaunch] = deque()
        self.shared: dict[tuple[int, int], tuple[Any, Any]] = {}  # address and event of each array that is only read
        self.moved: dict[int, Any] = {}  # event of each DeviceArray copied to the GPU by these launches
        self.retained: list[Any] = []  # memory in use until the end

    def start(self, request: Request, stream: Any) -> None:
        launch = DeviceLaunch(request)
        self.launched.append(launch)
        with launch.errors():
            launch.loaded = load(request)
            launch.allow_shared()
            for name, value in request.arguments.items():
                if isinstance(value, np.ndarray) and value.nbytes:
                    array = request.device_arrays.get(name)
                    launch.addresses[name] = (
                        self._persistent(launch, array, stream) if array else self._copied(launch, name, value, stream)
                    )
            launch.loaded.function(
                *launch.arguments(), grid=request.grid, block=request.block, shared=launch.dynamic_shared, stream=stream
            )
            results, event = self._copy_back(launch, stream), self._event()
            event.record(stream)
            self.launches.append(_StartedLaunch(launch, results, event))

    def _copied(self, launch: DeviceLaunch, name: str, value: Buffer, stream: Any) -> Any:
        """Return the address of an argument, copied before the next operation of `stream`."""
        everywhere = launch.request.filled.get(name)
        if name in launch.loaded.interface.written or everywhere is not None:
            address = self._allocate(value.nbytes)
            if everywhere is not None:
                fill(self.driver, address, value.nbytes, everywhere, stream)
            else:
                self.driver.memcpy_htod_async(address, self._page_locked(value), stream)
            return address
        key = (value.ctypes.data, value.nbytes)
        if key not in self.shared:
            address, event = self._allocate(value.nbytes), self._event()
            self.driver.memcpy_htod_async(address, self._page_locked(value), self.streams.copying)
            event.record(self.streams.copying)
            self.shared[key] = address, event
        address, event = self.shared[key]
        stream.wait_for_event(event)
        return address

    def _persistent(self, launch: DeviceLaunch, array: DeviceArray, stream: Any) -> Any:
        """Return the address of a DeviceArray, copied before the next operation of `stream` if it was not on this GPU."""
        address = resident(launch.context, array)
        if address is None:
            address, event = self.driver.mem_alloc(array.host.nbytes), self._event()
            if array.fill is not None:
                fill(self.driver, address, array.host.nbytes, array.fill, self.streams.copying)
            else:
                self.driver.memcpy_htod_async(address, self._page_locked(array.host), self.streams.copying)
            event.record(self.streams.copying)
            array.attach(GpuArray.create(launch.context, address, array.host))
            self.moved[id(array)] = event
        if id(array) in self.moved:
            stream.wait_for_event(self.moved[id(array)])
        self.retained.append(array.remote)
        return address

    def _event(self) -> Any:
        return self.driver.Event(self.driver.event_flags.DISABLE_TIMING)

    def _allocate(self, size: int) -> Any:
        self.retained.append(self.queue.device.allocate(size))
        return self.retained[-1]

    def _page_locked(self, value: Buffer) -> Buffer:
        if is_page_locked(value):
            return value
        self.retained.append(_copy(value))
        return self.retained[-1]  # type: ignore[no-any-return]

    def _copy_back(self, launch: DeviceLaunch, stream: Any) -> dict[str, Buffer]:
        results: dict[str, Buffer] = {}
        for name in launch.loaded.interface.arguments:
            if name in launch.loaded.interface.written and name not in launch.request.device_arrays:
                form = np.asarray(launch.request.arguments[name])
                results[name] = _empty(form)
                if name in launch.addresses:
                    self.driver.memcpy_dtoh_async(results[name], launch.addresses[name], stream)
        return results

    def end(self) -> None:
        """Wait for all launches and free their memory.

        The context must be current: PyCUDA ends the process if pool memory is freed in another one.
        """
        with suppress(self.driver.Error):  # a failed kernel destroys the context
            self.driver.Context.synchronize()
        for launch in self.launched:  # an error or an outcome may reference the launch longer
            launch.addresses.clear()
        self.launches.clear()
        self.retained.clear()
        self.shared.clear()
        self.moved.clear()
