"""Dumps of GATK's pair-HMM: reading, refusals, writing, and conversion to likelihoods and back by the script."""

import sys
from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels import InputError
from simtbed.kernels.files import write
from simtbed.kernels.pairhmm.host import files_gatk
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.problem import Problem

from examples import gatk_region

ROW = b"ACGT AC II NN NN ++ -1.500000e+00\n"


def dumped(path: Path, problem: Problem, answers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Path:
    write(path, files_gatk.lines(problem, answers))
    return path


def test_a_dump_is_read_as_it_was_written(tmp_path: Path) -> None:
    problem = generate(3, records=3)
    answers = -np.arange(len(problem.pairs[0])) / 8
    path = dumped(tmp_path / "dump", problem, answers)
    ((parsed, gatk),) = files_gatk.batches(path)
    assert gatk.tolist() == answers.tolist()
    for before, after in zip(problem.records(), parsed.records(), strict=True):
        assert [[c.tobytes() for c in read] for read in before[0]] == [[c.tobytes() for c in read] for read in after[0]]
        assert [h.tobytes() for h in before[1]] == [h.tobytes() for h in after[1]]


def test_sizes_of_pieces_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate(4, records=3)
    path = dumped(tmp_path / "dump", problem, -np.arange(len(problem.pairs[0])) / 8)
    monkeypatch.setattr(files_gatk, "PAIRS_AT_ONCE", 5)
    pieces = list(files_gatk.batches(path))
    assert len(pieces) > 5
    text, records = b"", 0
    for piece, answers in pieces:
        text += b"".join(files_gatk.lines(piece, answers, records))
        records += len(piece.record_reads) - 1
    assert text == path.read_bytes()


def test_one_read_in_two_regions_keeps_the_order_of_its_pairs(tmp_path: Path) -> None:
    """A dump does not mark the end of a region: equal reads on both sides are one read with the haplotypes of both."""
    rows = [f"{h} AC II NN NN ++ {-n:e}\n".encode() for n, h in enumerate(("ACGT", "ACGA", "TTGT", "TTGA"))]
    path = tmp_path / "dump"
    path.write_bytes(b"# hap-bases\n\n" + b"".join(rows))
    ((problem, answers),) = files_gatk.batches(path)
    assert answers.tolist() == [0, -1, -2, -3]
    assert [h.tobytes() for _, haplotypes in problem.records() for h in haplotypes] == [
        b"ACGT",
        b"ACGA",
        b"TTGT",
        b"TTGA",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"8 3\n", "1: expected the header of a GATK pair-HMM dump"),
        (files_gatk.HEADER + b"ACGT AC\n", "2: 2 columns, expected a haplotype"),
        (files_gatk.HEADER + ROW + ROW.replace(b"ACGT", b"ACGX"), "3: 'X' at 4 in the haplotype is no base"),
        (files_gatk.HEADER + ROW.replace(b" AC ", b" A* "), "2: '\\*' at 2 in the bases is no base"),
        (files_gatk.HEADER + ROW.replace(b"NN", b"N", 1), "2: the insertion qualities are 1 characters, expected 2"),
        (files_gatk.HEADER + ROW.replace(b"++", b"+\x7f"), "2: '.*7f' in the gap continuation is no quality"),
        (files_gatk.HEADER + ROW.replace(b"-1.5", b"x"), "2: the likelihood is 'x00000e.00', expected a logarithm"),
    ],
)
def test_what_is_wrong_with_a_dump(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"dump:{message}"):
        list(files_gatk.batches(path))


def test_a_likelihood_of_another_locale(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_bytes(files_gatk.HEADER + ROW.replace(b"-1.5", b"-1,5"))
    assert [answers.tolist() for _, answers in files_gatk.batches(path)] == [[-1.5]]


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["gatk_region.py", *arguments])
    gatk_region.main()
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_the_script_makes_a_region_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, capsys)[0].startswith("18 pairs")
