"""Records of FASTA, a piece of the file at a time: compiled loops take names and sequences out of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, i64, u8
from simtbed.native import native

from ..family import InputError
from .inputs import Input
from .piecewise import Bytes, Piece, pieces
from .text import shown
from .text_loops import copied, line_end, newlines

PIECE = 1 << 23
"""Bytes of a file that are read at a time."""
GOOD, NOT_ASCII, NO_RECORD = 0, 1, 2
"""How a scan ended: after the last record; at a line with bytes of no text; at one before the first record."""
MARK, COMMENT = ord(">"), ord("#")


@dataclass(frozen=True)
class Records:
    """Records that follow each other. data: without marks and line ends the name of each, all that stands after '>', then
    its sequence; bounds: int64[2 records + 1], where each of these begins. lines: of their headers, from 1. part: as of
    `Piece`. mistake: what is wrong behind them."""

    data: Bytes
    bounds: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    part: float | None
    mistake: InputError | None

    def __len__(self) -> int:
        return len(self.lines)

    def name(self, record: int) -> str:
        return self.data[self.bounds[2 * record] : self.bounds[2 * record + 1]].tobytes().decode("ascii")

    def sequence(self, record: int) -> bytes:
        return self.data[self.bounds[2 * record + 1] : self.bounds[2 * record + 2]].tobytes()

    def sequences(self) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """All sequences, one after the other, and where each begins and the last one ends."""
        lengths = np.diff(self.bounds)[1::2]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        to = np.empty(offsets[-1], np.uint8)
        join_sequences(self.data, self.bounds, len(self), to)
        return to, offsets


def records(source: Input, size: int = PIECE) -> Iterator[Records]:
    """The records of a file; blank lines and those that begin with '#' are skipped. Raises InputError."""
    for piece in record_pieces(source, size):
        found = parsed(piece, str(source.path))
        yield found
        if found.mistake:
            raise found.mistake


def record_pieces(source: Input, size: int) -> Iterator[Piece]:
    """The file in pieces of whole records."""
    return pieces(source, size, _whole_records, "the record at line {line}")


def parsed(piece: Piece, path: str) -> Records:
    """The records of a piece of the file that messages call `path`."""
    data = piece.data
    most = int(count_headers(data, len(data)))
    to, bounds, lines = np.empty(len(data), np.uint8), np.zeros(2 * most + 2, np.int64), np.empty(most, np.int64)
    found = np.zeros(3, np.int64)
    ended = scan_records(data, len(data), to, bounds, lines, found)
    count, line, at = found.tolist()
    mistake = None
    if ended != GOOD:
        text = data[at : at + 256].tobytes().split(b"\n")[0].strip()
        expected = ": expected ASCII" if ended == NOT_ASCII else ", expected '>' at the beginning of a record"
        mistake = InputError(f"{path}:{piece.lines + line + 1}: {shown(text)}{expected}")
    return Records(to, bounds[: 2 * count + 1], lines[:count] + piece.lines + 1, piece.part, mistake)


def _whole_records(data: Bytes) -> tuple[int, int]:
    """The length of the records that are whole, and their newlines."""
    length = int(last_header(data, len(data)))
    return length, int(newlines(data, length))


@st.device
def _blank(letter: u8) -> bool:
    """What Python strips."""
    return letter == 32 or 9 <= letter <= 13


@st.device
def _begin(data: Global[u8], at: i64, end: i64) -> i64:
    """The first byte of a line that is not blank."""
    while at < end and _blank(data[at]):
        at += 1
    return at


@native
def count_headers(data: Global[u8], length: i64) -> i64:
    found = i64(0)
    at = i64(0)
    while at < length:
        end = line_end(data, at, length)
        first = _begin(data, at, end)
        found += i64(first < end and data[first] == MARK)
        at = end + 1
    return found


@native
def last_header(data: Global[u8], length: i64) -> i64:
    """Where the line of the last header begins, 0 where that is the first line, or there is none."""
    end = length
    while end > 0:
        at = end
        while at > 0 and data[at - 1] != 10:
            at -= 1
        first = _begin(data, at, end)
        if first < end and data[first] == MARK:
            return at
        end = at - 1
    return i64(0)


@native
def scan_records(
    data: Global[u8], length: i64, to: Global[u8], bounds: Global[i64], lines: Global[i64], found: Global[i64]
) -> i64:
    """How it ended. to, bounds, lines: of `Records`, lines from 0. found: how many records are whole; where it ended, the
    lines before and the byte."""
    at = i64(0)
    line = i64(0)
    record = i64(-1)
    put = i64(0)
    ended = i64(GOOD)
    while at < length and ended == GOOD:
        end = line_end(data, at, length)
        first = _begin(data, at, end)
        last = end
        while last > first and _blank(data[last - 1]):
            last -= 1
        if first < last and data[first] != COMMENT:
            high = u8(0)
            for i in range(first, last):
                high = high | data[i]
            if high >= 128:
                ended = i64(NOT_ASCII)
            elif data[first] == MARK:
                record += 1
                lines[record] = line
                bounds[2 * record] = put
                put = copied(data, first + 1, last, to, put)
                bounds[2 * record + 1] = put
            elif record < 0:
                ended = i64(NO_RECORD)
            else:
                put = copied(data, first, last, to, put)
        if ended == GOOD:
            at = end + 1
            line += 1
    whole = record + 1 if ended == GOOD else max(record, i64(0))
    if ended == GOOD:
        bounds[2 * whole] = put
    found[0] = whole
    found[1] = line
    found[2] = at
    return ended


@native
def join_sequences(data: Global[u8], bounds: Global[i64], count: i64, to: Global[u8]) -> None:
    """Copy the sequences of records, one after the other."""
    put = i64(0)
    for record in range(count):
        put = copied(data, bounds[2 * record + 1], bounds[2 * record + 2], to, put)
