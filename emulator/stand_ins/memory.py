"""Device memory of a driver: allocations by address, and launches whose arguments are addresses and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cuda_cpp.declaration import Alias, HostParameter
from ..cuda_cpp.kernel import CudaKernel, CudaSource
from ..errors import LaunchError
from ..language.types import Scalar
from ..llvmir.debug import PointerTo, Record, source_scalars, source_size
from ..runtime.arrays import DeviceArray
from ..runtime.launching import launch
from ..runtime.result import Result

Bytes = npt.NDArray[np.uint8]
ALIGNMENT = 256
FIRST_ADDRESS = 0x7F00_0000_0000


@dataclass
class DeviceMemory:
    """Allocations by their first address. The bytes between them belong to no allocation."""

    blocks: dict[int, Bytes] = field(default_factory=dict)
    next_address: int = FIRST_ADDRESS

    def allocate(self, size: int) -> int:
        """Return the address of new memory, filled with 0xCD: a driver leaves its contents undefined."""
        address = self.next_address
        memory = np.empty(size + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        self.blocks[address] = memory[start : start + size]
        self.blocks[address][:] = 0xCD
        self.next_address += (size // ALIGNMENT + 2) * ALIGNMENT
        return address

    def free(self, address: int) -> None:
        if self.blocks.pop(address, None) is None:
            raise LaunchError(f"no allocation begins at {address:#x}: it was freed, or never allocated")

    def find(self, address: int) -> tuple[int, int]:
        """Return the allocation that contains an address, and the offset in it. Raises LaunchError."""
        for start, block in self.blocks.items():
            if start <= address < start + max(len(block), 1):
                return start, address - start
        raise LaunchError(f"no allocation contains the address {address:#x}")

    def section(self, address: int, size: int) -> Bytes:
        """Return the bytes of a copy. Raises LaunchError if they are not in one allocation."""
        start, offset = self.find(address)
        block = self.blocks[start]
        if offset + size > len(block):
            raise LaunchError(
                f"a copy of {size} bytes at {address:#x}: the allocation has {len(block) - offset} from there"
            )
        return block[offset : offset + size]


MEMORY = DeviceMemory()


class Variables:
    """The addresses of the variables outside of functions of a text."""

    def __init__(self, source: CudaSource) -> None:
        self.source = source
        self.addresses: dict[str, int] = {}

    def address(self, name: str) -> tuple[int, int]:
        """Return address and size of a `__constant__` or `__device__` variable. Raises LaunchError."""
        values = self.source.initial(name)
        if name not in self.addresses:
            self.addresses[name] = MEMORY.allocate(values.nbytes)
            MEMORY.blocks[self.addresses[name]][:] = values.view(np.uint8)
        return self.addresses[name], values.nbytes

    def write(self) -> None:
        """Set the variables to the contents of their memory."""
        for name, address in self.addresses.items():
            values = MEMORY.blocks[address].view(self.source.initial(name).dtype)
            self.source.variables[name] = values.copy()

    def read(self) -> None:
        """Copy the variables that a launch may have changed to their memory."""
        for name, address in self.addresses.items():
            values = self.source.variables.get(name)
            if isinstance(values, DeviceArray):
                MEMORY.blocks[address][:] = values.numpy().reshape(-1).view(np.uint8)


def launch_by_address(
    kernel: CudaKernel, grid: Any, block: Any, args: Sequence[Any], variables: Variables, shared: int = 0
) -> Result:
    """Launch a kernel with the arguments of a driver: addresses, NumPy scalars, structs. Raises LaunchError and FaultError."""
    if len(args) != len(kernel.parameters):
        raise LaunchError(f"{kernel.__name__} takes {len(kernel.parameters)} arguments, {len(args)} are given")
    values: dict[str, Any] = {}
    aliases: dict[str, Alias] = {}
    owners: dict[int, str] = {}
    for parameter, value in zip(kernel.parameters, args, strict=True):
        name = parameter.name
        if not parameter.is_address:
            values[name] = _by_value(parameter, value)
            continue
        address = 0 if value is None else int(value)
        if not address:
            aliases[name] = Alias(None)
            continue
        start, offset = MEMORY.find(address)
        owner = owners.setdefault(start, name)
        if owner != name or offset:
            aliases[name] = Alias(owner, offset)
    bound = kernel.with_aliases(aliases)
    pointed = {parameter.name: parameter for parameter in kernel.parameters}
    for start, name in owners.items():
        if name in bound.signature().parameters:
            values[name] = _elements(MEMORY.blocks[start], pointed[name])
    variables.write()
    result = launch(bound, grid=grid, block=block, args=values, shared=shared)
    for start, name in owners.items():
        if name in result.buffers:
            changed = np.ascontiguousarray(result.buffers[name]).reshape(-1).view(np.uint8)
            MEMORY.blocks[start][: len(changed)] = changed
    variables.read()
    return result


def _elements(block: Bytes, parameter: HostParameter) -> npt.NDArray[Any]:
    """Return an allocation as an array of the elements that a parameter points to."""
    to = parameter.type.to if isinstance(parameter.type, PointerTo) else parameter.type
    if to is None:
        return block
    element = min(source_scalars(to), key=str)
    whole = len(block) // source_size(to) * source_size(to)
    return block[:whole].view(element.dtype)


def _by_value(parameter: HostParameter, value: Any) -> Any:
    """Return an argument that a driver copies byte by byte. Raises LaunchError for another type than the parameter's."""
    name, type = parameter.name, parameter.type
    if isinstance(type, Record):
        return value
    if isinstance(type, Scalar):
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.reshape(())[()]
        if isinstance(value, np.integer) and type.is_integer and value.dtype.itemsize == type.size:
            value = value.view(type.dtype)  # a driver copies the bytes, for either sign
        if isinstance(value, np.generic) and value.dtype != type.dtype:
            raise LaunchError(
                f"{name} is {type}, the launch gives numpy.{value.dtype}: a driver copies its bytes; give np.{type.dtype}({name})"
            )
        return value
    return tuple(np.asarray(value).reshape(-1).tolist()) if not isinstance(value, tuple) else value
