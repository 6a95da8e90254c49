"""From what a caller gives a launch to a checked request: types, sizes and limits are looked at here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LaunchError
from ..frontend.signature import Signature
from ..language.functions import Kernel
from ..language.types import FLOATS, SCALARS, Array, Scalar, Vector, from_dtype
from ..machine import device as devices
from ..machine.device import Device
from .arrays import Buffer, DeviceArray, NewArray, named, split
from .engine import Dim3, Request
from .specialisation import signature_of, specialisation_of

STEP_LIMIT = 1_000_000
"""Iterations that one execution of a loop may take, unless told otherwise."""


def prepare_request(
    kernel: Kernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any],
    device: Device = devices.H200,
    shared: int = 0,
    counters: bool = True,
    step_limit: int = STEP_LIMIT,
    types: Mapping[str, str] | None = None,
    check: str | Iterable[str] = (),
    schedule: int | None = None,
) -> Request:
    """The checked request `launch` gives to an engine. Parameters and errors as there."""
    grid3, block3 = _dim3(grid, "grid"), _dim3(block, "block")
    threads = int(np.prod(block3))
    if threads > device.threads_per_block:
        raise LaunchError(f"a block of {threads} threads, but {device.name} allows {device.threads_per_block}")
    found = signature_of(kernel)
    _same_names(kernel, found, args)
    consts = {name: args[name] for name, parameter in found.parameters.items() if parameter.type is None}
    real = _real(kernel, found, args, types or {})
    specialisation = specialisation_of(kernel, consts, real)
    summary = specialisation.summary
    arguments: dict[str, Buffer | np.generic] = {}
    for name, type in summary.parameters.items():
        arguments[name] = _array(name, type, args[name]) if isinstance(type, Array) else _scalar(name, type, args[name])
    device_arrays = {name: given for name, given in args.items() if isinstance(given, DeviceArray)}
    if len({id(given) for given in device_arrays.values()}) < len(device_arrays):
        raise LaunchError(f"{kernel.__name__}: one DeviceArray is given for two parameters")
    new = {name: given for name, given in args.items() if isinstance(given, NewArray)}
    all_zero = {name for name, given in device_arrays.items() if given.all_zero}
    request = Request(
        specialisation=specialisation,
        grid=grid3,
        block=block3,
        arguments=arguments,
        dynamic_shared=shared,
        device=device,
        counters=counters,
        step_limit=step_limit,
        device_arrays=device_arrays,
        all_zero=frozenset(new) | all_zero,
        unwritten=frozenset(name for name, given in new.items() if not given.readable),
        checks=_checks(check),
        schedule=schedule,
    )
    needed = shared + summary.shared
    if needed > device.shared_per_block_optin:
        raise LaunchError(
            f"{kernel.__name__} needs {needed} bytes of shared memory a block, {device.name} has {device.shared_per_block_optin}"
        )
    return request


def _checks(given: str | Iterable[str]) -> frozenset[str]:
    """The checks asked for by name."""
    if not given:
        return frozenset()
    from ..sanitizer import checkers  # late: a launch that is not checked does without

    return checkers.parse(given)


# ------------------------------------------------------------------ arguments
def _dim3(given: int | tuple[int, ...], what: str) -> Dim3:
    sizes = (given,) if isinstance(given, int | np.integer) else tuple(given)
    if not 1 <= len(sizes) <= 3 or any(not isinstance(n, int | np.integer) or n < 1 for n in sizes):
        raise LaunchError(f"{what} is one to three positive integers, not {given!r}")
    x, y, z = (*(int(n) for n in sizes), 1, 1)[:3]
    return x, y, z


def _same_names(kernel: Kernel, found: Signature, args: Mapping[str, Any]) -> None:
    missing = [name for name in found.parameters if name not in args]
    extra = [name for name in args if name not in found.parameters]
    if missing:
        raise LaunchError(f"{kernel.__name__} needs {', '.join(missing)}")
    if extra:
        raise LaunchError(
            f"{kernel.__name__} has no parameter {', '.join(extra)}; it has {', '.join(found.parameters)}"
        )


def _real(kernel: Kernel, found: Signature, args: Mapping[str, Any], types: Mapping[str, str]) -> Scalar | None:
    """The type Real stands for: as told, or as the arrays given for Global[Real] have it."""
    if unknown := [name for name in types if name != "Real"]:
        raise LaunchError(f"types decides Real only, not {', '.join(unknown)}")
    chosen = SCALARS.get(types["Real"]) if "Real" in types else None
    if "Real" in types and chosen not in FLOATS:
        raise LaunchError(f"Real is f32 or f64, not {types['Real']}")
    for name, parameter in found.parameters.items():
        if not (parameter.real and isinstance(parameter.type, Array)):
            continue
        given = args[name]
        dtype = given.dtype if isinstance(given, DeviceArray) else np.asarray(given).dtype
        type = named(given.type) if isinstance(given, NewArray) else from_dtype(dtype)
        if type not in FLOATS:
            raise LaunchError(f"{kernel.__name__}: {name} is Global[Real], f32 or f64, not {type or dtype}")
        if chosen is not None and type is not chosen:
            raise LaunchError(f"{kernel.__name__}: Real is {chosen}, but {name} is {type}")
        chosen = type
    return chosen


def _array(name: str, type: Array, given: Any) -> Buffer:
    element = type.element
    assert isinstance(element, Scalar | Vector)
    scalar, lanes = split(element)
    if isinstance(given, NewArray):
        if named(given.type) != element:
            raise LaunchError(f"{name} is Global[{element}], not {named(given.type)}")
        return given.made()
    array: npt.NDArray[Any] = given.host if isinstance(given, DeviceArray) else np.asarray(given)
    if array.dtype != scalar.dtype:
        raise LaunchError(
            f"{name} is Global[{element}], the array given is {array.dtype}; convert it: .astype(np.{scalar.dtype})"
        )
    if lanes and (array.ndim != 2 or array.shape[1] != lanes):
        raise LaunchError(f"{name} is Global[{element}], its array has the shape (n, {lanes}), not {array.shape}")
    if not lanes and array.ndim != 1:
        raise LaunchError(
            f"{name} is one-dimensional in a kernel, its array has the shape {array.shape}; pass .ravel()"
        )
    return np.ascontiguousarray(array)


def _scalar(name: str, type: Scalar | Vector, given: Any) -> np.generic:
    if isinstance(type, Vector):
        raise LaunchError(f"{name} is {type}; a kernel's vectors come in arrays")
    if isinstance(given, np.ndarray) or not isinstance(given, bool | int | float | np.generic):
        raise LaunchError(f"{name} is {type}, a number is expected, not {given!r}")
    number = given.item() if isinstance(given, np.generic) else given
    if type.kind == "bool":
        fits = isinstance(number, bool)
    elif type.is_integer:
        low, high = type.range
        fits = isinstance(number, int) and not isinstance(number, bool) and low <= number <= high
    else:
        fits = not isinstance(number, bool)
    if not fits:
        raise LaunchError(f"{name} is {type}, {given!r} does not fit")
    return type.dtype.type(number)  # type: ignore[no-any-return]
