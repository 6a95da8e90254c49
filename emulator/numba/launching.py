"""Launches of a kernel over the memory of the driver: from the values of its parameters to a request, kept by sizes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ..errors import LaunchError
from ..language.types import Array, Scalar
from ..llvmir.parameters import ArrayParameter, ArrayView
from ..machine.device import Device
from ..runtime.arrays import Buffer
from ..runtime.engine import Dim3, Request
from ..runtime.launching import launch_in_place
from ..runtime.observing import PendingLaunch, overrides
from ..runtime.request import LaunchOptions, unlimited_request
from ..runtime.result import FaultError, Result
from ..runtime.specialisation import specialisation_of
from .kernel import NumbaKernel
from .memory import Pointer
from .packages import Package

MAX_PLANS = 64
"""Requests kept for a kernel: of so many combinations of grid, block and sizes."""

Available = Callable[[int], int]
"""Returns the bytes from an address to the end of its memory; 0 outside of all memory."""
_Sizes = tuple[Dim3, Dim3, int, tuple[int, ...]]


@dataclass(frozen=True)
class _ScalarArgument:
    """A scalar parameter of the program: its source in the values of a launch, and its type."""

    name: str
    parameter: int
    divisor: int
    kind: str
    type: Any


class Launcher:
    """Launches of one kernel. available: as `Available`."""

    def __init__(self, kernel: NumbaKernel, device: Device, available: Available) -> None:
        self.kernel, self.device, self.available = kernel, device, available
        self.specialisation = specialisation_of(kernel, {}, None, {})
        facts, types = kernel.facts, self.specialisation.summary.parameters
        self._arrays = [(name, facts.arrays[name]) for name, type in types.items() if isinstance(type, Array)]
        self._scalars = [
            _ScalarArgument(name, source.parameter, source.divisor, source.kind, type.dtype.type)
            for name, type in types.items()
            if isinstance(type, Scalar)
            for source in [facts.scalars[name]]
        ]
        self._order = list(types)
        self._plans: dict[_Sizes, Request] = {}

    def launch(self, values: Sequence[Any], grid: Dim3, block: Dim3, shared: int) -> Result:
        """Launch the kernel. values: one for each parameter of the LLVM function, a Pointer for an array and a number for a scalar;
        then those of the items of structures.

        Raises LaunchError, and FaultError for a finding that a GPU does not tolerate.
        """
        arguments: dict[str, Any] = {name: self._memory(name, view, values) for name, view in self._arrays}
        counts = tuple(map(len, arguments.values()))
        for scalar in self._scalars:
            arguments[scalar.name] = self._number(scalar, values)
        arguments = {name: arguments[name] for name in self._order}
        engine, device = overrides("jit", self.device)
        if engine == "cuda" and self.kernel.own_code({}) is None:
            raise LaunchError(
                f"{self.kernel.__name__}: the cuda engine does not run it: use a GPU without SIMTBED_NUMBA"
            )
        sizes = (grid, block, shared, counts)
        plan = self._plans.get(sizes)
        if plan is None or plan.device is not device:
            plan = self._plan(arguments, sizes, device)
        request = plan.with_arguments(arguments, {})
        result = launch_in_place(PendingLaunch(self.kernel, arguments, request, engine))
        if result.faults and self.specialisation.ending(result.faults):
            raise FaultError(result)
        return result

    def function(self, package: Package, name: str) -> Any:
        """Return the function on the device, with the bytes of its declared arrays. NVIDIA's compiler alone determines registers."""
        shared, limit = self.kernel.declared_bytes("shared"), self.device.threads_per_block
        attributes = SimpleNamespace(
            max_threads_per_block=limit,
            shared_size_bytes=shared,
            num_regs=0,
            const_size_bytes=self.kernel.declared_bytes("constant"),
            local_size_bytes=self.kernel.declared_bytes("local"),
        )
        kernel = SimpleNamespace(attributes=attributes, handle=shared)
        module = SimpleNamespace(context=package.submodule("cudadrv.devices").get_context())
        return package.submodule("cudadrv.driver").CudaPythonFunction(module, kernel, name)

    def _plan(self, arguments: dict[str, Any], sizes: _Sizes, device: Device) -> Request:
        """Return the validated request of launches with these sizes."""
        grid, block, shared, _ = sizes
        options = LaunchOptions(
            grid,
            block,
            arguments,
            device,
            shared,
            counters=False,
            cooperative=self.kernel.facts.cooperative,
            in_place=True,
        )
        # Integers of LLVM's text wrap: no loop gets a limit for the values of this launch.
        request = replace(unlimited_request(self.kernel, options), plain_prints=True).without_arguments()
        if len(self._plans) == MAX_PLANS:
            self._plans.clear()
        self._plans[sizes] = request
        return request

    def _memory(self, name: str, view: ArrayView, values: Sequence[Any]) -> Buffer:
        """Return the memory of an array as elements of the program's type."""
        if view.parameter is None:
            start, size = view.address, self.available(view.address)
            if not size:
                raise LaunchError(f"{name}: the kernel contains the address of an array whose memory was freed")
        else:
            pointer, parameter = values[view.parameter], self.kernel.facts.parameters[view.parameter]
            assert isinstance(pointer, Pointer) and isinstance(parameter, ArrayParameter)
            start = pointer.low if parameter.offset else pointer.address
            size = pointer.low + pointer.size - start
        element = view.element
        count = (size - view.phase) // element.size
        if count <= 0:
            return np.empty(0, element.dtype)
        memory: Any = (ctypes.c_char * size).from_address(start)
        return np.frombuffer(memory, element.dtype, count, view.phase)

    def _number(self, scalar: _ScalarArgument, values: Sequence[Any]) -> np.generic:
        value = values[scalar.parameter]
        if scalar.kind != "value":
            value = value.address - (value.low if scalar.kind == "offset" else 0)
        if scalar.divisor != 1:
            value, rest = divmod(value, scalar.divisor)
            if rest:
                raise LaunchError(
                    f"{self.kernel.__name__}: {scalar.name} is not a multiple of the element's {scalar.divisor} bytes; "
                    "give a copy of the array"
                )
        number: Any
        try:
            number = scalar.type(value)
        except OverflowError:  # a driver copies the low bytes
            number = np.asarray(value).astype(scalar.type)[()]
        return cast("np.generic", number)
