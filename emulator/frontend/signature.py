"""A kernel's parameters as its annotations say, and how types are written as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..language.types import SCALARS, VECTORS, Array, Value


@dataclass(frozen=True)
class Parameter:
    """One parameter. type: None for Const. real: whether Real stands in its annotation; `type` has f32 there then."""

    type: Value | Array | None
    real: bool = False


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, by name."""

    parameters: Mapping[str, Parameter]

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps(
            {name: [None if p.type is None else type_text(p.type), p.real] for name, p in self.parameters.items()}
        ).encode()

    @staticmethod
    def decode(data: bytes) -> Signature:
        """What `encode` wrote."""
        content: dict[str, Any] = json.loads(data)
        return Signature(
            {name: Parameter(None if text is None else type_of(text), real) for name, (text, real) in content.items()}
        )


def type_text(type: Value | Array) -> str:
    """`f32`, `int4`, or `global f32` for an array whose length the launch knows."""
    return f"{type.space} {type.element}" if isinstance(type, Array) else str(type)


def type_of(text: str) -> Value | Array:
    """The type that `type_text` wrote."""
    space, _, element = text.rpartition(" ")
    found = SCALARS.get(element) or VECTORS[element]
    return Array(found, None, space) if space else found  # type: ignore[arg-type]
