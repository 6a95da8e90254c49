"""Generated problems: requested sizes, equal output for equal seeds, nontrivial alignments. Ranges of pairs of a problem."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.files import rows
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 40))
def test_sizes_and_seeds(seed: int, n: int, m: int) -> None:
    problem = generate(seed, 3, (n, n + 3), (m, m + 3))
    assert all(n <= size <= n + 3 for size in problem.rows)
    assert all(m <= size <= m + 3 for size in problem.columns)
    assert list(rows(problem)) == list(rows(generate(seed, 3, (n, n + 3), (m, m + 3))))


@pytest.mark.slow
def test_alternates_resemble_their_references() -> None:
    problem = generate(1, 50, (200, 200), (100, 100))
    answer = FAMILY.oracle(problem)
    assert (answer["score"] > 100 * 200 * 0.6).mean() > 0.9
    cigars = "".join(answer["cigar"])
    assert "I" in cigars and "D" in cigars


lengths = some.lists(some.tuples(some.integers(1, 9), some.integers(1, 9)), max_size=20)


@given(lengths, some.integers(1, 5))
def test_shares_are_the_whole_in_order(sizes: list[tuple[int, int]], count: int) -> None:
    problem = Problem.from_pairs((bytes([65 + n % 4]) * n, bytes([66]) * m) for n, m in sizes)
    shares = problem.shares(count)
    assert 1 <= len(shares) <= count
    assert all(len(share) for share in shares) or not sizes
    whole = [pair for share in shares for pair in share.pairs()]
    assert [(r.tobytes(), a.tobytes()) for r, a in whole] == [(r.tobytes(), a.tobytes()) for r, a in problem.pairs()]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_shares_have_about_as_many_cells_each(count: int) -> None:
    rng = np.random.default_rng(1)
    problem = Problem.from_pairs((b"A" * n, b"C" * m) for n, m in rng.integers(1, 50, (500, 2)))
    shares = problem.shares(count)
    assert len(shares) == count
    assert max(s.cells for s in shares) - min(s.cells for s in shares) <= 2 * 50 * 50
