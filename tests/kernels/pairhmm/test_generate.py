"""Generated problems: equal output for equal seeds, requested ranges, error rates of the qualities. Ranges of reads of a problem."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels import pairhmm
from simtbed.kernels.pairhmm.host import files
from simtbed.kernels.pairhmm.host.generate import equal_lengths, generate, repeated
from simtbed.kernels.pairhmm.host.problem import Problem


def test_a_seed_decides() -> None:
    first, again, other = ("".join(files.records(generate(seed))) for seed in (1, 1, 2))
    assert first == again != other


def test_ranges() -> None:
    lengths: Any = {"read_length": (5, 9), "haplotype_length": (40, 50)}
    problem = generate(3, records=30, reads=(2, 4), haplotypes=(1, 3), continuation=(8, 12), **lengths)
    assert set(np.diff(problem.record_reads)) == {2, 3, 4}
    assert set(np.diff(problem.record_haplotypes)) == {1, 2, 3}
    assert set(problem.read_lengths) == set(range(5, 10))
    assert set(problem.continuation) == set(range(8, 13))
    assert set(problem.bases) == set(b"ACGTN")
    assert problem.base_quality.min() >= 2
    assert problem.base_quality.max() <= 41


def test_reads_fit_their_haplotypes() -> None:
    problem = generate(4, read_length=(100, 100), haplotype_length=(20, 30))
    assert problem.read_lengths.max() <= problem.haplotype_lengths.max()


def test_bases_are_wrong_as_often_as_their_qualities_say() -> None:
    """With one haplotype a read is a substring of it with errors; 3 of 4 random letters differ from the true one."""
    problem = generate(5, records=200, reads=(5, 5), haplotypes=(1, 1), read_length=(100, 100), unknown=0.0)
    wrong = 0
    for reads, (haplotype,) in problem.records():
        windows = np.lib.stride_tricks.sliding_window_view(haplotype, 100)
        wrong += sum(int((windows != read[0]).sum(axis=1).min()) for read in reads)
    promised = float((10.0 ** (problem.base_quality / -10.0)).sum()) * 0.75
    assert abs(wrong / promised - 1) < 0.1


def test_haplotypes_differ_by_variants() -> None:
    problem = generate(6, records=40, haplotypes=(2, 2), haplotype_length=(200, 200), unknown=0.0)
    pairs = [haplotypes for _, haplotypes in problem.records()]
    assert sum(len(a) != len(b) for a, b in pairs) > 10
    equal_lengths = [(a != b).mean() for a, b in pairs if len(a) == len(b)]
    assert 0.005 < np.median(equal_lengths) < 0.05


def test_the_example_is_what_the_generator_makes() -> None:
    generated = generate(
        7, records=4, reads=(5, 9), haplotypes=(3, 5), read_length=(15, 50), haplotype_length=(30, 80),
        continuation=(8, 12), unknown=0.01,
    )  # fmt: skip
    shipped = Path(pairhmm.__file__).with_name("example.in").read_text(encoding="ascii")
    assert shipped == "".join(files.records(generated))


def test_equal_lengths_and_repetition() -> None:
    problem = equal_lengths(3, 50, 20, 33)
    assert set(problem.read_lengths.tolist()) == {20}
    assert set(problem.haplotype_lengths.tolist()) == {33}
    assert len(problem.pairs[0]) >= 50
    twice = [r for _ in range(2) for r in problem.records()]
    expected = Problem.from_records(twice)
    doubled = repeated(problem, 2)
    assert all(np.array_equal(getattr(expected, name), getattr(doubled, name)) for name in Problem.__dataclass_fields__)


READ = (b"A", [40], [40], [40], [10])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6), st.data())
def test_ranges_of_reads(shapes: list[tuple[int, int]], data: st.DataObject) -> None:
    problem = Problem.from_records(
        [([READ] * reads, [b"ACGT"[: h + 1] for h in range(seen)]) for reads, seen in shapes]
    )
    reads = len(problem.read_lengths)
    first = data.draw(st.integers(0, max(reads - 1, 0)))
    last = data.draw(st.integers(min(first + 1, reads), reads))
    selected, firsts = problem.subset(first, last), problem.first_pairs
    assert firsts[-1] == len(problem.pairs[0]) and problem.cells == count_cells(problem)
    read_indices, haplotypes = (column[firsts[first] : firsts[last]] for column in problem.pairs)
    assert selected.pairs[0].tolist() == (read_indices - first).tolist()
    assert selected.haplotype_lengths[selected.pairs[1]].tolist() == problem.haplotype_lengths[haplotypes].tolist()
    numbers = np.arange(len(problem.pairs[0]))[::-2]
    assert [c.tolist() for c in problem.pairs_of(numbers)] == [c[numbers].tolist() for c in problem.pairs]
    assert selected.bases.tobytes() == problem.bases[first:last].tobytes()  # one base per read


def count_cells(problem: Problem) -> int:
    reads, haplotypes = problem.pairs
    return int(np.dot(problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]))


@given(st.lists(st.lists(st.integers(1, 2), max_size=4), max_size=6))
def test_reads_of_one_continuation(scores: list[list[int]]) -> None:
    reads = [(b"ACGT"[: len(q)], [40] * len(q), [40] * len(q), [40] * len(q), q) for q in scores]
    assert Problem.from_records([(reads, [b"A"])]).uniform.tolist() == [len(set(q)) < 2 for q in scores]
