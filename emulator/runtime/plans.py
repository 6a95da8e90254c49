"""Launch plans: the validation of a launch, kept for later launches with equal options and equal types and shapes of arguments.

A plan has the request of its first launch without the arguments. Each launch adds its own: arrays in the plan's
layouts, numbers in the range of their types. Checks that depend on memory, values or the device's arrays are repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from operator import is_
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..forking import hold_at_fork
from ..frontend.constants import exact
from ..frontend.signature import RecordParameter
from ..language.functions import Kernel
from ..language.types import COMPLEX, Array, Scalar, Vector
from ..machine.device import Device
from .argument_binding import accessed_memory, record_numbers
from .array_forms import ArrayForm, real_view
from .array_views import argument, check_aliases
from .arrays import Buffer, DeviceArray, MappedArray, NewArray
from .common_memory import check_overlap
from .counter_limits import wrapping_loops
from .engine import Request
from .gpus import CURRENT
from .registry import EngineRow
from .request import LaunchOptions, check_device, named_arguments, unlimited_request
from .scalars import checked_scalar
from .specialisation import AnyKernel, KernelFacts, facts_of, known_facts

MAX_PLANS = 128
"""Plans of a kernel. The oldest is discarded for a new one."""


# ------------------------------------------------------------------ keys
def arranged(kernel: AnyKernel, args: Any) -> tuple[AnyKernel, KernelFacts, Mapping[str, Any]]:
    """Return the kernel of a launch, the facts about it, and its arguments by name, with defaults, as `named_arguments` returns them."""
    if type(kernel) is Kernel:
        facts = facts_of(kernel)
        parameters = facts.signature.parameters
        if type(args) is tuple and len(args) == len(parameters):
            args = dict(zip(parameters, args, strict=True))
        if type(args) is dict and args.keys() <= parameters.keys() and MappedArray not in map(type, args.values()):
            if not _PLAIN.issuperset(map(type, args.values())):
                args = {
                    name: value if type(value) in _PLAIN else argument(name, parameters[name], value)
                    for name, value in args.items()
                }
            return kernel, facts, {**kernel.defaults, **args} if facts.has_defaults else args
    kernel, named = named_arguments(kernel, args)
    return kernel, known_facts(kernel), {**kernel.defaults, **named}


def plan_key(
    facts: KernelFacts, engine: str, device: Device, options: Mapping[str, Any], args: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """Return the key of a launch's plan: options, and types and shapes of arguments. None for a launch that every time is
    validated.

    True and 1 have different keys, as they have different types. The values of numbers are in the key of Const parameters alone.
    """
    forms: list[Any] = []
    for name, value in args.items():
        kind = type(value)
        if name in facts.valued:
            try:
                forms.append(value.tobytes() if kind is np.ndarray else exact(value))
            except RecursionError:
                return None
        if kind is int or kind is float:
            forms.append(kind)
        elif kind is np.ndarray:
            if value.dtype.names is not None:  # the alignment of its fields is that of its address
                return None
            forms.append((value.dtype, value.shape, value.strides, value.flags.aligned))
        elif kind is DeviceArray or isinstance(value, DeviceArray):
            layout = value.layout or value.read_layout()
            if layout is None:
                return None
            forms.append(layout)
        elif kind is NewArray:
            forms.append((value.shape, value.type, value.readable, exact(value.value)))
        elif kind in _PLAIN:
            forms.append(kind)
    values = (*options.values(),)
    recent = facts.recent_options
    if len(recent[0]) != len(values) or not all(map(is_, values, recent[0])):
        kinds = [*map(type, values)]
        if tuple in kinds:
            kinds += [type(item) for value in values if type(value) is tuple for item in value]
        recent = facts.recent_options = values, (*kinds,)
    return engine, CURRENT.get(), id(device), (*options,), values, recent[1], (*args,), (*forms,)


def find_plan(facts: KernelFacts, key: tuple[Any, ...] | None) -> LaunchPlan | None:
    """Return the plan with a key; None for a launch without a plan."""
    try:
        return facts.plans.get(key)
    except (TypeError, RecursionError):  # a list, or another object that is not hashable
        return None


_PLAIN = frozenset({DeviceArray, np.ndarray, NewArray, bool, int, float, *np.sctypeDict.values()})
"""Types of arguments that need no conversion."""


# ------------------------------------------------------------------ plans
@dataclass(frozen=True)
class _PlannedArray:
    """A global array argument. is_complex: whether its memory is accessed as real numbers."""

    name: str
    form: ArrayForm
    element: Scalar | Vector
    accepts: tuple[str, ...]
    is_complex: bool

    @cached_property
    def is_whole(self) -> bool:
        """Whether an argument is the memory that the kernel accesses."""
        form = self.form
        return (
            form.contiguous and len(form.shape) == 1 and not (self.accepts or self.is_complex or form.begin is not None)
        )

    def flat(self, argument: Any) -> Buffer:
        """Return the memory of an argument with the planned type and shape."""
        if self.accepts:
            array = accessed_memory(self.name, self.element, argument, self.accepts)[0]
        elif type(argument) is np.ndarray:
            array = argument
        else:
            array = argument.template() if type(argument) is NewArray else argument.host
        if self.is_complex:
            array = real_view(array)
        return self.form.flat(array)


@dataclass(eq=False)
class LaunchPlan:
    """The validated launch of a kernel for one key.

    request: without arguments and device arrays. constant: extents, strides and filled arrays, and None for each
    argument of a launch. device: the device of the key, whose identity it is. bounds: the numbers that decide whether a
    counter of a loop may wrap; unlimited: values of them for which none does. direct: the launch that the engine offers for
    all arguments of the plan (`engine.DirectEngine`).
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
    direct: Any = None
    unlimited: set[tuple[Any, ...]] = field(default_factory=set)

    @staticmethod
    def of_request(kernel: Any, request: Request, args: Mapping[str, Any], device: Device) -> LaunchPlan | None:
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
            device_arrays, changed, pairs,
        )  # fmt: skip

    def bind(self, args: Mapping[str, Any]) -> Request:
        """Return the request of a launch with these arguments. Raises LaunchError."""
        arguments = dict(self.constant)
        for array in self.arrays:
            value = args[array.name]
            whole = array.is_whole and type(value) is np.ndarray
            arguments[array.name] = value if whole else array.flat(value)
        for name, kind in self.numbers:
            arguments[name] = checked_scalar(name, kind, args[name])
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
            device_arrays[name].rewritten = True
        return self._limited(request, args) if summary.counters.loops else request

    @cached_property
    def bounds(self) -> tuple[str, ...] | None:
        """The numbers of a launch that decide which loops get a limit; None if contents of arrays or records do."""
        terms = self.request.specialisation.summary.counters.terms
        leaves = {term.name for term in terms if term.name and not term.name.startswith(("st.", "length("))}
        numbers = {name for name, _ in self.numbers}
        known = numbers | {name for name, value in self.constant.items() if value is not None}
        return tuple(leaves & numbers) if leaves <= known else None

    def _limited(self, request: Request, args: Mapping[str, Any]) -> Request:
        values = None if self.bounds is None else tuple([args[name] for name in self.bounds])
        if values is not None and values in self.unlimited:
            return request
        loops = wrapping_loops(request)
        if not loops and values is not None:
            if len(self.unlimited) >= MAX_PLANS:
                self.unlimited.clear()
            self.unlimited.add(values)
        return request.limited(loops)


def new_request(
    kernel: AnyKernel, options: LaunchOptions, facts: KernelFacts, key: tuple[Any, ...] | None, row: EngineRow
) -> Request:
    """Return the validated request, which shows prints, of a launch without a plan, and keep its plan for later ones.

    options: with the arguments and the device of the key. Raises CompileError and LaunchError.
    """
    request = unlimited_request(kernel, options, row.host_calls)
    if options.in_place:
        return replace(request.limited(wrapping_loops(request)), show_prints=True)
    if not row.emulates and (request.checks or request.schedule is not None or request.schedules):
        raise LaunchError("a GPU only returns results: check and schedule need an emulator, jit or numpy")
    request = replace(request, show_prints=True)
    assert isinstance(options.device, Device) and isinstance(options.args, Mapping)
    plan = None if key is None else LaunchPlan.of_request(kernel, request, options.args, options.device)
    if plan is not None:
        with suppress(TypeError, RecursionError), _STORING:  # a list in the key is not hashable
            facts.plans[key] = plan
            if len(facts.plans) > MAX_PLANS:
                del facts.plans[next(iter(facts.plans))]
        request = plan.request.with_arguments(request.arguments, request.device_arrays)
    return request.limited(wrapping_loops(request))


_STORING = threading.Lock()
hold_at_fork(_STORING)
