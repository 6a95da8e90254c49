"""Digest of a program, independent of its source files and lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from . import nodes as ir

_IGNORED = frozenset({"span", "site", "host"})


def fingerprint(program: ir.Program) -> str:
    """Return a digest that is equal for programs with equal trees. Spans and sites are ignored."""
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
        yield value.hex()  # -0.0 differs from 0.0
    else:
        yield repr(value)  # True is not 1, nor is "1"


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in _IGNORED)
