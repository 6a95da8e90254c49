"""The compiled loop, the CPU baseline of GPUs, returns the oracle's alignments on one thread and on several."""

from __future__ import annotations

import pytest
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem
from simtbed.oracles.alignment_loop import align_all


def cigars(problem: Problem, threads: int) -> list[tuple[str, int, int]]:
    results, operations = align_all(
        problem.references, problem.reference_offsets, problem.alternates, problem.alternate_offsets, problem.parameters, threads
    )  # fmt: skip
    texts = []
    for row, (offset, score, count) in zip(operations.tolist(), results.tolist(), strict=True):
        text = "".join(f"{word >> 4}{'MID S'[word & 15]}" for word in reversed(row[:count]))
        texts.append((text, offset, score))
    return texts


@pytest.mark.slow
def test_it_is_the_oracle() -> None:
    pairs = [*generate(1, 40, (1, 60), (1, 60)).pairs(), (b"AGA", b"A"), (b"A", b"AGA"), (b"CG", b"ACGT"), (b"A", b"C")]
    problem = Problem.from_pairs(pairs)
    expected = FAMILY.oracle(problem).tolist()
    assert {letter for cigar, _, _ in expected for letter in cigar if letter.isalpha()} == set("MIDS")
    assert cigars(problem, 1) == cigars(problem, 3) == expected
    scores, _ = align_all(
        problem.references, problem.reference_offsets, problem.alternates, problem.alternate_offsets, problem.parameters, trace=False
    )  # fmt: skip
    assert scores[:, 1].tolist() == [score for _, _, score in expected]
    assert cigars(Problem.from_pairs([]), 2) == []
