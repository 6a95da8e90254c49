"""Generator of alignment problems: references and mutated windows of them."""

from __future__ import annotations

import numpy as np

from .problem import Bytes, Problem

LETTERS = np.frombuffer(b"ACGT", np.uint8)
Range = tuple[int, int]
"""Smallest and largest value, both included."""

SNP_RATE, GAPS, LONGEST_GAP = 0.02, 2, 12
"""Substitutions per base; maximum number of gaps of a pair and their maximum length."""


def generate(seed: int, count: int, rows: Range, columns: Range) -> Problem:
    """Generate `count` pairs with lengths n and m from the ranges.

    An alternate is a window of the reference with substitutions and gaps, followed by random bases if it is longer. Equal arguments
    give equal problems.
    """
    draw = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        reference = draw.choice(LETTERS, draw.integers(rows[0], rows[1] + 1))
        pairs.append((reference, _alternate(draw, reference, int(draw.integers(columns[0], columns[1] + 1)))))
    return Problem.from_pairs(pairs)


def _alternate(draw: np.random.Generator, reference: Bytes, length: int) -> Bytes:
    bases = reference[draw.integers(max(len(reference) - length, 0) + 1) :].copy()
    changed = draw.random(len(bases)) < SNP_RATE
    bases[changed] = draw.choice(LETTERS, int(changed.sum()))
    for _ in range(draw.integers(GAPS + 1)):
        at, gap = draw.integers(len(bases) + 1), draw.integers(1, LONGEST_GAP + 1)
        inserted = draw.choice(LETTERS, gap) if draw.random() < 0.5 else bases[:0]
        bases = np.concatenate([bases[:at], inserted, bases[at if len(inserted) else at + gap :]])
    return np.concatenate([bases, draw.choice(LETTERS, max(length - len(bases), 0))])[:length]
