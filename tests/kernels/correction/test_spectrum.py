"""Spectrum: exact counts and solid k-mers on every engine, for any batches; contents of the filters."""

from collections import Counter as Multiset
from functools import partial

import numpy as np
import pytest
from simtbed import SimtbedError, launch
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.kernels.correction import FAMILY, spectrum
from simtbed.kernels.correction.filters import EMPTY
from simtbed.kernels.correction.host import pipeline
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.pipeline import Counter, Filter
from simtbed.kernels.correction.host.problem import FilterName, Parameters, Problem, Reads
from simtbed.kernels.correction.spectrum import THREADS
from simtbed.oracles import correction as oracle
from simtbed.runtime.registry import EngineName

LETTERS = "ACTG"  # by code


def text_of(key: int, k: int) -> str:
    return "".join(LETTERS[key >> (2 * i) & 3] for i in range(k))


def counted(reads: Reads, k: int, launcher: Launcher) -> Counter:
    counter = Counter(k, launcher)
    counter.add(reads.text)
    return counter


def table(counter: Counter) -> dict[str, int]:
    keys, counts = counter.table.keys.numpy(), counter.table.counts.numpy()
    assert not counts[keys == EMPTY].any()
    assert len(set(keys[keys != EMPTY].tolist())) == (keys != EMPTY).sum() == counter.table.used.numpy()[0]
    return {text_of(int(key), counter.k): int(n) for key, n in zip(keys, counts, strict=True) if key != EMPTY}


def expected(reads: Reads, k: int) -> dict[str, int]:
    """Return the counts of both strands, under every k-mer."""
    tally: Multiset[str] = Multiset()
    for read in reads.strings():
        for strand in (read, read[::-1].translate(oracle.COMPLEMENT)):
            tally.update(strand[p : p + k] for p in range(len(strand) - k + 1))
    return {kmer: n for kmer, n in tally.items() if set(kmer) <= set("ACGT")}


@pytest.fixture(scope="module")
def reads() -> Reads:
    return simulate(2, genome(2, 300), 120, (5, 80), 0.01, unknown=0.01).reads


@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize("k", [12, 19, 31])
def test_counts(reads: Reads, k: int, engine: EngineName) -> None:
    result = table(counted(reads, k, FunctionLauncher(partial(launch, engine=engine, counters=False))))
    whole = expected(reads, k)
    assert result.items() <= whole.items()
    both = set(result) | {kmer[::-1].translate(oracle.COMPLEMENT) for kmer in result}
    assert both == set(whole)
    assert len(result) < len(whole)  # one of both strands


def test_own_reverse_complements_count_twice(launcher: Launcher) -> None:
    assert table(counted(Reads.from_strings(["ACGTACGTACGT"]), 12, launcher)) == {"ACGTACGTACGT": 2}


@pytest.mark.parametrize("letters", [17, 100, 1 << 20])
def test_batches_change_nothing(
    reads: Reads, letters: int, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = table(counted(reads, 14, launcher))
    monkeypatch.setattr(pipeline, "LETTERS_AT_ONCE", letters)
    counter = Counter(14, launcher)
    for first in range(0, len(reads), 50):
        counter.add(reads.subset(first, min(first + 50, len(reads))).text)
    assert table(counter) == whole


def test_a_full_table_grows(reads: Reads, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = table(counted(reads, 14, launcher))
    monkeypatch.setattr(pipeline, "SMALLEST_TABLE", 64)
    monkeypatch.setattr(pipeline, "LETTERS_AT_ONCE", 500)
    counter = counted(reads, 14, launcher)
    assert table(counter) == whole
    assert counter.table.size >= len(whole) / pipeline.MAX_LOAD
    monkeypatch.setattr(pipeline, "LARGEST_TABLE", 512)
    with pytest.raises(SimtbedError, match="different k-mers"):
        counted(reads, 14, launcher)


def test_a_growing_table_uses_the_expected_size(
    reads: Reads, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "SMALLEST_TABLE", 64)
    sizes = []
    for fraction in (None, 1.0, 0.1):
        counter = Counter(14, launcher)
        counter.add(reads.text, fraction)
        sizes.append(counter.table.size)
    assert sizes[0] == sizes[1] and sizes[2] == 2 * sizes[0]
    bounded = Counter(14, launcher, most=sizes[0])
    bounded.add(reads.text, 0.1)
    assert bounded.table.size == sizes[0]


def test_expected_k_mers_have_the_rate_since_the_table_grew(launcher: Launcher) -> None:
    counter = Counter(14, launcher)
    counter.letters_seen = 100
    assert counter._expected_new(used=0, new=100, fraction=0.1) == pytest.approx(
        900
    )  # no estimate exists for the first letters
    counter.letters_seen, counter.grown = 1100, (500, 200)
    assert counter._expected_new(used=250, new=100, fraction=0.5) == pytest.approx(1100 * 50 / 500)
    assert counter._expected_new(used=250, new=100, fraction=None) == 0


def test_a_table_uses_no_host_memory() -> None:
    """The table has no host memory until an emulator fetches it."""
    keys = pipeline._Table.empty(1 << 28).keys
    assert keys.fill is not None and int(keys.fill) == EMPTY
    assert not keys.host[:: 1 << 20].any()


def test_a_filter_that_does_not_fit_is_refused(reads: Reads, launcher: Launcher) -> None:
    solid = counted(reads, 14, launcher).solid(1)
    with pytest.raises(SimtbedError, match=r"solid k-mers and the filter made of them take .* more than --max-memory"):
        Filter.build(solid, Parameters(k=14), launcher, words=True, memory=8 * solid.total)


@pytest.mark.parametrize("least", [1, 2, 6, 255])
def test_solid_kmers(reads: Reads, least: int, launcher: Launcher) -> None:
    solid = counted(reads, 13, launcher).solid(least)
    result = [text_of(int(key), 13) for key in solid.keys.numpy()[: solid.total]]
    assert len(result) == len(set(result))
    assert set(result) == oracle.solid_kmers(reads.strings(), 13, least)
    whole = expected(reads, 13)
    share = sum(n for n in whole.values() if n >= least) / sum(whole.values())
    assert solid.occurrences(least) == pytest.approx(share)


def test_a_histogram_ends_at_255(launcher: Launcher) -> None:
    counter = counted(Reads.from_strings(["ACGTTGCATGCC"] * 300 + ["CCGTTGCATGCA"] * 254), 12, launcher)
    histogram = counter.histogram()
    assert {n: int(times) for n, times in enumerate(histogram) if times} == {254: 1, 255: 1}
    assert counter.solid(255).total == 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jit", "numpy"])
@pytest.mark.parametrize("layout", ["standard", "split-first"])
def test_bloom_bits_are_the_oracles(reads: Reads, layout: str, engine: EngineName) -> None:
    run = FunctionLauncher(partial(launch, engine=engine, counters=False))
    solid = counted(reads, 16, run).solid(3)
    filter = Filter.build(
        solid, Parameters(k=16, filter="bloom" if layout == "standard" else "split-first"), run, words=False
    )
    kmers = oracle.solid_kmers(reads.strings(), 16, 3)
    assert filter.size == 64 * len(kmers)
    bits = np.unpackbits(filter.bits.numpy().view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == oracle.Bloom(kmers, layout).bits


@pytest.mark.parametrize("k", [12, 13, 20, 31])
def test_the_filter_of_mutants_has_few_false_positives(k: int, launcher: Launcher) -> None:
    """Four bits of 64 per k-mer, one to four k-mers per word: about (10 / 64)^4 and, as some words have more, three times as many."""
    reads = Reads.from_strings([genome(5, 20_000).tobytes().decode()])
    solid = counted(reads, k, launcher).solid(1)
    words = Filter.build(solid, Parameters(k=k), launcher, words=True).words.numpy()
    assert len(words) <= 3 * solid.total // 2
    keys = solid.keys.numpy()[: solid.total]
    draw = np.random.default_rng(0)
    for v in range(k):
        # The windows with these k-mers as mutants, changed in position v; the windows' words are queried.
        windows = keys ^ (draw.integers(1, 4, len(keys), np.uint64) << np.uint64(2 * v))
        assert in_words(words, windows, keys, v, k).all()
    random_keys = draw.integers(0, 1 << (2 * k), 200_000, dtype=np.uint64)
    random_keys = random_keys[~np.isin(random_keys, keys)]
    assert in_words(words, random_keys ^ np.uint64(1), random_keys, 0, k).mean() < 0.003


Keys = np.ndarray[tuple[int], np.dtype[np.uint64]]


def in_words(words: Keys, windows: Keys, mutants: Keys, v: int, k: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The same query of windows and their mutants in position v, in NumPy."""
    third = 3 * v // k
    inside = sum(3 << (2 * place) for place in range(k) if 3 * place // k == third)
    outside = windows & np.uint64(~inside & (1 << 62) - 1)
    size = len(words) // 3
    mixed = (outside ^ (outside >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    word = words[third * size + ((mixed >> np.uint64(32)) & np.uint64(size - 1)).astype(np.int64)]
    hash = mutants.copy()
    for left, shift in ((True, 21), (False, 35), (True, 4), (False, 13), (True, 25)):
        hash ^= hash << np.uint64(shift) if left else hash >> np.uint64(shift)
    result = np.ones(len(windows), np.bool_)
    for shift in (32, 38, 44, 50):
        result &= (word >> ((hash >> np.uint64(shift)) & np.uint64(63))) & np.uint64(1) != 0
    return result


def test_a_bloom_filter_has_a_largest_size(launcher: Launcher) -> None:
    solid = counted(Reads.from_strings(["ACGTTGCATGCCA"]), 12, launcher).solid(1)
    enormous = pipeline.Solid(solid.keys, 1 << 26, solid.histogram)
    with pytest.raises(SimtbedError, match="67,108,864 solid k-mers: a Bloom filter"):
        Filter.build(enormous, Parameters(k=12, filter="bloom"), launcher, words=False)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_blocked_bits_are_the_oracles(reads: Reads, engine: EngineName) -> None:
    run = FunctionLauncher(partial(launch, engine=engine, counters=False))
    solid = counted(reads, 16, run).solid(3)
    filter = Filter.build(solid, Parameters(k=16, filter="blocked"), run, words=False).keys.numpy()
    blocked = oracle.Blocked(oracle.solid_kmers(reads.strings(), 16, 3))
    bits = np.unpackbits(filter.view(np.uint8), bitorder="little").reshape(-1, 4, 64)
    assert set(zip(*(at.tolist() for at in np.nonzero(bits)), strict=True)) == blocked.bits
    assert len(filter) == 4 * blocked.blocks


@pytest.mark.slow
@pytest.mark.parametrize(("k_mers", "tries"), [(1 << 17, 1 << 22), (1 << 19, 1 << 19)])
def test_false_positives_of_the_blocked_filter(k_mers: int, tries: int, launcher: Launcher) -> None:
    """At the maximum load, four k-mers per block, below one in a million; above it, the rate expected from the Poisson
    distribution of the k-mers per block."""
    draw = np.random.default_rng(1)
    keys = np.unique(draw.integers(0, 1 << 62, k_mers, np.uint64))
    blocks = np.zeros(4 << 15, np.uint64)  # for 2^17 k-mers
    args = {"found": keys, "keys": blocks}
    filter = launcher.launch(spectrum.build_blocked, grid=-(-len(keys) // THREADS), block=THREADS, args=args)["keys"]
    assert in_blocks(filter, keys).all()
    random_keys = draw.integers(0, 1 << 62, tries, np.uint64)
    result = in_blocks(filter, random_keys[~np.isin(random_keys, keys)]).mean()
    occupancy = np.arange(100)
    load = len(keys) / (len(filter) // 4)
    chance = np.exp(-load + occupancy * np.log(load) - np.cumsum(np.log(np.maximum(occupancy, 1))))
    expected = float((chance * (1 - (63 / 64) ** (2 * occupancy)) ** 8).sum())
    assert result == pytest.approx(expected, rel=0.2, abs=1e-6)
    assert load > 4 or expected < 1e-6


def in_blocks(blocks: Keys, keys: Keys) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The query of k-mers, in NumPy."""
    u = np.uint64
    first = (keys ^ (keys >> u(29))) * u(0x9E3779B97F4A7C15)
    second = (first ^ (first >> u(32))) * u(0xD6E8FEB86659FD93)
    block = ((first >> u(32)) & u(len(blocks) // 4 - 1)).astype(np.int64)
    result = np.ones(len(keys), np.bool_)
    for bit in range(8):
        word = blocks[4 * block + bit // 2]
        result &= (word >> ((second >> u(16 + 6 * bit)) & u(63))) & u(1) != 0
    return result


@pytest.mark.slow
@pytest.mark.parametrize("filter", ["exact", "bloom"])
def test_a_palindrome_makes_nothing_else_solid(filter: FilterName, launcher: Launcher) -> None:
    """It represents both strands, and occupies one element of the solid k-mers; others occupy two."""
    palindrome, alone = "ACGTACGTACGTGGC", "AAAAAAAAAAAAA"
    reads = Reads.from_strings([palindrome] * 6 + [alone])
    problem = Problem(reads, Parameters(k=12, filter=filter))
    answer = FAMILY.solve(problem, "thread-per-read", launcher)
    assert answer.tolist() == [f"F {palindrome}"] * 6 + [f"D {alone}"]
    assert FAMILY.compare(answer, FAMILY.oracle(problem)).agrees
