"""A kernel's parameters from its annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..language.types import Array, Value

if TYPE_CHECKING:
    from ..ir import nodes as ir


@dataclass(frozen=True)
class RecordParameter:
    """A tuple or struct parameter passed by value. components: the program's own parameters for it, each with the path
    of fields and items, and its type."""

    name: str
    components: tuple[tuple[str, tuple[str, ...], Value], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RecordArrayParameter(RecordParameter):
    """A global array of structs: each component is an array of numbers."""


@dataclass(frozen=True)
class KernelParameter:
    """One parameter.

    type: None for Const. real: whether its annotation uses Real; `type` has f32 in its place. accepts: for a pointer, the element
    types of contiguous arrays in whose memory the program accesses its own elements: names of scalars, and V16 for structs of 16
    bytes; empty for an array of exactly its type.
    """

    type: Value | Array | RecordParameter | None
    real: bool = False
    accepts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, by name."""

    parameters: Mapping[str, KernelParameter]

    @staticmethod
    def of_program(program: ir.Program) -> Signature:
        """Return the parameters of a program whose types are those of the launch's arguments."""
        return Signature({param.name: KernelParameter(param.type) for param in program.kernel.params})
