"""What tells two programs apart, whatever files and lines they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from . import nodes as ir

_PLACES = ("span", "site")


def fingerprint(program: ir.Program) -> str:
    """A digest: equal for programs that do the same in the same words, but for their spans."""
    return hashlib.sha256("\0".join(_parts(program)).encode()).hexdigest()


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        yield f"({len(value)}"
        for item in value:
            yield from _parts(item)
    elif is_dataclass(value):
        yield type(value).__name__
        for name in _names(value.__class__):
            yield from _parts(getattr(value, name))
    elif isinstance(value, float):
        yield value.hex()  # tells -0.0 from 0.0
    else:
        yield repr(value)  # True is not 1, nor is "1"


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in _PLACES)
