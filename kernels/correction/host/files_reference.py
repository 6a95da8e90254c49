"""Reference of simulated reads: the runs of bases in the records of a FASTA file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from simtbed import SimtbedError

from ...family import InputError
from ...files import Input, excerpt, open_input
from ...files.fasta import Records, read_records
from ...files.letters import EXPECTED, folded, no_letter
from .generate import Reference
from .problem import Bytes, Offsets

UNKNOWN = ord("N")


def read_reference(path: Path, shortest: int, memory: int) -> Reference:
    """Return the runs of at least `shortest` bases A, C, G and T; a run is within a record. Letters: see `files.letters`.

    Raises InputError for a malformed file or one without such a run, SimtbedError for more than a quarter of the memory.
    """
    bases: list[Bytes] = []
    lengths: list[Offsets] = []
    total = longest = records = 0
    with open_input(path, memory) as source:
        for batch in read_records(source):
            letters, lengths_of_batch = _runs(batch, records, source)
            records += len(batch)
            longest = max(longest, int(lengths_of_batch.max(initial=0)))
            usable = lengths_of_batch >= shortest
            bases.append(letters[np.repeat(usable, lengths_of_batch)])
            lengths.append(lengths_of_batch[usable])
            total += len(bases[-1])
            if total > memory // 4:
                raise SimtbedError(f"{source.path}: the reference takes more than a quarter of --max-memory")
    if not total:
        raise InputError(
            f"{path}: no record has {shortest} consecutive bases A, C, G or T, the length of a read; the longest run has {longest}"
        )
    return Reference.of_runs(np.concatenate(bases), np.concatenate(lengths))


def _runs(batch: Records, before: int, source: Input) -> tuple[Bytes, Offsets]:
    """Return the bases of all runs, concatenated, and the length of each. before: number of preceding records."""
    text, offsets = batch.sequences()
    try:
        letters = folded(text)
    except SimtbedError:
        wrong = next(record for record in range(len(batch)) if no_letter(batch.sequence(record)))
        name = excerpt(batch.name(wrong).encode())
        raise InputError(
            f"{source.path}: record {before + wrong + 1}, {name}, holds {no_letter(batch.sequence(wrong))}, {EXPECTED}"
        ) from None
    is_base = letters != UNKNOWN
    within = np.zeros(len(letters) + 1, np.bool_)  # whether the base before each position is of the same run
    within[1:-1] = is_base[:-1] & is_base[1:]
    within[offsets] = False
    starts, ends = np.flatnonzero(is_base & ~within[:-1]), np.flatnonzero(is_base & ~within[1:]) + 1
    return letters[is_base], ends - starts
