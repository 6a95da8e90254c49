"""From what a caller gives a launch to a checked request: types, sizes and limits are looked at here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import combinations, groupby
from typing import Any

import numpy as np

from ..checked import counted, shown, truth, whole, within_stack
from ..errors import LaunchError
from ..frontend.constants import is_record, is_struct
from ..frontend.signature import Record, RecordArray, Signature
from ..ir.limits import too_much
from ..language.functions import Kernel
from ..language.types import COMPLEX, FLOATS, SCALARS, Array, Scalar, Vector, from_dtype
from ..machine import device as devices
from ..machine.device import Device
from .arrays import Buffer, DeviceArray, NewArray, array_given, is_zero, named, split
from .engine import LONGEST, Dim3, Request
from .forms import Form, field, parts_of
from .scalars import scalar_given
from .specialisation import signature_of, specialisation_of


@within_stack()
def prepare_request(
    kernel: Kernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any] | Sequence[Any],
    device: Device | str = devices.H200,
    shared: int = 0,
    counters: bool = True,
    detail: bool = False,
    decisions: bool = False,
    step_limit: int | None = None,
    types: Mapping[str, str] | None = None,
    check: str | Iterable[str] = (),
    schedule: int | None = None,
    cooperative: bool = False,
) -> Request:
    """The checked request `launch` gives to an engine. Parameters and errors as there."""
    device = device_given(device)
    grid3 = _dim3(grid, "grid", device.grid_extents, device)
    block3 = _dim3(block, "block", device.block_extents, device)
    threads = math.prod(block3)
    if threads > device.threads_per_block:
        raise LaunchError(f"block is {threads:,} threads: the {device.name} takes at most {device.threads_per_block:,}")
    shared = whole("shared", shared, 0, device.shared_per_block_optin, f"a block of the {device.name}")
    step_limit = None if step_limit is None else whole("step_limit", step_limit, 1, LONGEST)
    schedule = None if schedule is None else whole("schedule", schedule, 0, (1 << 63) - 1)
    checks = _checks(check)
    if truth("detail", detail) and not truth("counters", counters):
        raise LaunchError("detail=True is about what is counted: leave counters=True")
    if truth("decisions", decisions) and not counters:
        raise LaunchError("decisions=True is about what is counted: leave counters=True")
    found = signature_of(kernel)
    args = {**kernel.defaults, **named_arguments(kernel, args)}
    _same_names(kernel, found, args)
    consts = {name: _const(name, args[name]) for name, parameter in found.parameters.items() if parameter.type is None}
    real = _real(kernel, found, args, types)
    consts |= {
        name: _constant_table(name, parameter.type, args[name])
        for name, parameter in found.parameters.items()
        if isinstance(parameter.type, Array) and parameter.type.space == "constant"
    }
    arrays: dict[str, Buffer] = {}
    filled: dict[str, Buffer] = {}
    forms: dict[str, Form] = {}
    numbers: dict[str, np.generic] = {}
    structs: dict[str, Buffer] = {}
    owners: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, parameter in found.parameters.items():
        if name in consts:
            continue
        if isinstance(parameter.type, Array):
            element = real if parameter.real and real is not None else parameter.type.element
            array = _array(name, element, args[name])
            forms[name] = form = Form.of(name, array, element)
            arrays[name] = form.flat(array)
            if isinstance(args[name], NewArray | DeviceArray) and args[name].everywhere is not None:
                filled[name] = args[name].everywhere
                if not is_zero(filled[name]):
                    arrays[name] = np.broadcast_to(filled[name], arrays[name].shape)
            numbers |= form.numbers(name)
        elif isinstance(parameter.type, RecordArray):
            structs[name] = _structs(name, parameter.type, args[name])
            for own, path, kind in parameter.type.components:
                assert isinstance(kind, Scalar)
                forms[own], arrays[own] = field(name, structs[name], path, kind)
                numbers |= forms[own].numbers(own)
                owners[own] = (name, path)
                if isinstance(args[name], NewArray):
                    filled[own] = np.zeros((), kind.dtype)
        elif isinstance(parameter.type, Record):
            numbers |= _parts(name, parameter.type, args[name])
    specialisation = specialisation_of(kernel, consts, real, {name: form.layout for name, form in forms.items()})
    summary = specialisation.summary
    arguments: dict[str, Buffer | np.generic] = {}
    for name, type in summary.parameters.items():
        if isinstance(type, Array):
            arguments[name] = arrays[name]
        else:
            arguments[name] = numbers[name] if name in numbers else scalar_given(name, type, args[name])
    device_arrays = {name: given for name, given in args.items() if isinstance(given, DeviceArray)}
    kept = {name: given.written for name, given in device_arrays.items() if given.written is not None}
    if len({id(given) for given in device_arrays.values()}) < len(device_arrays):
        raise LaunchError(f"{kernel.__name__}: one DeviceArray is given for two parameters")
    _apart(args, [owners[name][0] if name in owners else name for name in summary.changed])
    new = {name: given for name, given in args.items() if isinstance(given, NewArray) and name not in structs}
    new |= {own: args[name] for own, (name, _) in owners.items() if isinstance(args[name], NewArray)}
    request = Request(
        specialisation=specialisation,
        grid=grid3,
        block=block3,
        arguments=arguments,
        dynamic_shared=shared,
        device=device,
        counters=truth("counters", counters),
        detail=detail,
        decisions=decisions,
        step_limit=step_limit,
        forms=forms,
        structs=structs,
        owners=owners,
        device_arrays=device_arrays,
        filled=filled,
        unwritten=frozenset(name for name, given in new.items() if not given.readable) | kept.keys(),
        written={name: mask.reshape(-1) for name, mask in kept.items() if any(mask.strides)},
        checks=checks,
        schedule=schedule,
        cooperative=truth("cooperative", cooperative),
    )
    for need in summary.needs:
        if device.compute_capability < need.capability:
            have, wanted = (".".join(map(str, c)) for c in (device.compute_capability, need.capability))
            raise LaunchError(
                f"{need.place}: {need.word} needs compute capability {wanted}, {device.name} has {have}: give a newer device"
            )
    assert request.carved is not None  # a LaunchError where it does not fit
    needed = shared + summary.shared
    _check_cooperative(kernel, request, needed)
    if needed > device.shared_per_block_optin:
        raise LaunchError(
            f"{kernel.__name__} needs {counted(needed)} bytes of shared memory a block: the {device.name} has "
            f"{device.shared_per_block_optin:,}"
        )
    return request


def _check_cooperative(kernel: Kernel, request: Request, shared: int) -> None:
    """Blocks that wait for each other must all be resident on the device."""
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


def _checks(given: str | Iterable[str]) -> frozenset[str]:
    """The checks asked for by name."""
    if not isinstance(given, str | Iterable):
        raise LaunchError(f'check is a text such as "all", or several, not {shown(given)}')
    words = [given] if isinstance(given, str) else list(given)
    if wrong := [word for word in words if not isinstance(word, str)]:
        raise LaunchError(f"check is made of texts, not of {shown(wrong[0])}")
    if not any(words):
        return frozenset()
    from ..sanitizer import checkers  # late: a launch that is not checked does without

    return checkers.parse(words)


# ------------------------------------------------------------------ arguments
def device_given(given: Device | str) -> Device:
    """The device itself, or by its name or its TOML file."""
    if isinstance(given, str):
        return devices.find(given)
    if not isinstance(given, Device):
        raise LaunchError(f"device is one of st.devices, its name or a TOML file, not {shown(given)}")
    return given


def _dim3(given: Any, what: str, most: Dim3, device: Device) -> Dim3:
    """One to three positive numbers, within what the device takes along each axis."""
    single = isinstance(given, int | np.integer)
    if not single and not isinstance(given, tuple | list):
        raise LaunchError(f"{what} is one to three positive integers, not {shown(given)}")
    sizes = (given,) if single else tuple(given)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"{what} is one to three positive integers, not {shown(given)}")
    names = (what,) if single else (f"{what}[0]", f"{what}[1]", f"{what}[2]")
    numbers = [whole(n, size, 1, m, f"the {device.name}") for n, size, m in zip(names, sizes, most, strict=False)]
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def named_arguments(kernel: Kernel, args: Any) -> Mapping[str, Any]:
    """`args` of a launch by name: a mapping is that, a tuple or a list holds them in the order of the parameters. Raises
    LaunchError."""
    if isinstance(args, tuple | list):
        names = list(signature_of(kernel).parameters)
        if len(args) > len(names):
            raise LaunchError(f"{kernel.__name__} takes {', '.join(names) or 'nothing'}: args are {len(args)}")
        if missing := [name for name in names[len(args) :] if name not in kernel.defaults]:
            raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}: args are {len(args)}")
        return dict(zip(names, args, strict=False))
    if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
        raise LaunchError(f"args is a mapping of parameters' names to values, or a tuple of these, not {shown(args)}")
    return args


def _same_names(kernel: Kernel, found: Signature, args: Mapping[str, Any]) -> None:
    missing = [name for name in found.parameters if name not in args]
    extra = [name for name in args if name not in found.parameters]
    if missing:
        beyond = f", and has no parameter {', '.join(map(str, extra))}" if extra else ""
        raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}{beyond}")
    if extra:
        raise LaunchError(
            f"{kernel.__name__} has no parameter {', '.join(extra)}; it has {', '.join(found.parameters)}"
        )


def _real(kernel: Kernel, found: Signature, args: Mapping[str, Any], types: Any) -> Scalar | None:
    """The type Real stands for: as told, or as the arrays given for Global[Real] have it."""
    if types is not None and not (isinstance(types, Mapping) and set(types) <= {"Real"}):
        raise LaunchError(f'types is {{"Real": "f32"}} or {{"Real": "f64"}}, not {shown(types)}')
    chosen = None
    if types:
        told = getattr(types["Real"], "name", types["Real"])
        chosen = SCALARS.get(told) if isinstance(told, str) else None
        if chosen not in FLOATS:
            raise LaunchError(f"Real is f32 or f64, not {told if chosen else shown(told)}")
    for name, parameter in found.parameters.items():
        if not (parameter.real and isinstance(parameter.type, Array)):
            continue
        given = args[name]
        array = given if isinstance(given, DeviceArray | NewArray) else array_given(name, given)
        type = named(array.type) if isinstance(array, NewArray) else from_dtype(array.dtype)
        if type not in FLOATS:
            raise LaunchError(f"{kernel.__name__}: {name} is Global[Real], f32 or f64, not {type}")
        if chosen is not None and type is not chosen:
            raise LaunchError(f"{kernel.__name__}: Real is {chosen}, but {name} is {type}")
        chosen = type
    return chosen


def _array(name: str, element: Scalar | Vector, given: Any) -> Buffer:
    if isinstance(given, NewArray):
        if named(given.type) != element:
            raise LaunchError(
                f"{name} is Global[{element}], not {named(given.type)}; give st.{given.call}, st.{element})"
            )
        array = given.form()
    else:
        array = given.host if isinstance(given, DeviceArray) else array_given(name, given)
    dtype = COMPLEX[element] if element in COMPLEX else split(element)[0].dtype
    if array.dtype != dtype:
        raise LaunchError(
            f"{name} is Global[{element}], the array given is {array.dtype}; convert it: .astype(np.{dtype})"
        )
    return parts_of(array) if element in COMPLEX else array


def _structs(name: str, type: RecordArray, given: Any) -> Buffer:
    """An array of structs as NumPy has it."""
    if isinstance(given, DeviceArray):
        raise LaunchError(f"{name} is an array of {type}: a DeviceArray has elements of one type")
    if isinstance(given, NewArray):
        if not is_struct(given.type):
            raise LaunchError(f"{name} is an array of {type}, not {given.type}")
        return np.zeros(given.shape, _dtype(type.components))
    if not isinstance(given, np.ndarray):
        raise LaunchError(f"{name} is a NumPy array of {type}, not {shown(given)}")
    if given.dtype.names is None:
        raise LaunchError(f"{name} is an array of {type}, the array given is {given.dtype}")
    return given


def _dtype(parts: Sequence[tuple[str, tuple[str, ...], Any]]) -> np.dtype[Any]:
    """The aligned NumPy type of a struct with these parts."""
    fields: list[tuple[str, Any]] = []
    for key, of_key in groupby(parts, lambda part: part[1][0]):
        inner = [(own, path[1:], kind) for own, path, kind in of_key]
        fields.append((key, _dtype(inner) if inner[0][1] else inner[0][2].dtype))
    return np.dtype(fields, align=True)


def _parts(name: str, type: Record, given: Any) -> dict[str, np.generic]:
    """The numbers of a tuple or a struct, by the program's own parameters."""
    found = {}
    for part, path, kind in type.components:
        value = given
        for key in path:
            try:
                value = value[int(key)] if key.isdigit() else getattr(value, key)
            except (AttributeError, TypeError, LookupError):
                raise LaunchError(f"{name} is {type}, not {given!r}") from None
        found[part] = scalar_given(".".join((name, *path)), kind, value)
    return found


DEEPEST_CONST, LONGEST_CONST = 16, 1 << 16
"""How deep the tuples of a Const value may nest, and how many numbers may be in it."""


def _constant_table(name: str, type: Array, given: Any) -> tuple[Any, ...]:
    """The values of a table in constant memory."""
    element = type.element
    if not isinstance(element, Scalar):
        raise LaunchError(f"{name} is Constant[{element}]: a table in constant memory holds numbers of a scalar type")
    if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype != element.dtype or not given.size:
        wanted = f"a NumPy array of one dimension and of {element.dtype}, with an element or more"
        raise LaunchError(f"{name} is Constant[{element}]: give {wanted}, not {shown(given)}")
    if no_room := too_much("constant", given.nbytes):
        raise LaunchError(f"{name} has {': '.join(no_room)}")
    return tuple(given.tolist())


def _const(name: str, given: Any) -> Any:
    """A Const value: an int, float, bool or text, or a tuple of them."""

    def count(value: Any, depth: int) -> int:
        if isinstance(value, Enum):
            return count(value.value, depth)
        if is_record(value):  # its attributes are read by name
            return 1
        if isinstance(value, tuple):
            if depth == DEEPEST_CONST:
                raise LaunchError(f"{name} is Const: its tuples nest more than {DEEPEST_CONST} deep")
            return 1 + sum(count(item, depth + 1) for item in value)
        number = value.item() if isinstance(value, np.bool_ | np.integer | np.floating | np.complexfloating) else value
        if isinstance(number, list | np.ndarray):
            raise LaunchError(f"{name} is Const: give a tuple, not {shown(value)}")
        if not isinstance(number, bool | int | float | complex | str):
            raise LaunchError(f"{name} is Const, a number, a text or a tuple of them, not {shown(value)}")
        if isinstance(number, int) and not -(1 << 63) <= number < 1 << 64:
            raise LaunchError(f"{name} is Const: {shown(value)} does not fit 64 bits")
        return 1

    if count(given, 0) > LONGEST_CONST:
        raise LaunchError(f"{name} is Const: it has more than {LONGEST_CONST:,} numbers; give it as an array")
    return given


def _apart(args: Mapping[str, Any], changed: Iterable[str]) -> None:
    """No array that the kernel writes shares memory with another one given: a launch works on copies, so that the other
    would not see what is written."""
    arrays = {name: given for name, given in args.items() if isinstance(given, np.ndarray)}
    written = set(changed)
    for (one, a), (other, b) in combinations(arrays.items(), 2):
        if (one in written or other in written) and _share(a, b):
            who = one if one in written else other
            raise LaunchError(
                f"{one} and {other} share memory, and the kernel writes {who}: give one of them as a copy"
            )


def _share(a: Buffer, b: Buffer) -> bool:
    most_work: Any = 1 << 20  # a way of asking that NumPy documents and its types do not know
    try:
        return np.shares_memory(a, b, max_work=most_work)
    except np.exceptions.TooHardError:
        return True
