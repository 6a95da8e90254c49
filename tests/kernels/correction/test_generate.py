"""Simulated reads: letters of the reference, the requested error rate, equal reads for equal seeds; accuracy counted by hand."""

import numpy as np
import pytest
from simtbed.kernels.correction.host.compare import Accuracy
from simtbed.kernels.correction.host.generate import Reference, genome, records_of, simulate
from simtbed.kernels.correction.host.problem import Corrected, Reads

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def test_truth_equals_the_reference() -> None:
    reference = genome(1, 500)
    text = reference.tobytes().decode()
    simulated = simulate(1, reference, 200, (20, 60), 0.02)
    strands = (text, text[::-1].translate(COMPLEMENT))
    forward = [read in strands[0] for read in simulated.truth.strings()]
    assert all(read in strands[not here] for read, here in zip(simulated.truth.strings(), forward, strict=True))
    assert 70 < sum(forward) < 130
    assert set(simulated.truth.lengths.tolist()) == set(range(20, 61))
    np.testing.assert_array_equal(simulated.truth.offsets, simulated.reads.offsets)


def test_reads_start_at_every_position_of_a_reference() -> None:
    reference = Reference.of_runs(np.zeros(20, np.uint8), np.array([5, 2, 9, 4]))
    valid = {1: [*range(20)], 3: [0, 1, 2, *range(7, 14), 16, 17], 5: [0, *range(7, 12)], 9: [7]}
    for length, starts in valid.items():
        fractions = (np.arange(len(starts)) + 0.5) / len(starts)
        assert sorted(reference.places(fractions, np.full(len(starts), length)).tolist()) == starts
    edges = reference.places(np.array([0.0, np.nextafter(1, 0)]), np.array([5, 9]))
    assert edges.tolist() == [7, 7]


def test_errors_have_the_requested_rate_and_match_the_qualities() -> None:
    simulated = simulate(2, genome(2, 5000), 40_000, (36, 36), 0.01)
    wrong = (simulated.reads.text != simulated.truth.text).reshape(-1, 37)[:, :36]
    assert wrong.mean() == pytest.approx(0.01, rel=0.05)
    assert wrong[:, -1].mean() > 3 * wrong[:, 0].mean()
    expected = 10.0 ** ((simulated.quality.reshape(-1, 37)[:, :36] - 33.0) / -10)
    for low, high in ((0.001, 0.01), (0.01, 0.05), (0.05, 0.5)):
        chosen = (low < expected) & (expected <= high)
        assert wrong[chosen].mean() == pytest.approx(expected[chosen].mean(), rel=0.15)


def test_no_errors_and_unknown_letters() -> None:
    simulated = simulate(3, genome(3, 500), 300, (30, 30), 0.0, unknown=0.1)
    different = simulated.reads.text != simulated.truth.text
    assert different.mean() == pytest.approx(0.1, rel=0.1)
    assert set(simulated.reads.text[different].tolist()) == {ord("N")}


def test_equal_seeds_give_equal_reads() -> None:
    first, same, other = (simulate(seed, genome(7, 300), 20, (10, 40), 0.05) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.reads.text, same.reads.text)
    assert first.reads.strings() != other.reads.strings()


def test_records_are_written_with_their_numbers() -> None:
    simulated = simulate(4, genome(4, 300), 30, (1, 40), 0.05)
    qualities = simulated.quality.tobytes().decode().split("\n")
    pairs = list(zip(simulated.reads.strings(), qualities, strict=False))
    expected = "".join(f"@read{r}\n{bases}\n+\n{quality}\n" for r, (bases, quality) in enumerate(pairs, 85))
    assert records_of(simulated.reads, simulated.quality, 85, fastq=True).tobytes().decode() == expected
    expected = "".join(f">read{r}\n{bases}\n" for r, (bases, _) in enumerate(pairs, 999_990))
    assert records_of(simulated.reads, simulated.quality, 999_990, fastq=False).tobytes().decode() == expected


def corrected(before: list[str], after: list[str], spans: list[tuple[int, int]], flags: str) -> Corrected:
    reads = Reads.from_strings(before)
    return Corrected(
        reads, Reads.from_strings(after).text, np.frombuffer(flags.encode(), np.uint8), np.array(spans, np.int32)
    )


def test_accuracy() -> None:
    truth = ["AAAA", "CCCC", "GGGG", "TTTT", "ACGT"]
    before = ["AAAC", "CCCC", "GAAG", "TTTT", "ACGT"]
    after = ["AAAA", "CCAC", "GCGG", "TTTT", "ACGT"]
    spans = [(0, 4), (0, 2), (0, 4), (0, 0), (0, 4)]
    result = Accuracy.measure(corrected(before, after, spans, "FFFDS"), Reads.from_strings(truth))
    assert result == Accuracy(
        corrected=2, introduced=1, left=1, reads=5, right_before=3, kept=4, kept_right=3, discarded_right=1
    )
    assert result.gain == pytest.approx(1 / 3)
    assert (result + result).corrected == 4
    assert Accuracy().gain == 0.0


def test_edits_and_sequences() -> None:
    result = corrected(["AAAC", "CCCC"], ["AAAA", "CACG"], [(0, 3), (0, 0)], "FD")
    assert result.edits() == {0: [(3, "C", "A")], 1: [(1, "C", "A"), (3, "C", "G")]}
    assert [result.sequence(r) for r in range(2)] == ["AAA", "CACG"]
