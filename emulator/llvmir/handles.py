"""Handles of textures and surfaces: numbers that identify those of the launch. A handle is a parameter, or the value of a reference.
A tensor map is a parameter whose address is that of no memory.

A kernel without its textures has placeholders of the smallest size, and is not launched.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from ..ir import nodes as ir
from ..language.tensor_maps import UNIT, Fill, Swizzle, TensorMapForm
from ..language.textures import SurfaceForm, TextureForm
from ..language.types import I64, U8, U32, Array, Scalar
from ..span import Span
from .arithmetic import constant
from .pointers import Pointer
from .types import UnsupportedError

FIRST_HANDLE = 0x7E00_0000_0000
_USES = re.compile(r'@"?simtbed\.(?:fetch|surface)\.[^(]*\(i64 (?:noundef )?%"?([\w.:@]+)')


def handles_in(module: str) -> set[str]:
    """Return the names of the values of a module's text that are handles of textures or surfaces."""
    return set(_USES.findall(module))


@dataclass
class KernelMap:
    """What the text of a kernel states of a tensor map that it makes; the rest is in memory. array: of the tensor. extents: of the box."""

    array: str = ""
    element: Scalar = U8
    type: Scalar = U8
    extents: dict[int, int] = field(default_factory=dict)
    swizzle: Swizzle = 0
    fill: Fill = "zero"

    def form(self, rank: int) -> TensorMapForm:
        """Return its form, with placeholders of the sizes and strides. Raises UnsupportedError."""
        box = tuple(self.extents.get(d, 0) for d in range(rank))
        if self.element.size != self.type.size or 0 in box:
            raise UnsupportedError("a tensor map of another element than its tensor's is not supported")
        return TensorMapForm(self.type, (1,) * rank, (UNIT,) * (rank - 1), box, self.swizzle, self.fill)


@dataclass
class Textures:
    """forms: of textures and surfaces by name; None for placeholders. arrays: those that the program accesses. kernel_maps: tensor maps
    that the kernel makes, by address."""

    forms: Mapping[str, SurfaceForm | TensorMapForm | None]
    names: list[str] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    kernel_maps: dict[Hashable, KernelMap] = field(default_factory=dict)

    def handle(self, name: str, span: Span) -> ir.Const:
        """Return the handle of a parameter or reference."""
        if name not in self.names:
            self.names.append(name)
        return constant(FIRST_HANDLE + self.names.index(name), I64, span)

    def access(self, handle: ir.Expr, kind: type[SurfaceForm], placeholder: SurfaceForm) -> tuple[str, SurfaceForm]:
        """Return the name and the form of an accessed texture or surface."""
        number = int(handle.value) - FIRST_HANDLE if isinstance(handle, ir.Const) else -1
        word = "texture" if kind is TextureForm else "surface"
        if not 0 <= number < len(self.names):
            raise UnsupportedError(
                f"a {word} that is chosen at run time, or is not a parameter or a reference, is not supported"
            )
        name = self.names[number]
        form = self.forms.get(name)
        if form is None:
            form = placeholder
        elif not isinstance(form, SurfaceForm) or type(form) is not kind:
            raise UnsupportedError(f"{name} is a {word} of the kernel: give st.{word.capitalize()}(array)")
        space = "texture" if kind is TextureForm else "global"
        self.arrays[name] = Array(form.element, None, space)  # type: ignore[arg-type]
        return name, form

    def tensor(self, pointer: Pointer, rank: int) -> tuple[str, TensorMapForm]:
        """Return the name and the form of the tensor map at an address."""
        name = pointer.memories[0].name
        if len(pointer.memories) > 1 or name not in self.forms:
            raise UnsupportedError(
                "a tensor map that is no parameter of its own, or is chosen at run time, is not supported"
            )
        form = self.forms[name] or TensorMapForm(U32, (16,) * rank, (16,) * (rank - 1), (16,) * rank)
        if not isinstance(form, TensorMapForm):
            raise UnsupportedError(f"{name} is a tensor map of the kernel: give st.tensor_map(array, box=...)")
        if len(form.sizes) != rank:
            raise UnsupportedError(f"{name} is copied as a tensor of {rank} dimensions, it has {len(form.sizes)}")
        self.arrays[name] = Array(form.element, None, "global")
        return name, form
