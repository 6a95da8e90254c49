"""Repeated launches: the latest launches of a kernel on a GPU, with the same options and arguments.

Their arrays are device arrays in the memory of the GPU, and all arguments are the same objects. Nothing that the
validation depends on can have changed, except the kernel, which is compared, and the place of the arrays, which the
engine compares. A repetition keeps no array alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .arrays import DeviceArray
from .observing import observers
from .plans import LaunchPlan
from .result import LaunchDetails
from .streams import RECORDER, Stream

MAX_REPETITIONS = 8
"""Latest launches of a kernel: loops alternate between few sets of arrays."""


class NativeRepetition(Protocol):
    """A launch that an engine repeats."""

    def run(self, arrays: Sequence[DeviceArray], stream: Stream | None, depth: int) -> LaunchDetails | None:
        """Launch again with the same arrays; None if one has moved. depth: of the user's frame from here."""
        ...


class LatestLaunch:
    """One of the latest launches of a kernel."""

    __slots__ = ("_arrays", "_kernel", "_names", "_native", "_numbers", "_options", "_tuples", "_types")

    def __init__(
        self, plan: LaunchPlan, options: Sequence[Any], args: Mapping[str, Any], native: NativeRepetition
    ) -> None:
        self._kernel, self._native, self._names = plan.facts.kernel, native, (*args,)
        self._options, self._types = options, (*map(type, options),)
        self._tuples = [number for number, value in enumerate(options) if type(value) is tuple and value]
        values = [*args.values()]
        self._arrays = [(n, weakref.ref(value)) for n, value in enumerate(values) if isinstance(value, DeviceArray)]
        self._numbers = [
            value for value in values if not isinstance(value, DeviceArray)
        ]  # their identities are the key

    def has_options(self, options: Sequence[Any]) -> bool:
        """Return whether options are equal and of the same types; tuples are the same objects."""
        if options != self._options or (*map(type, options),) != self._types:
            return False
        return not self._tuples or all(options[number] is self._options[number] for number in self._tuples)

    def run(self, args: Any, stream: Stream | None, depth: int) -> LaunchDetails | None:
        """Launch again; None if the arguments are other ones, the kernel is changed, observed or recorded, or an array has moved.

        args: by name, with the identities of the key.
        """
        if (*args,) != self._names or observers() or RECORDER.get() is not None or self._kernel.stale:
            return None
        values, arrays = (*args.values(),), []
        for number, reference in self._arrays:
            array = reference()
            if array is not values[number]:
                return None
            arrays.append(array)
        return self._native.run(arrays, stream, depth + 1)


def find_repetition(latest: Mapping[Any, LatestLaunch], args: Any) -> LatestLaunch | None:
    """Return the latest launch with the identities of these arguments."""
    return latest.get((*map(id, args.values()),)) if type(args) is dict else None


def add_repetition(latest: dict[Any, LatestLaunch], args: Mapping[str, Any], launch: LatestLaunch) -> None:
    """Add a launch; the oldest of too many is discarded."""
    if len(latest) >= MAX_REPETITIONS:
        latest.pop(next(iter(latest)), None)
    latest[*map(id, args.values()),] = launch
