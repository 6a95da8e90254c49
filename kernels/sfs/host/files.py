"""The files of site frequency spectra: genotype likelihoods in, sites at a time, as VCF, BCF, Beagle or npz.

Memory is bounded whatever the file: a batch of sites is read, used and forgotten.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from ...family import InputError
from ...files import reading
from .frequency import by_em, by_reads
from .problem import EPSILON, P_VARIABLE, Counts, Floats, Mode, Problem

Polarise = Literal["minor", "alt"]

BYTES_AT_ONCE = 1 << 25
"""Of a batch's likelihoods."""
SITES_AT_ONCE = 1 << 14

Tally = Counter[str]
"""Sites by what became of them, in words for people; "sites" counts those that are in the answer."""


@dataclass(frozen=True)
class Sites:
    """Some sites of a file. likelihoods: (sites, N, 3) of first/first, first/second, second/second allele.

    scale: a logarithm a site, of what was divided out of them. reads: of the second allele and of both, (sites, N)
    each, where the file counts them; 0 of both: it does not for this individual.
    """

    likelihoods: Floats
    chromosomes: list[str]
    positions: Counts
    scale: Floats
    reads: tuple[Counts, Counts] | None = None


@dataclass(frozen=True)
class Options:
    """What to make of a file's sites. polarise: None for "minor" where the file only tells REF from ALT, and for its
    own order where that says which allele is the minor one."""

    mode: Mode = "saf"
    polarise: Polarise | None = None
    variable: float = P_VARIABLE
    epsilon: float = EPSILON


def problems(path: Path, options: Options, tally: Tally) -> Iterator[Problem]:
    """A file's sites as problems, some at a time; at least one, perhaps without sites. Raises InputError.

    In saf and gama mode a site of which no individual knows anything is left out.
    """
    kind = _kind(path)
    polarise = options.polarise or ("minor" if kind in ("VCF", "BCF") else "alt")
    for sites in _READERS[kind](path, tally):
        yield _problem(sites, replace(options, polarise=polarise), tally)


def read(path: Path) -> Problem:
    """The whole of a file in saf mode. Raises InputError."""
    return joined(list(problems(path, Options(), Counter())))


def joined(parts: list[Problem]) -> Problem:
    """Several problems of one file as one."""
    return replace(
        parts[0],
        likelihoods=np.concatenate([part.likelihoods for part in parts]),
        chromosomes=[name for part in parts for name in part.chromosomes],
        positions=np.concatenate([part.positions for part in parts]),
        frequency=np.concatenate([part.frequency for part in parts]),
        scale=np.concatenate([part.scale for part in parts]),
    )


def _problem(sites: Sites, options: Options, tally: Tally) -> Problem:
    likelihoods, scale, reads = sites.likelihoods, sites.scale, sites.reads
    kept = np.arange(len(likelihoods))
    if options.mode != "product":
        kept = np.flatnonzero(~(likelihoods == likelihoods[:, :, :1]).all(axis=(1, 2)))
        tally["left out: no individual has any information"] += len(likelihoods) - len(kept)
        likelihoods = likelihoods[kept]
        reads = (reads[0][kept], reads[1][kept]) if reads else None
    tally["sites"] += len(kept)
    frequency = np.empty(0)
    if options.polarise == "minor" or options.mode == "gama":
        frequency = by_em(likelihoods)
    if options.polarise == "minor":
        turned = frequency > 0.5 + 1e-9  # a tie is ALT's
        tally["of these: the first allele is the minor one"] += int(turned.sum())
        likelihoods = np.where(turned[:, None, None], likelihoods[:, :, ::-1], likelihoods)
        frequency = np.where(turned, 1 - frequency, frequency)
        if reads:
            reads = (np.where(turned[:, None], reads[1] - reads[0], reads[0]), reads[1])
    if options.mode == "gama" and reads:
        counted = by_reads(*reads, options.epsilon)
        frequency = np.where(np.isnan(counted), frequency, counted)
    return Problem(
        likelihoods,
        [sites.chromosomes[at] for at in kept],
        sites.positions[kept],
        options.mode,
        frequency if options.mode == "gama" else np.empty(0),
        options.variable,
        scale[kept] if options.mode == "product" else np.empty(0),
    )


def at_once(individuals: int) -> int:
    """Sites of a batch."""
    return max(1, min(SITES_AT_ONCE, BYTES_AT_ONCE // (24 * individuals)))


def check(path: Path, likelihoods: Floats, names: list[str], what: str = "likelihood") -> None:
    """Raise InputError where a number is no likelihood; `names` says where each site is in the file."""
    wrong = ~(np.isfinite(likelihoods) & (likelihoods >= 0)).all(axis=2) | ~(likelihoods > 0).any(axis=2)
    if not wrong.any():
        return
    site, individual = (int(at) for at in np.argwhere(wrong)[0])
    shown = " ".join(f"{value:g}" for value in likelihoods[site, individual])
    raise InputError(
        f"{path}: {names[site]}, individual {individual + 1}: '{shown}' are no {what}s, expected three finite numbers, "
        "none negative and not all zero"
    )


# ------------------------------------------------------------------ which format
def _kind(path: Path) -> str:
    with reading(path), path.open("rb") as file:
        start = file.read(4)
        if start[:2] == b"\x1f\x8b":
            file.seek(0)
            with gzip.open(file) as unpacked:
                start = unpacked.read(16)
        else:
            start += file.read(12)
    if start.startswith(b"PK\x03\x04"):
        return "npz"
    if start.startswith(b"##fileformat=VCF"):
        return "VCF"
    if start.startswith(b"BCF"):
        return "BCF"
    if start.startswith(b"marker"):
        return "Beagle"
    raise InputError(
        f"{path}: expected a VCF, a BCF, Beagle genotype likelihoods (a first line 'marker ...') or an npz"
    )


# ------------------------------------------------------------------ Beagle
@dataclass
class _Gathered:
    """Sites on their way into a batch."""

    rows: list[Floats] = field(default_factory=list)
    chromosomes: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def sites(self, path: Path, individuals: int) -> Sites:
        likelihoods = np.array(self.rows, np.float64).reshape(-1, individuals, 3)
        check(path, likelihoods, self.names)
        return Sites(likelihoods, self.chromosomes, np.array(self.positions, np.int64), np.zeros(len(likelihoods)))


def beagle(path: Path, tally: Tally) -> Iterator[Sites]:
    """marker, two alleles, then three likelihoods an individual; the second allele is the minor one."""
    with reading(path), _text(path) as lines:
        header = lines.readline().split()
        individuals = (len(header) - 3) // 3
        if len(header) < 6 or len(header) % 3:
            raise InputError(f"{path}:1: {len(header)} columns, expected marker, two alleles and three an individual")
        gathered = _Gathered()
        for number, line in enumerate(lines, 2):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != len(header):
                raise InputError(f"{path}:{number}: {len(fields)} columns, expected {len(header)} like the first line")
            try:
                gathered.rows.append(np.array(fields[3:], np.float64))
            except ValueError as error:
                raise InputError(f"{path}:{number}: a likelihood is a number: {error}") from None
            chromosome, position = _place(fields[0])
            gathered.chromosomes.append(chromosome)
            gathered.positions.append(position)
            gathered.names.append(f"line {number}")
            if len(gathered.rows) == at_once(individuals):
                yield gathered.sites(path, individuals)
                gathered = _Gathered()
    yield gathered.sites(path, individuals)


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOBase]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, "utf-8", "replace")


def _place(marker: str) -> tuple[str, int]:
    """Chromosome and position of a marker CHROM_POS or CHROM:POS; (the marker, 0) where it says neither."""
    for separator in "_:":
        chromosome, found, position = marker.rpartition(separator)
        if found and position.isdigit():
            return chromosome, int(position)
    return marker, 0


# ------------------------------------------------------------------ npz
def npz(path: Path, tally: Tally) -> Iterator[Sites]:
    """`P`, sites x individuals x 3, and where they are there `chrom` and `pos`."""
    with reading(path), zipfile.ZipFile(path) as archive:
        if "P.npy" not in archive.namelist():
            names = ", ".join(name.removesuffix(".npy") for name in archive.namelist())
            raise InputError(f"{path}: expected an array P of sites x individuals x 3, found {names or 'nothing'}")
        chromosomes, positions = _optional(path, archive, "chrom"), _optional(path, archive, "pos")
        with archive.open("P.npy") as file:
            shape, dtype = _npy_header(path, file)
            for given, name in ((chromosomes, "chrom"), (positions, "pos")):
                if given is not None and given.shape != shape[:1]:
                    raise InputError(
                        f"{path}: {name} has the shape {given.shape}, expected ({shape[0]},) like P's sites"
                    )
            sites, individuals, _ = shape
            step = at_once(individuals)
            for start in range(0, max(sites, 1), step):
                count = min(step, sites - start)
                data = file.read(count * individuals * 3 * dtype.itemsize)
                if len(data) < count * individuals * 3 * dtype.itemsize:
                    raise InputError(f"{path}: P ends before its {sites} sites are complete")
                likelihoods = np.frombuffer(data, dtype).astype(np.float64).reshape(count, individuals, 3)
                numbers = range(start, start + count)
                check(path, likelihoods, [f"P[{number}]" for number in numbers])
                yield Sites(
                    likelihoods,
                    ["." if chromosomes is None else str(chromosomes[number]) for number in numbers],
                    np.array([number + 1 if positions is None else positions[number] for number in numbers], np.int64),
                    np.zeros(count),
                )


def _optional(path: Path, archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any] | None:
    if f"{name}.npy" not in archive.namelist():
        return None
    with archive.open(f"{name}.npy") as file:
        try:
            return np.asarray(np.lib.format.read_array(file))
        except ValueError as error:
            raise InputError(f"{path}: {name} cannot be read: {error}") from None


def _npy_header(path: Path, file: IO[bytes]) -> tuple[tuple[int, int, int], np.dtype[np.generic]]:
    try:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(file)
    except ValueError as error:
        raise InputError(f"{path}: P is no NumPy array: {error}") from None
    if len(shape) != 3 or shape[2] != 3 or shape[1] < 1 or dtype.kind not in "fiu":
        raise InputError(f"{path}: P is {dtype} of shape {shape}, expected numbers of shape (sites, individuals, 3)")
    if fortran and shape[0] > 1:
        raise InputError(f"{path}: P is in Fortran order, expected C order: save np.ascontiguousarray(P)")
    return (shape[0], shape[1], shape[2]), dtype


def _variants(path: Path, tally: Tally) -> Iterator[Sites]:
    from .variant_calls import sites  # which needs a library of its own

    return sites(path, tally)


_READERS = {"VCF": _variants, "BCF": _variants, "Beagle": beagle, "npz": npz}
