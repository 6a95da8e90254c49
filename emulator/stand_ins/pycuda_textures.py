"""Arrays and texture references of `pycuda.driver`."""

from typing import Any

import numpy as np

from ..language.textures import AddressMode
from ..runtime.textures import Texture
from .memory import MEMORY
from .names import Constants, Named

_ADDRESS: tuple[AddressMode, ...] = ("wrap", "clamp", "mirror", "border")
_READ_AS_INTEGER, _NORMALIZED = 1, 2
_FORMATS = {
    f"{sign}SIGNED_INT{bits}": np.dtype(f"{kind}{bits // 8}")
    for sign, kind in (("UN", "u"), ("", "i"))
    for bits in (8, 16, 32)
}
_FORMATS["FLOAT"] = np.dtype(np.float32)


class Array(Named):
    """An array of texels, (y, x) and then the channels."""

    def __init__(self, texels: Any, channels: int = 1) -> None:
        self.texels, self.channels = np.array(texels, dtype_to_array_format(texels.dtype), order="C"), channels


class TextureReference(Named):
    """A texture reference of a text. Its texels are those of an array, or of memory of the device."""

    def __init__(self) -> None:
        self.texels: Any = None
        self.dtype, self.channels, self.flags = _FORMATS["FLOAT"], 1, 0
        self.modes: dict[int, AddressMode] = {}
        self.filter = 0

    def set_array(self, array: Array) -> None:
        self.texels, self.dtype, self.channels = lambda: array.texels, array.texels.dtype, array.channels

    def set_address(self, devptr: Any, bytes: int, allow_offset: bool = False) -> int:
        shape = (-1,) if self.channels == 1 else (-1, self.channels)

        def texels() -> Any:
            start, offset = MEMORY.find(int(devptr))
            return MEMORY.block(start)[offset : offset + bytes].view(self.dtype).reshape(shape)

        self.texels = texels
        return 0

    def set_format(self, format: Any, num_components: int) -> None:
        self.dtype, self.channels = format, num_components

    def set_address_mode(self, dim: int, mode: int) -> None:
        self.modes[dim] = _ADDRESS[mode]

    def set_filter_mode(self, mode: int) -> None:
        self.filter = mode

    def set_flags(self, flags: int) -> None:
        self.flags = flags

    def get_flags(self) -> int:
        return self.flags

    def texture(self) -> Texture:
        """Return the texture of a launch."""
        own = np.ascontiguousarray(self.texels())
        modes = tuple(self.modes.get(axis, "clamp") for axis in range(own.ndim - (self.channels > 1)))
        is_element = self.dtype.kind == "f" or self.dtype.itemsize == 4 or self.flags & _READ_AS_INTEGER
        return Texture(
            own, channels=self.channels, address=modes, filter="linear" if self.filter else "point",  # type: ignore[arg-type]
            normalized=bool(self.flags & _NORMALIZED), read="element" if is_element else "normalized",
        )  # fmt: skip


def dtype_to_array_format(dtype: Any) -> np.dtype[Any]:
    if (own := np.dtype(dtype)) not in _FORMATS.values():
        raise TypeError(f"cannot convert dtype '{own}' to array format")
    return own  # type: ignore[no-any-return]


def bind_array_to_texref(ary: Array, texref: TextureReference) -> None:
    texref.set_array(ary)
    texref.modes, texref.filter = {0: "clamp", 1: "clamp"}, 0


def contents() -> dict[str, Any]:
    """Return the names in `pycuda.driver`."""

    def matrix(matrix: Any, order: str) -> Array:
        return Array(matrix if order.upper() == "C" else matrix.T)

    return {
        "TextureReference": TextureReference, "dtype_to_array_format": dtype_to_array_format, "bind_array_to_texref": bind_array_to_texref,
        "matrix_to_array": matrix, "np_to_array": matrix,
        "matrix_to_texref": lambda own, texref, order: bind_array_to_texref(matrix(own, order), texref),
        "array_format": Constants("array_format", **_FORMATS),
        "address_mode": Constants("address_mode", WRAP=0, CLAMP=1, MIRROR=2, BORDER=3),
        "filter_mode": Constants("filter_mode", POINT=0, LINEAR=1),
        "TRSF_READ_AS_INTEGER": _READ_AS_INTEGER, "TRSF_NORMALIZED_COORDINATES": _NORMALIZED,
    }  # fmt: skip
