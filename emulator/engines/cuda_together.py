"""Launches side by side on a GPU: copies and kernels on streams, arrays that launches share copied once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..errors import LaunchError
from .arrays import Buffer
from .cuda_run import Context, DeviceLaunch, built, is_loaded, load, primary_context, pycuda_driver
from .engine import Outcome, Request

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


def run_together(requests: Sequence[Request]) -> list[Outcome]:
    """Run launches that do not depend on each other; the order in which they run is not defined. What they write is
    page-locked memory of the GPU's driver, so let go of it soon.

    Raises LaunchError as `CudaEngine.run` does, and for Kept arrays; OutOfMemory where not all fit at once.
    """
    if any(request.kept for request in requests):
        raise LaunchError("launches side by side take no Kept arrays: which one comes first is not defined")
    with primary_context().current():
        compile_together(requests)
        work = _Together()
        try:
            for number, request in enumerate(requests):
                work.start(request, work.lasting.computing[number % STREAMS])
            return work.outcomes()
        finally:
            work.end()


def compile_together(requests: Sequence[Request]) -> None:
    """Compile what was never compiled, several kernels at a time; loading then finds them in the store."""
    fresh = {(request.program, request.block): request for request in requests if not is_loaded(request)}
    if len(fresh) > 1:
        with ThreadPoolExecutor() as threads:
            list(threads.map(built, fresh.values()))


class _Together:
    """What is on its way. Arrays are known by their identity: `requests` holds them."""

    def __init__(self) -> None:
        self.driver, self.lasting = pycuda_driver(), _lasting()
        self.launches: list[DeviceLaunch] = []
        self.shared: dict[int, tuple[Any, Any]] = {}  # address and event of each array that is only read
        self.results: list[dict[str, Buffer]] = []
        self.held: list[Any] = []  # memory in use until the end

    def start(self, request: Request, stream: Any) -> None:
        launch = DeviceLaunch(request)
        with launch.errors():
            launch.loaded = load(request)
            launch.allow_shared()
            for name, value in request.arguments.items():
                if isinstance(value, np.ndarray) and value.nbytes:
                    launch.addresses[name] = self._copied(launch, name, value, stream)
            launch.loaded.function(
                *launch.arguments(), grid=request.grid, block=request.block, shared=launch.dynamic_shared, stream=stream
            )
            self.launches.append(launch)
            self.results.append(self._copy_back(launch, stream))

    def _copied(self, launch: DeviceLaunch, name: str, value: Buffer, stream: Any) -> Any:
        """The address of an argument, there before anything else that `stream` does next."""
        if name in launch.loaded.source.written:
            address = self._allocate(value.nbytes)
            if name in launch.request.blank:
                self.driver.memset_d8_async(address, 0, value.nbytes, stream)
            else:
                self.driver.memcpy_htod_async(address, self._page_locked(value), stream)
            return address
        if id(value) not in self.shared:
            address, event = self._allocate(value.nbytes), self.driver.Event(self.driver.event_flags.DISABLE_TIMING)
            self.driver.memcpy_htod_async(address, self._page_locked(value), self.lasting.copying)
            event.record(self.lasting.copying)
            self.shared[id(value)] = address, event
        address, event = self.shared[id(value)]
        stream.wait_for_event(event)
        return address

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

    def outcomes(self) -> list[Outcome]:
        """What the launches did, once all are over."""
        for number, launch in enumerate(self.launches[-STREAMS:]):
            with launch.errors():
                self.lasting.computing[(len(self.launches[:-STREAMS]) + number) % STREAMS].synchronize()
        resources = (launch.loaded.built.resources for launch in self.launches)
        return [Outcome(found, resources=r) for found, r in zip(self.results, resources, strict=True)]

    def end(self) -> None:
        """Free what was used, once nothing uses it any more."""
        with suppress(self.driver.Error):  # a kernel that failed took the context with it
            self.driver.Context.synchronize()
        self.held.clear()
        self.shared.clear()
