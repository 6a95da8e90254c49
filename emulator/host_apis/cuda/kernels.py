"""Kernels of the CUDA runtime: their launches, attributes and occupancy, and the variables outside of functions."""

from __future__ import annotations

import ctypes
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ...cuda_cpp.kernel import CudaKernel
from ...driver.function_attributes import FunctionAttributes
from ...llvmir.debug import source_size
from ...machine.occupancy import active_clusters, occupancy
from ...runtime.host_findings import Place
from ...runtime.request import MAX_CLUSTER_BLOCKS
from .devices import Devices
from .launches import ForeignMemory, Places, Shape, launch
from .queues import INVALID_VALUE, SUCCESS, flush_host_output, store
from .unit import ProgramUnit

INVALID_CONFIGURATION, INVALID_SYMBOL, INVALID_FUNCTION, INVALID_CLUSTER_SIZE = 9, 13, 98, 912
TOO_MANY_TOGETHER, NOT_SUPPORTED = 720, 801
ILLEGAL_ADDRESS = 700
_STICKY = {"bounds": ILLEGAL_ADDRESS, "alignment": 716, "assertion": 710, "step limit": 702}
"""Errors of launches by the kind of their fault: illegal address, misaligned address, assert, timeout."""
_STATIC = re.compile(r"_ZL(\d+)(\w+)")
"""The symbol of a static variable: length, then name."""
_ATTRIBUTES = struct.Struct("3N7i4x")
"""cudaFuncAttributes: bytes of shared, constant and local memory, threads of a block, registers, PTX, binary, cache, dynamic memory."""


class Kernels(Devices):
    """The kernels and variables of a program. units: its kernels by source."""

    def __init__(self, units: Sequence[ProgramUnit], report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.units = units
        self.kernels: dict[int, CudaKernel | None] = {}
        self.attributes: dict[int, FunctionAttributes] = {}
        """Attributes of kernels, by the address of their host function."""
        self.references: dict[int, tuple[ProgramUnit, str]] = {}
        """Source and name of texture references, by address."""
        self.sticky = SUCCESS
        """The error of a launch that makes all later calls fail."""
        self.unread: tuple[Place, int, str] | None = None
        """An error of a launch that the program has not read: the call, the code, and why the device refuses the launch, or ""."""

    # -------------------------------------------------------------- variables
    def simtbedRegisterVariable(self, unit: int, shadow: int, symbol: int, size: int) -> None:
        """Make the host's shadow of a variable its memory, with the initial contents."""
        owner = self.units[int(ctypes.string_at(unit))]
        contents = owner.initial_bytes(ctypes.string_at(symbol).decode(), size)
        if ctypes.string_at(shadow, size) != contents:  # memory of a constant is read-only
            ctypes.memmove(shadow, contents, size)
        self.variables[shadow] = size
        owner.addresses[ctypes.string_at(symbol).decode()] = shadow
        self.memory.register(shadow, size)

    def cudaMemcpyToSymbol(self, symbol: int, source: int | None, size: int, offset: int, kind: int, *rest: Any) -> int:
        if symbol not in self.variables:
            return INVALID_SYMBOL
        return self.cudaMemcpy(symbol + offset, source, size, kind)

    cudaMemcpyToSymbolAsync = cudaMemcpyToSymbol

    def cudaMemcpyFromSymbol(self, to: int | None, symbol: int, size: int, offset: int, kind: int, *rest: Any) -> int:
        if symbol not in self.variables:
            return INVALID_SYMBOL
        return self.cudaMemcpy(to, symbol + offset, size, kind)

    cudaMemcpyFromSymbolAsync = cudaMemcpyFromSymbol

    def cudaGetSymbolAddress(self, pointer: int, symbol: int) -> int:
        return store(ctypes.c_void_p, pointer, symbol) if symbol in self.variables else INVALID_SYMBOL

    def cudaGetSymbolSize(self, size: int, symbol: int) -> int:
        return store(ctypes.c_size_t, size, self.variables[symbol]) if symbol in self.variables else INVALID_SYMBOL

    def simtbedRegisterTexture(self, unit: int, reference: int, symbol: int) -> None:
        """Register a texture reference, by the name in its symbol."""
        mangled = _STATIC.fullmatch(name := ctypes.string_at(symbol).decode())
        own = name if mangled is None else mangled[2][: int(mangled[1])]
        self.references[reference] = self.units[int(ctypes.string_at(unit))], own

    def simtbedBindTexture(self, reference: int, resource: int | None, description: int | None) -> int:
        """Bind a texture reference; without a resource, unbind it."""
        owner, name = self.references[reference]
        owner.textures.pop(name, None)
        owner.variables.pop(name, None)
        if not resource or not description:
            return SUCCESS
        number = ctypes.c_ulonglong()
        code = self.simtbedCreateTexture(ctypes.addressof(number), resource, description)
        if not code:
            owner.textures[name] = self.objects.pop(number.value)
        return code

    # -------------------------------------------------------------- kernels
    def simtbedRegisterKernel(self, unit: int, stub: int, symbol: int) -> None:
        """Register a kernel. unit: address of the number of its source, as text."""
        owner = self.units[int(ctypes.string_at(unit))]
        self.kernels[stub] = owner.kernel(ctypes.string_at(symbol).decode())

    def simtbedLaunch(self, stub: int, *how: int) -> int:
        """Launch a kernel. how: grid, block and cluster, bytes of dynamic shared memory, address of the arguments."""
        *extents, shared, arguments, cooperative, stream = how
        grid, block, cluster = (tuple(extents[first : first + 3]) for first in (0, 3, 6))
        code, refusal = self._stream(stream), ""
        if not code:
            shape = Shape(grid, block, shared, bool(cooperative), self.streams[stream or 0], cluster)
            code, refusal = self._launched(stub, shape, arguments)
        if code and not self.sticky:
            self.unread = self.place, code, refusal
        return code

    def with_copied_arguments(self, launch: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of `simtbedLaunch` with copies of the kernel's arguments, for the null stream."""
        stub, *extents, shared, arguments, cooperative, _ = launch
        parameters = kernel.parameters if (kernel := self.kernels.get(stub)) else ()
        places = (ctypes.c_void_p * len(parameters)).from_address(arguments) if parameters else ()
        sizes = [source_size(parameter.type) for parameter in parameters]
        copies = [
            ctypes.create_string_buffer(ctypes.string_at(place, size), size)
            for place, size in zip(places, sizes, strict=True)
        ]
        return stub, *extents, shared, _Addresses.keeping(copies), cooperative, 0

    def _launched(self, stub: int, shape: Shape, arguments: int) -> tuple[int, str]:
        """Launch a kernel. Return its code, and why the device refuses it, or ""."""
        kernel = self.kernels.get(stub)
        if kernel is None:
            return INVALID_FUNCTION, ""
        if self.sticky:
            return self.sticky, ""
        code, refusal = self._refusal(stub, kernel, shape)
        if code:
            return code, refusal
        flush_host_output()
        try:
            places = Places(self.range_of, self.whole, self.objects, self.memory.written)
            details = launch(kernel, shape, arguments, places, self.device)
            self.sticky = next((_STICKY[fault.kind] for fault in details.faults if fault.kind in _STICKY), SUCCESS)
        except ForeignMemory as error:
            reason, origin = self.findings.explain(error.address, 0, None)
            text = f"{kernel.__name__}: {error.parameter} is not memory of the device: {reason}"
            self.findings.add("host memory", self.place, text, origin)
            self.sticky = ILLEGAL_ADDRESS
        return self.sticky, ""

    def _refusal(self, stub: int, kernel: CudaKernel, shape: Shape) -> tuple[int, str]:
        """Return the code of a launch that the device refuses, and why; SUCCESS and "" for another one."""
        device, name = self.device, kernel.__name__
        grid, block, blocks = shape.grid, shape.block, math.prod(shape.cluster)
        limits = zip((*grid, *block), (*device.grid_extents, *device.block_extents), strict=True)
        if not all(0 < extent <= limit for extent, limit in limits) or math.prod(block) > device.threads_per_block:
            limit = f"up to {device.block_extents} and {device.threads_per_block:,} threads, {device.grid_extents}"
            return INVALID_CONFIGURATION, f"{name}: blocks of {block} in a grid of {grid}: {limit} blocks"
        cluster = shape.cluster if blocks != 1 else kernel.cluster
        if cluster != (1, 1, 1):
            largest = self._attributes(stub).cluster_blocks
            if not all(size and extent % size == 0 for extent, size in zip(grid, cluster, strict=True)):
                return INVALID_CLUSTER_SIZE, f"{name}: clusters of {cluster} blocks do not divide a grid of {grid}"
            if math.prod(cluster) > largest:
                more = f", {MAX_CLUSTER_BLOCKS} with cudaFuncAttributeNonPortableClusterSizeAllowed"
                limit = f"up to {largest}{more * (largest < MAX_CLUSTER_BLOCKS)}"
                return INVALID_CLUSTER_SIZE, f"{name}: {math.prod(cluster)} blocks in a cluster: {limit}"
        setting = f"call cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, {shape.shared})"
        excess = self._attributes(stub).too_much_shared(device, shape.shared, setting) if shape.shared else ""
        if excess:
            return INVALID_VALUE, f"{name}: {excess}"
        resident = device.sms * self._active_blocks(stub, math.prod(block), shape.shared) if shape.cooperative else 0
        if shape.cooperative and math.prod(grid) > resident:
            limit = f"the {device.name} holds {resident:,} at once"
            return TOO_MANY_TOGETHER, f"{name}: a cooperative launch of {math.prod(grid):,} blocks, and {limit}"
        return SUCCESS, ""

    def _attributes(self, stub: int) -> FunctionAttributes:
        """Return the attributes of a registered kernel."""
        if stub not in self.attributes:
            kernel = self.kernels[stub]
            self.attributes[stub] = FunctionAttributes(kernel.declared_bytes("shared") if kernel is not None else 0)
        return self.attributes[stub]

    def cudaFuncSetAttribute(self, stub: int, attribute: int, value: int) -> int:
        if stub not in self.kernels:
            return INVALID_FUNCTION
        return SUCCESS if self._attributes(stub).set(self.device, attribute, value) else INVALID_VALUE

    def cudaFuncSetCacheConfig(self, stub: int, preference: int) -> int:
        return SUCCESS if stub in self.kernels else INVALID_FUNCTION

    cudaFuncSetSharedMemConfig = cudaFuncSetCacheConfig

    def cudaFuncGetAttributes(self, attributes: int | None, stub: int) -> int:
        if (kernel := self.kernels.get(stub)) is None or not attributes:
            return INVALID_FUNCTION if attributes else INVALID_VALUE
        spaces = (kernel.declared_bytes(space) for space in ("shared", "constant", "local"))
        own = self._attributes(stub)
        values = (*spaces, self.device.threads_per_block, 32, 90, 90, 0, own.dynamic_shared(self.device), own.carveout)
        ctypes.memmove(attributes, _ATTRIBUTES.pack(*values), _ATTRIBUTES.size)
        return SUCCESS

    def cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        self, blocks: int, stub: int, threads: int, shared: int, *rest: Any
    ) -> int:
        if self.kernels.get(stub) is None:
            return INVALID_FUNCTION
        if threads < 1:
            return INVALID_VALUE
        return store(ctypes.c_int, blocks, self._active_blocks(stub, threads, shared))

    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = cudaOccupancyMaxActiveBlocksPerMultiprocessor

    def cudaOccupancyMaxPotentialBlockSize(self, grid: int, block: int, stub: int, shared: int, limit: int) -> int:
        """Write the largest block with the most threads of an SM, and the blocks of the device; zeros if it can run none."""
        if self.kernels.get(stub) is None:
            return INVALID_FUNCTION
        largest = min(limit or self.device.threads_per_block, self.device.threads_per_block)
        sizes = range(32, largest + 1, 32) if largest >= 32 else (largest,)
        threads = max(sizes, key=lambda size: (size * self._active_blocks(stub, size, shared), size))
        blocks = self.device.sms * self._active_blocks(stub, threads, shared)
        return store(ctypes.c_int, grid, blocks) or store(ctypes.c_int, block, threads if blocks else 0)

    def simtbedClusters(self, count: int, stub: int, cluster: int, largest: int, threads: int, shared: int) -> int:
        """Write the clusters of so many blocks that are resident at once; with `largest`, the most blocks of a cluster of which one is.

        cluster: 0 for that of the kernel's text.
        """
        if (kernel := self.kernels.get(stub)) is None:
            return INVALID_FUNCTION
        if not self.device.cluster_sms:
            return NOT_SUPPORTED
        blocks = cluster or math.prod(kernel.cluster)
        if blocks > (most := self._attributes(stub).cluster_blocks):
            return INVALID_CLUSTER_SIZE
        if threads < 1:
            return INVALID_VALUE
        active = self._active_blocks(stub, threads, shared)
        if largest:
            sizes = (size for size in range(most, 0, -1) if active_clusters(self.device, active, size))
            return store(ctypes.c_int, count, next(sizes, 0))
        has_clusters = cluster or blocks > 1
        return store(ctypes.c_int, count, active_clusters(self.device, active, blocks) if has_clusters else 0)

    def _active_blocks(self, stub: int, threads: int, shared: int) -> int:
        """Return the resident blocks of an SM. No compiler gives the registers: they do not limit it."""
        own = self._attributes(stub)
        if not 0 <= shared <= own.dynamic_shared(self.device):
            return 0
        return occupancy(self.device, threads, 0, own.declared + shared).active_blocks


class _Addresses(int):
    """The address of an array of the addresses of objects, which it keeps."""

    owners: tuple[Any, ...]

    @classmethod
    def keeping(cls, objects: Sequence[Any]) -> _Addresses:
        array = (ctypes.c_void_p * max(1, len(objects)))(*map(ctypes.addressof, objects))
        address = cls(ctypes.addressof(array))
        address.owners = array, *objects
        return address
