"""BCF reader for genotype likelihoods. htslib checks the structure of records and cyvcf2 reads their values; contigs, positions,
numbers of samples, and types of fields are checked here."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...family import InputError
from ...files import Input
from ...files.pieces import Bytes, Piece, read_pieces
from .files_genotypes import MISSING, Batch, Record, Values, field_of, read_records, require_cyvcf2
from .files_vcf_header import COLUMNS, LONGEST, TYPES, Header, parse
from .sites import SECTION_BYTES, SectionReader, SiteCounts, Sites

MAGIC = (b"BCF\x02\x01", b"BCF\x02\x02")
LENGTHS = struct.Struct("<II")
"""Bytes of the shared and of the per-sample block of a record."""
FIXED = struct.Struct("<iiifII")
"""CHROM, POS from 0, length on the reference, QUAL, numbers of alleles and INFO fields, numbers of FORMAT fields and samples."""
SIZES = {0: 0, 1: 1, 2: 2, 3: 4, 5: 4, 7: 1}
"""Bytes of a value by its type; 5 is a float, 7 a character."""
INTEGERS, FLOATS, TEXT = (1, 2, 3), (5,), 7


class _Damage(Exception):
    """An error in a record."""


class _WrongType(_Damage):
    """A field of another type than expected."""


class _Position(NamedTuple):
    """Contig, by number, and position of the last record before a section; -1 if there is none."""

    contig: int
    position: int


def sections(source: Input, posteriors: bool = False) -> Iterator[SectionReader]:
    """Yield the sections of a file, at least one. posteriors: whether to read allele depths and the names of sites.
    Raise InputError if the file is malformed."""
    cyvcf2, header = require_cyvcf2(source.path, "BCF"), _header(source)
    next_last = last = _Position(-1, 0)

    def whole(data: Bytes) -> tuple[int, int]:
        """Return the length and the number of the complete records."""
        nonlocal next_last
        starts = _starts(data.data)
        if len(starts) > 1 and starts[-1] - starts[-2] >= LENGTHS.size + FIXED.size:
            contig, position, *_ = FIXED.unpack_from(data.data, starts[-2] + LENGTHS.size)
            next_last = _Position(contig, position + 1)
        return starts[-1], len(starts) - 1

    for piece in read_pieces(source, SECTION_BYTES, whole, "a record"):
        yield partial(_read, cyvcf2, piece, last, header, source.path, posteriors)
        last = next_last


def _starts(data: memoryview) -> list[int]:
    """Return the starts of the complete records, and the end of the last one."""
    starts, at = [0], 0
    while at + LENGTHS.size <= len(data):
        at += LENGTHS.size + sum(LENGTHS.unpack_from(data, at))
        if at > len(data):
            break
        starts.append(at)
    return starts


def _read(
    cyvcf2: Any, piece: Piece, last: _Position, header: Header, path: Path, posteriors: bool, counts: SiteCounts
) -> Iterator[Sites]:
    """Yield the sites of a piece in batches. last: position of the preceding record."""
    batch = Batch(path, header, posteriors, counts)

    def records() -> Iterator[Record]:
        data, starts = piece.data.data, _starts(piece.data.data)
        read = read_records(cyvcf2, _header_for_cyvcf2(header), [data[: starts[-1]]])
        place = "the header" if last.contig < 0 else f"{header.contigs.get(last.contig, '?')}:{last.position}"
        number = piece.lines
        try:
            for start, end in pairwise(starts):
                number += 1
                chromosome, position = _position(data[start:end], header)
                record = next(read, None)
                if record is None:
                    raise _Damage("htslib does not read it")
                alleles = (record.ID or ".", record.REF, ",".join(record.ALT))
                if "\ufffd" in alleles[0]:  # cyvcf2 replaces other bytes in ID only
                    raise _Damage("ID is not UTF-8")
                fields = _fields(data[start:end], header)
                place = f"{chromosome}:{position}"
                name = field_of(record.ALT, fields, counts)
                if name:
                    names = [name, *(("AD", "DP") if batch.depths and "AD" in fields else ())]
                    values = {
                        name: _values(record, name, *fields[name], len(header.samples))
                        for name in names
                        if name in fields
                    }
                    yield Record(chromosome, position, alleles, name, values)
            number += 1
            if starts[-1] < len(data):  # in the last piece of a file
                raise _Damage("the file ends within it")
        except _Damage as error:
            what = place if isinstance(error, _WrongType) else f"after {place}: truncated or damaged"
            raise InputError(f"{path}: record {number}, {what}: {error}") from None
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: record {number}, after {place}: truncated or damaged: an allele is not UTF-8"
            ) from None

    yield from batch.collect(records(), piece.last)


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


def _header_for_cyvcf2(header: Header) -> bytes:
    """Return a header with the same numbers. The fields that are read have the types of VCF; the declared ones have no effect."""
    lines = ["##fileformat=VCFv4.2", *(f"##contig=<ID=c{number},IDX={number}>" for number in header.contigs)]
    numbers = {name: number for number, name in header.strings.items()}
    for number, name in header.strings.items():
        known = name in TYPES and numbers[name] == number
        identifier, kind = (name, TYPES[name]) if known else (f"X{number}", "String")
        if number:  # 0 is PASS
            lines.append(f'##FORMAT=<ID={identifier},Number=.,Type={kind},Description="",IDX={number}>')
    lines.append("\t".join([*COLUMNS, "FORMAT", *map(str, range(len(header.samples)))]))
    text = "\n".join(lines).encode() + b"\n\0"
    return MAGIC[1] + struct.pack("<I", len(text)) + text


def _position(record: memoryview, header: Header) -> tuple[str, int]:
    """Return chromosome and position of a record. Raise _Damage for numbers that htslib does not check."""
    shared = LENGTHS.unpack_from(record)[0]
    if shared < FIXED.size:
        raise _Damage(f"{shared} bytes, expected at least {FIXED.size}")
    contig, position, _, _, alleles, samples = FIXED.unpack_from(record, LENGTHS.size)
    if contig not in header.contigs:
        raise _Damage(f"contig {contig} is not in the header")
    if position < -1:
        raise _Damage(f"the position {position + 1}")
    if samples & 0xFFFFFF != len(header.samples):
        raise _Damage(f"{samples & 0xFFFFFF} samples, expected {len(header.samples)}")
    if not alleles >> 16:
        raise _Damage("no alleles")
    return header.contigs[contig], position + 1


def _fields(record: memoryview, header: Header) -> dict[str, tuple[int, int]]:
    """Return type and number of values of each FORMAT field of a record. htslib has checked the types, but it ends the process
    for a field of text that is read as a number."""
    fields: dict[str, tuple[int, int]] = {}
    at = LENGTHS.size + LENGTHS.unpack_from(record)[0]
    try:
        for _ in range(record[LENGTHS.size + FIXED.size - 1]):
            number, at = _integer(record, at)
            kind, count, at = record[at] & 15, record[at] >> 4, at + 1
            if count == 15:
                count, at = _integer(record, at)
            name = header.strings[number]
            if name in fields:
                raise _Damage(f"FORMAT {name} occurs twice")
            fields[name] = kind, count
            at += SIZES[kind] * count * len(header.samples)
    except LookupError:  # a record without samples
        raise _Damage("it ends within a FORMAT field") from None
    if at != len(record):
        raise _Damage(f"{len(record) - at} bytes follow its last value")
    return fields


def _integer(record: memoryview, at: int) -> tuple[int, int]:
    """Return an integer with its type, and its end."""
    end = at + 1 + SIZES[record[at] & 15]
    return int.from_bytes(record[at + 1 : end], "little", signed=True), end


def _values(record: Any, name: str, kind: int, count: int, samples: int) -> Values:
    """Return a field of a record of cyvcf2 as int32 or float32, with htslib's marks for missing values."""
    integer = TYPES[name] == "Integer"
    if kind and count and kind not in (INTEGERS if integer else FLOATS):
        stored = "text" if kind == TEXT else "integers" if kind in INTEGERS else "floats"
        raise _WrongType(f"{name} holds {stored}, expected {'integers' if integer else 'floats'}")
    if not (kind and count):
        return np.full((samples, 1), MISSING, np.int32)
    values: Values | None = record.format(name)
    if values is None:
        raise _Damage(f"htslib does not read {name}")
    return values
