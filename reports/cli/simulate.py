"""`simtbed simulate`: simulated reads with sequencing errors, and the same reads without errors."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.correction.host.files_reference import read_reference
from simtbed.kernels.correction.host.generate import ReadSamples, Reference, genome, records_of, sample_reads
from simtbed.kernels.correction.host.problem import Bytes
from simtbed.kernels.files import Outputs
from simtbed.kernels.pipeline import Flow, Show, workers_for
from simtbed.runtime.cores import current_cores, on_cores

from ..terminal import progress_of_records
from .options import ResourceOptions
from .output import print_report
from .parameters import Option, command

BATCH_BASES = 1 << 20
"""Bases of the reads of a batch. A batch has at least one read."""
BYTES_PER_BASE = 128
"""Memory of all batches in flight, in bytes per base of one batch."""
MAX_FORMATTERS = 4
"""Threads that generate letters and text."""
MAX_READS = 1 << 48


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """The options of `simtbed simulate`."""

    output: Annotated[
        Path, Option(("--output", "-o"), metavar="FASTQ", help="Write the reads with errors to FASTQ; - is stdout.")
    ]
    truth: Annotated[Path | None, Option(metavar="FASTA", help="Write the reads without errors to FASTA.")] = None
    reference: Annotated[
        Path | None,
        Option(metavar="FASTA", help="Read the reference from FASTA, - is stdin; by default a random sequence."),
    ] = None
    genome: Annotated[int, Option(min=1, max=1 << 36, help="Length of a random reference, in bases.")] = 100_000
    coverage: Annotated[float, Option(above=0, max=100_000, help="Bases of all reads per base of the reference.")] = (
        30.0
    )
    length: Annotated[
        str, Option(metavar="N|N-M", help="Length of a read in bases, or the range of a uniform distribution.")
    ] = "36"
    error_rate: Annotated[float, Option(min=0, max=0.25, help="Substitutions per base.")] = 0.01
    seed: Annotated[int, Option(min=0, max=(1 << 63) - 1, help="Seed of the generator.")] = 1
    resources: ResourceOptions


@command
def simulate(options: SimulateOptions) -> int:
    """Simulate reads with sequencing errors.

    The reads are an input for `simtbed correct`. Before the errors, a read is a substring of one record of the
    reference, or the reverse complement of one, without N.

    \b
    simtbed simulate -o reads.fastq --truth truth.fasta --seed 7
    """
    span, max_memory = _range(options.length), options.resources.max_memory
    if options.reference is None and options.genome > max_memory // 2:
        raise SimtbedError(f"--genome {options.genome:,} takes more than half of --max-memory")
    if span[1] * BYTES_PER_BASE > max_memory:
        raise SimtbedError(f"--length {options.length}: {BYTES_PER_BASE} bytes per base exceed --max-memory")
    with (
        on_cores(options.resources.threads or current_cores()),
        Outputs({"--output": options.output, "--truth": options.truth}, [options.reference]) as outputs,
        progress_of_records("simulate", "reads") as show,
    ):
        reference = _reference(options, span[0])
        bases = len(reference.bases)
        expected = options.coverage * bases / (sum(span) / 2)
        if expected > MAX_READS:
            raise SimtbedError(f"--coverage {options.coverage:g} of {bases:,} bases is more than {MAX_READS:,} reads")
        reads = max(round(expected), 1)
        batch = max(BATCH_BASES // span[1], 1)
        sampler = ReadSampler(
            options.seed, reference, reads, batch, span, options.error_rate, options.truth is not None
        )
        errors = _write(outputs, sampler, show, options.resources.dask or "")
    print_report(outputs, f"{reads:,} reads of {bases:,} bases, {errors:,} errors")
    return 0


class BatchText(NamedTuple):
    """A batch as text. reads: number of reads up to its end. errors: of its reads. fasta: reads without errors, or empty."""

    reads: int
    errors: int
    fastq: Bytes
    fasta: Bytes


@dataclass(frozen=True)
class ReadSampler:
    """Random reads of a reference in batches.

    batch: reads of a batch. span: smallest and largest length of a read. truth: whether to write reads without errors.
    """

    seed: int
    reference: Reference
    reads: int
    batch: int
    span: tuple[int, int]
    error_rate: float
    truth: bool

    def sample(self, first: int, generator: np.random.Generator) -> ReadSamples:
        """Sample the batch with read `first`, counted from 0, as its first."""
        count = min(self.batch, self.reads - first)
        return sample_reads(generator, self.reference, count, self.span, self.error_rate)

    def text(self, first: int, sample: ReadSamples) -> BatchText:
        """Return the text of a batch."""
        records = sample.make(self.reference.bases)
        fasta = (
            records_of(records.truth, records.quality, first + 1, fastq=False) if self.truth else records.quality[:0]
        )
        fastq = records_of(records.reads, records.quality, first + 1, fastq=True)
        return BatchText(first + len(records.reads), len(sample.shifts), fastq, fasta)

    def batches(self) -> Iterator[tuple[int, ReadSamples, np.random.Generator]]:
        """Yield the first read, the sample, and the state of the generator before the sample, for each batch."""
        generator, first = np.random.default_rng(self.seed), 0
        while first < self.reads:
            before = deepcopy(generator)
            sample = self.sample(first, generator)
            yield first, sample, before
            first += len(sample.lengths)

    def __call__(self, batch: tuple[int, np.random.Generator]) -> BatchText:
        """Sample a batch in a worker of a cluster. The state of a generator is smaller to send than a sample."""
        first, generator = batch
        return self.text(first, self.sample(first, generator))


def _write(outputs: Outputs, sampler: ReadSampler, show: Show, cluster: str) -> int:
    """Write the reads, one batch at a time; return the number of errors. One thread samples, the others format text."""
    truth = outputs.get("--truth")
    errors = 0

    def take(text: BatchText) -> None:
        nonlocal errors
        outputs["--output"].write(text.fastq.data)
        if truth:
            truth.write(text.fasta.data)
        errors += text.errors
        show("", text.reads, text.reads / sampler.reads)

    if cluster:
        generators = ((first, generator) for first, _, generator in sampler.batches())
        Flow(generators).over_cluster(sampler, cluster).into(lambda item: take(item[1]))
    else:
        samples = Flow(sampler.batches())
        samples.map(lambda batch: sampler.text(*batch[:2]), workers_for(MAX_FORMATTERS)).into(take)
    return errors


def _range(text: str) -> tuple[int, int]:
    """Parse "36" or "30-50"."""
    first, _, last = text.partition("-")
    numbers = [n for n in (first, last or first) if n.isascii() and n.isdigit() and len(n) < 10]
    if len(numbers) < 2 or not 1 <= int(numbers[0]) <= int(numbers[1]):
        raise SimtbedError(f"--length: expected a number or a range such as 30-50, got {text!r}")
    return int(numbers[0]), int(numbers[1])


def _reference(options: SimulateOptions, shortest: int) -> Reference:
    """Return the reference of --reference, or a random one, with reads of `shortest` bases. Raises SimtbedError."""
    if options.reference is not None:
        return read_reference(options.reference, shortest, options.resources.max_memory)
    if options.genome < shortest:
        raise SimtbedError(f"a reference of {options.genome} bases has no reads of {shortest}")
    return Reference.of_runs(genome(options.seed, options.genome), np.array([options.genome]))
