"""Inputs: the content determines the format, and limits apply."""

import bz2
import gzip
import io
import lzma
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import dnaio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels import InputError
from simtbed.kernels.files import Input, contents, fasta, open_input, open_repeatedly
from simtbed.kernels.files.decompression import ALLOWANCE, RATIO

from tests.hostile.formats import bgzf

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bgzf": bgzf,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


def zstd(data: bytes) -> bytes:
    from backports.zstd import compress

    return compress(data)


@pytest.mark.parametrize("packing", [*PACKINGS, "zstd"])
@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_compression_is_recognised_by_content(packing: str, size: int, tmp_path: Path) -> None:
    pack = PACKINGS.get(packing, zstd)
    data = os.urandom(size)
    (tmp_path / "in").write_bytes(pack(data))
    assert contents(tmp_path / "in") == data
    if packing not in ("plain", "zstd") and data:
        (tmp_path / "in").write_bytes(pack(data) + pack(data))
        assert contents(tmp_path / "in") == data + data
        for bad in (pack(data)[:-1], pack(data) + b"more", pack(data)[: len(pack(data)) // 2]):
            (tmp_path / "in").write_bytes(bad)
            with pytest.raises(InputError, match=r"damaged|truncated"):
                contents(tmp_path / "in")


def test_a_bgzf_file_ends_with_its_empty_block(tmp_path: Path) -> None:
    whole = bgzf(b"ACGT" * 200)
    (tmp_path / "in").write_bytes(whole[:-28])
    with pytest.raises(InputError, match="truncated: the empty block at the end of a BGZF file is missing"):
        contents(tmp_path / "in")


@pytest.mark.slow
@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress, zstd])
def test_bombs_are_refused(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A ratio above gzip's maximum is refused; an allowed one is decompressed."""
    bomb = pack(bytes(4 * ALLOWANCE))
    assert len(bomb) * RATIO < 2 * ALLOWANCE
    (tmp_path / "in").write_bytes(bomb)
    with (
        open_input(tmp_path / "in") as file,
        pytest.raises(InputError, match="may unpack to 1,100 times its size and 64 MiB"),
    ):
        deque(iter(partial(file.read, 1 << 20), b""), maxlen=0)


@pytest.mark.slow
def test_a_line_has_its_limit(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(gzip.compress(b"x\n" + bytes(100 << 20)))
    with open_input(tmp_path / "in", memory=64 << 20) as file:
        lines = file.lines()
        assert next(lines) == (1, b"x")
        with pytest.raises(InputError, match="line 2 has more than 8,388,608 bytes, an eighth of --max-memory"):
            next(lines)


def test_a_pipe_is_read_once_and_a_copy_of_it_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = gzip.compress(b"ACGT\n" * 50_000)
    for again in (False, True):
        writer = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
        writer.start()
        if again:
            with open_repeatedly(pipe) as start:
                assert [start().read(), start().read()] == [b"ACGT\n" * 50_000] * 2
        else:
            with open_input(pipe) as file:
                assert file.read() == b"ACGT\n" * 50_000
        writer.join(10)


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"x\ny"))))
    with open_input(Path("-")) as file:
        assert [*file.lines()] == [(1, b"x"), (2, b"y")]
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input: it is closed"), open_input(Path("-")):
        pass


@pytest.mark.parametrize(("name", "message"), [("", "Is a directory"), ("none", "No such file"), ("a\0b", "null byte")])
def test_missing_and_unreadable_files(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        contents(tmp_path / name)


@given(
    st.lists(st.tuples(st.text("abc 1", min_size=1), st.lists(st.text("ACGTN-", min_size=1)))),
    st.sampled_from(["\n", "\r\n"]),
)
def test_fasta_is_read_as_dnaio_reads_it(records: list[tuple[str, list[str]]], end: str) -> None:
    text = "".join(f">{name}{end}" + "".join(line + end for line in lines) for name, lines in records).encode()
    result = [
        (some.name(r), some.sequence(r).decode())
        for some in fasta.read_records(Input(io.BytesIO(text), Path("x")))
        for r in range(len(some))
    ]
    with dnaio.FastaReader(io.BytesIO(text)) as reader:
        assert result == [(r.name, r.sequence) for r in reader]
