"""A file in pieces of whole records, each in an array of its own, so that one can be read while others are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .inputs import Input

if TYPE_CHECKING:  # the door is opened by commands that need no arrays too
    import numpy as np
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"


class Piece(NamedTuple):
    """data: whole records, or of the last piece all that is left. lines: newlines of the file before it. newlines: of
    it; -1 of the last piece, which nobody counted. last: whether
    the file ends here. part: of the file that is read, from 0 to 1; None where its size is not known."""

    data: Bytes
    lines: int
    newlines: int
    last: bool
    part: float | None


def pieces(
    file: Input, size: int, whole: Callable[[Bytes], tuple[int, int]], what: str = "a record"
) -> Iterator[Piece]:
    """The file, about `size` bytes at a time, one piece at least.

    whole: of bytes that begin with a record the length of the records that are whole, and how many newlines these have.
    what: is told to be too long where it does not fit into `file.longest`; {line} in it is where it begins. Raises InputError.
    """
    import numpy as np

    size = min(size, file.longest)
    rest, lines = np.empty(0, np.uint8), 0
    while True:
        buffer = np.empty(min(max(size, 2 * len(rest)), max(file.longest, len(rest) + 1)), np.uint8)
        buffer[: len(rest)] = rest
        filled = len(rest) + file.fill(buffer[len(rest) :])
        if filled < len(buffer):
            yield Piece(buffer[:filled], lines, -1, True, file.part)
            return
        length, newlines = whole(buffer)
        if length:
            yield Piece(buffer[:length], lines, newlines, False, file.part)
        elif filled > file.longest:
            raise file.too_long(what.format(line=lines + 1))
        rest = buffer[length:].copy()
        lines += newlines
