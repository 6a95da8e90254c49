"""Device memory of a driver: allocations by address, and launches whose arguments are addresses and bytes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cuda_cpp.addresses import Bytes, bound_to_addresses, elements, launch_in_memory, memory_at, value_of
from ..cuda_cpp.declaration import HostParameter
from ..cuda_cpp.kernel import CudaKernel, CudaSource, pointers_of
from ..driver.memory import Pointer, pointer_to
from ..errors import LaunchError
from ..host_apis.cuda.arena import ArenaSpace
from ..host_apis.cuda.launches import allocations
from ..language.types import Scalar
from ..llvmir.debug import Record
from ..runtime.arrays import DeviceArray
from ..runtime.host_findings import note_read
from ..runtime.result import LaunchDetails
from ..runtime.running import checked

Elements = npt.NDArray[Any]


class DeviceMemory(ArenaSpace):
    """The memory of the device. An address is the host's address of the same byte."""

    def allocate(self, size: int) -> int:
        if size <= 0:
            raise LaunchError(f"an allocation of {size} bytes: expected at least 1")
        return super().allocate(size)

    def free(self, address: int) -> None:
        if not self.remove(address):
            raise LaunchError(f"no allocation begins at {address:#x}: it was freed, or never allocated")

    def find(self, address: int) -> tuple[int, int]:
        """Return the allocation that contains an address, and the offset in it. Raises LaunchError."""
        place = self.range_of(address)
        if place is None:
            raise LaunchError(f"no allocation contains the address {address:#x}")
        return place[0], address - place[0]

    def block(self, start: int) -> Bytes:
        """Return the bytes of an allocation."""
        return memory_at(start, self.sizes[start])

    def section(self, address: int, size: int, written: bool = True) -> Bytes:
        """Return the bytes of a copy, which count as written if it writes. Raises LaunchError if they are not in one allocation."""
        if size < 0:
            raise LaunchError(f"a copy of {size} bytes: expected 0 or more")
        start, offset = self.find(address)
        block = self.block(start)
        if offset + size > len(block):
            raise LaunchError(
                f"a copy of {size} bytes at {address:#x}: the allocation has {len(block) - offset} from there"
            )
        if written:
            self.written.write(address, size)
        return block[offset : offset + size]


MEMORY = DeviceMemory()


def bytes_of(array: Any, written: bool = False) -> Bytes:
    """Return the memory of an array of the host, or of another buffer, in the order of its addresses. written: whether a copy writes it.

    Raises LaunchError for an array with gaps, and for a read-only one that is written.
    """
    view = np.asarray(array) if isinstance(array, np.ndarray | np.generic) else np.frombuffer(array, np.uint8)
    if not view.flags.forc:
        raise LaunchError(f"a copy needs a contiguous array, its strides are {view.strides}: give a copy of it")
    if written and not view.flags.writeable:
        raise LaunchError("a copy to the host needs an array that is not read only")
    return view.ravel("K").view(np.uint8)


class DeviceElements:
    """Elements in device memory. address: of the first one. owner: keeps the memory alive."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...], owner: Any) -> None:
        self.address, self.shape, self.strides, self.owner = address, shape, strides, owner
        self.dtype, self.ndim, self.size = np.dtype(dtype), len(shape), math.prod(shape)
        self.itemsize = self.dtype.itemsize
        self.nbytes = self.size * self.itemsize

    @property
    def elements(self) -> Elements:
        """The elements as an array of the host, which count as written. Raises LaunchError if the memory was freed."""
        return self._elements(written=True)

    @property
    def readable(self) -> Elements:
        """The elements for views and reads, after which unwritten ones count as unwritten. Raises LaunchError as `elements`."""
        return self._elements(written=False)

    def _elements(self, written: bool) -> Elements:
        if not self.size:
            return np.empty(self.shape, self.dtype)
        memory = self._memory()
        section = MEMORY.section(memory.low, memory.size, written)
        return np.ndarray(self.shape, self.dtype, section, self.address - memory.low, self.strides)

    def _memory(self) -> Pointer:
        return pointer_to(self.address, self.shape, self.strides, self.itemsize)

    def copied(self, function: str) -> Elements:
        """Return the elements for a copy to the host by a function that the user calls. Raises LaunchError as `elements`."""
        memory = self._memory()
        if memory.size == self.nbytes:  # without gaps
            note_read(MEMORY.written, memory.low, memory.size, function)
        return self.readable

    def __len__(self) -> int:
        return len(self.readable)

    def __repr__(self) -> str:
        return repr(self.readable)

    def __str__(self) -> str:
        return str(self.readable)

    def place_of(self, view: Elements) -> int | None:
        """Return the address of an array of the host in the same memory; None for another one."""
        if not (view.size and self.size):
            return None
        start, _ = MEMORY.find(self.address)
        address = int(view.ctypes.data)
        return address if start <= address < start + MEMORY.sizes[start] else None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape, "strides": self.strides, "data": (self.address, False), "typestr": self.dtype.str, "version": 3,
        }  # fmt: skip


class Variables:
    """The addresses of the variables outside of functions of a text."""

    def __init__(self, source: CudaSource) -> None:
        self.source = source
        self.addresses: dict[str, int] = {}
        self.textures: dict[str, Any] = {}

    def address(self, name: str) -> tuple[int, int]:
        """Return address and size of a `__constant__` or `__device__` variable. Raises LaunchError."""
        values = self.source.initial(name)
        if name not in self.addresses:
            self.addresses[name] = MEMORY.allocate(values.nbytes)
            MEMORY.section(self.addresses[name], values.nbytes)[:] = values.view(np.uint8)
        return self.addresses[name], values.nbytes

    def write(self) -> None:
        """Set the variables to the contents of their memory."""
        for name, address in self.addresses.items():
            values = MEMORY.block(address).view(self.source.initial(name).dtype)
            self.source.variables[name] = values.copy()
        self.source.variables.update({name: own.texture() for name, own in self.textures.items() if own.texels})

    def read(self) -> None:
        """Copy the variables that a launch may have changed to their memory."""
        for name, address in self.addresses.items():
            values = self.source.variables.get(name)
            if isinstance(values, DeviceArray):
                MEMORY.block(address)[:] = values.numpy().reshape(-1).view(np.uint8)


def launch_by_address(
    kernel: CudaKernel, grid: Any, block: Any, args: Sequence[Any], variables: Variables, shared: int = 0
) -> LaunchDetails:
    """Launch a kernel with the arguments of a driver: addresses, NumPy scalars, structs. Raises LaunchError and FaultError."""
    if len(args) != len(kernel.parameters):
        raise LaunchError(f"{kernel.__name__} takes {len(kernel.parameters)} arguments, {len(args)} are given")
    values: dict[str, Any] = {}
    addresses: dict[str, int] = {}
    for parameter, value in zip(kernel.parameters, args, strict=True):
        name = parameter.name
        if not parameter.is_address:
            values[name] = _by_value(parameter, value)
            addresses |= {own: int(address) for own, address in pointers_of(parameter, values[name]).items()}
        elif isinstance(value, np.ndarray):
            raise LaunchError(f"{name} is a pointer: expected memory of the device, not an array of NumPy")
        else:
            addresses[name] = 0 if value is None else int(value)
    bound, owners = bound_to_addresses(kernel, addresses, MEMORY.find)
    if bound.takes_addresses:
        bound, owners = kernel if kernel.takes_addresses else bound, {}
        MEMORY.written.forget()  # the kernel may write any allocation
        values |= addresses | allocations(bound, addresses)
    pointed = {parameter.name: parameter for parameter in kernel.pointers}
    values |= {name: elements(MEMORY.block(start), pointed[name]) for name, start in owners.items()}
    variables.write()
    result = launch_in_memory(bound, MEMORY.written, grid=grid, block=block, args=values, shared=shared)
    checked(result, "raise")
    variables.read()
    return result


def _by_value(parameter: HostParameter, value: Any) -> Any:
    """Return an argument that a driver copies byte by byte. Raises LaunchError for another type than the parameter's."""
    name, type = parameter.name, parameter.type
    if isinstance(type, Record):
        as_bytes = isinstance(value, np.ndarray | np.void) and value.nbytes == type.size
        return value_of(type, value.tobytes()) if as_bytes else value
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
