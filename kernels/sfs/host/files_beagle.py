"""Reads genotype likelihoods in Beagle's format: marker, two alleles, then three likelihoods an individual."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...family import InputError
from ...files import Input, shown
from .problem import Floats
from .sites import SiteBatch, SiteCounts, Sites, position


def read(source: Input, counts: SiteCounts) -> Iterator[Sites]:
    """The file's sites, a batch at a time; the second allele is the minor one. Raises InputError."""
    path, lines = source.path, source.lines()
    columns = len(next(lines, (1, b""))[1].split())
    individuals = (columns - 3) // 3
    if columns < 6 or columns % 3:
        raise InputError(f"{path}:1: {columns} columns, expected marker, two alleles and three an individual")
    batch = SiteBatch(individuals)
    for number, line in lines:
        fields = line.split()
        if not fields:
            continue
        if len(fields) != columns:
            raise InputError(f"{path}:{number}: {len(fields)} columns, expected {columns} like the first line")
        batch.add(_numbers(fields[3:], f"{path}:{number}"), *_position(fields[0], f"{path}:{number}"), f"line {number}")
        if batch.full:
            yield batch.sites(path)
            batch = SiteBatch(individuals)
    yield batch.sites(path)


def _numbers(fields: list[bytes], where: str) -> Floats:
    try:
        return np.array(fields, np.float64)
    except ValueError:
        pass
    for field in fields:
        try:
            float(field)
        except ValueError:
            raise InputError(f"{where}: a likelihood is a number, not {shown(field)}") from None
    raise InputError(f"{where}: a likelihood is a number")


def _position(marker: bytes, where: str) -> tuple[str, int]:
    """Chromosome and position of a marker CHROM_POS or CHROM:POS; (the marker, 0) where it says neither."""
    try:
        name = marker.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{where}: the marker {shown(marker)} is not UTF-8") from None
    if not name.isprintable():
        raise InputError(f"{where}: the marker {shown(marker)} is not printable")
    for separator in "_:":
        chromosome, found, last = name.rpartition(separator)
        if found and last.isdigit():
            at = position(last.encode())
            if at is None:
                raise InputError(f"{where}: {shown(marker)}: expected a position of at most 18 digits 0 to 9")
            return chromosome, at
    return name, 0
