"""A kernel's parameters from its annotations, and the text form of types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..language.types import SCALARS, VECTORS, Array, Value

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

    def encode(self) -> bytes:
        """Return the signature as JSON."""
        return json.dumps({name: [_encoded(p.type), p.real, p.accepts] for name, p in self.parameters.items()}).encode()

    @staticmethod
    def decode(data: bytes) -> Signature:
        """Return the signature written by `encode`."""
        content: dict[str, Any] = json.loads(data)
        return Signature(
            {
                name: KernelParameter(_decoded(type), real, tuple(accepts))
                for name, (type, real, accepts) in content.items()
            }
        )


def _encoded(type: Value | Array | RecordParameter | None) -> Any:
    if isinstance(type, RecordParameter):
        components = [[name, path, type_text(component)] for name, path, component in type.components]
        return [type.name, isinstance(type, RecordArrayParameter), components]
    return None if type is None else type_text(type)


def _decoded(encoded: Any) -> Value | Array | RecordParameter | None:
    if isinstance(encoded, list):
        name, array, components = encoded
        encoded = tuple((component, tuple(path), type_of(text)) for component, path, text in components)
        return (RecordArrayParameter if array else RecordParameter)(name, encoded)
    return None if encoded is None else type_of(encoded)


def type_text(type: Value | Array) -> str:
    """Return `f32`, `int4`, or `global f32` for an array of a length known at launch."""
    return f"{type.space} {type.element}" if isinstance(type, Array) else str(type)


def type_of(text: str) -> Value | Array:
    """Return the type written by `type_text`."""
    space, _, element = text.rpartition(" ")
    element_type = SCALARS.get(element) or VECTORS[element]
    return Array(element_type, None, space) if space else element_type  # type: ignore[arg-type]
