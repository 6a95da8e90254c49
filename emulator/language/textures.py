"""Forms of textures and surfaces: the layout of their texels, and the addressing and the filter of fetches."""

from dataclasses import dataclass
from typing import Literal

from .types import F32, I32, U32, Scalar

AddressMode = Literal["wrap", "clamp", "mirror", "border"]
Filter = Literal["point", "linear"]
Read = Literal["element", "normalized"]


@dataclass(frozen=True)
class SurfaceForm:
    """Texels of `channels` elements in row-major order. extents: texels by x, y, z. layers: 0 without layers."""

    element: Scalar
    channels: int
    extents: tuple[int, ...]
    layers: int = 0


@dataclass(frozen=True)
class TextureForm(SurfaceForm):
    """A texture. address: by coordinate. normalized: whether coordinates are fractions of the extents.
    read: "normalized" for integers as fractions of their largest value."""

    address: tuple[AddressMode, ...] = ("clamp",)
    filter: Filter = "point"
    normalized: bool = False
    read: Read = "element"

    @property
    def result(self) -> Scalar:
        """The type of a component of a fetch."""
        if self.element.is_float or self.read == "normalized":
            return F32
        return I32 if self.element.kind == "int" else U32
