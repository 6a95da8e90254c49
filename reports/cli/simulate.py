"""`simtbed simulate`: reads with sequencing errors, and the same reads without."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.correction.host.generate import ReadSamples, records_of, sample_reads
from simtbed.kernels.correction.host.generate import genome as random_genome
from simtbed.kernels.correction.host.problem import Bytes, in_upper_case
from simtbed.kernels.files import Outputs, open_input
from simtbed.kernels.files.fasta import read_records
from simtbed.kernels.pipeline import Flow, Show, workers_for
from simtbed.runtime.cores import current_cores, on_cores

from ..terminal import progress_of_records
from .options import MEMORY, Dask, MaxMemory, Threads
from .output import tell
from .parameters import Option, command

BASES_AT_ONCE = 1 << 20
"""Of reads, beyond one: what a batch takes is bounded whatever is asked for."""
BYTES_OF_A_BASE = 128
"""That the batches which are held at a time take for each base of one."""
MAKERS = 4
"""Threads that make letters and text at most."""
MOST_READS = 1 << 48
_BASE = np.isin(np.arange(256), list(b"ACGT"))


@command
def simulate(
    output: Annotated[
        Path,
        Option(("--output", "-o"), metavar="FASTQ", help="Reads with errors; - is stdout."),
    ],
    truth: Annotated[Path | None, Option(("--truth",), metavar="FASTA", help="The same without errors.")] = None,
    reference: Annotated[
        Path | None,
        Option(("--reference",), metavar="FASTA", help="Of A, C, G, T; - is stdin; else one is made at random."),
    ] = None,
    genome: Annotated[int, Option(min=1, max=1 << 36, help="Bases of a reference made at random.")] = 100_000,
    coverage: Annotated[
        float, Option(above=0, max=100_000, help="Bases of reads for each base of the reference.")
    ] = 30.0,
    length: Annotated[str, Option(metavar="N|N-M", help="Bases of a read; a range is drawn from.")] = "36",
    error_rate: Annotated[float, Option(min=0, max=0.25, help="Substitutions a base.")] = 0.01,
    seed: Annotated[int, Option(min=0, max=(1 << 63) - 1, help="Equal seeds give equal reads.")] = 1,
    threads: Threads = None,
    dask: Dask = None,
    max_memory: MaxMemory = MEMORY,
) -> int:
    """Make reads with sequencing errors, to try `simtbed correct` on.

    \b
    simtbed simulate -o reads.fastq --truth truth.fasta --seed 7
    """
    span = _range(length)
    if reference is None and genome > max_memory // 2:
        raise SimtbedError(f"--genome {genome:,} takes more than half of --max-memory")
    if span[1] * BYTES_OF_A_BASE > max_memory:
        raise SimtbedError(f"--length {length}: {BYTES_OF_A_BASE} bytes a base are more than --max-memory")
    with (
        on_cores(threads or current_cores()),
        Outputs({"--output": output, "--truth": truth}, [reference]) as outputs,
        progress_of_records("simulate", "reads") as show,
    ):
        bases = _reference(reference, max_memory) if reference else random_genome(seed, genome)
        if len(bases) < span[0]:
            raise SimtbedError(f"a reference of {len(bases)} bases has no reads of {span[0]}")
        wanted = coverage * len(bases) / (sum(span) / 2)
        if wanted > MOST_READS:
            raise SimtbedError(f"--coverage {coverage:g} of {len(bases):,} bases is more than {MOST_READS:,} reads")
        number = max(round(wanted), 1)
        at_once = max(BASES_AT_ONCE // span[1], 1)
        reading = Reading(seed, bases, number, at_once, span, error_rate, truth is not None)
        errors = _write(outputs, reading, show, dask or "")
    tell(outputs, f"{number:,} reads of {len(bases):,} bases, {errors:,} errors")
    return 0


class Written(NamedTuple):
    """A batch as text. number: of reads up to its end. errors: those of its reads. fasta: without them, or empty."""

    number: int
    errors: int
    fastq: Bytes
    fasta: Bytes


@dataclass(frozen=True)
class Reading:
    """What is read of a reference: so many reads, their lengths from a span. at_once: reads of a batch. truth: whether
    reads without errors are wanted."""

    seed: int
    reference: Bytes
    number: int
    at_once: int
    span: tuple[int, int]
    error_rate: float
    truth: bool

    def draw(self, first: int, draw: np.random.Generator) -> ReadSamples:
        """Draw the batch that begins with read `first`, from 0."""
        count = min(self.at_once, self.number - first)
        return sample_reads(draw, len(self.reference), count, self.span, self.error_rate)

    def word(self, first: int, some: ReadSamples) -> Written:
        """Letters and text of a batch that was drawn."""
        made = some.make(self.reference)
        fasta = records_of(made.truth, made.quality, first + 1, fastq=False) if self.truth else made.quality[:0]
        fastq = records_of(made.reads, made.quality, first + 1, fastq=True)
        return Written(first + len(made.reads), len(some.shifts), fastq, fasta)

    def batches(self) -> Iterator[tuple[int, ReadSamples, np.random.Generator]]:
        """Each batch: its first read, what is drawn of it, and the generator as it was before."""
        draw, first = np.random.default_rng(self.seed), 0
        while first < self.number:
            before = deepcopy(draw)
            some = self.draw(first, draw)
            yield first, some, before
            first += len(some.lengths)

    def __call__(self, batch: tuple[int, np.random.Generator]) -> Written:
        """A batch by a worker of a cluster, which draws it again: a generator is small, and what is drawn is large."""
        first, draw = batch
        return self.word(first, self.draw(first, draw))


def _write(outputs: Outputs, reading: Reading, show: Show, cluster: str) -> int:
    """Write the reads, a batch at a time; how many errors they have. One thread draws, others make letters and text."""
    truth = outputs.get("--truth")
    errors = 0

    def take(some: Written) -> None:
        nonlocal errors
        outputs["--output"].write(some.fastq.data)
        if truth:
            truth.write(some.fasta.data)
        errors += some.errors
        show("", some.number, some.number / reading.number)

    if cluster:
        generators = ((first, draw) for first, _, draw in reading.batches())
        Flow(generators).over_cluster(reading, cluster).into(lambda found: take(found[1]))
    else:
        drawn_ones = Flow(reading.batches())
        drawn_ones.map(lambda batch: reading.word(*batch[:2]), workers_for(MAKERS)).into(take)
    return errors


def _range(text: str) -> tuple[int, int]:
    """ "36" or "30-50"."""
    first, _, last = text.partition("-")
    numbers = [part for part in (first, last or first) if part.isascii() and part.isdigit() and len(part) < 10]
    if len(numbers) < 2 or not 1 <= int(numbers[0]) <= int(numbers[1]):
        raise SimtbedError(f"--length is a number or a range such as 30-50, not {text!r}")
    return int(numbers[0]), int(numbers[1])


def _reference(path: Path, memory: int) -> Bytes:
    """The sequences of a file, one after the other; letters that are no base are left out."""
    found: list[Bytes] = []
    total = 0
    with open_input(path, memory) as source:
        for some in read_records(source):
            letters = in_upper_case(some.sequences()[0])
            found.append(letters[_BASE[letters]])
            total += len(found[-1])
            if total > memory // 4:
                raise SimtbedError(f"{source.path}: a reference of more than a quarter of --max-memory")
    return np.concatenate(found) if found else np.empty(0, np.uint8)
