"""Direct launches of a plan: the driver's calls, with everything but the addresses and the numbers computed once."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...language.types import F32, Array
from ...runtime.arrays import MOVES
from ...runtime.engine import CodePlace, Outcome, Request, user_place
from ...runtime.gpu_memory import ExternalMemory
from ...runtime.result import LaunchDetails
from ...runtime.scalars import checked_scalar
from ...runtime.streams import Stream
from . import library
from .driver import Context, GpuArray, launch_error, pycuda_driver
from .functions import ArgumentBlock
from .launches import Launcher, Queue
from .library import DriverError

if TYPE_CHECKING:
    from ...runtime.plans import LaunchPlan

_CODES = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f",
    "f64": "d",
}  # fmt: skip
"""Codes of `struct` by type: it packs the Python numbers that `checked_scalar` accepts, with the same bits, and refuses others."""
Place = tuple[str, int]
"""The fields of a `CodePlace`."""
_LARGEST = F32.largest


class DirectLaunch:
    """The launch of a plan whose arrays are all device arrays in the memory of the GPU. It keeps no array alive."""

    def __init__(self, context: Context, request: Request, plan: LaunchPlan) -> None:
        """The context must be current."""
        self.context, self.plan, self.launcher = context, plan, Launcher.of_request(context, request)
        self.queue = Queue.of_context(context)
        interface, numbers = self.launcher.interface, dict(plan.numbers)
        parameters = request.specialisation.summary.parameters
        self.arrays = tuple(name for name in interface.arguments if isinstance(parameters[name], Array))
        self.numbers = tuple(name for name in interface.arguments if name in numbers)
        rest = [name for name in interface.arguments if name not in {*self.arrays, *self.numbers}]
        self.fixed = [request.arguments[name].tobytes() for name in rest]
        self.fixed += [_length(request, name) for name in interface.lengths]
        self.arrays_of, self.numbers_of, self.bounds_of = map(_getter, (self.arrays, self.numbers, plan.bounds or ()))
        self.changed = [at for at, name in enumerate(self.arrays) if name in plan.changed_device_arrays]
        self.floats = [at for at, name in enumerate(self.numbers) if numbers[name] is F32]
        self.alignments = [
            plan_array.element.size for name in self.arrays for plan_array in plan.arrays if plan_array.name == name
        ]
        lengths = [request.forms[name].length for name in self.arrays]
        self.sizes = [length * size for length, size in zip(lengths, self.alignments, strict=True)]
        self.is_only_gpu = pycuda_driver().Device.count() == 1
        codes = ["Q" for _ in self.arrays] + [_CODES[numbers[name].name] for name in self.numbers]
        order = [*self.arrays, *self.numbers, *rest]
        places = [order.index(name) for name in interface.arguments]
        places += range(len(order), len(order) + len(interface.lengths))
        self.block = ArgumentBlock([*codes, *(f"{len(value)}s" for value in self.fixed)], places)
        driver = library.cuda_driver()
        self.record, self.synchronize, self.launch = (
            driver.cuEventRecord,
            driver.cuEventSynchronize,
            self.launcher.function.call,
        )
        self.calls: dict[int, tuple[Any, ...]] = {}

    @staticmethod
    def of_plan(context: Context, request: Request, plan: LaunchPlan) -> DirectLaunch | None:
        """Return the direct launch of a plan; None if an argument is copied or needs more than its type and its range to be valid."""
        summary, launcher = request.specialisation.summary, request.derived.get(context)
        if not plan.device_arrays or launcher is None or plan.records:
            return None
        if launcher.interface.packing is not None or launcher.interface.tensors:
            return None
        if any(array.count is not None for array in summary.dynamic) or plan.bounds is None:
            return None
        arrays = {name for name, type in summary.parameters.items() if isinstance(type, Array)}
        if arrays != {*plan.device_arrays} or any(type.name not in _CODES for _, type in plan.numbers):
            return None
        with context.current():
            return DirectLaunch(context, request, plan)

    def run(self, args: Mapping[str, Any], stream: Stream | None) -> Started | None:
        """Launch; None for arguments that the plan has to bind: an array is elsewhere, two are the same, or a number is out of range."""
        arrays, numbers = self.arrays_of(args), self.numbers_of(args)
        if self.plan.bounds and self.bounds_of(args) not in self.plan.unlimited:
            return None
        for at in self.floats:
            if not -_LARGEST <= numbers[at] <= _LARGEST:  # infinities too
                return None
        handle = 0
        if stream is not None:
            native: Any = stream.native.get(self.context) if type(stream) is Stream else None
            if native is None:
                return None
            handle = native.handle
        place = None if stream is None else user_place(sys._getframe(2))
        pushed = self.context.context
        pushed.push()
        try:
            return self._launch(arrays, numbers, handle, place)
        finally:
            pushed.pop()

    def _launch(self, arrays: Any, numbers: Any, handle: int, place: Place | None) -> Started | None:
        queue, context, block, addresses = self.queue, self.context, self.block, list[int]()
        events: tuple[int, int] | None = None
        external = False
        with MOVES:  # no array moves until the launch is in the stream
            for array in arrays:
                remote = array.remote
                if type(remote) is not GpuArray or remote.context is not context:
                    external = True
                    if not self._takes(remote, len(addresses)):
                        return None
                addresses.append(remote.address)
            if len({*addresses}) < len(addresses) or (external and self._overlap(addresses)):
                return None
            try:
                block.pack(block.memory, block.offset, *addresses, *numbers, *self.fixed)
            except (struct.error, OverflowError):
                return None
            for at in self.changed:
                arrays[at].rewritten = True
            call = self.calls.get(handle) or self._call(handle)
            if place is None:
                events = start, end = queue.take_events(timed=True)
                status = self.record(start, 0) or self.launch(*call) or self.record(end, 0)
            else:
                status = self.launch(*call)
                queue.queued.append((self.plan.request, handle, place))
        if events is not None:
            status = status or self.synchronize(end)
        if status:
            raise launch_error(
                DriverError(status), self.plan.request, context, None if place is None else CodePlace(*place)
            )
        return Started(self, (arrays, numbers), handle, place, events)

    def _takes(self, memory: Any, at: int) -> bool:
        """Return whether memory of another library is valid for an array, and has no pending operations."""
        return (
            type(memory) is ExternalMemory
            and not memory.stream
            and memory.form.size > 0
            and not memory.address % self.alignments[at]
            and not (memory.readonly and at in self.changed)
            and (self.is_only_gpu or library.device_of_address(memory.address) == self.context.number)
        )

    def _overlap(self, addresses: Sequence[int]) -> bool:
        ranges = sorted(zip(addresses, self.sizes, strict=True))
        return any(first + size > second for (first, size), (second, _) in pairwise(ranges))

    def _call(self, handle: int) -> tuple[Any, ...]:
        function, request = self.launcher.function, self.plan.request
        shape = (*request.grid, *request.block, self.launcher.shared)
        call = self.calls[handle] = (function.function, *shape, handle, self.block.pointers, *function.extra)
        return call

    def request_of(self, arrays: Any, numbers: Any) -> Request:
        """Return the request of a launch."""
        request = self.plan.request
        device_arrays = dict(zip(self.arrays, arrays, strict=True))
        memory = {name: request.forms[name].flat(array.form) for name, array in device_arrays.items()}
        kinds = dict(self.plan.numbers)
        scalars = {
            name: checked_scalar(name, kinds[name], value) for name, value in zip(self.numbers, numbers, strict=True)
        }
        return request.with_arguments({**self.plan.constant, **memory, **scalars}, device_arrays)


class Started:
    """A direct launch: it has ended, or is queued on a stream. Its details are read on demand."""

    __slots__ = ("_direct", "_events", "_handle", "_place", "_values")

    def __init__(
        self,
        direct: DirectLaunch,
        values: tuple[Any, Any],
        handle: int,
        place: Place | None,
        events: tuple[int, int] | None,
    ) -> None:
        self._direct, self._values, self._handle, self._place, self._events = direct, values, handle, place, events

    def __del__(self) -> None:
        if self._events:
            self._direct.queue.timed_events.append(self._events)

    def details(self) -> LaunchDetails:
        details = LaunchDetails.pending(partial(self._direct.request_of, *self._values), self)
        if self._events:
            details.wait()
        return details

    def finish(self) -> Outcome:
        """Wait for the launches of the stream. Raises LaunchError, which names those that may have failed."""
        direct, milliseconds = self._direct, None
        with direct.context.current():
            try:
                if self._events:
                    milliseconds = library.elapsed(*self._events)
                else:
                    library.synchronize_stream(self._handle)
            except DriverError as error:
                place = None if self._place is None else CodePlace(*self._place)
                raise launch_error(error, direct.plan.request, direct.context, place) from None
            direct.queue.discard_queued(self._handle)
        return Outcome({}, milliseconds=milliseconds, resources=direct.launcher.loaded.resources)


def _getter(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a function that reads these items of a mapping as a tuple."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda items: tuple([items[name] for name in names])


def _length(request: Request, name: str) -> bytes:
    array: Any = request.arguments.get(name)
    return np.int32(request.dynamic_arrays[name].length if array is None else len(array)).tobytes()
