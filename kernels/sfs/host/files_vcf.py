"""Reads genotype likelihoods from VCF and BCF with cyvcf2: FORMAT PL or GL of biallelic sites."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError

from ...family import InputError
from .problem import Counts, Floats
from .sites import SiteBatch, SiteCounts, Sites

END_OF_BGZF = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
NOTHING_ELSE = ("<*>", "<NON_REF>", "*")
"""ALT of sites at which nothing but REF was seen."""
MISSING = np.iinfo(np.int32).min
END = MISSING + 1
"""htslib's marks for an integer that is missing, and for one beyond what a sample has."""
MISSING_REAL = (0x7F800001, 0x7F800002)
"""The same for floats, as their bits."""


def read(path: Path, counts: SiteCounts) -> Iterator[Sites]:
    """The file's sites, a batch at a time; what is skipped is in `counts`. Raises InputError."""
    reader = _opened(path)
    individuals = len(reader.samples)
    if not individuals:
        raise InputError(f"{path}: no samples, expected genotype likelihoods of at least one")
    known = [name for name in ("PL", "GL") if reader.contains(name)]
    if not known:
        raise InputError(f"{path}: the header has neither FORMAT PL nor GL: no genotype likelihoods to work on")
    counting = reader.contains("AD")
    batch, last = SiteBatch(individuals), "the header"
    records = iter(reader)
    while True:
        try:
            record = next(records)
        except StopIteration:
            break
        except Exception as error:  # cyvcf2 raises nothing more special
            raise InputError(
                f"{path}: the record after {last} cannot be read: truncated or damaged ({error})"
            ) from None
        last = f"{record.CHROM}:{record.POS}"
        found = _likelihoods(path, record, known, counts)
        if found is None:
            continue
        likelihoods, scale = found
        batch.add(likelihoods, record.CHROM, record.POS, last, scale)
        if counting:
            batch.reads.append(_reads(record, individuals))
        if batch.full:
            yield batch.sites(path, "genotype likelihood")
            batch = SiteBatch(individuals)
    yield batch.sites(path, "genotype likelihood")


def _opened(path: Path) -> Any:
    try:
        import cyvcf2
    except ModuleNotFoundError:
        raise SimtbedError(f'{path}: reading VCF and BCF needs cyvcf2: pip install "simtbed[vcf]"') from None
    with path.open("rb") as file:
        if file.read(4) == b"\x1f\x8b\x08\x04":  # blocks of gzip, which end with an empty one
            file.seek(-len(END_OF_BGZF), 2)
            if file.read() != END_OF_BGZF:
                raise InputError(f"{path}: truncated: the empty block that ends a BGZF file is not there")
    library = ctypes.CDLL(cyvcf2.cyvcf2.__file__)
    library.hts_set_log_level(0)  # what htslib would print comes as an exception, too
    try:
        return cyvcf2.VCF(str(path))
    except OSError as error:
        raise InputError(f"{path}: {error}") from None


def _likelihoods(path: Path, record: Any, known: list[str], counts: SiteCounts) -> tuple[Floats, float] | None:
    """((N, 3) likelihoods, the largest 1, and the logarithm of what that took), or None and why in `counts`."""
    alternatives = [allele for allele in record.ALT if allele not in NOTHING_ELSE]
    if not alternatives:
        counts["skipped: no alternative allele"] += 1
        return None
    if len(record.ALT) > 1:
        counts["skipped: more than two alleles"] += 1
        return None
    name = next((name for name in known if name in record.FORMAT), None)
    values = record.format(name) if name else None
    if values is None:
        counts[f"skipped: neither {' nor '.join(known)}" if len(known) > 1 else f"skipped: no {known[0]}"] += 1
        return None
    missing, ended = _missing(values)
    unknown = np.asarray(missing.any(axis=1) | ended.all(axis=1))
    if unknown.all():
        return np.ones((len(values), 3)), 0.0
    if values.shape[1] != 3 or (ended.any(axis=1) & ~unknown).any():
        counts["skipped: a sample is not diploid"] += 1
        return None
    if name == "PL":
        logarithms, wrong = values * (-math.log(10.0) / 10.0), values < 0
    else:
        logarithms = values.astype(np.float64) * math.log(10.0)
        wrong = np.isnan(values) | (values == np.inf) | (values == -np.inf).all(axis=1, keepdims=True)
    bad = np.flatnonzero(wrong.any(axis=1) & ~unknown)
    if len(bad):
        shown = ",".join(f"{value:g}" for value in values[bad[0]])
        expected = "Phred scores from 0 up" if name == "PL" else "logarithms to base 10, at least one above -inf"
        place = f"{record.CHROM}:{record.POS}, sample {bad[0] + 1}"
        raise InputError(f"{path}: {place}: {name} is {shown}, expected {expected}")
    logarithms = np.where(unknown[:, None], 0.0, logarithms)
    largest = logarithms.max(axis=1)
    return np.exp(logarithms - largest[:, None]), float(largest.sum())


def _missing(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which numbers are missing, and which lie beyond what a sample has."""
    if values.dtype.kind == "f":
        bits = values.view(np.uint32)
        return bits == MISSING_REAL[0], bits == MISSING_REAL[1]
    return values == MISSING, values == END


def _reads(record: Any, individuals: int) -> tuple[Counts, Counts]:
    """Reads of ALT and of both alleles; from AD of both, or from AD of ALT alone and DP. 0 where they are missing."""
    nothing = np.zeros(individuals, np.int64)
    if "AD" not in record.FORMAT:
        return nothing, nothing
    depths = np.maximum(record.format("AD").astype(np.int64), 0)
    if depths.shape[1] >= 2:
        return depths[:, 1], depths[:, 0] + depths[:, 1]
    if "DP" not in record.FORMAT:
        return nothing, nothing
    whole = np.maximum(record.format("DP").astype(np.int64)[:, 0], 0)
    return np.minimum(depths[:, 0], whole), whole
