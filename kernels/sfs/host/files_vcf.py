"""Reads genotype likelihoods from VCF: lines are checked here, and cyvcf2 reads the samples of those that are good."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simtbed import SimtbedError, UnavailableError

from ...family import InputError
from ...files import Input, shown, temporary
from .files_genotypes import field_of, likelihoods, reads
from .files_vcf_header import TYPES, Header, parse
from .problem import Alleles
from .sites import SiteBatch, SiteCounts, Sites, batch_size

BYTES_AT_ONCE = 1 << 23
"""Of lines that cyvcf2 gets at a time."""
HIGHEST = 2**31 - 1
"""Position of VCF."""
_KEY = re.compile(r"[A-Za-z_][0-9A-Za-z_.]*", re.ASCII)
_LONG = re.compile(rb"\d{10}")


@dataclass
class _Lines:
    """Sites whose samples are to be read. text: lines for cyvcf2. fields: the FORMAT of each; name: where it has PL or GL."""

    text: list[bytes] = field(default_factory=list)
    size: int = 0
    places: list[tuple[str, int, Alleles]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    fields: list[list[str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def read(source: Input, counts: SiteCounts) -> Iterator[Sites]:
    """The file's sites, a batch at a time; what is skipped is in `counts`. Raises InputError."""
    numbered = source.lines()
    header = parse(numbered, source.path)
    require_cyvcf2()
    some = _Lines()
    for number, line in numbered:
        if not line:
            raise InputError(f"{source.path}:{number}: a blank line, expected a site")
        _add(some, line, number, header, source.path, counts)
        if len(some.text) >= batch_size(len(header.samples)) or some.size >= BYTES_AT_ONCE:
            yield _sites(some, header, source.path, counts)
            some = _Lines()
    yield _sites(some, header, source.path, counts)


def require_cyvcf2() -> Any:
    """The module. Raises UnavailableError where it is not installed."""
    try:
        import cyvcf2
    except ImportError:
        raise UnavailableError('reading VCF needs cyvcf2: pip install "simtbed[vcf]"') from None
    ctypes.CDLL(cyvcf2.cyvcf2.__file__).hts_set_log_level(0)  # what htslib would print is found out here
    return cyvcf2


def _add(some: _Lines, line: bytes, number: int, header: Header, path: Path, counts: SiteCounts) -> None:
    """Check a line, and keep it where it has what is wanted."""
    place, columns = f"{path}:{number}", 9 + len(header.samples)
    parts = line.split(b"\t", 9)
    if len(parts) < 10 or parts[9].count(b"\t") + 10 != columns:
        raise InputError(f"{place}: {line.count(bytes([9])) + 1} columns, expected {columns} with tabs between them")
    try:
        chromosome, position, identifier, reference, alternatives, _, _, _, fields = (
            part.decode("utf-8") for part in parts[:9]
        )
    except UnicodeDecodeError:
        raise InputError(f"{place}: {shown(line)} is not UTF-8") from None
    if not chromosome or not chromosome.isprintable() or " " in chromosome:
        raise InputError(f"{place}: CHROM is {shown(parts[0])}, expected a name without spaces")
    if not (position.isascii() and position.isdigit() and len(position) <= 10 and int(position) <= HIGHEST):
        raise InputError(f"{place}: POS is {shown(parts[1])}, expected a number from 0 to {HIGHEST:,}")
    if not reference or not alternatives or not all(alternatives.split(",")):
        raise InputError(f"{place}: an allele is empty")
    keys = fields.split(":")
    if len(set(keys)) < len(keys) or not all(_KEY.fullmatch(key) for key in keys if fields != "."):
        raise InputError(f"{place}: FORMAT is {shown(parts[8])}, expected different names with ':' between them")
    name = field_of(alternatives.split(","), keys, header.known, counts)
    if name is None:
        return
    if parts[9].count(b"\0") or b"\r" in parts[9]:
        raise InputError(f"{place}: a sample holds a control character")
    _check_long(parts[9], keys, place)
    text = b"\t".join([b"1", b"1", b".", b"N", b"A", b".", b".", b".", parts[8], parts[9]]) + b"\n"
    some.text.append(text)
    some.size += len(text)
    some.places.append((chromosome, int(position), (identifier, reference, alternatives)))
    some.numbers.append(number)
    some.fields.append(keys)
    some.names.append(name)


def _check_long(samples: bytes, keys: list[str], place: str) -> None:
    """Raises InputError where a number is beyond 32 bits: htslib would take it for a missing one."""
    if not _LONG.search(samples):
        return
    wanted = [(at, key) for at, key in enumerate(keys) if TYPES.get(key) == "Integer"]
    for number, sample in enumerate(samples.split(b"\t"), 1):
        values = sample.split(b":")
        for at, key in wanted:
            for value in values[at].split(b",") if at < len(values) else ():
                if value.isdigit() and int(value[:20]) > HIGHEST:
                    raise InputError(f"{place}: sample {number}: {key} is {shown(value)}, expected at most {HIGHEST:,}")


def _sites(some: _Lines, header: Header, path: Path, counts: SiteCounts) -> Sites:
    """The sites of a batch of lines."""
    individuals = len(header.samples)
    batch = SiteBatch(individuals, samples=tuple(header.samples))
    records = _records(some, individuals)
    for at, (chromosome, position, alleles) in enumerate(some.places):
        place = f"{chromosome}:{position}"
        try:
            record = next(records)
            got = {name: record.format(name) for name in (some.names[at], "AD", "DP") if name in some.fields[at]}
        except (SimtbedError, MemoryError):
            raise
        except Exception as error:  # cyvcf2 raises nothing more special, and StopIteration at what it cannot read
            what = f" ({error})" if str(error) else ""
            raise InputError(f"{path}:{some.numbers[at]}: the samples of {place} cannot be read{what}") from None
        if any(values is None or len(values) != individuals for values in got.values()):
            raise InputError(f"{path}:{some.numbers[at]}: the samples of {place} cannot be read")
        found = likelihoods(path, place, some.names[at], got[some.names[at]], counts)
        if found is None:
            continue
        batch.add(found[0], chromosome, position, place, found[1])
        batch.alleles.append(alleles)
        if "AD" in header.formats:
            batch.reads.append(reads(some.fields[at], got.__getitem__, individuals))
    return batch.sites(path, "genotype likelihood")


def _records(some: _Lines, individuals: int) -> Iterator[Any]:
    """The lines as cyvcf2 reads them, with a header that declares just what they have."""
    if not some.text:
        return
    names = sorted({key for keys in some.fields for key in keys if key != "."})
    declared = [f'##FORMAT=<ID={name},Number=.,Type={TYPES.get(name, "String")},Description="">\n' for name in names]
    columns = "\t".join(
        ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *map(str, range(individuals))]
    )
    with temporary() as file:
        file.write(f"##fileformat=VCFv4.2\n##contig=<ID=1>\n{''.join(declared)}{columns}\n".encode())
        file.writelines(some.text)
        file.flush()
        file.seek(0)
        reader = require_cyvcf2().VCF(file.fileno())
        try:
            yield from reader
        finally:
            reader.close()
