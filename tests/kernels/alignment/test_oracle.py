"""The oracle against hand-worked alignments, GATK's, parasail's optimum, and the score of its own CIGARs; its compiled loop."""

import re
from itertools import pairwise

import numpy as np
import parasail
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import NEW, Parameters, Problem
from simtbed.oracles import alignment as oracle
from simtbed.oracles.alignment_loop import align_all

from tests.kernels.alignment.conftest import scores, sequences


def aligned(reference: bytes, alternate: bytes, parameters: Parameters, strategy: str) -> tuple[str, int, int]:
    a, b = (np.frombuffer(text, np.uint8) for text in (reference, alternate))
    (alignment,) = oracle.align([(a, b)], parameters, strategy)
    return alignment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "alternate", "strategy", "answer"),
    [
        (b"ACGT", b"ACGT", "SOFTCLIP", ("4M", 0, 800)),
        (b"ACGT", b"CG", "SOFTCLIP", ("2M", 1, 400)),
        (b"CG", b"ACGT", "SOFTCLIP", ("1S2M1S", 0, 400)),
        (b"CG", b"ACGT", "IGNORE", ("4M", -1, 400)),
        (b"CG", b"ACGT", "INDEL", ("1I2M1I", 0, 400 - 2 * 260)),
        (b"ACGT", b"CG", "INDEL", ("1D2M1D", 0, 400 - 2 * 260)),
        (b"ACGT", b"CG", "LEADING_INDEL", ("1D2M", 0, 400 - 260)),
        (b"N", b"A", "INDEL", ("1M", 0, -150)),  # N matches only N
        (b"a", b"A", "INDEL", ("1M", 0, -150)),  # case matters
        # Of equal scores in the last column the lowest row wins; of equal scores in the last row, the nearest to the diagonal.
        (b"AGA", b"A", "SOFTCLIP", ("1M", 2, 200)),
        (b"A", b"AGA", "SOFTCLIP", ("1M2S", 0, 200)),
    ],
)
def test_by_hand(reference: bytes, alternate: bytes, strategy: str, answer: tuple[str, int, int]) -> None:
    assert aligned(reference, alternate, NEW, strategy) == answer


@pytest.mark.slow
def test_a_gap_is_extended_rather_than_opened() -> None:
    """Both gaps of two end here at -6: extending the first is one gap of 2, opening again is two gaps of 1."""
    assert aligned(b"AACC", b"AAGGCC", Parameters(9, -9, -3, -3), "INDEL") == ("2M2I2M", 0, 30)


@pytest.mark.slow
def test_scores_stop_falling() -> None:
    dear = Parameters(1, -60_000_000, -60_000_000, -60_000_000)
    assert aligned(b"AAA", b"CCC", dear, "INDEL")[2] == oracle.FLOOR


@pytest.mark.slow
@given(sequences(25), sequences(25), scores, st.sampled_from(("SOFTCLIP", "INDEL", "LEADING_INDEL")))
def test_parasail_finds_the_same_optimum(a: bytes, b: bytes, parameters: Parameters, strategy: str) -> None:
    matrix = parasail.matrix_create("AC", parameters.match, parameters.mismatch)
    method = {"SOFTCLIP": parasail.sg, "INDEL": parasail.nw, "LEADING_INDEL": parasail.sg_de}[strategy]
    best = method(b.decode(), a.decode(), -parameters.opening, -parameters.extending, matrix).score
    actual = aligned(a, b, parameters, strategy)[2]
    # parasail may align nothing; then its score is 0.
    assert actual == best or (strategy == "SOFTCLIP" and actual < best == 0)


@given(sequences(40), sequences(40), scores, st.sampled_from(("SOFTCLIP", "INDEL", "LEADING_INDEL")))
def test_a_cigar_has_its_reported_score(a: bytes, b: bytes, parameters: Parameters, strategy: str) -> None:
    match, mismatch, opening, extending = parameters
    extending = max(opening, extending)  # otherwise two gaps can cost less than one
    cigar, offset, score = aligned(a, b, Parameters(match, mismatch, opening, extending), strategy)
    operations = [(int(length), letter) for length, letter in re.findall(r"(\d+)([MIDS])", cigar)]
    assert "".join(f"{length}{letter}" for length, letter in operations) == cigar
    assert all(length > 0 for length, _ in operations)
    assert all(left != right for (_, left), (_, right) in pairwise(operations))
    i, j, total = offset, 0, 0
    for length, letter in operations:
        if letter == "M":
            total += sum(
                match if x == y else mismatch for x, y in zip(a[i : i + length], b[j : j + length], strict=True)
            )
        elif letter in "ID":
            total += opening + (length - 1) * extending
        i += length if letter in "MD" else 0
        j += length if letter in "MIS" else 0
    assert (j, total) == (len(b), score)
    assert i == len(a) or strategy != "INDEL"


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
