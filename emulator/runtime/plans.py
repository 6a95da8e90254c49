"""Launch plans: the validation of a launch, kept for later launches with equal options and equal types and shapes of arguments.

A plan has the request of its first launch without the arguments. Each launch adds its own: arrays in the plan's
layouts, numbers in the range of their types. Checks that depend on memory, values or the device's arrays are repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..frontend.constants import exact
from ..frontend.signature import KernelParameter, RecordArrayParameter, RecordParameter, Signature
from ..language.types import COMPLEX, Array, Scalar, Vector
from ..machine.device import Device
from .array_forms import ArrayForm, as_elements, real_view
from .arrays import Buffer, DeviceArray, NewArray
from .counter_limits import wrapping_loops
from .engine import Request
from .registry import EngineRow
from .request import LaunchOptions, check_device, check_overlap, record_numbers, unlimited_request
from .scalars import checked_scalar
from .specialisation import AnyKernel, known_facts

MAX_PLANS = 128
"""Plans of a kernel. The oldest is discarded for a new one."""


class _Unplanned(Exception):
    """Raised for an argument or an option that every launch must validate."""


# ------------------------------------------------------------------ keys
def plan_key(
    signature: Signature, options: LaunchOptions, args: Mapping[str, Any], device: Device, engine: str
) -> Any | None:
    """Return the key of a launch's plan: options, and types and shapes of arguments. None for a launch without a plan.

    args: arrays of other libraries are NumPy arrays. True and 1 have different keys.
    """
    o = options
    chosen = (o.grid, o.block, o.shared, o.counters, o.detail, o.decisions, o.step_limit, o.check, o.schedule)
    if o.types is not None:
        return None
    parameters = signature.parameters
    try:
        arguments = tuple([(name, _argument_key(parameters.get(name), value)) for name, value in args.items()])
        key = engine, id(device), chosen, o.cooperative, *map(_types, chosen), type(o.cooperative), arguments
        hash(key)
    except (_Unplanned, TypeError):  # a list, or another object that is not hashable
        return None
    return key


def _types(value: Any) -> Any:
    return type(value) if type(value) is not tuple else tuple(map(type, value))


def _argument_key(parameter: KernelParameter | None, value: Any) -> Any:
    """Return the part of an argument that its validation depends on."""
    if type(value) is np.ndarray:
        if value.dtype.names is not None:  # the alignment of its fields is that of its address
            raise _Unplanned
        key = value.dtype, value.shape, value.strides, value.flags.aligned
        table = parameter is not None and isinstance(parameter.type, Array) and parameter.type.space == "constant"
        return (*key, value.tobytes()) if table else key
    if isinstance(value, DeviceArray):
        if value.fill is not None or value.written is not None:  # until its first launches
            raise _Unplanned
        return DeviceArray, value.dtype, value.shape
    if isinstance(value, NewArray):
        return NewArray, value.shape, value.type, value.readable, exact(value.value)
    return exact(value) if parameter is not None and parameter.type is None else None


# ------------------------------------------------------------------ plans
@dataclass(frozen=True)
class _PlannedArray:
    """A global array argument. lanes: whether complex numbers become real ones."""

    name: str
    form: ArrayForm
    element: Scalar | Vector
    accepts: tuple[str, ...]

    def flat(self, argument: Any) -> Buffer:
        """Return the memory of an argument with the planned type and shape."""
        if type(argument) is np.ndarray:
            array = argument
        else:
            array = argument.host if isinstance(argument, DeviceArray) else argument.template()
        if self.accepts and not isinstance(argument, NewArray):
            array = as_elements(self.name, array, self.element, self.accepts)
        elif self.element in COMPLEX:
            array = real_view(array)
        return self.form.flat(array)


@dataclass(frozen=True)
class LaunchPlan:
    """The validated launch of a kernel for one key.

    request: without arguments and device arrays. constant: extents, strides and filled arrays, and None for each
    argument of a launch. device: the device of the key, whose identity it is.
    """

    kernel: Any
    request: Request
    device: Device
    constant: Mapping[str, Any]
    arrays: tuple[_PlannedArray, ...]
    numbers: tuple[tuple[str, Scalar], ...]
    records: tuple[tuple[str, RecordParameter], ...]
    device_arrays: tuple[str, ...]
    changed_device_arrays: tuple[str, ...]
    host_arrays: tuple[tuple[str, str], ...]

    @staticmethod
    def of_request(
        kernel: Any, signature: Signature, request: Request, args: Mapping[str, Any], device: Device
    ) -> LaunchPlan | None:
        """Return the plan of a validated launch; None for arrays of structs. args: with the kernel's defaults."""
        summary, parameters = request.specialisation.summary, signature.parameters
        if request.structs:
            return None
        arrays, numbers = [], []
        constant: dict[str, Any] = {}
        records = [(name, p.type) for name, p in parameters.items() if isinstance(p.type, RecordParameter)]
        from_records = {own for _, record in records for own, _, _ in record.components}
        for name, kind in summary.parameters.items():
            constant[name] = None
            if isinstance(kind, Array):
                fill = request.filled.get(name)
                if fill is not None and any(fill.tobytes()):
                    constant[name] = request.arguments[name]  # one element, repeated
                else:
                    arrays.append(_PlannedArray(name, request.forms[name], kind.element, parameters[name].accepts))
            elif name not in parameters:
                if name not in from_records:
                    constant[name] = request.arguments[name]
            else:
                assert isinstance(kind, Scalar)
                numbers.append((name, kind))
        device_arrays = tuple(name for name, value in args.items() if isinstance(value, DeviceArray))
        hosts = [name for name, value in args.items() if type(value) is np.ndarray]
        written = {*summary.changed}
        pairs = tuple((a, b) for a, b in combinations(hosts, 2) if a in written or b in written)
        changed = tuple(name for name in device_arrays if name in written)
        return LaunchPlan(
            kernel, request.without_arguments(), device, constant, tuple(arrays), tuple(numbers), tuple(records),
            device_arrays, changed, pairs,
        )  # fmt: skip

    def bind(self, args: Mapping[str, Any]) -> Request:
        """Return the request of a launch with these arguments. Raises LaunchError."""
        arguments = dict(self.constant)
        for array in self.arrays:
            arguments[array.name] = array.flat(args[array.name])
        for name, type in self.numbers:
            arguments[name] = checked_scalar(name, type, args[name])
        for name, record in self.records:
            arguments |= record_numbers(name, record, args[name])
        for a, b in self.host_arrays:
            if np.may_share_memory(args[a], args[b]):
                check_overlap({a: args[a], b: args[b]}, self.request.specialisation.summary.changed)
        device_arrays = {name: args[name] for name in self.device_arrays}
        if len({*map(id, device_arrays.values())}) < len(device_arrays):
            raise LaunchError(f"{self.kernel.__name__}: one DeviceArray is given for two parameters")
        request = self.request.with_arguments(arguments, device_arrays)
        summary = request.specialisation.summary
        if summary.dynamic:
            check_device(self.kernel, request)
        for name in self.changed_device_arrays:
            device_arrays[name].expect_changes()
        return request.limited(wrapping_loops(request)) if summary.counters.loops else request


def planned_request(
    kernel: AnyKernel, options: LaunchOptions, args: Mapping[str, Any], device: Device, row: EngineRow
) -> Request:
    """Return the validated request, which shows prints, of a launch of the kernel and the arguments of `named_arguments`.

    A launch like an earlier one is validated by its plan. Raises CompileError and LaunchError.
    """
    args = {**kernel.defaults, **args}
    facts = known_facts(kernel)
    plans, signature = facts.plans, facts.signature
    key = plan_key(signature, options, args, device, row.name)
    if key is not None and (plan := plans.get(key)) is not None:
        planned: Request = plan.bind(args)
        return planned
    request = unlimited_request(kernel, replace(options, args=args, device=device), row.host_calls)
    request = replace(request, show_prints=True)
    new = None if key is None else LaunchPlan.of_request(kernel, signature, request, args, device)
    if new is not None:
        if len(plans) >= MAX_PLANS:
            plans.pop(next(iter(plans)), None)
        plans[key] = new
        request = new.request.with_arguments(request.arguments, request.device_arrays)
    return request.limited(wrapping_loops(request))
