"""Launches of a program's kernels over the memory of its runtime."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ...cuda_cpp.addresses import Bytes, bound_to_addresses, elements, launch_in_memory, memory_at, value_of
from ...cuda_cpp.declaration import HostParameter, is_tensor_map
from ...cuda_cpp.kernel import CudaKernel, pointers_of
from ...errors import LaunchError
from ...ir.names import Name
from ...language.types import U64, Array, Scalar
from ...llvmir.allocations import ARENA, MEMORY, TABLE
from ...llvmir.debug import PointerTo, source_size
from ...machine.device import Device
from ...runtime.arrays import MappedArray, split
from ...runtime.result import LaunchDetails
from ...runtime.streams import Stream
from ...runtime.textures import Surface, Texture
from ...runtime.written_bytes import WrittenBytes
from .arena import THE_ARENA
from .tensor_maps import decoded
from .unit import ProgramUnit


@dataclass(frozen=True)
class Places:
    """What arguments of kernels denote. range_of: returns start and size of the memory of the device that contains an address, None
    outside of it. whole: returns the size of memory from its start and the size of its elements, a multiple of the latter.
    objects: textures and surfaces by their number. written: the bytes that something has written."""

    range_of: Callable[[int], tuple[int, int] | None]
    whole: Callable[[int, int], int]
    objects: Mapping[int, Callable[[], Texture | Surface]]
    written: WrittenBytes


class ForeignMemory(Exception):
    """A pointer parameter outside of the memory of the device."""

    def __init__(self, parameter: str, address: int) -> None:
        super().__init__(parameter, address)
        self.parameter, self.address = parameter, address


@dataclass(frozen=True)
class Shape:
    """Grid, block, bytes of dynamic shared memory, whether blocks may wait for each other, the stream, and the blocks of a cluster."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    cooperative: bool
    stream: Stream | None
    cluster: tuple[int, ...] = (1, 1, 1)


def launch(kernel: CudaKernel, shape: Shape, arguments: int, places: Places, device: Device) -> LaunchDetails:
    """Launch a kernel. arguments: address of the pointers to its arguments. Raises CompileError, LaunchError and ForeignMemory."""
    values: dict[str, Any] = {}
    addresses: dict[str, int] = {}
    foreign: dict[int, str] = {}  # members of structs by address: a kernel may not follow them
    for parameter, pointer in zip(
        kernel.parameters, (ctypes.c_void_p * len(kernel.parameters)).from_address(arguments), strict=True
    ):
        data = ctypes.string_at(pointer, source_size(parameter.type))
        if is_tensor_map(parameter.type):
            values[parameter.name] = _tensor_map(parameter.name, data, places)
            continue
        value = value_of(parameter.type, data)
        for name, address in pointers_of(parameter, value).items():
            addresses[name] = address
            if address and name != parameter.name and places.range_of(address) is None:
                foreign[address] = name
        if not parameter.is_address:
            texels = places.objects.get(value) if parameter.type is U64 else None
            values[parameter.name] = value if texels is None else texels()

    for parameter in kernel.pointers:
        if parameter.padding and (address := addresses.get(parameter.name)):
            assert isinstance(parameter.type, PointerTo)
            places.written.ignore_padding(address, source_size(parameter.type.to), parameter.padding)

    def find(address: int) -> tuple[int, int]:
        place = (address, 0) if address in foreign else places.range_of(address)
        if place is None:
            raise ForeignMemory(next(name for name, own in addresses.items() if own == address), address)
        return place[0], address - place[0]

    bound, owners = bound_to_addresses(kernel, addresses, find)
    if bound.takes_addresses:
        bound, owners = kernel if kernel.takes_addresses else bound, {}
        places.written.forget()  # the kernel may write any allocation
        own = {name: address for name, address in addresses.items() if address not in foreign}
        values |= addresses | allocations(bound, own)
    types = bound.signature().parameters
    for parameter in kernel.pointers:
        if parameter.name in owners:
            start, type = owners[parameter.name], types[parameter.name].type
            unit = type.element.size if isinstance(type, Array) else 1
            memory = memory_at(start, 0 if start in foreign else places.whole(start, unit))
            values[parameter.name] = _typed(memory, parameter, type)
    _add_variables(bound, values)
    details = launch_in_memory(bound, places.written, device, args=values, **vars(shape))
    for address, name in ((address, Name.parse(name).user) for address, name in foreign.items()):
        if any(f" {name}[" in fault.message for fault in details.faults):
            raise ForeignMemory(name, address)
    return details


def _typed(memory: Bytes, parameter: HostParameter, type: Any) -> npt.NDArray[Any]:
    """Return memory as an array of the elements of a parameter. type: of the parameter in the program."""
    own = elements(memory, parameter)
    is_untyped = own is memory and isinstance(type, Array) and isinstance(type.element, Scalar)
    return memory.view(type.element.dtype) if is_untyped else own  # void * has no type of its own


def _tensor_map(name: str, data: bytes, places: Places) -> MappedArray:
    """Return the array of a tensor map. Raises LaunchError and ForeignMemory."""
    address, form = decoded(name, data)
    place = places.range_of(address)
    if place is None:
        raise ForeignMemory(name, address)
    size, rest = form.length * form.element.size, sum(place) - address
    if size > rest:
        raise LaunchError(f"{name} is a tensor map of {size:,} bytes: its memory has {rest:,}")
    return MappedArray(memory_at(address, size).view(form.element.dtype), form)


def allocations(kernel: CudaKernel, addresses: Mapping[str, int]) -> dict[str, Any]:
    """Return the memory of all allocations and their table. addresses: by parameter. Raises LaunchError for one of other memory."""
    other = next((name for name, own in addresses.items() if own and not ARENA <= own < ARENA + THE_ARENA.mapped), None)
    if other is not None:
        message = f"{kernel.__name__} follows pointers in global memory: {other} is a variable or registered memory"
        raise LaunchError(f"{message}, give memory of cudaMalloc or cudaMallocHost")
    type = kernel.signature().parameters[MEMORY].type
    assert isinstance(type, Array) and isinstance(type.element, Scalar)
    return {MEMORY: THE_ARENA.memory().view(type.element.dtype), TABLE: THE_ARENA.table()}


def _add_variables(kernel: CudaKernel, values: dict[str, Any]) -> None:
    """Add the variables outside of functions that a kernel accesses to its arguments."""
    unit = kernel.owner
    assert isinstance(unit, ProgramUnit)
    for name, texels in unit.textures.items():
        unit.variables[name] = texels()
    for name, row in kernel.interface.variables.items():
        values[name] = unit.memory(row).view(split(row.element)[0].dtype)
    for name, row in kernel.interface.constants.items():
        unit.variables[name] = unit.memory(row).copy()
