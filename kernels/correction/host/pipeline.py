"""Solver: the spectrum is counted in batches, a filter is built from it, then every read is corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import DeviceArray, SimtbedError, empty, full, zeros
from simtbed.runtime.arrays import NewArray

from ...family import Answer, Launcher
from .. import spectrum
from ..filters import BLOCKED, BLOOM, BY_KEY, EMPTY, EXACT, K_MERS_OF_BLOCK, WORDS_OF_BLOCK
from ..packed import mend, mend_one, screen
from ..spectrum import THREADS
from ..thread_per_read import thread_per_read
from ..warp_per_read import warp_per_read
from .layout import SHARED, Places, ReadLayout, arrange_reads, longest_read, read_arguments, set_outcomes
from .pipeline_cuda_ec import SharedStep, Step
from .problem import Bytes, Corrected, Parameters, Problem, Reads

WARPS = 8
"""Warps of a block of `warp-per-read`: 256 threads, as in the paper."""
PACKED_WARPS = 4
"""Warps of a block of `packed`."""
MOST_BLOCKS = 1 << 16
"""Maximum blocks of a launch with one warp per read; a warp corrects several reads if there are more."""
SCRATCH = 1 << 28
"""Maximum bytes of votes in global memory, for reads with too many votes for shared memory."""

SMALLEST_TABLE, LARGEST_TABLE = 1 << 16, 1 << 30
MAX_LOAD = 0.7
"""Maximum load factor of the table; it grows before more slots could be used."""
STEPS_AHEAD = 2
"""Maximum number of additional doublings of the table for the expected k-mers."""
LETTERS_AT_ONCE = 1 << 24


def layout_of(parameters: Parameters) -> int:
    """Return the number of the filter in the kernels."""
    return {"exact": EXACT, "bloom": BLOOM, "split-first": parameters.split, "blocked": BLOCKED}[parameters.filter]


# ------------------------------------------------------------------ spectrum
class KmerCounts(NamedTuple):
    """K-mers, each as its smaller packed strand, and their counts."""

    keys: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.uint32]


class Counter:
    """Counts k-mers in batches. The hash table remains in device memory and grows with its load."""

    def __init__(self, k: int, launcher: Launcher, most: int = LARGEST_TABLE) -> None:
        """most: maximum number of slots of the table."""
        self.k, self.launcher, self.most = k, launcher, min(most, LARGEST_TABLE)
        self.windows = 0  # possible starts of k-mers since the slots were counted: an upper bound of new k-mers
        self.letters_seen = 0  # possible starts of k-mers in total
        self.grown = (0, 0)  # possible starts, and used slots, when the table last grew
        self.table = _Table.empty(SMALLEST_TABLE)

    def add(self, letters: Bytes, fraction: float | None = None) -> None:
        """Count the k-mers of reads, given as `Reads.text`, and those of their reverse complements. fraction: of all
        reads, including these, if known: a growing table is enlarged for the expected rest.

        Raise SimtbedError at LARGEST_TABLE.
        """
        for begin in range(0, len(letters), LETTERS_AT_ONCE):
            text = letters[begin : begin + LETTERS_AT_ONCE + self.k - 1]
            new = len(text) - self.k + 1
            if new > 0:
                self._reserve(new, fraction)
                self._launch(spectrum.count, -(-new // spectrum.SPAN), text=text, **self.table.arguments, K=self.k)

    def take(self, counted: KmerCounts, fraction: float | None = None) -> None:
        """Add counts from another counter. fraction: as in `add`."""
        keys, counts = counted
        if len(keys):
            self._reserve(len(keys), fraction)
            self._launch(spectrum.rehash, len(keys), old_keys=keys, old_counts=counts, **self.table.arguments)

    def _reserve(self, new: int, fraction: float | None = None) -> None:
        size = self.table.size
        self.letters_seen += new
        if self.windows + new <= MAX_LOAD * size:  # even if all k-mers are new
            self.windows += new
            return
        used = int(self.table.used.numpy()[0])
        while used + new > MAX_LOAD * size:
            size *= 2
        if size > self.most:
            reason = "" if self.most == LARGEST_TABLE else " at this --max-memory"
            raise SimtbedError(
                f"there may be more than {int(MAX_LOAD * self.most):,} different k-mers, the maximum of the table{reason}"
            )
        if size > self.table.size:
            expected_new = self._expected_new(used, new, fraction)
            for _ in range(STEPS_AHEAD if used else 1):  # no estimate exists for the first letters
                if used + new + expected_new > MAX_LOAD * size and 2 * size <= self.most:  # it would grow again
                    size *= 2
            self.grown = (self.letters_seen - new, used)
            larger = _Table.empty(size)
            old = {"old_keys": self.table.keys, "old_counts": self.table.counts}
            self._launch(spectrum.rehash, self.table.size, **old, **larger.arguments)
            self.table = larger
        self.windows = used + new

    def _expected_new(self, used: int, new: int, fraction: float | None) -> float:
        """Estimate the number of new k-mers from the rate since the table last grew: early letters have a higher rate."""
        if not fraction:
            return 0
        letters, slots = self.letters_seen - new - self.grown[0], used - self.grown[1]
        return self.letters_seen * (1 / fraction - 1) * (slots / letters if letters else 1)

    def counted(self) -> KmerCounts:
        """Return the k-mers and their counts, unordered."""
        keys, counts = self.table.keys.numpy(), self.table.counts.numpy()
        occupied = keys != np.uint64(EMPTY)
        return KmerCounts(keys[occupied], counts[occupied])

    def histogram(self) -> npt.NDArray[np.int64]:
        """Return the number of k-mers, one of both strands, by count; the last entry includes all higher counts."""
        args = {"keys": self.table.keys, "counts": self.table.counts, "bins": zeros(spectrum.BINS, "u32")}
        return self._launch(spectrum.histogram, self.table.size, **args)["bins"].astype(np.int64)  # type: ignore[no-any-return]

    def solid(self, min_multiplicity: int) -> Solid:
        """Return the k-mers with at least this count."""
        histogram = self.histogram()
        most = 2 * int(histogram[min_multiplicity:].sum())
        keys, total = DeviceArray(empty(most, "u64")), DeviceArray(zeros(1, "u32"))
        args = {"keys": self.table.keys, "counts": self.table.counts, "found": keys, "total": total}
        self._launch(spectrum.gather, self.table.size, **args, minimum=np.uint32(min_multiplicity), K=self.k)
        count = int(total.numpy()[0])
        keys.keep(count)  # a k-mer equal to its reverse complement is listed once
        return Solid(keys, count, histogram)

    def _launch(self, kernel: Any, threads: int, **args: Any) -> Any:
        return self.launcher.launch(kernel, grid=-(-threads // THREADS), block=THREADS, args=args)


@dataclass(frozen=True)
class _Table:
    keys: DeviceArray
    counts: DeviceArray
    used: DeviceArray
    size: int

    @staticmethod
    def empty(size: int) -> _Table:
        keys = DeviceArray(full(size, EMPTY, "u64"))
        return _Table(keys, DeviceArray(zeros(size, "u32")), DeviceArray(zeros(1, "u32")), size)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"keys": self.keys, "counts": self.counts, "used": self.used}


@dataclass(frozen=True)
class Solid:
    """Solid k-mers of both strands: `keys` has `total` elements, unordered. histogram: as in `Counter.histogram`."""

    keys: DeviceArray
    total: int
    histogram: npt.NDArray[np.int64]

    def occurrences(self, min_multiplicity: int) -> float:
        """Return the share of solid k-mers in all occurrences (at most BINS - 1 per k-mer)."""
        times = self.histogram * np.arange(len(self.histogram))
        return float(times[min_multiplicity:].sum() / max(times.sum(), 1))


# ------------------------------------------------------------------ filters
@dataclass(frozen=True)
class Filter:
    """Arrays of a filter in device memory; unused ones have one element."""

    keys: DeviceArray
    words: DeviceArray
    bits: DeviceArray
    size: int

    @staticmethod
    def build(
        solid: Solid, parameters: Parameters, launcher: Launcher, words: bool, memory: int | None = None
    ) -> Filter:
        """Build the filter of the parameters. words: add the filter of mutants to an exact set. memory: limit in bytes
        for the filter and the solid k-mers.

        Raise SimtbedError if the memory is too small, or if a Bloom filter would need more bits than 32-bit hashes address.
        """
        n, kind = solid.total, layout_of(parameters)
        by_key = kind in BY_KEY
        size = 0 if by_key else max(64 * n, 64)
        if size >= 1 << 32:
            raise SimtbedError(f"{n:,} solid k-mers: a Bloom filter of 32-bit hashes holds fewer than {1 << 26:,}")
        new = (
            _empty_keys(n, kind),
            zeros(3 << (n // 4).bit_length() if by_key and words else 3, "u64"),
            zeros(-(-size // 32) if size else 1, "u32"),
        )
        needed = 8 * n + sum(array.template().nbytes for array in new)
        if memory is not None and needed > memory:
            raise SimtbedError(
                f"{n:,} solid k-mers and the filter made of them take {needed:,} bytes, more than --max-memory"
            )
        keys, more, bits = map(DeviceArray, new)
        filter = Filter(keys, more, bits, size)
        if not n:
            return filter

        def launch_build(kernel: Any, **args: Any) -> None:
            launcher.launch(kernel, grid=-(-n // THREADS), block=THREADS, args={"found": solid.keys, **args})

        if by_key:
            launch_build(spectrum.build_set if kind == EXACT else spectrum.build_blocked, keys=filter.keys)
            if words:
                launch_build(spectrum.build_words, words=filter.words, K=parameters.k)
        else:
            args = {"bits": filter.bits, "size": np.uint32(size), "K": parameters.k, "LAYOUT": kind}
            launch_build(spectrum.build_bloom, **args)
        return filter

    @property
    def arguments(self) -> dict[str, Any]:
        return {"keys": self.keys, "bits": self.bits, "size": np.uint32(self.size)}


def _empty_keys(n: int, kind: int) -> NewArray:
    """Return the empty `keys` for n packed k-mers: a set of at least 2 n slots; blocks, each for at most 4."""
    if kind == EXACT:
        return full(1 << (2 * n).bit_length(), EMPTY, "u64")
    blocks = 1 << (max(-(-n // K_MERS_OF_BLOCK), 1) - 1).bit_length()
    return zeros(WORDS_OF_BLOCK * blocks if kind == BLOCKED else 1, "u64")


# ------------------------------------------------------------------ reads
@dataclass(frozen=True)
class Optimisations:
    """Optional optimisations of the paper's Table 4; None: selected by the variant and the reads."""

    unroll: bool = True
    reads_in_shared: bool | None = None
    votes_in_shared: bool | None = None


Run = Callable[[Any, Places, Filter, Parameters, Optimisations, Launcher], Any]


class LaunchResult(NamedTuple):
    """Results of the launches for a layout. text: of all reads; spans: of the chosen ones, as in `Corrected`."""

    layout: ReadLayout
    text: Bytes
    spans: npt.NDArray[np.int32]

    def corrected(self) -> Corrected:
        """Return the outcome of all reads."""
        layout, reads = self.layout, self.layout.reads
        flags, spans = np.empty(len(reads), np.uint8), np.empty((len(reads), 2), np.int32)
        chosen_spans = np.ascontiguousarray(self.spans).reshape(-1)
        set_outcomes(
            reads.offsets,
            len(reads),
            layout.k,
            layout.chosen,
            chosen_spans,
            len(layout.chosen),
            flags,
            spans.reshape(-1),
        )
        return Corrected(reads, self.text, flags, spans)


def launch(
    layout: ReadLayout, filter: Filter, parameters: Parameters, variant: str, launcher: Launcher, switches: Optimisations | None = None
) -> LaunchResult:  # fmt: skip
    """Correct reads, fewer than 2^31 letters of them, with a filter that may include other reads."""
    if not len(layout.chosen):
        return LaunchResult(layout, layout.reads.text, np.empty((0, 2), np.int32))
    result = VARIANTS[variant](
        layout.reads.text, layout.places, filter, parameters, switches or Optimisations(), launcher
    )
    return LaunchResult(layout, result["text"], result["spans"])


def correct(
    reads: Reads, filter: Filter, parameters: Parameters, variant: str, launcher: Launcher, switches: Optimisations | None = None
) -> Corrected:  # fmt: skip
    """Correct reads as `launch` does, from reads to corrected reads."""
    return launch(arrange_reads(reads, parameters.k), filter, parameters, variant, launcher, switches).corrected()


def _thresholds(parameters: Parameters) -> dict[str, Any]:
    return {
        "min_votes": parameters.min_votes,
        "max_trim": parameters.max_trim if parameters.trim else -1,
        "K": parameters.k,
        "FILTER": layout_of(parameters),
    }


def _by_threads(spread: int) -> Run:
    def run(
        text: Any, places: Places, filter: Filter, parameters: Parameters, switches: Optimisations, launcher: Launcher
    ) -> Any:
        args = {
            **read_arguments(text, places), **filter.arguments, **_thresholds(parameters), "LONGEST": longest_read(places),
            "THREADS": THREADS, "SPREAD": spread, "UNROLL": switches.unroll,
            "READS_IN_SHARED": bool(switches.reads_in_shared), "VOTES_IN_SHARED": bool(switches.votes_in_shared),
        }  # fmt: skip
        return launcher.launch(thread_per_read, grid=-(-len(places) * spread // THREADS), block=THREADS, args=args)

    return run


def _by_step(step: Step | SharedStep) -> Run:
    def run(
        text: Any, places: Places, filter: Filter, parameters: Parameters, switches: Optimisations, launcher: Launcher
    ) -> Any:
        return step.launch(text, places, {**filter.arguments, **_thresholds(parameters)}, launcher)

    return run


def _by_warps(shuffle: bool) -> Run:
    def run(
        text: Any, places: Places, filter: Filter, parameters: Parameters, switches: Optimisations, launcher: Launcher
    ) -> Any:
        fitted = _fit_shared_memory(switches, longest_read(places), WARPS)
        grid = _grid(len(places), fitted, longest_read(places), WARPS)
        args = {
            **read_arguments(text, places), **filter.arguments, **_thresholds(parameters),
            **_warp_arguments(fitted, grid, longest_read(places), WARPS),
            "UNROLL": switches.unroll, "SHUFFLE": shuffle, "READS_IN_SHARED": fitted.reads_in_shared,
        }  # fmt: skip
        return launcher.launch(warp_per_read, grid=grid, block=32 * WARPS, args=args)

    return run


def _packed(
    text: Any, places: Places, filter: Filter, parameters: Parameters, switches: Optimisations, launcher: Launcher
) -> Any:
    reads = {"text": DeviceArray(text), "places": DeviceArray(places), **filter.arguments}
    thresholds = _thresholds(parameters)
    switched = {name: thresholds[name] for name in ("K", "FILTER")}
    queue, queued = DeviceArray(empty(len(places), "int4")), DeviceArray(zeros(1, "u32"))
    args = {**reads, **switched, "queue": queue, "queued": queued}
    launcher.launch(screen, grid=-(-len(places) // THREADS), block=THREADS, args=args)
    count = int(queued.numpy()[0])
    if count and layout_of(parameters) in BY_KEY:
        weak, queue, queued = queue, DeviceArray(empty(count, "int4")), DeviceArray(zeros(1, "u32"))
        args = {
            **{name: reads[name] for name in ("text", "places", "keys")}, "words": filter.words, "queue": weak, "count": count,
            "left": queue, "queued": queued, "min_votes": parameters.min_votes, **switched,
        }  # fmt: skip
        launcher.launch(mend_one, grid=-(-count // THREADS), block=THREADS, args=args)
        count = int(queued.numpy()[0])
    spans = np.zeros_like(places)
    spans[:, 1] = places[:, 1]
    if count:
        fitted = _fit_shared_memory(switches, longest_read(places), PACKED_WARPS)
        grid = _grid(count, fitted, longest_read(places), PACKED_WARPS)
        args = {
            **reads, **thresholds, "queue": queue, "count": count, "spans": spans, "words": filter.words,
            **_warp_arguments(fitted, grid, longest_read(places), PACKED_WARPS),
        }  # fmt: skip
        spans = launcher.launch(mend, grid=grid, block=32 * PACKED_WARPS, args=args)["spans"]
    return {"text": reads["text"].numpy(), "spans": spans}


def _fit_shared_memory(switches: Optimisations, longest: int, warps: int) -> Optimisations:
    """Return the optimisations without None: reads and votes of the warps of a block are in shared memory if they fit."""
    votes = 4 * longest * warps <= SHARED - 1024 if switches.votes_in_shared is None else switches.votes_in_shared
    left = SHARED - 1024 - (4 * longest * warps if votes else 0)
    reads = longest * warps <= left if switches.reads_in_shared is None else switches.reads_in_shared
    return replace(switches, votes_in_shared=votes, reads_in_shared=reads)


def _grid(reads: int, switches: Optimisations, longest: int, warps: int) -> int:
    blocks = min(-(-reads // warps), MOST_BLOCKS)
    return blocks if switches.votes_in_shared else max(min(blocks, SCRATCH // (warps * 4 * longest)), 1)


def _warp_arguments(switches: Optimisations, grid: int, longest: int, warps: int) -> dict[str, Any]:
    cells = 1 if switches.votes_in_shared else grid * warps * 4 * longest
    return {
        "scratch": DeviceArray(empty(cells, "u8")), "LONGEST": longest, "WARPS": warps, "VOTES_IN_SHARED": switches.votes_in_shared,
    }  # fmt: skip


VARIANTS: dict[str, Run] = {
    "thread-per-read": _by_step(Step(original=True)),
    "one-lane-per-warp": _by_step(Step(original=True, spread=32)),
    "thread-per-read-direct": _by_step(Step()),
    "thread-per-read-unrolled": _by_step(Step(unroll=True)),
    "thread-per-read-shared": _by_step(SharedStep()),
    "thread-per-read-lean": _by_threads(1),
    "one-lane-per-warp-lean": _by_threads(32),
    "warp-per-read": _by_warps(shuffle=False),
    "warp-per-read-shuffle": _by_warps(shuffle=True),
    "packed": _packed,
}


def solve(problem: Problem, variant: str, launcher: Launcher) -> Answer:
    """Return flag and sequence of every read."""
    return corrected(problem, variant, launcher).answer()


def corrected(problem: Problem, variant: str, launcher: Launcher, switches: Optimisations | None = None) -> Corrected:
    """Correct every read by the spectrum of all."""
    filter = filter_of(problem, launcher, words=variant == "packed")
    return correct(problem.reads, filter, problem.parameters, variant, launcher, switches)


def filter_of(problem: Problem, launcher: Launcher, words: bool = True) -> Filter:
    """Build the filter of the problem's own reads."""
    counter = Counter(problem.parameters.k, launcher)
    counter.add(problem.reads.text)
    return Filter.build(counter.solid(problem.parameters.min_multiplicity), problem.parameters, launcher, words)
