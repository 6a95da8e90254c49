"""Genotype likelihoods of sites of VCF or BCF, from FORMAT PL or GL, and allele depths. cyvcf2 reads the values."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import UnavailableError

from ...family import InputError
from ...files import temporary_file
from .exponentials import exponentials
from .files_vcf_header import LIKELIHOODS, Header
from .problem import Alleles, Counts, Floats
from .sites import SiteCounts, Sites, batch_size

NOTHING_ELSE = ("<*>", "<NON_REF>", "*", ".")
"""ALT values of sites with only REF."""
MISSING = np.iinfo(np.int32).min
END = MISSING + 1
"""htslib's marks for a missing integer and for the end of a vector."""
MISSING_REAL = (0x7F800001, 0x7F800002)
"""The bits of the same marks for floats."""
NOT_DIPLOID = "skipped: a sample is not diploid"

Values = npt.NDArray[Any]
"""A FORMAT field of a site: (individuals, values), int32 or float32."""


def require_cyvcf2(path: Path, format: str) -> Any:
    """Return the module. Raise UnavailableError if it is not installed."""
    try:
        import cyvcf2
    except ImportError:
        raise UnavailableError(f'{path} is a {format}, which only cyvcf2 reads: pip install "simtbed[vcf]"') from None
    ctypes.CDLL(cyvcf2.cyvcf2.__file__).hts_set_log_level(0)  # the readers report the errors themselves
    return cyvcf2


def read_records(cyvcf2: Any, header: bytes, content: Iterable[bytes | memoryview]) -> Iterator[Any]:
    """Yield the records of cyvcf2 for a header and the sites that follow it, up to one that htslib does not read."""
    with temporary_file() as file:
        file.write(header)
        file.writelines(content)
        file.flush()
        file.seek(0)
        reader = cyvcf2.VCF(file.fileno())
        try:
            yield from reader
        except MemoryError:
            raise
        except Exception:  # cyvcf2 raises no more specific error
            return
        finally:
            reader.close()


class Record(NamedTuple):
    """A site of two alleles. name: of the field with its likelihoods. values: that field, and AD and DP if they are collected."""

    chromosome: str
    position: int
    alleles: Alleles
    name: str
    values: dict[str, Values]


class Batch:
    """Collects the records of a batch of sites. posteriors: whether to collect ID, REF, ALT, and depths if the header has AD."""

    def __init__(self, path: Path, header: Header, posteriors: bool, counts: SiteCounts) -> None:
        self.path, self.counts, self.posteriors = path, counts, posteriors
        self.samples, self.depths = tuple(header.samples), posteriors and "AD" in header.formats
        self.records: list[Record] = []
        self.values: list[Values] = []
        self.reads: list[tuple[Counts, Counts]] = []

    def collect(self, records: Iterable[Record], last: bool) -> Iterator[Sites]:
        """Yield the sites of records in batches, at least one batch if this is the last section of the file. An error of a record
        follows those of the preceding ones."""
        try:
            for record in records:
                self._add(record)
                if len(self.records) == batch_size(len(self.samples)):
                    yield self._sites()
        except InputError:
            self._sites()
            raise
        if self.records or last:
            yield self._sites()

    def _add(self, record: Record) -> None:
        values, individuals = record.values[record.name], len(self.samples)
        if values.shape[1] != 3:
            missing, ended = _marks(values)
            if not (missing.any(axis=1) | ended.all(axis=1)).all():
                self.counts[NOT_DIPLOID] += 1
                return
            values = np.full((individuals, 3), MISSING, np.int32)
        self.records.append(record)
        self.values.append(values)
        if self.depths:
            self.reads.append(_reads(record.values, individuals))

    def _sites(self) -> Sites:
        """Return the collected sites and start a new batch. Raise InputError if a value is no likelihood."""
        logarithms, diploid = self._logarithms()
        records = [record for record, selected in zip(self.records, diploid, strict=True) if selected]
        depths = np.array(self.reads, np.int64).reshape(-1, 2, len(self.samples))[diploid] if self.depths else None
        largest = logarithms.max(axis=0)
        result = Sites(
            exponentials(np.moveaxis(logarithms - largest, 0, 2)),
            [record.chromosome for record in records],
            np.array([record.position for record in records], np.int64),
            largest.sum(axis=1),
            None if depths is None else (depths[:, 0], depths[:, 1]),
            [record.alleles for record in records] if self.posteriors else [],
            self.samples,
        )
        self.records, self.values, self.reads = [], [], []
        return result

    def _logarithms(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the logarithms of the diploid sites, (3, sites, N), 0 for a sample without information; and which sites are diploid."""
        shape = (3, len(self.values), len(self.samples))
        logarithms, missing, ended = np.empty(shape), np.empty(shape, np.bool_), np.empty(shape, np.bool_)
        phred = np.array([values.dtype == np.int32 for values in self.values], np.bool_)
        for at, factor in ((phred, -math.log(10.0) / 10.0), (~phred, math.log(10.0))):
            if at.any():
                stacked = np.array([values.T for values, selected in zip(self.values, at, strict=True) if selected])
                stacked = np.ascontiguousarray(stacked.transpose(1, 0, 2))
                missing[:, at], ended[:, at] = _marks(stacked)
                with np.errstate(invalid="ignore"):  # the marks are signalling NaN
                    logarithms[:, at] = stacked.astype(np.float64) * factor
        unknown = np.asarray(missing.any(axis=0) | ended.all(axis=0))
        diploid = np.asarray(~np.any(ended.any(axis=0) & ~unknown, axis=1))
        wrong = np.isnan(logarithms) | (logarithms == np.inf) | ((logarithms > 0) & phred[:, None])
        wrong = (wrong.any(axis=0) | (logarithms == -np.inf).all(axis=0)) & ~unknown & diploid[:, None]
        if wrong.any():
            raise self._error(*np.argwhere(wrong)[0].tolist())
        self.counts[NOT_DIPLOID] += int((~diploid).sum())
        logarithms[:, unknown] = 0
        return logarithms[:, diploid], diploid

    def _error(self, site: int, sample: int) -> InputError:
        record = self.records[site]
        shown = ",".join(f"{value:g}" for value in self.values[site][sample])
        expected = "Phred scores from 0 up"
        if record.name != "PL":
            expected = "logarithms to base 10, at least one above -inf"
        place = f"{record.chromosome}:{record.position}, sample {sample + 1}"
        return InputError(f"{self.path}: {place}: {record.name} is {shown}, expected {expected}")


def field_of(alternatives: list[str], fields: Iterable[str], counts: SiteCounts) -> str | None:
    """Return the field with the likelihoods of a site of two alleles; None and a count of the reason for other sites."""
    if not any(allele not in NOTHING_ELSE for allele in alternatives):
        counts["skipped: no alternative allele"] += 1
    elif len(alternatives) > 1:
        counts["skipped: more than two alleles"] += 1
    elif name := next((name for name in LIKELIHOODS if name in fields), None):
        return name
    else:
        counts[f"skipped: neither {' nor '.join(LIKELIHOODS)}"] += 1
    return None


def _marks(values: Values) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which numbers are missing, and which are after the end of a sample's vector."""
    if values.dtype.kind == "f":
        bits = values.view(np.uint32)
        return bits == MISSING_REAL[0], bits == MISSING_REAL[1]
    return values == MISSING, values == END


def _reads(values: dict[str, Values], individuals: int) -> tuple[Counts, Counts]:
    """Return the reads of ALT and of both alleles, from AD of both, or from AD of ALT and DP. Missing depths are 0."""
    depths = np.maximum(values.get("AD", np.zeros((individuals, 0))).astype(np.int64), 0)
    if depths.shape[1] >= 2:
        return depths[:, 1], depths[:, 0] + depths[:, 1]
    if "DP" not in values or not depths.shape[1]:
        nothing = np.zeros(individuals, np.int64)
        return nothing, nothing
    whole = np.maximum(values["DP"].astype(np.int64)[:, 0], 0)
    return np.minimum(depths[:, 0], whole), whole
