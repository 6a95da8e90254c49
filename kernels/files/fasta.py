"""Records of FASTA, a bounded one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..family import InputError
from .inputs import Input
from .text import shown


class Record(NamedTuple):
    """line: of its header, from 1. name: all that stands after '>'. sequence: its lines joined."""

    line: int
    name: str
    sequence: bytes


def records(source: Input) -> Iterator[Record]:
    """The records of a file; blank lines and those that begin with '#' are skipped. Raises InputError."""
    begun: tuple[int, str] | None = None
    parts: list[bytes] = []
    size = 0
    for number, line in source.lines():
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        if not text.isascii():
            raise InputError(f"{source.path}:{number}: {shown(text)}: expected ASCII")
        if text.startswith(b">"):
            if begun:
                yield Record(*begun, b"".join(parts))
            begun, parts, size = (number, text[1:].decode("ascii")), [], 0
            continue
        if begun is None:
            raise InputError(f"{source.path}:{number}: {shown(text)}, expected '>' at the beginning of a record")
        parts.append(text)
        size += len(text) + 64  # and what a small object takes
        if size > source.longest:
            raise source.too_long(f"the record at line {begun[0]}")
    if begun:
        yield Record(*begun, b"".join(parts))
