"""BCF reader for genotype likelihoods. Every length, type and number of a record is checked before use."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...family import InputError
from ...files import Input
from ...files.pieces import Bytes, Piece, read_pieces
from .exponentials import exponentials
from .files_bcf_scan import (
    AT,
    CONTIG,
    FINISHED,
    FLOAT,
    LENGTHS,
    PLACES,
    POSITION,
    RECORDS,
    SITES,
    STOPPED,
    TEXT,
    UNUSUAL,
    HeaderNumbers,
    RecordSites,
    scan_records,
    whole_records,
)
from .files_genotypes import END, MISSING, MISSING_REAL, Values, field_of, likelihoods, reads
from .files_vcf_header import LIKELIHOODS, LONGEST, TYPES, Header, parse
from .problem import Alleles, Counts, Floats
from .sites import SECTION_BYTES, SectionReader, SiteCounts, Sites, batch_size, check_likelihoods

MAGIC = (b"BCF\x02\x01", b"BCF\x02\x02")
FIXED = struct.Struct("<iiifII")
"""CHROM, POS from 0, length on the reference, QUAL, numbers of alleles and INFO fields, numbers of FORMAT fields and samples."""
INTEGERS: dict[int, np.dtype[np.signedinteger[Any]]] = {1: np.dtype("<i1"), 2: np.dtype("<i2"), 3: np.dtype("<i4")}
SIZES = {0: 0, 1: 1, 2: 2, 3: 4, 5: 4, 7: 1}
"""Bytes of a value by its type; 5 is a float, 7 a character."""


class _Damage(Exception):
    """An error in a record."""


class _WrongType(_Damage):
    """A field of another type than expected."""


class Site(NamedTuple):
    """A record of a BCF file.

    identifier: ID. reference, alternatives: first allele, other alleles. fields: FORMAT fields by name: type, values
    per sample, bytes.
    """

    chromosome: str
    position: int
    identifier: str
    reference: str
    alternatives: list[str]
    fields: dict[str, tuple[int, int, bytes]]


def sections(source: Input, posteriors: bool = False) -> Iterator[SectionReader]:
    """Yield the sections of a file, at least one. posteriors: whether to read allele depths and the names of sites.
    Raise InputError if the file is malformed."""
    header, whole = _header(source), _RecordCounter()
    last = whole.last
    for piece in read_pieces(source, SECTION_BYTES, whole, "a record"):
        yield partial(_read, piece, last, source.path, header, posteriors, source.longest)
        last = whole.last


def _read(
    piece: Piece,
    last: tuple[int, int],
    path: Path,
    header: Header,
    posteriors: bool,
    longest: int,
    counts: SiteCounts,
) -> Iterator[Sites]:
    """Yield the sites of a piece in batches. last: contig and position of the preceding record."""
    scan = _SiteScan(piece, last, path, header, posteriors, counts, longest)
    while (stopped := scan.scan()) != FINISHED:
        if stopped == UNUSUAL:
            scan.take_record()
        if scan.full:
            yield scan.sites()
    scan.end()
    if scan.count or piece.last:
        yield scan.sites()


class _RecordCounter:
    """Counts the complete records of consecutive pieces. last: contig and position of the last record; -1 and 0 if there is none."""

    def __init__(self) -> None:
        self.last = -1, 0

    def __call__(self, data: Bytes) -> tuple[int, int]:
        """Return the length and the number of the complete records."""
        state = np.array([0, 0, *self.last])
        whole_records(data, len(data), state)
        length, count, contig, position = state.tolist()
        self.last = contig, position
        return length, count


class _SiteScan:
    """Sites of a piece. A scan reads records of the usual form, `take_record` reads the others."""

    def __init__(
        self,
        piece: Piece,
        last: tuple[int, int],
        path: Path,
        header: Header,
        posteriors: bool,
        counts: SiteCounts,
        longest: int,
    ) -> None:
        self.path, self.header, self.counts, self.longest = path, header, counts, longest
        self.posteriors, self.reads_wanted = posteriors, posteriors and "AD" in header.formats
        self.individuals = len(header.samples)
        self.most = batch_size(self.individuals)
        self.contigs, self.names = _defined(header.contigs), _defined(header.strings)
        numbers = {name: number for number, name in header.strings.items()}
        self.enabled = not self.reads_wanted and len(numbers) == len(header.strings)
        self.phred, self.real = (numbers.get(name, -1) for name in LIKELIHOODS)
        self.data = piece.data
        self.state = np.array([0, piece.lines, 0, 0, *last])
        self._new()

    def _new(self) -> None:
        self.logarithms, self.largest = (
            np.zeros((self.most, self.individuals, 3)),
            np.zeros((self.most, self.individuals)),
        )
        self.ids, self.positions = np.empty(self.most, np.int64), np.empty(self.most, np.int64)
        self.places = np.empty((self.most, PLACES), np.int64)
        self.unusual: dict[int, tuple[Floats, float, Alleles]] = {}
        self.reads: list[tuple[Counts, Counts]] = []
        self.state[SITES] = 0

    @property
    def count(self) -> int:
        return int(self.state[SITES])

    @property
    def full(self) -> bool:
        return self.count == self.most

    def scan(self) -> int:
        """Scan records; return the reason of the stop."""
        if not self.enabled:
            return UNUSUAL if self.state[AT] < len(self.data) else FINISHED
        header = HeaderNumbers._make(
            (
                self.contigs,
                len(self.contigs),
                self.names,
                len(self.names),
                self.phred,
                self.real,
                self.individuals,
            )
        )
        sites = RecordSites._make(
            (
                self.most,
                self.logarithms.reshape(-1),
                self.largest.reshape(-1),
                self.ids,
                self.positions,
                self.places.reshape(-1),
            )
        )
        scan_records(self.data, len(self.data), header, sites, self.state)
        return int(self.state[STOPPED])

    def take_record(self) -> None:
        """Read the record at which the scan stopped."""
        at = int(self.state[AT])
        number = int(self.state[RECORDS]) + 1
        data = self.data[at:]
        header, last = self.header, self._last()
        try:
            blocks = _record(data, self.longest)
            contig, site = _site(blocks, header)
            place = last = f"{site.chromosome}:{site.position}"
            self.state[[CONTIG, POSITION]] = contig, site.position
            name = field_of(site.alternatives, list(site.fields), self.counts)

            def get(field: str) -> Values:
                return _values(field, *site.fields[field], self.individuals)

            result = likelihoods(self.path, place, name, get(name), self.counts) if name else None
            if result is not None:
                alleles = (site.identifier, site.reference, ",".join(site.alternatives))
                self.unusual[self.count] = (*result, alleles)
                self.ids[self.count], self.positions[self.count] = contig, site.position
                if self.reads_wanted:
                    self.reads.append(reads(list(site.fields), get, self.individuals))
                self.state[SITES] += 1
        except _Damage as error:
            what = last if isinstance(error, _WrongType) else f"after {last}: truncated or damaged"
            raise InputError(f"{self.path}: record {number}, {what}: {error}") from None
        self.state[AT] += LENGTHS + sum(map(len, blocks))
        self.state[RECORDS] += 1

    def end(self) -> None:
        """Raise InputError if the last piece of a file ends with an incomplete record."""
        if self.state[AT] < len(self.data):
            self.take_record()

    def _last(self) -> str:
        """Return the position of the last record."""
        contig, position = self.state[[CONTIG, POSITION]].tolist()
        return "the header" if contig < 0 else f"{self.header.contigs.get(contig, '?')}:{position}"

    def sites(self) -> Sites:
        """Return the sites of this batch and start a new one."""
        count, unusual = self.count, self.unusual
        likelihoods = exponentials(self.logarithms[:count])
        scale = self.largest[:count].sum(axis=1)
        for at, (values, sum, _) in unusual.items():
            likelihoods[at], scale[at] = values, sum
        chromosomes = [self.header.contigs[contig] for contig in self.ids[:count].tolist()]
        positions = self.positions[:count].copy()
        check_likelihoods(
            self.path, likelihoods, lambda at: f"{chromosomes[at]}:{positions[at]}", "genotype likelihood"
        )
        reads = (np.array([a for a, _ in self.reads]), np.array([n for _, n in self.reads])) if self.reads else None
        alleles = (
            [unusual[at][2] if at in unusual else self._alleles(at) for at in range(count)] if self.posteriors else []
        )
        sites = Sites(likelihoods, chromosomes, positions, scale, reads, alleles, tuple(self.header.samples))
        self._new()
        return sites

    def _alleles(self, site: int) -> Alleles:
        """Return ID, REF and ALT of a site of the usual form."""
        a, b, c, d, e, f = self.places[site].tolist()
        identifier, reference, other = (self.data[i:j].tobytes().decode("ascii") for i, j in ((a, b), (c, d), (e, f)))
        return identifier or ".", reference, other


def _defined(names: Mapping[int, str]) -> npt.NDArray[np.bool_]:
    """Return whether each number has a name."""
    defined = np.zeros(max(names, default=-1) + 1, np.bool_)
    defined[list(names)] = True
    return defined


def _header(source: Input) -> Header:
    start = source.read(9)
    if len(start) < 9 or start[:5] not in MAGIC:
        raise InputError(f"{source.path}: expected a BCF of version 2.1 or 2.2")
    (length,) = struct.unpack("<I", start[5:])
    if length > LONGEST:
        raise InputError(f"{source.path}: a header of {length:,} bytes, expected at most {LONGEST:,}")
    text = source.read(length)
    content = text.rstrip(b"\0")
    if len(text) < length or b"\0" in content or len(content) == len(text):
        raise InputError(f"{source.path}: the header is truncated or damaged: it does not have the stated length")
    lines = enumerate(content.split(b"\n"), 1)
    header = parse(lines, source.path, numbered=True)
    header.require_likelihoods(source.path)
    if any(line.strip() for _, line in lines):
        raise InputError(f"{source.path}: the header continues after the line #CHROM: its length is wrong")
    return header


def _record(data: Bytes, longest: int) -> tuple[bytes, bytes]:
    """Return the shared and the per-sample block of the first record of the data."""
    if len(data) < LENGTHS:
        raise _Damage("the file ends within it")
    shared, single = struct.unpack("<II", data[:LENGTHS].tobytes())
    if shared + single > longest:
        raise _Damage(f"{shared + single:,} bytes, expected at most {longest:,}")
    if len(data) < LENGTHS + shared + single:
        raise _Damage("the file ends within it")
    middle = LENGTHS + shared
    return data[LENGTHS:middle].tobytes(), data[middle : middle + single].tobytes()


def _site(data: tuple[bytes, bytes], header: Header) -> tuple[int, Site]:
    """Return the number of the contig and the site of a record."""
    shared, single = data
    if len(shared) < FIXED.size:
        raise _Damage(f"{len(shared)} bytes, expected at least {FIXED.size}")
    chromosome, position, _, _, alleles, samples = FIXED.unpack_from(shared)
    if chromosome not in header.contigs:
        raise _Damage(f"contig {chromosome} is not in the header")
    if position < -1:
        raise _Damage(f"the position {position + 1}")
    if samples & 0xFFFFFF != len(header.samples):
        raise _Damage(f"{samples & 0xFFFFFF} samples, expected {len(header.samples)}")
    values = _ByteReader(shared, FIXED.size)
    identifier = values.text("ID") or "."
    alleles_of_site = [values.text("an allele") for _ in range(alleles >> 16)]
    if not alleles_of_site:
        raise _Damage("no alleles")
    values.skip()
    for _ in range(alleles & 0xFFFF):
        _name(header, values.integer("the number of an INFO field"))
        values.skip()
    values.end()
    fields: dict[str, tuple[int, int, bytes]] = {}
    values = _ByteReader(single, 0)
    for _ in range(samples >> 24):
        name = _name(header, values.integer("the number of a FORMAT field"))
        if name in fields:
            raise _Damage(f"FORMAT {name} occurs twice")
        kind, count = values.type()
        fields[name] = kind, count, values.take(SIZES[kind] * count * len(header.samples))
    values.end()
    return chromosome, Site(
        header.contigs[chromosome], position + 1, identifier, alleles_of_site[0], alleles_of_site[1:], fields
    )


def _name(header: Header, number: int) -> str:
    if number not in header.strings:
        raise _Damage(f"field {number} is not in the header")
    return header.strings[number]


class _ByteReader:
    """Sequential reader of typed values. Raises _Damage for truncated values and unknown types."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise _Damage("a value continues after its end")
        self.at += size
        return self.data[self.at - size : self.at]

    def type(self) -> tuple[int, int]:
        """Read a type and a count."""
        (byte,) = self.take(1)
        kind, count = byte & 15, byte >> 4
        if kind not in SIZES:
            raise _Damage(f"the type {kind}")
        if count == 15:
            count = self.integer("a count")
            if count < 0:
                raise _Damage(f"a count of {count}")
        return kind, count

    def integer(self, what: str) -> int:
        (byte,) = self.take(1)
        if byte & 15 not in INTEGERS or byte >> 4 != 1:
            raise _Damage(f"{what} is no integer")
        return int.from_bytes(self.take(SIZES[byte & 15]), "little", signed=True)

    def text(self, what: str) -> str:
        kind, count = self.type()
        if kind != TEXT and count:
            raise _Damage(f"{what} is no text")
        content = self.take(SIZES[kind] * count).rstrip(b"\0")
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise _Damage(f"{what} is not UTF-8") from None

    def skip(self) -> None:
        kind, count = self.type()
        self.take(SIZES[kind] * count)

    def end(self) -> None:
        if self.at != len(self.data):
            raise _Damage(f"{len(self.data) - self.at} bytes follow its last value")


def _values(name: str, kind: int, count: int, data: bytes, individuals: int) -> Values:
    """Return a field as int32 or float32, with htslib's marks for missing values."""
    integer = TYPES[name] == "Integer"
    if kind == 0 or not count:
        missing = np.full((individuals, 1), MISSING if integer else MISSING_REAL[0])
        return missing.astype(np.int32) if integer else missing.astype(np.uint32).view(np.float32)
    if integer != (kind in INTEGERS) or (not integer and kind != FLOAT):
        stored_type = "text" if kind == TEXT else "floats" if kind == FLOAT else "integers"
        raise _WrongType(f"{name} holds {stored_type}, expected {'integers' if integer else 'floats'}")
    if not integer:
        return np.frombuffer(data, "<f4").astype(np.float32).reshape(individuals, count)
    stored = np.frombuffer(data, INTEGERS[kind]).reshape(individuals, count)
    values = stored.astype(np.int32)
    least = np.iinfo(stored.dtype).min
    values[stored == least] = MISSING
    values[stored == least + 1] = END
    return values
