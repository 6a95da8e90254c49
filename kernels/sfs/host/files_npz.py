"""Likelihoods from an npz file: `P`, sites x individuals x 3, perhaps `chrom` and `pos`; spectra to an npz file."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ...family import InputError
from ...files import reading
from .problem import Rows
from .sites import SiteCounts, Sites, batch_size, check_likelihoods


def read(path: Path, counts: SiteCounts) -> Iterator[Sites]:
    """The sites of `P`, a batch at a time; chromosomes are '.' and positions count from 1 without `chrom` and `pos`.
    Raises InputError."""
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
            step = batch_size(individuals)
            for start in range(0, max(sites, 1), step):
                count = min(step, sites - start)
                data = file.read(count * individuals * 3 * dtype.itemsize)
                if len(data) < count * individuals * 3 * dtype.itemsize:
                    raise InputError(f"{path}: P ends before its {sites} sites are complete")
                likelihoods = np.frombuffer(data, dtype).astype(np.float64).reshape(count, individuals, 3)
                numbers = range(start, start + count)
                check_likelihoods(path, likelihoods, [f"P[{number}]" for number in numbers])
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


# ------------------------------------------------------------------ writing
def write(rows: Rows, target: IO[bytes]) -> None:
    """`values` (sites, 2N + 1) as they come; `pos`; `chrom` as numbers into `chromosomes`.

    Raises OSError. The shapes are known last, so the arrays wait in files of their own.
    """
    names: dict[str, int] = {}
    sites, width = 0, 0
    with tempfile.TemporaryFile() as values, tempfile.TemporaryFile() as positions, tempfile.TemporaryFile() as chrom:
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
        shutil.copyfileobj(data, file)
