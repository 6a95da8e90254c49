"""Header of VCF and BCF, checked before use: samples, FORMAT types, BCF dictionaries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...family import InputError
from ...files import excerpt, printable

COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO")
TYPES = {"PL": "Integer", "GL": "Float", "AD": "Integer", "DP": "Integer"}
"""Types of the supported FORMAT fields."""
LONGEST = 1 << 26
"""Maximum bytes of a header."""
MOST_LINES = 1 << 20
MOST_NUMBERED = 1 << 20
"""Maximum entries of a BCF dictionary."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRUCTURED = re.compile(r"##(FILTER|INFO|FORMAT|contig)=<(.*)>\s*")
_KEYED = re.compile(r"(?:^|,)(ID|Type|IDX)=([^,]*)")


@dataclass
class Header:
    """Declarations in the header of a VCF or BCF file.

    formats: Type of each FORMAT field. strings, contigs: BCF dictionaries, by number. numbers: names with a number.
    next_numbers: next number of each dictionary.
    """

    samples: list[str] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    strings: dict[int, str] = field(default_factory=lambda: {0: "PASS"})
    contigs: dict[int, str] = field(default_factory=dict)
    numbers: tuple[set[str], set[str]] = field(default_factory=lambda: ({"PASS"}, set()))
    next_numbers: list[int] = field(default_factory=lambda: [1, 0])

    @property
    def likelihood_fields(self) -> list[str]:
        """Fields with genotype likelihoods, in order of preference."""
        return [name for name in ("PL", "GL") if name in self.formats]


def parse(lines: Iterable[tuple[int, bytes]], path: Path) -> Header:
    """Parse a header up to its last line, #CHROM. Raise InputError if it is malformed."""
    header, size = Header(), 0
    for number, line in lines:
        size += len(line)
        if size > LONGEST or number > MOST_LINES:
            raise InputError(f"{path}: a header of more than {LONGEST:,} bytes or {MOST_LINES:,} lines")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number}: {excerpt(line)} is not UTF-8") from None
        if text.startswith("##"):
            _parse_line(header, text, f"{path}:{number}")
        elif text.startswith("#"):
            _parse_columns(header, text, f"{path}:{number}")
            return _check(header, path)
        else:
            raise InputError(f"{path}:{number}: {excerpt(line)}, expected a line of the header: '##...' or '#CHROM...'")
    raise InputError(f"{path}: the header ends without a line #CHROM")


def _parse_line(header: Header, text: str, place: str) -> None:
    match = _STRUCTURED.fullmatch(_QUOTED.sub('""', text))
    if not match:
        if re.match(r"##(FILTER|INFO|FORMAT|contig)=", text):
            raise InputError(f"{place}: {excerpt(text.encode())}, expected {text[2 : text.index('=')]}=<ID=...>")
        return
    kind, keyed = match[1], dict(_KEYED.findall(match[2]))
    name, number = keyed.get("ID", ""), keyed.get("IDX", "")
    if not name or not name.isprintable():
        raise InputError(f"{place}: {kind} without an ID")
    if number and not (number.isascii() and number.isdigit() and len(number) < 8 and int(number) < MOST_NUMBERED):
        raise InputError(f"{place}: IDX is {printable(number)[:24]!r}, expected a number below {MOST_NUMBERED:,}")
    if kind == "FORMAT" and header.formats.setdefault(name, keyed.get("Type", "")) != keyed.get("Type", ""):
        raise InputError(f"{place}: FORMAT {name} has two types")
    numbered = header.contigs if kind == "contig" else header.strings
    if number:
        if numbered.setdefault(int(number), name) != name:
            raise InputError(f"{place}: IDX {number} refers to {printable(numbered[int(number)])} and to {name}")
    elif name not in header.numbers[kind == "contig"]:
        number = str(header.next_numbers[kind == "contig"])
        numbered[int(number)] = name
    header.numbers[kind == "contig"].add(name)
    if number:
        header.next_numbers[kind == "contig"] = max(header.next_numbers[kind == "contig"], int(number) + 1)


def _parse_columns(header: Header, text: str, place: str) -> None:
    columns = text.split("\t")
    if tuple(columns[:8]) != COLUMNS or columns[8:9] not in ([], ["FORMAT"]):
        raise InputError(
            f"{place}: expected the columns {' '.join(COLUMNS)} FORMAT and samples, with tabs between them"
        )
    header.samples = columns[9:]
    names: set[str] = set()
    for name in header.samples:
        if not name or name in names:
            raise InputError(
                f"{place}: {'two samples are called ' + printable(name) if name else 'a sample without a name'}"
            )
        names.add(name)


def _check(header: Header, path: Path) -> Header:
    if not header.samples:
        raise InputError(f"{path}: no samples, expected genotype likelihoods of at least one")
    if not header.likelihood_fields:
        raise InputError(f"{path}: the header has neither FORMAT PL nor GL: no genotype likelihoods to work on")
    for name, expected in TYPES.items():
        if header.formats.get(name, expected) != expected:
            declared = printable(header.formats[name])[:24]
            raise InputError(f"{path}: FORMAT {name} has the Type {declared or 'nothing'}, expected {expected}")
    return header
