"""What the correction tests share: the published reads and CUDA-EC's answers."""

from __future__ import annotations

import gzip
from pathlib import Path


def answers(path: Path) -> list[str]:
    """`flag sequence` of every row of a file of `sequence flag length`."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [line.split("\t") for line in text.decode().splitlines()]
    assert all(len(sequence) == int(length) for sequence, _, length in rows)
    return [f"{flag} {sequence}" for sequence, flag, _ in rows]


PUBLISHED = [
    ("correction_1000g/reads100.fq", 3, "correction_1000g/expected_k20_m3_v2_exact.tsv"),
    ("correction_1000g/reads100.fq", 6, "correction_1000g/expected_k20_m6_v2_exact.tsv"),
    ("correction_ecoli/ecoli1k_first36.fa.gz", 6, "correction_ecoli/expected_first36_k20_m6_exact.tsv.gz"),
]
"""Reads, min_multiplicity, answers."""
