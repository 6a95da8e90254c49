"""A kernel's parameters as its annotations say, and how types are written as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..language.types import SCALARS, VECTORS, Array, Value


@dataclass(frozen=True)
class Record:
    """A tuple or a struct that is given by value. parts: the program's own parameters for it, with the fields and items
    that lead there and their types."""

    name: str
    components: tuple[tuple[str, tuple[str, ...], Value], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RecordArray(Record):
    """A global array of structs: each part is an array of numbers."""


@dataclass(frozen=True)
class Parameter:
    """One parameter. type: None for Const. real: whether Real stands in its annotation; `type` has f32 there then."""

    type: Value | Array | Record | None
    real: bool = False


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, by name."""

    parameters: Mapping[str, Parameter]

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps({name: [_encoded(p.type), p.real] for name, p in self.parameters.items()}).encode()

    @staticmethod
    def decode(data: bytes) -> Signature:
        """What `encode` wrote."""
        content: dict[str, Any] = json.loads(data)
        return Signature({name: Parameter(_decoded(type), real) for name, (type, real) in content.items()})


def _encoded(type: Value | Array | Record | None) -> Any:
    if isinstance(type, Record):
        components = [[name, path, type_text(component)] for name, path, component in type.components]
        return [type.name, isinstance(type, RecordArray), components]
    return None if type is None else type_text(type)


def _decoded(encoded: Any) -> Value | Array | Record | None:
    if isinstance(encoded, list):
        name, array, components = encoded
        encoded = tuple((component, tuple(path), type_of(text)) for component, path, text in components)
        return (RecordArray if array else Record)(name, encoded)
    return None if encoded is None else type_of(encoded)


def type_text(type: Value | Array) -> str:
    """`f32`, `int4`, or `global f32` for an array whose length the launch knows."""
    return f"{type.space} {type.element}" if isinstance(type, Array) else str(type)


def type_of(text: str) -> Value | Array:
    """The type that `type_text` wrote."""
    space, _, element = text.rpartition(" ")
    element_type = SCALARS.get(element) or VECTORS[element]
    return Array(element_type, None, space) if space else element_type  # type: ignore[arg-type]
