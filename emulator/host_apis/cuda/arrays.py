"""Arrays, textures and surfaces of the CUDA runtime, and copies in three dimensions."""

import ctypes
import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...cuda_cpp.addresses import memory_at
from ...errors import LaunchError, UnavailableError
from ...language.textures import AddressMode
from ...runtime.textures import Surface, Texture
from .memory import INVALID_PITCH, Memory
from .queues import INVALID_HANDLE, INVALID_VALUE, SUCCESS, store

_LAYERED, _CUBEMAP = 1, 4
_KINDS = "iuf"
"""Letters of NumPy for cudaChannelFormatKind."""
_ADDRESS: tuple[AddressMode, ...] = ("wrap", "clamp", "mirror", "border")
_FORMAT = struct.Struct("5i")
"""cudaChannelFormatDesc: bits of the channels, kind."""
_COPY = struct.Struct("P3NP3NP3NP3N3Ni")
"""cudaMemcpy3DParms: array, position and pitched pointer of the source, then of the target, extent, kind."""
_RESOURCE = struct.Struct("i4xP5i4x3N")
"""cudaResourceDesc: kind, array or address, format, then bytes or width, height and pitch."""
_TEXTURE = struct.Struct("6i4fi")
"""The first members of cudaTextureDesc: address modes, filter, mode of reading, sRGB, border, normalised."""
_ARRAY, _LINEAR, _PITCHED = 0, 2, 3
_WHOLE = 0xFFFF_FFFF
"""Bytes of linear memory for a texture reference: up to the end of the allocation."""
Texels = Callable[[], Texture | Surface]


@dataclass(frozen=True)
class CudaArray:
    """An array. extent: width, height and depth in texels, at least 1. dimensions: number of extents given. layers: whether the last
    one counts layers."""

    start: int
    element: np.dtype[Any]
    channels: int
    extent: tuple[int, int, int]
    dimensions: int
    layers: bool

    @property
    def texel(self) -> int:
        """Bytes of a texel."""
        return self.element.itemsize * self.channels

    @property
    def size(self) -> int:
        return self.extent[0] * self.extent[1] * self.extent[2] * self.texel

    def texels(self) -> Any:
        """Return the texels as `Texture` and `Surface` take them."""
        width, height, depth = self.extent
        shape = {1: (width,), 2: (height, width), 3: (depth, height, width)}[self.dimensions]
        if self.layers and self.dimensions == 3 and height == 1:
            shape = depth, width
        return _shaped(memory_at(self.start, self.size).view(self.element), shape, self.channels)


def _shaped(texels: Any, shape: tuple[int, ...], channels: int) -> Any:
    return texels.reshape(*shape, channels) if channels > 1 else texels.reshape(shape)


def _format(words: tuple[int, ...]) -> tuple[np.dtype[Any], int]:
    """Return the type and the number of channels of a cudaChannelFormatDesc. Raises LaunchError."""
    *bits, kind = words
    channels = sum(map(bool, bits))
    if channels not in (1, 2, 4) or not 0 <= kind < len(_KINDS) or bits[0] not in (8, 16, 32):
        raise LaunchError(f"channels of {bits} bits")
    return np.dtype(f"{_KINDS[kind]}{bits[0] // 8}"), channels


class Arrays(Memory):
    """Arrays by their handle, and textures and surfaces by their object."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.arrays: dict[int, CudaArray] = {}
        self.objects: dict[int, Texels] = {}
        self.object_numbers = itertools.count(0x7E8D_0000_0000_0001)
        """Textures and surfaces: numbers that no program computes."""

    # -------------------------------------------------------------- arrays
    def cudaMallocArray(self, array: int, format: int, width: int, height: int, flags: int) -> int:
        return self._new_array(array, format, (width, height, 0), flags)

    def simtbedMalloc3DArray(self, array: int, format: int, extent: int, flags: int) -> int:
        return self._new_array(array, format, struct.unpack("3N", ctypes.string_at(extent, 24)), flags)

    def _new_array(self, pointer: int, format: int, extent: tuple[int, ...], flags: int) -> int:
        if flags & _CUBEMAP:
            file, line, _ = self.place
            raise UnavailableError(f"{file}:{line}: cube maps are not emulated")
        try:
            element, channels = _format(_FORMAT.unpack(ctypes.string_at(format, _FORMAT.size)))
        except LaunchError:
            return INVALID_VALUE
        width, height, depth = extent
        if not width:
            return INVALID_VALUE
        dimensions = 3 if depth else 2 if height else 1
        whole = width, max(height, 1), max(depth, 1)
        own = CudaArray(0, element, channels, whole, dimensions, bool(flags & _LAYERED))
        start = ctypes.c_size_t()
        if code := self._allocate(self.memory, ctypes.addressof(start), own.size):
            return code
        self.arrays[start.value] = CudaArray(start.value, element, channels, whole, dimensions, own.layers)
        return store(ctypes.c_void_p, pointer, start.value)

    def cudaFreeArray(self, array: int | None) -> int:
        if array and self.arrays.pop(array, None) is None:
            return INVALID_HANDLE
        return self._free(self.memory, array)

    def cudaGetChannelDesc(self, format: int, array: int | None) -> int:
        if (own := self.arrays.get(array or 0)) is None:
            return INVALID_HANDLE
        bits = [8 * own.element.itemsize * (channel < own.channels) for channel in range(4)]
        ctypes.memmove(format, _FORMAT.pack(*bits, _KINDS.index(own.element.kind)), _FORMAT.size)
        return SUCCESS

    # -------------------------------------------------------------- copies. Positions in arrays are in bytes and rows
    def _row(self, array: int | None, x: int, y: int) -> tuple[int, int]:
        """Return the address of a position in an array, and the bytes of a row. Raises KeyError."""
        own = self.arrays[array or 0]
        pitch = own.extent[0] * own.texel
        return own.start + y * pitch + x, pitch

    def cudaMemcpyToArray(self, array: int | None, x: int, y: int, source: int | None, size: int, kind: int) -> int:
        if array not in self.arrays:
            return INVALID_HANDLE
        return self.cudaMemcpy(self._row(array, x, y)[0], source, size, kind)

    def cudaMemcpyFromArray(self, to: int | None, array: int | None, x: int, y: int, size: int, kind: int) -> int:
        if array not in self.arrays:
            return INVALID_HANDLE
        return self.cudaMemcpy(to, self._row(array, x, y)[0], size, kind)

    def cudaMemcpy2DToArray(self, array: int | None, x: int, y: int, *source: Any) -> int:
        if array not in self.arrays:
            return INVALID_HANDLE
        return self.cudaMemcpy2D(*self._row(array, x, y), *source)

    cudaMemcpy2DToArrayAsync = cudaMemcpy2DToArray

    def cudaMemcpy2DFromArray(self, to: int | None, pitch: int, array: int | None, x: int, y: int, *extent: Any) -> int:
        if array not in self.arrays:
            return INVALID_HANDLE
        return self.cudaMemcpy2D(to, pitch, *self._row(array, x, y), *extent)

    def cudaMemcpy3D(self, parameters: int, *rest: Any) -> int:
        """Copy a box. Extents are in texels if one side is an array, else in bytes."""
        words = _COPY.unpack(ctypes.string_at(parameters, _COPY.size))
        arrays = self.arrays.get(words[0]), self.arrays.get(words[8])
        texel = next((array.texel for array in arrays if array), 1)
        width, height, depth = words[16] * texel, *words[17:19]
        sides = []
        for array, place in zip(arrays, (words[:8], words[8:16]), strict=True):
            _, x, y, z, pointer, pitch, _, rows = place
            if array is not None:
                pointer, pitch, rows, x = array.start, array.extent[0] * texel, array.extent[1], x * texel
            if not pointer:
                return INVALID_VALUE
            if width > pitch:
                return INVALID_PITCH
            sides.append((pointer + z * pitch * rows + y * pitch + x, pitch, pitch * rows))
        (source, step, source_slice), (to, pitch, slice) = sides
        codes = (
            self.cudaMemcpy2D(to + z * slice, pitch, source + z * source_slice, step, width, height, words[19])
            for z in range(depth)
        )
        return next((code for code in codes if code), SUCCESS)

    cudaMemcpy3DAsync = cudaMemcpy3D

    # -------------------------------------------------------------- textures and surfaces
    def _array_of(self, resource: int) -> tuple[Callable[[], Any], int, bool]:
        """Return a function for the texels of a resource, their channels, and whether they have layers. Raises LaunchError."""
        kind, start, *words = _RESOURCE.unpack(ctypes.string_at(resource, _RESOURCE.size))
        if kind == _ARRAY and start in self.arrays:
            own = self.arrays[start]
            return own.texels, own.channels, own.layers
        if kind not in (_LINEAR, _PITCHED):
            raise LaunchError("no array")
        element, channels = _format(tuple(words[:5]))
        width, height, pitch = words[5:]
        if kind == _LINEAR and width == _WHOLE and (place := self.range_of(start)):
            width = place[0] + place[1] - start
        texel = element.itemsize * channels
        size = width // texel * texel if kind == _LINEAR else pitch * (height - 1) + width * texel
        if not self.accessible(start, size):
            raise LaunchError("no memory of the device")

        def texels() -> Any:
            memory = memory_at(start, size)
            if kind == _LINEAR:
                return _shaped(memory.view(element), (size // texel,), channels)
            rows = np.lib.stride_tricks.as_strided(memory, (height, width * texel), (pitch, 1))
            return _shaped(np.ascontiguousarray(rows).view(element), (height, width), channels)

        return texels, channels, False

    def _keep_object(self, pointer: int, make: Callable[[], Texels]) -> int:
        """Write the number of a new texture or surface."""
        try:
            texels = make()
            texels()
        except LaunchError as error:
            file, line, _ = self.place
            self.report(f"simtbed: note: {file}:{line}: {error}")
            return INVALID_VALUE
        self.objects[number := next(self.object_numbers)] = texels
        return store(ctypes.c_ulonglong, pointer, number)

    def simtbedCreateTexture(self, texture: int, resource: int, description: int) -> int:
        *modes, filter, read, _, _, _, _, _, normalized = _TEXTURE.unpack(ctypes.string_at(description, _TEXTURE.size))

        def make() -> Texels:
            texels, channels, layers = self._array_of(resource)
            coordinates = texels().ndim - (channels > 1) - layers
            address = tuple(_ADDRESS[mode & 3] for mode in modes[:coordinates])
            return lambda: Texture(
                texels(),
                channels=channels,  # type: ignore[arg-type]
                layers=layers,
                address=address,
                filter="linear" if filter else "point",
                normalized=bool(normalized),
                read="normalized" if read else "element",
            )

        return self._keep_object(texture, make)

    def cudaCreateSurfaceObject(self, surface: int, resource: int) -> int:
        def make() -> Texels:
            texels, channels, layers = self._array_of(resource)
            return lambda: Surface(texels(), channels=channels, layers=layers)  # type: ignore[arg-type]

        return self._keep_object(surface, make)

    def cudaDestroyTextureObject(self, texture: int | None) -> int:
        return INVALID_VALUE if texture and self.objects.pop(texture, None) is None else SUCCESS

    cudaDestroySurfaceObject = cudaDestroyTextureObject
