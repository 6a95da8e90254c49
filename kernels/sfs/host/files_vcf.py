"""VCF reader for genotype likelihoods. Native code reads lines of the usual form; the others are checked here, and
cyvcf2 reads their samples."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import SimtbedError, UnavailableError

from ...family import InputError
from ...files import Input, excerpt, temporary_file
from ...files.pieces import Bytes, Piece, is_blank, read_pieces
from ...files.text_loops import first_newline, whole_lines
from .exponentials import exponentials
from .files_genotypes import field_of, likelihoods, reads
from .files_vcf_header import LIKELIHOODS, TYPES, Header, parse
from .files_vcf_scan import (
    AT,
    COLUMNS,
    FULL,
    LINES,
    LOGARITHMS,
    PHRED,
    PLACES,
    SITES,
    STATE_SIZE,
    STOPPED,
    TEXT,
    UNUSUAL,
    ExpectedFormat,
    SiteColumns,
    same_texts,
    scan_sites,
)
from .problem import Alleles, Counts
from .sites import SECTION_BYTES, SectionReader, SiteBatch, SiteCounts, Sites, batch_size

HIGHEST = 2**31 - 1
"""Maximum POS of VCF."""
KINDS = {"PL": PHRED, "GL": LOGARITHMS}
"""Kinds of the fields with likelihoods. The values of other fields are skipped."""
_KEY = re.compile(r"[A-Za-z_][0-9A-Za-z_.]*", re.ASCII)
_LONG = re.compile(rb"\d{10}")


@dataclass
class _LineBatch:
    """Lines with unread samples. text: lines for cyvcf2. fields: FORMAT of each line. names: its PL or GL."""

    text: list[bytes] = field(default_factory=list)
    places: list[tuple[str, int, Alleles]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    fields: list[list[str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def sections(source: Input, posteriors: bool = True) -> Iterator[SectionReader]:
    """Yield the sections of a file, at least one. Raise InputError if the file is malformed.

    posteriors: whether to read allele depths, if the header declares AD, and the names of alleles. Native code reads lines of the
    usual form; cyvcf2 reads a batch that starts with another line.
    """
    lines = 0

    def numbered() -> Iterator[tuple[int, bytes]]:
        nonlocal lines
        for number, line in source.lines():
            lines = number
            yield number, line

    header = parse(numbered(), source.path, numbered=False)
    for piece in read_pieces(source, SECTION_BYTES, whole_lines, "a line"):
        if not piece.lines and not header.has_likelihoods and not _has_likelihoods(piece.data):
            header.require_likelihoods(source.path)
        yield partial(_read, piece, lines, header, source.path, posteriors)


def _has_likelihoods(data: Bytes) -> bool:
    """Return whether the FORMAT of the first line has likelihoods, although the header may not declare them."""
    columns = data[: int(first_newline(data, len(data)))].tobytes().split(b"\t", COLUMNS)
    keys = columns[COLUMNS - 1].split(b":") if len(columns) > COLUMNS else []
    return any(name.encode() in keys for name in LIKELIHOODS)


def _read(
    piece: Piece, lines: int, header: Header, path: Path, posteriors: bool, counts: SiteCounts
) -> Iterator[Sites]:
    """Yield the sites of complete lines in batches. lines: lines of the header."""
    usual, pending = _UsualSites(piece.data, header, posteriors), _LineBatch()
    most, before = batch_size(len(header.samples)), lines + piece.lines
    while usual.at < len(piece.data):
        if not pending.text:  # a batch of cyvcf2 has consecutive lines
            stopped = usual.scan()
            if stopped == FULL:
                yield usual.sites()
            if stopped != UNUSUAL:
                continue
        line = usual.line()
        number = before + usual.lines + 1
        if not line:
            if piece.last and is_blank(piece.data[usual.at :]):
                break
            raise InputError(f"{path}:{number}: a blank line, expected a site")
        if not pending.text and usual.expects(line):
            continue
        _add(pending, line, number, header, path, counts, usual.reads_depths)
        usual.skip()
        if pending.text and usual.count:
            yield usual.sites()
        if len(pending.text) >= most:
            yield _sites(pending, header, path, counts, usual.reads_depths)
            pending = _LineBatch()
    if usual.count:  # no lines of cyvcf2 are pending then
        yield usual.sites()
    elif pending.text or piece.last:
        yield _sites(pending, header, path, counts, usual.reads_depths)


class _UsualSites:
    """Sites of the usual form in a piece. at, lines: bytes and lines already read."""

    def __init__(self, data: Bytes, header: Header, posteriors: bool) -> None:
        self.data, self.header, self.posteriors = data, header, posteriors
        self.individuals = len(header.samples)
        self.most = batch_size(self.individuals)
        self.reads_depths = posteriors and "AD" in header.formats
        self.expected, self.kinds = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        self.state = np.zeros(STATE_SIZE, np.int64)
        self._new()

    def _new(self) -> None:
        self.logarithms = np.empty((self.most, self.individuals, 3))
        self.largest = np.empty((self.most, self.individuals))
        self.positions, self.places = np.empty(self.most, np.int64), np.empty((self.most, PLACES), np.int64)
        self.state[SITES] = 0

    @property
    def at(self) -> int:
        return int(self.state[AT])

    @property
    def lines(self) -> int:
        return int(self.state[LINES])

    @property
    def count(self) -> int:
        """Number of pending sites."""
        return int(self.state[SITES])

    def scan(self) -> int:
        """Scan lines; return the reason of the stop."""
        if not len(self.kinds):
            return UNUSUAL
        expected = ExpectedFormat._make(
            (self.expected, len(self.expected), self.kinds, len(self.kinds), self.individuals)
        )
        columns = SiteColumns._make(
            (self.most, self.logarithms.reshape(-1), self.largest.reshape(-1), self.positions, self.places.reshape(-1))
        )
        scan_sites(self.data, len(self.data), expected, columns, self.state)
        return int(self.state[STOPPED])

    def line(self) -> bytes:
        """Return the current line without its end."""
        end = self._end()
        line = self.data[self.at : end].tobytes()
        return line.removesuffix(b"\r") if end < len(self.data) else line

    def _end(self) -> int:
        return self.at + int(first_newline(self.data[self.at :], len(self.data) - self.at))

    def skip(self) -> None:
        """Skip a line."""
        self.state[AT] = self._end() + 1
        self.state[LINES] += 1

    def expects(self, line: bytes) -> bool:
        """Return whether the line has another usual FORMAT; it is expected from now on."""
        columns = line.split(b"\t", COLUMNS)
        expected = np.frombuffer(columns[COLUMNS - 1], np.uint8) if len(columns) > COLUMNS else np.zeros(0, np.uint8)
        if self.reads_depths or not len(expected) or np.array_equal(expected, self.expected):
            return False
        keys = columns[COLUMNS - 1].decode("ascii", "replace").split(":")
        likelihoods = next((name for name in LIKELIHOODS if name in keys), None)
        if likelihoods is None or len(set(keys)) < len(keys) or not all(map(_KEY.fullmatch, keys)):
            return False
        kinds = [KINDS[key] if key == likelihoods else TEXT for key in keys]
        self.expected, self.kinds = expected, np.array(kinds, np.uint8)
        return True

    def sites(self) -> Sites:
        """Return the pending sites."""
        count = self.count
        likelihoods = exponentials(self.logarithms[:count])
        scale = self.largest[:count].sum(axis=1)
        names: list[Alleles] = []
        places = self.places[:count]
        chromosomes = self._chromosomes(places)
        if self.posteriors:
            columns = zip(*(self._texts(places, at) for at in (2, 4, 6)), strict=True)
            names = list(columns)
        sites = Sites(
            likelihoods, chromosomes, self.positions[:count].copy(), scale, None, names, tuple(self.header.samples)
        )
        self._new()
        return sites

    def _texts(self, places: Counts, at: int) -> list[str]:
        """Return a column of the sites."""
        return [self.data[first:last].tobytes().decode("ascii") for first, last in places[:, at : at + 2].tolist()]

    def _chromosomes(self, places: Counts) -> list[str]:
        """Return CHROM of the sites; equal neighbours are decoded once."""
        same = np.empty(len(places), np.bool_)
        same_texts(self.data, places.reshape(-1), len(places), PLACES, same)
        firsts = np.flatnonzero(~same)
        names = self._texts(places[firsts], 0)
        runs = np.diff(np.append(firsts, len(places))).tolist()
        return [name for name, run in zip(names, runs, strict=True) for _ in range(run)]


def require_cyvcf2(reason: str) -> Any:
    """Return the module. Raise UnavailableError, with the reason, if it is not installed."""
    try:
        import cyvcf2
    except ImportError:
        raise UnavailableError(f'{reason}, which only cyvcf2 reads: pip install "simtbed[vcf]"') from None
    ctypes.CDLL(cyvcf2.cyvcf2.__file__).hts_set_log_level(0)  # this module reports the errors itself
    return cyvcf2


def _add(
    pending: _LineBatch, line: bytes, number: int, header: Header, path: Path, counts: SiteCounts, depths: bool
) -> None:
    """Check a line, and add it to the batch if it has likelihoods. Fields that are not read have another name, so that htslib accepts
    any value. depths: whether to read AD and DP."""
    place, columns = f"{path}:{number}", 9 + len(header.samples)
    cells = line.split(b"\t", 9)
    if len(cells) < 10 or cells[9].count(b"\t") + 10 != columns:
        raise InputError(f"{place}: {line.count(bytes([9])) + 1} columns, expected {columns} with tabs between them")
    try:
        chromosome, position, identifier, reference, alternatives, _, _, _, fields = (
            part.decode("utf-8") for part in cells[:9]
        )
    except UnicodeDecodeError:
        raise InputError(f"{place}: {excerpt(line)} is not UTF-8") from None
    if not chromosome or not chromosome.isprintable() or " " in chromosome:
        raise InputError(f"{place}: CHROM is {excerpt(cells[0])}, expected a name without spaces")
    if not (position.isascii() and position.isdigit() and len(position) <= 10 and int(position) <= HIGHEST):
        raise InputError(f"{place}: POS is {excerpt(cells[1])}, expected a number from 0 to {HIGHEST:,}")
    if not reference or not alternatives or not all(alternatives.split(",")):
        raise InputError(f"{place}: an allele is empty")
    keys = fields.split(":")
    if len(set(keys)) < len(keys) or not all(_KEY.fullmatch(key) for key in keys if fields != "."):
        raise InputError(f"{place}: FORMAT is {excerpt(cells[8])}, expected different names with ':' between them")
    name = field_of(alternatives.split(","), keys, counts)
    if name is None:
        return
    if cells[9].count(b"\0") or b"\r" in cells[9]:
        raise InputError(f"{place}: a sample holds a control character")
    read_fields = (name, "AD", "DP") if depths and "AD" in keys else (name,)
    keys = [key if key in read_fields else f"X{at}" for at, key in enumerate(keys)]
    _check_long(cells[9], keys, place)
    text = b"\t".join([b"1", b"1", b".", b"N", b"A", b".", b".", b".", ":".join(keys).encode(), cells[9]]) + b"\n"
    pending.text.append(text)
    pending.places.append((chromosome, int(position), (identifier, reference, alternatives)))
    pending.numbers.append(number)
    pending.fields.append(keys)
    pending.names.append(name)


def _check_long(samples: bytes, keys: list[str], place: str) -> None:
    """Raise InputError if a number exceeds 32 bits: htslib would read it as missing."""
    if not _LONG.search(samples):
        return
    integers = [(at, key) for at, key in enumerate(keys) if TYPES.get(key) == "Integer"]
    for number, sample in enumerate(samples.split(b"\t"), 1):
        values = sample.split(b":")
        for at, key in integers:
            for value in values[at].split(b",") if at < len(values) else ():
                if value.isdigit() and int(value[:20]) > HIGHEST:
                    raise InputError(
                        f"{place}: sample {number}: {key} is {excerpt(value)}, expected at most {HIGHEST:,}"
                    )


def _is_value(text: bytes, kind: str) -> bool:
    """Return whether a text is a number of a Type, or missing."""
    try:
        float(text if kind == "Float" else int(text))
    except ValueError:
        return text in (b"", b".")
    return True


def _unreadable(path: Path, number: int, place: str, line: bytes) -> InputError:
    """Return the error of a line for cyvcf2 that htslib does not read: the first wrong value of a field, if there is one."""
    _, _, _, _, _, _, _, _, fields, *samples = line.rstrip(b"\n").split(b"\t")
    keys = fields.decode().split(":")
    for sample, text in enumerate(samples, 1):
        for key, field_text in zip(keys, text.split(b":"), strict=False):
            kind = TYPES.get(key)
            if kind and not all(_is_value(value, kind) for value in field_text.split(b",")):
                expected = "integers" if kind == "Integer" else "numbers"
                wrong = f"{key} is {excerpt(field_text)}, expected {expected}"
                return InputError(f"{path}:{number}: {place}, sample {sample}: {wrong}")
        if text.count(b":") >= len(keys):
            return InputError(f"{path}:{number}: {place}, sample {sample} has more fields than FORMAT names")
    return InputError(f"{path}:{number}: the samples of {place} cannot be read")


def _sites(pending: _LineBatch, header: Header, path: Path, counts: SiteCounts, depths: bool) -> Sites:
    """Return the sites of a batch of lines. depths: whether to read AD and DP."""
    individuals = len(header.samples)
    batch = SiteBatch(individuals, samples=tuple(header.samples))
    records = _records(pending, individuals, path)
    for at, (chromosome, position, alleles) in enumerate(pending.places):
        place = f"{chromosome}:{position}"
        try:
            record = next(records)
            got = {name: record.format(name) for name in (pending.names[at], "AD", "DP") if name in pending.fields[at]}
        except (SimtbedError, MemoryError):
            raise
        except Exception:  # cyvcf2 raises no more specific error, and StopIteration for unreadable lines
            raise _unreadable(path, pending.numbers[at], place, pending.text[at]) from None
        if any(values is None or len(values) != individuals for values in got.values()):
            raise _unreadable(path, pending.numbers[at], place, pending.text[at])
        result = likelihoods(path, place, pending.names[at], got[pending.names[at]], counts)
        if result is None:
            continue
        batch.add(result[0], chromosome, position, place, result[1])
        batch.alleles.append(alleles)
        if depths:
            batch.reads.append(reads(pending.fields[at], got.__getitem__, individuals))
    return batch.sites(path, "genotype likelihood")


def _unusual(path: Path, number: int, place: str, name: str, line: bytes) -> str:
    """Return the start of a message on a line that native code does not read. name: of the likelihoods."""
    *_, fields, samples = line.rstrip(b"\r\n").split(b"\t", COLUMNS)
    at = fields.decode().split(":").index(name)
    for sample, text in enumerate(samples.split(b"\t"), 1):
        values = [*text.split(b":"), *[b"."] * (at + 1)][at].split(b",")
        if len(values) != 3 and values != [b"."]:
            haploid = " (haploid)" * (len(values) == 2)
            return f"{path}:{number}: {place}, sample {sample}: {name} has {len(values)} values{haploid}, not 3"
    return f"{path}:{number}: the samples of {place} have another form than {name} of three values"


def _records(pending: _LineBatch, individuals: int, path: Path) -> Iterator[Any]:
    """Yield the records of cyvcf2 for the lines, with a header that declares exactly their fields."""
    if not pending.text:
        return
    (chromosome, position, _), *_ = pending.places
    reason = _unusual(path, pending.numbers[0], f"{chromosome}:{position}", pending.names[0], pending.text[0])
    reader_of = require_cyvcf2(reason).VCF
    names = sorted({key for keys in pending.fields for key in keys if key != "."})
    declared = [f'##FORMAT=<ID={name},Number=.,Type={TYPES.get(name, "String")},Description="">\n' for name in names]
    columns = "\t".join(
        ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *map(str, range(individuals))]
    )
    with temporary_file() as file:
        file.write(f"##fileformat=VCFv4.2\n##contig=<ID=1>\n{''.join(declared)}{columns}\n".encode())
        file.writelines(pending.text)
        file.flush()
        file.seek(0)
        reader = reader_of(file.fileno())
        try:
            yield from reader
        finally:
            reader.close()
