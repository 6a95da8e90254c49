"""Alignment files: accepted input, messages of refused input, output."""

import codecs
import gzip
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simtbed import SimtbedError
from simtbed.kernels import InputError
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host import files
from simtbed.kernels.alignment.host.answer import Alignments
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.problem import Problem, Strategy


def pairs(problem: Problem) -> list[tuple[bytes, bytes]]:
    return [(a.tobytes(), b.tobytes()) for a, b in problem.pairs()]


def written(tmp_path: Path, content: bytes, name: str = "in") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"ACG\tT\nNnr\tacgu\n",
        b"ACG\tT\r\nNnr\tacgu",
        b"ACG\tT\r\nNnr\tacgu\r",
        codecs.BOM_UTF8 + b"ACG\tT\nNnr\tacgu\n",
        gzip.compress(b"ACG\tT\nNnr\tacgu\n\n", mtime=0),
    ],
)
def test_a_table(tmp_path: Path, content: bytes) -> None:
    assert pairs(files.read(written(tmp_path, content))) == [(b"ACG", b"T"), (b"NNN", b"ACGT")]


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n", b"\r", codecs.BOM_UTF8])
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
        (b"A\tC\x00\n", "1: the alternate holds '\\\\x00' at 2, expected A, C, G, T, U, N or another IUPAC code"),
        (b"A\xff\tC\n", "1: the reference holds '\\\\xff' at 2, expected A, C, G, T, U, N or another IUPAC code"),
        (
            b"A\tC\n\xef\xbb\xbfA\tC\n",
            "2: the reference holds '\\\\xef' at 1, expected A, C, G, T, U, N or another IUPAC code",
        ),
        (b"A C\tC\n", "1: the reference holds ' ' at 2, expected A, C, G, T, U, N or another IUPAC code"),
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
        (
            b">a\nA\x01\n>b\nC\n",
            "a.fa: record 1, 'a', holds '\\\\x01' at 2, expected A, C, G, T, U, N or another IUPAC code",
        ),
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
    problem = Problem.from_pairs([(b"ACGT", b"CG"), (b"CG", b"ACGT")])
    assert as_text("tsv", problem, alignments(FAMILY.oracle(problem))) == "2M\t1\t400\n1S2M1S\t0\t400\n"


@pytest.mark.slow
def test_an_answer_as_sam(tmp_path: Path) -> None:
    problem = Problem.from_pairs([(b"ACGT", b"CG"), (b"CG", b"ACGT")])
    answer = alignments(FAMILY.oracle(problem))
    assert as_sam(problem, answer) == (
        "@HD\tVN:1.6\tSO:unknown\n@SQ\tSN:ref1\tLN:4\n@SQ\tSN:ref2\tLN:2\n"
        "alt1\t0\tref1\t2\t255\t2M\t*\t0\t0\tCG\t*\tAS:i:400\tNM:i:0\n"
        "alt2\t0\tref2\t1\t255\t1S2M1S\t*\t0\t0\tACGT\t*\tAS:i:400\tNM:i:0\n"
    )
    one_by_one = [(problem.subset(p, p + 1), alignments_between(answer, p, p + 1)) for p in range(2)]
    assert as_sam(*one_by_one[0], *one_by_one[1]) == as_sam(problem, answer)
    named = replace(problem, names=(("c", "a"), ("c", "b")))
    with pytest.raises(
        InputError, match="the references of pairs 1 and 2 are both called c, with different sequences: SAM"
    ):
        as_sam(named, answer)
    with pytest.raises(SimtbedError, match=r"'\*' at 2, expected A, C"):
        Problem.from_pairs([(b"A", b"C*")])
    with pytest.raises(SimtbedError, match="SAM cannot say that an alignment begins before its reference"):
        files.check_form("sam", Strategy.IGNORE)


def alignments(answer: Any) -> Alignments:
    """Convert an answer with CIGAR texts to arrays."""
    encoded = [[(int(n) << 4) | "MIDNS".index(c) for n, c in re.findall(r"(\d+)(\D)", row["cigar"])] for row in answer]
    operations = np.array([word for words in encoded for word in words], np.uint32)
    firsts = np.concatenate([[0], np.cumsum([len(words) for words in encoded])])
    return Alignments(operations, firsts, answer["offset"].copy(), answer["score"].copy())


def alignments_between(answer: Alignments, first: int, last: int) -> Alignments:
    begins = answer.firsts[first : last + 1]
    operations = answer.operations[begins[0] : begins[-1]]
    return Alignments(operations, begins - begins[0], answer.offsets[first:last], answer.scores[first:last])


def as_text(form: files.Format, *answers: Any) -> str:
    """Write pairs of a problem and its answer, one after the other."""
    to = io.BytesIO()
    files.write(zip(answers[::2], answers[1::2], strict=True), form, to)
    return to.getvalue().decode()


def as_sam(*answers: Any) -> str:
    return as_text("sam", *answers)


# ------------------------------------------------------------------ pieces
def plain(content: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the pairs of a table, None if it is malformed: reference implementation of the reader."""
    lines = content.split(b"\n")
    ended = [line.removesuffix(b"\r") for line in lines]
    while ended and not ended[-1]:
        ended.pop()
    rows = [tuple(line.split(b"\t")) for line in ended]
    good = all(len(row) == 2 and all(field and all(32 < c < 127 for c in field) for field in row) for row in rows)
    return [(row[0], row[1]) for row in rows] if good else None


@pytest.mark.slow
@pytest.mark.parametrize("block", [8, 13, 1 << 20])
def test_a_table_is_equal_for_any_block_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(files, "BLOCK", block)
    draw = np.random.default_rng(block)
    letters = [b"A", b"CG", b"T", b"A", b"\t", b"\t", b"\n", b"\n", b"\r\n", b"\r", b" ", b"\xff"]
    agreed = [0, 0]
    for trial in range(300):
        if trial % 2:
            content = b"".join(letters[at] for at in draw.integers(0, len(letters), draw.integers(1, 12)))
        else:
            rows = [
                b"ACGT"[: draw.integers(1, 5)] + b"\t" + b"GG"[: draw.integers(1, 3)] for _ in range(draw.integers(6))
            ]
            content = [b"\n", b"\r\n"][trial // 2 % 2].join(rows) + b"\n" * draw.integers(3)
        expected, path = plain(content), written(tmp_path, content)
        agreed[expected is None] += 1
        if expected is None:
            with pytest.raises(InputError, match=r"in:\d+: "):
                files.read(path)
        else:
            assert pairs(files.read(path)) == expected
    assert min(agreed) > 50


def test_a_mistake_has_its_line_in_any_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 64)
    rows = [b"ACGT\tAC"] * 100
    for wrong, message in ((b"ACGT", "has 1 column"), (b"AC\tA\x01", "the alternate holds"), (b"", "'' has 1 column")):
        for at in (0, 7, 50, 98):
            content = b"\n".join([*rows[:at], wrong, *rows[at:]]) + b"\n"
            with pytest.raises(InputError, match=f"in:{at + 1}: .*{message}"):
                files.read(written(tmp_path, content))
    with pytest.raises(InputError, match="in:10101: more than 10,000 blank lines follow each other"):
        files.read(written(tmp_path, b"\n".join(rows) + b"\n" * 10_002))


def test_batches_are_bounded_by_cells(tmp_path: Path) -> None:
    path = written(tmp_path, b"ACGT\tAC\n" * 100)
    batches = list(files.table(path, cells=20))
    assert {batch.cells for batch in batches[:-1]} == {24}
    assert [batch.before for batch in batches] == list(range(0, 100, 3))
    assert sum(map(len, batches)) == 100


def test_rows_are_what_python_writes() -> None:
    draw = np.random.default_rng(3)
    counts = draw.integers(1, 9, 200)
    words = (draw.integers(1, 1 << draw.integers(1, 28, counts.sum())) << 4) | draw.choice([0, 1, 2, 4], counts.sum())
    firsts = np.concatenate([[0], np.cumsum(counts)])
    low, high = -(2**31), 2**31
    offset, score = (draw.integers(low, high, 200).astype(np.int32) for _ in range(2))
    offset[0], score[:2] = low, [low, high - 1]
    problem_alignments = Alignments(words.astype(np.uint32), firsts, offset, score)
    expected = []
    for pair in range(200):
        words_of_pair = words[firsts[pair] : firsts[pair + 1]].tolist()
        expected.append(
            ("".join(f"{word >> 4}{'MIDNS'[word & 15]}" for word in words_of_pair), offset[pair], score[pair])
        )
    problem = Problem.from_pairs([(b"ACGT", b"AC")] * 200)
    assert as_text("tsv", problem, problem_alignments) == "".join(f"{c}\t{o}\t{s}\n" for c, o, s in expected)
    assert problem_alignments.answer().tolist() == expected
