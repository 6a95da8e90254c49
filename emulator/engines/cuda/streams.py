"""Launches side by side on a GPU: copies and kernels on streams, arrays that launches share copied once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ...errors import LaunchError
from ...runtime.arrays import Buffer
from ...runtime.engine import Outcome, Request
from .driver import Context, DeviceLaunch, built, is_loaded, load, primary_context, pycuda_driver

STREAMS = 8
"""Kernels that may run at the same time: more than enough to fill the end of one with the beginning of others."""


@dataclass
class _Lasting:
    """Streams, and memory of both sides that is asked for over and over. Page-locked: the GPU copies it by itself."""

    copying: Any
    computing: list[Any]
    device: Any
    page_locked: Any

    def clear(self) -> None:
        self.computing.clear()
        self.copying = None
        self.device.stop_holding()
        self.page_locked.stop_holding()


@cache
def _lasting_of(context: Context) -> _Lasting:
    """Made once for a context, when it is current."""
    from pycuda.tools import DeviceMemoryPool, PageLockedMemoryPool

    stream = pycuda_driver().Stream
    made = _Lasting(stream(), [stream() for _ in range(STREAMS)], DeviceMemoryPool(), PageLockedMemoryPool())
    context.before_the_end.append(made.clear)
    return made


def _lasting() -> _Lasting:
    return _lasting_of(primary_context())


def page_locked(array: Buffer) -> Buffer:
    """A copy that launches take from where it is; others they copy once more."""
    with primary_context().current():
        return _copy(array)


def empty(shape: int | tuple[int, ...], type: Any) -> Buffer:
    """As np.empty; launches take what is put there from where it is."""
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
    made: Buffer = _lasting().page_locked.allocate(form.shape, form.dtype)
    return made


def run_concurrently(requests: Iterable[Request]) -> Iterator[Outcome]:
    """Run launches that do not depend on each other; the order in which they run is not defined, that of the outcomes is
    theirs. A launch begins when it is taken from `requests`, and all are taken before the first outcome is given; later
    ones may still run then. What they write is page-locked memory of the GPU's driver, so let go of it soon.

    Raises LaunchError as `CudaEngine.run` does, and for DeviceArrays; OutOfMemory where not all fit at once.
    """
    context = primary_context()
    with context.current():
        work = _ConcurrentLaunches()
    try:
        for number, request in enumerate(_compiled(iter(requests))):
            if request.device_arrays:
                raise LaunchError("launches side by side take no DeviceArrays: which one comes first is not defined")
            with context.current():
                work.start(request, work.lasting.computing[number % STREAMS])
        while work.launches:
            with context.current():
                outcome = work.launches.popleft().outcome()
            yield outcome
    finally:
        with context.current():
            work.end()


def _compiled(requests: Iterator[Request]) -> Iterator[Request]:
    """The same; where one has a kernel that was never compiled, all that come after it are taken at once and compiled
    together."""
    for request in requests:
        if not is_loaded(request):
            rest = [request, *requests]
            compile_all(rest)
            yield from rest
        else:
            yield request


def compile_all(requests: Sequence[Request]) -> None:
    """Compile what was never compiled, several kernels at a time; loading then finds them in the store."""
    arch = primary_context().arch
    fresh = {(request.program, request.block): request for request in requests if not is_loaded(request)}
    if len(fresh) > 1:
        with ThreadPoolExecutor() as threads:
            list(threads.map(partial(built, arch=arch), fresh.values()))


@dataclass(frozen=True)
class _StartedLaunch:
    """A launch that was sent to the GPU. done: an event after its copies back."""

    launch: DeviceLaunch
    results: dict[str, Buffer]
    done: Any

    def outcome(self) -> Outcome:
        """What it did, once it is over."""
        with self.launch.errors():
            self.done.synchronize()
        return Outcome(self.results, resources=self.launch.loaded.built.resources)


class _ConcurrentLaunches:
    """What is under way. Arrays are known by their identity: the launches hold them."""

    def __init__(self) -> None:
        self.driver, self.lasting = pycuda_driver(), _lasting()
        self.begun: list[DeviceLaunch] = []
        self.launches: deque[_StartedLaunch] = deque()
        self.shared: dict[int, tuple[Any, Any]] = {}  # address and event of each array that is only read
        self.held: list[Any] = []  # memory in use until the end

    def start(self, request: Request, stream: Any) -> None:
        launch = DeviceLaunch(request)
        self.begun.append(launch)
        with launch.errors():
            launch.loaded = load(request)
            launch.allow_shared()
            for name, value in request.arguments.items():
                if isinstance(value, np.ndarray) and value.nbytes:
                    launch.addresses[name] = self._copied(launch, name, value, stream)
            launch.loaded.function(
                *launch.arguments(), grid=request.grid, block=request.block, shared=launch.dynamic_shared, stream=stream
            )
            results, done = self._copy_back(launch, stream), self._event()
            done.record(stream)
            self.launches.append(_StartedLaunch(launch, results, done))

    def _copied(self, launch: DeviceLaunch, name: str, value: Buffer, stream: Any) -> Any:
        """The address of an argument, there before anything else that `stream` does next."""
        if name in launch.loaded.source.written:
            address = self._allocate(value.nbytes)
            if name in launch.request.all_zero:
                self.driver.memset_d8_async(address, 0, value.nbytes, stream)
            else:
                self.driver.memcpy_htod_async(address, self._page_locked(value), stream)
            return address
        if id(value) not in self.shared:
            address, event = self._allocate(value.nbytes), self._event()
            self.driver.memcpy_htod_async(address, self._page_locked(value), self.lasting.copying)
            event.record(self.lasting.copying)
            self.shared[id(value)] = address, event
        address, event = self.shared[id(value)]
        stream.wait_for_event(event)
        return address

    def _event(self) -> Any:
        return self.driver.Event(self.driver.event_flags.DISABLE_TIMING)

    def _allocate(self, size: int) -> Any:
        self.held.append(self.lasting.device.allocate(size))
        return self.held[-1]

    def _page_locked(self, value: Buffer) -> Buffer:
        if type(value.base).__module__.startswith("pycuda"):
            return value
        self.held.append(_copy(value))
        return self.held[-1]  # type: ignore[no-any-return]

    def _copy_back(self, launch: DeviceLaunch, stream: Any) -> dict[str, Buffer]:
        found: dict[str, Buffer] = {}
        for name in launch.loaded.source.arguments:
            if name in launch.loaded.source.written:
                form = np.asarray(launch.request.arguments[name])
                found[name] = _empty(form)
                if name in launch.addresses:
                    self.driver.memcpy_dtoh_async(found[name], launch.addresses[name], stream)
        return found

    def end(self) -> None:
        """Free what was used, once nothing uses it any more. Memory goes back to its pool in the context alone: PyCUDA ends
        the process where the last reference dies elsewhere."""
        with suppress(self.driver.Error):  # a kernel that failed took the context with it
            self.driver.Context.synchronize()
        for launch in self.begun:  # an error, or who has a result, may hold the launch itself a little longer
            launch.addresses.clear()
        self.launches.clear()
        self.held.clear()
        self.shared.clear()
