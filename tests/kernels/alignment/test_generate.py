"""Generated problems: requested sizes, equal output for equal seeds, nontrivial alignments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.files import rows
from simtbed.kernels.alignment.host.generate import generate


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 40))
def test_sizes_and_seeds(seed: int, n: int, m: int) -> None:
    problem = generate(seed, 3, (n, n + 3), (m, m + 3))
    assert all(n <= size <= n + 3 for size in problem.rows)
    assert all(m <= size <= m + 3 for size in problem.columns)
    assert list(rows(problem)) == list(rows(generate(seed, 3, (n, n + 3), (m, m + 3))))


def test_alternates_resemble_their_references() -> None:
    problem = generate(1, 50, (200, 200), (100, 100))
    answer = FAMILY.oracle(problem)
    assert (answer["score"] > 100 * 200 * 0.6).mean() > 0.9
    cigars = "".join(answer["cigar"])
    assert "I" in cigars and "D" in cigars
