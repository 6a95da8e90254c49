"""Spectra as text dumps of KMC and Jellyfish: k-mers and their counts.

A line is `KMER COUNT`, separated by a tab (kmc_dump) or a space (jellyfish dump -c), or two lines are `>COUNT` and `KMER`
(jellyfish dump). A k-mer and its reverse complement may be listed together, under either one, or separately: their counts are added.
Each strand of a read counts, so a k-mer equal to its reverse complement counts twice; a dump lists it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...family import InputError
from ...files import MEMORY, excerpt, open_input
from ...files.pieces import Piece, is_blank, read_pieces
from ...files.text_loops import after_newline, newlines
from ...pipeline import Flow, Show, workers_for
from .files_spectrum_scan import format_spectrum, scan_spectrum
from .pipeline import Counter, KmerCounts
from .problem import Bytes

PIECE = 1 << 22
"""Bytes of a dump parsed at a time."""
MEMORY_SHARE = 512
"""A piece occupies at most 1 / MEMORY_SHARE of the memory."""
PARSERS = 4
"""Maximum number of parsing threads."""
MOST_DIGITS = 10
AT_ONCE = 1 << 18
"""K-mers written at a time."""


class CountBlock(NamedTuple):
    """The counts of some lines of a dump. fraction: see `Piece`."""

    counted: KmerCounts
    fraction: float | None


def load(path: Path, counter: Counter, memory: int = MEMORY, show: Show = lambda step, k_mers, fraction: None) -> None:
    """Add the counts of a dump. Raise InputError if it is malformed or has k-mers of another length."""
    loaded = 0

    def take(block: CountBlock) -> None:
        nonlocal loaded
        loaded += len(block.counted.keys)
        counter.take(block.counted, block.fraction)
        show("loading", loaded, block.fraction)

    counts_of(path, counter.k, memory).into(take)


def counts_of(path: Path, k: int, memory: int = MEMORY) -> Flow[CountBlock]:
    """Return a flow of the counts of a dump. Raise InputError if it is malformed."""

    def read() -> Iterator[tuple[Piece, str, bool]]:
        with open_input(path, memory) as file:
            two_lines = file.peek(1)[:1] == b">"
            for piece in read_pieces(
                file, min(PIECE, memory // MEMORY_SHARE), _measure(2 if two_lines else 1), "a line"
            ):
                yield piece, str(file.path), two_lines

    def parse(entry: tuple[Piece, str, bool]) -> CountBlock:
        piece, name, two_lines = entry
        data = piece.data
        most = int(newlines(data, len(data))) + 1
        keys, counts, state = np.empty(most, np.uint64), np.empty(most, np.uint32), np.zeros(2, np.int64)
        if not scan_spectrum(data, len(data), k, two_lines, keys, counts, state):
            at = int(state[1])
            complete = not two_lines or int(newlines(data[:at], at)) % 2 == 0
            if not (complete and (piece.lines or at) and piece.last and is_blank(data[at:])):
                raise _mistake(piece, name, two_lines, k, at)
        return CountBlock(KmerCounts(keys[: state[0]], counts[: state[0]]), piece.fraction)

    return Flow(read()).map(parse, workers_for(PARSERS))


def _measure(lines: int) -> Callable[[Bytes], tuple[int, int]]:
    """Return a function that returns the length and the number of newlines of the complete records of `lines` lines."""

    def whole(data: Bytes) -> tuple[int, int]:
        count = int(newlines(data, len(data)))
        block = count - count % lines
        return (int(after_newline(data, len(data), count - block)), block) if block else (0, 0)

    return whole


def _mistake(piece: Piece, name: str, two_lines: bool, k: int, at: int) -> InputError:
    """Return the error of the line at `at`."""
    line = piece.lines + int(newlines(piece.data[:at], at)) + 1
    content = piece.data[at:].tobytes().split(b"\n")[0].strip()
    form = "'>' and a count, then a k-mer" if two_lines else "a k-mer and a count"
    letters = content.split()[0] if content.split() else b""
    if letters.isalpha() and letters.isascii() and len(letters) != k and not set(letters.upper()) - set(b"ACGTU"):
        return InputError(f"{name}:{line}: {excerpt(letters)} has {len(letters)} letters, expected {k} as --k says")
    return InputError(
        f"{name}:{line}: {excerpt(content)}, expected {form}, of {k} letters A, C, G, T and 1 to {2**32 - 1:,}"
    )


def dump_lines(counter: Counter) -> Iterator[Bytes]:
    """Yield the counter's k-mers as a dump, in the order of their packed forms, some complete lines at a time."""
    keys, counts = counter.counted()
    order = np.argsort(keys)
    for first in range(0, len(order), AT_ONCE):
        block = order[first : first + AT_ONCE]
        to = np.empty(len(block) * (counter.k + 2 + MOST_DIGITS), np.uint8)
        length = format_spectrum(keys[block], counts[block], len(block), counter.k, to)
        yield to[:length]
