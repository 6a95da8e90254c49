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
    parts: tuple[tuple[str, tuple[str, ...], Value], ...]

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
        parts = [[name, path, type_text(part)] for name, path, part in type.parts]
        return [type.name, isinstance(type, RecordArray), parts]
    return None if type is None else type_text(type)


def _decoded(found: Any) -> Value | Array | Record | None:
    if isinstance(found, list):
        name, array, parts = found
        found = tuple((part, tuple(path), type_of(text)) for part, path, text in parts)
        return (RecordArray if array else Record)(name, found)
    return None if found is None else type_of(found)


def type_text(type: Value | Array) -> str:
    """`f32`, `int4`, or `global f32` for an array whose length the launch knows."""
    return f"{type.space} {type.element}" if isinstance(type, Array) else str(type)


def type_of(text: str) -> Value | Array:
    """The type that `type_text` wrote."""
    space, _, element = text.rpartition(" ")
    found = SCALARS.get(element) or VECTORS[element]
    return Array(found, None, space) if space else found  # type: ignore[arg-type]
