"""Files with a fixed number of lines per record, read in pieces of complete records; threads count the newlines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..pipeline import Flow, workers_for
from .inputs import Input
from .pieces import Bytes, Piece
from .text_loops import after_newline, newlines

MARGIN = 1 << 16
"""Margin of a chunk, in bytes: the incomplete record of the preceding chunk is copied there if it fits."""
MAX_COUNTERS = 2
"""Maximum number of counting threads."""


class _Chunk(NamedTuple):
    """A chunk of a file of lines.

    buffer: bytes of the file after MARGIN unset ones. newlines: their number. fraction: see `Piece`.
    """

    buffer: Bytes
    newlines: int
    fraction: float | None


def line_records(file: Input, size: int, lines: int) -> Flow[Piece]:
    """Return a flow of pieces of about `size` bytes of an unread file, at least one piece. lines: lines per record.

    Raise InputError if a record exceeds `file.longest`.
    """
    size = min(size, file.longest)

    def counted(buffer: Bytes) -> _Chunk:
        return _Chunk(buffer, int(newlines(buffer[MARGIN:], len(buffer) - MARGIN)), file.fraction)

    chunks = Flow(file.chunks(size, MARGIN)).map(counted, workers_for(MAX_COUNTERS))
    return chunks.through(lambda some: _pieces(some, file, lines))


def _pieces(chunks: Iterator[_Chunk], file: Input, lines: int) -> Iterator[Piece]:
    rest: list[Bytes] = []  # bytes of an incomplete record
    before, pending = 0, 0  # newlines of the file before the rest, newlines of the rest
    for chunk in chunks:
        total = pending + chunk.newlines
        whole = total - total % lines
        if not whole:
            rest, pending = [*rest, chunk.buffer[MARGIN:]], total
            if _length(rest) > file.longest:
                raise file.too_long("a record")
            continue
        data = _append(rest, chunk.buffer)
        length = int(after_newline(data, len(data), total - whole))
        yield Piece(data[:length], before, whole, False, chunk.fraction)
        before, pending, rest = before + whole, total - whole, [data[length:].copy()]
        del data, chunk  # otherwise they would live until the next iteration
    if before == 0 or _length(rest):
        yield Piece(np.concatenate([np.empty(0, np.uint8), *rest]), before, -1, True, file.fraction)


def _length(arrays: list[Bytes]) -> int:
    return sum(len(array) for array in arrays)


def _append(rest: list[Bytes], buffer: Bytes) -> Bytes:
    """Return the rest followed by the bytes of a buffer."""
    length = _length(rest)
    if length > MARGIN:
        return np.concatenate([*rest, buffer[MARGIN:]])
    at = MARGIN - length
    for array in rest:
        buffer[at : at + len(array)] = array
        at += len(array)
    return buffer[MARGIN - length :]
