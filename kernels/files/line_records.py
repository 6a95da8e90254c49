"""A file of records of so many lines each, in pieces of whole records; newlines are counted by threads of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..pipeline import Flow, workers_for
from .inputs import Input
from .piecewise import Bytes, Piece
from .text_loops import after_newline, newlines

ROOM = 1 << 16
"""Bytes in front of a chunk: the end of the chunk before it, which is a part of a record, is put there if it fits."""
COUNTERS = 2
"""Threads that count at most."""


class _Chunk(NamedTuple):
    """buffer: bytes of the file behind ROOM others. newlines: of them. part: as of `Piece`."""

    buffer: Bytes
    newlines: int
    part: float | None


def line_records(file: Input, size: int, lines: int) -> Flow[Piece]:
    """A file of which nothing is read yet, about `size` bytes at a time, one piece at least; a record has so many lines.

    Raises InputError for a record that does not fit into `file.longest`.
    """
    size = min(size, file.longest)

    def counted(buffer: Bytes) -> _Chunk:
        return _Chunk(buffer, int(newlines(buffer[ROOM:], len(buffer) - ROOM)), file.part)

    chunks = Flow(file.chunks(size, ROOM)).each(counted, workers_for(COUNTERS))
    return chunks.through(lambda some: _pieces(some, file, lines))


def _pieces(chunks: Iterator[_Chunk], file: Input, lines: int) -> Iterator[Piece]:
    rest: list[Bytes] = []  # of records that are not whole yet
    before, held = 0, 0  # newlines of the file before the rest, and of it
    for chunk in chunks:
        found = held + chunk.newlines
        whole = found - found % lines
        if not whole:
            rest, held = [*rest, chunk.buffer[ROOM:]], found
            if _length(rest) > file.longest:
                raise file.too_long("a record")
            continue
        data = _behind(rest, chunk.buffer)
        length = int(after_newline(data, len(data), found - whole))
        yield Piece(data[:length], before, whole, False, chunk.part)
        before, held, rest = before + whole, found - whole, [data[length:].copy()]
        del data, chunk  # or they would live until the next ones are made
    if before == 0 or _length(rest):
        yield Piece(np.concatenate([np.empty(0, np.uint8), *rest]), before, -1, True, file.part)


def _length(parts: list[Bytes]) -> int:
    return sum(len(part) for part in parts)


def _behind(rest: list[Bytes], buffer: Bytes) -> Bytes:
    """The rest and the bytes of a buffer, one after the other."""
    length = _length(rest)
    if length > ROOM:
        return np.concatenate([*rest, buffer[ROOM:]])
    at = ROOM - length
    for part in rest:
        buffer[at : at + len(part)] = part
        at += len(part)
    return buffer[ROOM - length :]
