"""Generator of realistic pair-HMM problems: haplotypes with variants, reads with sequencing errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .problem import Bytes, Offsets, Problem, Read

LETTERS = np.frombuffer(b"ACGT", np.uint8)
Range = tuple[int, int]
"""Smallest and largest value, both included."""

SNP_RATE, INDEL_RATE = 0.02, 0.005
"""Per base of a haplotype; higher than the genome average, as active regions are selected by their variants."""


def generate(
    seed: int,
    *,
    records: int = 4,
    reads: Range = (5, 15),
    haplotypes: Range = (2, 6),
    read_length: Range = (30, 151),
    haplotype_length: Range = (120, 300),
    continuation: Range = (10, 10),
    unknown: float = 0.002,
) -> Problem:
    """Generate a problem of `records` records; each range is sampled for each record, read or base.

    read_length is limited by the haplotype. continuation: Phred gap continuation of a base. unknown: rate of N among bases. Equal
    arguments give equal problems.
    """
    draw = np.random.default_rng(seed)
    records_made = []
    for _ in range(records):
        reference = draw.choice(LETTERS, _uniform(draw, haplotype_length))
        alleles = [reference] + [_mutated(draw, reference) for _ in range(_uniform(draw, haplotypes) - 1)]
        chosen = [alleles[draw.integers(len(alleles))] for _ in range(_uniform(draw, reads))]
        sequenced = [_read(draw, allele, _uniform(draw, read_length), continuation, unknown) for allele in chosen]
        records_made.append((sequenced, [_with_unknown(draw, allele, unknown) for allele in alleles]))
    return Problem.from_records(records_made)


def equal_lengths(seed: int, pairs: int, read_length: int, haplotype_length: int) -> Problem:
    """Generate at least `pairs` pairs of these lengths, with one gap continuation.

    Records have at most 32 reads and 32 haplotypes with single-base differences. 512 reads are generated and repeated.
    """
    draw = np.random.default_rng(seed)
    side = min(32, max(1, int(pairs**0.5)))
    records = -(-pairs // side**2)
    records_made = []
    for _ in range(min(records, 16)):
        reference = draw.choice(LETTERS, max(read_length, haplotype_length))
        changed = draw.random((side, len(reference))) < SNP_RATE
        alleles = np.where(changed, draw.choice(LETTERS, changed.shape), reference)
        reads = [_read(draw, allele[:read_length], read_length, (10, 10), 0.0) for allele in alleles]
        records_made.append((reads, [allele[:haplotype_length] for allele in alleles]))
    return repeated(Problem.from_records(records_made), -(-records // len(records_made)))


def repeated(problem: Problem, times: int) -> Problem:
    """Repeat the records of a problem."""

    def tiled(lengths_in: Offsets) -> Offsets:
        return np.concatenate([[0], (lengths_in[1:] + lengths_in[-1] * np.arange(times)[:, None]).ravel()])

    columns = (problem.bases, problem.base_quality, problem.insertion, problem.deletion, problem.continuation)
    a, b, c, d, e = (np.tile(column, times) for column in columns)
    return Problem(
        a, b, c, d, e, tiled(problem.read_offsets), np.tile(problem.haplotypes, times),
        tiled(problem.haplotype_offsets), tiled(problem.record_reads), tiled(problem.record_haplotypes),
    )  # fmt: skip


def _uniform(draw: np.random.Generator, span: Range) -> int:
    return int(draw.integers(span[0], span[1] + 1))


def _mutated(draw: np.random.Generator, reference: Bytes) -> Bytes:
    """Return the reference with single-base changes and short insertions and deletions; never empty."""
    pieces = []
    at = 0
    while at < len(reference):
        event = draw.random()
        if event < SNP_RATE:
            pieces.append(draw.choice(LETTERS[reference[at] != LETTERS], 1))
        elif event < SNP_RATE + INDEL_RATE / 2:
            pieces.append(np.concatenate([reference[at : at + 1], draw.choice(LETTERS, draw.geometric(0.4))]))
        elif event < SNP_RATE + INDEL_RATE:
            at += int(draw.geometric(0.4)) - 1
        else:
            pieces.append(reference[at : at + 1])
        at += 1
    return np.concatenate(pieces) if pieces else reference


def _read(draw: np.random.Generator, allele: Bytes, length: int, continuation: Range, unknown: float) -> Read:
    """Return a window of the allele with sequencing errors at the rates of its qualities."""
    length = min(length, len(allele))
    first = int(draw.integers(len(allele) - length + 1))
    bases = allele[first : first + length].copy()
    quality = _base_quality(draw, length)
    wrong = np.flatnonzero(draw.random(length) < 10.0 ** (quality / -10.0))
    bases[wrong] = draw.choice(LETTERS, len(wrong))
    # Insertions and deletions are more frequent inside runs of one base (polymerase slippage).
    slips = 3 * _run_lengths(bases)
    gap_open = [np.clip(draw.integers(43, 48, length) - slips, 10, 60).astype(np.uint8) for _ in range(2)]
    continued = draw.integers(continuation[0], continuation[1] + 1, length).astype(np.uint8)
    return _with_unknown(draw, bases, unknown), quality, gap_open[0], gap_open[1], continued


def _base_quality(draw: np.random.Generator, length: int) -> Bytes:
    """Return Illumina-like qualities: high and flat, decreasing at the end, with single drops."""
    cycle = np.arange(length)
    level = 38.0 - 8.0 * (cycle / max(length, 100)) ** 2 + draw.normal(0.0, 2.0, length)
    drops = draw.random(length) < 0.05
    return np.clip(np.where(drops, draw.integers(2, 20, length), level), 2, 41).astype(np.uint8)


def _run_lengths(bases: Bytes) -> npt.NDArray[np.int64]:
    """Return the number of equal bases directly before each base."""
    change = np.flatnonzero(np.diff(bases, prepend=0))
    return np.arange(len(bases)) - np.repeat(change, np.diff(change, append=len(bases)))


def _with_unknown(draw: np.random.Generator, bases: Bytes, rate: float) -> Bytes:
    return np.where(draw.random(len(bases)) < rate, np.uint8(ord("N")), bases)
