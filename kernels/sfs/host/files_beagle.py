"""Reads genotype likelihoods in Beagle's format: marker, two alleles, then three likelihoods an individual."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...family import InputError
from ...files import reading
from .sites import SiteBatch, SiteCounts, Sites


def read(path: Path, counts: SiteCounts) -> Iterator[Sites]:
    """The file's sites, a batch at a time; the second allele is the minor one. Raises InputError."""
    with reading(path), _text(path) as lines:
        header = lines.readline().split()
        individuals = (len(header) - 3) // 3
        if len(header) < 6 or len(header) % 3:
            raise InputError(f"{path}:1: {len(header)} columns, expected marker, two alleles and three an individual")
        batch = SiteBatch(individuals)
        for number, line in enumerate(lines, 2):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != len(header):
                raise InputError(f"{path}:{number}: {len(fields)} columns, expected {len(header)} like the first line")
            try:
                likelihoods = np.array(fields[3:], np.float64)
            except ValueError as error:
                raise InputError(f"{path}:{number}: a likelihood is a number: {error}") from None
            batch.add(likelihoods, *_position(fields[0]), f"line {number}")
            if batch.full:
                yield batch.sites(path)
                batch = SiteBatch(individuals)
    yield batch.sites(path)


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOBase]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, "utf-8", "replace")


def _position(marker: str) -> tuple[str, int]:
    """Chromosome and position of a marker CHROM_POS or CHROM:POS; (the marker, 0) where it says neither."""
    for separator in "_:":
        chromosome, found, position = marker.rpartition(separator)
        if found and position.isdigit():
            return chromosome, int(position)
    return marker, 0
