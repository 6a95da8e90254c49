"""Launch plans: the validation of a launch, kept for later launches with equal options and equal types and shapes of arguments.

A plan has the request of its first launch without the arguments. Each launch adds its own: arrays in the plan's
layouts, numbers in the range of their types. Checks that depend on memory, values or the device's arrays are repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..frontend.constants import exact
from ..frontend.signature import KernelParameter, RecordParameter, Signature
from ..language.functions import Kernel
from ..language.types import COMPLEX, Array, Scalar, Vector
from ..machine.device import Device
from .argument_binding import record_numbers
from .array_forms import ArrayForm, as_elements, real_view
from .array_views import check_aliases
from .arrays import Buffer, DeviceArray, NewArray
from .common_memory import check_overlap
from .counter_limits import wrapping_loops
from .engine import Request
from .registry import EngineRow
from .request import LaunchOptions, check_device, find_device, unlimited_request
from .scalars import checked_scalar
from .specialisation import AnyKernel, KernelFacts, facts_of, known_facts

MAX_PLANS = 128
"""Plans of a kernel. The oldest is discarded for a new one."""


class _Unplanned(Exception):
    """Raised for an argument or an option that every launch must validate."""


# ------------------------------------------------------------------ keys
def _plan_key(
    signature: Signature, options: Sequence[Any], args: Mapping[str, Any], device: Device, engine: str
) -> Any | None:
    """Return the key of a launch's plan: options, and types and shapes of arguments. None for a launch without a plan.

    options: `LaunchOptions.validated`. True and 1 have different keys.
    """
    try:
        arguments = argument_keys(signature, args)
        grid, block, *_ = options
        key = engine, id(device), options, (*map(type, options),), _types(grid), _types(block), (*args,), arguments
        hash(key)
    except (_Unplanned, TypeError, RecursionError):  # a list, or another object that is not hashable
        return None
    return key


def argument_keys(signature: Signature, args: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the types and shapes of arguments, in their order. Raises _Unplanned."""
    parameters = signature.parameters
    return tuple([_argument_key(parameters.get(name), value) for name, value in args.items()])


def _types(value: Any) -> Any:
    return (*map(type, value),) if type(value) is tuple else None


def _argument_key(parameter: KernelParameter | None, value: Any) -> Any:
    """Return the properties of an argument that its validation depends on."""
    kind = type(value)
    if kind is DeviceArray or isinstance(value, DeviceArray):
        if value.fill is not None or value.written is not None:  # until its first launches
            raise _Unplanned
        form = value.form
        return kind, form.dtype, form.shape, form.strides
    if kind is np.ndarray:
        if value.dtype.names is not None:  # the alignment of its fields is that of its address
            raise _Unplanned
        key = value.dtype, value.shape, value.strides, value.flags.aligned
        table = parameter is not None and isinstance(parameter.type, Array) and parameter.type.space == "constant"
        return (*key, value.tobytes()) if table else key
    if kind is NewArray:
        return NewArray, value.shape, value.type, value.readable, exact(value.value)
    return exact(value) if parameter is not None and parameter.type is None else None


_PLAIN = frozenset({DeviceArray, np.ndarray, NewArray, bool, int, float, *np.sctypeDict.values()})
"""Types of arguments that need no conversion."""


def find_plan(
    kernel: AnyKernel, options: Sequence[Any], args: Any, device: Device, engine: str
) -> tuple[LaunchPlan, Mapping[str, Any]] | None:
    """Return the plan of a launch, and its arguments with the kernel's defaults; None for a launch without a plan."""
    if type(kernel) is not Kernel or type(args) is not dict or not _PLAIN.issuperset(map(type, args.values())):
        return None
    facts = facts_of(kernel)
    if not facts.plans:
        return None
    if len(args) != len(facts.signature.parameters):
        args = {**kernel.defaults, **args}
    plan = facts.plans.get(_plan_key(facts.signature, options, args, device, engine))
    return None if plan is None else (plan, args)


def known_plan(kernel: AnyKernel, options: LaunchOptions, args: Mapping[str, Any], engine: str) -> LaunchPlan | None:
    """Return the plan of a launch; None without one."""
    if options.types is not None:
        return None
    planned = find_plan(kernel, options.validated, dict(args), find_device(options.device), engine)
    return None if planned is None else planned[0]


def fits(plan: LaunchPlan, args: Mapping[str, Any]) -> bool:
    """Return whether arguments have the types and shapes of a plan, and its kernel is unchanged."""
    try:
        same = argument_keys(plan.facts.signature, args) == plan.argument_keys
    except (_Unplanned, TypeError, RecursionError):
        return False
    return bool(same) and not plan.facts.kernel.stale


# ------------------------------------------------------------------ plans
@dataclass(frozen=True)
class _PlannedArray:
    """A global array argument. is_complex: whether its memory is accessed as real numbers."""

    name: str
    form: ArrayForm
    element: Scalar | Vector
    accepts: tuple[str, ...]
    is_complex: bool

    def flat(self, argument: Any) -> Buffer:
        """Return the memory of an argument with the planned type and shape."""
        array = argument
        if type(argument) is not np.ndarray:
            array = argument.template() if type(argument) is NewArray else argument.host
        if self.accepts and not isinstance(argument, NewArray):
            array = as_elements(self.name, array, self.element, self.accepts)
        elif self.is_complex:
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
    row: EngineRow
    facts: KernelFacts
    argument_keys: tuple[Any, ...]

    @cached_property
    def repeatable(self) -> bool:
        """Whether the engine repeats a launch on a GPU (`repetition`): all arrays are device arrays, and the kernel's code does
        not depend on their contents."""
        terms = self.request.specialisation.summary.counters.terms
        return (
            self.row.queues
            and not any(isinstance(value, np.ndarray) and value.ndim for value in self.constant.values())
            and all(array.name in self.device_arrays for array in self.arrays)
            and not any(term.name.startswith("values(") for term in terms)
        )

    @staticmethod
    def of_request(
        kernel: Any, request: Request, args: Mapping[str, Any], device: Device, row: EngineRow
    ) -> LaunchPlan | None:
        """Return the plan of a validated launch; None for arrays of structs. args: with the kernel's defaults."""
        facts = known_facts(kernel)
        summary, parameters = request.specialisation.summary, facts.signature.parameters
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
                    form, accepts = request.forms[name], parameters[name].accepts
                    arrays.append(_PlannedArray(name, form, kind.element, accepts, kind.element in COMPLEX))
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
            device_arrays, changed, pairs, row, facts, argument_keys(facts.signature, args),
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
        if len(device_arrays) > 1:
            check_aliases(self.kernel.__name__, device_arrays, self.changed_device_arrays)
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
    key = _plan_key(facts.signature, options.validated, args, device, row.name) if options.types is None else None
    if key is not None and (plan := facts.plans.get(key)) is not None:
        planned: Request = plan.bind(args)
        return planned
    request = unlimited_request(kernel, replace(options, args=args, device=device), row.host_calls)
    if not row.emulates and (request.checks or request.schedule is not None):
        raise LaunchError("a GPU only returns results: check and schedule need an emulator, jit or numpy")
    request = replace(request, show_prints=True)
    new = None if key is None else LaunchPlan.of_request(kernel, request, args, device, row)
    if new is not None:
        if len(facts.plans) >= MAX_PLANS:
            facts.plans.pop(next(iter(facts.plans)), None)
        facts.plans[key] = new
        request = new.request.with_arguments(request.arguments, request.device_arrays)
    return request.limited(wrapping_loops(request))
