"""`simtbed simulate`: reads with sequencing errors, and the same reads without."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.correction.host.generate import genome as random_genome
from simtbed.kernels.correction.host.generate import simulate as simulate_reads
from simtbed.kernels.correction.host.problem import Bytes
from simtbed.kernels.files import Outputs, opened
from simtbed.kernels.files.fasta import records

from .options import MEMORY, MaxMemory
from .output import tell
from .parameters import Option, command

BASES_AT_ONCE = 1 << 22
"""Of reads, beyond one: what a batch takes is bounded whatever is asked for."""
BYTES_OF_A_BASE = 128
"""That a batch takes for each base of its reads."""
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
    with Outputs({"--output": output, "--truth": truth}, [reference]) as outputs:
        bases = _reference(reference, max_memory) if reference else random_genome(seed, genome)
        if len(bases) < span[0]:
            raise SimtbedError(f"a reference of {len(bases)} bases has no reads of {span[0]}")
        wanted = coverage * len(bases) / (sum(span) / 2)
        if wanted > MOST_READS:
            raise SimtbedError(f"--coverage {coverage:g} of {len(bases):,} bases is more than {MOST_READS:,} reads")
        number = max(round(wanted), 1)
        errors = _write(outputs, seed, bases, number, span, error_rate)
    tell(outputs, f"{number:,} reads of {len(bases):,} bases, {errors:,} errors")
    return 0


def _write(outputs: Outputs, seed: int, bases: Bytes, number: int, span: tuple[int, int], error_rate: float) -> int:
    """Write the reads, a batch at a time; how many errors they have."""
    draw = np.random.default_rng(seed)
    truth = outputs.get("--truth")
    at_once = max(BASES_AT_ONCE // span[1], 1)
    errors = 0
    for first in range(0, number, at_once):
        made = simulate_reads(draw, bases, min(at_once, number - first), span, error_rate)
        qualities = made.quality.tobytes().decode("ascii").split("\n")
        for r, (sequence, quality) in enumerate(zip(made.reads.strings(), qualities, strict=False), first + 1):
            outputs["--output"].write(f"@read{r}\n{sequence}\n+\n{quality}\n".encode())
        if truth:
            for r, sequence in enumerate(made.truth.strings(), first + 1):
                truth.write(f">read{r}\n{sequence}\n".encode())
        errors += int((made.reads.text != made.truth.text).sum())
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
