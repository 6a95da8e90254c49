"""Textures and surfaces of a launch: an array of texels, and its form."""

from __future__ import annotations

from typing import Any, Literal, get_args

from ..checked import one_of, shown
from ..errors import LaunchError
from ..language.textures import AddressMode, Filter, Read, SurfaceForm, TextureForm
from ..language.types import F16, F32, I8, I16, I32, U8, U16, U32, from_dtype
from ..tracebacks import without_own_frames
from .arrays import DeviceArray, NewArray, checked_array

ELEMENTS = (I8, U8, I16, U16, I32, U32, F16, F32)
_MAX_EXTENT = 1 << 20


class Surface:
    """A surface: an array whose texels a kernel reads and writes by their indices.

    array : NumPy array, `st.empty` or `DeviceArray` of 8-, 16- or 32-bit integers, f16 or f32. Its shape is (x,), (y, x) or
        (z, y, x), after the layers and before the channels.
    channels : components of a texel, 1, 2 or 4, in the last axis unless 1.
    layers : whether the first axis counts layers, of (layer, x) or (layer, y, x).
    """

    @without_own_frames
    def __init__(self, array: Any, *, channels: Literal[1, 2, 4] = 1, layers: bool = False) -> None:
        if isinstance(array, NewArray):
            host = array.template()
        else:
            host = array.host if isinstance(array, DeviceArray) else checked_array("array", array)
        element = from_dtype(host.dtype)
        if element not in ELEMENTS:
            raise LaunchError(
                f"array has elements of {host.dtype}: give 8-, 16- or 32-bit integers, float16 or float32"
            )
        if channels not in (1, 2, 4):
            raise LaunchError(f"channels is 1, 2 or 4, not {shown(channels)}")
        shape = host.shape[:-1] if channels > 1 else host.shape
        if channels > 1 and host.shape[-1:] != (channels,):
            raise LaunchError(f"the last axis of array has the {channels} channels, its shape is {shown(host.shape)}")
        extents = shape[1:] if layers else shape
        if not 1 <= len(extents) <= (2 if layers else 3) or not all(0 < n <= _MAX_EXTENT for n in shape):
            raise LaunchError(
                f"array has 1 to 3 axes of 1 to {_MAX_EXTENT} texels (with layers, 1 or 2), its shape is {shown(host.shape)}"
            )
        if not host.flags.c_contiguous:
            raise LaunchError("array is not contiguous: give np.ascontiguousarray(array)")
        self.array = array
        self.form = SurfaceForm(element, channels, tuple(map(int, extents[::-1])), int(shape[0]) if layers else 0)


class Texture:
    """A texture: an array that a kernel reads with the addressing and the filter of the hardware.

    array, channels, layers : as those of `Surface`. address : mode of coordinates outside the array, "wrap", "clamp", "mirror" or
        "border" (0), one for all coordinates or a tuple (x, y, z); "wrap" and "mirror" clamp unless coordinates are normalised.
    filter : "point" or "linear". normalized : whether coordinates are in 0 ... 1. read : "element", or "normalized" for integers of 8
    and 16 bits as floats in 0 ... 1 or -1 ... 1.
    """

    @without_own_frames
    def __init__(
        self,
        array: Any,
        *,
        channels: Literal[1, 2, 4] = 1,
        layers: bool = False,
        address: AddressMode | tuple[AddressMode, ...] = "clamp",
        filter: Filter = "point",
        normalized: bool = False,
        read: Read = "element",
    ) -> None:
        surface = Surface(array, channels=channels, layers=layers).form
        count = len(surface.extents)
        modes = address if isinstance(address, tuple) else (address,) * count
        if len(modes) != count:
            raise LaunchError(f"address has {len(modes)} modes: give one for each of the {count} coordinates")
        for mode in modes:
            one_of("address", mode, get_args(AddressMode))
        one_of("filter", filter, get_args(Filter))
        one_of("read", read, get_args(Read))
        element = surface.element
        if read == "normalized" and (element.is_float or element.size == 4):
            raise LaunchError(f'read="normalized" is of 8- and 16-bit integers, array has elements of {element}')
        if filter == "linear" and read == "element" and not element.is_float:
            raise LaunchError(f'filter="linear" of {element} returns floats: give read="normalized"')
        self.array = array
        layout = (surface.element, surface.channels, surface.extents, surface.layers)
        self.form = TextureForm(*layout, modes, filter, bool(normalized), read)


__all__ = ["Surface", "Texture"]
