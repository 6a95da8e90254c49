"""FASTA by native loops: records, lines and mistakes equal those of a plain line reader."""

from collections.abc import Iterator
from pathlib import Path

import dnaio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed.kernels.alignment.host.files import fasta as paired
from simtbed.kernels.correction.host.files import read_file
from simtbed.kernels.family import InputError
from simtbed.kernels.files import fasta, open_input

Record = tuple[int, str, bytes]


def reference(content: bytes) -> tuple[list[Record], int]:
    """Return (line, name, sequence) of each record, by lines, and the line of the first mistake, or 0."""
    result: list[Record] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        if not text.isascii() or not (result or text.startswith(b">")):
            return result, number
        if text.startswith(b">"):
            result.append((number, text[1:].decode("ascii"), b""))
        else:
            result[-1] = (*result[-1][:2], result[-1][2] + text)
    return result, 0


def read(path: Path, size: int, memory: int = 1 << 30) -> tuple[list[Record], int]:
    result: list[Record] = []
    with open_input(path, memory) as source:
        try:
            for some in fasta.read_records(source, size):
                result += [(int(some.lines[r]), some.name(r), some.sequence(r)) for r in range(len(some))]
                letters, offsets = some.sequences()
                assert letters.tobytes() == b"".join(some.sequence(r) for r in range(len(some)))
                assert np.diff(offsets).tolist() == [len(some.sequence(r)) for r in range(len(some))]
        except InputError as error:
            return result, int(str(error).split(":")[1])
    return result, 0


LINES = st.one_of(
    st.sampled_from([b">a", b">b c d", b">", b"> a", b"  >late\t", b"ACGT", b"ac gt ", b"", b" ", b"# note", b" #x", b"A>C", b"\x0b\x0cN"]),
    st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"")),
    st.text("ACGT", max_size=40).map(str.encode),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 30, 1 << 20])
def test_records_are_those_of_a_reader_of_lines(size: int, tmp_path: Path) -> None:
    path = tmp_path / "given.fa"

    @settings(max_examples=60, deadline=None)
    @given(st.lists(LINES, max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.booleans())
    def check(lines: list[bytes], end: bytes, ended: bool, first_record: bool) -> None:
        content = (b">first" + end if first_record else b"") + end.join(lines) + (end if ended else b"")
        path.write_bytes(b"\n" + content)  # the first bytes determine the compression
        expected, mistake = reference(b"\n" + content)
        result, line = read(path, size)
        assert line == mistake
        assert result == (expected if not mistake else expected[: len(result)])
        assert len(result) >= len(expected) - 1  # the record of the mistake may be incomplete

    check()


def test_dnaio_reads_the_same(tmp_path: Path) -> None:
    draw, path = np.random.default_rng(1), tmp_path / "given.fa"
    records = [
        (f"r{n} of {n}", "".join(draw.choice(list("ACGTN"), draw.integers(0, 300)).tolist())) for n in range(500)
    ]

    def lines() -> Iterator[str]:
        for name, sequence in records:
            yield f">{name}\n"
            yield from (sequence[at : at + 60] + "\n" for at in range(0, len(sequence), 60))

    path.write_text("".join(lines()))
    with dnaio.open(path) as judge:
        expected = [(record.name, record.sequence.encode()) for record in judge]
    assert [(name, sequence) for _, name, sequence in read(path, 4_000)[0]] == expected
    with read_file(path) as reads:
        object.__setattr__(reads, "size", 4_000)
        blocks = list(reads.blocks())
    assert len(blocks) > 10
    assert [(b.name(r), s.encode()) for b in blocks for r, s in enumerate(b.reads.strings())] == expected


def test_two_files_of_other_pieces_are_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    texts: list[list[tuple[str, str]]] = []
    for which, longest in (("r", 300), ("a", 40)):
        texts.append([
            (f"{which}{n}", "".join(draw.choice(list("ACGT"), draw.integers(1, longest)).tolist())) for n in range(400)
        ])  # fmt: skip
        (tmp_path / which).write_text("".join(f">{name} x\n{sequence}\n" for name, sequence in texts[-1]))
    monkeypatch.setattr("simtbed.kernels.alignment.host.files.LETTERS_AT_ONCE", 1_000)
    problems = list(paired(tmp_path / "r", tmp_path / "a", cells=50_000))
    assert len(problems) > 20
    assert all(problem.cells < 50_000 + 300 * 40 for problem in problems)
    result = [
        ((names[0], r.tobytes().decode()), (names[1], a.tobytes().decode()))
        for problem in problems
        for names, (r, a) in zip(problem.names, problem.pairs(), strict=True)
    ]
    assert result == list(zip(*texts, strict=True))
    assert [problem.before for problem in problems] == np.cumsum([0, *map(len, problems[:-1])]).tolist()
    (tmp_path / "more").write_text((tmp_path / "a").read_text() + ">one\nA\n>two\nC\n")
    with pytest.raises(InputError, match="more: 402 records, expected 400 like"):
        list(paired(tmp_path / "r", tmp_path / "more"))
    with pytest.raises(InputError, match="r: 400 records, expected 402 like"):
        list(paired(tmp_path / "more", tmp_path / "r"))


def test_a_record_that_is_too_long_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "given.fa"
    path.write_text(">a\nACGT\n>b\n" + "ACGT\n" * 1_000)
    with (
        pytest.raises(InputError, match="the record at line 3 has more than 1,000 bytes"),
        open_input(path, 8_000) as source,
    ):
        list(fasta.read_records(source, 100))
