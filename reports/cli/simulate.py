"""`simtbed simulate`: reads with sequencing errors, and the same reads without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.correction.host.generate import Drawn, drawn, records_of
from simtbed.kernels.correction.host.generate import genome as random_genome
from simtbed.kernels.correction.host.problem import Bytes
from simtbed.kernels.files import Outputs, opened
from simtbed.kernels.files.fasta import records
from simtbed.kernels.pipeline import Flow, Show, workers_for
from simtbed.runtime.cores import current_cores, on_cores

from ..terminal import progress_of_records
from .options import MEMORY, MaxMemory, Threads
from .output import tell
from .parameters import Option, command

BASES_AT_ONCE = 1 << 20
"""Of reads, beyond one: what a batch takes is bounded whatever is asked for."""
BYTES_OF_A_BASE = 128
"""That the batches which are held at a time take for each base of one."""
MAKERS = 4
"""Threads that make letters and text at most."""
MOST_READS = 1 << 48


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
        errors = _write(outputs, seed, bases, number, span, error_rate, show)
    tell(outputs, f"{number:,} reads of {len(bases):,} bases, {errors:,} errors")
    return 0


def _write(
    outputs: Outputs, seed: int, bases: Bytes, number: int, span: tuple[int, int], error_rate: float, show: Show
) -> int:
    """Write the reads, a batch at a time; how many errors they have. One thread draws, others make letters and text."""
    truth = outputs.get("--truth")
    at_once = max(BASES_AT_ONCE // span[1], 1)
    errors = 0

    def batches() -> Iterator[tuple[int, Drawn]]:
        draw = np.random.default_rng(seed)
        for first in range(0, number, at_once):
            yield first, drawn(draw, len(bases), min(at_once, number - first), span, error_rate)

    def texts(batch: tuple[int, Drawn]) -> tuple[int, int, Bytes, Bytes]:
        first, some = batch
        made = some.made(bases)
        after = first + len(made.reads)
        fasta = records_of(made.truth, made.quality, first + 1, fastq=False) if truth else made.quality[:0]
        return after, len(some.shifts), records_of(made.reads, made.quality, first + 1, fastq=True), fasta

    def take(some: tuple[int, int, Bytes, Bytes]) -> None:
        nonlocal errors
        outputs["--output"].write(some[2].data)
        if truth:
            truth.write(some[3].data)
        errors += some[1]
        show("", some[0], some[0] / number)

    Flow(batches()).each(texts, workers_for(MAKERS)).into(take)
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
    with opened(path, memory) as source:
        for record in records(source):
            letters = np.frombuffer(record.sequence.upper(), np.uint8)
            found.append(letters[np.isin(letters, np.frombuffer(b"ACGT", np.uint8))])
            total += len(found[-1]) + 256  # and what a small array takes
            if total > memory // 4:
                raise SimtbedError(f"{source.path}: a reference of more than a quarter of --max-memory")
    return np.concatenate(found) if found else np.empty(0, np.uint8)
