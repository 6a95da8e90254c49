"""From file to file: a first pass counts the k-mers, a second one corrects, so memory holds a chunk and the spectrum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed.cluster import connected

from ...family import InputError, Launcher
from ...files import MEMORY, printable
from ...pipeline import Show, workers_for
from .compare import Accuracy
from .files import ReadBlock, ReadFile
from .files_scan import (
    CHANGED,
    COUNTS,
    DISCARDED,
    EDITS,
    KEPT,
    LINES,
    SHORT,
    TRIMMED,
    format_log,
    format_reads,
    printable_names,
)
from .files_spectrum import lines_of, load
from .layout import LaidOut, laid_out
from .pairs import halves, in_turn, kept_together
from .pipeline import Counted, Counter, Filter, Launched, Solid, launch
from .problem import Bytes, Corrected, Parameters, Reads

if TYPE_CHECKING:
    from distributed import Client

PREPARERS, SOLVERS, FORMATTERS = 2, 2, 2
"""Threads that lay reads out, that launch, and that write text, at most. Launches take turns; while one runs, what another
one needs is copied."""
LETTERS_OF_WORKERS, PART_OF_LETTERS = 1 << 23, 512
"""Letters that a worker of a cluster counts at a time, and a part of the memory that they are at most: each may be the
first of another k-mer, which takes 12 bytes to send, and twice that in the worker's table."""
LOG_COLUMNS = ("name", "flag", "length", "sequence", "edits")
BYTES_OF_A_SLOT = 24
"""Of the table: key and count in it, in the one it grew from, and in the filter made of it."""
BYTES_TO_SAVE = 36
"""More of a slot, where the spectrum is put into order and saved."""
SPARSE = 0.5
"""If fewer of the k-mers counted, each as often as it was, belong to solid ones, coverage is too low to correct by."""


@dataclass
class Summary:
    """What was done. Reads: in all, kept whole and unchanged or changed, kept in part, discarded, too short for k.
    with_mate: of the discarded, those whose mates alone were to be. solid: solid k-mers of both strands. solid_share: their
    part of all that was counted. accuracy: if truth was given."""

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

    def add(self, some: Written) -> None:
        """Count a block."""
        counts = some.counts.tolist()
        self.reads += sum(counts) - counts[EDITS]
        self.unchanged += counts[KEPT]
        self.changed += counts[CHANGED]
        self.trimmed += counts[TRIMMED]
        self.discarded += counts[DISCARDED]
        self.short += counts[SHORT]
        self.edits += counts[EDITS]
        self.with_mate += some.with_mate
        if some.accuracy is not None:
            self.accuracy = (self.accuracy or Accuracy()) + some.accuracy


@dataclass(frozen=True)
class Writers:
    """Where results go: corrected reads, discarded reads as they came, a line a read. mates: for second mates, where reads
    are paired. show: is told how far it is. spectrum: for the k-mers counted, as a dump (`files_spectrum`)."""

    output: BinaryIO
    discarded: BinaryIO | None = None
    log: BinaryIO | None = None
    mates: BinaryIO | None = None
    show: Show = lambda step, reads, fraction: None
    spectrum: BinaryIO | None = None


class Solved(NamedTuple):
    """A block, what became of its reads, and, where the truth is known, how right that is."""

    block: ReadBlock
    corrected: Corrected
    accuracy: Accuracy | None


class Written(NamedTuple):
    """A block's part of each output, and what it counts (`files_scan.COUNTS`). mates: kept second mates. with_mate: reads
    discarded because their mates were."""

    kept: Bytes
    discarded: Bytes
    log: bytes
    counts: npt.NDArray[np.int64]
    accuracy: Accuracy | None
    fraction: float | None
    mates: Bytes | None = None
    with_mate: int = 0


def written_pairs(solved: Solved, wants_discarded: bool = False, wants_log: bool = False) -> Written:
    """The text of a block of first mates and second ones: a pair is kept, or it is discarded."""
    corrected, with_mate = kept_together(solved.corrected)
    one, other = (
        written(Solved(half, found, None), wants_discarded, wants_log)
        for half, found in halves(solved.block, corrected)
    )
    lines = LINES if solved.block.fastq else 2
    return Written(
        one.kept,
        np.frombuffer(in_turn(bytes(one.discarded), bytes(other.discarded), lines), np.uint8),
        in_turn(one.log, other.log, 1),
        one.counts + other.counts,
        None,
        solved.block.fraction,
        other.kept,
        with_mate,
    )


def written(solved: Solved, wants_discarded: bool = False, wants_log: bool = False) -> Written:
    """The text of a block."""
    block, corrected, accuracy = solved
    room = len(block.data) + len(block.reads.text) + 8 * len(block)
    kept, discarded = np.empty(room, np.uint8), np.empty(room if wants_discarded else 0, np.uint8)
    counts, lengths = np.zeros(COUNTS, np.int64), np.zeros(2, np.int64)
    format_reads(
        block.data, block.names, block.sequences, block.qualities, block.reads.text, corrected.text, block.reads.offsets,
        corrected.flags, corrected.spans.reshape(-1), len(block), block.fastq, kept, discarded, wants_discarded, counts, lengths,
    )  # fmt: skip
    for array in (kept, discarded):
        array.flags.writeable = False  # a packed output takes them as they are
    kept_length, discarded_length = lengths.tolist()
    log = _log(block, corrected, int(counts[EDITS])) if wants_log else b""
    return Written(kept[:kept_length], discarded[:discarded_length], log, counts, accuracy, block.fraction)


def _log(block: ReadBlock, corrected: Corrected, edits: int) -> bytes:
    """A line a read."""
    data, names = block.data, block.names
    if not printable_names(data, names, len(block)):
        listed = [printable(block.name(read)).encode() for read in range(len(block))]
        ends = np.cumsum(np.fromiter(map(len, listed), np.int64, len(listed)))
        names = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1).ravel()
        data = np.frombuffer(b"".join(listed), np.uint8)
    to = np.empty(len(data) + len(block.reads.text) + 32 * len(block) + 24 * edits, np.uint8)
    length = format_log(
        data, names, block.reads.text, corrected.text, block.reads.offsets,
        corrected.flags, corrected.spans.reshape(-1), len(block), to,
    )  # fmt: skip
    return to[:length].tobytes()


class Letters(NamedTuple):
    """What is counted at a time. text: as of `Reads`. reads: so many. part: as of `Piece`."""

    text: Bytes
    reads: int
    fraction: float | None


@dataclass(frozen=True)
class Count:
    """The k-mers of some reads, by a worker of a cluster."""

    k: int
    launcher: Launcher

    def __call__(self, some: Letters) -> Counted:
        counter = Counter(self.k, self.launcher)
        counter.add(some.text)
        return counter.counted()


def _letters(blocks: Iterator[ReadBlock], least: int) -> Iterator[Letters]:
    """The letters of blocks that follow each other, so many together."""
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


class Known(NamedTuple):
    """A block, and the same reads without errors where they are known."""

    block: ReadBlock
    truth: Reads | None


class Prepared(NamedTuple):
    """A block, laid out for launches."""

    known: Known
    laid: LaidOut


class Done(NamedTuple):
    """A block, and what launches made of it."""

    known: Known
    launched: Launched


@dataclass(frozen=True)
class Prepare:
    """What is done with a block before it is corrected."""

    k: int

    def __call__(self, known: Known) -> Prepared:
        return Prepared(known, laid_out(known.block.reads, self.k))


@dataclass(frozen=True)
class Correct:
    """What is done with the reads of a block."""

    filter: Filter
    parameters: Parameters
    variant: str
    launcher: Launcher

    def __call__(self, prepared: Prepared) -> Done:
        known, laid = prepared
        return Done(known, launch(laid, self.filter, self.parameters, self.variant, self.launcher))


@dataclass(frozen=True)
class Word:
    """What text is made of a block."""

    pairs: bool
    discarded: bool
    log: bool

    def __call__(self, done: Done) -> Written:
        (block, true), launched = done
        corrected = launched.corrected()
        solved = Solved(block, corrected, None if true is None else Accuracy.of(corrected, true))
        return (written_pairs if self.pairs else written)(solved, self.discarded, self.log)


@dataclass(frozen=True)
class CorrectAndWord:
    """All of it, by a worker of a cluster, which has the filter as long as the work lasts."""

    prepare: Prepare
    correct: Correct
    word: Word

    def __call__(self, known: Known) -> Written:
        return self.word(self.correct(self.prepare(known)))


def correct_file(
    reads: ReadFile,
    writers: Writers,
    parameters: Parameters,
    variant: str,
    launcher: Launcher,
    truth: ReadFile | None = None,
    memory: int = MEMORY,
    dump: Path | None = None,
    cluster: str = "",
) -> Summary:
    """Correct the reads of a file by their own spectrum, or by that of a dump, in their order.

    truth: the same reads without errors, for an accuracy; not of pairs, which need writers for mates. memory: what the
    table of k-mers may take. cluster: the address of a Dask cluster, with a launcher that can be pickled: its
    workers count k-mers, which are summed here, each gets the filter once, and they correct blocks and make text of them.
    Raises InputError.
    """
    with connected(cluster) if cluster else nullcontext() as client:
        return _correct_file(reads, writers, parameters, variant, launcher, truth, memory, dump, client)


def _correct_file(
    reads: ReadFile,
    writers: Writers,
    parameters: Parameters,
    variant: str,
    launcher: Launcher,
    truth: ReadFile | None,
    memory: int,
    dump: Path | None,
    client: Client | None,
) -> Summary:
    """As `correct_file`. client: of the cluster, one for both passes."""
    summary = Summary()
    filter = _spectrum(reads, parameters, variant, launcher, summary, memory, writers, dump, client)
    if writers.log:
        writers.log.write(("\t".join(LOG_COLUMNS) + "\n").encode())

    def take(some: Written) -> None:
        writers.output.write(some.kept.data)
        if writers.mates and some.mates is not None:
            writers.mates.write(some.mates.data)
        if writers.discarded:
            writers.discarded.write(some.discarded.data)
        if writers.log:
            writers.log.write(some.log)
        summary.add(some)
        writers.show("correcting", summary.reads, some.fraction)

    prepare, solve = Prepare(parameters.k), Correct(filter, parameters, variant, launcher)
    word = Word(writers.mates is not None, writers.discarded is not None, writers.log is not None)
    beside = reads.blocks().through(lambda blocks: _beside(blocks, reads.name, truth))
    if client:
        beside.over_cluster(CorrectAndWord(prepare, solve, word), client).into(lambda found: take(found[1]))
    else:
        laid = beside.map(prepare, workers_for(PREPARERS))
        laid.map(solve, workers_for(SOLVERS)).map(word, workers_for(FORMATTERS)).into(take)
    if not summary.reads:
        summary.warnings.append(f"{reads.name} holds no reads")
    return summary


def _spectrum(
    reads: ReadFile,
    parameters: Parameters,
    variant: str,
    launcher: Launcher,
    summary: Summary,
    memory: int,
    writers: Writers,
    dump: Path | None,
    client: Client | None,
) -> Filter:
    """The first pass, over the reads or a dump; what the summary says of the spectrum."""
    solid, counted = _solid(reads, parameters, launcher, memory, writers, dump, client)
    occurrences = solid.occurrences(parameters.min_multiplicity)
    summary.solid, summary.solid_share = solid.total, occurrences
    least = parameters.min_multiplicity
    if solid.total == 0 and (counted or dump):
        summary.warnings.append(
            f"no k-mer was seen {least} times: every read of {parameters.k} bases or more is discarded"
        )
    elif occurrences < SPARSE and (counted or dump):
        summary.warnings.append(
            f"only {100 * occurrences:.0f} % of the k-mers counted were seen {least} times or more: coverage is too low for "
            f"--min-multiplicity {least}, or k too long"
        )
    return Filter.of(solid, parameters, launcher, words=variant == "packed", memory=memory)


def _solid(
    reads: ReadFile,
    parameters: Parameters,
    launcher: Launcher,
    memory: int,
    writers: Writers,
    dump: Path | None,
    client: Client | None,
) -> tuple[Solid, int]:
    """The solid k-mers of the reads or of a dump, and how many reads were counted. The table is not needed any more."""
    counter = Counter(parameters.k, launcher, memory // (BYTES_OF_A_SLOT + (BYTES_TO_SAVE if writers.spectrum else 0)))
    counted = 0

    def done(reads: int, fraction: float | None) -> None:
        nonlocal counted
        counted += reads
        writers.show("counting", counted, fraction)

    def add(block: ReadBlock) -> None:
        counter.add(block.reads.text, block.fraction)
        done(len(block), block.fraction)

    def merge(found: tuple[Letters, Counted]) -> None:
        some, some_counted = found
        counter.take(some_counted, some.fraction)
        done(some.reads, some.fraction)

    if dump:
        load(dump, counter, memory, writers.show)
    elif client:
        least = min(LETTERS_OF_WORKERS, memory // PART_OF_LETTERS)
        letters = reads.blocks().through(lambda blocks: _letters(blocks, least))
        letters.over_cluster(Count(parameters.k, launcher), client).into(merge)
    else:
        reads.blocks().into(add)
    if writers.spectrum:
        for lines in lines_of(counter):
            writers.spectrum.write(lines.data)
    return counter.solid(parameters.min_multiplicity), counted


def _beside(blocks: Iterator[ReadBlock], name: str, truth: ReadFile | None) -> Iterator[Known]:
    """The blocks of a file called `name`, each with the same reads of the truth."""
    if truth is None:
        for block in blocks:
            yield Known(block, None)
        return
    read = 0
    with closing(iter(truth.blocks())) as true_blocks:
        waiting: list[Reads] = []
        for block in blocks:
            while sum(map(len, waiting)) < len(block) and (more := next(true_blocks, None)) is not None:
                waiting.append(more.reads)
            there = Reads.joined(waiting)
            cut = min(len(block), len(there))
            true, waiting = there.part(0, cut), [there.part(cut, len(there))]
            common = block.reads.lengths[: len(true)] != true.lengths
            if common.any():
                wrong = int(np.argmax(common))
                raise InputError(
                    f"{truth.name}: read {read + wrong + 1} has {true.lengths[wrong]} bases, "
                    f"expected {block.reads.lengths[wrong]} as in {name}"
                )
            if len(true) < len(block):
                raise InputError(f"{truth.name}: it ends before read {read + len(true) + 1} of {name}")
            read += len(block)
            yield Known(block, true)
        if any(map(len, waiting)) or next(true_blocks, None) is not None:
            raise InputError(f"{truth.name}: it goes on after read {read}, the last of {name}")
