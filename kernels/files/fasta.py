"""FASTA parser: native functions extract names and sequences from pieces of a file."""

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
from .pieces import Bytes, Piece, read_pieces
from .text import excerpt
from .text_loops import copied, line_end, newlines

PIECE = 1 << 23
"""Bytes per read."""
GOOD, NOT_ASCII, NO_RECORD = 0, 1, 2
"""Status of a scan: all records read; a line with non-ASCII bytes; a line before the first record."""
MARK, COMMENT = ord(">"), ord("#")


@dataclass(frozen=True)
class Records:
    """Consecutive records. data: name and sequence of each record, without '>' and line ends. bounds: int64[2 records + 1], start of
    each name and each sequence. lines: line number of each header, from 1. fraction: see `Piece`. mistake: error after the last
    record."""

    data: Bytes
    bounds: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    fraction: float | None
    mistake: InputError | None

    def __len__(self) -> int:
        return len(self.lines)

    def name(self, record: int) -> str:
        return self.data[self.bounds[2 * record] : self.bounds[2 * record + 1]].tobytes().decode("ascii")

    def sequence(self, record: int) -> bytes:
        return self.data[self.bounds[2 * record + 1] : self.bounds[2 * record + 2]].tobytes()

    def sequences(self) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """Return the concatenated sequences and their offsets."""
        lengths = np.diff(self.bounds)[1::2]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        to = np.empty(offsets[-1], np.uint8)
        join_sequences(self.data, self.bounds, len(self), to)
        return to, offsets


def read_records(source: Input, size: int = PIECE) -> Iterator[Records]:
    """Yield the records of a file. Blank lines and lines starting with '#' are skipped. Raise InputError if a line is malformed."""
    for piece in record_pieces(source, size):
        block = parse_piece(piece, str(source.path))
        yield block
        if block.mistake:
            raise block.mistake


def record_pieces(source: Input, size: int) -> Iterator[Piece]:
    """Yield the file in pieces of complete records."""
    return read_pieces(source, size, _whole_records, "the record at line {line}")


def parse_piece(piece: Piece, path: str) -> Records:
    """Return the records of a piece. path: name of the file in messages."""
    data = piece.data
    most = int(count_headers(data, len(data)))
    to, bounds, lines = np.empty(len(data), np.uint8), np.zeros(2 * most + 2, np.int64), np.empty(most, np.int64)
    state = np.zeros(3, np.int64)
    status = scan_records(data, len(data), to, bounds, lines, state)
    count, line, at = state.tolist()
    mistake = None
    if status != GOOD:
        text = data[at : at + 256].tobytes().split(b"\n")[0].strip()
        expected = ": expected ASCII" if status == NOT_ASCII else ", expected '>' at the beginning of a record"
        mistake = InputError(f"{path}:{piece.lines + line + 1}: {excerpt(text)}{expected}")
    return Records(to, bounds[: 2 * count + 1], lines[:count] + piece.lines + 1, piece.fraction, mistake)


def _whole_records(data: Bytes) -> tuple[int, int]:
    """Return the length of the complete records and their number of newlines."""
    length = int(last_header(data, len(data)))
    return length, int(newlines(data, length))


@st.device
def _is_blank(letter: u8) -> bool:
    """Return whether Python's strip() removes the character."""
    return letter == 32 or 9 <= letter <= 13


@st.device
def _first_byte(data: Global[u8], at: i64, end: i64) -> i64:
    """Return the first non-blank byte of a line."""
    while at < end and _is_blank(data[at]):
        at += 1
    return at


@native
def count_headers(data: Global[u8], length: i64) -> i64:
    count = i64(0)
    at = i64(0)
    while at < length:
        end = line_end(data, at, length)
        first = _first_byte(data, at, end)
        count += i64(first < end and data[first] == MARK)
        at = end + 1
    return count


@native
def last_header(data: Global[u8], length: i64) -> i64:
    """Return the start of the last header line, 0 if it is the first line or does not exist."""
    end = length
    while end > 0:
        at = end
        while at > 0 and data[at - 1] != 10:
            at -= 1
        first = _first_byte(data, at, end)
        if first < end and data[first] == MARK:
            return at
        end = at - 1
    return i64(0)


@native
def scan_records(
    data: Global[u8], length: i64, to: Global[u8], bounds: Global[i64], lines: Global[i64], state: Global[i64]
) -> i64:
    """Parse records; return the status. to, bounds, lines: see `Records`, lines from 0. found: number of complete
    records; line and byte of the end."""
    at = i64(0)
    line = i64(0)
    record = i64(-1)
    put = i64(0)
    status = i64(GOOD)
    while at < length and status == GOOD:
        end = line_end(data, at, length)
        first = _first_byte(data, at, end)
        last = end
        while last > first and _is_blank(data[last - 1]):
            last -= 1
        if first < last and data[first] != COMMENT:
            high = u8(0)
            for i in range(first, last):
                high = high | data[i]
            if high >= 128:
                status = i64(NOT_ASCII)
            elif data[first] == MARK:
                record += 1
                lines[record] = line
                bounds[2 * record] = put
                put = copied(data, first + 1, last, to, put)
                bounds[2 * record + 1] = put
            elif record < 0:
                status = i64(NO_RECORD)
            else:
                put = copied(data, first, last, to, put)
        if status == GOOD:
            at = end + 1
            line += 1
    whole = record + 1 if status == GOOD else max(record, i64(0))
    if status == GOOD:
        bounds[2 * whole] = put
    state[0] = whole
    state[1] = line
    state[2] = at
    return status


@native
def join_sequences(data: Global[u8], bounds: Global[i64], count: i64, to: Global[u8]) -> None:
    """Concatenate the sequences of the records."""
    put = i64(0)
    for record in range(count):
        put = copied(data, bounds[2 * record + 1], bounds[2 * record + 2], to, put)
