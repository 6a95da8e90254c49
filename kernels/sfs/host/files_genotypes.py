"""Genotype likelihoods of a site of VCF or BCF, from FORMAT PL or GL, and allele depths."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...family import InputError
from .exponentials import exponentials
from .files_vcf_header import LIKELIHOODS
from .problem import Counts, Floats
from .sites import SiteCounts

NOTHING_ELSE = ("<*>", "<NON_REF>", "*", ".")
"""ALT values of sites with only REF."""
MISSING = np.iinfo(np.int32).min
END = MISSING + 1
"""htslib's marks for a missing integer and for the end of a vector."""
MISSING_REAL = (0x7F800001, 0x7F800002)
"""The bits of the same marks for floats."""

Values = npt.NDArray[Any]
Get = Callable[[str], Values]
"""Returns a FORMAT field of a site: (individuals, values), int32 or float32."""


def field_of(alternatives: list[str], fields: list[str], counts: SiteCounts) -> str | None:
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


def likelihoods(path: Path, place: str, name: str, values: Values, counts: SiteCounts) -> tuple[Floats, float] | None:
    """Return ((N, 3) likelihoods with maximum 1, logarithm of the removed factor), or None and a count of the reason."""
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
        raise InputError(f"{path}: {place}, sample {bad[0] + 1}: {name} is {shown}, expected {expected}")
    logarithms = np.where(unknown[:, None], 0.0, logarithms)
    largest = logarithms.max(axis=1)
    return exponentials(logarithms - largest[:, None]), float(largest.sum())


def _missing(values: Values) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which numbers are missing, and which are after the end of a sample's vector."""
    if values.dtype.kind == "f":
        bits = values.view(np.uint32)
        return bits == MISSING_REAL[0], bits == MISSING_REAL[1]
    return values == MISSING, values == END


def reads(fields: list[str], get: Get, individuals: int) -> tuple[Counts, Counts]:
    """Return the reads of ALT and of both alleles, from AD of both, or from AD of ALT and DP. Missing depths are 0."""
    nothing = np.zeros(individuals, np.int64)
    if "AD" not in fields:
        return nothing, nothing
    depths = np.maximum(get("AD").astype(np.int64), 0)
    if depths.shape[1] >= 2:
        return depths[:, 1], depths[:, 0] + depths[:, 1]
    if "DP" not in fields or not depths.shape[1]:
        return nothing, nothing
    whole = np.maximum(get("DP").astype(np.int64)[:, 0], 0)
    return np.minimum(depths[:, 0], whole), whole
