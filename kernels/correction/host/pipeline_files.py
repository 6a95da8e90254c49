"""Pipeline from file to file: a first pass counts the k-mers, a second one corrects, so that memory contains only some
blocks and the spectrum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed.cluster import connected
from simtbed.escaping import printable

from ...family import Answer, InputError, Launcher
from ...files import MEMORY
from ...pipeline import Show, workers_for
from .compare import Accuracy
from .files import ReadBlock, ReadFile
from .files_scan import (
    CHANGED,
    COUNTS,
    DISCARDED,
    EDITS,
    LINES,
    SHORT,
    TRIMMED,
    UNCHANGED,
    CorrectedColumns,
    ReadTexts,
    RecordColumns,
    format_log,
    format_reads,
    printable_names,
)
from .files_spectrum import dump_lines, load
from .layout import ReadLayout, arrange_reads
from .pairs import discard_pairs, interleave, split_mates
from .pipeline import Counter, Filter, KmerCounts, LaunchResult, Solid, launch
from .problem import Bytes, Corrected, Parameters, Reads

if TYPE_CHECKING:
    from distributed import Client

ARRANGERS, SOLVERS, FORMATTERS = 2, 2, 2
"""Maximum numbers of threads that arrange reads, launch, and format text. Launches are sequential; copies of another
launch overlap with them."""
LETTERS_OF_WORKERS, LETTERS_MEMORY_SHARE = 1 << 23, 512
"""Letters that a worker of a cluster counts at a time, and the divisor of the memory that limits them: each may start a
new k-mer of 12 bytes in the message and 24 bytes in the worker's table."""
LOG_COLUMNS = ("name", "flag", "length", "sequence", "edits")
BYTES_OF_A_SLOT = 24
"""Bytes per slot: key and count in the table, in its predecessor, and in the filter."""
BYTES_TO_SAVE = 36
"""Additional bytes per slot for sorting and saving the spectrum."""
SPARSE = 0.5
"""Minimum share of solid k-mers in all occurrences. Below it the coverage is too low for correction."""


@dataclass
class Summary:
    """Counts of a run. Reads: total, retained unchanged, retained changed, trimmed, discarded, shorter than k.
    with_mate: discarded reads whose mates alone failed. solid: solid k-mers of both strands. solid_share: their
    share of all occurrences. accuracy: if the truth is known."""

    reads: int = 0
    unchanged: int = 0
    changed: int = 0
    trimmed: int = 0
    discarded: int = 0
    short: int = 0
    with_mate: int = 0
    edits: int = 0
    solid: int = 0
    solid_share: float = 0.0
    accuracy: Accuracy | None = None
    warnings: list[str] = field(default_factory=list)

    def add(self, block: FormattedBlock) -> None:
        """Add the counts of a block."""
        counts = block.counts.tolist()
        self.reads += sum(counts) - counts[EDITS]
        self.unchanged += counts[UNCHANGED]
        self.changed += counts[CHANGED]
        self.trimmed += counts[TRIMMED]
        self.discarded += counts[DISCARDED]
        self.short += counts[SHORT]
        self.edits += counts[EDITS]
        self.with_mate += block.with_mate
        if block.accuracy is not None:
            self.accuracy = (self.accuracy or Accuracy()) + block.accuracy


@dataclass(frozen=True)
class Writers:
    """Output files: corrected reads, discarded reads in their original form, one log line per read. mates: second mates
    of pairs. show: progress callback. spectrum: dump of the counted k-mers (`files_spectrum`). check: called with the reads of
    each block and their answers, in the form of the oracle's."""

    output: BinaryIO
    discarded: BinaryIO | None = None
    log: BinaryIO | None = None
    mates: BinaryIO | None = None
    show: Show = lambda step, reads, fraction: None
    spectrum: BinaryIO | None = None
    check: Callable[[Reads, Answer], object] | None = None


class Solved(NamedTuple):
    """A block, its corrected reads, and their accuracy if the truth is known."""

    block: ReadBlock
    corrected: Corrected
    accuracy: Accuracy | None


class FormattedBlock(NamedTuple):
    """The texts of a block and its counts (`files_scan.COUNTS`). text: corrected reads. mates: corrected second mates.
    with_mate: number of reads discarded because of their mates. answer: reads and answers for a comparison, if requested."""

    text: Bytes
    discarded: Bytes
    log: bytes
    counts: npt.NDArray[np.int64]
    accuracy: Accuracy | None
    fraction: float | None
    mates: Bytes | None = None
    with_mate: int = 0
    answer: tuple[Reads, Answer] | None = None


def format_pairs(solved: Solved, with_discarded: bool = False, with_log: bool = False) -> FormattedBlock:
    """Return the texts of a block of first and second mates. Both mates of a pair are retained or discarded."""
    corrected, with_mate = discard_pairs(solved.corrected)
    first, second = (
        format_reads_of(Solved(half, half_corrected, None), with_discarded, with_log)
        for half, half_corrected in split_mates(solved.block, corrected)
    )
    lines = LINES if solved.block.fastq else 2
    return FormattedBlock(
        first.text,
        np.frombuffer(interleave(bytes(first.discarded), bytes(second.discarded), lines), np.uint8),
        interleave(first.log, second.log, 1),
        first.counts + second.counts,
        None,
        solved.block.fraction,
        second.text,
        with_mate,
    )


def format_reads_of(solved: Solved, with_discarded: bool = False, with_log: bool = False) -> FormattedBlock:
    """Return the texts of a block of unpaired reads."""
    block, corrected, accuracy = solved
    capacity = len(block.data) + len(block.reads.text) + 8 * len(block)
    text, discarded = np.empty(capacity, np.uint8), np.empty(capacity if with_discarded else 0, np.uint8)
    counts, lengths = np.zeros(COUNTS, np.int64), np.zeros(2, np.int64)
    columns = RecordColumns._make((block.names, block.sequences, block.qualities))
    texts = ReadTexts._make((text, discarded, with_discarded, counts, lengths))
    format_reads(block.data, columns, _columns(block, corrected), block.fastq, texts)
    for array in (text, discarded):
        array.flags.writeable = False  # a compressed output does not copy read-only data
    text_length, discarded_length = lengths.tolist()
    log = _log(block, corrected, int(counts[EDITS])) if with_log else b""
    return FormattedBlock(text[:text_length], discarded[:discarded_length], log, counts, accuracy, block.fraction)


def _columns(block: ReadBlock, corrected: Corrected) -> CorrectedColumns:
    reads = block.reads
    spans = corrected.spans.reshape(-1)
    return CorrectedColumns._make((reads.text, corrected.text, reads.offsets, corrected.flags, spans, len(block)))


def _log(block: ReadBlock, corrected: Corrected, edits: int) -> bytes:
    """Return one line per read."""
    data, names = block.data, block.names
    if not printable_names(data, names, len(block)):
        listed = [printable(block.name(read)).encode() for read in range(len(block))]
        ends = np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)))
        names = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1).ravel()
        data = np.frombuffer(b"".join(listed), np.uint8)
    to = np.empty(len(data) + len(block.reads.text) + 32 * len(block) + 24 * edits, np.uint8)
    length = format_log(data, names, _columns(block, corrected), to)
    return to[:length].tobytes()


class Letters(NamedTuple):
    """Reads to count together. text: as in `Reads`. reads: number of reads. fraction: see `Piece`."""

    text: Bytes
    reads: int
    fraction: float | None


@dataclass(frozen=True)
class Count:
    """Counts the k-mers of some reads on a worker of a cluster."""

    k: int
    launcher: Launcher

    def __call__(self, letters: Letters) -> KmerCounts:
        counter = Counter(self.k, self.launcher)
        counter.add(letters.text)
        return counter.counted()


def _letters(blocks: Iterator[ReadBlock], least: int) -> Iterator[Letters]:
    """Yield the letters of consecutive blocks, at least `least` together."""
    waiting: list[Bytes] = []
    reads, fraction = 0, None
    for block in blocks:
        waiting.append(block.reads.text)
        reads, fraction = reads + len(block), block.fraction
        if sum(map(len, waiting)) >= least:
            yield Letters(np.concatenate(waiting), reads, fraction)
            waiting, reads = [], 0
    if waiting:
        yield Letters(np.concatenate(waiting), reads, fraction)


class BlockWithTruth(NamedTuple):
    """A block, and the same reads without errors if they are known."""

    block: ReadBlock
    truth: Reads | None


class ArrangedBlock(NamedTuple):
    """A block arranged for launches."""

    pair: BlockWithTruth
    layout: ReadLayout


class CorrectedBlock(NamedTuple):
    """A block and the results of its launches."""

    pair: BlockWithTruth
    launched: LaunchResult


@dataclass(frozen=True)
class Arrange:
    """Stage before the correction of a block."""

    k: int

    def __call__(self, pair: BlockWithTruth) -> ArrangedBlock:
        return ArrangedBlock(pair, arrange_reads(pair.block.reads, self.k))


@dataclass(frozen=True)
class Correct:
    """Stage that corrects the reads of a block."""

    filter: Filter
    parameters: Parameters
    variant: str
    launcher: Launcher

    def __call__(self, arranged: ArrangedBlock) -> CorrectedBlock:
        pair, layout = arranged
        return CorrectedBlock(pair, launch(layout, self.filter, self.parameters, self.variant, self.launcher))


@dataclass(frozen=True)
class Format:
    """Stage that formats a block."""

    pairs: bool
    discarded: bool
    log: bool
    check: bool

    def __call__(self, corrected_block: CorrectedBlock) -> FormattedBlock:
        (block, true), launched = corrected_block
        corrected = launched.corrected()
        solved = Solved(block, corrected, None if true is None else Accuracy.measure(corrected, true))
        formatted = (format_pairs if self.pairs else format_reads_of)(solved, self.discarded, self.log)
        return formatted._replace(answer=(block.reads, corrected.answer())) if self.check else formatted


@dataclass(frozen=True)
class CorrectAndFormat:
    """All stages of a block, on a worker of a cluster. The worker stores the filter until the work ends."""

    arrange: Arrange
    correct: Correct
    format_block: Format

    def __call__(self, pair: BlockWithTruth) -> FormattedBlock:
        return self.format_block(self.correct(self.arrange(pair)))


@dataclass(frozen=True)
class CorrectionOptions:
    """How a file is corrected.

    truth: the same reads without errors, for an accuracy; not for pairs. memory: bytes for the table of k-mers. dump: spectrum to
    use instead of the reads' own. cluster: address of a Dask cluster; the launcher must be picklable. Its workers count k-mers,
    and correct and format blocks; the counts are summed here, and each worker gets the filter once.
    """

    parameters: Parameters
    variant: str
    launcher: Launcher
    truth: ReadFile | None = None
    memory: int = MEMORY
    dump: Path | None = None
    cluster: str = ""


def correct_file(reads: ReadFile, writers: Writers, options: CorrectionOptions) -> Summary:
    """Correct the reads of a file in their order. Pairs need writers for mates. Raise InputError if a file is malformed."""
    with connected(options.cluster) if options.cluster else nullcontext() as client:
        return _correct_file(reads, writers, options, client)


def _correct_file(reads: ReadFile, writers: Writers, options: CorrectionOptions, client: Client | None) -> Summary:
    """Correct a file. client: client of the cluster, used by both passes."""
    summary = Summary()
    filter = _build_filter(reads, writers, options, client, summary)
    if writers.log:
        writers.log.write(("\t".join(LOG_COLUMNS) + "\n").encode())

    def take(formatted: FormattedBlock) -> None:
        writers.output.write(formatted.text.data)
        if writers.mates and formatted.mates is not None:
            writers.mates.write(formatted.mates.data)
        if writers.discarded:
            writers.discarded.write(formatted.discarded.data)
        if writers.log:
            writers.log.write(formatted.log)
        if writers.check and formatted.answer is not None:
            writers.check(*formatted.answer)
        summary.add(formatted)
        writers.show("correcting", summary.reads, formatted.fraction)

    arrange = Arrange(options.parameters.k)
    solve = Correct(filter, options.parameters, options.variant, options.launcher)
    format_block = Format(
        writers.mates is not None, writers.discarded is not None, writers.log is not None, writers.check is not None
    )
    blocks = reads.blocks().through(lambda blocks: _with_truth(blocks, reads.name, options.truth))
    if client:
        pairs = blocks.over_cluster(CorrectAndFormat(arrange, solve, format_block), client)
        pairs.into(lambda pair: take(pair[1]))
    else:
        arranged = blocks.map(arrange, workers_for(ARRANGERS))
        arranged.map(solve, workers_for(SOLVERS)).map(format_block, workers_for(FORMATTERS)).into(take)
    if not summary.reads:
        summary.warnings.append(f"{reads.name} contains no reads")
    return summary


def _build_filter(
    reads: ReadFile, writers: Writers, options: CorrectionOptions, client: Client | None, summary: Summary
) -> Filter:
    """Count the k-mers of the reads or read a dump, and build the filter. Adds the spectrum to the summary."""
    solid, counted = _solid(reads, writers, options, client)
    parameters = options.parameters
    occurrences = solid.occurrences(parameters.min_multiplicity)
    summary.solid, summary.solid_share = solid.total, occurrences
    least = parameters.min_multiplicity
    if solid.total == 0 and (counted or options.dump):
        summary.warnings.append(
            f"no k-mer was seen {least} times: every read of {parameters.k} bases or more is discarded"
        )
    elif occurrences < SPARSE and (counted or options.dump):
        summary.warnings.append(
            f"only {100 * occurrences:.0f} % of the k-mers counted were seen {least} times or more: coverage is too low for "
            f"--min-multiplicity {least}, or k too long"
        )
    return Filter.build(solid, parameters, options.launcher, words=options.variant == "packed", memory=options.memory)


def _solid(reads: ReadFile, writers: Writers, options: CorrectionOptions, client: Client | None) -> tuple[Solid, int]:
    """Return the solid k-mers and the number of counted reads. The table of counts is freed."""
    k, memory = options.parameters.k, options.memory
    counter = Counter(k, options.launcher, memory // (BYTES_OF_A_SLOT + (BYTES_TO_SAVE if writers.spectrum else 0)))
    counted = 0

    def report(reads: int, fraction: float | None) -> None:
        nonlocal counted
        counted += reads
        writers.show("counting", counted, fraction)

    def add(block: ReadBlock) -> None:
        counter.add(block.reads.text, block.fraction)
        report(len(block), block.fraction)

    def merge(pair: tuple[Letters, KmerCounts]) -> None:
        letters, counts = pair
        counter.take(counts, letters.fraction)
        report(letters.reads, letters.fraction)

    if options.dump:
        load(options.dump, counter, memory, writers.show)
    elif client:
        least = min(LETTERS_OF_WORKERS, memory // LETTERS_MEMORY_SHARE)
        letters = reads.blocks().through(lambda blocks: _letters(blocks, least))
        letters.over_cluster(Count(k, options.launcher), client).into(merge)
    else:
        reads.blocks().into(add)
    if writers.spectrum:
        for lines in dump_lines(counter):
            writers.spectrum.write(lines.data)
    return counter.solid(options.parameters.min_multiplicity), counted


def _with_truth(blocks: Iterator[ReadBlock], name: str, truth: ReadFile | None) -> Iterator[BlockWithTruth]:
    """Yield the blocks of the file `name`, each with the same reads of the truth."""
    if truth is None:
        for block in blocks:
            yield BlockWithTruth(block, None)
        return
    read = 0
    with closing(iter(truth.blocks())) as true_blocks:
        waiting: list[Reads] = []
        for block in blocks:
            while sum(map(len, waiting)) < len(block) and (more := next(true_blocks, None)) is not None:
                waiting.append(more.reads)
            available = Reads.concatenate(waiting)
            cut = min(len(block), len(available))
            true, waiting = available.subset(0, cut), [available.subset(cut, len(available))]
            different = block.reads.lengths[: len(true)] != true.lengths
            if different.any():
                wrong = int(np.argmax(different))
                raise InputError(
                    f"{truth.name}: read {read + wrong + 1} has {true.lengths[wrong]} bases, "
                    f"expected {block.reads.lengths[wrong]} as in {name}"
                )
            if len(true) < len(block):
                raise InputError(f"{truth.name}: it ends before read {read + len(true) + 1} of {name}")
            read += len(block)
            yield BlockWithTruth(block, true)
        if any(map(len, waiting)) or next(true_blocks, None) is not None:
            raise InputError(f"{truth.name}: it continues after read {read}, the last of {name}")
