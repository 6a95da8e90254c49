"""FASTQ and FASTA in blocks, compared with dnaio and a plain writer."""

import io
from pathlib import Path

import dnaio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.kernels.correction.host import files
from simtbed.kernels.correction.host.files import ReadFile, read_file
from simtbed.kernels.correction.host.pairs import pair_files
from simtbed.kernels.correction.host.pipeline_files import Solved, format_reads_of
from simtbed.kernels.correction.host.problem import Corrected
from simtbed.kernels.family import InputError
from simtbed.kernels.files import Input

NAMES = some.text("ab 1@+/\t", max_size=6)
LETTERS = some.text("ACGTNacgt.@+", max_size=12)


@some.composite
def fastq(draw: some.DrawFn) -> bytes:
    """Generate valid and occasionally invalid records."""
    text = b""
    for _ in range(draw(some.integers(1, 6))):
        name, letters = draw(NAMES), draw(LETTERS)
        quality = "".join(draw(some.lists(some.sampled_from("!I~@+ "), min_size=len(letters), max_size=len(letters))))
        end = draw(some.sampled_from(["\n", "\r\n"]))
        lines = ["@" + name, letters, draw(some.sampled_from(["+", "+" + name])), quality]
        text += "".join(line + end for line in lines).encode()
    if draw(some.booleans()):
        text = text.removesuffix(b"\n")
    if draw(some.integers(0, 3)) == 0:
        at = draw(some.integers(0, len(text)))
        text = text[:at] + draw(some.sampled_from([b"", b"\n", b"x", b"\xff", b"@", b" "])) + text[at + 1 :]
    return text


def _file_of(text: bytes, size: int) -> ReadFile:
    return ReadFile("reads.fq", "fastq", lambda: Input(io.BytesIO(text), Path("reads.fq")), size)


def _without_blank_end(text: bytes) -> bytes:
    """Return a text without blank lines after its last record; dnaio does not accept them."""
    lines = text.splitlines(keepends=True)
    end = b"".join(lines[len(lines) - len(lines) % 4 :])
    return text if len(lines) < 4 or end.strip(b"\r\n") else text[: len(text) - len(end)]


@pytest.mark.slow
@given(text=fastq(), size=some.sampled_from([8, 50, 1 << 20]))
def test_fastq_is_read_as_dnaio_reads_it(text: bytes, size: int) -> None:
    try:
        with dnaio.FastqReader(io.BytesIO(_without_blank_end(text))) as reader:
            records = list(reader)
        strange = any(not set(record.sequence.encode()) <= set(files.PRINTABLE) for record in records)
    except (dnaio.FileFormatError, ValueError) as error:
        with pytest.raises(InputError) as raised:
            list(_file_of(text, size).blocks())
        line = getattr(error, "line", None)
        if line is not None and text.isascii() and " holds '" not in str(raised.value):
            assert str(raised.value).startswith(f"reads.fq:{line + 1}: ")
        return
    if strange:
        with pytest.raises(InputError, match="expected letters"):
            list(_file_of(text, size).blocks())
        return
    blocks = list(_file_of(text, size).blocks())
    result = [pair for b in blocks for pair in zip(map(b.name, range(len(b))), b.reads.strings(), strict=True)]
    assert result == [(record.name, record.sequence.upper()) for record in records]

    # Reads that are retained whole equal dnaio's output in upper case; discarded reads are unchanged.
    retained, discarded = b"", b""
    for block in blocks:
        spans = np.stack([np.zeros(len(block)), block.reads.lengths], axis=1).astype(np.int32)
        for flag in "FD":
            flags = np.full(len(block), ord(flag), np.uint8)
            some = format_reads_of(Solved(block, Corrected(block.reads, block.reads.text, flags, spans), None), True)
            retained, discarded = retained + bytes(some.text), discarded + bytes(some.discarded)
    assert discarded == b"".join(record.fastq_bytes() for record in records)
    for record in records:
        record.sequence = record.sequence.upper()
    assert retained == b"".join(record.fastq_bytes() for record in records)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n\n"])
def test_blank_lines_at_the_end(end: str) -> None:
    record = "@r\nACGT\n+\nIIII\n"
    for size in (8, 1 << 20):
        text = (2 * record + end).encode()
        assert sum(map(len, _file_of(text, size).blocks())) == 2
        with pytest.raises(InputError, match=r"reads\.fq:9: "):
            list(_file_of(text + record.encode(), size).blocks())


def test_the_same_mates_twice(tmp_path: Path) -> None:
    """Mates have one name, and different numbers if they have numbers."""

    def pair(first: str, second: str) -> int:
        paths = tmp_path / "first.fq", tmp_path / "second.fq"
        for path, name in zip(paths, (first, second), strict=True):
            path.write_text(f"@r{name}\nACGT\n+\nIIII\n")
        with read_file(paths[0]) as one, read_file(paths[1]) as other:
            return sum(map(len, pair_files(one, other).blocks()))

    assert [pair(*names) for names in (("/1", "/2"), (" 1:N:0:A", " 2:N:0:A"), ("", ""), (" x", " x"), ("/1", ""))] == [
        2
    ] * 5
    for same in ("/1", "/2", " 1:N:0:A", " 2:Y:0:A"):
        with pytest.raises(InputError, match="expected the mate of 'r"):
            pair(same, same)


def test_a_record_larger_than_a_block(tmp_path: Path) -> None:
    path, letters = tmp_path / "long.fq", "ACGT" * 3_000
    path.write_text("".join(f"@r{r}\n{letters}\n+\n{'I' * len(letters)}\n" for r in range(3)))
    with read_file(path) as whole:
        small = ReadFile(whole.name, whole.form, whole.start, 1_000)
        assert [block.reads.strings() for block in small.blocks()] == [[letters]] * 3
    with (
        read_file(path, 1 << 16) as tight,
        pytest.raises(InputError, match="a record has more than 8,192 bytes, an eighth of --max-memory"),
    ):
        list(tight.blocks())


def test_a_mistake_is_reported_with_its_line_in_any_block(tmp_path: Path) -> None:
    path, good = tmp_path / "reads.fq", "@r\nACGT\n+\nIIII\n"
    path.write_text(good * 1000 + "@r\nACGT\n+\nIII\n" + good * 1000)
    for size in (64, 1_000, 1 << 20):
        with read_file(path) as whole, pytest.raises(InputError) as raised:
            list(ReadFile(whole.name, whole.form, whole.start, size).blocks())
        assert str(raised.value).startswith(f"{path}:4004: Length of sequence and qualities differ")
    path.write_text(good * 1000 + "@r\nAC T\n+\nIIII\n")
    with read_file(path) as reads, pytest.raises(InputError, match="read 1001 holds ' ', expected letters"):
        list(reads.blocks())
