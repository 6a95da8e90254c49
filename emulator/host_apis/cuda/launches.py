"""Launches of a program's kernels over the memory of its runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...cuda_cpp.addresses import Bytes, bound_to_addresses, elements, value_of
from ...cuda_cpp.kernel import CudaKernel
from ...errors import LaunchError
from ...llvmir.debug import source_size
from ...machine.device import Device
from ...runtime.launching import launch_in_place
from ...runtime.observing import PendingLaunch, overrides
from ...runtime.request import LaunchOptions, validated_request

RangeOf = Callable[[int], tuple[int, int] | None]
"""Returns start and size of the memory of the device that contains an address; None outside of it."""


def launch(
    kernel: CudaKernel,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    arguments: int,
    range_of: RangeOf,
    device: Device,
) -> None:
    """Launch a kernel. arguments: address of the pointers to its arguments. Raises CompileError and LaunchError."""
    values: dict[str, Any] = {}
    addresses: dict[str, int] = {}
    for parameter, pointer in zip(
        kernel.parameters, (ctypes.c_void_p * len(kernel.parameters)).from_address(arguments), strict=True
    ):
        data = ctypes.string_at(pointer, source_size(parameter.type))
        value = value_of(parameter.type, data)
        (addresses if parameter.is_address else values)[parameter.name] = value

    def find(address: int) -> tuple[int, int]:
        place = range_of(address)
        if place is None:
            name = next(name for name, own in addresses.items() if own == address)
            raise LaunchError(f"{kernel.__name__}: {name} is {address:#x}, no memory of the device")
        return place[0], address - place[0]

    bound, owners = bound_to_addresses(kernel, addresses, find)
    for parameter in kernel.parameters:
        if parameter.name in owners:
            start = owners[parameter.name]
            size = (range_of(start) or (0, 0))[1]
            values[parameter.name] = elements(_memory(start, size), parameter)
    engine, device = overrides("jit", device)
    options = LaunchOptions(grid, block, values, device, shared, counters=False, in_place=True)
    bound, args = bound.bind(values)
    request = replace(validated_request(bound, replace(options, args=args)), show_prints=True, plain_prints=True)
    launch_in_place(PendingLaunch(bound, args, request, engine))


def _memory(start: int, size: int) -> Bytes:
    """Return memory at an address as an array."""
    return np.frombuffer((ctypes.c_char * size).from_address(start), np.uint8)
