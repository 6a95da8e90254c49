"""Launches of a kernel over the memory of the driver: from the values of its parameters to a request, kept by sizes."""

import ctypes
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..language.types import Array, Scalar
from ..llvmir.parameters import ArrayParameter
from ..machine.device import Device
from ..runtime.arrays import Buffer
from ..runtime.engine import Dim3, Request
from ..runtime.observing import PendingLaunch, overrides
from ..runtime.request import LaunchOptions, unlimited_request
from ..runtime.result import FaultError, LaunchDetails
from ..runtime.running import launch_in_place
from ..runtime.specialisation import specialisation_of
from ..runtime.written_bytes import WrittenBytes
from .kernel import NumbaKernel
from .packages import Package

MAX_VIEWS = 1 << 12
"""Arrays of NumPy kept for places of the device's memory."""
MAX_PLANS = 64
"""Requests kept for a kernel: of so many combinations of grid, block and sizes."""

Available = Callable[[int], int]
"""Returns the bytes from an address to the end of its memory; 0 outside of all memory."""
_Sizes = tuple[Dim3, Dim3, int, tuple[int, ...], Dim3]


_Values = Sequence[Any]
"""The values of the parameters of the LLVM function in one launch."""


class _Attribute(int):
    """A number of a function on the device, also as a method: the package calls those of cuda.core before 1.0."""

    def __call__(self) -> int:
        return int(self)


class Launcher:
    """Launches of one kernel. available: as `Available`. written: the bytes of the device's memory; None for memory that is not
    tracked."""

    def __init__(
        self, kernel: NumbaKernel, device: Device, available: Available, written: WrittenBytes | None = None
    ) -> None:
        self.kernel, self.device, self.available, self.written = kernel, device, available, written
        self.specialisation = specialisation_of(kernel, {}, None, {})
        types = self.specialisation.summary.parameters
        self._arrays = [name for name, type in types.items() if isinstance(type, Array)]
        self._readers = {
            name: self._number_reader(name, type.dtype.type) if isinstance(type, Scalar) else self._memory_reader(name)
            for name, type in types.items()
        }
        self._plans: dict[_Sizes, Request] = {}

    def launch(
        self,
        values: _Values,
        grid: Dim3,
        block: Dim3,
        shared: int,
        cluster: Dim3 = (1, 1, 1),
    ) -> LaunchDetails:
        """Launch the kernel. values: one for each parameter of the LLVM function, a Pointer for an array and a number for a scalar;
        then those of the items of structures. cluster: blocks of a cluster by axis.

        Raises LaunchError, and FaultError for a finding that a GPU does not tolerate.
        """
        arguments: dict[str, Any] = {name: read(values) for name, read in self._readers.items()}
        counts = tuple([len(arguments[name]) for name in self._arrays])
        engine, device = overrides("jit", self.device)
        if engine == "cuda" and self.kernel.own_code({}) is None:
            raise LaunchError(
                f"{self.kernel.__name__}: the cuda engine does not run it: use a GPU without SIMTBED_NUMBA"
            )
        sizes = (grid, block, shared, counts, cluster)
        plan = self._plans.get(sizes)
        if plan is None or plan.device is not device:
            plan = self._plan(arguments, sizes, device)
        request = plan.with_arguments(arguments, {})

        def run(own: Request) -> LaunchDetails:
            return launch_in_place(PendingLaunch(self.kernel, arguments, own, engine))

        result = run(request) if self.written is None else self.written.run(request, run)
        if result.faults and self.specialisation.ending(result.faults):
            raise FaultError(result)
        return result

    def function(self, package: Package, name: str) -> Any:
        """Return the function on the device, with the bytes of its declared arrays. NVIDIA's compiler alone determines registers."""
        shared, limit = self.kernel.declared_bytes("shared"), self.device.threads_per_block
        attributes = SimpleNamespace(
            max_threads_per_block=_Attribute(limit),
            shared_size_bytes=_Attribute(shared),
            num_regs=_Attribute(0),
            const_size_bytes=_Attribute(self.kernel.declared_bytes("constant")),
            local_size_bytes=_Attribute(self.kernel.declared_bytes("local")),
        )
        kernel = SimpleNamespace(attributes=attributes, handle=shared, _handle=shared)
        module = SimpleNamespace(context=package.submodule("cudadrv.devices").get_context())
        return package.submodule("cudadrv.driver").CudaPythonFunction(module, kernel, name)

    def _plan(self, arguments: dict[str, Any], sizes: _Sizes, device: Device) -> Request:
        """Return the validated request of launches with these sizes."""
        grid, block, shared, _, cluster = sizes
        options = LaunchOptions(
            grid=grid,
            block=block,
            args=arguments,
            device=device,
            shared=shared,
            counters=False,
            cooperative=self.kernel.facts.cooperative,
            cluster=cluster,
            in_place=True,
        )
        # Integers of LLVM's text wrap: no loop gets a limit for the values of this launch.
        request = replace(unlimited_request(self.kernel, options), plain_prints=True).without_arguments()
        if len(self._plans) == MAX_PLANS:
            self._plans.clear()
        self._plans[sizes] = request
        return request

    def _memory_reader(self, name: str) -> Callable[[_Values], Buffer]:
        """Return a function from values to the memory of an array, as elements of the program's type."""
        view, facts = self.kernel.facts.arrays[name], self.kernel.facts
        dtype, phase = view.element.dtype, view.phase
        if view.parameter is None:
            return lambda values: _elements(view.address + phase, self._captured(name, view.address) - phase, dtype)
        position, parameter = view.parameter, facts.parameters[view.parameter]
        offset = isinstance(parameter, ArrayParameter) and parameter.offset
        first = operator.attrgetter("low" if offset else "address")

        def read(values: _Values) -> Buffer:
            pointer, start = values[position], first(values[position])
            return _elements(start + phase, pointer.low + pointer.size - start - phase, dtype)

        return read

    def _captured(self, name: str, address: int) -> int:
        """Return the bytes from the address of an array that the kernel contains."""
        size = self.available(address)
        if not size:
            raise LaunchError(f"{name}: the kernel contains the address of an array whose memory was freed")
        return size

    def _number_reader(self, name: str, type: Callable[[Any], np.generic]) -> Callable[[_Values], np.generic]:
        """Return a function from values to a scalar argument."""
        source = self.kernel.facts.scalars[name]
        position, divisor, kind = source.parameter, source.divisor, source.kind
        if kind == "value" and divisor == 1:
            return lambda values: _number(type, values[position])

        def read(values: _Values) -> np.generic:
            value = values[position]
            if kind != "value":
                value = value.address - (value.low if kind == "offset" else 0)
            value, rest = divmod(value, divisor)
            if rest:
                raise LaunchError(
                    f"{self.kernel.__name__}: {name} is not a multiple of the element's {divisor} bytes; give a copy of the array"
                )
            return _number(type, value)

        return read


def _number(type: Callable[[Any], np.generic], value: Any) -> np.generic:
    try:
        return type(value)
    except OverflowError:  # a driver copies the low bytes
        return np.asarray(value).astype(type)[()]  # type: ignore[no-any-return, call-overload]


@lru_cache(MAX_VIEWS)
def _elements(start: int, size: int, dtype: np.dtype[Any]) -> Buffer:
    """Return memory as an array. size: in bytes, of which a rest is unused."""
    count = size // dtype.itemsize
    if count <= 0:
        return np.empty(0, dtype)
    memory: Any = (ctypes.c_char * size).from_address(start)
    return np.frombuffer(memory, dtype, count)
