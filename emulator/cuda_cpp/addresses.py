"""Arguments of a launch as a driver takes them: addresses of allocations, and bytes of values."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.types import Scalar
from ..llvmir.debug import ArrayOf, PointerTo, Record, SourceType, source_scalars, source_size
from ..machine.device import H200, Device
from ..runtime.launching import pending_launch
from ..runtime.observing import overrides
from ..runtime.result import LaunchDetails
from ..runtime.running import launch_in_place
from ..runtime.written_bytes import WrittenBytes
from .declaration import Alias, HostParameter
from .kernel import CudaKernel

Bytes = npt.NDArray[np.uint8]


def bound_to_addresses(
    kernel: CudaKernel, addresses: Mapping[str, int], find: Callable[[int], tuple[int, int]]
) -> tuple[CudaKernel, dict[str, int]]:
    """Return the kernel for pointers into these allocations, and the start of the allocation of each parameter with memory of its own.

    addresses: by parameter, 0 for null. find: returns the start of the allocation that contains an address, and the offset in it.
    """
    aliases: dict[str, Alias] = {}
    owners: dict[int, str] = {}
    for name, address in addresses.items():
        if not address:
            aliases[name] = Alias(None)
            continue
        start, offset = find(address)
        owner = owners.setdefault(start, name)
        if owner != name or offset:
            aliases[name] = Alias(owner, offset)
    bound = kernel.with_aliases(aliases)
    parameters = bound.signature().parameters
    return bound, {name: start for start, name in owners.items() if name in parameters}


def memory_at(start: int, size: int) -> Bytes:
    """Return memory of this process as an array."""
    memory: Any = (ctypes.c_char * size).from_address(start)
    return np.frombuffer(memory, np.uint8)


def elements(block: Bytes, parameter: HostParameter) -> npt.NDArray[Any]:
    """Return an allocation as an array of the elements that a parameter points to."""
    to = parameter.type.to if isinstance(parameter.type, PointerTo) else parameter.type
    scalars = source_scalars(to)
    if not scalars:
        return block
    element = min(scalars, key=str)
    whole = len(block) // source_size(to) * source_size(to)
    return block[:whole].view(element.dtype)


def launch_in_memory(kernel: CudaKernel, written: WrittenBytes, device: Device = H200, **options: Any) -> LaunchDetails:
    """Launch a kernel whose arrays are allocations, which it modifies. written: their bytes that something has written. options: of
    `launch`. Raises CompileError and LaunchError."""
    engine, device = overrides("jit", device)
    call = pending_launch(kernel, engine=engine, device=device, counters=False, **options)
    changed = frozenset(call.request.specialisation.summary.changed)
    request = call.request.with_changes_in_place(changed, plain_prints=True)
    return written.run(request, lambda own: launch_in_place(replace(call, request=own)), call.stream)


def value_of(type: SourceType, data: bytes) -> Any:
    """Return a value that is passed by value: a number, items, or the fields of a struct by name."""
    match type:
        case Scalar():
            return np.frombuffer(data, type.dtype, 1)[0]
        case ArrayOf(element, count):
            size = source_size(element)
            return [value_of(element, data[item * size : (item + 1) * size]) for item in range(count or 0)]
        case Record(fields=fields):
            values: dict[str, Any] = {}
            for name, kind, offset in fields:
                value = value_of(kind, data[offset : offset + source_size(kind)])
                values |= {name: value} if name or not isinstance(kind, Record) else value
            return values
    return int.from_bytes(data, "little")
