"""The host's view of a kernel: parameters, symbols, and the variables outside of functions. It is data, cached on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..frontend.signature import Signature
from ..ir.names import components
from ..language.tensor_maps import TensorMapForm
from ..language.textures import SurfaceForm
from ..language.types import Scalar
from ..llvmir.debug import PointerTo, Record, SourceType, source_leaves, source_size


@dataclass(frozen=True)
class Alias:
    """A pointer parameter into the memory of another one: its name, None for a null pointer, and an offset in bytes."""

    parameter: str | None
    offset: int = 0


TENSOR_MAP = "CUtensorMap_st"
"""The type of a tensor map in C++."""
LaunchForm = SurfaceForm | TensorMapForm
"""The form of an object of a launch."""


def is_tensor_map(type: SourceType) -> bool:
    return isinstance(type, Record) and type.name == TENSOR_MAP


@dataclass(frozen=True)
class HostParameter:
    """A parameter of a kernel."""

    name: str
    type: SourceType

    @property
    def is_address(self) -> bool:
        """Whether it is a pointer or a reference."""
        return isinstance(self.type, PointerTo)

    @property
    def pointers(self) -> Iterator[HostParameter]:
        """The pointers in it, each as a parameter: itself, or those in a struct passed by value."""
        for path, leaf, _ in source_leaves(self.type):
            if isinstance(leaf, PointerTo):
                yield HostParameter(components(self.name, path), leaf)

    @property
    def reference(self) -> bool:
        return isinstance(self.type, PointerTo) and self.type.reference

    @cached_property
    def padding(self) -> frozenset[int]:
        """Offsets of the bytes without a member in the struct that it points to."""
        if not isinstance(self.type, PointerTo) or not isinstance(self.type.to, Record):
            return frozenset()
        used = {at + byte for _, leaf, at in source_leaves(self.type.to) for byte in range(source_size(leaf))}
        return frozenset(range(source_size(self.type.to))) - used


@dataclass(frozen=True)
class Declaration:
    """A kernel's parameters in order, its symbol in compiled code, and the blocks of a cluster by axis."""

    symbol: str
    parameters: tuple[HostParameter, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True)
class OutsideVariable:
    """A `__constant__` or `__device__` variable. element: of its array in the program. contents: its initial bytes."""

    symbol: str
    element: Scalar
    contents: bytes


@dataclass(frozen=True)
class HostInterface:
    """The signature of a kernel, and the accessed variables outside of functions, by name."""

    signature: Signature
    constants: Mapping[str, OutsideVariable]
    variables: Mapping[str, OutsideVariable]
