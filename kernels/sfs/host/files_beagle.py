"""Reader of Beagle genotype likelihoods: marker, two alleles, three likelihoods per individual."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from ...family import InputError
from ...files import Input, excerpt
from ...files.pieces import Bytes, Piece, read_pieces
from ...files.text_loops import first_newline, whole_lines
from .files_beagle_scan import AT, END, FULL, LINES, NAMES, SITES, STOPPED, scan_markers
from .problem import Floats
from .sites import SECTION_BYTES, SectionReader, SiteCounts, Sites, batch_size, check_likelihoods, position


def sections(source: Input) -> Iterator[SectionReader]:
    """Yield the sections of a file, at least one. The second allele is the minor one. Raise InputError if the file is malformed."""
    path = source.path
    columns = len(next(source.lines(), (1, b""))[1].split())
    individuals = (columns - NAMES) // 3
    if columns < NAMES + 3 or columns % 3:
        raise InputError(f"{path}:1: {columns} columns, expected marker, two alleles and three an individual")
    for piece in read_pieces(source, SECTION_BYTES, whole_lines, "a line"):
        yield partial(_read, piece, individuals, path)


def _read(piece: Piece, individuals: int, path: Path, counts: SiteCounts) -> Iterator[Sites]:
    """Yield the sites of complete lines in batches, without gaps."""
    scan = _SiteScan(piece.data, piece.lines + 2, individuals, path)
    while (stopped := scan.scan()) != END:
        if stopped == FULL:
            yield scan.sites()
            scan = scan.following()
        else:
            scan.take_line()
    if scan.count or piece.last:
        yield scan.sites()


class _SiteScan:
    """Sites of a piece. first: number of its first line."""

    def __init__(self, data: Bytes, first: int, individuals: int, path: Path, at: int = 0, lines: int = 0) -> None:
        self.data, self.first, self.individuals, self.path = data, first, individuals, path
        self.most = batch_size(individuals)
        self.likelihoods = np.empty((self.most, individuals, 3))
        self.markers, self.lines = np.empty((self.most, 2), np.int64), np.empty(self.most, np.int64)
        self.state = np.array([at, lines, 0, 0])

    def following(self) -> _SiteScan:
        """Return the scan of the next batch."""
        return _SiteScan(self.data, self.first, self.individuals, self.path, *self.state[[AT, LINES]].tolist())

    @property
    def count(self) -> int:
        return int(self.state[SITES])

    def scan(self) -> int:
        """Scan lines; return the reason of the stop."""
        scan_markers(
            self.data, len(self.data), self.individuals, self.most, self.likelihoods.reshape(-1), self.markers.reshape(-1),
            self.lines, self.state,
        )  # fmt: skip
        return int(self.state[STOPPED])

    def take_line(self) -> None:
        """Read the line at which the scan stopped."""
        at, line, site = self.state[:STOPPED].tolist()
        end = at + int(first_newline(self.data[at:], len(self.data) - at))
        fields, place = self.data[at:end].tobytes().split(), f"{self.path}:{self.first + line}"
        columns = NAMES + 3 * self.individuals
        try:
            if len(fields) != columns:
                raise InputError(f"{place}: {len(fields)} columns, expected {columns} like the first line")
            self.likelihoods[site] = _numbers(fields[NAMES:], place).reshape(-1, 3)
        except InputError:
            self.sites()  # raises errors of earlier lines first
            raise
        self.lines[site] = line
        self.state[:STOPPED] = end + 1, line + 1, site + 1

    def sites(self) -> Sites:
        """Return the sites of this batch."""
        likelihoods, lines = self.likelihoods[: self.count], self.lines + self.first
        markers = [self.data[a:b].tobytes() for a, b in self.markers[: self.count].tolist()]
        places = [_position(marker, f"{self.path}:{lines[at]}") for at, marker in enumerate(markers)]
        check_likelihoods(self.path, likelihoods, lambda site: f"line {lines[site]}")
        positions = np.array([position for _, position in places], np.int64)
        return Sites(likelihoods, [chromosome for chromosome, _ in places], positions, np.zeros(self.count))


def _numbers(fields: list[bytes], place: str) -> Floats:
    try:
        return np.array(fields, np.float64)
    except ValueError:
        pass
    for field in fields:
        try:
            float(field)
        except ValueError:
            raise InputError(f"{place}: a likelihood is a number, not {excerpt(field)}") from None
    raise InputError(f"{place}: a likelihood is a number")


def _position(marker: bytes, place: str) -> tuple[str, int]:
    """Return chromosome and position of a marker CHROM_POS or CHROM:POS; (marker, 0) for other markers."""
    try:
        name = marker.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{place}: the marker {excerpt(marker)} is not UTF-8") from None
    if not name.isprintable():
        raise InputError(f"{place}: the marker {excerpt(marker)} is not printable")
    for separator in "_:":
        chromosome, found_separator, last = name.rpartition(separator)
        if found_separator and last.isdigit():
            at = position(last.encode())
            if at is None:
                raise InputError(f"{place}: {excerpt(marker)}: expected a position of at most 18 digits 0 to 9")
            return chromosome, at
    return name, 0
