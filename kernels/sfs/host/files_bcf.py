"""Reads genotype likelihoods from BCF: every length, type and number of a record is checked before it is used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...family import InputError
from ...files import Input
from .files_genotypes import END, MISSING, MISSING_REAL, Values, field_of, likelihoods, reads
from .files_vcf_header import LONGEST, TYPES, Header, parse
from .sites import SiteBatch, SiteCounts, Sites

MAGIC = (b"BCF\x02\x01", b"BCF\x02\x02")
FIXED = struct.Struct("<iiifII")
"""CHROM, POS from 0, the length on the reference, QUAL, alleles and INFO, FORMAT and samples."""
INTEGERS: dict[int, np.dtype[np.signedinteger[Any]]] = {1: np.dtype("<i1"), 2: np.dtype("<i2"), 3: np.dtype("<i4")}
SIZES = {0: 0, 1: 1, 2: 2, 3: 4, 5: 4, 7: 1}
"""Bytes of a value by its type; 5 is a float, 7 a character."""
FLOAT, TEXT = 5, 7


class _Damage(Exception):
    """What is wrong with a record."""


class Site(NamedTuple):
    """identifier: its ID. reference, alternatives: the first allele, the others. fields: of FORMAT, by name: type, values
    a sample, bytes."""

    chromosome: str
    position: int
    identifier: str
    reference: str
    alternatives: list[str]
    fields: dict[str, tuple[int, int, bytes]]


def read(source: Input, counts: SiteCounts) -> Iterator[Sites]:
    """The file's sites, a batch at a time; what is skipped is in `counts`. Raises InputError."""
    path = source.path
    header = _header(source)
    individuals, last, number = len(header.samples), "the header", 0
    samples = tuple(header.samples)
    batch = SiteBatch(individuals, samples=samples)
    while lengths := source.read(8):
        number += 1
        try:
            site = _site(_record(source, lengths), header)
            place = last = f"{site.chromosome}:{site.position}"
            name = field_of(site.alternatives, list(site.fields), header.known, counts)
            if name is None:
                continue

            def get(wanted: str, site: Site = site) -> Values:
                return _values(wanted, *site.fields[wanted], individuals)

            found = likelihoods(path, place, name, get(name), counts)
            if found is None:
                continue
            batch.add(found[0], site.chromosome, site.position, place, found[1])
            batch.alleles.append((site.identifier, site.reference, ",".join(site.alternatives)))
            if "AD" in header.formats:
                batch.reads.append(reads(list(site.fields), get, individuals))
        except _Damage as error:
            raise InputError(f"{path}: record {number}, after {last}: truncated or damaged: {error}") from None
        if batch.full:
            yield batch.sites(path, "genotype likelihood")
            batch = SiteBatch(individuals, samples=samples)
    yield batch.sites(path, "genotype likelihood")


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
        raise InputError(f"{source.path}: the header is truncated or damaged: it does not end where it says")
    lines = enumerate(content.split(b"\n"), 1)
    header = parse(lines, source.path)
    if any(line.strip() for _, line in lines):
        raise InputError(f"{source.path}: the header goes on after the line #CHROM: its length is wrong")
    return header


def _record(source: Input, lengths: bytes) -> tuple[bytes, bytes]:
    """What all samples share, and what they do not."""
    if len(lengths) < 8:
        raise _Damage("the file ends within it")
    shared, single = struct.unpack("<II", lengths)
    if shared + single > source.longest:
        raise _Damage(f"{shared + single:,} bytes, expected at most {source.longest:,}")
    data = source.read(shared + single)
    if len(data) < shared + single:
        raise _Damage("the file ends within it")
    return data[:shared], data[shared:]


def _site(data: tuple[bytes, bytes], header: Header) -> Site:
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
    walk = _Walk(shared, FIXED.size)
    identifier = walk.text("ID") or "."
    found = [walk.text("an allele") for _ in range(alleles >> 16)]
    if not found:
        raise _Damage("no alleles")
    walk.skip()
    for _ in range(alleles & 0xFFFF):
        _name(header, walk.integer("the number of an INFO field"))
        walk.skip()
    walk.end()
    fields: dict[str, tuple[int, int, bytes]] = {}
    walk = _Walk(single, 0)
    for _ in range(samples >> 24):
        name = _name(header, walk.integer("the number of a FORMAT field"))
        if name in fields:
            raise _Damage(f"FORMAT {name} stands there twice")
        kind, count = walk.type()
        fields[name] = kind, count, walk.take(SIZES[kind] * count * len(header.samples))
    walk.end()
    return Site(header.contigs[chromosome], position + 1, identifier, found[0], found[1:], fields)


def _name(header: Header, number: int) -> str:
    if number not in header.strings:
        raise _Damage(f"field {number} is not in the header")
    return header.strings[number]


class _Walk:
    """Goes through bytes; raises _Damage where they end too early or have a type that is not known."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise _Damage("a value goes on after its end")
        self.at += size
        return self.data[self.at - size : self.at]

    def type(self) -> tuple[int, int]:
        """(type, count) of what follows."""
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
    """A field as int32 or float32, with htslib's marks for what is missing."""
    integer = TYPES[name] == "Integer"
    if kind == 0 or not count:
        missing = np.full((individuals, 1), MISSING if integer else MISSING_REAL[0])
        return missing.astype(np.int32) if integer else missing.astype(np.uint32).view(np.float32)
    if integer != (kind in INTEGERS) or (not integer and kind != FLOAT):
        raise _Damage(f"{name} is not of the Type {TYPES[name]}")
    if not integer:
        return np.frombuffer(data, "<f4").astype(np.float32).reshape(individuals, count)
    stored = np.frombuffer(data, INTEGERS[kind]).reshape(individuals, count)
    values = stored.astype(np.int32)
    least = np.iinfo(stored.dtype).min
    values[stored == least] = MISSING
    values[stored == least + 1] = END
    return values
