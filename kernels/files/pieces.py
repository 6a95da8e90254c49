"""Pieces of complete records of a file, each in its own array, so that reading and processing overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .inputs import Input

if TYPE_CHECKING:  # commands without arrays import this module too
    import numpy as np
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"


class Piece(NamedTuple):
    """Complete records of a file.

    data: complete records, or the rest of the file in the last piece. lines: newlines of the file before it. newlines: newlines of
    the piece, -1 (not counted) for the last one. last: whether the file ends here. fraction: fraction of the file already read,
    None if its size is unknown.
    """

    data: Bytes
    lines: int
    newlines: int
    last: bool
    fraction: float | None


def is_blank(data: Bytes) -> bool:
    """Return whether all lines are blank."""
    return not data.tobytes().strip(b"\r\n")


def read_pieces(
    file: Input, size: int, whole: Callable[[Bytes], tuple[int, int]], what: str = "a record"
) -> Iterator[Piece]:
    """Yield the file in pieces of about `size` bytes, at least one.

    whole: returns the length and the number of newlines of the complete records at the start of the given bytes. what: name of a
    record in the error message if one exceeds `file.longest`; {line} is replaced by its line number. Raise InputError then.
    """
    import numpy as np

    size = min(size, file.longest)
    rest, lines = np.empty(0, np.uint8), 0
    while True:
        buffer = np.empty(min(max(size, 2 * len(rest)), max(file.longest, len(rest) + 1)), np.uint8)
        buffer[: len(rest)] = rest
        filled = len(rest) + file.fill(buffer[len(rest) :])
        if filled < len(buffer):
            yield Piece(buffer[:filled], lines, -1, True, file.fraction)
            return
        length, newlines = whole(buffer)
        if length:
            yield Piece(buffer[:length], lines, newlines, False, file.fraction)
        elif filled > file.longest:
            raise file.too_long(what.format(line=lines + 1))
        rest = buffer[length:].copy()
        lines += newlines
