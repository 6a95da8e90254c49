"""Records of several lines in pieces: the same bytes and lines for any compression and any size of a piece."""

import gzip
import io
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.kernels.family import InputError
from simtbed.kernels.files import Input
from simtbed.kernels.files.line_records import MARGIN, line_records

from .test_bgzf import packed

PACKINGS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, packed]


@given(
    lines=some.lists(some.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=60),
    ended=some.booleans(),
    size=some.integers(1, 300),
    packing=some.sampled_from(PACKINGS),
    record_lines=some.integers(1, 4),
)
def test_pieces_are_whole_records(
    lines: list[bytes], ended: bool, size: int, packing: Callable[[bytes], bytes], record_lines: int
) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    with Input(io.BytesIO(packing(data)), Path("given")) as source:
        pieces = list(line_records(source, size, record_lines))
    assert b"".join(piece.data.tobytes() for piece in pieces) == data
    before = 0
    for piece in pieces:
        assert piece.lines == before
        if not piece.last:
            assert piece.data[-1] == 10 and piece.newlines % record_lines == 0
            assert piece.newlines == piece.data.tobytes().count(b"\n") > 0
        before += piece.data.tobytes().count(b"\n")
    assert len(pieces) >= 1 and not any(piece.last for piece in pieces[:-1])


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("length", [MARGIN - 1, MARGIN, MARGIN + 1, 5 * MARGIN])
def test_a_record_that_is_longer_than_a_piece(packing: Callable[[bytes], bytes], length: int) -> None:
    threads = threading.active_count()
    data = (b"x" * length + b"\n" + b"y\n") * 3
    with Input(io.BytesIO(packing(data)), Path("given")) as source:
        assert b"".join(piece.data.tobytes() for piece in line_records(source, MARGIN // 2, 2)) == data
    assert threading.active_count() == threads


def test_a_record_has_its_limit() -> None:
    with (
        Input(io.BytesIO(b"x" * 100_000), Path("given"), memory=80_000) as source,
        pytest.raises(InputError, match="a record has more than 10,000 bytes"),
    ):
        list(line_records(source, 1 << 20, 4))
