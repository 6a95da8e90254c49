"""Device arrays in the memory of arrays of other libraries."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..frontend.signature import KernelParameter, RecordArrayParameter
from ..language.types import Array
from ..tracebacks import without_own_frames
from .arrays import Buffer, DeviceArray, NewArray, checked_array
from .foreign_arrays import as_array, kind_of
from .gpu_memory import ExternalMemory, external_memory


class HostView(DeviceArray):
    """A device array in memory of the host that another object owns. After each launch it has the contents."""

    def __init__(self, memory: Buffer) -> None:
        self._begin(memory)
        self._memory = memory

    remains = False

    def record_written(self, elements: Buffer | None) -> None:
        """Copy the contents from a GPU to the memory."""
        super().record_written(elements)
        self.fetch()

    def replace(self, contents: Buffer) -> None:
        """Copy an array to the memory, as the contents."""
        if contents is not self._memory:
            self._memory[...] = contents
        super().replace(self._memory)

    def keep(self, count: int) -> None:
        raise LaunchError("a view of an array has its size: give a view of a section")


class GpuView(DeviceArray):
    """A device array in memory of a GPU that another library owns. Only the engine cuda accesses it."""

    def __init__(self, memory: ExternalMemory) -> None:  # of each argument of each launch: no child of a fork has it
        self._host, self.remote, self.lock, self.layout = memory.form, memory, threading.RLock(), memory.layout

    def interval(self) -> None:
        """Return None: the contents are unknown."""

    def keep(self, count: int) -> None:
        raise LaunchError("a view of an array has its size: give a view of a section")


def gpu_view(name: str, value: Any) -> GpuView | None:
    """Return the device array of an array on a GPU; None for other objects. Raises LaunchError."""
    memory = external_memory(name, value)
    return None if memory is None else GpuView(memory)


@without_own_frames
def device_view(array: Any) -> DeviceArray:
    """Return a device array in the memory of an array of any library, which launches read and write without a copy.

    On the host (NumPy, PyTorch, JAX, DLPack, ...) or on a GPU (PyTorch, CuPy, Numba, JAX). The engine cuda copies memory of the host
    in and out; the emulators do not access memory of a GPU. Raises LaunchError for an object without memory, and if it is read only.
    """
    view: DeviceArray | None = gpu_view("array", array)
    if view is None:
        memory = checked_array("array", array)
        readonly = not memory.flags.writeable
        view = HostView(memory.view())  # NumPy's views stay writeable when their array becomes read only
    else:
        assert isinstance(view.remote, ExternalMemory)
        view.continue_in_child()
        readonly = view.remote.readonly
    if readonly:
        raise LaunchError(f"array is {kind_of(array)}, which is read only: give a copy")
    return view


def argument(name: str, parameter: KernelParameter | None, value: Any) -> Any:
    """Return the array of any library for a parameter of global or constant memory as a NumPy array, or as a device array in
    the memory of a GPU; other values as given."""
    if isinstance(value, _VALUES) or parameter is None or not isinstance(parameter.type, _MEMORY):
        return value
    view = None if type(value) is np.ndarray else gpu_view(name, value)
    return as_array(name, value) if view is None else view


_VALUES = (DeviceArray, NewArray, int, float, np.generic)
_MEMORY = (Array, RecordArrayParameter)


def check_aliases(kernel: str, arrays: Mapping[str, DeviceArray], changed: Iterable[str]) -> None:
    """Raise LaunchError if one device array is given for two parameters, or if memory of a GPU that the kernel writes is."""
    if len({*map(id, arrays.values())}) < len(arrays):
        raise LaunchError(f"{kernel}: one DeviceArray is given for two parameters")
    memory = {name: array.remote for name, array in arrays.items() if isinstance(array.remote, ExternalMemory)}
    for (a_name, a), (b_name, b) in combinations(memory.items(), 2):
        written = {a_name, b_name} & set(changed)
        if written and a.address < b.end and b.address < a.end:
            raise LaunchError(
                f"{a_name} and {b_name} share memory, and the kernel writes {min(written)}: give one of them as a copy"
            )
