"""Header of VCF and BCF: samples, declared FORMAT fields, BCF dictionaries. Only the content in use is checked: the values of a
field are, its Type and Number are not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from simtbed.escaping import printable

from ...family import InputError
from ...files import excerpt

COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO")
TYPES = {"PL": "Integer", "GL": "Float", "AD": "Integer", "DP": "Integer"}
"""Types of the supported FORMAT fields."""
LIKELIHOODS = ("PL", "GL")
"""Fields with genotype likelihoods, in order of preference."""
LONGEST = 1 << 26
"""Maximum bytes of a header."""
MOST_LINES = 1 << 20
MOST_NUMBERED = 1 << 20
"""Maximum entries of a BCF dictionary."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRUCTURED = re.compile(r"##(FILTER|INFO|FORMAT|contig)=<(.*)>\s*")
_KEYED = re.compile(r"(?:^|,)(ID|IDX)=([^,]*)")


@dataclass
class Header:
    """Declarations in the header of a VCF or BCF file.

    formats: declared FORMAT fields. strings, contigs: BCF dictionaries, by number. numbers: names with a number.
    next_numbers: next number of each dictionary.
    """

    samples: list[str] = field(default_factory=list)
    formats: set[str] = field(default_factory=set)
    strings: dict[int, str] = field(default_factory=lambda: {0: "PASS"})
    contigs: dict[int, str] = field(default_factory=dict)
    numbers: tuple[set[str], set[str]] = field(default_factory=lambda: ({"PASS"}, set()))
    next_numbers: list[int] = field(default_factory=lambda: [1, 0])

    @property
    def has_likelihoods(self) -> bool:
        """Whether a field with genotype likelihoods is declared."""
        return not self.formats.isdisjoint(LIKELIHOODS)

    def require_likelihoods(self, path: Path) -> None:
        """Raise InputError if no field with genotype likelihoods is declared."""
        if not self.has_likelihoods:
            raise InputError(f"{path}: the header has neither FORMAT PL nor GL: no genotype likelihoods to work on")


def parse(lines: Iterable[tuple[int, bytes]], path: Path, numbered: bool) -> Header:
    """Parse a header up to its last line, #CHROM. Raise InputError if it is malformed.

    numbered: whether its dictionaries are in use, as in BCF. A line that declares nothing by an ID is skipped, as htslib does.
    """
    header, size = Header(), 0
    for number, line in lines:
        size += len(line)
        if size > LONGEST or number > MOST_LINES:
            raise InputError(f"{path}: a header of more than {LONGEST:,} bytes or {MOST_LINES:,} lines")
        if line.startswith(b"##"):
            _parse_line(header, line.decode("utf-8", "replace"), f"{path}:{number}", numbered)
        elif line.startswith(b"#"):
            _parse_columns(header, line, f"{path}:{number}")
            if not header.samples:
                raise InputError(f"{path}: no samples, expected genotype likelihoods of at least one")
            return header
        else:
            raise InputError(f"{path}:{number}: {excerpt(line)}, expected a line of the header: '##...' or '#CHROM...'")
    raise InputError(f"{path}: the header ends without a line #CHROM")


def _parse_line(header: Header, text: str, place: str, numbered: bool) -> None:
    match = _STRUCTURED.fullmatch(_QUOTED.sub('""', text))
    kind, keyed = (match[1], dict(_KEYED.findall(match[2]))) if match else ("", {})
    name, number = keyed.get("ID", ""), keyed.get("IDX", "")
    if not name:
        return
    if kind == "FORMAT":
        header.formats.add(name)
    if numbered:
        _number(header, kind, name, number, place)


def _number(header: Header, kind: str, name: str, number: str, place: str) -> None:
    """Enter a name into its dictionary. number: the value of IDX, or an empty text."""
    if not name.isprintable() or "\ufffd" in name:
        raise InputError(f"{place}: the ID of {kind} is {printable(name)[:24]!r}, expected printable UTF-8")
    if number and not (number.isascii() and number.isdigit() and len(number) < 8 and int(number) < MOST_NUMBERED):
        raise InputError(f"{place}: IDX is {printable(number)[:24]!r}, expected a number below {MOST_NUMBERED:,}")
    names = header.contigs if kind == "contig" else header.strings
    if number:
        if names.setdefault(int(number), name) != name:
            raise InputError(f"{place}: IDX {number} refers to {printable(names[int(number)])} and to {name}")
    elif name not in header.numbers[kind == "contig"]:
        number = str(header.next_numbers[kind == "contig"])
        names[int(number)] = name
    header.numbers[kind == "contig"].add(name)
    if number:
        header.next_numbers[kind == "contig"] = max(header.next_numbers[kind == "contig"], int(number) + 1)


def _parse_columns(header: Header, line: bytes, place: str) -> None:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{place}: {excerpt(line)} is not UTF-8") from None
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
