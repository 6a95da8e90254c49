"""VCF reader for genotype likelihoods. The columns of a line are checked here; cyvcf2 reads its samples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from ...family import InputError
from ...files import Input, excerpt
from ...files.pieces import Bytes, Piece, read_pieces
from ...files.text_loops import first_newline, whole_lines
from .files_genotypes import Batch, Record, field_of, read_records, require_cyvcf2
from .files_vcf_header import COLUMNS as HEADER_COLUMNS
from .files_vcf_header import LIKELIHOODS, TYPES, Header, parse
from .problem import Alleles
from .sites import SECTION_BYTES, SectionReader, SiteCounts, Sites

COLUMNS = 9
"""Columns before the samples."""
HIGHEST = 2**31 - 1
"""Maximum POS of VCF."""
_KEY = re.compile(r"[A-Za-z_][0-9A-Za-z_.]*", re.ASCII)
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
"""Translates every digit to 0 and every other byte to a space."""


class _Line(NamedTuple):
    """A checked line. fields: FORMAT; a field that is not read has another name, so that htslib accepts any value. name: PL or GL.
    text: the line for cyvcf2."""

    number: int
    chromosome: str
    position: int
    alleles: Alleles
    fields: list[str]
    name: str
    text: bytes


def sections(source: Input, posteriors: bool = True) -> Iterator[SectionReader]:
    """Yield the sections of a file, at least one. Raise InputError if the file is malformed.

    posteriors: whether to read allele depths, if the header declares AD, and the names of alleles.
    """
    cyvcf2, lines = require_cyvcf2(source.path, "VCF"), 0

    def numbered() -> Iterator[tuple[int, bytes]]:
        nonlocal lines
        for number, line in source.lines():
            lines = number
            yield number, line

    header = parse(numbered(), source.path, numbered=False)
    for piece in read_pieces(source, SECTION_BYTES, whole_lines, "a line"):
        if not piece.lines and not header.has_likelihoods and not _has_likelihoods(piece.data):
            header.require_likelihoods(source.path)
        yield partial(_read, cyvcf2, piece, lines + piece.lines, header, source.path, posteriors)


def _has_likelihoods(data: Bytes) -> bool:
    """Return whether the FORMAT of the first line has likelihoods, although the header may not declare them."""
    columns = data[: int(first_newline(data, len(data)))].tobytes().split(b"\t", COLUMNS)
    keys = columns[COLUMNS - 1].split(b":") if len(columns) > COLUMNS else []
    return any(name.encode() in keys for name in LIKELIHOODS)


def _read(
    cyvcf2: Any, piece: Piece, before: int, header: Header, path: Path, posteriors: bool, counts: SiteCounts
) -> Iterator[Sites]:
    """Yield the sites of complete lines in batches. before: lines of the file before them."""
    batch = Batch(path, header, posteriors, counts)

    def records() -> Iterator[Record]:
        lines: list[_Line] = []
        wrong = None
        try:
            for number, text in _texts(piece, before, path):
                line = _check(text, number, header, path, counts, batch.depths)
                if line:
                    lines.append(line)
        except InputError as error:
            wrong = error
        yield from _records(cyvcf2, lines, len(header.samples), path)
        if wrong:
            raise wrong

    yield from batch.collect(records(), piece.last)


def _texts(piece: Piece, before: int, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, content) of each line. Raise InputError for a blank line, except at the end of the file."""
    *lines, last = piece.data.tobytes().split(b"\n")
    texts = [*(line.removesuffix(b"\r") for line in lines), *([last] if last else [])]
    for at, text in enumerate(texts):
        if text:
            yield before + at + 1, text
        elif piece.last and not any(rest.strip(b"\r") for rest in texts[at:]):
            return
        else:
            raise InputError(f"{path}:{before + at + 1}: a blank line, expected a site")


def _check(line: bytes, number: int, header: Header, path: Path, counts: SiteCounts, depths: bool) -> _Line | None:
    """Check a line; return it if it has likelihoods. depths: whether to read AD and DP."""
    place, columns = f"{path}:{number}", 9 + len(header.samples)
    cells = line.split(b"\t", COLUMNS)
    if len(cells) < 10 or cells[9].count(b"\t") + 10 != columns:
        raise InputError(f"{place}: {line.count(bytes([9])) + 1} columns, expected {columns} with tabs between them")
    try:
        head = b"\t".join(cells[:COLUMNS]).decode("utf-8").split("\t")
    except UnicodeDecodeError:
        raise InputError(f"{place}: {excerpt(line)} is not UTF-8") from None
    chromosome, position, identifier, reference, alternatives, *_, fields = head
    if not chromosome or not chromosome.isprintable() or " " in chromosome:
        raise InputError(f"{place}: CHROM is {excerpt(cells[0])}, expected a name without spaces")
    if not (position.isascii() and position.isdigit() and len(position) <= 10 and int(position) <= HIGHEST):
        raise InputError(f"{place}: POS is {excerpt(cells[1])}, expected a number from 0 to {HIGHEST:,}")
    others = alternatives.split(",")
    if not reference or not all(others):
        raise InputError(f"{place}: an allele is empty")
    keys = _keys(fields)
    if not keys:
        raise InputError(f"{place}: FORMAT is {excerpt(cells[8])}, expected different names with ':' between them")
    name = field_of(others, keys, counts)
    if name is None:
        return None
    if b"\0" in cells[9] or b"\r" in cells[9]:
        raise InputError(f"{place}: a sample holds a control character")
    read_fields = (name, "AD", "DP") if depths and "AD" in keys else (name,)
    names = [key if key in read_fields else f"X{at}" for at, key in enumerate(keys)]
    _check_long(cells[9], names, place)
    text = b"\t".join([b"1", b"1", b".", b"N", b"A", b".", b".", b".", ":".join(names).encode(), cells[9]]) + b"\n"
    return _Line(number, chromosome, int(position), (identifier, reference, alternatives), names, name, text)


@lru_cache(8)
def _keys(fields: str) -> tuple[str, ...]:
    """Return the names of a FORMAT column; none if it is malformed."""
    keys = tuple(fields.split(":"))
    valid = fields == "." or all(map(_KEY.fullmatch, keys))
    return keys if valid and len(set(keys)) == len(keys) else ()


def _check_long(samples: bytes, keys: list[str], place: str) -> None:
    """Raise InputError if a number exceeds 32 bits: htslib would read it as missing."""
    if b"0" * 10 not in samples.translate(_DIGITS):
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


def _records(cyvcf2: Any, lines: list[_Line], individuals: int, path: Path) -> Iterator[Record]:
    """Yield the records of lines, read with a header that declares exactly their fields."""
    names = sorted({key for line in lines for key in line.fields if key != "."})
    declared = [f'##FORMAT=<ID={name},Number=.,Type={TYPES.get(name, "String")},Description="">\n' for name in names]
    columns = "\t".join([*HEADER_COLUMNS, "FORMAT", *map(str, range(individuals))])
    header = f"##fileformat=VCFv4.2\n##contig=<ID=1>\n{''.join(declared)}{columns}\n".encode()
    records = read_records(cyvcf2, header, (line.text for line in lines)) if lines else iter(())
    for line in lines:
        place = f"{line.chromosome}:{line.position}"
        record = next(records, None)
        if record is None:
            raise _unreadable(path, line.number, place, line.text)
        values = {name: record.format(name) for name in (line.name, "AD", "DP") if name in line.fields}
        if any(some is None or len(some) != individuals for some in values.values()):
            raise _unreadable(path, line.number, place, line.text)
        yield Record(line.chromosome, line.position, line.alleles, line.name, values)
