"""The digest of a program, which does not depend on the files and lines it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from . import nodes as ir

_IGNORED = ("span", "site")


def fingerprint(program: ir.Program) -> str:
    """A digest that is equal for programs whose trees are equal apart from spans and sites."""
    return hashlib.sha256("\0".join(_tokens(program)).encode()).hexdigest()


def _tokens(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        yield f"({len(value)}"
        for item in value:
            yield from _tokens(item)
    elif is_dataclass(value):
        yield type(value).__name__
        for name in _names(value.__class__):
            yield from _tokens(getattr(value, name))
    elif isinstance(value, float):
        yield value.hex()  # tells -0.0 from 0.0
    else:
        yield repr(value)  # True is not 1, nor is "1"


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in _IGNORED)
