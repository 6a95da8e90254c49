"""Kernels in the memory of a device: loaded and launched by the CUDA driver itself, without PyCUDA's overhead."""

import ctypes
import itertools
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from ...language.tensor_maps import ELEMENTS, MAP_BYTES, SWIZZLES, TensorMapForm
from ...language.types import I8, I16, U8, U16
from ...runtime.engine import Dim3
from .library import DriverError, check, cuda_driver

MAX_DYNAMIC_SHARED, CLUSTER_EXTENTS, ANY_CLUSTER_SIZE = 8, (11, 12, 13), 14
"""The driver's numbers of attributes of a function."""
NOT_PERMITTED = 800
PORTABLE_CLUSTER = 8
"""Blocks of a cluster that every device of compute capability 9.0 takes."""
_MAP_ALIGNMENT = 64  # bytes
_SLOT = 16  # bytes: the largest alignment of an argument


class ArgumentBlock:
    """Memory of the arguments of a launch, reused by later launches: the driver copies it during the call.

    codes: of `struct`, one for each value in the order of `pack`. places: the value of each argument; None for that order.
    """

    def __init__(self, codes: Sequence[str], places: Sequence[int] | None = None) -> None:
        widths = [struct.calcsize(code) for code in codes]
        gaps = [-width % _SLOT for width in widths]
        self.pack = struct.Struct(
            "<" + "".join(f"{code}{gap}x" for code, gap in zip(codes, gaps, strict=True))
        ).pack_into
        ends = [0, *itertools.accumulate(width + gap for width, gap in zip(widths, gaps, strict=True))]
        self.memory = ctypes.create_string_buffer(max(ends) + _SLOT)
        first = ctypes.addressof(self.memory)
        first += -first % _SLOT
        self.offset = first - ctypes.addressof(self.memory)
        order = range(len(codes)) if places is None else places
        self.pointers = (ctypes.c_void_p * max(1, len(codes)))(*(first + ends[place] for place in order))
        self.lock = threading.Lock()


class DeviceFunction:
    """A kernel of a cubin in the current context. cooperative: whether its blocks may wait for the grid."""

    def __init__(self, cubin: bytes, name: str, cooperative: bool = False) -> None:
        """Raises DriverError."""
        self.name = name
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.cooperative = cooperative
        driver = cuda_driver()
        check(driver.cuModuleLoadData(ctypes.byref(self.module), cubin))
        check(driver.cuModuleGetFunction(ctypes.byref(self.function), self.module, name.encode()))
        self.call: Callable[..., int] = driver.cuLaunchCooperativeKernel if cooperative else driver.cuLaunchKernel
        self.extra: tuple[None, ...] = () if cooperative else (None,)

    def unload(self) -> None:
        """Release the module in the current context."""
        with suppress(DriverError):  # a failed kernel destroys the context
            check(cuda_driver().cuModuleUnload(self.module))

    def address_of(self, symbol: str) -> int:
        """Return the address of a variable of the module."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(
            cuda_driver().cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), self.module, symbol.encode())
        )
        return address.value or 0

    def allow_shared(self, size: int) -> None:
        """Set the limit of dynamic shared memory in bytes."""
        check(cuda_driver().cuFuncSetAttribute(self.function, MAX_DYNAMIC_SHARED, size))

    def set_cluster(self, cluster: Dim3, printed: bool) -> None:
        """Set the blocks of a cluster. printed: whether the code has them; other code may have them. Raises DriverError."""
        if prod(cluster) > PORTABLE_CLUSTER:
            check(cuda_driver().cuFuncSetAttribute(self.function, ANY_CLUSTER_SIZE, 1))
        if printed or prod(cluster) == 1:
            return
        for attribute, extent in zip(CLUSTER_EXTENTS, cluster, strict=True):
            status = cuda_driver().cuFuncSetAttribute(self.function, attribute, extent)
            check(0 if status == NOT_PERMITTED else status)  # the code has `__cluster_dims__`

    def launch(
        self, arguments: ArgumentBlock, values: Sequence[Any], shape: tuple[Dim3, Dim3], shared: int, stream: int
    ) -> None:
        """Launch with the packed values. shape: grid and block. Raises DriverError, also where the blocks of a cooperative
        kernel cannot all be resident."""
        grid, block = shape
        with arguments.lock:
            arguments.pack(arguments.memory, arguments.offset, *values)
            check(self.call(self.function, *grid, *block, shared, stream, arguments.pointers, *self.extra))

    def node(
        self, arguments: ArgumentBlock, values: Sequence[Any], shape: tuple[Dim3, Dim3], shared: int
    ) -> dict[str, Any]:
        """Return the fields of a node of a graph (`library.add_kernel_node`). The lock of the arguments must be held until it is
        added: the driver then copies them."""
        arguments.pack(arguments.memory, arguments.offset, *values)
        grid, block = shape
        pointers = ctypes.addressof(arguments.pointers)
        return {"function": self.function, "grid": grid, "block": block, "shared": shared, "arguments": pointers}

    def __call__(self, *values: np.generic, grid: Dim3, block: Dim3, shared: int, stream: Any = None) -> None:
        """Launch with NumPy numbers. stream: of PyCUDA."""
        arguments = ArgumentBlock([f"{value.itemsize}s" for value in values])
        handle = 0 if stream is None else int(stream.handle)
        self.launch(arguments, [value.tobytes() for value in values], (grid, block), shared, handle)


def tensor_map(form: TensorMapForm, address: int) -> bytes:
    """Return the encoded tensor map of an array at an address of the device. Raises DriverError."""
    memory = ctypes.create_string_buffer(MAP_BYTES + _MAP_ALIGNMENT)
    offset = -ctypes.addressof(memory) % _MAP_ALIGNMENT
    rank = len(form.sizes)
    sizes, strides = (ctypes.c_uint64 * rank)(*form.sizes), (ctypes.c_uint64 * rank)(*form.strides)
    box, ones = (ctypes.c_uint32 * rank)(*form.box), (ctypes.c_uint32 * rank)(*(1,) * rank)
    type = ELEMENTS.index({I8: U8, I16: U16}.get(form.element, form.element))
    modes = 0, SWIZZLES.index(form.swizzle), 0, int(form.fill == "nan")  # no interleave, no promotion to L2
    place = ctypes.addressof(memory) + offset
    check(cuda_driver().cuTensorMapEncodeTiled(place, type, rank, address, sizes, strides, box, ones, *modes))
    return memory.raw[offset : offset + MAP_BYTES]
