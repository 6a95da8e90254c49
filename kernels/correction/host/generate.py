"""Reads from a seed, as a sequencer makes them, with the truth beside them: where errors are is known, not guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .problem import Bytes, Offsets, Problem, Reads

LETTERS = np.frombuffer(b"ACGT", np.uint8)
COMPLEMENT = np.zeros(256, np.uint8)
COMPLEMENT[LETTERS] = LETTERS[::-1]
PIECE = 1 << 20
"""Bases that are drawn at a time."""
WORST = 0.5
"""Errors a base in the worst reads, at their ends."""


@dataclass(frozen=True)
class Simulated:
    """reads: with errors. truth: the same without. quality: Phred + 33 of every base, placed as in the reads' text."""

    reads: Reads
    truth: Reads
    quality: Bytes


def example() -> Problem:
    """700 bases, 15 times over, one base in a hundred wrong."""
    return Problem(simulate(1, genome(1, 700), 250, (30, 50), 0.01, unknown=0.001).reads)


def genome(seed: int, length: int) -> Bytes:
    """Random bases."""
    draw = np.random.default_rng(seed)
    return np.concatenate([draw.choice(LETTERS, min(PIECE, length - at)) for at in range(0, length, PIECE)])


def simulate(
    seed: int | np.random.Generator,
    reference: Bytes,
    reads: int,
    length: tuple[int, int],
    error_rate: float,
    unknown: float = 0.0,
) -> Simulated:
    """Reads of a reference of A, C, G, T, from both strands, their lengths drawn between two (both possible).

    error_rate: substitutions a base. Errors cluster, as Illumina's do: towards the end of a read (a last base is wrong
    five times as often as a first one), and in some reads (their rates are spread log-normally, sigma 1). Qualities
    state each base's rate. unknown: rate of N. Equal arguments give equal reads; a generator goes on where it stands.
    """
    draw = np.random.default_rng(seed)
    lengths = draw.integers(length[0], np.minimum(length[1], len(reference)) + 1, reads)
    starts = (draw.random(reads) * (len(reference) - lengths + 1)).astype(np.int64)
    offsets: Offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    text = np.full(offsets[-1], ord("\n"), np.uint8)
    inside = np.ones(len(text), np.bool_)
    inside[offsets[1:] - 1] = False
    owner = np.repeat(np.arange(reads), lengths)
    cycle = np.arange(len(text))[inside] - np.repeat(offsets[:-1], lengths)

    backward = draw.random(reads) < 0.5
    source = np.where(backward[owner], starts[owner] + lengths[owner] - 1 - cycle, starts[owner] + cycle)
    bases = reference[source]
    bases = np.where(backward[owner], COMPLEMENT[bases], bases)
    text[inside] = bases
    truth = Reads(text.copy(), offsets)

    rates = _rates(draw, error_rate, cycle / np.maximum(lengths[owner] - 1, 1), owner, reads)
    wrong = np.flatnonzero(draw.random(len(bases)) < rates)
    # Another letter: one, two or three further in the alphabet of four.
    numbers = np.searchsorted(LETTERS, bases[wrong]) + draw.integers(1, 4, len(wrong))
    bases[wrong] = LETTERS[numbers % 4]
    bases[draw.random(len(bases)) < unknown] = ord("N")
    text[inside] = bases
    quality = np.full(len(text), ord("\n"), np.uint8)
    quality[inside] = np.clip(np.round(-10 * np.log10(np.maximum(rates, 1e-5))), 2, 41).astype(np.uint8) + 33
    return Simulated(Reads(text, offsets), truth, quality)


def _rates(
    draw: np.random.Generator, error_rate: float, along: npt.NDArray[np.float64], owner: Offsets, reads: int
) -> npt.NDArray[np.float64]:
    """Each base's chance of an error. along: 0 at a read's first base, 1 at its last."""
    shape = 1 + 4 * along**2
    luck = draw.lognormal(-0.5, 1.0, reads)  # of mean 1
    expected = shape * luck[owner]
    return np.minimum(expected * (error_rate / max(expected.mean(), 1e-12)), WORST) if len(expected) else expected
