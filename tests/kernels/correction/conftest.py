"""What the correction tests share: launchers, the published reads with CUDA-EC's answers, small problems."""

from __future__ import annotations

import gzip
import os
from functools import partial
from pathlib import Path

import pytest
from simtbed.emulator import launch
from simtbed.kernels import Launcher


@pytest.fixture(scope="session")
def launcher() -> Launcher:
    return partial(launch, counters=False)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of published inputs and answers; tests that ask for it are skipped where SIMTBED_DATA is not set."""
    if "SIMTBED_DATA" not in os.environ:
        pytest.skip("SIMTBED_DATA names no folder of published data")
    return Path(os.environ["SIMTBED_DATA"])


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
