"""Spectrum-based error correction of reads as in CUDA-EC 1.0.2, on strings: one read and one window at a time."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

BASES = "GACT"
"""Order of the vote columns."""

COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class Corrected:
    """A read after correction.

    flag: F accepted, D discarded, S shorter than k and unchanged. sequence: corrected and, for F, trimmed to [start, end).
    """

    flag: str
    sequence: str
    start: int
    end: int


def corrected(
    reads: Iterable[str],
    k: int = 20,
    min_multiplicity: int = 6,
    min_votes: int = 2,
    max_trim: int = 20,
    trim: bool = True,
    bloom: str | None = None,
    split: int = 16,
) -> list[Corrected]:
    """Return every read, corrected by the spectrum of all reads or by a filter of this spectrum.

    bloom: layout of the filter: "standard" or "split-first" (`Bloom`, with `split` regions), "blocked" (`Blocked`), or None.
    """
    upper = [read.upper() for read in reads]
    solid: Container[str] = solid_kmers(upper, k, min_multiplicity)
    if bloom:
        assert isinstance(solid, set)
        solid = Blocked(solid) if bloom == "blocked" else Bloom(solid, bloom, split)
    return [correct(read, solid, k, min_votes, max_trim, trim) for read in upper]


# ------------------------------------------------------------------ spectrum
def solid_kmers(reads: Iterable[str], k: int, min_multiplicity: int) -> set[str]:
    """Return the k-mers of the reads and their reverse complements with at least `min_multiplicity` occurrences, ACGT only."""
    counts: Counter[str] = Counter()
    for read in reads:
        for strand in (read, read[::-1].translate(COMPLEMENT)):
            counts.update(strand[p : p + k] for p in range(len(strand) - k + 1))
    return {kmer for kmer, count in counts.items() if count >= min_multiplicity and set(kmer) <= set(BASES)}


class Bloom:
    """A Bloom filter of k-mers: 64 bits a k-mer, eight hash functions.

    layout "standard": each hash sets any bit. "split-first": the first hash sets a bit of the first of `split` equal regions, the
    others a bit of the remaining regions.
    """

    def __init__(self, kmers: set[str], layout: str, split: int = 16) -> None:
        size = 64 * len(kmers)
        self.region = {"standard": (0, size), "split-first": (size // split, size // split)}[layout]
        self.size = size
        self.bits = {bit for kmer in kmers for bit in self.places(kmer)}
        self.cache: dict[str, bool] = {}  # hashing in Python is slow

    def places(self, kmer: str) -> Iterator[int]:
        """Return the bits of a k-mer in query order."""
        begin, first = self.region
        yield rs(kmer) % first
        yield from (begin + hash(kmer) % (self.size - begin) for hash in HASHES[1:])

    def __contains__(self, kmer: object) -> bool:
        assert isinstance(kmer, str)
        if kmer not in self.cache:
            self.cache[kmer] = bool(self.bits) and all(bit in self.bits for bit in self.places(kmer))
        return self.cache[kmer]


class Blocked:
    """A blocked Bloom filter of k-mers: eight bits in one block of 256 bits, two in each quarter.

    One block for every four k-mers, rounded up to a power of two. A k-mer is an integer of 2 bits a base, A 0, C 1, T 2, G 3, first
    base lowest.
    """

    def __init__(self, kmers: set[str]) -> None:
        self.blocks = 1
        while 4 * self.blocks < len(kmers):
            self.blocks *= 2
        self.bits = {bit for kmer in kmers for bit in self.places(kmer)}

    def places(self, kmer: str) -> Iterator[tuple[int, int, int]]:
        """Return (block, quarter, bit) of each bit of a k-mer."""
        number = sum("ACTG".index(base) * 4**place for place, base in enumerate(kmer))
        first = (number ^ number >> 29) * 0x9E3779B97F4A7C15 % 2**64
        second = (first ^ first >> 32) * 0xD6E8FEB86659FD93 % 2**64
        for quarter in range(4):
            for shift in (16, 22):
                yield first // 2**32 % self.blocks, quarter, second >> shift + 12 * quarter & 63

    def __contains__(self, kmer: object) -> bool:
        assert isinstance(kmer, str)
        return all(bit in self.bits for bit in self.places(kmer))


WORD = 0xFFFFFFFF  # unsigned 32-bit arithmetic


def rs(text: str) -> int:
    h, a = 0, 63689
    for c in text.encode():
        h = (h * a + c) & WORD
        a = a * 378551 & WORD
    return h


def js(text: str) -> int:
    h = 1315423911
    for c in text.encode():
        h ^= ((h << 5) + c + (h >> 2)) & WORD
    return h


def pjw(text: str) -> int:
    h = 0
    for c in text.encode():
        h = ((h << 4) + c) & WORD
        high = h & 0xF0000000
        if high:
            h = (h ^ high >> 24) & ~0xF0000000
    return h


def elf(text: str) -> int:
    h = 0
    for c in text.encode():
        h = ((h << 4) + c) & WORD
        high = h & 0xF0000000
        if high:
            h ^= high >> 24
        h &= ~high
    return h


def bkdr(text: str) -> int:
    h = 0
    for c in text.encode():
        h = (h * 131 + c) & WORD
    return h


def sdbm(text: str) -> int:
    h = 0
    for c in text.encode():
        h = (c + (h << 6) + (h << 16) - h) & WORD
    return h


def djb(text: str) -> int:
    h = 5381
    for c in text.encode():
        h = ((h << 5) + h + c) & WORD
    return h


def dek(text: str) -> int:
    h = len(text)
    for c in text.encode():
        h = ((h << 5) ^ (h >> 27) ^ c) & WORD
    return h


Hash = Callable[[str], int]
HASHES: tuple[Hash, ...] = (rs, js, pjw, elf, bkdr, sdbm, djb, dek)
"""Arash Partow's general purpose hash functions in CUDA-EC's order."""


# ------------------------------------------------------------------ one read
def correct(read: str, solid: Container[str], k: int, min_votes: int, max_trim: int, trim: bool) -> Corrected:
    """Return the correction of one upper-case read."""
    if len(read) < k:
        return Corrected("S", read, 0, len(read))
    if set(read) - set(BASES):
        return Corrected("D", read, 0, 0)
    windows = range(len(read) - k + 1)

    def weak(p: int) -> bool:
        return read[p : p + k] not in solid

    start = 0
    while any(weak(p) for p in windows):
        fix = best(votes(read, solid, k, start), min_votes)
        if fix is None:
            break
        at, base = fix
        read = read[:at] + base + read[at + 1 :]
        start = at
        if at == 0:
            break  # CUDA-EC continues only while the position of the last fix is above 0
    if not any(weak(p) for p in windows):
        return Corrected("F", read, 0, len(read))
    good = [p for p in windows if not weak(p)]
    if not trim or not good:
        return Corrected("D", read, 0, 0)
    first = good[0]
    last = next((p for p in windows if p > first and weak(p)), len(windows))
    end = last + k - 1
    if first > max_trim or len(read) - end > max_trim:
        return Corrected("D", read, 0, 0)
    return Corrected("F", read[first:end], first, end)


def votes(read: str, solid: Container[str], k: int, start: int) -> list[list[int]]:
    """Return votes[position][column]: the number of weak windows from `start` on that this base makes solid."""
    counts = [[0] * 4 for _ in read]
    for p in range(start, len(read) - k + 1):
        window = read[p : p + k]
        if window in solid:
            continue
        for v, old in enumerate(window):
            for column, base in enumerate(BASES):
                if base != old and window[:v] + base + window[v + 1 :] in solid:
                    counts[p + v][column] += 1
    return counts


def best(counts: list[list[int]], min_votes: int) -> tuple[int, str] | None:
    """Return the change with the most votes, or None.

    None: at most `min_votes` votes, or the first two cells with the maximum have the same position.
    """
    most = max(max(row) for row in counts)
    cells = [(at, column) for at, row in enumerate(counts) for column, n in enumerate(row) if n == most]
    if most <= min_votes or (len(cells) > 1 and cells[0][0] == cells[1][0]):
        return None
    at, column = cells[0]
    return at, BASES[column]
