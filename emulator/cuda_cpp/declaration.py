"""The host's view of a kernel: parameters, symbols, and the variables outside of functions. It is data, cached on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .. import disk_cache
from ..frontend.signature import Signature, type_of, type_text
from ..ir.names import components
from ..language.types import Scalar
from ..llvmir.debug import ArrayOf, PointerTo, Record, SourceType, source_leaves


@dataclass(frozen=True)
class Alias:
    """A pointer parameter into the memory of another one: its name, None for a null pointer, and an offset in bytes."""

    parameter: str | None
    offset: int = 0


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


@dataclass(frozen=True)
class Declaration:
    """A kernel's parameters in order, and its symbol in compiled code."""

    symbol: str
    parameters: tuple[HostParameter, ...]

    def encode(self) -> bytes:
        return json.dumps([self.symbol, [[p.name, _encoded(p.type)] for p in self.parameters]]).encode()

    @staticmethod
    def decode(data: bytes) -> Declaration:
        symbol, parameters = json.loads(data)
        return Declaration(symbol, tuple(HostParameter(name, _decoded(type)) for name, type in parameters))


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

    def encode(self) -> bytes:
        groups = [
            {name: [v.symbol, type_text(v.element), v.contents.hex()] for name, v in group.items()}
            for group in (self.constants, self.variables)
        ]
        return json.dumps([self.signature.encode().decode(), *groups]).encode()

    @staticmethod
    def decode(data: bytes) -> HostInterface:
        signature, *groups = json.loads(data)
        constants, variables = (
            {name: OutsideVariable(symbol, _value_type(text), bytes.fromhex(contents)) for name, (symbol, text, contents) in group.items()}
            for group in groups
        )  # fmt: skip
        return HostInterface(Signature.decode(signature.encode()), constants, variables)


class _Encoded(Protocol):
    def encode(self) -> bytes: ...


Content = TypeVar("Content", bound=_Encoded)


def cached(digest: str, decode: Callable[[bytes], Content], make: Callable[[], Content]) -> Content:
    """Return data about a text with this digest, from the disk cache if it has them."""
    result = disk_cache.load(f"{digest}.json", decode)
    if result is None:
        result = make()
        disk_cache.save(f"{digest}.json", result.encode())
    return result


def _encoded(type: SourceType | None) -> Any:
    match type:
        case PointerTo(to, reference):
            return ["*", _encoded(to), reference]
        case ArrayOf(element, count):
            return ["[]", _encoded(element), count]
        case Record(name, size, fields):
            return ["struct", name, size, [[own, _encoded(inner), offset] for own, inner, offset in fields]]
    return None if type is None else str(type)


def _decoded(data: Any) -> Any:
    match data:
        case "*", to, reference:
            return PointerTo(_decoded(to), reference)
        case "[]", element, count:
            return ArrayOf(_decoded(element), count)
        case "struct", name, size, fields:
            return Record(name, size, tuple((own, _decoded(inner), offset) for own, inner, offset in fields))
    return None if data is None else type_of(data)


def _value_type(text: str) -> Scalar:
    type = type_of(text)
    assert isinstance(type, Scalar)
    return type
