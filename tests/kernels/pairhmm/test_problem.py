"""Ranges of the reads of a problem, with the haplotypes of these reads and no other pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels.pairhmm.host.problem import Problem

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
