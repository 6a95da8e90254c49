"""Likelihoods from an npz file: `P`, sites x individuals x 3, optional `chrom` and `pos`. Spectra to an npz file."""

from __future__ import annotations

import lzma
import math
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from simtbed.escaping import printable

from ...family import InputError
from ...files import Input, temporary_file
from .problem import Counts, Rows
from .sites import SectionReader, Sites, batch_size, check_likelihoods, loaded_section

MOST_MEMBERS = 1_000
PIECE = 1 << 20
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
LONGEST_CHROMOSOME = 1_000
DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, struct.error, ValueError, OverflowError)


def sections(source: Input) -> Iterator[SectionReader]:
    """Yield the sites of `P` in batches. Without `chrom` and `pos`, chromosomes are '.' and positions count from 1.
    Raise InputError if the file is malformed."""
    path = source.path
    with source.seekable_file() as file, ExitStack() as stack:
        with _damage(path):
            archive = stack.enter_context(zipfile.ZipFile(file))
        names = _members(path, archive)
        if "P" not in names:
            arrays = printable(", ".join(names))[:200]
            raise InputError(f"{path}: expected an array P of sites x individuals x 3, found {arrays or 'nothing'}")
        members = {
            name: stack.enter_context(_Member.opened(path, archive, name))
            for name in ("P", "chrom", "pos")
            if name in names
        }
        P = members["P"]
        _check(P, source.longest)
        sites, individuals = P.shape[:2]
        for name, member in members.items():
            if name != "P" and member.shape != P.shape[:1]:
                raise InputError(f"{path}: {name} has the shape {member.shape}, expected ({sites},) like P's sites")
        step = batch_size(individuals)
        for start in range(0, max(sites, 1), step):
            count = min(step, sites - start)
            with np.errstate(over="ignore"):  # of a wider type: infinity is refused below
                likelihoods = P.take(count).astype(np.float64).reshape(count, individuals, 3)
            check_likelihoods(path, likelihoods, partial(_place, start))
            chromosomes = _names(path, members["chrom"], start, count) if "chrom" in members else ["."] * count
            positions = np.arange(start + 1, start + count + 1)
            if "pos" in members:
                positions = _positions(path, members["pos"], start, count)
            yield loaded_section(Sites(likelihoods, chromosomes, positions, np.zeros(count)))
        for member in members.values():
            member.end()


def _place(start: int, site: int) -> str:
    """Return the name of a site in a batch that starts at `start`."""
    return f"P[{start + site}]"


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        raise InputError(f"{path}: damaged or truncated: {printable(error)}") from None
    except (NotImplementedError, RuntimeError) as error:  # encrypted, or an unknown compression
        raise InputError(f"{path}: cannot be unpacked: {printable(error)}") from None


def _members(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays, the members *.npy of the archive. Raise InputError if two have the same name."""
    names = archive.namelist()
    if len(names) > MOST_MEMBERS:
        raise InputError(f"{path}: {len(names):,} members, expected at most {MOST_MEMBERS:,}")
    arrays = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]  # zipfile cuts a name at NUL
    if len(set(arrays)) < len(arrays):
        raise InputError(f"{path}: two members have one name")
    return arrays


class _Member:
    """An array of the archive, read sequentially in C order."""

    def __init__(self, path: Path, name: str, file: IO[bytes]) -> None:
        self.path, self.name, self.file = path, name, file
        try:
            version = np.lib.format.read_magic(file)
            if version not in HEADERS:
                raise InputError(
                    f"{path}: {name} has the version {version[0]}.{version[1]} of NumPy's format, expected 1.0 or 2.0"
                )
            shape, self.fortran, self.dtype = HEADERS[version](file)
        except InputError:
            raise
        except Exception as error:  # the header is Python text; NumPy raises any error of its evaluation
            raise InputError(f"{path}: {name} is no NumPy array: {printable(error)[:200]}") from None
        if not all(type(size) is int and 0 <= size < 2**48 for size in shape) or math.prod(shape) >= 2**60:
            raise InputError(f"{path}: {name} has an impossible shape {printable(shape)[:80]}")
        self.shape: tuple[int, ...] = shape
        self.items = math.prod(shape[1:])

    @staticmethod
    @contextmanager
    def opened(path: Path, archive: zipfile.ZipFile, name: str) -> Iterator[_Member]:
        with ExitStack() as stack:
            with _damage(path):
                file = stack.enter_context(archive.open(f"{name}.npy"))
                member = _Member(path, name, file)
            yield member

    def take(self, rows: int) -> npt.NDArray[Any]:
        """Read the next rows, flat."""
        size = rows * self.items * self.dtype.itemsize
        with _damage(self.path):
            data = self.file.read(size)
        if len(data) < size:
            raise InputError(f"{self.path}: {self.name} ends before its {self.shape[0]} sites are complete")
        return np.frombuffer(data, self.dtype)

    def end(self) -> None:
        """Raise InputError if more data follow, or the checksum is wrong."""
        with _damage(self.path):
            more = self.file.read(1)
        if more:
            raise InputError(f"{self.path}: {self.name} continues after its {self.shape[0]} sites")


def _check(P: _Member, longest: int) -> None:
    shape, path = P.shape, P.path
    if len(shape) != 3 or shape[2] != 3 or shape[1] < 1 or P.dtype.kind not in "fiu":
        raise InputError(f"{path}: P is {P.dtype} of shape {shape}, expected numbers of shape (sites, individuals, 3)")
    if P.fortran and shape[0] > 1:
        raise InputError(f"{path}: P is in Fortran order, expected C order: save np.ascontiguousarray(P)")
    if P.items * max(P.dtype.itemsize, 8) > longest:
        raise InputError(
            f"{path}: a site of {shape[1]:,} individuals takes more than {longest:,} bytes, an eighth of --max-memory"
        )


def _names(path: Path, member: _Member, start: int, count: int) -> list[str]:
    """Return chromosomes as text: numbers in decimal, bytes as ASCII."""
    kind = member.dtype.kind
    if kind not in "USiu" or member.dtype.itemsize > 4 * LONGEST_CHROMOSOME or not member.dtype.itemsize:
        raise InputError(f"{path}: chrom is {member.dtype}, expected names of chromosomes, or whole numbers")
    try:
        array = member.take(count)
        if kind == "U" and (array.view(f"{array.dtype.str[0]}u4") > sys.maxunicode).any():
            raise ValueError("it contains an invalid character")
        values = array.tolist()
        names = [value.decode("ascii") if kind == "S" else str(value) for value in values]
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: chrom: {printable(error)[:200]}") from None
    for number, name in enumerate(names, start):
        if not name or not name.isprintable():
            raise InputError(f"{path}: chrom[{number}] is {printable(name)[:80]!r}, expected a printable name")
    return names


def _positions(path: Path, member: _Member, start: int, count: int) -> Counts:
    if member.dtype.kind not in "iu":
        raise InputError(f"{path}: pos is {member.dtype}, expected whole numbers")
    values = member.take(count)
    wrong = np.flatnonzero((values < 0) | (values > 10**18))
    if len(wrong):
        raise InputError(f"{path}: pos[{start + wrong[0]}] is {values[wrong[0]]}, expected 0 to 10^18")
    return values.astype(np.int64)


# ------------------------------------------------------------------ writing
def write(rows: Rows, target: IO[bytes]) -> None:
    """Write `values` (sites, 2N + 1), `pos`, and `chrom` as indices into `chromosomes`.

    The shapes are known at the end, so temporary files collect the arrays.
    """
    names: dict[str, int] = {}
    sites, width = 0, 0
    with temporary_file() as values, temporary_file() as positions, temporary_file() as chrom:
        for problem, answer in rows:
            sites, width = sites + len(answer), answer.shape[1]
            values.write(np.ascontiguousarray(answer, np.float64).data)
            positions.write(problem.positions.astype(np.int64).data)
            numbers = [names.setdefault(name, len(names)) for name in problem.chromosomes]
            chrom.write(np.array(numbers, np.int32).data)
        with zipfile.ZipFile(target, "w") as archive:
            _member(archive, "values", values, (sites, width), np.dtype(np.float64))
            _member(archive, "pos", positions, (sites,), np.dtype(np.int64))
            _member(archive, "chrom", chrom, (sites,), np.dtype(np.int32))
            with archive.open("chromosomes.npy", "w") as file:
                np.lib.format.write_array(file, np.array(list(names), np.str_))


def _member(
    archive: zipfile.ZipFile, name: str, data: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        data.seek(0)
        shutil.copyfileobj(data, file, PIECE)
