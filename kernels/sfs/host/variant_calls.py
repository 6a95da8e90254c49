"""Genotype likelihoods from VCF and BCF: FORMAT PL or GL of biallelic sites, read by cyvcf2."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError

from ...family import InputError
from .files import Sites, Tally, at_once, check
from .problem import Counts, Floats

END_OF_BGZF = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
NOTHING_ELSE = ("<*>", "<NON_REF>", "*")
"""ALT of sites at which nothing but REF was seen."""
MISSING = np.iinfo(np.int32).min
END = MISSING + 1
"""htslib's marks for an integer that is missing, and for one beyond what a sample has."""
MISSING_REAL = (0x7F800001, 0x7F800002)
"""The same for floats, as their bits."""


@dataclass
class _Gathered:
    """Records on their way into a batch."""

    likelihoods: list[Floats] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    chromosomes: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    reads: list[tuple[Counts, Counts]] = field(default_factory=list)

    def sites(self, path: Path, individuals: int) -> Sites:
        likelihoods = np.array(self.likelihoods, np.float64).reshape(-1, individuals, 3)
        places = [f"{c}:{p}" for c, p in zip(self.chromosomes, self.positions, strict=True)]
        check(path, likelihoods, places, "genotype likelihood")
        reads = (np.array([a for a, _ in self.reads]), np.array([n for _, n in self.reads])) if self.reads else None
        positions = np.array(self.positions, np.int64)
        return Sites(likelihoods, self.chromosomes, positions, np.array(self.scales), reads)


def sites(path: Path, tally: Tally) -> Iterator[Sites]:
    """The file's sites, some at a time; what is skipped is counted in the tally. Raises InputError."""
    reader = _opened(path)
    individuals = len(reader.samples)
    if not individuals:
        raise InputError(f"{path}: no samples, expected genotype likelihoods of at least one")
    known = [name for name in ("PL", "GL") if reader.contains(name)]
    if not known:
        raise InputError(f"{path}: the header has neither FORMAT PL nor GL: no genotype likelihoods to work on")
    counting = reader.contains("AD")
    gathered, last = _Gathered(), "the header"
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
        found = _likelihoods(path, record, known, tally)
        if found is None:
            continue
        gathered.likelihoods.append(found[0])
        gathered.scales.append(found[1])
        gathered.chromosomes.append(record.CHROM)
        gathered.positions.append(record.POS)
        if counting:
            gathered.reads.append(_reads(record, individuals))
        if len(gathered.positions) == at_once(individuals):
            yield gathered.sites(path, individuals)
            gathered = _Gathered()
    yield gathered.sites(path, individuals)


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


def _likelihoods(path: Path, record: Any, known: list[str], tally: Tally) -> tuple[Floats, float] | None:
    """((N, 3) likelihoods, the largest 1, and the logarithm of what that took), or None and a count in the tally."""
    alternatives = [allele for allele in record.ALT if allele not in NOTHING_ELSE]
    if not alternatives:
        tally["skipped: no alternative allele"] += 1
        return None
    if len(record.ALT) > 1:
        tally["skipped: more than two alleles"] += 1
        return None
    name = next((name for name in known if name in record.FORMAT), None)
    values = record.format(name) if name else None
    if values is None:
        tally[f"skipped: neither {' nor '.join(known)}" if len(known) > 1 else f"skipped: no {known[0]}"] += 1
        return None
    missing, ended = _missing(values)
    unknown = np.asarray(missing.any(axis=1) | ended.all(axis=1))
    if unknown.all():
        return np.ones((len(values), 3)), 0.0
    if values.shape[1] != 3 or (ended.any(axis=1) & ~unknown).any():
        tally["skipped: a sample is not diploid"] += 1
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
