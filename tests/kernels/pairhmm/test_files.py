"""Pair-HMM files: accepted input, messages of refused input, output."""

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels import InputError
from simtbed.kernels.pairhmm.host import files
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.problem import Problem

GOOD = b"2 1\nACG III JJJ KKK +++\nNT IJ JK KL ++\nACGTA\n1 2\nG ! ~ 5 +\nT\nN\n"


def same(a: Problem, b: Problem) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in Problem.__dataclass_fields__)


def written(problem: Problem, scores: Any, form: files.Format = "gpupairhmm", before: int = 0) -> str:
    return b"".join(files.lines(problem, np.asarray(scores, np.float64), form, before)).decode("ascii")


def test_a_file() -> None:
    problem = files.parse(GOOD, "x")
    assert problem.bases.tobytes() == b"ACGNTG"
    assert problem.base_quality.tolist() == [40, 40, 40, 40, 41, 0]
    assert problem.insertion.tolist() == [41, 41, 41, 41, 42, 93]
    assert problem.deletion.tolist() == [42, 42, 42, 42, 43, 20]
    assert problem.continuation.tolist() == [10] * 6
    assert problem.read_offsets.tolist() == [0, 3, 5, 6]
    assert problem.haplotypes.tobytes() == b"ACGTATN"
    assert problem.haplotype_offsets.tolist() == [0, 5, 6, 7]
    assert (problem.record_reads.tolist(), problem.record_haplotypes.tolist()) == ([0, 2, 3], [0, 1, 3])
    assert [column.tolist() for column in problem.pairs] == [[0, 1, 2, 2], [0, 0, 1, 2]]
    assert problem.cells == 3 * 5 + 2 * 5 + 1 + 1


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.rstrip(),
        GOOD + b"\n \n\r\n",
        GOOD.lower().replace(b"iii jjj kkk", b"III JJJ KKK").replace(b"ij jk kl", b"IJ JK KL"),
        GOOD.replace(b" ", b"\t"),
        GOOD.replace(b" ", b" \t ").replace(b"\n", b" \n "),
    ],
    ids=["crlf", "no last newline", "blank lines at the end", "lower case", "tabs", "odd spacing"],
)
def test_equivalent_texts(text: bytes) -> None:
    assert same(files.parse(text, "x"), files.parse(GOOD, "x"))


def test_gzip_is_known_by_content(tmp_path: Path) -> None:
    path = tmp_path / "plain.in"
    path.write_bytes(gzip.compress(GOOD))
    assert same(files.read(path), files.parse(GOOD, "x"))


@pytest.mark.parametrize("text", [b"", b"\n\n", b"0 0\n"])
def test_an_empty_file_is_an_empty_problem(text: bytes) -> None:
    problem = files.parse(text, "x")
    assert problem.cells == 0
    assert len(problem.pairs[0]) == 0


def test_records_may_lack_reads_or_haplotypes() -> None:
    problem = files.parse(b"0 2\nA\nC\n1 0\nA I I I +\n1 1\nA I I I +\nA\n", "x")
    assert [column.tolist() for column in problem.pairs] == [[1], [2]]
    assert written(problem, np.array([-1.0])) == "0 2\n1 0\n\n1 1\n-1.0000000\n"


MALFORMED = {
    "binary": (b"\x00\x01\xff\x8b  \x02", 1, r"'\x00\x01\xff\x8b' is not a whole number, expected a record's header"),
    "one line of binary": (b"\x7fELF\x02\x01", 1, "has 1 column, expected a record's header"),
    "no header": (GOOD[4:], 1, "'ACG III JJJ KKK +++' has 5 columns, expected a record's header"),
    "negative": (b"-1 2\nA\nA\n", 1, "the count '-1' is negative"),
    "absurd": (b"99999999999 1\nA\n", 1, "expected 99999999999 reads and 1 haplotypes after this line, but only 1"),
    "not a number": (b"two 1\nA\n", 1, "'two' is not a whole number"),
    "not whole": (b"1.5 1\nA\n", 1, "'1.5' is not a whole number"),
    "truncated record": (GOOD[:30], 1, "expected 2 reads and 1 haplotypes after this line, but only 2 lines follow"),
    "truncated read": (b"1 1\nACG III JJ\nACG\n", 2, "has 3 columns, expected read 1 of 1 of the record at line 1"),
    "fewer reads": (b"2 1\nA I I I +\nACG\n1 1\nA I I I +\nT\n", 3, "'ACG' has 1 column, expected read 2 of 2"),
    "more reads": (b"1 1\nA I I I +\nA I I I +\nACG\n", 3, "has 5 columns, expected haplotype 1 of 1"),
    "missing haplotype": (b"1 2\nA I I I +\nA\n1 1\nA I I I +\nA\n", 4, "has 2 columns, expected haplotype 2 of 2"),
    "lengths": (
        b"1 1\nACG III JJ KKK +++\nA\n",
        2,
        "the insertion qualities of read 1 of 1 of the record at line 1 are 2",
    ),
    "six columns": (b"1 1\nA I I I + 1\nA\n", 2, "has 6 columns"),
    "low quality": (b"1 1\nAC I\x1f II II ++\nA\n", 2, r"'\x1f' at 2 in the base qualities"),
    "high quality": (b"1 1\nAC II I\xff II ++\nA\n", 2, r"'\xff' at 2 in the insertion qualities"),
    "other base": (b"1 1\nAEA III III III +++\nA\n", 2, "'E' at 2 in read 1 of 1 of the record at line 1 is no base"),
    "other haplotype base": (b"1 1\nA I I I +\nAC.\n", 3, "'.' at 3 in haplotype 1 of 1"),
    "blank read": (b"1 1\n\nA\n", 2, "a blank line, expected read 1 of 1"),
    "blank haplotype": (b"1 2\nA I I I +\n\nA\n", 3, "a blank line, expected haplotype 1 of 2"),
    "blank header": (b"1 1\nA I I I +\nA\n\n1 1\nA I I I +\nA\n", 4, "a blank line, expected a record's header"),
    "second record": (GOOD + b"1 1\nA I I I\nA\n", 10, "has 4 columns, expected read 1 of 1 of the record at line 9"),
    "first of two": (b"1 1\nA I I I\nA\nx\n", 2, "has 4 columns"),
}


@pytest.mark.parametrize(("text", "line", "words"), MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_one_clear_line_about_what_is_malformed(text: bytes, line: int, words: str, end: bytes) -> None:
    with pytest.raises(InputError) as caught:
        files.parse(text.replace(b"\n", end), "some.in")
    message = str(caught.value)
    assert message.startswith(f"some.in:{line}: ")
    assert words in message
    assert message.isprintable()


@given(st.binary(max_size=60) | st.text("12 ACGI+\n", max_size=40).map(str.encode))
def test_anything_is_read_or_refused(text: bytes) -> None:
    message, problem = "", None
    try:
        problem = files.parse(text, "x")
    except InputError as error:
        message = str(error)
    assert message.isprintable()
    if problem is not None:
        assert same(files.parse("".join(files.records(problem)).encode(), "x"), problem)


@given(st.integers(0, 10_000))
def test_what_is_written_is_read_back(seed: int) -> None:
    problem = generate(seed, records=3, read_length=(1, 9), haplotype_length=(1, 9), continuation=(0, 93), unknown=0.2)
    assert same(files.parse("".join(files.records(problem)).encode(), "x"), problem)


TEXTS = st.lists(
    st.sampled_from(
        ["1 1", "2 1", "1 2", "0 1", " 1\t1 ", "1 0", "", " ", "\x0b", "A", "acgtn", "A I I I +", "AC\tII II  II ++ ",
         "A I I I \x7f", "A I I II +", "AR II II II ++", "x", "99999999999999999999999 1", "1 " + "0" * 50 + "1"]
    ),
    max_size=12,
).map("\n".join)  # fmt: skip


def parsed(parse: Callable[[], list[Problem]]) -> list[Problem] | str:
    """Return the problems, or the message of the InputError."""
    try:
        return parse()
    except InputError as error:
        return str(error)


@given(TEXTS, st.integers(1, 40), st.booleans())
def test_a_file_read_in_pieces_is_the_same_file(text: str, size: int, crlf: bool) -> None:
    """Reading in pieces returns the same problem or the same message."""
    data = (text.replace("\n", "\r\n") if crlf else text).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(data)
        whole, problems = (
            parsed(lambda: [files.parse(data, str(path))]),
            parsed(lambda: [block.problem for block in files.blocks(path, size)]),
        )
    if isinstance(whole, str) or isinstance(problems, str):
        assert whole == problems
        return
    (expected,) = whole
    assert same(Problem.from_records(record for problem in problems for record in problem.records()), expected)
    scores = -np.arange(len(expected.pairs[0])) / 3
    forms: tuple[files.Format, ...] = ("gpupairhmm", "tsv")
    for form in forms:
        pieces, records, pairs = "", 0, 0
        for problem in problems:
            count = len(problem.pairs[0])
            pieces += written(problem, scores[pairs : pairs + count], form, records)
            records, pairs = records + len(problem.record_reads) - 1, pairs + count
        assert pieces == written(expected, scores, form)


def _near_a_tie(digits_and_step: tuple[int, int]) -> float:
    """Return the double nearest to a midpoint of two numbers of seven decimals, or a neighbour of it."""
    tie = (digits_and_step[0] + 0.5) / 1e7
    return float(np.nextafter(tie, digits_and_step[1] * np.inf)) if digits_and_step[1] else tie


SCORES = (
    st.floats(-99999999, 99999999)
    | st.floats(-400, 0)
    | st.integers(-(10**15), 10**15).map(lambda n: n / 2**24)
    | st.tuples(st.integers(-(10**9), 0), st.sampled_from([-1, 0, 1])).map(_near_a_tie)
    | st.sampled_from(
        [-0.0, 0.0, -5e-324, 5e-324, -5e-8, -9.99999995, -99.99999995, -99999999.9, -np.inf, np.inf, np.nan]
    )
)


@given(st.lists(SCORES, min_size=1))
def test_scores_are_rounded_as_python_rounds_them(values: list[float]) -> None:
    problem = Problem.from_records([([(b"A", [40], [40], [40], [10])], [b"A"] * len(values))])
    (_, row) = written(problem, values).splitlines()
    assert row.split() == [f"{value:.7f}" for value in values]


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1.0, 9.0, 99.0, 1e3, 1e7])
def test_very_many_scores_are_rounded_as_python_rounds_them(size: float) -> None:
    draw = np.random.default_rng(int(1e8 * size))
    values = -size * draw.random(40_000)
    values[::7] = np.round(values[::7], 6)  # few digits, and ties of fewer than seven
    values[::11] = np.round(values[::11] * 2**8) / 2**8
    values[::500] = -np.inf
    problem = Problem.from_records([([(b"A", [40], [40], [40], [10])] * 100, [b"A"] * 400)])
    rows = [" ".join(f"{value:.7f}" for value in row) for row in values.reshape(100, 400).tolist()]
    assert written(problem, values) == "\n".join(["100 400", *rows, ""])


def test_many_values_are_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.from_records(
        [([(b"A", [40], [40], [40], [10])] * r, [b"A"] * h) for r, h in ((3, 4), (0, 1), (1, 0), (1, 1), (2, 2))]
    )
    scores = -np.arange(17.0)
    forms: tuple[files.Format, ...] = ("gpupairhmm", "tsv")
    whole = [written(problem, scores, form) for form in forms]
    monkeypatch.setattr(files, "VALUES_AT_ONCE", 2)
    assert [written(problem, scores, form) for form in forms] == whole


def test_damaged_gzip_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.in"
    with pytest.raises(InputError, match=r"a\.in: No such file"):
        files.read(path)
    path.write_bytes(gzip.compress(GOOD)[:-9])
    with pytest.raises(InputError, match=r"a\.in: damaged or truncated"):
        files.read(path)


def test_formats() -> None:
    problem = files.parse(GOOD, "x")
    scores = np.array([-1.5, -2.25, -1e-8, -np.inf])
    assert written(problem, scores) == "2 1\n-1.5000000\n-2.2500000\n1 2\n-0.0000000 -inf\n"
    assert written(problem, scores, "tsv") == (
        "record\tread\thaplotype\tlog10\n1\t1\t1\t-1.5000000\n1\t2\t1\t-2.2500000\n2\t1\t1\t-0.0000000\n2\t1\t2\t-inf\n"
    )
