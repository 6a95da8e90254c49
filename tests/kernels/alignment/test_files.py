"""Alignment files: what is read, what is refused and with which words, what is written."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simtbed import SimtbedError
from simtbed.kernels import InputError
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host import files
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem, Strategy


def pairs(problem: Problem) -> list[tuple[bytes, bytes]]:
    return [(a.tobytes(), b.tobytes()) for a, b in problem.pairs()]


def written(tmp_path: Path, content: bytes, name: str = "in") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content", [b"ACG\tT\nNn*\tacgt\n", b"ACG\tT\r\nNn*\tacgt", gzip.compress(b"ACG\tT\nNn*\tacgt\n\n", mtime=0)]
)
def test_a_table(tmp_path: Path, content: bytes) -> None:
    assert pairs(files.read(written(tmp_path, content))) == [(b"ACG", b"T"), (b"Nn*", b"acgt")]


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n"])
def test_no_pairs(tmp_path: Path, content: bytes) -> None:
    assert len(files.read(written(tmp_path, content))) == 0


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    problem = generate(1, 20, (1, 30), (1, 30))
    path = written(tmp_path, "".join(files.rows(problem)).encode())
    assert pairs(files.read(path)) == pairs(problem)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A\tC\nACGT\n", "2: 'ACGT' has 1 column, expected a reference, a tab, an alternate"),
        (b"A\tC\tG\n", "1: 'A\\\\tC\\\\tG' has 3 columns, expected a reference, a tab, an alternate"),
        (b"A\tC\n\nA\tC\n", "2: '' has 1 column, expected a reference, a tab, an alternate"),
        (b"A\tC\nA\t\n", "2: the alternate is empty"),
        (b"\tC\n", "1: the reference is empty"),
        (b"A\tC\x00\n", "1: the alternate holds '\\\\x00', expected printable letters without spaces"),
        (b"A\xff\tC\n", "1: the reference holds '\\\\xff', expected printable letters without spaces"),
        (b"A C\tC\n", "1: the reference holds ' ', expected printable letters without spaces"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"in:{message}$"):
        files.read(written(tmp_path, content))


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in: No such file"):
        files.read(tmp_path / "in")
    with pytest.raises(InputError, match="in: damaged or truncated"):
        files.read(written(tmp_path, gzip.compress(b"A\tC\n")[:-9]))


def test_two_fasta_files_are_paired_in_order(tmp_path: Path) -> None:
    references = written(tmp_path, b">chr1 of this\nACGT\nAC\n>chr2\nGG\n", "r.fa")
    alternates = written(tmp_path, gzip.compress(b">a\nACG\n>b\nG\n"), "a.fa.gz")
    problem = files.read_fasta(references, alternates)
    assert pairs(problem) == [(b"ACGTAC", b"ACG"), (b"GG", b"G")]
    assert problem.names == (("chr1", "a"), ("chr2", "b"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b">a\nACG\n", "a.fa: 1 records, expected 2 like .*r.fa: they are paired in order"),
        (b">a\nACG\n>b\n", "a.fa: record 2, 'b', is empty"),
        (b"ACG\n", "a.fa:1: 'ACG', expected '>' at the beginning of a record"),
        (b">\nA\n>b\nC\n", "a.fa: record 1 has no name"),
        (b">a\nA\x01\n>b\nC\n", "a.fa: record 1, 'a', holds '\\\\x01', expected printable letters without spaces"),
        (gzip.compress(b">a\nACG\n>b\nC\n", mtime=0)[:-9], "a.fa: .*"),
    ],
)
def test_what_is_wrong_with_fasta(tmp_path: Path, content: bytes, message: str) -> None:
    references = written(tmp_path, b">1\nA\n>2\nC\n", "r.fa")
    with pytest.raises(InputError, match=f"{message}$"):
        files.read_fasta(references, written(tmp_path, content, "a.fa"))
    with pytest.raises(InputError, match=r"none\.fa: No such file"):
        files.read_fasta(tmp_path / "none.fa", references)


@pytest.mark.slow
def test_an_answer_as_a_table() -> None:
    problem = Problem.of([(b"ACGT", b"CG"), (b"CG", b"ACGT")])
    assert list(files.lines(problem, FAMILY.oracle(problem))) == ["2M\t1\t400\n", "1S2M1S\t0\t400\n"]


@pytest.mark.slow
def test_an_answer_as_sam(tmp_path: Path) -> None:
    problem = Problem.of([(b"ACGT", b"CG"), (b"CG", b"ACGT")])
    answer = FAMILY.oracle(problem)
    assert as_sam(problem, answer) == (
        "@HD\tVN:1.6\tSO:unknown\n@SQ\tSN:ref1\tLN:4\n@SQ\tSN:ref2\tLN:2\n"
        "alt1\t0\tref1\t2\t255\t2M\t*\t0\t0\tCG\t*\tAS:i:400\n"
        "alt2\t0\tref2\t1\t255\t1S2M1S\t*\t0\t0\tACGT\t*\tAS:i:400\n"
    )
    one_by_one = [(problem.part(p, p + 1), answer[p : p + 1]) for p in range(2)]
    assert as_sam(*one_by_one[0], *one_by_one[1]) == as_sam(problem, answer)
    named = replace(problem, names=(("c", "a"), ("c", "b")))
    with pytest.raises(InputError, match="references of different lengths are called c"):
        as_sam(named, answer)
    with pytest.raises(InputError, match="alt1 holds more than letters"):
        as_sam(Problem.of([(b"A", b"*")]), answer[:1])
    with pytest.raises(SimtbedError, match="SAM cannot say that an alignment begins before its reference"):
        files.check_form("sam", Strategy.IGNORE)


def as_sam(*answers: Any) -> str:
    """Problems and their answers, one after the other, as SAM."""
    to = io.BytesIO()
    files.write(zip(answers[::2], answers[1::2], strict=True), "sam", to)
    return to.getvalue().decode()
