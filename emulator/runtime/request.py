"""Validation of launch arguments: from the caller's values to a request with checked types, sizes and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import Any

import numpy as np

from ..checked import counted, one_of, shown, truth, whole, within_stack
from ..errors import LaunchError
from ..frontend.constants import is_record, is_struct
from ..frontend.launchable import LaunchableKernel
from ..frontend.signature import RecordArrayParameter, RecordParameter, Signature
from ..ir.limits import over_capacity
from ..language.types import COMPLEX, FLOATS, SCALARS, Array, Scalar, Vector, from_dtype
from ..machine import device as devices
from ..machine.device import Device
from .array_forms import ArrayForm, as_elements, real_view, struct_field
from .array_views import argument as argument_of
from .array_views import check_aliases
from .arrays import Buffer, DeviceArray, NewArray, checked_array, is_zero, named, split
from .common_memory import check_overlap
from .counter_limits import wrapping_loops
from .engine import MATHS, MAX_ITERATIONS, Dim3, Maths, Request
from .foreign_arrays import as_number
from .poison import poison, poison_record
from .scalars import checked_scalar
from .specialisation import AnyKernel, Specialisation, bound, signature_of, specialisation_of


@dataclass(slots=True)
class LaunchOptions:
    """The arguments of `launch` except the kernel, the engine and `faults`, with the same defaults."""

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: Mapping[str, Any] | Sequence[Any]
    device: Device | str = devices.H200
    shared: int = 0
    counters: bool = True
    detail: bool = False
    decisions: bool = False
    compiled: bool = False
    step_limit: int | None = None
    types: Mapping[str, str] | None = None
    check: str | Iterable[str] = ()
    schedule: int | None = None
    cooperative: bool = False
    in_place: bool = False
    maths: Maths = "portable"

    @property
    def validated(self) -> tuple[Any, ...]:
        """The options that a launch plan depends on, without the device."""
        counted = self.counters, self.detail, self.decisions, self.compiled
        return (
            self.grid,
            self.block,
            self.shared,
            *counted,
            self.step_limit,
            self.check,
            self.schedule,
            self.cooperative,
            self.in_place,
            self.maths,
        )


@dataclass
class _Bindings:
    """The program's arguments, collected parameter by parameter; fields as in `Request`."""

    arrays: dict[str, Buffer] = field(default_factory=dict)
    filled: dict[str, Buffer] = field(default_factory=dict)
    forms: dict[str, ArrayForm] = field(default_factory=dict)
    numbers: dict[str, np.generic] = field(default_factory=dict)
    structs: dict[str, Buffer] = field(default_factory=dict)
    owners: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def bind_array(self, name: str, element: Scalar | Vector, argument: Any, accepts: tuple[str, ...] = ()) -> None:
        if accepts and not isinstance(argument, NewArray):
            given = argument.host if isinstance(argument, DeviceArray) else _any_array(name, argument)
            array = as_elements(name, given, element, accepts)
            form = ArrayForm.for_array(name, array, element)
            form = form if array is given else replace(form, own=(given.dtype, given.shape))
        else:
            array = _array(name, element, argument)
            form = ArrayForm.for_array(name, array, element)
        self.forms[name] = form
        self.arrays[name] = form.flat(array)
        if isinstance(argument, NewArray | DeviceArray) and argument.fill is not None:
            self.filled[name] = argument.fill
            if not is_zero(argument.fill):
                self.arrays[name] = np.broadcast_to(argument.fill, self.arrays[name].shape)
        self.numbers |= form.numbers(name)

    def bind_structs(self, name: str, type: RecordArrayParameter, argument: Any) -> None:
        self.structs[name] = _structs(name, type, argument)
        fields: list[tuple[tuple[str, ...], Scalar]] = []
        for own, path, kind in type.components:
            assert isinstance(kind, Scalar)
            self.forms[own], self.arrays[own] = struct_field(name, self.structs[name], path, kind)
            self.numbers |= self.forms[own].numbers(own)
            self.owners[own] = (name, path)
            fields.append((path, kind))
            if isinstance(argument, NewArray):
                self.filled[own] = np.zeros((), kind.dtype) if argument.readable else poison(kind)
        if isinstance(argument, NewArray) and not argument.readable:
            record = poison_record(self.structs[name].dtype, fields)
            self.structs[name] = np.broadcast_to(record, argument.shape)

    def new_arrays(self, args: Mapping[str, Any]) -> dict[str, NewArray]:
        """Return the arrays created by the launch, by the program's own parameters."""
        new = {n: value for n, value in args.items() if isinstance(value, NewArray) and n not in self.structs}
        return new | {own: args[n] for own, (n, _) in self.owners.items() if isinstance(args[n], NewArray)}


def prepare_request(kernel: AnyKernel, **options: Any) -> Request:
    """Return the validated request of `launch(kernel, **options)`. Raises the errors of `launch`."""
    return validated_request(kernel, LaunchOptions(**options))


def validated_request(kernel: AnyKernel, options: LaunchOptions, host_calls: bool = False) -> Request:
    """Return the validated request of a launch. host_calls: whether the kernel may call Python functions.

    Raises CompileError and LaunchError.
    """
    request = unlimited_request(kernel, options, host_calls)
    return request.limited(wrapping_loops(request))


@within_stack()
def unlimited_request(kernel: AnyKernel, options: LaunchOptions, host_calls: bool = False) -> Request:
    """Return the request of `validated_request` for any values of numbers: no loop counter has a limit yet."""
    device = find_device(options.device)
    grid, block = _grid_and_block(options, device)
    shared = whole("shared", options.shared, 0, device.shared_per_block_optin, f"a block of the {device.name}")
    step_limit, schedule = options.step_limit, options.schedule
    step_limit = None if step_limit is None else whole("step_limit", step_limit, 1, MAX_ITERATIONS)
    schedule = None if schedule is None else whole("schedule", schedule, 0, (1 << 63) - 1)
    checks = _checks(options.check)
    counters, detail, decisions, compiled = _recording(options)
    kernel, named_args = named_arguments(kernel, options.args)
    checks = applied_checks(kernel, checks)
    signature = signature_of(kernel)
    args = {**kernel.defaults, **named_args}
    _same_names(kernel, signature, args)
    bindings, specialisation = _bind(kernel, signature, args, options.types, host_calls)
    summary = specialisation.summary
    arguments: dict[str, Buffer | np.generic] = {}
    for name, type in summary.parameters.items():
        if isinstance(type, Array):
            arguments[name] = bindings.arrays[name]
        else:
            bound = bindings.numbers.get(name)
            arguments[name] = checked_scalar(name, type, args[name]) if bound is None else bound
    device_arrays = {name: value for name, value in args.items() if isinstance(value, DeviceArray)}
    masks = {name: value.written for name, value in device_arrays.items() if value.written is not None}
    check_aliases(kernel.__name__, device_arrays, summary.changed)
    in_place = truth("in_place", options.in_place)
    if in_place and (other := [name for name, value in args.items() if isinstance(value, DeviceArray | NewArray)]):
        raise LaunchError(f"{other[0]}: a launch in place modifies NumPy arrays; give one, or leave in_place=False")
    if not in_place:
        check_overlap(args, [bindings.owners[name][0] if name in bindings.owners else name for name in summary.changed])
    uninitialised = {name for name, value in bindings.new_arrays(args).items() if not value.readable}
    request = Request(
        specialisation=specialisation,
        grid=grid,
        block=block,
        arguments=arguments,
        dynamic_shared=shared,
        device=device,
        counters=counters,
        detail=detail,
        decisions=decisions,
        compiled=compiled,
        step_limit=step_limit,
        forms=bindings.forms,
        structs=bindings.structs,
        owners=bindings.owners,
        device_arrays=device_arrays,
        filled=bindings.filled,
        unwritten=frozenset(uninitialised | masks.keys()),
        written={name: mask.reshape(-1) for name, mask in masks.items() if any(mask.strides)},
        checks=checks,
        schedule=schedule,
        cooperative=truth("cooperative", options.cooperative),
        in_place=frozenset(summary.changed) if in_place else frozenset(),
        overlapping=in_place,
        maths=one_of("maths", options.maths, MATHS),
    )
    check_device(kernel, request)
    for name in device_arrays.keys() & set(summary.changed):
        device_arrays[name].expect_changes()
    return request


def _grid_and_block(options: LaunchOptions, device: Device) -> tuple[Dim3, Dim3]:
    """Return the extents of grid and block, within the device's limits."""
    grid = _dim3(options.grid, "grid", device.grid_extents, device)
    block = _dim3(options.block, "block", device.block_extents, device)
    threads = math.prod(block)
    if threads > device.threads_per_block:
        raise LaunchError(f"block is {threads:,} threads: the {device.name} takes at most {device.threads_per_block:,}")
    return grid, block


def _recording(options: LaunchOptions) -> tuple[bool, bool, bool, bool]:
    """Return whether to record counters, samples, decisions and arrays."""
    detail, decisions = truth("detail", options.detail), truth("decisions", options.decisions)
    counters, compiled = truth("counters", options.counters), truth("compiled", options.compiled)
    for name, value in (("detail", detail), ("decisions", decisions), ("compiled", compiled)):
        if value and not counters:
            raise LaunchError(f"{name}=True records counted events: leave counters=True")
    return counters, detail, decisions, compiled


def _bind(
    kernel: AnyKernel, signature: Signature, args: Mapping[str, Any], types: Any, host_calls: bool
) -> tuple[_Bindings, Specialisation]:
    """Return the arguments by the program's own parameters, and the specialised kernel."""
    parameters = signature.parameters
    consts = {name: _const(name, args[name]) for name, parameter in parameters.items() if parameter.type is None}
    real = _real(kernel, signature, args, types)
    bindings = _Bindings()
    for name, parameter in parameters.items():
        type = parameter.type
        if isinstance(type, Array) and type.space == "constant":
            consts[name] = _constant_table(name, type, args[name])
        elif isinstance(type, Array):
            element = real if parameter.real and real is not None else type.element
            bindings.bind_array(name, element, args[name], parameter.accepts)
        elif isinstance(type, RecordArrayParameter):
            bindings.bind_structs(name, type, args[name])
        elif isinstance(type, RecordParameter):
            bindings.numbers |= record_numbers(name, type, args[name])
    layouts = {name: form.layout for name, form in bindings.forms.items()}
    return bindings, specialisation_of(kernel, consts, real, layouts, host_calls)


def check_device(kernel: AnyKernel, request: Request) -> None:
    """Raise LaunchError unless the device has the kernel's instructions, shared memory and resident blocks."""
    device, summary = request.device, request.specialisation.summary
    for need in summary.needs:
        if device.compute_capability < need.capability:
            present, required = (".".join(map(str, c)) for c in (device.compute_capability, need.capability))
            raise LaunchError(
                f"{need.place}: {need.word} needs compute capability {required}, {device.name} has {present}: "
                "give a newer device"
            )
    assert request.dynamic_arrays is not None  # a LaunchError if it does not fit
    needed = request.dynamic_shared + summary.shared
    _check_cooperative(kernel, request, needed)
    if needed > device.shared_per_block_optin:
        raise LaunchError(
            f"{kernel.__name__} needs {counted(needed)} bytes of shared memory a block: the {device.name} has "
            f"{device.shared_per_block_optin:,}"
        )


def _check_cooperative(kernel: AnyKernel, request: Request, shared: int) -> None:
    """Raise LaunchError unless all blocks of a cooperative launch are resident on the device at once."""
    device = request.device
    if not request.cooperative:
        if request.specialisation.summary.cooperative:
            raise LaunchError(f"{kernel.__name__} has st.grid_sync(): launch it with cooperative=True")
        return
    if device.compute_capability < (6, 0):
        raise LaunchError(f"a cooperative launch needs compute capability 6.0: give a newer device than {device.name}")
    blocks, threads = int(np.prod(request.grid)), int(np.prod(request.block))
    from ..machine.occupancy import occupancy  # late: few launches are cooperative

    most = occupancy(device, threads, 0, shared)
    if blocks > most.active_blocks * device.sms:
        raise LaunchError(
            f"{kernel.__name__}: a cooperative launch of {blocks} blocks, but {device.name} holds "
            f"{most.active_blocks * device.sms} at once: {most.active_blocks} on each of {device.sms} SMs, limited by "
            f"{most.limiter} (registers are known to nvcc alone); give fewer blocks more to do"
        )


def applied_checks(kernel: AnyKernel, checks: frozenset[str]) -> frozenset[str]:
    """Return the checks with a meaning for the language of a kernel."""
    return checks - kernel.unchecked if checks and isinstance(kernel, LaunchableKernel) else checks


def _checks(check: str | Iterable[str]) -> frozenset[str]:
    """Return the named checks."""
    if not isinstance(check, str | Iterable):
        raise LaunchError(f'check is a text such as "all", or several, not {shown(check)}')
    words = [check] if isinstance(check, str) else list(check)
    if wrong := [word for word in words if not isinstance(word, str)]:
        raise LaunchError(f"check is made of texts, not of {shown(wrong[0])}")
    if not any(words):
        return frozenset()
    from ..sanitizer import checkers  # late: only for checked launches

    return checkers.parse(words)


# ------------------------------------------------------------------ arguments
def find_device(device: Device | str) -> Device:
    """Return a device by itself, by its name or by its TOML file."""
    if isinstance(device, str):
        return devices.find(device)
    if not isinstance(device, Device):
        raise LaunchError(f"device is one of st.devices, its name or a TOML file, not {shown(device)}")
    return device


def _dim3(value: Any, what: str, most: Dim3, device: Device) -> Dim3:
    """Return one to three positive numbers within the device's limit along each axis."""
    value = as_number(value)
    single = isinstance(value, int | np.integer)
    if not single and not isinstance(value, tuple | list):
        raise LaunchError(f"{what} is one to three positive integers, not {shown(value)}")
    sizes = (value,) if single else tuple(value)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"{what} is one to three positive integers, not {shown(value)}")
    names = (what,) if single else (f"{what}[0]", f"{what}[1]", f"{what}[2]")
    numbers = [whole(n, size, 1, m, f"the {device.name}") for n, size, m in zip(names, sizes, most, strict=False)]
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def named_arguments(kernel: AnyKernel, args: Any) -> tuple[AnyKernel, Mapping[str, Any]]:
    """Return the kernel bound to the arguments of a launch, and these by name, arrays of other libraries as NumPy arrays in the
    same memory. A tuple or a list has the order of the parameters. Raises LaunchError."""
    kernel, args = bound(kernel, args)
    if isinstance(args, tuple | list):
        names = list(signature_of(kernel).parameters)
        if len(args) > len(names):
            raise LaunchError(f"{kernel.__name__} takes {', '.join(names) or 'nothing'}: args are {len(args)}")
        if missing := [name for name in names[len(args) :] if name not in kernel.defaults]:
            raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}: args are {len(args)}")
        args = dict(zip(names, args, strict=False))
    if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
        raise LaunchError(f"args is a mapping of parameters' names to values, or a tuple of these, not {shown(args)}")
    parameters = signature_of(kernel).parameters
    return kernel, {name: argument_of(name, parameters.get(name), value) for name, value in args.items()}


def _same_names(kernel: AnyKernel, signature: Signature, args: Mapping[str, Any]) -> None:
    missing = [name for name in signature.parameters if name not in args]
    extra = [name for name in args if name not in signature.parameters]
    if missing:
        beyond = f", and has no parameter {', '.join(map(str, extra))}" if extra else ""
        raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}{beyond}")
    if extra:
        raise LaunchError(
            f"{kernel.__name__} has no parameter {', '.join(extra)}; it has {', '.join(signature.parameters)}"
        )


def _real(kernel: AnyKernel, signature: Signature, args: Mapping[str, Any], types: Any) -> Scalar | None:
    """Return the type of Real: stated, or the type of the arrays for Global[Real]."""
    if types is not None and not (isinstance(types, Mapping) and set(types) <= {"Real"}):
        raise LaunchError(f'types is {{"Real": "f32"}} or {{"Real": "f64"}}, not {shown(types)}')
    chosen = None
    if types:
        real_name = getattr(types["Real"], "name", types["Real"])
        chosen = SCALARS.get(real_name) if isinstance(real_name, str) else None
        if chosen not in FLOATS:
            raise LaunchError(f"Real is f32 or f64, not {real_name if chosen else shown(real_name)}")
    for name, parameter in signature.parameters.items():
        if not (parameter.real and isinstance(parameter.type, Array)):
            continue
        argument = args[name]
        array = argument if isinstance(argument, DeviceArray | NewArray) else checked_array(name, argument)
        type = named(array.type) if isinstance(array, NewArray) else from_dtype(array.dtype)
        if type not in FLOATS:
            raise LaunchError(f"{kernel.__name__}: {name} is Global[Real], f32 or f64, not {type}")
        if chosen is not None and type is not chosen:
            raise LaunchError(f"{kernel.__name__}: Real is {chosen}, but {name} is {type}")
        chosen = type
    return chosen


def _any_array(name: str, argument: Any) -> Buffer:
    """Return an array argument of any element type, structs included."""
    structs = isinstance(argument, np.ndarray) and argument.dtype.names is not None and argument.ndim
    return argument if structs else checked_array(name, argument)


def _array(name: str, element: Scalar | Vector, argument: Any) -> Buffer:
    if isinstance(argument, NewArray):
        if named(argument.type) != element:
            raise LaunchError(
                f"{name} is Global[{element}], not {named(argument.type)}; give st.{argument.call}, st.{element})"
            )
        array = argument.template()
    else:
        array = argument.host if isinstance(argument, DeviceArray) else checked_array(name, argument)
    dtype = COMPLEX[element] if element in COMPLEX else split(element)[0].dtype
    if array.dtype != dtype:
        raise LaunchError(
            f"{name} is Global[{element}], the array given is {array.dtype}; convert it: .astype(np.{dtype})"
        )
    return real_view(array) if element in COMPLEX else array


def _structs(name: str, type: RecordArrayParameter, argument: Any) -> Buffer:
    """Return an array of structs as a NumPy array."""
    if isinstance(argument, DeviceArray):
        raise LaunchError(f"{name} is an array of {type}: a DeviceArray has elements of one type")
    if isinstance(argument, NewArray):
        if not is_struct(argument.type):
            raise LaunchError(f"{name} is an array of {type}, not {argument.type}")
        return np.zeros(argument.shape, _dtype(type.components))
    if not isinstance(argument, np.ndarray):
        raise LaunchError(f"{name} is a NumPy array of {type}, not {shown(argument)}")
    if argument.dtype.names is None:
        raise LaunchError(f"{name} is an array of {type}, the array given is {argument.dtype}")
    return argument


def _dtype(components: Sequence[tuple[str, tuple[str, ...], Any]]) -> np.dtype[Any]:
    """Return the aligned NumPy type of a struct with these components."""
    fields: list[tuple[str, Any]] = []
    for key, of_key in groupby(components, lambda component: component[1][0]):
        inner = [(own, path[1:], kind) for own, path, kind in of_key]
        fields.append((key, _dtype(inner) if inner[0][1] else inner[0][2].dtype))
    return np.dtype(fields, align=True)


def record_numbers(name: str, type: RecordParameter, argument: Any) -> dict[str, np.generic]:
    """Return the numbers of a tuple or a struct by the program's own parameters."""
    numbers = {}
    for own, path, kind in type.components:
        value = argument
        for key in path:
            try:
                value = value[int(key)] if key.isdigit() else getattr(value, key)
            except (AttributeError, TypeError, LookupError):
                raise LaunchError(f"{name} is {type}, not {argument!r}") from None
        numbers[own] = checked_scalar(".".join((name, *path)), kind, value)
    return numbers


MAX_CONST_DEPTH, MAX_CONST_NUMBERS = 16, 1 << 16
"""Maximum nesting of the tuples of a Const value, and maximum numbers in it."""


def _constant_table(name: str, type: Array, argument: Any) -> tuple[Any, ...]:
    """Return the values of a table in constant memory."""
    element = type.element
    if not isinstance(element, Scalar):
        raise LaunchError(f"{name} is Constant[{element}]: a table in constant memory holds numbers of a scalar type")
    if (
        not isinstance(argument, np.ndarray)
        or argument.ndim != 1
        or argument.dtype != element.dtype
        or not argument.size
    ):
        expected = f"a NumPy array of one dimension and of {element.dtype}, with an element or more"
        raise LaunchError(f"{name} is Constant[{element}]: give {expected}, not {shown(argument)}")
    if excess := over_capacity("constant", argument.nbytes):
        raise LaunchError(f"{name} has {': '.join(excess)}")
    return tuple(argument.tolist())


def _const(name: str, argument: Any) -> Any:
    """Return a Const value: an int, float, bool or text, or a tuple of them."""

    def count(value: Any, depth: int) -> int:
        if isinstance(value, Enum):
            return count(value.value, depth)
        if is_record(value):  # its attributes are read by name
            return 1
        if isinstance(value, tuple):
            if depth == MAX_CONST_DEPTH:
                raise LaunchError(f"{name} is Const: its tuples nest more than {MAX_CONST_DEPTH} deep")
            return 1 + sum(count(item, depth + 1) for item in value)
        number = value.item() if isinstance(value, np.bool_ | np.integer | np.floating | np.complexfloating) else value
        if isinstance(number, list | np.ndarray):
            raise LaunchError(f"{name} is Const: give a tuple, not {shown(value)}")
        if not isinstance(number, bool | int | float | complex | str):
            raise LaunchError(f"{name} is Const, a number, a text or a tuple of them, not {shown(value)}")
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 64:
            raise LaunchError(f"{name} is Const: {shown(value)} does not fit 64 bits")
        return 1

    argument = as_number(argument)
    if count(argument, 0) > MAX_CONST_NUMBERS:
        raise LaunchError(f"{name} is Const: it has more than {MAX_CONST_NUMBERS:,} numbers; give it as an array")
    return argument
