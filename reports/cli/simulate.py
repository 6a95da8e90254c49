"""`simtbed simulate`: reads with sequencing errors, and the same reads without."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from simtbed import SimtbedError
from simtbed.kernels.correction.host import files
from simtbed.kernels.correction.host.generate import genome as random_genome
from simtbed.kernels.correction.host.generate import simulate as simulate_reads
from simtbed.kernels.correction.host.problem import Bytes

from .options import new_app
from .output import require_folder

app = new_app()


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FASTQ", help="Reads with errors.")],
    truth: Annotated[Path | None, typer.Option("--truth", metavar="FASTA", help="The same without errors.")] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", metavar="FASTA", help="Of A, C, G, T; else one is made at random.")
    ] = None,
    genome: Annotated[int, typer.Option(help="Bases of a reference made at random.")] = 100_000,
    coverage: Annotated[float, typer.Option(help="Bases of reads for each base of the reference.")] = 30.0,
    length: Annotated[str, typer.Option(metavar="N|N-M", help="Bases of a read; a range is drawn from.")] = "36",
    error_rate: Annotated[float, typer.Option(help="Substitutions a base.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal reads.")] = 1,
) -> int:
    """Make reads with sequencing errors, to try `simtbed correct` on."""
    span = _range(length)
    if genome < 1 or coverage <= 0 or not 0 <= error_rate <= 0.25:
        raise SimtbedError("--genome and --coverage are positive numbers, --error-rate is 0 to 0.25")
    for path in (output, truth):
        require_folder(path)
    bases = _reference(reference) if reference else random_genome(seed, genome)
    if len(bases) < span[0]:
        raise SimtbedError(f"a reference of {len(bases)} bases has no reads of {span[0]}")
    number = max(round(coverage * len(bases) / (sum(span) / 2)), 1)
    made = simulate_reads(seed, bases, number, span, error_rate)
    qualities = made.quality.tobytes().decode("ascii").split("\n")
    with files.whole_file(output) as file:
        for r, (sequence, quality) in enumerate(zip(made.reads.strings(), qualities, strict=False), 1):
            file.write(f"@read{r}\n{sequence}\n+\n{quality}\n".encode())
    if truth:
        with files.whole_file(truth) as file:
            for r, sequence in enumerate(made.truth.strings(), 1):
                file.write(f">read{r}\n{sequence}\n".encode())
    print(f"{number:,} reads of {len(bases):,} bases, {int((made.reads.text != made.truth.text).sum()):,} errors")
    return 0


def _range(text: str) -> tuple[int, int]:
    """ "36" or "30-50"."""
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()) or not 1 <= int(first) <= int(last or first):
        raise SimtbedError(f"--length is a number or a range such as 30-50, not {text!r}")
    return int(first), int(last or first)


def _reference(path: Path) -> Bytes:
    """The sequences of a file, one after the other; letters that are no base are left out."""
    sequences = [record.sequence.upper() for record in files.ReadFile.find(path).records()]
    bases = np.frombuffer("".join(sequences).encode("ascii"), np.uint8)
    return bases[np.isin(bases, np.frombuffer(b"ACGT", np.uint8))]
